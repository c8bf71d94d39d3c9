"""Settings of all tests: examples of property tests, threads, pictures and signals.

The usual run takes the same examples every time; `just explore` looks for new ones. A run without
the slow tests takes fewer examples and fewer random problems (`BRISTLECONE_CASES`). Nothing depends
on time: there is no deadline and no check for slow generation.
"""

import gc
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing

if "PYTEST_XDIST_WORKER" in os.environ:
    # scikit-learn reads this when it is imported. One thread per core is too many in every worker.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from bristlecone._fit.search import Limits

# Draw pictures in memory.
os.environ["MPLBACKEND"] = "Agg"

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "database": None}

settings.register_profile("ordinary", max_examples=50, derandomize=True, **COMMON)
settings.register_profile("quick", max_examples=10, derandomize=True, **COMMON)
settings.register_profile("explore", max_examples=2000, print_blob=True, **COMMON)
settings.load_profile("ordinary")


def pytest_configure(config):
    if config.getoption("markexpr") == "not slow":
        os.environ.setdefault("BRISTLECONE_CASES", "3")
        if not config.getoption("--hypothesis-profile"):
            settings.load_profile("quick")


def pytest_collection_finish():
    """Exclude tests and modules from garbage collection, which otherwise takes a tenth of a run."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_interrupts():
    """Handle SIGINT even if the parent ignores it, as a script does for its background processes.

    Processes that tests start inherit this setting.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def connection():
    """A database of SQLite in memory."""
    with closing(sqlite3.connect(":memory:")) as opened:
        yield opened


INTERRUPTED = [-1.0]


@pytest.fixture
def lone_ctrl_c():
    """Wait until no search of this process was interrupted for a second: the next is the first."""
    time.sleep(max(0.0, INTERRUPTED[0] + 1.05 - time.monotonic()))
    yield
    INTERRUPTED[0] = time.monotonic()


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Close all figures, because pyplot keeps them and warns if there are many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def as_many_threads_as_asked_for(monkeypatch):
    """Use threads even in small searches and on a machine with one core."""
    settings = Limits.settings

    def threaded(self, problem, **others):
        return settings(self, problem, **{"options": {"cells_per_thread": 1}, **others})

    monkeypatch.setattr(Limits, "settings", threaded)
