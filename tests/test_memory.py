"""If the system has no more memory, a fit raises MemoryError and the process continues."""

import subprocess
import sys

import pytest
from pace import slow_but

# Every case is a separate process, which is forked after all imports.
SWEEP = """
import os, resource, sys, threading
import numpy as np
from bristlecone import _core

rng = np.random.default_rng(0)
n = 3000
features = (rng.random((n, 120)) < 0.5).view(np.uint8)
time, event = np.arange(n) + 1.0, rng.random(n) < 0.5
survival = {"time": time, "event": event}
own = {
    "statistics": np.stack([np.ones(n), rng.normal(size=n)], axis=1),
    "leaf_cost": lambda sums: sums[:, 0] - sums[:, 1] ** 2 / sums[:, 0],
    "total_weight": float(n),
}
limits = {
    "max_depth": 4, "max_leaf_nodes": None, "min_samples_leaf": 1, "leaf_penalty": 0.0,
    "n_threads": 2, "time_limit": 0.05, "memory_limit": None, "options": {"cells_per_thread": 1},
}
codes = np.array([rng.permutation(n) for _ in range(20)], dtype=np.uint32)
labels = {"labels": event.astype(int), "n_classes": 2.0}
every = np.repeat(np.arange(20), n - 1).tolist(), np.tile(np.arange(n - 1), 20).tolist()
made = _core.BinaryMatrix.of_ranks(list(codes), *every, n)
calls = {
    "sums": lambda: _core.solve("likelihood", survival, features, **limits),
    "curves": lambda: _core.solve(
        "brier", survival | {"leaf_curve": "kaplan-meier"}, features, **limits
    ),
    "front": lambda: _core.front("matthews", {"labels": labels["labels"]}, features, **limits),
    "own": lambda: _core.solve("own", own, features, **limits),
    "greedy": lambda: _core.grow_greedy(
        features, time, event, criterion="likelihood", max_depth=4, max_leaf_nodes=None,
        min_samples_leaf=1,
    ),
    "cuts": lambda: _core.greedy_cuts(
        "accuracy", labels, codes, **limits | {"options": None}
    ),
    "thresholds": lambda: _core.over_thresholds(
        "likelihood", survival, codes, **limits | {"options": {}}
    ),
    "encode": lambda: _core.BinaryMatrix.of_ranks(list(codes), *every, n),
    "take": lambda: made.take(np.arange(n)),
    "words": lambda: made.words(),
    "alike": lambda: made.first_alike(),
    "array": lambda: np.asarray(made),
    "table": lambda: _core.PartialSums(
        "likelihood", survival | {"count": np.ones(n, dtype=int)}, np.zeros(300, dtype=bool),
        **limits | {"max_depth": 3, "options": None}
    ),
}

def held():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmSize"))

def outcome(call):
    try:
        call()
    except MemoryError:
        return 3
    return 0

call = calls[sys.argv[1]]
for mebibytes in map(float, sys.argv[2:]):
    child = os.fork()
    if not child:
        most = held() + int(mebibytes * 2**20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        try:
            os._exit(outcome(call))
        finally:
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
LEFT = (0, 0.5, 3, 20, 42, 48, 49, 50, 52, 55, 60, 70, 90, 120, 2000)


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux alone")
@pytest.mark.parametrize(
    "call", slow_but({"sums"}, ["sums", "curves", "front", "own", "greedy", "cuts", "thresholds"])
)
def test_no_limit_of_the_address_space_ends_the_process(call):
    command = [sys.executable, "-c", SWEEP, call, *map(str, LEFT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = list(map(int, done.stdout.split()))
    assert len(found) == len(LEFT)
    assert set(found) <= {0, 3}, dict(zip(LEFT, found, strict=True))
    assert found[2] == 3 and found[-1] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux alone")
@pytest.mark.parametrize(
    "call", slow_but({"encode", "array"}, ["encode", "take", "words", "alike", "array", "table"])
)
def test_arrays_that_do_not_fit_raise_memory_error(call):
    command = [sys.executable, "-c", SWEEP, call, "20", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["3", "0"]
