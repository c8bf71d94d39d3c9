"""Rows and columns: weights, order, containers, and empty input."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from contract.subjects import READERS, same

# In another order, weights and sums may differ in the last bits.
ROUNDING = 1e-11


def weights(n=80, seed=1):
    """Distinct weights, so no two trees are equally good."""
    return np.random.default_rng(seed).uniform(0.5, 2.0, n)


def test_the_tree_of_the_study_asks_something_and_not_everything(subject):
    model, study = subject.fitted()
    assert 2 <= model.n_leaves_ <= 4
    assert len(model.features_used_) >= 1
    assert subject.needs_every_column or len(model.features_used_) < study.X.shape[1]


def test_fits_are_repeatable(subject):
    study = subject.study()
    one, other = (subject.predicted(study.fit(subject.make()), study.X) for _ in range(2))
    same(one, other)
    model = subject.make()
    study.take(slice(0, 60)).fit(model)  # an earlier fit has no effect
    same(subject.predicted(study.fit(model), study.X), one)


def test_threads_do_not_change_the_tree(subject, as_many_threads_as_asked_for):
    if not subject.searched:
        pytest.skip("nothing is searched for")
    study = subject.study()
    one, two = (subject.predicted(study.fit(subject.make(n_jobs=n)), study.X) for n in (1, 3))
    same(one, two)


def test_unit_weights_are_none(subject):
    study = subject.study()
    weighted = study.fit(subject.make(), sample_weight=np.ones(80))
    plain = study.fit(subject.make())
    same(subject.predicted(weighted, study.X), subject.predicted(plain, study.X), ROUNDING)


def test_integer_weights_equal_repetition(subject):
    study = subject.study()
    times = np.random.default_rng(1).integers(0, 4, size=80)
    weighted = study.fit(subject.make(**subject.by_weight), sample_weight=times)
    repeated = study.take(np.repeat(np.arange(80), times)).fit(subject.make(**subject.by_weight))
    assert weighted.n_leaves_ > 1
    same(subject.predicted(weighted, study.X), subject.predicted(repeated, study.X), ROUNDING)
    np.testing.assert_allclose(
        weighted.tree_.weighted_n_node_samples, repeated.tree_.n_node_samples, rtol=1e-12
    )


def test_rows_of_weight_zero_count_as_absent(subject):
    study = subject.study()
    kept = np.arange(80) % 4 > 0
    weighted = study.fit(subject.make(), sample_weight=kept.astype(float))
    without = study.take(np.flatnonzero(kept)).fit(subject.make())
    same(subject.predicted(weighted, study.X), subject.predicted(without, study.X), ROUNDING)
    assert weighted.tree_.n_node_samples[0] == kept.sum()


def test_the_scale_of_the_weights_does_not_move_the_tree(subject):
    study = subject.study()
    one, other = (
        study.fit(subject.make(**subject.by_weight), sample_weight=scale * weights())
        for scale in (1, 8)
    )
    np.testing.assert_array_equal(one.apply(study.X), other.apply(study.X))


def test_the_order_of_the_rows_does_not_matter(subject):
    study = subject.study()
    order, weight = np.random.default_rng(3).permutation(80), weights()
    one = study.fit(subject.make(), sample_weight=weight)
    other = study.take(order).fit(subject.make(), sample_weight=weight[order])
    same(subject.predicted(one, study.X), subject.predicted(other, study.X), ROUNDING)


def test_the_order_of_named_columns_does_not_matter(subject):
    study, weight = subject.study(), weights()
    one = study.fit(subject.make(), sample_weight=weight)
    turned = study.X[["x2", "x0", "x3", "x1"]]
    other = study.of(turned).fit(subject.make(), sample_weight=weight)
    before = subject.predicted(one, study.X)
    same(subject.predicted(other, turned), before, ROUNDING)
    same(subject.predicted(one, turned), before)
    same(subject.predicted(other, study.X), before, ROUNDING)


def test_fit_and_predict_leave_their_input_alone(subject):
    study, weight = subject.study(mixed="categories" not in subject.cannot), weights()
    X, y = study.X.copy(), study.y.copy()
    rows = {name: values.copy() for name, values in study.rows.items()}
    model = study.fit(subject.make(), sample_weight=weight)
    subject.predicted(model, study.X)
    pd.testing.assert_frame_equal(study.X, X)
    np.testing.assert_array_equal(study.y, y)
    np.testing.assert_array_equal(weight, weights())
    for name, values in rows.items():
        np.testing.assert_array_equal(study.rows[name], values)
    for values in (X.to_numpy(dtype=object), y, weight, *rows.values()):
        values.flags.writeable = False
    frozen = replace(study, X=X.to_numpy(dtype=object), y=y, rows=rows)
    frozen.fit(subject.make(), sample_weight=weight)


def test_training_rows_are_not_kept(subject):
    model, study = subject.fitted()
    kept = [*vars(model).values()]
    kept += [part for value in kept if hasattr(value, "__dict__") for part in vars(value).values()]
    assert not [value for value in kept if np.shape(value)[:1] == (len(study.X),)]


# Containers

NUMERIC = {
    "array": lambda X: X.to_numpy(),
    "by columns": lambda X: np.asfortranarray(X.to_numpy()),
    "every other row of an array": lambda X: np.repeat(X.to_numpy(), 2, axis=0)[::2],
    "objects": lambda X: X.to_numpy(dtype=object),
    "lists": lambda X: X.to_numpy().tolist(),
    "read-only": lambda X: X.to_numpy(copy=True).view(type("Rows", (np.ndarray,), {})),
    "integer names": lambda X: X.set_axis(range(4), axis=1),
    "another index": lambda X: X.set_axis(np.arange(80) * 3 + 7),
    "polars": pl.DataFrame,
    "arrow": pa.Table.from_pandas,
    "nullable": lambda X: X.convert_dtypes(),
    "arrow in pandas": lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("subject", READERS, indirect=True)
@pytest.mark.parametrize("container", NUMERIC)
def test_numbers_in_any_container_give_the_same_tree(subject, container, reference):
    _, study, expected = reference(subject)
    X = NUMERIC[container](study.X)
    same(subject.predicted(study.of(X).fit(subject.make()), X), expected)


@pytest.mark.parametrize("subject", READERS, indirect=True)
def test_flags_in_any_container_give_the_same_tree(subject):
    study = subject.study()
    flags = study.X > 0.1
    expected = subject.predicted(study.of(flags).fit(subject.make()), flags)
    for X in (
        flags.to_numpy(),
        flags.to_numpy(dtype=np.uint8),
        flags.to_numpy(dtype=object),
        flags.to_numpy().tolist(),
        flags.astype(int),
        flags.astype("boolean"),
        pl.from_pandas(flags),
        pa.Table.from_pandas(flags),
    ):
        same(subject.predicted(study.of(X).fit(subject.make()), X), expected)


MIXED = {
    "categories": lambda X: X.astype({"stage": "category"}),
    "nullable": lambda X: X.convert_dtypes(),
    "arrow in pandas": lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
    "objects": lambda X: X.astype(object),
    "flags as 0 and 1": lambda X: X.assign(**X.select_dtypes(bool).astype(int)),
    "polars": lambda X: pl.from_pandas(X),
    "polars categories": lambda X: pl.from_pandas(X.astype({"stage": "category"})),
    "arrow": lambda X: pa.Table.from_pandas(X),
    "array of objects": lambda X: X.to_numpy(dtype=object),
    "lists": lambda X: X.to_numpy(dtype=object).tolist(),
}


@pytest.mark.parametrize("subject", READERS, indirect=True)
@pytest.mark.parametrize("container", MIXED)
def test_columns_of_every_kind_in_any_container_give_the_same_tree(subject, container, reference):
    if "categories" in subject.cannot:
        study = subject.study(mixed=True)
        with pytest.raises(TypeError, match=subject.cannot["categories"]):
            study.of(MIXED[container](study.X[["stage"]])).fit(subject.make())
        return
    model, study, expected = reference(subject, mixed=True)
    X = MIXED[container](study.X)
    named = hasattr(X, "columns")
    # Without names, the columns of a soft tree are summed in another order.
    same(subject.predicted(study.of(X).fit(subject.make()), X), expected, 0 if named else ROUNDING)
    if named:
        same(subject.predicted(model, X), expected)


def test_missing_numbers_are_read_or_refused_in_a_sentence(subject):
    study = subject.study()
    X = study.X.copy()
    X.loc[5, "x0"] = np.nan
    if "missing" in subject.cannot:
        with pytest.raises(
            ValueError, match=f"'x0' is missing in row 5; {subject.cannot['missing']}"
        ):
            study.of(X).fit(subject.make())
    else:
        subject.predicted(study.of(X).fit(subject.make()), X)


def test_missing_values_new_at_prediction_count_as_the_mean(subject):
    model, study = subject.fitted()
    used = model.features_used_[0]
    without, filled = study.X.copy(), study.X.copy()
    without.loc[5, used], filled.loc[5, used] = np.nan, study.X[used].mean()
    if "missing" in subject.cannot:
        with pytest.raises(ValueError, match=f"'{used}'.*row 5; {subject.cannot['missing']}"):
            model.apply(without)
    else:
        same(subject.predicted(model, without), subject.predicted(model, filled), ROUNDING)


def other_outcomes(subject, y):
    """The outcomes in other containers."""
    if subject.survival:
        columns = {"event": y["dead"], "time": y["months"]}
        flags = {"status": y["dead"].astype(int), "days": y["months"]}
        pair = y["dead"].tolist(), y["months"].tolist()
        return [pd.DataFrame(columns), pl.DataFrame(flags), pa.table(columns), pair]
    if "cause" in (y.dtype.names or ()):
        columns = {"event": y["cause"], "time": y["months"]}
        pair = y["cause"].tolist(), y["months"].tolist()
        return [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), pair]
    forms = [pd.Series(y), pl.Series(y.tolist())]
    if "files" not in subject.cannot:  # a custom task reads them itself
        forms += [pd.Series(y).convert_dtypes(), pd.Series(y, dtype=object), y.tolist()]
    return forms


def test_outcomes_in_any_container_give_the_same_tree(subject, reference):
    _, study, expected = reference(subject)
    for y in other_outcomes(subject, study.y):
        model = replace(study, y=y).fit(subject.make())
        same(subject.predicted(model, study.X), expected)


def test_weights_and_rows_in_any_container_give_the_same_tree(subject):
    study, weight = subject.study(), weights()
    expected = subject.predicted(study.fit(subject.make(), sample_weight=weight), study.X)

    def series(values):
        return pd.DataFrame(values) if np.ndim(values) == 2 else pd.Series(values)

    def in_polars(values):
        return pl.DataFrame(values) if np.ndim(values) == 2 else pl.Series(values)

    for form in (lambda values: values.tolist(), series, in_polars):
        rows = {name: form(values) for name, values in study.rows.items()}
        model = replace(study, rows=rows).fit(subject.make(), sample_weight=form(weight))
        same(subject.predicted(model, study.X), expected)


# No rows

EMPTY = {
    "array": lambda X: np.empty((0, X.shape[1])),
    "pandas": lambda X: X[:0],
    "pandas without types": lambda X: pd.DataFrame(columns=list(X)),
    "polars": lambda X: pl.from_pandas(X)[:0],
    "polars without types": lambda X: pl.DataFrame({name: [] for name in X}),
    "arrow": lambda X: pa.Table.from_pandas(X)[:0],
}


@pytest.mark.parametrize("subject", READERS, indirect=True)
@pytest.mark.parametrize("container", EMPTY)
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_no_rows_have_no_predictions(subject, container, mixed, reference):
    if mixed and "categories" in subject.cannot:
        pytest.skip("takes no categories")
    model, study, expected = reference(subject, mixed)
    for name, found in subject.predicted(model, EMPTY[container](study.X)).items():
        assert found.shape == (0, *expected[name].shape[1:]), name
        assert found.dtype == expected[name].dtype, name
