"""Cases of a test that takes long: one or a few in every run, the others with the slow tests."""

import pytest


def slow_but(quick, cases):
    """The cases as parameters; all but those named in ``quick`` are slow."""
    cases, quick = list(cases), set(quick)
    assert quick < set(cases), quick - set(cases)
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]
