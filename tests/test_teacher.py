"""Teachers: cross-fitted predictions smooth the outcomes before the search."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pace import slow_but
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bristlecone import (
    CostSensitiveTreeClassifier,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    RmstParity,
    SoftSurvivalTree,
)
from bristlecone._cli import main
from bristlecone._teacher.folds import folds_of
from bristlecone._teacher.members import design_of
from bristlecone.curves import nelson_aalen
from bristlecone.datasets import load
from bristlecone.exceptions import (
    InvalidParameterError,
    SearchCostWarning,
    SearchLimitWarning,
    SmallSampleWarning,
)
from bristlecone.tune import TreeSizeCV

RANDOM = np.random.default_rng(0)
N = 300
X = RANDOM.integers(0, 2, (N, 5)).astype(float)
RISK = 1.5 * X[:, 0] - X[:, 1]
TIME = np.ceil(RANDOM.exponential(np.exp(-RISK)) * 20)
EVENT = RANDOM.random(N) < 0.7
Y = np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("event", bool), ("time", float)])
LABELS = (RISK + RANDOM.normal(size=N) > 0).astype(int) + (X[:, 2] * RANDOM.random(N) > 0.7)
NUMBERS = RISK + RANDOM.normal(size=N)
COUNTS = RANDOM.poisson(np.exp(RISK))
EXPOSURE = RANDOM.uniform(0.5, 2.0, N)
WEIGHT = RANDOM.uniform(0.5, 2.0, N)


class Column(RegressorMixin, BaseEstimator):
    """A teacher that always predicts the same function of the columns."""

    def __init__(self, scale: float = 1.0, shift: float = 0.0) -> None:
        self.scale = scale
        self.shift = shift

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Column:
        self.width_ = np.shape(y)[1:]
        return self

    def predict(self, X: Any) -> Any:
        found = self.scale * np.exp(np.asarray(X)[:, 0]) + self.shift
        return np.broadcast_to(
            found.reshape(-1, *(1 for _ in self.width_)), (len(found), *self.width_)
        )


class Shares(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities depend on the first column."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Shares:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        first = np.asarray(X)[:, :1]
        rest = np.full((len(X), len(self.classes_) - 1), 1.0) * (0.3 + 0.2 * first)
        whole = np.hstack([np.ones((len(X), 1)), rest])
        return whole / whole.sum(axis=1, keepdims=True)


class Risk(BaseEstimator):
    """A survival model, which predicts a risk and is not a regressor."""

    def __init__(self, sign: float = 1.0) -> None:
        self.sign = sign

    def fit(self, X: Any, y: Any) -> Risk:
        assert y.dtype.names[:2] == ("event", "time")
        return self

    def predict(self, X: Any) -> Any:
        return self.sign * (np.asarray(X)[:, 0] - np.asarray(X)[:, 1])


def every(**more: Any) -> list[tuple[Any, Any, dict[str, Any]]]:
    """The classes that accept a teacher, with outcomes and further arguments of ``fit``."""
    return [
        (OptimalSurvivalTree(**more), Y, {}),
        (GreedySurvivalTree(**more), Y, {}),
        (OptimalTreeClassifier(**more), LABELS, {}),
        (OptimalTreeClassifier(objective="balanced-accuracy", **more), LABELS, {}),
        (OptimalTreeClassifier(objective="gini", **more), LABELS, {}),
        (OptimalTreeClassifier(objective="entropy", **more), LABELS, {}),
        (CostSensitiveTreeClassifier(**more), LABELS, {}),
        (OptimalTreeRegressor(**more), NUMBERS, {}),
        (OptimalTreeRegressor(objective="poisson", **more), COUNTS, {"exposure": EXPOSURE}),
    ]


def named(case: tuple[Any, Any, dict[str, Any]]) -> str:
    return f"{type(case[0]).__name__} {getattr(case[0], 'objective', '')}".strip()


AUTO = {named(case): case for case in every(max_depth=2, teacher="auto")}
EVERY = pytest.mark.parametrize("case", AUTO.values(), ids=AUTO)


def hazards(weight: Any = None) -> np.ndarray:
    """Λ at the time of every row, with the floor."""
    curve = nelson_aalen((EVENT, TIME), sample_weight=weight)
    found = np.append(0.0, curve.y)[np.searchsorted(curve.x, TIME, side="right")]
    total = N if weight is None else weight.sum()
    return np.where(found > 0, found, 1 / (total + 1))


def leaves_of(tree: Any) -> list[np.ndarray]:
    """Rows of every leaf."""
    at = tree.apply(X)
    return [np.flatnonzero(at == leaf) for leaf in np.unique(at)]


def deviance(events: np.ndarray, exposure: np.ndarray, weight: np.ndarray, prior: float) -> float:
    """Loss of a leaf, by its definition, up to a constant of the prior."""
    E, M = weight @ events, weight @ exposure
    saturated = weight @ xlogy(events, events / exposure)
    return float(saturated - xlogy(E + prior, (E + prior) / (M + prior)))


@EVERY
def test_a_teacher_of_weight_zero_changes_nothing(case: Any) -> None:
    tree, y, data = clone(case[0]), *case[1:]
    labels = isinstance(tree, OptimalTreeClassifier)
    tree.set_params(teacher=Shares() if labels else Column(), teacher_weight=0.0)
    taught = tree.fit(X, y, **data)
    plain = clone(tree).set_params(teacher=None).fit(X, y, **data)
    assert taught.objective_value_ == pytest.approx(plain.objective_value_, rel=1e-12)
    assert taught.training_loss_ == pytest.approx(plain.training_loss_, rel=1e-12)
    assert plain.certificate_.teacher is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", slow_but({"GreedySurvivalTree", "OptimalTreeRegressor squared-error"}, AUTO)
)
def test_two_fits_are_the_same_also_of_rows_in_another_order(name: str) -> None:
    tree, y, data = clone(AUTO[name][0]), *AUTO[name][1:]
    tree.set_params(teacher_weight=0.5, random_state=3)
    one = tree.fit(X, y, **data).certificate_
    two = tree.fit(X, y, **data).certificate_
    assert one.teacher == two.teacher and one.objective_value == two.objective_value
    order = np.random.default_rng(1).permutation(N)
    moved = {name: values[order] for name, values in data.items()}
    two = tree.fit(X[order], y[order], **moved).certificate_
    assert two.teacher.moments == pytest.approx(one.teacher.moments, rel=1e-6)
    assert two.objective_value == pytest.approx(one.objective_value, rel=1e-6)


@pytest.mark.slow
def test_two_threads_smooth_to_the_same_last_digit() -> None:
    columns = np.random.default_rng(1).normal(size=(N, 4))
    fits = [
        OptimalSurvivalTree(max_depth=2, teacher="auto", n_jobs=n_jobs).fit(columns, Y)
        for n_jobs in (1, 2, 2)
    ]
    records = [fit.certificate_.teacher for fit in fits]
    assert records[0] == records[1] == records[2]
    assert len({fit.objective_value_ for fit in fits}) == 1


def test_boosting_reads_columns_in_bins_of_as_many_values() -> None:
    random = np.random.default_rng(2)
    numbers = np.column_stack([random.normal(size=2000), random.integers(0, 9, 2000)])
    design = design_of(numbers, None)
    fine, few = design.read_by("boosting").T
    assert (np.diff(fine[np.argsort(numbers[:, 0])]) >= 0).all()
    assert set(np.bincount(fine.astype(int))) == {2000 // 255, 2000 // 255 + 1}
    np.testing.assert_array_equal(few, numbers[:, 1])
    for member in ("ridge", "forest"):
        np.testing.assert_allclose(design.read_by(member).std(axis=0), 1.0)


def test_boosting_reads_many_levels_as_one_category() -> None:
    random = np.random.default_rng(3)
    level = random.integers(0, 150, 3000)
    columns = {"size": random.normal(size=3000), "site": level.astype(str), "arm": level % 3}
    design = design_of(pd.DataFrame(columns).astype({"arm": str}), None)
    size, site, *arms = design.read_by("boosting").T
    assert design.categories == [1] and len(arms) == 3
    # The hundred most frequent sites, and all others together.
    codes = pd.crosstab(columns["site"], site)
    assert ((codes > 0).sum(axis=1) == 1).all()
    assert sorted((codes > 0).sum())[:-1] == [1] * 100
    assert set(size) == set(range(255)) and all(set(arm) == {0, 1} for arm in arms)


@pytest.mark.parametrize("unit", [2.0**-160, 2.0**160])
def test_teacher_learns_from_numbers_beyond_the_range_of_32_bits(unit: float) -> None:
    y = unit * (4.0 * (X[:, 0] > 0) + np.arange(N) % 2)
    found = OptimalTreeRegressor(max_depth=1, teacher="auto").fit(X, y).certificate_.teacher
    assert found.score > 0.8 and found.members == ("ridge", "forest", "boosting")


@pytest.mark.parametrize(
    "estimator", slow_but({OptimalTreeRegressor}, [OptimalTreeRegressor, OptimalTreeClassifier])
)
def test_teacher_learns_from_many_levels(estimator: type) -> None:
    random = np.random.default_rng(4)
    level = random.integers(0, 60, 1200)
    y = random.permutation(60)[level] % 2
    sites = [f"site {one}" for one in level]
    frame = pd.DataFrame({"site": sites, "size": random.normal(size=1200)})
    tree = estimator(max_depth=1, teacher="auto").fit(frame, y)
    assert tree.certificate_.teacher.score > 0.5


@pytest.mark.slow
def test_another_seed_smooths_otherwise() -> None:
    seeds = [OptimalTreeRegressor(teacher="auto", random_state=seed) for seed in (3, 4)]
    one, two = (tree.fit(X, NUMBERS).certificate_.teacher for tree in seeds)
    assert one.moments != two.moments and (one.seed, two.seed) == (3, 4)


def test_equal_rows_share_a_fold_and_strata_are_spread() -> None:
    columns = np.column_stack([X, LABELS])
    fold, _ = folds_of(X, LABELS, LABELS, 0)
    for row in np.unique(columns, axis=0):
        assert len(set(fold[(columns == row).all(axis=1)])) == 1
    distinct = np.column_stack([columns, np.arange(N)])
    fold, rows = folds_of(distinct, LABELS, LABELS, 0)
    for label in np.unique(LABELS):
        sizes = np.bincount(fold[label == LABELS], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    assert (folds_of(distinct, LABELS, LABELS, 1)[0] != fold).any()
    order = np.random.default_rng(0).permutation(N)
    moved, places = folds_of(distinct[order], LABELS[order], LABELS[order], 0)
    assert (moved == fold[order]).all() and (order[places] == rows).all()


@pytest.mark.parametrize("unit", slow_but({1e300}, [1e-300, 1e-12, 1e300]))
def test_rows_with_different_times_are_spread_over_the_folds_in_any_unit(unit: float) -> None:
    column = np.arange(N)[:, None] % 2
    time = np.random.default_rng(0).exponential(1.0 + 3.0 * column[:, 0])
    y = (np.ones(N, dtype=bool), unit * time)
    tree = OptimalSurvivalTree(teacher="auto", teacher_weight=1.0, max_depth=1).fit(column, y)
    # If equal features had shared a fold, their hazards would be those of the other rows.
    assert tree.n_leaves_ == 2 and tree.objective_value_ > 0.0


@pytest.mark.parametrize(("weight", "share"), list(product((None, WEIGHT), (0.3, 1.0))))
def test_smoothed_events_of_survival_are_those_of_the_definition(weight: Any, share: float) -> None:
    tree = OptimalSurvivalTree(teacher=Column(), teacher_weight=share, max_depth=2)
    tree.fit(X, Y, sample_weight=weight)
    w = np.ones(N) if weight is None else weight
    H = hazards(weight)
    r = np.exp(X[:, 0])
    r = r * (w @ EVENT) / (w @ (r * H))
    smoothed = (1 - share) * EVENT + share * r * H
    loss = sum(deviance(smoothed[k], H[k], w[k], 10.0) for k in leaves_of(tree)) / w.sum()
    assert tree.objective_value_ == pytest.approx(loss, rel=1e-10)
    real = sum(deviance(EVENT[k].astype(float), H[k], w[k], 10.0) for k in leaves_of(tree))
    assert tree.training_loss_ == pytest.approx(real / w.sum(), rel=1e-10)
    assert tree.certificate_.teacher.moments[0] == pytest.approx((w @ smoothed) / w.sum())
    events = [int(EVENT[k].sum()) for k in leaves_of(tree)]
    assert [leaf.n_events for leaf in tree.leaves_.statistics] == events


def best_of_depth_one(loss: Any) -> float:
    """Least loss over all trees of depth one; ``loss`` takes the rows of a leaf."""
    found = [loss(np.arange(N))]
    for column in X.T:
        yes, no = np.flatnonzero(column > 0.5), np.flatnonzero(column < 0.5)
        found.append(loss(yes) + loss(no))
    return min(found)


def test_the_tree_is_the_best_for_the_smoothed_outcomes() -> None:
    w, half = WEIGHT, 0.5
    one_hot = np.eye(3)[LABELS]
    shares = (1 - half) * one_hot + half * Shares().fit(X, LABELS).predict_proba(X)
    numbers = (1 - half) * NUMBERS + half * np.exp(X[:, 0])
    r = np.exp(X[:, 0])
    r = r * (w @ COUNTS) / (w @ (r * EXPOSURE))
    counts = (1 - half) * COUNTS + half * r * EXPOSURE
    costs = (1 - half) * (1 - one_hot) + half * np.exp(X[:, :1])
    totals = w @ one_hot

    def error(rows: np.ndarray, scale: Any = 1.0) -> float:
        sums = (w[rows] @ shares[rows]) * scale
        return float(sums.sum() - sums.max())

    def gini(rows: np.ndarray) -> float:
        sums = w[rows] @ shares[rows]
        return float(sums.sum() - (sums**2).sum() / sums.sum())

    def entropy(rows: np.ndarray) -> float:
        sums = w[rows] @ shares[rows]
        return float(-xlogy(sums, sums / sums.sum()).sum())

    def square(rows: np.ndarray) -> float:
        mean = np.average(numbers[rows], weights=w[rows])
        return float(w[rows] @ (numbers[rows] - mean) ** 2)

    cases: list[tuple[Any, Any, dict[str, Any], Any, float]] = [
        (OptimalTreeClassifier(teacher=Shares()), LABELS, {}, error, w.sum()),
        (
            OptimalTreeClassifier(objective="balanced-accuracy", teacher=Shares()),
            LABELS,
            {},
            lambda rows: error(rows, 1 / totals),
            3.0,
        ),
        (OptimalTreeClassifier(objective="gini", teacher=Shares()), LABELS, {}, gini, w.sum()),
        (
            OptimalTreeClassifier(objective="entropy", teacher=Shares()),
            LABELS,
            {},
            entropy,
            w.sum(),
        ),
        (
            CostSensitiveTreeClassifier(teacher=Column()),
            LABELS,
            {},
            lambda rows: float((w[rows] @ costs[rows]).min()),
            w.sum(),
        ),
        (OptimalTreeRegressor(teacher=Column()), NUMBERS, {}, square, w.sum()),
        (
            OptimalTreeRegressor(objective="poisson", teacher=Column()),
            COUNTS,
            {"exposure": EXPOSURE},
            lambda rows: deviance(counts[rows], EXPOSURE[rows], w[rows], 0.0),
            w.sum(),
        ),
    ]
    for tree, y, data, loss, unit in cases:
        tree.set_params(max_depth=1).fit(X, y, sample_weight=w, **data)
        assert tree.status_ == "optimal"
        expected = best_of_depth_one(loss) / unit
        assert tree.objective_value_ == pytest.approx(expected, rel=1e-9), named((tree, y, data))


def test_leaves_predict_from_real_outcomes() -> None:
    tree = OptimalTreeRegressor(teacher=Column(100.0), teacher_weight=0.9, max_depth=2)
    tree.fit(X, NUMBERS)
    means = [NUMBERS[rows].mean() for rows in leaves_of(tree)]
    assert tree.leaf_means_ == pytest.approx(means)
    classes = OptimalTreeClassifier(teacher=Shares(), teacher_weight=1.0, max_depth=2)
    classes.fit(X, LABELS)
    for rows in leaves_of(classes):
        assert classes.predict(X[rows[:1]])[0] == np.bincount(LABELS[rows]).argmax()


def test_survival_models_are_calibrated_by_their_risk() -> None:
    kind = {"max_depth": 2}
    good = OptimalSurvivalTree(teacher=Risk(), **kind).fit(X, Y).certificate_.teacher
    assert good.score > 0.05
    # A risk that decreases with the hazard is useless.
    bad = OptimalSurvivalTree(teacher=Risk(-1.0), **kind).fit(X, Y).certificate_.teacher
    assert bad.score == pytest.approx(0.0, abs=1e-9)
    soft = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0)
    assert OptimalSurvivalTree(teacher=soft, **kind).fit(X, Y).certificate_.teacher.score > 0.0


def test_models_of_scikit_survival_are_teachers() -> None:
    linear = pytest.importorskip("sksurv.linear_model").CoxPHSurvivalAnalysis(alpha=0.1)
    forest = pytest.importorskip("sksurv.ensemble").RandomSurvivalForest(20, random_state=0)
    for teacher in (linear, forest):
        tree = OptimalSurvivalTree(teacher=teacher, max_depth=2).fit(X, Y)
        assert tree.certificate_.teacher.score > 0.05
    with pytest.raises(InvalidParameterError, match="takes no sample_weight"):
        OptimalSurvivalTree(teacher=linear).fit(X, Y, sample_weight=WEIGHT)


class Lifelines:
    """A model with the methods of lifelines models."""

    def fit(self, df: Any, duration_col: str, event_col: str, **more: str) -> Lifelines:
        assert {duration_col, event_col, *more.values()} <= set(df.columns)
        return self

    def predict_partial_hazard(self, df: Any) -> Any:
        return pd.Series(np.exp(df.iloc[:, 0].to_numpy()))


def test_models_of_lifelines_take_columns_of_a_frame() -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    tree = OptimalSurvivalTree(teacher=Lifelines(), max_depth=2)
    found = tree.fit(frame, Y, sample_weight=WEIGHT).certificate_.teacher
    assert found.score > 0.05
    late = np.minimum(TIME / 2, 1.0)
    y = pd.DataFrame({"event": EVENT, "time": TIME, "entry": late})
    assert tree.fit(frame, y).certificate_.teacher.score > 0.05


def test_a_pipeline_passes_weights_to_its_last_step() -> None:
    teacher = make_pipeline(StandardScaler(), PoissonRegressor(alpha=0.01))
    tree = OptimalSurvivalTree(teacher=teacher, max_depth=2).fit(X, Y)
    assert tree.certificate_.teacher.score > 0.05
    assert "PoissonRegressor(alpha=0.01)" in tree.certificate_.teacher.name


class Wide(Column):
    """A teacher that predicts a column."""

    def predict(self, X: Any) -> Any:
        return super().predict(X)[:, None]


@pytest.mark.parametrize(
    ("teacher", "message"),
    [
        ("best", "teacher must be None, 'auto' or an estimator; got 'best'"),
        (PoissonRegressor, "teacher must be None, 'auto' or an estimator"),
        (StandardScaler(), r"an estimator with fit and predict; got StandardScaler\(\)"),
        (KNeighborsRegressor(), "takes no sample_weight in fit, which it needs for hazards"),
        (Column(-1.0), "predicted negative hazards: -1 for training row|predicted negative"),
        (LogisticRegression(), r"predict numbers, and .*LogisticRegression\(\) is a classifier"),
        (Wide(), r"predicted an array of shape \(.*, 1\); expected \("),
        (Column(np.inf), "predicted numbers that are not finite: inf for training row 0"),
    ],
)
def test_teachers_that_cannot_teach_are_refused(teacher: Any, message: str) -> None:
    tree = OptimalSurvivalTree(max_depth=1).fit(X, Y)
    before = tree.certificate_
    tree.set_params(teacher=teacher)
    with pytest.raises(ValueError, match=message):
        tree.fit(X, Y)
    assert tree.certificate_ is before


def test_a_teacher_that_rejects_the_columns_is_named() -> None:
    texts = pd.DataFrame({"text": np.where(np.arange(len(NUMBERS)) % 2, "a", "b")})
    model = OptimalTreeRegressor(max_depth=1, teacher=LinearRegression())
    with pytest.raises(ValueError, match=r"^teacher=LinearR.* accept these columns .*: could not"):
        model.fit(texts, NUMBERS)


@pytest.mark.parametrize("share", [-0.1, 1.5, np.nan, "half", None])
def test_weights_outside_zero_and_one_are_refused(share: Any) -> None:
    with pytest.raises(ValueError, match="teacher_weight"):
        OptimalTreeRegressor(teacher="auto", teacher_weight=share).fit(X, NUMBERS)


@pytest.mark.parametrize(
    ("tree", "y"),
    [
        (OptimalSurvivalTree(objective="brier", teacher="auto"), Y),
        (OptimalSurvivalTree(fairness=RmstParity(1.0), teacher="auto"), Y),
        (GreedySurvivalTree(criterion="logrank", teacher="auto"), Y),
        (OptimalTreeClassifier(objective="f1", teacher="auto"), LABELS > 0),
        (OptimalTreeClassifier(objective="mcc", teacher="auto"), LABELS > 0),
    ],
)
def test_objectives_that_cannot_be_smoothed_refuse_a_teacher(tree: Any, y: Any) -> None:
    with pytest.raises(InvalidParameterError, match="teacher"):
        tree.fit(X, y)


def test_a_classifier_needs_probabilities() -> None:
    with pytest.raises(InvalidParameterError, match="fit and predict_proba"):
        OptimalTreeClassifier(teacher=LinearRegression()).fit(X, LABELS)
    with pytest.raises(InvalidParameterError, match="teacher=None"):
        OptimalTreeClassifier(teacher="auto").pareto_front(X, LABELS > 0)


def test_few_events_are_an_error_or_a_warning() -> None:
    y = Y.copy()
    y["event"] = False
    y["event"][:1] = True
    with pytest.raises(ValueError, match=r"the rows with events \(1\) are all in one"):
        OptimalSurvivalTree(teacher="auto").fit(X, y)
    y["event"][:12] = True
    with pytest.warns(SmallSampleWarning, match="fewer than 5 rows with an event"):
        OptimalSurvivalTree(teacher=Column(), max_depth=1).fit(X, y)


def test_a_class_in_a_single_fold_is_an_error() -> None:
    for teacher in ("auto", LogisticRegression()):
        with pytest.raises(ValueError, match=r"two folds; the rows of class True \(1\) are"):
            OptimalTreeClassifier(teacher=teacher).fit(X, np.arange(len(X)) == 3)


@pytest.mark.slow
def test_categories_and_missing_values_are_read_as_they_come() -> None:
    data = load("whas500")
    frame = pd.DataFrame(data.X).copy()
    frame["ward"] = np.where(np.arange(len(frame)) % 3 == 0, "north", "south")
    frame.loc[::7, frame.columns[0]] = np.nan
    frame.loc[::11, "ward"] = None
    tree = OptimalSurvivalTree(teacher="auto", max_depth=2).fit(frame, data.y)
    assert tree.status_ == "optimal"
    assert tree.certificate_.teacher.score > 0.1


def test_little_time_leaves_models_out() -> None:
    tree = OptimalTreeRegressor(teacher="auto", max_depth=1, time_limit=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchLimitWarning)
        warnings.simplefilter("ignore", SearchCostWarning)
        tree.fit(X, NUMBERS)
    assert tree.certificate_.teacher.members == ("ridge",)


def test_texts_say_for_which_outcomes_the_tree_is_optimal() -> None:
    tree = OptimalTreeRegressor(teacher="auto", teacher_weight=0.4, random_state=7, max_depth=1)
    tree.fit(X, NUMBERS)
    found = tree.certificate_
    assert (
        "for outcomes smoothed by a teacher (a combination of ridge, forest and boosting; weight "
        "0.4, 5 folds, seed 7)" in found.sentence
    )
    text = " ".join(tree.describe().split())
    assert f"on which the loss of the tree is {tree.training_loss_:.10g}" in text
    assert "predictions of the tree do not need it" in text
    honest = tree.reestimate(X, NUMBERS)
    assert honest.training_loss_ == pytest.approx(tree.training_loss_)


def test_the_size_is_chosen_with_a_teacher_in_every_fold() -> None:
    tree = OptimalTreeRegressor(teacher=LinearRegression(), max_depth=2)
    found = TreeSizeCV(tree, cv=3).fit(X, NUMBERS).best_estimator_
    assert found.certificate_.teacher.members == ()
    assert found.certificate_.teacher.score > 0.1


@pytest.mark.slow
def test_every_size_is_for_the_same_smoothed_outcomes() -> None:
    path = OptimalSurvivalTree(teacher="auto", max_depth=2).size_path(X, Y)
    assert len({tree.certificate_.teacher.moments for tree in path}) == 1
    values = [tree.objective_value_ for tree in path]
    assert values == sorted(values, reverse=True)


def test_the_command_line_takes_a_teacher(tmp_path: Any, capsys: Any) -> None:
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=NUMBERS)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    given = [
        "fit",
        str(tmp_path / "rows.csv"),
        "--estimator",
        "regressor",
        "--target",
        "y",
        "--max-depth",
        "1",
    ]
    given += ["--teacher", "auto", "--teacher-weight", "0.25", "--random-state", "5"]
    assert main(given) == 0
    assert "weight 0.25, 5 folds, seed 5" in " ".join(capsys.readouterr().out.split())


def test_leaves_whose_label_the_teacher_would_change_are_named() -> None:
    first = np.repeat([0.0, 1.0], 100)
    rows = np.column_stack(
        [first, np.random.default_rng(0).integers(0, 2, (200, 6)) * first[:, None]]
    )
    rows[:100, 1:] = rows[100:, 1:]
    labels = np.array(["b"] * 55 + ["a"] * 45 + ["b"] * 100)
    tree = OptimalTreeClassifier(teacher=Shares(), teacher_weight=0.6, max_depth=1)
    found = tree.fit(rows, labels)
    assert found.splits_ == {0: "x0 <= 0"}
    assert found.predict(rows[:1]).tolist() == ["b"]
    assert ("smoothed outcomes favour", "a in leaf 1, whose rows favour b") in (
        found.certificate_.notes
    )


def test_a_callback_hears_of_the_teacher_before_the_search() -> None:
    heard: list[Any] = []
    tree = OptimalTreeRegressor(teacher=LinearRegression(), max_depth=1)
    tree.fit(X, NUMBERS, callback=heard.append)
    assert [one.gap for one in heard[:5]] == [np.inf] * 5
    assert np.isfinite(heard[-1].gap) and heard[-1].relative_gap < 1e-9

    def stop(progress: Any) -> None:
        raise RuntimeError("enough")

    before = tree.certificate_
    with pytest.raises(RuntimeError, match="enough"):
        tree.fit(X, NUMBERS, callback=stop)
    assert tree.certificate_ is before
