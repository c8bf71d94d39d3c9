"""Scorers and ``evaluate`` for survival models of other packages."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from survival_rows import sample

import bristlecone
from bristlecone import OptimalSurvivalTree, metrics
from bristlecone.curves import censoring_survival, kaplan_meier
from bristlecone.metrics._scorers import SCORERS
from bristlecone.tune import evaluate


class Wrapped(BaseEstimator):
    """A tree of this package that only offers predictions of some form."""

    def __init__(self, form="functions"):
        self.form = form

    def fit(self, X, y):
        self.inner = OptimalSurvivalTree(max_depth=2).fit(X, y)
        self.unique_times_ = self.inner.unique_times_
        return self

    def predict(self, X):
        return self.inner.predict(X)

    def formed(self, predict, X):
        if self.form == "array":
            return predict(X, return_array=True)
        if self.form == "frame":
            return pd.DataFrame(predict(X, return_array=True).T, index=self.unique_times_)
        functions = predict(X)
        return [one.__call__ for one in functions] if self.form == "callables" else functions

    def predict_survival_function(self, X):
        return self.formed(self.inner.predict_survival_function, X)

    def predict_cumulative_hazard_function(self, X):
        return self.formed(self.inner.predict_cumulative_hazard_function, X)


class Columns:
    """The same as a model of lifelines: fitted to columns, without a method ``predict``."""

    def fit(self, df, duration_col, event_col, weights_col=None, entry_col=None):
        own = [name for name in (duration_col, event_col, weights_col, entry_col) if name]
        entry = None if entry_col is None else df[entry_col]
        y = bristlecone.outcome(df[event_col], df[duration_col], entry=entry)
        weight = None if weights_col is None else df[weights_col]
        self.inner = OptimalSurvivalTree(max_depth=2).fit(df.drop(columns=own), y, weight)
        return self

    def predict_partial_hazard(self, df):
        return pd.Series(self.inner.predict(df))

    def predict_survival_function(self, df):
        times = self.inner.unique_times_
        return pd.DataFrame(self.inner.predict_survival_function(df, times=times).T, index=times)

    def predict_cumulative_hazard(self, df):
        return -np.log(self.predict_survival_function(df))


class RiskAlone(BaseEstimator):
    """A model that predicts a risk and no curves."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X.iloc[:, 0].to_numpy()


class TimesAlone(RiskAlone):
    """A model that predicts times, as some of scikit-survival do."""

    _predict_risk_score = False

    def predict(self, X):
        return -super().predict(X)


@pytest.fixture(scope="module")
def rows():
    return sample(200)


@pytest.mark.parametrize("form", ["functions", "callables", "array", "frame"])
def test_a_tree_in_foreign_clothes_has_the_scores_of_the_tree(rows, form):
    models = {"tree": OptimalSurvivalTree(max_depth=2), "other": Wrapped(form)}
    table = evaluate(models, *rows, scoring=SCORERS)
    splits = [name for name in table if name.startswith("split")]
    own, other = (table[table["estimator"] == name][splits].to_numpy() for name in models)
    np.testing.assert_allclose(other, own, rtol=1e-9)


@pytest.mark.parametrize("late", [False, True])
def test_models_that_take_columns_are_fitted_with_weights_and_entries(rows, late):
    X, y = rows
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    entry = np.minimum(y["months"] / 2, 1.0) if late else None
    y = bristlecone.outcome(y["dead"], y["months"], entry=entry)
    models = {"tree": OptimalSurvivalTree(max_depth=2), "columns": Columns()}
    names = ["concordance", "calibration"] if late else [*SCORERS, None]
    names = [name for name in names if name != "likelihood"]  # its floor ignores weights
    table = evaluate(models, X, y, weight, scoring=names)
    own, other = (table[table["estimator"] == name]["mean"].to_numpy() for name in models)
    np.testing.assert_allclose(other, own, rtol=1e-9)


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_models_that_take_columns_are_given_the_names_in_every_library(rows, convert):
    X, y = rows
    X = X.assign(x0=np.where(X["x0"] > 0, "high", "low"))
    expected = evaluate(Columns(), X, y, scoring="ibs")
    named = evaluate(
        {"columns": Columns(), "tree": OptimalSurvivalTree(max_depth=2)},
        convert(X),
        y,
        scoring="ibs",
    )
    assert np.asarray(named["mean"]).tolist() == [pytest.approx(expected["mean"][0], rel=1e-9)] * 2
    frame = convert(X)
    tree = OptimalSurvivalTree(max_depth=1, teacher=Columns())
    assert tree.fit(frame, y).objective_value_ == tree.fit(X, y).objective_value_


