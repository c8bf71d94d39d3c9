"""Errors about invalid data name the place, and an earlier fit stays unchanged."""

from dataclasses import replace
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

from bristlecone.exceptions import ConstantFeatureWarning
from contract.subjects import EVERY, READERS, SUBJECTS, same, untouched


def refused(earlier, name, spoil, message, **options):
    """Assert that a second fit raises an error and does not change the first."""
    model, study = earlier[name]
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=message):
        spoil(study).fit(model, **options)
    untouched(model, before)


def changed(column, row, value):
    def spoil(X):
        X = X.copy()
        X.loc[row, column] = value
        return X

    return spoil


TABLES = {
    "no columns": (lambda X: X[[]], "0 feature"),
    "one dimension": (lambda X: X["x0"].to_numpy(), r"of shape \(80,\); expected a DataFrame"),
    "three dimensions": (lambda X: X.to_numpy()[None], r"of shape \(1, 80, 4\); expected"),
    "a series": (lambda X: X["x0"], "Series"),
    "text": (lambda X: "x0", "X is a str"),
    "nothing": (lambda X: None, "X is a NoneType"),
    "rows of two lengths": (lambda X: [[1, 2]] * 79 + [[3]], "rows of X differ in length"),
    "a lazy frame": (lambda X: pl.DataFrame(X).lazy(), r"polars LazyFrame.* call collect\(\)"),
    "sparse matrix": (lambda X: csr_matrix(X), r"sparse input; pass X\.toarray"),
    "sparse array": (lambda X: csr_array(X), r"sparse input; pass X\.toarray"),
    "masked": (lambda X: np.ma.array(X, mask=X > 2), r"masked arrays; pass X\.filled"),
    "complex": (lambda X: X.to_numpy() + 1j, "[Cc]omplex"),
    "infinite": (changed("x2", 4, np.inf), "x2.*row 4"),
    "infinite below": (changed("x2", 4, -np.inf), "x2.*row 4"),
    "dates": (lambda X: X.assign(x2=pd.Timestamp("2020-01-01")), "x2"),
    "lists": (lambda X: X.assign(x2=[[1, 2]] * len(X)), "x2"),
    "twice the same name": (lambda X: pd.concat([X, X[["x1"]]], axis=1), "duplicate.*'x1'"),
    "an empty name": (lambda X: X.rename(columns={"x1": " "}), "empty name"),
    "names that are not text": (
        lambda X: X.rename(columns={"x1": 7}),
        "must all be strings; got 7",
    ),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("table", TABLES)
def test_tables_that_cannot_be_read_are_refused(earlier, name, table):
    spoil, message = TABLES[table]
    refused(earlier, name, lambda study: study.of(spoil(study.X)), message)


@pytest.mark.parametrize("name", EVERY)
def test_rows_and_outcomes_must_be_as_many(earlier, name):
    where = "statistics" if name == "OptimalTree" else "79"
    refused(earlier, name, lambda study: replace(study, y=study.y[:-1]), where)
    refused(earlier, name, lambda study: study.of(study.X[:-1]), "79")
    if name != "OptimalTree":  # whose task may not need it
        refused(earlier, name, lambda study: replace(study, y=None), "y ")


@pytest.mark.parametrize("name", EVERY)
def test_no_rows_are_no_data(earlier, name):
    refused(earlier, name, lambda study: study.take(slice(0, 0)), "n_samples=0|has no rows")


def test_a_single_row_is_a_leaf_or_too_little(subject):
    row = subject.study().take(slice(0, 1))
    if subject.single_row:
        with pytest.raises(ValueError, match=subject.single_row):
            row.fit(subject.make())
    else:
        with pytest.warns(UserWarning):
            assert row.fit(subject.make()).n_leaves_ == 1


BAD_OUTCOMES = [(name, bad) for name, subject in EVERY.items() for bad in subject.bad]


@pytest.mark.parametrize(("name", "bad"), BAD_OUTCOMES)
def test_outcomes_that_cannot_be_read_name_the_row(earlier, name, bad):
    spoil, message = EVERY[name].bad[bad]
    refused(earlier, name, spoil, message)


WEIGHTS = {
    "negative": (lambda w: w.__setitem__(3, -1.0), r"sample_weight is -1.0 in row 3"),
    "missing": (lambda w: w.__setitem__(3, np.nan), r"sample_weight is nan in row 3"),
    "infinite": (lambda w: w.__setitem__(3, np.inf), r"sample_weight is inf in row 3"),
    "too few": (lambda w: w[:-1], r"sample_weight has shape \(79,\); expected \(80,\)"),
    "a single one": (lambda w: 2.0, r"sample_weight has shape \(\)"),
    "two columns": (lambda w: np.stack([w, w], axis=1), r"sample_weight has shape \(80, 2\)"),
    "all zero": (lambda w: w.fill(0), "sample_weight is zero in every row"),
    "text": (lambda w: ["heavy"] * 80, "sample_weight has dtype"),
    "masked": (lambda w: np.ma.array(w, mask=np.arange(80) == 3), "sample_weight is masked in row"),
    "another order": (
        lambda w: pd.Series(w)[::-1],
        "X and sample_weight have the same index in another order",
    ),
}


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("wrong", WEIGHTS)
def test_weights_that_are_none_are_refused(earlier, name, wrong):
    change, message = WEIGHTS[wrong]
    weight = np.ones(80)
    given = change(weight)
    refused(earlier, name, lambda s: s, message, sample_weight=weight if given is None else given)


def test_outcomes_in_another_order_than_the_rows_are_refused(subject):
    study = subject.study()
    y = pd.DataFrame(study.y) if study.y.dtype.names else pd.Series(study.y)
    with pytest.raises(ValueError, match="X and y have the same index in another order"):
        replace(study, y=y[::-1]).fit(subject.make())


def test_what_is_given_by_row_in_another_order_is_refused(subject):
    study = subject.study()
    for name, values in study.rows.items():
        frame = pd.DataFrame(values) if np.ndim(values) == 2 else pd.Series(values)
        with pytest.raises(ValueError, match=f"X and {name} have the same index in another order"):
            replace(study, rows={**study.rows, name: frame[::-1]}).fit(subject.make())


def test_what_is_scored_in_another_order_than_the_rows_is_refused(subject):
    model, study = subject.fitted()
    score = type(model).score if hasattr(model, "score") else ClassifierMixin.score
    if score is ClassifierMixin.score:
        pytest.skip("not a score of its own")
    y = pd.DataFrame(study.y) if study.y.dtype.names else pd.Series(study.y)
    rows = {
        name: values for name, values in study.rows.items() if name in signature(score).parameters
    }
    given = {"y": y, "sample_weight": pd.Series(np.ones(80))}
    for name, values in rows.items():
        given[name] = pd.DataFrame(values) if np.ndim(values) == 2 else pd.Series(values)
    for name, values in given.items():
        turned = {**given, name: values[::-1]}
        with pytest.raises(ValueError, match=f"X and {name} have the same index in another order"):
            model.score(study.X, turned.pop("y"), **turned)


def test_arguments_that_are_not_of_the_rows_are_refused_by_name(subject):
    model, study = subject.fitted()
    for name in ("size_path", "estimate_cost", "reestimate"):
        use = getattr(model, name, None)
        if use is None or not {"data", "sample_weight"} <= signature(use).parameters.keys():
            continue  # Python names what is unknown
        for argument in ("reference_loss", "unknown"):
            with pytest.raises(TypeError, match=f"^'{argument}' is no .*given by X, y, sample_we"):
                use(study.X, study.y, **study.rows, **{argument: np.ones(80)})
        if "treatment" in study.rows:
            with pytest.raises(TypeError, match=r"^PolicyTree needs the argument t"):
                use(study.X, study.y)


def test_constant_columns_alone_give_a_leaf_and_a_warning(subject):
    study = subject.study()
    with pytest.warns(ConstantFeatureWarning, match="'x0'") as caught:
        model = study.of(study.X * 0 + 1.0).fit(subject.make(**{subject.depth: 0}))
    assert model.n_leaves_ == 1
    assert caught[0].filename == study.fit.__code__.co_filename


def test_an_unfitted_estimator_says_so(subject):
    model, study = subject.make(), subject.study()
    for name, options in subject.predictions:
        with pytest.raises(NotFittedError):
            getattr(model, name)(study.X, **options)
    for name in ("to_json", "describe"):
        with pytest.raises(NotFittedError):
            getattr(model, name)()
    for name in ("n_leaves_", "depth_", "features_used_"):
        with pytest.raises(NotFittedError):
            getattr(model, name)
    for name in ("tree_", "encoder_", "objective_value_"):
        assert not hasattr(model, name)


def test_an_unfitted_estimator_has_no_columns(subject):
    for name in ("n_features_in_", "feature_names_in_"):
        assert not hasattr(subject.make(), name)
    with pytest.raises(NotFittedError):
        _ = subject.make().n_features_in_


# Sparse features


def test_sparse_rows_at_prediction_say_what_to_do(subject):
    model, study = subject.fitted()
    for X in (csr_matrix(study.X), csr_array(study.X)):
        for name, options in subject.predictions:
            with pytest.raises(TypeError, match=r"sparse input; pass X\.toarray"):
                getattr(model, name)(X, **options)


@pytest.mark.parametrize("subject", SUBJECTS, indirect=True)
def test_an_encoder_may_give_sparse_features(subject):
    if "encoder" not in subject.make().get_params():
        pytest.skip("the estimator takes no encoder")
    study, found = subject.study(mixed=True), []
    cuts = KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")
    for dense in (False, True):
        cuts.set_params(encode="onehot-dense" if dense else "onehot")
        encoder = make_column_transformer(
            (OneHotEncoder(sparse_output=not dense), ["stage", "treated"]),
            (cuts, ["nodes"]),
            sparse_threshold=0 if dense else 1,
        )
        assert hasattr(encoder.fit_transform(study.X), "toarray") != dense
        model = study.fit(subject.make(encoder=encoder))
        assert model.n_leaves_ > 1
        found.append(subject.predicted(model, study.X))
    same(*found)
