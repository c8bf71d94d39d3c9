"""Columns at prediction: matched by name if both sides have names, else by position."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bristlecone.exceptions import BristleconeWarning
from contract.subjects import same


def unused(model, study):
    return [name for name in study.X if name not in model.features_used_]


def test_the_columns_of_the_fit_are_reported(subject):
    model, study = subject.fitted()
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == list(study.X)
    assert model.feature_names_in_.dtype == object
    assert set(model.features_used_) <= set(study.X)
    assert sorted(model.features_used_) == model.features_used_
    array = study.of(study.X.to_numpy()).fit(subject.make())
    assert array.n_features_in_ == 4
    assert not hasattr(array, "feature_names_in_")
    assert array.features_used_ == [int(name[1]) for name in model.features_used_]
    again = study.of(study.X.to_numpy()[:, :3]).fit(model)  # results of the earlier fit are deleted
    assert again.n_features_in_ == 3
    assert not hasattr(again, "feature_names_in_")


def test_columns_are_found_by_name_and_others_ignored(subject):
    model, study = subject.fitted()
    expected = subject.predicted(model, study.X)
    turned = study.X[["x3", "x1", "x0", "x2"]]
    for X in (
        turned,
        turned.assign(extra="any", more=pd.Timestamp("2020-01-01")),
        pl.from_pandas(turned).with_columns(new=pl.lit(None)),
        pa.Table.from_pandas(turned.assign(extra=1)),
    ):
        same(subject.predicted(model, X), expected)


def test_columns_that_are_not_asked_about_may_hold_anything_or_be_absent(subject):
    model, study = subject.fitted()
    if subject.needs_every_column:
        for name in study.X:
            with pytest.raises(ValueError, match=f"missing: '{name}'"):
                model.apply(study.X.drop(columns=name))
        return
    expected, rest = subject.predicted(model, study.X), unused(model, study)
    assert rest
    same(subject.predicted(model, study.X.drop(columns=rest)), expected)
    for value in (np.nan, np.inf, "text", pd.Timestamp("2020-01-01"), [1]):
        spoilt = study.X.assign(**{name: [value] * 80 for name in rest})
        same(subject.predicted(model, spoilt), expected)
    unread = np.array(study.X.to_numpy(dtype=object))  # pandas may return read-only arrays
    unread[:, [list(study.X).index(name) for name in rest]] = "text"
    array = study.of(study.X.to_numpy()).fit(subject.make())
    same(subject.predicted(array, unread), expected)


def test_columns_that_are_asked_about_must_be_there(subject):
    model, study = subject.fitted()
    used = model.features_used_
    first = used[0]
    for name, options in subject.predictions:
        with pytest.raises(ValueError, match=f"missing: '{first}'"):
            getattr(model, name)(study.X.drop(columns=first), **options)
    upper = study.X.rename(columns=str.upper)
    lacks = f"X lacks columns that {subject.cls.__name__} needs; missing"
    with pytest.raises(
        ValueError, match=f"^{lacks}: .*'{first}'.*not seen in training: 'X0', 'X1'"
    ):
        model.apply(upper)


def test_columns_that_are_asked_about_must_be_of_their_kind(subject):
    model, study = subject.fitted()
    first = model.features_used_[0]
    text = study.X.astype({first: object})
    text.loc[3, first] = "old"
    with pytest.raises(TypeError, match=f"'{first}' (holds?|held|contains).*'old' in row 3"):
        model.apply(text)
    for value in (np.inf, -np.inf):
        infinite = study.X.copy()
        infinite.loc[3, first] = value
        with pytest.raises(ValueError, match=f"'{first}' is infinite.*row 3"):
            model.apply(infinite)
    with pytest.raises(TypeError, match=f"'{first}' has dtype"):
        model.apply(study.X.assign(**{first: pd.Timestamp("2020-01-01")}))


def test_arrays_have_as_many_columns_as_in_the_fit(subject):
    study = subject.study()
    values = study.X.to_numpy()
    model = study.of(values).fit(subject.make())
    for wrong in (values[:, :3], np.hstack([values, values])):
        reader = subject.cls.__name__
        message = f"X has {wrong.shape[1]} features, but {reader} is expecting 4 features"
        for name, options in subject.predictions:
            with pytest.raises(ValueError, match=message):
                getattr(model, name)(wrong, **options)
    for wrong in (values[0], values[None], values[0].tolist()):
        with pytest.raises((ValueError, TypeError), match=r"2D array|expected a DataFrame"):
            model.apply(wrong)


def test_names_on_one_side_only_warn(subject):
    if "missing" in subject.cannot:
        pytest.skip("numbers as they are have no encoder that warns")
    study = subject.study()
    named, plain = study.fit(subject.make()), study.of(study.X.to_numpy()).fit(subject.make())
    with pytest.warns(BristleconeWarning, match="X does not have valid feature names"):
        named.apply(study.X.to_numpy())
    with pytest.warns(BristleconeWarning, match="fitted without feature names"):
        plain.apply(study.X)


def test_an_unknown_category_matches_no_level(subject):
    if "categories" in subject.cannot:
        pytest.skip("takes no categories")
    model, study = subject.fitted(mixed=True)
    found = subject.predicted(model, study.X.assign(stage="IV"))
    assert all(len(values) == 80 for values in found.values())


def test_a_single_leaf_needs_no_column(subject):
    if subject.needs_every_column:
        pytest.skip("a leaf weighs columns")
    model, study = subject.fitted(**{subject.depth: 0})
    assert model.features_used_ == []
    expected = subject.predicted(model, study.X[:2])
    same(subject.predicted(model, pd.DataFrame({"z": [1, 2]})), expected)
