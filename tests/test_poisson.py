"""Regression trees for counts: least Poisson deviance, and a rate per unit of exposure per leaf."""

import numpy as np
import pandas as pd
import pytest
import shrunk_plainly
from scipy.stats import poisson
from sklearn.metrics import d2_tweedie_score
from sklearn.tree import DecisionTreeRegressor

from bristlecone import BinaryEncoder, OptimalTreeRegressor, load_model, save_model
from bristlecone._cli import main
from bristlecone.exceptions import BristleconeWarning, InvalidParameterError
from bristlecone.export import export_text
from bristlecone.plot import plot_calibration
from bristlecone.trust import verify
from bristlecone.tune import TreeSizeCV


def study(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 5)) < 0.5
    exposure = rng.gamma(2.0, 1.0, n)
    y = rng.poisson(exposure * np.exp(0.2 + 0.9 * X[:, 0] - 0.7 * X[:, 1] * X[:, 2]))
    return X, y.astype(float), rng.integers(1, 4, n).astype(float), exposure


def tree(**parameters):
    return OptimalTreeRegressor(objective="poisson", encoder=BinaryEncoder(), **parameters)


def half_deviance(y, expected, weight):
    with np.errstate(divide="ignore", invalid="ignore"):
        saturated = np.where(y > 0, y * np.log(y / expected), 0.0)
    return weight @ (saturated - y + expected) / weight.sum()


@pytest.mark.parametrize("max_depth", [0, 1, 2, 3])
def test_the_objective_is_half_the_deviance_and_no_worse_than_scikit_learns_tree(max_depth):
    X, y, weight, exposure = study()
    model = tree(max_depth=max_depth).fit(X, y, weight, exposure=exposure)
    own = half_deviance(y, exposure * model.predict(X), weight)
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(own, rel=1e-12)
    if max_depth:
        greedy = DecisionTreeRegressor(criterion="poisson", max_depth=max_depth)
        greedy.fit(X, y / exposure, sample_weight=weight * exposure)
        other = half_deviance(y, exposure * greedy.predict(X), weight)
        assert own <= other * (1 + 1e-12)
        assert max_depth > 1 or own == pytest.approx(other, rel=1e-9)


def test_automatic_thresholds_contain_those_of_scikit_learns_tree():
    X = np.random.default_rng(1).random((200, 3))
    y = np.random.default_rng(2).poisson(1 + 3 * (X[:, 0] > 0.37)).astype(float)
    model = OptimalTreeRegressor(objective="poisson", max_depth=3).fit(X, y)
    greedy = DecisionTreeRegressor(criterion="poisson", max_depth=3).fit(X, y)
    ones = np.ones(200)
    assert model.objective_value_ <= half_deviance(y, greedy.predict(X), ones) * (1 + 1e-9)


def test_a_leaf_predicts_events_over_exposure():
    X, y, weight, exposure = study()
    model = tree(max_depth=2).fit(X, y, weight, exposure=exposure)
    for node in model.tree_.leaves:
        inside = model.apply(X) == node
        rate = (weight * y)[inside].sum() / (weight * exposure)[inside].sum()
        np.testing.assert_allclose(model.predict(X[inside]), rate, rtol=1e-12)


def test_exposure_of_one_is_the_default_and_its_unit_scales_the_rates():
    X, y, _, exposure = study()
    plain, ones = tree().fit(X, y), tree().fit(X, y, exposure=np.ones(len(y)))
    np.testing.assert_array_equal(plain.predict(X), ones.predict(X))
    years, days = tree().fit(X, y, exposure=exposure), tree().fit(X, y, exposure=365 * exposure)
    np.testing.assert_allclose(years.predict(X), 365 * days.predict(X), rtol=1e-12)
    assert years.objective_value_ == pytest.approx(days.objective_value_, rel=1e-12)


def test_weights_count_as_repetition():
    X, y, weight, exposure = study(60)
    rows = np.repeat(np.arange(60), weight.astype(int))
    one = tree(max_depth=2).fit(X, y, weight, exposure=exposure)
    other = tree(max_depth=2).fit(X[rows], y[rows], exposure=exposure[rows])
    assert one.objective_value_ == pytest.approx(other.objective_value_, rel=1e-12)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-12)


def test_rows_of_weight_zero_have_no_part():
    X, y, weight, exposure = study(60)
    weight[:20] = 0
    one = tree(max_depth=2).fit(X, y, weight, exposure=exposure)
    other = tree(max_depth=2).fit(X[20:], y[20:], weight[20:], exposure=exposure[20:])
    assert one.objective_value_ == other.objective_value_
    assert one.score(X, y, weight, exposure=exposure) == pytest.approx(
        other.score(X[20:], y[20:], weight[20:], exposure=exposure[20:]), rel=1e-12
    )


