"""``OptimalSurvivalTree``: reference values, parameters, limits and reports."""

import logging
import pickle
import signal
import threading
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from papers import PAPERS
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer
from survival_rows import assert_same_predictions, sample

from bristlecone import curves
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.use import binary_features
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.registry import dumps, loads
from bristlecone.datasets import load
from bristlecone.exceptions import BristleconeWarning, ConstantFeatureWarning, SearchLimitWarning


def loss_of_leaves(model, y):
    """Mean loss of Huisman et al. (AAAI-24), eq. 20, from the leaves and the training times."""
    baseline = curves.nelson_aalen(y)(y["months"])
    floored = np.where(baseline > 0, baseline, 1 / (len(y) + 1))
    saturated = -np.log(floored[y["dead"]]).sum()
    # With a pseudo-events, θ = (events + a) / (hazard + a), and the loss has a term for a.
    prior = model.prior_
    fitted = sum((leaf.events + prior) * np.log(leaf.theta) for leaf in model.leaf_statistics_)
    return (saturated - fitted) / len(y)


# From the specification of the likelihood objective: values of the published implementation.
@pytest.mark.parametrize(
    ("name", "depth", "expected"),
    [
        ("gbsg2", 0, 0.6965823489590519),
        ("gbsg2", 1, 0.6497759197081168),
        ("veterans", 0, 0.5748456947359405),
        ("veterans", 1, 0.4639605931766774),
    ],
)
def test_optimum_is_that_of_the_published_implementation(name, depth, expected):
    data = load(name)
    model = OptimalSurvivalTree(max_depth=depth, encoder=BinaryEncoder(), **PAPERS)
    model.fit(data.X, data.y)
    assert model.objective_value_ == pytest.approx(expected, rel=1e-12)
    assert model.status_ == "optimal"