def test_likelihood_of_late_entries_is_that_of_the_tree(rows):
    X, y = rows
    y = bristlecone.outcome(y["dead"], y["months"], entry=np.minimum(y["months"] / 2, 1.0))
    models = {"tree": OptimalSurvivalTree(max_depth=2), "other": Wrapped()}
    table = evaluate(models, X, y, scoring="likelihood")
    assert table["mean"][1] == pytest.approx(table["mean"][0], rel=1e-9)


def plain_ibs(train, test, survival, end, n_pieces=20000):
    """Integrated Brier score, by its definition, on a fine grid."""
    censoring, total = censoring_survival(train), 0.0
    grid = (np.arange(n_pieces) + 0.5) * end / n_pieces
    for t, s in zip(grid, survival(grid).T, strict=True):
        died = (test["months"] <= t) & test["dead"]
        alive = test["months"] > t
        own = np.where(died, censoring(np.where(died, test["months"], 0.0)), 1.0)
        total += np.mean(died * s**2 / own + alive * (1 - s) ** 2 / censoring(t))
    return total / n_pieces


@pytest.mark.slow
def test_scores_of_scikit_survival_are_those_of_plain_loops(rows):
    linear = pytest.importorskip("sksurv.linear_model").CoxPHSurvivalAnalysis(alpha=0.1)
    forest = pytest.importorskip("sksurv.ensemble").RandomSurvivalForest(10, random_state=0)
    X, y = rows
    models = {"cox": make_pipeline(FunctionTransformer(), linear), "forest": forest}
    table = evaluate(models, X, y, scoring=["ibs", "uno", "calibration"], cv=3)
    folds = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y["dead"])
    for k, (known, held) in enumerate(folds):
        end = min(y["months"][known].max(), y["months"][held].max())
        for name, model in (("cox", linear), ("forest", forest)):
            model.fit(X.iloc[known], y[known])
            curves = model.predict_survival_function(X.iloc[held])

            def survival(times, curves=curves):
                first = curves[0].x[0]
                values = [np.atleast_1d(one(np.clip(times, first, None))) for one in curves]
                return np.where(times < first, 1.0, values)

            found = table[table["estimator"] == name].set_index("metric")[f"split{k}"]
            expected = plain_ibs(y[known], y[held], survival, end)
            assert found["ibs"] == pytest.approx(-expected, rel=1e-3)
            risk = model.predict(X.iloc[held])
            last = np.nextafter(y["months"][known].max(), np.inf)
            expected = metrics.concordance_index_ipcw(y[known], y[held], risk, last).cindex
            assert found["uno"] == expected
            # Five groups of equal size, because no two predictions of the Cox model are equal.
            if name == "cox":
                at = survival(np.array([end / 2]))[:, 0]
                rank = np.argsort(np.argsort(at)) + 0.5
                group = (5 * rank / len(at)).astype(int)
                error = 0.0
                for g in range(5):
                    curve = kaplan_meier(y[held][group == g])
                    error += (group == g).mean() * abs(at[group == g].mean() - curve(end / 2))
                assert found["calibration"] == pytest.approx(-error, rel=1e-9)


