"""Teachers: cross-fitted predictions of a flexible model, mixed into the outcomes of a search.

``outcomes`` defines what a teacher learns and how its predictions are mixed in, ``members`` the
models behind ``teacher="auto"``, ``folds`` which rows are predicted together, and ``lesson`` puts
them together. docs/maths/teacher.md has the argument.
"""
