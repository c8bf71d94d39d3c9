"""What every estimator promises: each test runs over all of ``subjects.SUBJECTS``.

A new estimator is one entry there.
"""