def test_likelihood_is_highest_for_the_truth():
    # Two groups with exponential times; no other ratio of hazards scores better on average.
    rng = np.random.default_rng(0)
    group = np.repeat([0.0, 1.0], 2000)
    X = pd.DataFrame({"group": group})
    y = bristlecone.outcome(np.ones(4000, bool), rng.exponential(1 / np.where(group == 1, 3, 1)))

    class Truth(BaseEstimator):
        def __init__(self, factor=3.0, power=1.0):
            self.factor, self.power = factor, power

        def fit(self, X, y):
            return self

        def predict_survival_function(self, X):
            times = np.linspace(0, 12, 2000)
            rate = np.where(X["group"] == 1, self.factor, 1.0)
            hazard = np.outer(times**self.power, rate)
            return pd.DataFrame(np.exp(-hazard), index=times)

    models = {
        "truth": Truth(),
        "factor": Truth(1.5),
        "early": Truth(power=0.6),
        "late": Truth(power=1.6),
    }
    found = evaluate(models, X, y, scoring="likelihood").set_index("estimator")["difference"]
    assert (found.drop("truth") < -0.01).all()


def test_a_model_with_a_risk_alone_is_scored_by_its_order(rows):
    table = evaluate({"risk": RiskAlone(), "times": TimesAlone()}, *rows, scoring=["uno", "auc"])
    means = table["mean"].to_numpy()
    np.testing.assert_array_equal(means[[0, 2]], means[[1, 3]])
    for name in ("ibs", "likelihood", "calibration"):
        with pytest.raises(TypeError, match=f"{name}_scorer needs survival curves, but RiskAlone"):
            evaluate(RiskAlone(), *rows, scoring=name)


def test_a_model_with_curves_alone_is_ordered_by_its_cumulative_hazards(rows):
    class Curves(Columns):
        def predict_cumulative_hazard(self, X, times):
            return pd.DataFrame(
                self.inner.predict_cumulative_hazard_function(X, times=times).T, index=times
            )

    models = {"curves": Curves(), "tree": OptimalSurvivalTree(max_depth=2)}
    curves, tree = evaluate(models, *rows, scoring="concordance")["mean"]
    assert curves == tree


def test_training_outcomes_are_asked_for(rows):
    X, y = rows
    model, tree = Wrapped().fit(X, y), OptimalSurvivalTree(max_depth=2).fit(X, y)
    for name, scorer in SCORERS.items():
        if name == "concordance":
            continue
        with pytest.raises(TypeError, match=r"training rows of Wrapped.*pass survival_train"):
            scorer(model, X, y)
        assert scorer(model, X, y, survival_train=y) == pytest.approx(scorer(tree, X, y), rel=1e-9)
        # A given training sample is used, even for a tree.
        expected = scorer(model, X, y, survival_train=y[:100])
        assert scorer(tree, X, y, survival_train=y[:100]) == pytest.approx(expected) or (
            name == "likelihood"
        )


def test_predictions_that_cannot_be_read_are_named(rows):
    X, y = rows
    known = {"survival_train": y}
    other = Wrapped("array").fit(X, y)
    other.unique_times_ = other.unique_times_[:-1]
    with pytest.raises(TypeError, match=r"Wrapped returns values of shape .* without times"):
        metrics.ibs_scorer(other, X, y, **known)

    class Dead(Wrapped):
        def predict_cumulative_hazard_function(self, X):
            return np.full((len(X), len(self.unique_times_)), np.inf)

    class Negative(Wrapped):
        def predict_cumulative_hazard_function(self, X):
            return np.full((len(X), len(self.unique_times_)), -1.0)

    with pytest.raises(ValueError, match="Dead predicts a survival of zero before time"):
        metrics.likelihood_scorer(Dead().fit(X, y), X, y, **known)
    with pytest.raises(ValueError, match="Negative predicts a negative cumulative hazard for row"):
        metrics.likelihood_scorer(Negative().fit(X, y), X, y, **known)
    with pytest.raises(TypeError, match="got a LinearRegression, which predicts no risks"):
        evaluate(LinearRegression(), X, y["months"], scoring=metrics.uno_scorer)
