"""In scikit-learn: pipelines, cross-validation, searches, scores, metadata routing."""

from dataclasses import replace
from inspect import signature

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from bristlecone import (
    DemographicParity,
    FairTreeClassifier,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone.trust import alternatives, verify
from contract.subjects import EVERY, SUBJECTS, same

FOLDS = KFold(3, shuffle=True, random_state=0)
STRICT = {"cv": FOLDS, "error_score": "raise"}


@pytest.fixture(params=SUBJECTS)
def subject(request):
    return SUBJECTS[request.param]


def doubled(X):
    return 2 * X


def prefixed(pipeline, rows):
    """Arguments by row, prefixed with the name of the last step."""
    return {f"{pipeline.steps[-1][0]}__{name}": values for name, values in rows.items()}


def folds_of(subject, study, weight=None, **parameters):
    """The estimator fitted to each training fold, and the rows of the test fold."""
    for train, test in FOLDS.split(study.X):
        options = {} if weight is None else {"sample_weight": weight[train]}
        yield study.take(train).fit(subject.make(**parameters), **options), study.take(test), test


def test_fitted_and_unfitted_are_distinguished(subject):
    model, study = subject.fitted()
    check_is_fitted(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(model))
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert study.X.shape[1] == model.n_features_in_


def test_it_is_the_last_step_of_a_pipeline(subject):
    study = subject.study()
    pipeline = make_pipeline(FunctionTransformer(doubled), subject.make())
    pipeline.fit(study.X, study.y, **prefixed(pipeline, study.rows))
    alone = study.of(2 * study.X).fit(subject.make())
    np.testing.assert_array_equal(pipeline.predict(study.X), alone.predict(2 * study.X))
    assert clone(pipeline).get_params().keys() == pipeline.get_params().keys()


def test_sparse_columns_of_a_transformer_are_refused_in_a_sentence(subject):
    study = subject.study(mixed=True)

    def pipeline(dense):
        levels = OneHotEncoder(sparse_output=not dense)
        columns = make_column_transformer(
            (levels, ["stage", "treated"]), sparse_threshold=0 if dense else 1
        )
        return make_pipeline(columns, subject.make())

    sparse, dense = pipeline(False), pipeline(True)
    with pytest.raises(TypeError, match=r"sparse input; pass X\.toarray"):
        sparse.fit(study.X, study.y, **prefixed(sparse, study.rows))
    dense.fit(study.X, study.y, **prefixed(dense, study.rows))
    assert len(dense.predict(study.X)) == 80


def test_scores_of_cross_validation_are_those_of_its_folds(subject):
    study = subject.study()
    found = cross_val_score(
        subject.make(), study.X, study.y, scoring=subject.scoring, params=study.rows, **STRICT
    )
    scorer = check_scoring(subject.make(), subject.scoring)
    expected = [scorer(model, test.X, test.y) for model, test, _ in folds_of(subject, study)]
    np.testing.assert_array_equal(found, expected)


def test_predictions_of_cross_validation_are_those_of_its_folds(subject):
    study = subject.study()
    found = cross_val_predict(subject.make(), study.X, study.y, cv=FOLDS, params=study.rows)
    for model, test, places in folds_of(subject, study):
        np.testing.assert_array_equal(found[places], model.predict(test.X))


def test_a_grid_search_finds_and_refits(subject):
    study = subject.study()
    search = GridSearchCV(
        subject.make(), {subject.depth: [0, 1]}, scoring=subject.scoring, **STRICT
    ).fit(study.X, study.y, **study.rows)
    best = search.best_params_[subject.depth]
    assert search.best_estimator_.depth_ == best
    alone = study.fit(subject.make(**{subject.depth: best}))
    np.testing.assert_array_equal(search.predict(study.X), alone.predict(study.X))


def test_a_grid_search_reaches_the_encoder(subject):
    if "encoder" not in subject.make().get_params():
        pytest.skip("takes no encoder")
    study = subject.study()
    model = subject.make(encoder=BinaryEncoder())
    grid = {"encoder__n_thresholds": [1, 4]}
    search = GridSearchCV(model, grid, scoring=subject.scoring, **STRICT)
    search.fit(study.X, study.y, **study.rows)
    best = search.best_params_["encoder__n_thresholds"]
    assert search.best_estimator_.encoder_.n_thresholds == best
    assert model.encoder.n_thresholds == BinaryEncoder().n_thresholds
    alone = study.fit(subject.make(encoder=BinaryEncoder(n_thresholds=best)))
    same(subject.predicted(search.best_estimator_, study.X), subject.predicted(alone, study.X))


# Scores


def scored(model, study, **options):
    rows = study.rows if hasattr(model, "predict_outcomes") else {}
    return model.score(study.X, study.y, **rows, **options)


def test_scores_of_integer_weights_are_those_of_repeated_rows(subject):
    if subject.cls is SUBJECTS["OptimalTree"].cls:
        pytest.skip("has a test of its own")
    model, _ = subject.fitted()
    study, times = subject.study(seed=2), np.random.default_rng(4).integers(0, 4, 80)
    repeated = study.take(np.repeat(np.arange(80), times))
    expected = scored(model, repeated)
    assert scored(model, study, sample_weight=times) == pytest.approx(expected, rel=1e-12)
    assert scored(model, study, sample_weight=np.ones(80)) == pytest.approx(
        scored(model, study), rel=1e-12
    )
    assert expected != pytest.approx(scored(model, study), rel=1e-6)
    with pytest.raises(ValueError, match=r"sample_weight|inconsistent"):
        scored(model, study, sample_weight=times[:-1])


def test_scores_need_as_many_outcomes_as_rows(subject):
    if subject.scoring is not None:
        pytest.skip("score has other arguments")
    model, study = subject.fitted()
    with pytest.raises(ValueError, match="80"):
        model.score(study.X, study.y[:-1])


def test_the_score_of_a_policy_is_its_value():
    subject = SUBJECTS["PolicyTree"]
    study, weight = subject.study(), np.linspace(0.5, 2, 80)
    for reward in ("doubly-robust", "inverse-propensity", "direct"):
        model = study.fit(subject.make(reward=reward), sample_weight=weight)
        found = scored(model, study, sample_weight=weight)
        assert found == pytest.approx(model.policy_value_, rel=1e-9)
    model.set_params(reward="inverse-propensity")
    assert scored(model, study, sample_weight=weight) == found
    with pytest.raises(TypeError, match="treatment"):
        model.score(study.X, study.y)


def test_an_own_task_has_a_score_or_a_sentence():
    model, study = SUBJECTS["OptimalTree"].fitted()
    if not hasattr(model, "score"):
        with pytest.raises(AttributeError) as caught:
            _ = model.score
        assert "object has no attribute" not in str(caught.value)
    else:
        assert np.isfinite(model.score(study.X, study.y))


# Metadata routing


def routed(subject):
    """A study with all arguments that can be routed, and a function that makes its estimators."""
    parameters, more = subject.routed
    study = subject.study()
    rows = {**study.rows, **{name: make(80) for name, make in more.items()}}
    return replace(study, rows=rows), parameters


def requesting(subject, parameters, names):
    """An estimator that requests arguments by row in ``fit`` and, if necessary, in ``score``."""
    model = subject.make(**parameters).set_fit_request(**dict.fromkeys(names, True))
    if subject.scoring is None and hasattr(model, "set_score_request"):
        model.set_score_request(**dict.fromkeys(taken_by_score(model, names), True))
    return model


def taken_by_score(model, names):
    """Those of the arguments by row that the method ``score`` takes."""
    return [name for name in names if name in signature(type(model).score).parameters]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", EVERY)
def test_what_is_given_by_row_is_routed_through_a_pipeline(name):
    subject = EVERY[name]
    study, parameters = routed(subject)
    given = {"sample_weight": np.linspace(0.5, 2, 80), **study.rows}
    model = requesting(subject, parameters, given)
    pipeline = make_pipeline(FunctionTransformer(doubled), model).fit(study.X, study.y, **given)
    alone = study.of(2 * study.X).fit(
        subject.make(**parameters), sample_weight=given["sample_weight"]
    )
    same(subject.predicted(pipeline[-1], 2 * study.X), subject.predicted(alone, 2 * study.X))
    assert pipeline[-1].tree_.weighted_n_node_samples[0] == pytest.approx(100)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", SUBJECTS)
def test_what_is_given_by_row_is_routed_and_cut_in_cross_validation(name):
    subject = SUBJECTS[name]
    study, parameters = routed(subject)
    weight = np.linspace(0.5, 2, 80)
    given = {"sample_weight": weight, **study.rows}
    model = requesting(subject, parameters, given)
    found = cross_val_score(
        model, study.X, study.y, scoring=subject.scoring, params=given, **STRICT
    )
    scorer = check_scoring(subject.make(), subject.scoring)
    weighs = subject.scoring is None and hasattr(model, "set_score_request")
    by_row = taken_by_score(model, given) if weighs else []
    expected = [
        scorer(one, test.X, test.y, **{name: given[name][places] for name in by_row})
        for one, test, places in folds_of(subject, study, weight, **parameters)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.usefixtures("routing")
def test_a_policy_is_scored_by_what_is_routed_to_it():
    subject = SUBJECTS["PolicyTree"]
    study = subject.study()
    asked = dict.fromkeys(study.rows, True)
    model = subject.make().set_fit_request(**asked).set_score_request(**asked)
    found = cross_val_score(model, study.X, study.y, params=study.rows, **STRICT)
    expected = [scored(one, test) for one, test, _ in folds_of(subject, study)]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", SUBJECTS)
def test_what_is_given_by_row_is_routed_through_a_grid_search(name):
    subject = SUBJECTS[name]
    study, parameters = routed(subject)
    given = {"sample_weight": np.linspace(0.5, 2, 80), **study.rows}
    model = requesting(subject, parameters, given)
    search = GridSearchCV(model, {subject.depth: [1]}, scoring=subject.scoring, **STRICT)
    search.fit(study.X, study.y, **given)
    alone = study.fit(
        subject.make(**{**parameters, subject.depth: 1}), sample_weight=given["sample_weight"]
    )
    same(subject.predicted(search.best_estimator_, study.X), subject.predicted(alone, study.X))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", SUBJECTS)
def test_what_is_not_asked_for_is_not_routed(name):
    subject = SUBJECTS[name]
    study, parameters = routed(subject)
    for row, values in {"sample_weight": np.ones(80), **study.rows}.items():
        pipeline = make_pipeline(FunctionTransformer(doubled), subject.make(**parameters))
        with pytest.raises(UnsetMetadataPassedError, match=row):
            pipeline.fit(study.X, study.y, **{row: values})


def test_a_subclass_may_have_fewer_parameters(subject):
    class Own(subject.cls):
        def __init__(self):
            super().__init__(**subject.small)

    Own.__name__ = subject.cls.__name__
    study = subject.study()
    model, usual = study.fit(clone(Own())), study.fit(subject.make())
    same(subject.predicted(model, study.X), subject.predicted(usual, study.X))
    assert model.describe() == usual.describe()
    given = study.X, study.y, None
    if hasattr(model, "reestimate"):
        again = model.reestimate(*given, **study.rows)
        same(subject.predicted(again, study.X), subject.predicted(model, study.X))
    if hasattr(model, "size_path"):
        sizes = [tree.n_leaves_ for tree in model.size_path(*given, **study.rows)]
        assert sizes == [tree.n_leaves_ for tree in usual.size_path(*given, **study.rows)]
    if subject.searched:
        assert verify(model, study.X, study.y, **study.rows).failed == ()


@pytest.mark.slow
def test_fronts_and_alternatives_do_not_need_the_parameters_that_they_change():
    class Fair(FairTreeClassifier):
        def __init__(self):
            super().__init__(fairness=DemographicParity(1.0), min_samples_leaf=1, max_depth=1)

    class Impure(OptimalTreeClassifier):
        def __init__(self):
            super().__init__(objective="gini", max_depth=1)

    class Taught(OptimalTreeRegressor):
        def __init__(self):
            super().__init__(teacher="auto", max_depth=1)

    X = np.arange(80.0)[:, None] % 9
    y, groups = X[:, 0] > np.arange(80) % 5, np.arange(80) % 2
    fair = FairTreeClassifier(**Fair().__dict__).pareto_front(X, y, sensitive_features=groups)
    found = Fair().pareto_front(X, y, sensitive_features=groups)
    assert [point.costs for point in found] == [point.costs for point in fair]
    plain = OptimalTreeClassifier(max_depth=1).pareto_front(X, y)
    assert [point.costs for point in Impure().pareto_front(X, y)] == [one.costs for one in plain]
    usual = OptimalTreeRegressor(teacher="auto", max_depth=1).fit(X, y * 1.0)
    own = Taught().fit(X, y * 1.0)
    pd.testing.assert_frame_equal(alternatives(own, X, y * 1.0), alternatives(usual, X, y * 1.0))
