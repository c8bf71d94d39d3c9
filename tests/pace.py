"""Cases of a long test: a few run every time, the others with the slow tests."""

import pytest


def slow_but(quick, cases):
    """The cases as parameters; all except those in ``quick`` are slow."""
    cases, quick = list(cases), set(quick)
    assert quick < set(cases), quick - set(cases)
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]