def test_nothing_counted_is_one_leaf_of_rate_zero():
    X, y, _, exposure = study(40)
    model = tree().fit(X, 0 * y, exposure=exposure)
    assert (model.status_, model.n_leaves_) == ("optimal", 1)
    assert (model.objective_value_, model.lower_bound_) == (0.0, 0.0)
    assert not model.predict(X).any()
    assert model.score(X, 0 * y, exposure=exposure) == 1.0


def test_the_score_is_the_share_of_deviance_explained():
    X, y, weight, exposure = study()
    model = tree().fit(X[:200], y[:200], exposure=exposure[:200])
    part = slice(200, None)
    expected = d2_tweedie_score(
        (y / exposure)[part],
        model.predict(X[part]),
        power=1,
        sample_weight=(weight * exposure)[part],
    )
    found = model.score(X[part], y[part], weight[part], exposure=exposure[part])
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_rate_of_zero_does_not_expect_what_happens():
    X = np.array([[True], [False]] * 10)
    y = np.where(X[:, 0], 0.0, 3.0)
    model = tree(max_depth=1).fit(X, y)
    assert model.score(X, y + 1) == -np.inf
    shrunk = tree(max_depth=1, shrinkage=2.0).fit(X, y)
    # Each leaf has 15 counts at the rate of all rows, 1.5.
    np.testing.assert_allclose(shrunk.predict(X[:2]), [2 * 1.5 / 17, (15 * 3 + 2 * 1.5) / 17])
    assert -np.inf < shrunk.score(X, y + 1) < 0


@pytest.mark.parametrize("amount", [0.5, 30.0])
def test_shrunk_rates_follow_their_definition_in_any_unit_of_exposure(amount, tmp_path):
    X, y, weight, exposure = study()
    model = tree(max_depth=3, shrinkage=amount).fit(X, y, weight, exposure=exposure)
    rate = np.average(y / exposure, weights=weight * exposure)
    for path in shrunk_plainly.paths(model, X):
        expected = shrunk_plainly.mean(
            path, lambda r: weight[r] @ y[r], lambda r: weight[r] @ exposure[r], amount / rate
        )
        np.testing.assert_allclose(model.predict(X[path[-1][:1]]), expected, rtol=1e-12)
    days = tree(max_depth=3, shrinkage=amount).fit(X, y, weight, exposure=365 * exposure)
    np.testing.assert_allclose(365 * days.predict(X), model.predict(X), rtol=1e-12)
    assert verify(model, X, y, sample_weight=weight, exposure=exposure).ok
    save_model(model, tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").predict(X), model.predict(X))
    nothing = tree(max_depth=1, shrinkage=amount).fit(X, np.zeros(len(X)), exposure=exposure)
    assert (nothing.predict(X) == 0).all()
    assert verify(nothing, X, np.zeros(len(X)), exposure=exposure).ok
    tiny = tree(max_depth=1, shrinkage=amount).fit(X, 1e-200 * y, exposure=exposure)
    # As many expected counts as this do not matter beside the pseudo-counts.
    np.testing.assert_allclose(tiny.predict(X), 1e-200 * y.sum() / exposure.sum())


def test_trees_of_counts_are_verified_estimated_again_and_saved(tmp_path):
    X, y, weight, exposure = study()
    model = tree(max_depth=2).fit(X, y, weight, exposure=exposure)
    found = verify(model, X, y, sample_weight=weight, exposure=exposure)
    assert found.ok and "none is better" in found["lower bound"].found
    assert not verify(model, X, y, sample_weight=weight).ok
    save_model(model, tmp_path / "m.json")
    same = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert export_text(same) == export_text(model)
    half = slice(0, 150)
    honest = model.reestimate(X[half], y[half], weight[half], exposure=exposure[half])
    assert verify(honest, X[half], y[half], sample_weight=weight[half], exposure=exposure[half]).ok
    path = model.size_path(X, y, weight, exposure=exposure)
    assert path[-1].objective_value_ == pytest.approx(model.objective_value_, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": lambda y: y - 9.0}, "y has the negative count -"),
        ({"y": lambda y: np.where(np.arange(len(y)) == 7, np.nan, y)}, "row 7"),
        ({"y": lambda y: 5e-324 * y}, r"y has no count above \S+e-32\d; change its unit"),
        ({"exposure": lambda m: np.where(np.arange(len(m)) == 5, 0.0, m)}, "it is 0 in row 5"),
        ({"exposure": lambda m: -m}, "exposure must be positive; it is -"),
        ({"exposure": lambda m: m[1:]}, "exposure"),
        (
            {"exposure": lambda m: np.where(np.arange(len(m)) == 2, 1e-300, m)},
            "exposure in row 2 is too small, 1e-300",
        ),
        (
            {"exposure": lambda m: np.where(np.arange(len(m)) == 2, 1e-160, m)},
            "exposure in row 2 is too small, 1e-160 for a count of",
        ),
        ({"exposure": lambda m: np.where(np.arange(len(m)) == 3, np.inf, m)}, "row 3"),
    ],
)
def test_bad_rows_are_named(change, message):
    X, y, _, exposure = study(40)
    rows = {"y": y, "exposure": exposure}
    rows = {name: change.get(name, lambda v: v)(value) for name, value in rows.items()}
    with pytest.raises(ValueError, match=message):
        tree().fit(X, **rows)


