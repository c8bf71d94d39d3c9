"""``estimate_cost``: a forecast before the search, and a smaller setting if it is too expensive."""

import ast
import itertools
import os
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer
from survival_rows import sample

from bristlecone._cli import main, progress
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._estimators import searched
from bristlecone._estimators.regressor import OptimalTreeRegressor
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._fit import encode, forecast
from bristlecone._search.progress import readable_bytes, readable_seconds
from bristlecone.datasets import load
from bristlecone.exceptions import BristleconeWarning, SearchCostWarning, SearchLimitWarning

GBSG2 = load("gbsg2")


@pytest.fixture(autouse=True)
def encoding_takes_no_time(monkeypatch):
    """Forecasts include the time of encoding, and suggestions are sought for a limited time.
    Neither may depend on the load of the machine here."""
    for module in (searched, encode, forecast):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: 0.0))


def hopeless(model, X=GBSG2.X, y=GBSG2.y):
    with pytest.warns(SearchCostWarning) as caught:
        cost = model.estimate_cost(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    return cost, str(caught[0].message)


def test_a_forecast_counts_what_the_search_would_see():
    model = OptimalSurvivalTree(max_depth=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cost = model.estimate_cost(GBSG2.X, GBSG2.y)
    assert not hasattr(model, "tree_")
    fitted = model.fit(GBSG2.X, GBSG2.y)
    # 52 quantiles and levels, and five thresholds of the greedy tree.
    assert cost.n_features == fitted.n_binary_features_ == 57
    bits = fitted.encoder_.transform(GBSG2.X)
    assert cost.n_distinct_rows == len(np.unique(bits, axis=0))
    assert cost.max_depth == 3
    assert 0 < cost.seconds < 10
    assert 10_000 < cost.memory < 10**7
    assert cost.suggestion is None


def test_depth_and_features_cost_time_and_threads_save_it():
    def seconds(**parameters):
        model = OptimalSurvivalTree(time_limit=1e300, **{"encoder": BinaryEncoder(), **parameters})
        return model.estimate_cost(GBSG2.X, GBSG2.y).seconds

    by_depth = [seconds(max_depth=depth) for depth in (2, 4, 6, 8)]
    assert by_depth == sorted(by_depth)
    assert by_depth[-1] > 1000 * by_depth[1]
    few = BinaryEncoder(max_features=10)
    assert seconds(max_depth=6, encoder=few) < 0.01 * by_depth[2]
    # More threads than cores save no time.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert seconds(max_depth=6, n_jobs=2) == pytest.approx(by_depth[2] / min(2, cores), rel=0.01)


def test_rows_of_weight_zero_do_not_count():
    weight = (np.arange(len(GBSG2.y)) < 100).astype(float)
    model = OptimalSurvivalTree(max_depth=2)
    cost = model.estimate_cost(GBSG2.X, GBSG2.y, sample_weight=weight)
    assert cost.n_distinct_rows <= 100


def test_a_hopeless_search_is_reported_with_a_depth_that_fits():
    model = OptimalSurvivalTree(max_depth=9)
    cost, message = hopeless(model)
    assert cost.seconds > 600
    assert readable_seconds(cost.seconds) in message
    depth = int(re.match(r"max_depth=(\d)", cost.suggestion)[1])
    assert cost.suggestion in message
    smaller = model.set_params(max_depth=depth).estimate_cost(GBSG2.X, GBSG2.y)
    assert smaller.suggestion is None
    assert smaller.seconds <= 600
    hopeless(model.set_params(max_depth=depth + 1))


def test_the_limits_decide_what_is_hopeless():
    model = OptimalSurvivalTree(max_depth=5, time_limit=0.01, encoder=BinaryEncoder())
    cost, message = hopeless(model)
    assert cost.suggestion.startswith("max_depth=4 ")
    assert "but only 0.01 s" in message
    model.set_params(time_limit=None)
    assert model.estimate_cost(GBSG2.X, GBSG2.y).suggestion is None
    assert model.set_params(max_depth=9, time_limit=1e9).estimate_cost(GBSG2.X, GBSG2.y)


def encoder_in(suggestion):
    call = ast.parse(re.search(r"encoder=(BinaryEncoder\(.*?\)) \(", suggestion)[1], mode="eval")
    return BinaryEncoder(**{k.arg: ast.literal_eval(k.value) for k in call.body.keywords})


def test_fewer_features_are_suggested_with_the_depth_that_was_asked_for():
    X, y = np.random.default_rng(0).random((300, 10)), (np.ones(300, dtype=bool), np.arange(300.0))
    encoder = BinaryEncoder(thresholds="midpoints", min_support=0.0)
    model = OptimalSurvivalTree(max_depth=3, encoder=encoder, time_limit=0.01)
    cost, _ = hopeless(model, X, y)
    fewer = encoder_in(cost.suggestion)
    assert fewer.get_params() == {**encoder.get_params(), "max_features": fewer.max_features}
    assert 10 <= fewer.max_features <= 0.9 * cost.n_features
    smaller = OptimalSurvivalTree(max_depth=3, encoder=fewer, time_limit=0.01)
    assert smaller.estimate_cost(X, y).suggestion is None
    assert model.encoder is encoder and encoder.max_features is None


def test_few_features_come_with_less_depth():
    X, y = np.random.default_rng(0).random((300, 10)), (np.ones(300, dtype=bool), np.arange(300.0))
    encoder = BinaryEncoder(thresholds="midpoints", min_support=0.0)
    # The distinct rows alone take more memory than a deep search with ten features may.
    model = OptimalSurvivalTree(max_depth=9, encoder=encoder, time_limit=0.001)
    cost, _ = hopeless(model, X, y)
    assert cost.suggestion.startswith("max_depth=2, encoder=")
    smaller = OptimalSurvivalTree(
        max_depth=2, encoder=encoder_in(cost.suggestion), time_limit=0.001
    )
    assert smaller.estimate_cost(X, y).suggestion is None


def test_a_sample_of_rows_is_suggested_where_it_is_rows_that_cost():
    rng = np.random.default_rng(0)
    X, y = rng.random((20_000, 12)) < 0.5, (np.ones(20_000, dtype=bool), np.arange(20_000.0))
    model = OptimalSurvivalTree(max_depth=2, time_limit=0.02)
    cost, _ = hopeless(model, X, y)
    assert cost.row_seconds > 0.9 * cost.seconds
    rows = int(re.fullmatch(r"a sample of ([\d,]+) rows", cost.suggestion)[1].replace(",", ""))
    assert 500 <= rows < 20_000
    assert model.estimate_cost(X[:rows], (y[0][:rows], y[1][:rows])).suggestion is None


def test_fit_warns_before_a_search_without_an_end():
    def stop(progress):
        if progress.seconds_left is not None:
            raise StopIteration

    model = OptimalSurvivalTree(max_depth=9)
    forecast = pytest.warns(
        SearchCostWarning, match="is forecast to take .*; to make it smaller, use max_depth="
    )
    with forecast as caught, pytest.raises(StopIteration):
        model.fit(GBSG2.X, GBSG2.y, callback=stop)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SearchCostWarning)
        OptimalSurvivalTree(max_depth=3).fit(GBSG2.X, GBSG2.y)


@pytest.mark.parametrize("estimator", [OptimalSurvivalTree, OptimalTreeRegressor])
def test_the_first_report_has_a_forecast_and_the_rows_are_not_prepared_for_another(
    estimator, monkeypatch
):
    def second_preparation(*_):
        raise AssertionError("the forecast is known already")

    monkeypatch.setattr(forecast, "forecast", second_preparation)
    X, y = GBSG2.X, GBSG2.y if estimator is OptimalSurvivalTree else GBSG2.y["time"]
    points = []
    estimator(max_depth=3).fit(X, y, callback=points.append)
    assert points[0].seconds_left >= 0 and 0 <= points[0].share < 1


def test_no_suggestion_is_looked_for_when_the_time_is_up(monkeypatch):
    clock, encoded = itertools.count(), []
    monkeypatch.setattr(forecast, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    again = forecast.encode
    monkeypatch.setattr(forecast, "encode", lambda *given: encoded.append(given) or again(*given))
    model = OptimalSurvivalTree(max_depth=9, time_limit=0.01)
    with (
        pytest.warns(SearchCostWarning, match="is forecast to take [^;]* allowed$"),
        pytest.warns(SearchLimitWarning),
    ):
        model.fit(GBSG2.X, GBSG2.y)
    assert not encoded


def test_there_may_be_nothing_to_suggest():
    model = OptimalSurvivalTree(max_depth=2, time_limit=0)
    cost, message = hopeless(model)
    assert cost.suggestion is None
    assert "smaller" not in message
    X, y = sample()
    own = FunctionTransformer(feature_names_out="one-to-one")
    model = OptimalSurvivalTree(max_depth=2, memory_limit=10, encoder=own)
    assert hopeless(model, X > 0, y)[0].suggestion is None


def test_unlimited_depth_is_forecast_too():
    model = OptimalSurvivalTree(max_depth=None, leaf_penalty=0.001)
    rng = np.random.default_rng(0)
    B, y = rng.random((1500, 1400)) < 0.5, (np.ones(1500, dtype=bool), np.arange(1500.0))
    cost, message = hopeless(model, B, y)
    assert cost.seconds == np.inf
    assert "more than 1000 years" in message
    assert cost.suggestion.startswith("max_depth=")


def test_bad_input_is_refused_as_by_fit():
    with pytest.raises(ValueError, match="max_depth"):
        OptimalSurvivalTree(max_depth=-1).estimate_cost(GBSG2.X, GBSG2.y)
    with pytest.raises(ValueError, match="rows but y has"):
        OptimalSurvivalTree().estimate_cost(GBSG2.X, GBSG2.y[1:])
    assert issubclass(SearchCostWarning, BristleconeWarning)


def test_numbers_are_reported_in_units_that_suit_them():
    seconds = [0.0123, 1.25, 45, 119, 120, 7200, 3e5, 7e7, 1e30, np.inf]
    assert [readable_seconds(s) for s in seconds] == [
        "0.012 s", "1.2 s", "45 s", "119 s", "2 min", "2 h", "3.5 days", "2.2 years",
        "more than 1000 years", "more than 1000 years",
    ]  # fmt: skip
    sizes = [0, 999, 1500, 71e6, 2e9]
    assert [readable_bytes(n) for n in sizes] == ["0 bytes", "999 bytes", "1.5 kB", "71 MB", "2 GB"]


# Command line


def test_estimate_prints_the_forecast_and_stops(capsys, tmp_path):
    model = tmp_path / "m.json"
    status = main(["fit", "gbsg2", "--max-depth", "4", "--estimate", "--model", str(model)])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    table = dict(re.split(r"\s{2,}|(?<=features)\s", line) for line in out.splitlines())
    assert list(table) == ["binary features", "distinct rows", "depth", "time", "memory"]
    assert table["binary features"] == "59"  # including seven thresholds of the greedy tree
    assert table["distinct rows"] == "683"
    assert table["depth"] == "4"
    assert re.fullmatch(r"[\d.]+ s", table["time"])
    assert re.fullmatch(r"[\d.]+ MB", table["memory"])
    assert not model.exists()


def test_a_hopeless_search_is_reported_on_the_command_line_before_it_starts(capsys):
    main(["fit", "gbsg2", "--max-depth", "9", "--estimate"])
    warning = capsys.readouterr().err
    assert re.match(r"bristlecone: warning: the search is forecast.* --max-depth \d ", warning)
    assert warning.count("\n") == 1


@pytest.mark.usefixtures("lone_ctrl_c")
def test_a_fit_on_the_command_line_says_at_once_that_it_is_hopeless(capsys, monkeypatch):
    reported = []

    def watch(line, progress):
        reported.append(capsys.readouterr().err)
        if "is forecast" in "".join(reported):
            raise KeyboardInterrupt

    monkeypatch.setattr(progress._Line, "show", watch)
    assert main(["fit", "gbsg2", "--max-depth", "9", "--progress"]) == 130
    assert re.match(r"bristlecone: warning: the search is forecast to take", "".join(reported))


def test_fewer_columns_are_suggested_if_preparing_them_takes_too_long(monkeypatch):
    seconds = itertools.count()  # a second passes whenever the clock is read
    for module in (searched, encode, forecast):
        clock = SimpleNamespace(perf_counter=lambda: float(next(seconds)))
        monkeypatch.setattr(module, "time", clock)
    _, text = hopeless(OptimalSurvivalTree(max_depth=3, time_limit=0.5))
    assert re.search(r"; the data took \d s to prepare, less with fewer columns$", text)


def test_in_place_of_every_threshold_quantiles_are_suggested():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 8)), (rng.random(600) < 0.7, rng.exponential(size=600))
    every = BinaryEncoder(thresholds="all", min_support=0.02)
    tree = OptimalSurvivalTree(max_depth=4, encoder=every, time_limit=1.0)
    with pytest.warns(SearchCostWarning):
        cost = tree.estimate_cost(X, y)
    assert "encoder=BinaryEncoder(min_support=0.02) (" in cost.suggestion