@pytest.mark.parametrize(("depth", "expected"), [(0, 0.6709323799384523), (1, 0.5724761387512093)])
def test_optimum_on_the_survset_copy_of_whas500(depth, expected):
    # The set has 461 rows and other columns than the bundled set of 500.
    survset = pytest.importorskip("SurvSet.data", reason="SurvSet is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its pickles name modules that NumPy has moved
        frame = survset.SurvLoader().load_dataset("whas500")["df"]
    X, y = frame.drop(columns=["pid", "event", "time"]), frame[["event", "time"]]
    model = OptimalSurvivalTree(max_depth=depth, encoder=BinaryEncoder(), **PAPERS).fit(X, y)
    assert model.objective_value_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("parameters", [{}, PAPERS], ids=["defaults", "papers"])
def test_attributes_of_a_proven_fit(parameters):
    X, y = sample()
    model = OptimalSurvivalTree(max_depth=2, **parameters).fit(X, y)
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(loss_of_leaves(model, y), rel=1e-12)
    assert model.gap_ == model.objective_value_ - model.lower_bound_
    assert 0 <= model.gap_ <= 1e-9
    assert 0 <= model.relative_gap_ <= 1e-9
    assert model.n_binary_features_ == len(model.encoder_.get_feature_names_out())
    assert model.n_nodes_explored_ > 0
    assert model.fit_time_ > 0
    seconds, objective, bound = zip(*model.trace_, strict=True)
    assert sorted(seconds) == list(seconds)
    assert sorted(objective, reverse=True) == list(objective)
    assert objective[-1] == pytest.approx(model.objective_value_, rel=1e-9)
    assert bound[-1] == pytest.approx(model.lower_bound_, rel=1e-9)


def test_deeper_trees_are_never_worse():
    X, y = sample()
    found = [OptimalSurvivalTree(max_depth=d).fit(X, y).objective_value_ for d in range(3)]
    assert found[0] > found[1] > found[2]


def test_leaf_budget_holds_and_stands_in_for_the_depth():
    X, y = sample()
    unlimited = OptimalSurvivalTree(max_depth=2).fit(X, y)
    assert unlimited.n_leaves_ == 4
    for leaves in (1, 2, 3):
        model = OptimalSurvivalTree(max_depth=2, max_leaf_nodes=leaves).fit(X, y)
        assert model.n_leaves_ == leaves
        assert model.objective_value_ > unlimited.objective_value_
    free = OptimalSurvivalTree(max_depth=None, max_leaf_nodes=3).fit(X, y)
    assert_same_predictions(free, model, X)


def test_a_leaf_budget_beyond_the_number_of_rows_is_none():
    # Tables for so many budgets do not fit into any memory.
    rng = np.random.default_rng(0)
    B, y = rng.random((9, 6)) < 0.5, (np.ones(9, dtype=bool), rng.exponential(size=9))
    models = [
        OptimalSurvivalTree(max_depth=None, max_leaf_nodes=leaves, **PAPERS).fit(B, y)
        for leaves in (9, 10**15)
    ]
    assert models[0].status_ == models[1].status_ == "optimal"
    assert models[0].objective_value_ == models[1].objective_value_


def test_leaf_penalty_is_charged_per_leaf():
    X, y = sample()
    for penalty in (0.001, 0.03, 10.0):
        model = OptimalSurvivalTree(max_depth=2, leaf_penalty=penalty).fit(X, y)
        expected = loss_of_leaves(model, y) + penalty * model.n_leaves_
        assert model.objective_value_ == pytest.approx(expected, rel=1e-12)
    assert model.n_leaves_ == 1


def test_rows_count_for_the_smallest_leaf_not_weights():
    X, y = sample()
    heavy = OptimalSurvivalTree(max_depth=2, min_samples_leaf=45)
    weighted = heavy.fit(X, y, sample_weight=np.full(len(X), 100.0))
    assert min(leaf.n_samples for leaf in weighted.leaf_statistics_) >= 45


def test_a_leaf_without_events_has_half_an_event():
    X = np.array([[1], [1], [1], [0], [0], [0]], dtype=bool)
    event = np.array([True, True, True, False, False, False])
    model = OptimalSurvivalTree(max_depth=1, **PAPERS)
    model.fit(X, (event, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    quiet = model.leaf_statistics_[1]
    whole = 1 / 6 + 1 / 5 + 1 / 4
    assert quiet.n_events == 0
    assert quiet.hazard == pytest.approx(3 * whole, rel=1e-14)
    assert quiet.theta == 0.5 / quiet.hazard
    assert quiet.event_times.size == 0
    # Such a leaf has no loss.
    early = np.array([1 / 6, 1 / 6 + 1 / 5, whole])
    loss = -np.log(early).sum() - 3 * np.log(3 / early.sum())
    assert model.objective_value_ == pytest.approx(loss / 6, rel=1e-12)
    own = clone(model).set_params(leaf_curve="kaplan-meier").fit(X, (event, np.arange(1.0, 7.0)))
    never = own.predict_survival_function(X, times=[9.0])
    np.testing.assert_array_equal(never.ravel(), [0, 0, 0, 1, 1, 1])


def test_a_loss_of_zero_is_proven_and_saved():
    X = np.eye(3, dtype=bool)
    model = OptimalSurvivalTree(**PAPERS).fit(X, ([True, True, True], [1.0, 2.0, 3.0]))
    assert model.n_leaves_ == 3
    assert model.objective_value_ == pytest.approx(0, abs=1e-15)
    # Logarithms of both signs cancel, so the proof is relative to their size.
    assert model.status_ == "optimal" and 0 <= model.gap_ < 1e-12
    assert loads(dumps(model)).objective_value_ == model.objective_value_


def test_training_uses_the_floor_and_prediction_does_not():
    X = np.array([[1], [0], [0]], dtype=bool)
    model = OptimalSurvivalTree(max_depth=1, **PAPERS)
    model.fit(X, ([False, True, True], [1.0, 2.0, 3.0]))
    assert model.leaf_statistics_[0].hazard == 1 / 4
    curve = model.predict_survival_function(X, times=[1.0, 1.99])
    np.testing.assert_array_equal(curve, 1.0)


def test_boolean_rows_are_used_as_they_are():
    X, y = sample()
    B = X.to_numpy() > 0
    model = OptimalSurvivalTree(max_depth=2).fit(B, y)
    assert model.n_binary_features_ == 4
    np.testing.assert_array_equal(model.apply(B), model.tree_.apply(B))
    assert not hasattr(model, "feature_names_in_")


def test_categories_and_missing_values_go_through_the_encoder():
    X, y = sample()
    X["stage"] = np.where(X["x0"] > 0.2, "III", np.where(X["x1"] > 0, "II", "I"))
    X.loc[::7, "x1"] = np.nan
    model = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(missing="branch")).fit(X, y)
    names = set(model.encoder_.get_feature_names_out())
    assert {"stage = III", "x1 is missing"} <= names
    assert model.predict(X.assign(stage="IV")).shape == (len(X),)


def test_the_encoder_is_cloned_and_its_weights_are_the_rows():
    X, y = sample()
    encoder = BinaryEncoder(n_thresholds=3)
    weight = np.where(X["x0"] > 0, 5.0, 1.0)
    model = OptimalSurvivalTree(max_depth=1, encoder=encoder).fit(X, y, sample_weight=weight)
    assert not hasattr(encoder, "n_features_in_")
    expected = BinaryEncoder(n_thresholds=3).fit(X, sample_weight=weight)
    names = expected.get_feature_names_out().tolist()
    assert model.encoder_.get_feature_names_out().tolist() == names
    assert names != BinaryEncoder(n_thresholds=3).fit(X).get_feature_names_out().tolist()


def test_any_transformer_into_zeros_and_ones_is_an_encoder():
    X, y = sample()
    bins = KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform")
    model = OptimalSurvivalTree(max_depth=1, encoder=bins).fit(X, y)
    assert model.n_binary_features_ == 16
    assert model.n_leaves_ == 2
    with pytest.raises(TypeError, match=r"encoder is a KBinsDiscretizer|parameter encoder"):
        model.to_json()
    sparse = clone(bins).set_params(encode="onehot")
    same = OptimalSurvivalTree(max_depth=1, encoder=sparse).fit(X, y)
    assert_same_predictions(model, same, X)
    plain = FunctionTransformer(feature_names_out="one-to-one")
    with pytest.raises(ValueError, match=r"encoder made an array .*only 0 and 1"):
        OptimalSurvivalTree(encoder=plain).fit(X, y)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, float, object])
