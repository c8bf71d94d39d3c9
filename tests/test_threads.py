"""Threads of searches are reused. Concurrent fits have their own, and a forked process has none."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone.datasets import load

FORK = """
import os, signal
from bristlecone import OptimalSurvivalTree
from bristlecone.datasets import load

data = load("gbsg2")

def objective():
    return OptimalSurvivalTree(max_depth=4, n_jobs=2).fit(data.X, data.y).objective_value_

known = objective()
child = os.fork()
if not child:
    signal.alarm(60)
    try:
        os._exit(0 if objective() == known else 3)
    finally:
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert objective() == known
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_starts_threads_of_its_own():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_concurrent_fits_do_not_wait_for_the_threads_of_others():
    data = load("gbsg2")

    def objective(n_jobs):
        return OptimalSurvivalTree(max_depth=3, n_jobs=n_jobs).fit(data.X, data.y).objective_value_

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(objective, [1, 2] * 9))
    assert set(found) == {objective(1)}
