"""Limits, progress and Ctrl-C: a search that ends early returns a tree and a valid bound."""

import dataclasses
import itertools
import math
import os
import re
import select
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from papers import PAPERS
from sklearn.base import clone
from survival_rows import assert_same_predictions, sample

from bristlecone import OptimalTreeClassifier
from bristlecone import _cli as cli
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._estimators.base import BaseTree
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._fit.search import Search
from bristlecone._search.progress import SearchProgress
from bristlecone.datasets import load
from bristlecone.exceptions import InvalidParameterError, SearchCostWarning, SearchLimitWarning
from bristlecone.trust import verify


def limited(data, **parameters):
    with pytest.warns(SearchLimitWarning):
        return OptimalSurvivalTree(**parameters).fit(data.X, data.y)


# The search takes minutes at depth 7, with more than 50 binary features.
HEAVY = load("gbsg2")


@pytest.mark.parametrize("time_limit", [0, 0.2])
def test_a_time_limit_ends_a_deep_search_with_a_tree_and_a_valid_bound(time_limit):
    model = OptimalSurvivalTree(max_depth=7, time_limit=time_limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(HEAVY.X, HEAVY.y)
    # A machine may be fast enough for the second limit, but not for the first.
    stopped = model.status_ == "time_limit"
    assert stopped or (time_limit and model.status_ == "optimal")
    reported = [warning.category for warning in caught]
    # A limit of 0 means a first tree; with any other limit there is a warning that it is too short.
    assert reported == [SearchCostWarning] * bool(time_limit) + [SearchLimitWarning] * stopped
    assert model.depth_ <= 7
    assert model.gap_ == model.objective_value_ - model.lower_bound_
    met = model.gap_ <= 1e-9 * abs(model.objective_value_)
    assert met != stopped
    assert model.relative_gap_ == pytest.approx(model.gap_ / model.objective_value_)
    # Every tree of depth 2 is also allowed at depth 7.
    shallow = OptimalSurvivalTree(max_depth=2).fit(HEAVY.X, HEAVY.y)
    assert model.lower_bound_ <= shallow.objective_value_


def test_bounds_hold_and_neither_threads_nor_limits_out_of_reach_matter(
    as_many_threads_as_asked_for,
):
    X, y = sample()
    parameters = {"max_depth": 6, "encoder": BinaryEncoder(n_thresholds=2)}
    best = OptimalSurvivalTree(**parameters).fit(X, y)
    roomy = {"time_limit": 600, "memory_limit": 10**9, "n_jobs": 2}
    same = OptimalSurvivalTree(**parameters, **roomy).fit(X, y)
    assert best.status_ == same.status_ == "optimal"
    assert_same_predictions(best, same, X)
    with pytest.warns(SearchLimitWarning, match="time_limit"):
        early = OptimalSurvivalTree(**parameters, time_limit=0).fit(X, y)
    assert early.status_ == "time_limit"
    assert early.lower_bound_ <= best.objective_value_ <= early.objective_value_


def test_little_memory_gives_the_same_tree_and_too_little_none():
    parameters = {"max_depth": 4, "encoder": BinaryEncoder(), **PAPERS}
    full = OptimalSurvivalTree(**parameters).fit(HEAVY.X, HEAVY.y)
    # Enough memory only for tables of depth two.
    small = OptimalSurvivalTree(**parameters, memory_limit=200_000).fit(HEAVY.X, HEAVY.y)
    assert small.status_ == "optimal"
    assert small.objective_value_ == pytest.approx(full.objective_value_, rel=1e-12)
    assert small.n_nodes_explored_ > full.n_nodes_explored_
    none = limited(HEAVY, **parameters, memory_limit=100)
    assert none.status_ == "memory_limit"
    assert none.lower_bound_ <= full.objective_value_ <= none.objective_value_


# Progress


def test_the_callback_sees_the_search_improve():
    seen = []
    model = OptimalSurvivalTree(max_depth=4).fit(HEAVY.X, HEAVY.y, callback=seen.append)
    assert seen
    assert all(type(progress) is SearchProgress for progress in seen)
    for before, after in itertools.pairwise(seen):
        assert before.seconds <= after.seconds
        assert before.objective >= after.objective
        assert before.lower_bound <= after.lower_bound
        assert before.n_nodes_explored <= after.n_nodes_explored
    for progress in seen:
        assert progress.gap == progress.objective - progress.lower_bound >= 0
        assert progress.relative_gap == progress.gap / progress.objective
    assert seen[-1].objective == pytest.approx(model.objective_value_, rel=1e-9)
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen[0].objective = 0.0


def test_a_gap_of_an_objective_of_zero_has_no_share():
    assert SearchProgress(0.0, 0.0, 0.0, 1).relative_gap == 0
    assert SearchProgress(0.0, 0.0, -1.0, 1).relative_gap == math.inf


def test_a_callback_does_not_change_the_tree():
    X, y = sample()
    one = OptimalSurvivalTree(max_depth=3).fit(X, y)
    other = OptimalSurvivalTree(max_depth=3).fit(X, y, callback=lambda progress: True)
    assert_same_predictions(one, other, X)


def test_an_error_in_the_callback_ends_the_fit_and_keeps_the_earlier_one():
    X, y = sample()
    model = OptimalSurvivalTree(max_depth=1).fit(X, y)
    before = model.predict(X)

    def enough(progress):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        # within this limit there is no warning about the forecast, which may precede the callback
        model.set_params(max_depth=7, time_limit=1e9).fit(HEAVY.X, HEAVY.y, callback=enough)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(InvalidParameterError, match="callback must be callable or None; got 3"):
        model.fit(X, y, callback=3)


@pytest.fixture
def shown(capsys, monkeypatch):
    """Standard error of a fit that reports its progress after these seconds."""
    fit = OptimalSurvivalTree.fit

    def fit_shown(seconds, *options):
        def slow_fit(self, X, y, *arguments, callback=None, **extra):
            for now in seconds if callback else ():
                callback(SearchProgress(now, 0.6, 0.45, 7))
            return fit(self, X, y, *arguments, callback=callback, **extra)

        monkeypatch.setattr(OptimalSurvivalTree, "fit", slow_fit)
        cli.main(["fit", "gbsg2", *options])
        return capsys.readouterr().err

    return fit_shown


def test_progress_is_one_line_that_ends_before_the_warnings(shown):
    limit = ("--max-depth", "7", "--time-limit", "0")
    line, warning, rest = shown([0.01, 0.05, 0.12], *limit, "--progress").split("\n")
    start, *texts = line.split("\r")
    assert start == rest == ""
    assert len(texts) > 1
    for text in texts:
        pattern = r"[\d.]+ s: objective 0\.\d+, lower bound 0\.\d+, gap [\d.]+% *"
        assert re.fullmatch(pattern, text)
    assert warning.startswith("bristlecone: warning: the search stopped (time_limit)")


def test_without_a_terminal_there_is_no_progress(shown):
    assert "\r" not in shown([0.5, 2.5])


@pytest.mark.parametrize(("seconds", "lines"), [([0.5, 0.9], 0), ([0.5, 1.1], 1)])
def test_on_a_terminal_progress_waits_for_a_second(shown, monkeypatch, seconds, lines):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    # At depth 1 the search itself does not last a second.
    assert shown(seconds, "--max-depth", "1").count("\r") == lines


# Ctrl-C

SEARCH = """
import signal, time, warnings
from bristlecone import OptimalSurvivalTree
from bristlecone.datasets import load

def started(progress):
    if progress.objective < 0.5 and not reported:
        reported.append(True)
        print("searching", flush=True)

reported = []
warnings.simplefilter("ignore")
data = load("gbsg2")
try:
    model = OptimalSurvivalTree(max_depth=9, min_events_leaf=None, prior=0)
    model.fit(data.X, data.y, callback=started)
    print(model.status_, model.lower_bound_ < model.objective_value_ < 0.5, flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("raised", flush=True)
"""


@pytest.fixture
def searching():
    """A process in the middle of a search, which prints a line when it has found a good tree."""
    process = subprocess.Popen([sys.executable, "-c", SEARCH], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout.readline() == "searching\n"
        yield process
        process.kill()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_keeps_the_best_tree(searching):
    searching.send_signal(signal.SIGINT)
    assert searching.stdout.readline() == "interrupted True\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_again_raises(searching):
    # The first may end the search before the second arrives, and both may arrive as one.
    while not select.select([searching.stdout], [], [], 0.3)[0]:
        searching.send_signal(signal.SIGINT)
    reported = searching.stdout.readline()
    if reported.startswith("interrupted"):
        searching.send_signal(signal.SIGINT)
        reported = searching.stdout.readline()
    assert reported == "raised\n"


LOOP = """
import os, signal, threading, time, warnings
from bristlecone import OptimalSurvivalTree
from bristlecone.datasets import load

def press():
    while True:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

warnings.simplefilter("ignore")
data = load("gbsg2")
model = OptimalSurvivalTree(max_depth=9)
threading.Thread(target=press, daemon=True).start()
fits = 0
try:
    for _ in range(20):
        model.fit(data.X, data.y, callback=CALLBACK)
        fits += 1
    print("ended")
except KeyboardInterrupt:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("raised after", fits)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("callback", ["None", "lambda progress: time.sleep(0.2)"])
def test_ctrl_c_twice_ends_a_loop_of_fits(callback):
    program = [sys.executable, "-c", LOOP.replace("CALLBACK", callback)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("raised after")


@pytest.mark.parametrize("estimator", [OptimalSurvivalTree, OptimalTreeClassifier])
def test_every_size_of_a_stopped_path_is_as_good_as_its_own_stopped_fit(estimator):
    y = HEAVY.y["event"] if estimator is OptimalTreeClassifier else HEAVY.y
    model = estimator(max_depth=3, encoder=BinaryEncoder(), time_limit=0)
    with pytest.warns(SearchLimitWarning):
        path = model.size_path(HEAVY.X, y)
    assert path[-1].objective_value_ < path[1].objective_value_ < path[0].objective_value_
    for k, tree in enumerate(path[1:], start=2):
        with pytest.warns(SearchLimitWarning):
            alone = clone(model).set_params(max_leaf_nodes=k).fit(HEAVY.X, y)
        assert tree.n_leaves_ <= k and tree.status_ == "time_limit"
        assert tree.objective_value_ == pytest.approx(alone.objective_value_, rel=1e-12)


def test_no_size_of_a_stopped_path_has_a_worse_tree_than_a_smaller_size(monkeypatch):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)  # no first split of a greedy tree helps
    whole = Search.engine

    def stopped_beyond_four_leaves(self, problem):
        engine = whole(self, problem)

        def solve(**settings):
            if settings["max_leaf_nodes"] > 4:
                settings["time_limit"] = 0.0
            return engine.solve(**settings)

        return engine._replace(solve=solve)

    monkeypatch.setattr(Search, "engine", stopped_beyond_four_leaves)
    model = OptimalTreeClassifier(max_depth=3, encoder=BinaryEncoder(thresholds="all"))
    with pytest.warns(SearchLimitWarning):
        path = model.size_path(X, y)
    objectives = [tree.objective_value_ for tree in path]
    assert objectives == sorted(objectives, reverse=True)
    fifth = path[4]
    assert fifth.status_ == "time_limit" and fifth.n_leaves_ == 4
    assert fifth.certificate_.lower_bound <= fifth.objective_value_ == fifth.trace_[-1].objective
    assert np.mean(fifth.predict(X) != y) == fifth.objective_value_
    assert verify(fifth, X, y).ok


def test_an_interrupt_while_a_fit_is_stored_leaves_one_whole_fit():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 3 > 0
    model = OptimalTreeClassifier(max_depth=1).fit(X, y)
    left = 0

    def interrupt(frame, event, _):
        nonlocal left
        if frame.f_code is not BaseTree._set_fitted.__code__:
            return None
        left -= event == "line"
        if left < 0:
            raise KeyboardInterrupt
        return interrupt

    earlier = sys.gettrace()
    for lines in itertools.count():
        left, before = lines, dict(vars(model))
        try:
            sys.settrace(interrupt)
            model.fit(X, y)
            break
        except KeyboardInterrupt:
            kept = {vars(model)[name] is before[name] for name in before if name.endswith("_")}
            assert len(kept) == 1
        finally:
            sys.settrace(earlier)
    assert lines > 1
