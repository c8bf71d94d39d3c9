"""Categories with many levels: their order by risk, splits by sets of levels, warnings."""

import json
import sqlite3
import warnings
from contextlib import closing

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bristlecone import (
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    load_model,
    outcome,
    save_model,
)
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.features import OneOf, subset_text
from bristlecone._encoder.rules import leaf_rules
from bristlecone.curves import nelson_aalen
from bristlecone.exceptions import ColumnWarning
from bristlecone.export import export_dict, export_python, export_sql, export_text
from bristlecone.trust import verify

LEVELS = [f"S{k:02}" for k in range(24)]


def survived(n=900, seed=0):
    """Sites with different hazards, a third column, and survival outcomes."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 24, n)
    hazard = np.exp(rng.permutation(np.linspace(-1.5, 1.5, 24)))[site]
    X = pd.DataFrame({"site": np.array(LEVELS)[site], "age": rng.normal(60, 9, n).round()})
    time, limit = rng.exponential(1 / hazard), rng.exponential(2.0, n)
    return X, outcome(time <= limit, np.minimum(time, limit).round(3) + 0.001)


def sets(encoder, column="site"):
    return [f for f in encoder.features_ if isinstance(f, OneOf) and f.column == column]


def is_monotone(feature, risk, mean):
    """Whether a set contains the levels at one end of this order, and none of average risk."""
    inside = [risk[level] for level in feature.levels]
    outside = [value for level, value in risk.items() if level not in feature.levels]
    if max(inside) < min(outside):
        return inside == sorted(inside) and min(inside) < mean
    return min(inside) > max(outside) and inside == sorted(inside)[::-1] and max(inside) > mean


@pytest.mark.parametrize("weighted", [False, True])
def test_levels_are_in_the_order_of_shrunk_ratios_of_events(weighted):
    X, y = survived()
    weight = np.random.default_rng(1).integers(1, 4, len(X)) * 1.0 if weighted else np.ones(len(X))
    encoder = BinaryEncoder(thresholds="midpoints").fit(X, y, sample_weight=weight)
    expected = nelson_aalen(y, weight)(y["time"])
    risk = {}
    for level in LEVELS:
        rows = (X["site"] == level).to_numpy()
        events, hazard = weight[rows] @ y["event"][rows], weight[rows] @ expected[rows]
        risk[level] = (events + 10) / (hazard + 10)
    found = sets(encoder)
    assert len(found) == 23
    assert all(is_monotone(feature, risk, 1.0) for feature in found)


def test_numbers_are_ordered_by_shrunk_means_and_classes_by_shares():
    rng = np.random.default_rng(0)
    site = rng.integers(0, 24, 800)
    X, n = pd.DataFrame({"site": np.array(LEVELS)[site]}), np.bincount(site)
    y = rng.permutation(24)[site] + rng.normal(size=800)
    sums = np.bincount(site, weights=y)
    mean = (sums + 10 * y.mean()) / (n + 10)
    encoder = BinaryEncoder(thresholds="midpoints").fit(X, y)
    risk = dict(zip(LEVELS, mean, strict=True))
    assert len(sets(encoder)) == 23
    assert all(is_monotone(feature, risk, y.mean()) for feature in sets(encoder))
    yes = y > 12
    share = (np.bincount(site, weights=yes) + 10 * yes.mean()) / (n + 10)
    encoder = BinaryEncoder().fit(X, np.where(yes, "yes", "no"))
    risk = dict(zip(LEVELS, share, strict=True))
    assert sets(encoder)
    assert all(is_monotone(feature, risk, yes.mean()) for feature in sets(encoder))


def test_rates_are_counts_per_exposure():
    rng = np.random.default_rng(0)
    site, exposure = rng.integers(0, 12, 600), rng.uniform(0.01, 4, 600)
    counts = rng.poisson(exposure * (1 + rng.permutation(12))[site])
    X = pd.DataFrame({"site": np.array(LEVELS)[site]})
    encoder = BinaryEncoder(thresholds="midpoints")
    tree = OptimalTreeRegressor(objective="poisson", max_depth=2, encoder=encoder)
    tree.fit(X, counts, exposure=exposure)
    expected = exposure * counts.sum() / exposure.sum()
    ratio = (np.bincount(site, weights=counts) + 10) / (np.bincount(site, weights=expected) + 10)
    risk = dict(zip(LEVELS, ratio, strict=False))
    assert all(is_monotone(feature, risk, 1.0) for feature in sets(tree.encoder_))
    weight = rng.integers(1, 4, 600)
    weighted = tree.fit(X, counts, weight, exposure=exposure).encoder_.features_
    again = X.loc[X.index.repeat(weight)].reset_index(drop=True)
    tree.fit(again, np.repeat(counts, weight), exposure=np.repeat(exposure, weight))
    assert tree.encoder_.features_ == weighted


def test_several_classes_are_ordered_by_their_first_principal_component():
    rng = np.random.default_rng(0)
    site = rng.integers(0, 12, 600)
    # On a line from the first class to the last.
    share = np.linspace(0.05, 0.95, 12)[site]
    label = np.where(rng.random(600) < 0.2, "b", np.where(rng.random(600) < share, "a", "c"))
    encoder = BinaryEncoder().fit(pd.DataFrame({"site": np.array(LEVELS)[site]}), label)
    low, high = {"S00", "S01", "S02"}, {"S09", "S10", "S11"}
    for feature in sets(encoder):
        assert not (set(feature.levels) & low and set(feature.levels) & high)


def test_neither_order_of_rows_nor_repetition_instead_of_weights_matters():
    X, y = survived(500)
    weight = np.random.default_rng(2).integers(1, 4, 500)
    first = BinaryEncoder().fit(X, y, sample_weight=weight)
    order = np.random.default_rng(3).permutation(500)
    other = BinaryEncoder().fit(X.iloc[order], y[order], sample_weight=weight[order])
    assert other.features_ == first.features_
    repeated = X.loc[X.index.repeat(weight)].reset_index(drop=True)
    assert BinaryEncoder().fit(repeated, np.repeat(y, weight)).features_ == first.features_
    assert sets(first)


def test_delayed_entry_counts_the_hazard_since_entry():
    X, y = survived()
    late = np.where(X["site"] < "S12", 0.8, 0.0) * y["time"]
    entered = outcome(y["event"], y["time"], entry=late)
    cumulative = nelson_aalen(entered)
    expected = cumulative(y["time"]) - cumulative(late)
    by_site = pd.DataFrame({"e": y["event"], "h": expected}).groupby(X["site"]).sum()
    risk = ((by_site["e"] + 10) / (by_site["h"] + 10)).to_dict()
    found = sets(BinaryEncoder().fit(X, entered))
    assert found and all(is_monotone(feature, risk, 1.0) for feature in found)


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X: pl.from_pandas(pd.DataFrame(X))])
def test_a_tree_predicts_by_its_sets_and_unknown_levels_are_average(frame, tmp_path):
    X, y = survived()
    tree = OptimalSurvivalTree(max_depth=2).fit(frame(X), y)
    asked = {f.name: f for f in tree.encoder_.features_}
    root = tree.encoder_.features_[tree.tree_.feature[0]]
    assert isinstance(root, OneOf) and asked[root.name] == root
    left = tree.tree_.leaf_index(tree.encoder_.transform(frame(X))) < 2
    assert left.tolist() == X["site"].isin(root.levels).tolist()
    new = pd.DataFrame({"site": ["new", None, root.levels[0]], "age": [60.0, 60.0, 60.0]})
    sides = tree.encoder_.transform(frame(new))[:, tree.tree_.feature[0]]
    assert sides.tolist() == [False, False, True]
    save_model(tree, tmp_path / "tree.json")
    loaded = load_model(tmp_path / "tree.json")
    assert np.array_equal(loaded.predict(frame(X)), tree.predict(frame(X)))
    assert loaded.encoder_.features_ == tree.encoder_.features_
    assert verify(loaded, frame(X), y).ok


def test_exports_hold_the_whole_set_and_decide_as_the_tree():
    X, y = survived()
    tree = OptimalSurvivalTree(max_depth=2).fit(X, y)
    root = tree.encoder_.features_[tree.tree_.feature[0]]
    assert f"site in {subset_text(root.levels)}" in export_text(tree)
    text = json.dumps(export_dict(tree))
    assert json.dumps(list(root.levels)) in text
    with closing(sqlite3.connect(":memory:")) as database:
        X.to_sql("rows", database, index=True, index_label="id")
        query = export_sql(tree, table="rows")
        assert all(f"'{level}'" in query for level in root.levels)
        found = pd.read_sql(query, database)
    expected = tree.tree_.leaf_index(tree.encoder_.transform(X))
    leaves = found["leaf"].to_numpy()
    assert len(set(zip(leaves, expected, strict=True))) == tree.n_leaves_ == len(set(leaves))
    assert all(repr(level) in export_python(tree) for level in root.levels)


def test_rules_of_a_leaf_join_the_sets_of_its_path():
    X, y = survived()
    tree = OptimalSurvivalTree(max_depth=3).fit(X[["site"]], y)
    leaf = tree.tree_.leaf_index(tree.encoder_.transform(X[["site"]]))
    for k, rule in enumerate(leaf_rules(tree)):
        (words,) = rule
        mine = set(X["site"][leaf == k])
        named = words[words.index("{") + 1 : -1].split(" and ")[0].split(", ")
        if " not in " in words:
            assert not mine & set(named)
        else:
            assert set(named) <= mine
            more = words.split(" and ")[1].split(" ")[0] if " more}" in words else 0
            assert len(mine) == len(named) + int(more)


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "{S00}"), (4, "{S00, S01, S02, S03}"), (5, "{S00, S01, S02 and 2 more}")],
)
def test_long_sets_are_shortened(count, text):
    assert subset_text(LEVELS[:count]) == text


def test_levels_that_do_not_differ_keep_their_features_with_a_warning():
    X, y = survived()
    noise = np.random.default_rng(5).permutation(X["site"])
    X = X.assign(site=noise)
    with pytest.warns(ColumnWarning, match="column 'site' has 24 levels.* the outcomes do not"):
        encoder = BinaryEncoder().fit(X, y)
    assert encoder.features_ == BinaryEncoder(categories="levels").fit(X, y).features_
    assert not sets(encoder)


def test_identifiers_are_not_ordered_by_their_own_outcomes():
    X, y = survived(300)
    X["site"] = [f"row {k}" for k in range(300)]
    with pytest.warns(ColumnWarning, match="column 'site' has 300 levels, and none of them"):
        assert not sets(BinaryEncoder().fit(X, y))


def test_rare_levels_count_as_average_with_a_warning():
    X, y = survived()
    X.loc[:4, "site"] = "rare"
    with pytest.warns(ColumnWarning, match="column 'site': 1 of its 25 levels have fewer than 10"):
        encoder = BinaryEncoder(thresholds="midpoints").fit(X, y)
    assert sets(encoder)
    assert all("rare" not in feature.levels for feature in sets(encoder))


def test_without_outcomes_rare_levels_are_merged_with_a_warning():
    X, y = survived()
    with pytest.warns(ColumnWarning, match="column 'site'.* by risk only if y is passed"):
        encoder = BinaryEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist()[10] == "site = other"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BinaryEncoder(categories="levels").fit(X, y)
        BinaryEncoder(max_categories=24).fit(X)


def test_weights_that_sum_to_one_keep_the_order():
    X, y = survived()
    weight = np.full(len(X), 1 / len(X))
    label = np.where(y["event"], "yes", "no")
    tree = OptimalTreeClassifier(max_depth=2)
    plain = tree.fit(X, label).encoder_.features_
    assert OptimalTreeClassifier(max_depth=2).fit(X, label, weight).encoder_.features_ == plain


def test_targets_of_any_scale_have_the_same_order():
    X, y = survived()
    target = y["time"]
    first = BinaryEncoder().fit(X, target).features_
    assert any(isinstance(feature, OneOf) for feature in first)
    assert BinaryEncoder().fit(X, target * 2.0**1000).features_ == first
    assert BinaryEncoder().fit(X, target * 2.0**-480).features_ == first


def test_an_event_of_any_cause_counts():
    X, y = survived()
    cause = y["event"] * (1 + np.arange(len(y)) % 2)
    for options in ({}, {"thresholds": "ensemble"}):
        expected = BinaryEncoder(**options).fit(X, y)
        found = BinaryEncoder(**options).fit(X, outcome(cause, y["time"]))
        assert found.features_ == expected.features_


@pytest.mark.filterwarnings("error", "ignore::bristlecone.exceptions.ColumnWarning")
def test_without_events_no_level_has_a_risk():
    X, y = survived(200)
    assert not sets(BinaryEncoder().fit(X, outcome(np.zeros(200, bool), y["time"])))
