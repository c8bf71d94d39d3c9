"""Limits, progress and Ctrl-C: a search that ends early keeps a tree and a valid bound."""

import dataclasses
import itertools
import math
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from survival_contract import assert_same_predictions, sample

from bristlecone import cli
from bristlecone.datasets import load
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import InvalidParameterError, SearchLimitWarning
from bristlecone.greedy import GreedySurvivalTree
from bristlecone.optimal import OptimalSurvivalTree
from bristlecone.search import SearchProgress


def limited(data, **parameters):
    with pytest.warns(SearchLimitWarning):
        return OptimalSurvivalTree(**parameters).fit(data.X, data.y)


# Minutes at depth 7: 52 binary features.
HEAVY = load("gbsg2")


def test_a_time_limit_ends_a_deep_search_with_a_good_tree_and_a_valid_bound():
    start = time.perf_counter()
    model = limited(HEAVY, max_depth=7, time_limit=1)
    assert time.perf_counter() - start < 5
    assert model.status_ == "time_limit"
    assert model.depth_ <= 7
    assert model.lower_bound_ < model.objective_value_
    assert model.relative_gap_ == pytest.approx(model.gap_ / model.objective_value_)
    shallow = OptimalSurvivalTree(max_depth=3).fit(HEAVY.X, HEAVY.y)
    greedy = GreedySurvivalTree(max_depth=7).fit(HEAVY.X, HEAVY.y)
    assert model.objective_value_ <= min(shallow.objective_value_, greedy.objective_value_) + 1e-12


def test_bounds_hold_and_neither_threads_nor_limits_out_of_reach_matter():
    X, y = sample()
    parameters = {"max_depth": 6, "encoder": BinaryEncoder(n_thresholds=2)}
    best = OptimalSurvivalTree(**parameters).fit(X, y)
    roomy = {"time_limit": 600, "memory_limit": 10**9, "n_jobs": 2}
    same = OptimalSurvivalTree(**parameters, **roomy).fit(X, y)
    assert best.status_ == same.status_ == "optimal"
    assert_same_predictions(best, same, X)
    with pytest.warns(SearchLimitWarning, match="time_limit"):
        early = OptimalSurvivalTree(**parameters, time_limit=0).fit(X, y)
    assert early.lower_bound_ < best.objective_value_ < early.objective_value_


def test_little_memory_gives_the_same_tree_and_too_little_none():
    full = OptimalSurvivalTree(max_depth=4).fit(HEAVY.X, HEAVY.y)
    # Enough for tables of depth two only.
    small = OptimalSurvivalTree(max_depth=4, memory_limit=200_000).fit(HEAVY.X, HEAVY.y)
    assert small.status_ == "optimal"
    assert small.objective_value_ == pytest.approx(full.objective_value_, rel=1e-12)
    assert small.n_nodes_explored_ > full.n_nodes_explored_
    none = limited(HEAVY, max_depth=4, memory_limit=100)
    assert none.status_ == "memory_limit"
    assert none.lower_bound_ <= full.objective_value_ <= none.objective_value_


# Progress


def test_the_callback_sees_the_search_improve():
    seen = []
    model = OptimalSurvivalTree(max_depth=7, time_limit=0.5)
    with pytest.warns(SearchLimitWarning):
        model.fit(HEAVY.X, HEAVY.y, callback=seen.append)
    assert len(seen) > 1
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
        model.set_params(max_depth=7).fit(HEAVY.X, HEAVY.y, callback=enough)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(InvalidParameterError, match="callback must be callable or None; got 3"):
        model.fit(X, y, callback=3)


def fit_shown(capsys, *options):
    """Standard error of a fit, split where a line was written anew."""
    cli.main(["fit", "gbsg2", "--max-depth", "7", *options])
    return capsys.readouterr().err


def test_progress_is_one_line_that_ends_before_the_warnings(capsys):
    shown = fit_shown(capsys, "--time-limit", "0.4", "--progress")
    forecast, line, warning, rest = shown.split("\n")
    assert forecast.startswith("bristlecone: warning: the search is forecast")
    start, *texts = line.split("\r")
    assert start == rest == ""
    assert len(texts) > 1
    for text in texts:
        pattern = r"[\d.]+ s: objective 0\.\d+, lower bound 0\.\d+, gap [\d.]+ % *"
        assert re.fullmatch(pattern, text)
    assert warning.startswith("bristlecone: warning: the search stopped (time_limit)")


def test_without_a_terminal_there_is_no_progress(capsys):
    assert "\r" not in fit_shown(capsys, "--time-limit", "0.2")


def test_on_a_terminal_progress_waits_for_a_second(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "\r" not in fit_shown(capsys, "--time-limit", "0.2")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "\r" in fit_shown(capsys, "--time-limit", "1.2")


# Ctrl-C

SEARCH = """
import sys, time, warnings
from bristlecone import OptimalSurvivalTree
from bristlecone.datasets import load

def started(progress):
    if progress.objective < 0.5 and not told:
        told.append(True)
        print("searching", flush=True)

told = []
warnings.simplefilter("ignore")
data = load("gbsg2")
try:
    model = OptimalSurvivalTree(max_depth=9).fit(data.X, data.y, callback=started)
    print(model.status_, model.lower_bound_ < model.objective_value_ < 0.5, flush=True)
    time.sleep(5)
except KeyboardInterrupt:
    print("raised", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize(("signals", "expected"), [(1, "interrupted True"), (2, "raised")])
def test_ctrl_c_keeps_the_best_tree_and_a_second_one_raises(signals, expected):
    process = subprocess.Popen([sys.executable, "-c", SEARCH], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout.readline() == "searching\n"
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.15)
        told = process.stdout.readline()
        if signals == 2 and told.startswith("interrupted"):
            # The first signal had ended the search before the second one came.
            told = process.stdout.readline()
        process.kill()
    assert told == expected + "\n"
