"""The contract of all estimators: each test runs for all of ``subjects.SUBJECTS``.

Add a new estimator as one entry there.
"""
