"""How property tests choose their examples.

The ordinary run takes the same ones every time; `just explore` looks for new ones. A run without
the slow tests takes fewer of them, and fewer random problems (`BRISTLECONE_CASES`). Time decides
nothing: neither a deadline nor the check for slow generation.
"""

import gc
import os
import signal
import sys

if "PYTEST_XDIST_WORKER" in os.environ:
    # Read where scikit-learn is imported: a thread per core in every worker is too many.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from bristlecone._fit.search import Limits

# Pictures are drawn into memory.
os.environ["MPLBACKEND"] = "Agg"

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "database": None}

settings.register_profile("ordinary", max_examples=50, derandomize=True, **COMMON)
settings.register_profile("quick", max_examples=10, derandomize=True, **COMMON)
settings.register_profile("explore", max_examples=2000, print_blob=True, **COMMON)
settings.load_profile("ordinary")


def pytest_configure(config):
    if config.getoption("markexpr") == "not slow":
        os.environ.setdefault("BRISTLECONE_CASES", "5")
        if not config.getoption("--hypothesis-profile"):
            settings.load_profile("quick")


def pytest_collection_finish():
    """Tests and modules stay; looking for garbage among them takes a tenth of a run."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_interrupts():
    """Also in a run whose process ignores SIGINT, as one that a script starts behind itself does.

    Processes that tests start inherit that it is not ignored.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Pyplot keeps figures until they are closed, and warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def as_many_threads_as_asked_for(monkeypatch):
    """Small searches run them too, on a machine with one core as well."""
    settings = Limits.settings

    def threaded(self, problem, **others):
        return settings(self, problem, **{"options": {"cells_per_thread": 1}, **others})

    monkeypatch.setattr(Limits, "settings", threaded)