def test_parameters_that_do_not_go_together_are_refused():
    X, y, _, exposure = study(40)
    with pytest.raises(InvalidParameterError, match="exposure needs objective='poisson'"):
        OptimalTreeRegressor().fit(X, y, exposure=exposure)
    with pytest.raises(InvalidParameterError, match="exposure needs objective='poisson'"):
        OptimalTreeRegressor().fit(X, y).score(X, y, exposure=exposure)
    with pytest.raises(InvalidParameterError, match="objective must be"):
        OptimalTreeRegressor(objective="gamma").fit(X, y)


def test_a_score_without_the_exposures_of_the_fit_warns():
    X, y, weight, exposure = study(60)
    model = tree(max_depth=1)
    model.fit(X, y, weight).score(X, y)
    model.fit(X, y, weight, exposure=exposure).score(X, y, exposure=exposure)
    with pytest.warns(BristleconeWarning, match="the fit had exposures: without them, score"):
        model.score(X, y)


@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_report_their_counts_exposures_and_limits_of_the_rates(weighted):
    X, y, weight, exposure = study()
    y[X[:, 0] & X[:, 1]] = 0.0  # a leaf without counts
    model = tree(max_depth=2).fit(X, y, weight if weighted else None, exposure=exposure)
    table, leaf = model.leaf_table(confidence=0.9).set_index("leaf"), model.apply(X)
    assert (table["mean"] == 0).any()
    for node, row in table.iterrows():
        d, m = y[leaf == node].sum(), exposure[leaf == node].sum()
        assert (row["count"], row["exposure"]) == pytest.approx((d, m), rel=1e-12)
        unit = row["mean"] / d if d else 1 / m
        assert weighted or unit == pytest.approx(1 / m, rel=1e-12)
        upper = row["mean_upper"] / unit
        assert poisson.cdf(d, upper) == pytest.approx(0.05, rel=1e-9)
        lower = row["mean_lower"] / unit
        assert lower == 0 if d == 0 else poisson.sf(d - 1, lower) == pytest.approx(0.05, rel=1e-9)
    total = f"total count {y.sum():g}, total exposure {exposure.sum():.6g}"
    assert total in " ".join(model.describe().split())
    assert f"(count 0, exposure {table.loc[table['mean'] == 0, 'exposure'].iloc[0]:.6g})" in (
        export_text(model)
    )


def test_the_command_line_takes_counts_and_exposure(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y, _, exposure = study(80)
    frame = pd.DataFrame(X.astype(int), columns=list("abcde"))
    frame.assign(n=y, years=exposure).to_csv("t.csv", index=False)
    fit = ["fit", "t.csv", "--estimator", "regressor", "--target", "n", "--objective", "poisson"]
    assert main([*fit, "--exposure", "years", "--max-depth", "2", "--model", "m.json"]) == 0
    model = OptimalTreeRegressor(objective="poisson", max_depth=2).fit(frame, y, exposure=exposure)
    assert load_model("m.json").objective_value_ == model.objective_value_
    assert main(["verify", "m.json", "t.csv", "--target", "n", "--exposure", "years"]) == 0
    capsys.readouterr()
    assert main([*fit, "--exposure", "months"]) == 2
    assert "months" in capsys.readouterr().err


def test_cross_validation_splits_the_exposure_with_the_rows():
    X, y, _, exposure = study()
    search = TreeSizeCV(tree(max_depth=2), cv=3).fit(X, y, exposure=exposure)
    days = TreeSizeCV(tree(max_depth=2), cv=3).fit(X, y, exposure=365 * exposure)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], days.cv_results_["mean_test_score"], rtol=1e-9
    )
    np.testing.assert_allclose(search.predict(X), 365 * days.predict(X), rtol=1e-9)


def test_calibration_which_would_need_the_exposure_of_new_rows_is_refused():
    X, y, _, exposure = study(80)
    model = tree(max_depth=1).fit(X, y, exposure=exposure)
    with pytest.raises(InvalidParameterError, match="calibration is not available"):
        plot_calibration(model, X, y)


def test_counts_whose_squares_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match=r"y is 1e\+200 in row 1; change its unit"):
        tree().fit([[0.0], [1.0], [2.0]], [1.0, 1e200, 3.0])


def test_an_exposure_too_large_beside_its_weight_names_its_row():
    X, exposure = np.arange(4.0)[:, np.newaxis], [1.0, 1.0, 1e300, 1.0]
    with pytest.raises(
        ValueError, match="exposure in row 2 is too large, 1e\\+300 times its weight"
    ):
        OptimalTreeRegressor(objective="poisson").fit(
            X, [1, 0, 2, 1], sample_weight=[1, 1, 1e10, 1], exposure=exposure
        )
