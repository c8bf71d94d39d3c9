"""Every test with the fixture ``subject`` runs for all estimators and variants."""

import pytest

from contract.subjects import EVERY


@pytest.fixture(params=EVERY)
def subject(request):
    return EVERY[request.param]


@pytest.fixture(scope="module")
def earlier():
    """Every estimator, fitted once, and its rows, for tests of invalid second fits."""
    return {name: described.fitted() for name, described in EVERY.items()}


@pytest.fixture(scope="session")
def reference():
    """Predictions of an estimator for the rows of its study, fitted once."""
    found = {}

    def predicted(subject, mixed=False):
        key = id(subject), mixed
        if key not in found:
            model, study = subject.fitted(mixed=mixed)
            found[key] = model, study, subject.predicted(model, study.X)
        return found[key]

    return predicted
