"""Reports of a search while it runs, and its result when it is stopped at any point."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from bristlecone._estimators import searched as _solver
from bristlecone._estimators.classifier import OptimalTreeClassifier
from bristlecone._estimators.greedy import GreedySurvivalTree
from bristlecone._estimators.regressor import OptimalTreeRegressor
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone.datasets import load
from bristlecone.exceptions import SearchCostWarning, SearchLimitWarning

GBSG2 = load("gbsg2")
HOURS = {"max_depth": 9}


def wide(n=400, p=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p)) < 0.5
    time = rng.exponential(np.exp(1.0 * X[:, 1] - X[:, 0] - X[:, 2] * X[:, 3]))
    return X, (rng.random(n) < 0.7, time)


@pytest.mark.parametrize("depth", [2, 3, 4, 6])
@pytest.mark.parametrize("min_samples_leaf", [1, 15])
def test_a_search_short_of_memory_leaves_no_worse_a_tree_than_the_greedy_one(
    depth, min_samples_leaf
):
    X, y = wide()
    limits = {"max_depth": depth, "min_samples_leaf": min_samples_leaf}
    greedy = GreedySurvivalTree(criterion="likelihood", **limits).fit(X, y)
    with pytest.warns(SearchLimitWarning):
        tree = OptimalSurvivalTree(memory_limit=1, time_limit=1e9, **limits).fit(X, y)
    assert tree.status_ == "memory_limit"
    assert tree.n_leaves_ > 2
    assert tree.objective_value_ <= greedy.objective_value_ + 1e-12


def test_the_budget_of_leaves_holds_for_the_first_tree_too():
    X, y = wide()
    with pytest.warns(SearchLimitWarning):
        tree = OptimalSurvivalTree(max_depth=3, max_leaf_nodes=4, memory_limit=1).fit(X, y)
    assert 2 < tree.n_leaves_ <= 4


def test_classes_and_numbers_start_from_a_greedy_tree_too():
    rng = np.random.default_rng(0)
    X = rng.random((500, 40)) < 0.5
    wave = X[:, 0] * 2.0 + X[:, 1] * X[:, 2]
    # A tree without errors would be optimal without further proof.
    labels = (wave > 1.5) ^ (rng.random(500) < 0.02)
    for model, y in (
        (OptimalTreeClassifier(max_depth=3, memory_limit=1), labels),
        (OptimalTreeRegressor(max_depth=3, memory_limit=1), wave + rng.normal(0, 0.1, 500)),
    ):
        with pytest.warns(SearchLimitWarning):
            tree = model.fit(X, y)
        # The true tree has depth three, and each of its splits is the best by itself.
        assert tree.score(X, y) > 0.95


@pytest.mark.slow
def test_progress_goes_by_the_clock_with_the_share_done_and_the_time_left():
    reported = []

    class Enough(Exception):
        pass

    def callback(progress):
        reported.append((progress, threading.current_thread()))
        if len(reported) == 12:
            raise Enough

    model = OptimalSurvivalTree(**HOURS)
    with pytest.warns(SearchCostWarning), pytest.raises(Enough):
        model.fit(GBSG2.X, GBSG2.y, callback=callback)
    assert len(reported) == 12
    assert not hasattr(model, "tree_")
    points = [point for point, _ in reported]
    assert {thread for _, thread in reported} == {threading.main_thread()}
    for before, after in itertools.pairwise(points):
        assert after.seconds >= before.seconds
        assert after.objective <= before.objective
        assert after.lower_bound >= before.lower_bound
        assert after.n_nodes_explored >= before.n_nodes_explored
    assert 0 <= points[-1].share < 0.5
    assert points[-1].seconds_left > 600


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_what_a_signal_handler_raises_passes_through():
    def handler(signum, frame):
        raise TimeoutError("from the handler")

    previous = signal.signal(signal.SIGALRM, handler)
    # Only from the first call on, because a signal before the search would not test it.
    started = []

    def callback(progress):
        if not started:
            started.append(True)
            signal.setitimer(signal.ITIMER_REAL, 0.05)

    model = OptimalSurvivalTree(time_limit=1e9, **HOURS)
    try:
        with pytest.raises(TimeoutError, match="from the handler"):
            model.fit(GBSG2.X, GBSG2.y, callback=callback)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert not hasattr(model, "tree_")


@pytest.mark.usefixtures("lone_ctrl_c")
def test_ctrl_c_within_the_callback_keeps_the_tree_so_far():
    def callback(progress):
        signal.raise_signal(signal.SIGINT)

    with pytest.warns(SearchLimitWarning):
        model = OptimalSurvivalTree(time_limit=1e9, **HOURS)
        tree = model.fit(GBSG2.X, GBSG2.y, callback=_once(callback))
    assert tree.status_ == "interrupted"
    assert tree.objective_value_ > tree.lower_bound_


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_these_tests_run_in_a_process_that_ignores_ctrl_c():
    test = f"{__file__}::test_ctrl_c_within_the_callback_keeps_the_tree_so_far"
    pytest_of_it = f"trap '' INT; exec '{sys.executable}' -m pytest -q '{test}'"
    done = subprocess.run(["sh", "-c", pytest_of_it], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_an_ignored_ctrl_c_does_not_end_a_search():
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        callback = _once(lambda progress: signal.raise_signal(signal.SIGINT))
        tree = OptimalSurvivalTree(max_depth=2).fit(GBSG2.X, GBSG2.y, callback=callback)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert tree.status_ == "optimal"


def _once(callback):
    calls = []

    def tell(progress):
        if not calls:
            calls.append(True)
            callback(progress)

    return tell


def test_the_time_limit_counts_from_the_beginning_of_fit(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(_solver, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    limit = pytest.warns(SearchLimitWarning, match="time_limit")
    with pytest.warns(SearchCostWarning), limit:
        tree = OptimalSurvivalTree(time_limit=1.5, **HOURS).fit(GBSG2.X, GBSG2.y)
    assert tree.status_ == "time_limit"
    # One second passed before the search.
    assert tree.trace_[-1].seconds < 1


@pytest.mark.usefixtures("lone_ctrl_c")
def test_a_bound_is_positive_long_before_the_end():
    # No rows repeat, so the finest partition has no loss and other bounds are needed.
    rng = np.random.default_rng(0)
    X, y = rng.random((300, 60)) < 0.5, (rng.random(300) < 0.6, rng.exponential(1, 300))

    def callback(progress):
        if progress.lower_bound > 0:
            raise KeyboardInterrupt

    with pytest.warns(SearchLimitWarning):
        model = OptimalSurvivalTree(max_depth=7, time_limit=1e9)
        tree = model.fit(X, y, callback=callback)
    assert tree.status_ == "interrupted"
    assert 0 < tree.lower_bound_ < tree.objective_value_