def test_features_of_an_encoder_are_checked_without_a_copy_many_times_their_size(dtype):
    rows = np.random.default_rng(0).integers(0, 2, (4000, 500)).astype(dtype)
    keep = FunctionTransformer()
    tracemalloc.start()
    features = binary_features(keep, rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(np.asarray(features), rows)
    # one byte each, plus the memory for a block of 2**20 cells if there is no faster check
    assert peak < rows.size + (12e5 if dtype in (bool, np.uint8, np.int64) else 12 * 2**20)


@pytest.mark.parametrize("wrong", [2, -1, 0.5, np.nan, None, "1"])
def test_features_other_than_zero_and_one_are_refused_wherever_they_are(wrong):
    rows = np.zeros((3000, 400), dtype=type(wrong) if isinstance(wrong, (int, float)) else object)
    rows[2999, 399] = wrong
    with pytest.raises(ValueError, match="only 0 and 1"):
        binary_features(FunctionTransformer(), rows)


def test_constant_columns_are_logged_and_alone_leave_a_single_leaf(caplog):
    X, y = sample()
    with caplog.at_level(logging.INFO):
        model = OptimalSurvivalTree(max_depth=1).fit(X.assign(hospital=3), y)
    assert "these columns are constant and cannot be split: 'hospital'" in caplog.messages
    assert model.n_leaves_ == 2
    with pytest.warns(ConstantFeatureWarning, match="'x0'; nothing is left to split on"):
        model = OptimalSurvivalTree().fit(np.full((len(y), 1), 3), y)
    assert (model.n_leaves_, model.depth_, model.n_binary_features_) == (1, 0, 0)
    baseline = curves.nelson_aalen(y)(y["months"]).max()
    last = model.predict_cumulative_hazard_function([[3]], times=model.unique_times_[-1:])
    assert last[0, 0] == pytest.approx(model.predict([[3]])[0] * baseline, rel=1e-15)


def test_a_time_limit_warns_and_keeps_a_valid_bound():
    X, y = sample()
    best = OptimalSurvivalTree(max_depth=2).fit(X, y)
    with pytest.warns(SearchLimitWarning, match=r"time_limit.*gap 0\.\d+") as caught:
        model = OptimalSurvivalTree(max_depth=2, time_limit=0).fit(X, y)
    assert caught[0].filename == __file__
    assert model.status_ == "time_limit"
    assert model.lower_bound_ <= best.objective_value_ <= model.objective_value_
    assert model.gap_ > 0
    assert model.relative_gap_ == model.gap_ / model.objective_value_
    assert model.predict(X).shape == (len(X),)
    assert issubclass(SearchLimitWarning, ConvergenceWarning)
    assert issubclass(SearchLimitWarning, BristleconeWarning)


@pytest.mark.parametrize("objective", ["likelihood", "brier"])
def test_threads_do_not_change_the_tree(objective, as_many_threads_as_asked_for):
    X, y = sample()
    parameters = {"max_depth": 3, "objective": objective}
    one = OptimalSurvivalTree(**parameters, n_jobs=None).fit(X, y)
    for n_jobs in (2, 3, -1):
        model = OptimalSurvivalTree(**parameters, n_jobs=n_jobs).fit(X, y)
        assert_same_predictions(one, model, X)
        assert model.objective_value_ == one.objective_value_


def test_unlimited_depth_needs_something_else_that_ends_the_search():
    X, y = sample(n=20)
    with pytest.raises(ValueError, match=r"max_depth=None .* leaf_penalty > 0 or max_leaf_nodes"):
        OptimalSurvivalTree(max_depth=None).fit(X, y)
    model = OptimalSurvivalTree(max_depth=None, leaf_penalty=1.0, **PAPERS)
    model.fit(X.to_numpy()[:, :1] > 0, y)
    assert model.n_leaves_ == 1


def test_training_rows_are_not_kept():
    data = load("gbsg2")
    many = pd.concat([data.X] * 20, ignore_index=True), np.tile(data.y, 20)
    small = OptimalSurvivalTree(max_depth=2).fit(data.X, data.y)
    large = OptimalSurvivalTree(max_depth=2).fit(*many)
    assert len(pickle.dumps(large)) < len(pickle.dumps(small)) + 1000


@pytest.mark.usefixtures("lone_ctrl_c")
def test_ctrl_c_keeps_the_best_tree_so_far():
    # Too large to be finished: only the signal ends it.
    rng = np.random.default_rng(0)
    B, y = rng.random((500, 80)) < 0.5, (rng.random(500) < 0.7, rng.exponential(size=500))
    interrupt = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])

    def searching(progress):
        if interrupt.ident is None:
            interrupt.start()

    with pytest.warns(SearchLimitWarning, match="interrupted"):
        model = OptimalSurvivalTree(max_depth=8, time_limit=1e9)
        model.fit(B, y, callback=searching)
    interrupt.join()
    assert model.status_ == "interrupted"
    assert model.lower_bound_ < model.objective_value_
    assert model.predict(B).shape == (500,)
