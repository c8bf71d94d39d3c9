"""A fitted tree: its nodes, texts, size, importances, certificate and leaves."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

from bristlecone import __version__
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone.exceptions import SearchLimitWarning
from bristlecone.export import export_dict, export_text
from bristlecone.report import html_report
from contract.subjects import same


def test_rows_fall_into_leaves(subject):
    model, study = subject.fitted()
    tree, leaf = model.tree_, model.apply(study.X)
    assert leaf.dtype == np.int64
    assert set(leaf) == set(tree.leaves)
    assert model.n_leaves_ == tree.n_leaves
    assert model.depth_ == tree.max_depth
    path = model.decision_path(study.X)
    assert isinstance(path, csr_matrix)
    assert path.shape == (80, tree.node_count)
    np.testing.assert_array_equal(np.asarray(path.sum(axis=0)).ravel(), tree.n_node_samples)
    np.testing.assert_array_equal(path[np.arange(80), leaf], 1)
    np.testing.assert_array_equal(np.asarray(path.sum(axis=1)).ravel() - 1, tree.node_depth[leaf])
    rows = path.toarray().astype(bool)
    for node in np.flatnonzero(~tree.is_leaf):
        below = rows[:, tree.children_left[node]] | rows[:, tree.children_right[node]]
        np.testing.assert_array_equal(rows[:, node], below)


def test_rows_are_predicted_alone_as_in_a_batch(subject):
    model, study = subject.fitted()
    whole = subject.predicted(model, study.X)
    for row in range(0, 80, 17):
        alone = subject.predicted(model, study.X[row : row + 1])
        same(alone, {name: values[row : row + 1] for name, values in whole.items()})


def dictionaries(node):
    """The nodes of ``export_dict``, in preorder."""
    yield node
    for side in ("yes", "no"):
        if side in node:
            yield from dictionaries(node[side])


def test_text_and_dictionary_show_every_node(subject):
    model, _ = subject.fitted()
    text, tree = export_text(model), export_dict(model)
    shown = [int(number) for number in re.findall(r"\[(\d+)\] n=", text)]
    assert shown == model.tree_.leaves.tolist()
    # The text of a soft tree ends with a line about its weights.
    assert text.count("\n") == model.tree_.node_count + subject.needs_every_column
    assert text.endswith("\n")
    assert json.loads(json.dumps(tree, allow_nan=False)) == tree
    nodes = list(dictionaries(tree))
    assert [node["node"] for node in nodes] == list(range(model.tree_.node_count))
    counted = [node["n_samples"] for node in nodes]
    assert counted == model.tree_.n_node_samples.tolist()
    for node in nodes:
        assert ("split" in node) == ("yes" in node) == ("no" in node)
        if "split" in node:
            assert node["split"] in text
            assert subject.needs_every_column or any(
                name in node["split"] for name in model.features_used_
            )


def test_weights_are_shown_beside_counts(subject):
    study = subject.study()
    model = study.fit(subject.make(), sample_weight=np.linspace(0.5, 2.0, 80))
    leaves = [node for node in dictionaries(export_dict(model)) if "yes" not in node]
    np.testing.assert_allclose(
        [leaf["weight"] for leaf in leaves],
        model.tree_.weighted_n_node_samples[model.tree_.leaves],
        rtol=1e-12,
    )
    if not subject.needs_every_column:
        assert "weight" in export_text(model)


def test_the_description_says_what_was_fitted(subject):
    model, _ = subject.fitted()
    text = model.describe()
    assert text.startswith(f"bristlecone {__version__} ({subject.cls.__name__})")
    assert max(map(len, text.splitlines())) <= 88
    words = " ".join(text.split())
    assert "80 rows" in words
    assert "4 columns" in words
    assert f"{model.objective_value_:.10g}" in words
    assert all(name in words for name in model.features_used_)


def test_the_page_holds_the_tree_and_names_the_class(subject):
    model, _ = subject.fitted()
    page = html_report(model)
    assert page.lower().startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert subject.cls.__name__ in page
    assert "http:" not in page and "https:" not in page
    for leaf in model.tree_.leaves:
        assert f"[{leaf}]" in page or f"leaf {leaf}" in page


def test_what_is_not_fitted_is_not_shown(subject):
    for show in (export_text, export_dict, html_report):
        with pytest.raises(NotFittedError):
            show(subject.make())


def test_what_a_fit_sets_is_not_fitted_before(subject):
    read = {name for name in dir(subject.cls) if name.endswith("_") and not name.startswith("_")}
    if subject.depth == "depth":
        read.remove("feature_importances_")  # a soft tree never has them
    assert {"certificate_", "n_leaves_", "objective_value_"} <= read
    for name in sorted(read):
        with pytest.raises(NotFittedError):
            getattr(subject.make(), name)
        assert not hasattr(subject.make(), name)


# Sizes


def test_sizes_keep_what_is_asked_for(subject):
    if subject.depth == "depth":
        pytest.skip("the size of a soft tree is its depth")
    study = subject.study()
    few = study.fit(subject.make(max_leaf_nodes=2))
    assert (few.n_leaves_, few.depth_) == (2, 1)
    for fewest in (15, 0.2):
        model = study.fit(subject.make(min_samples_leaf=fewest))
        least = np.bincount(model.apply(study.X))[model.tree_.leaves].min()
        assert least >= (fewest if fewest > 1 else 16)


def test_depth_and_leaves_have_getters(subject):
    model, _ = subject.fitted()
    assert model.get_depth() == model.depth_
    assert model.get_n_leaves() == model.n_leaves_
    for name in ("get_depth", "get_n_leaves"):
        with pytest.raises(NotFittedError):
            getattr(subject.make(), name)()


# Certificates


def test_the_search_is_proven(subject):
    if not subject.searched:
        pytest.skip("nothing is searched for")
    model, study = subject.fitted(verbose=1)
    assert model.status_ == "optimal"
    assert 0 <= model.gap_ <= 1e-9
    assert model.relative_gap_ <= 1e-8
    assert model.lower_bound_ <= model.objective_value_ + 1e-9
    assert model.trace_[-1].objective == pytest.approx(model.objective_value_, abs=1e-9)
    assert model.n_nodes_explored_ > 0
    assert model.fit_time_ > 0
    path = study.fit(subject.make(max_depth=1))
    assert path.objective_value_ >= model.objective_value_ - 1e-12


def test_a_limit_leaves_a_tree_with_a_valid_bound(subject):
    if not subject.searched:
        pytest.skip("nothing is searched for")
    study = subject.study()
    # Without time there are no greedy thresholds, and the bound is for the features.
    best = study.fit(subject.make(encoder=BinaryEncoder()))
    with pytest.warns(SearchLimitWarning, match="time_limit") as caught:
        model = study.fit(subject.make(encoder=BinaryEncoder(), time_limit=0))
    assert [warning.filename for warning in caught] == [study.fit.__code__.co_filename]
    assert model.status_ == "time_limit"
    assert model.lower_bound_ <= best.objective_value_ + 1e-9
    assert model.objective_value_ >= best.objective_value_ - 1e-9
    assert len(model.apply(study.X)) == 80
    assert "stopped at the time limit" in " ".join(model.describe().split())


def test_an_exception_of_the_callback_ends_the_fit_and_keeps_the_earlier_one(subject):
    if not subject.searched:
        pytest.skip("nothing is searched for")
    model, study = subject.fitted()
    before = subject.predicted(model, study.X)

    def stop(progress):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        subject.study(seed=3).fit(model, callback=stop)
    same(subject.predicted(model, study.X), before)


def test_progress_is_reported(subject):
    if not subject.searched:
        pytest.skip("nothing is searched for")
    reported = []
    model = subject.study().fit(subject.make(), callback=reported.append)
    assert reported[-1].objective == pytest.approx(model.objective_value_, abs=1e-9)
    assert all(p.lower_bound <= model.objective_value_ + 1e-9 for p in reported)


def test_the_path_has_the_best_tree_of_every_size(subject):
    if not subject.searched:
        pytest.skip("nothing is searched for")
    study = subject.study()
    encoder = BinaryEncoder(n_thresholds=4)
    path = subject.make(encoder=encoder).size_path(study.X, study.y, **study.rows)
    assert [tree.max_leaf_nodes for tree in path] == list(range(1, len(path) + 1))
    for leaves, tree in enumerate(path, start=1):
        alone = study.fit(subject.make(encoder=encoder, max_leaf_nodes=leaves))
        assert tree.objective_value_ == pytest.approx(alone.objective_value_, abs=1e-9)
        assert tree.n_leaves_ <= leaves


CERTIFICATE = (
    "objective_value",
    "lower_bound",
    "status",
    "binary_features",
    "seconds",
    "version",
    "fingerprint",
    "parameters",
)


def test_the_certificate_says_what_was_proven_of_which_data(subject):
    model, study = subject.fitted()
    certificate = model.certificate_
    assert all(hasattr(certificate, name) for name in CERTIFICATE)
    assert certificate.objective_value == model.objective_value_
    assert certificate.seconds == model.fit_time_
    assert certificate.version == __version__
    assert isinstance(certificate.binary_features, tuple)
    assert all(isinstance(question, str) for question in certificate.binary_features)
    if subject.searched:
        assert certificate.lower_bound == model.lower_bound_
        assert certificate.status == model.status_
        assert len(certificate.binary_features) == model.n_binary_features_
        assert set(model.splits_.values()) <= set(certificate.binary_features)
    assert certificate.parameters["verbose"] == 0
    model.set_params(verbose=1)
    assert model.certificate_.parameters["verbose"] == 0
    with pytest.raises((AttributeError, TypeError)):
        certificate.objective_value = 0.0
    assert not hasattr(subject.make(), "certificate_")
    assert re.fullmatch(r"[0-9a-f]{64}", certificate.fingerprint)
    assert study.fit(subject.make()).certificate_.fingerprint == certificate.fingerprint
    # The fingerprint is of the encoded rows: values that no feature separates are the same.
    moved = study.X.assign(x3=study.X["x3"].to_numpy()[::-1])
    for other in (study.of(moved), subject.study(seed=3), study.take(np.arange(79))):
        assert other.fit(subject.make()).certificate_.fingerprint != certificate.fingerprint
    weighted = study.fit(subject.make(), sample_weight=np.linspace(1, 2, 80))
    assert weighted.certificate_.fingerprint != certificate.fingerprint


# Splits


def test_questions_are_the_texts_of_the_splits(subject):
    model, _ = subject.fitted()
    splits = np.flatnonzero(~model.tree_.is_leaf).tolist()
    assert sorted(model.splits_) == splits
    text = export_text(model)
    assert all(question in text for question in model.splits_.values())
    with pytest.raises(NotFittedError):
        _ = subject.make().splits_


def test_splits_name_their_column_and_threshold(subject):
    model, study = subject.fitted(mixed="categories" not in subject.cannot)
    tree = model.tree_
    assert tree.column.dtype == np.int64 and tree.column.shape == (tree.node_count,)
    assert tree.threshold.dtype == np.float64 and tree.threshold.shape == (tree.node_count,)
    assert (tree.column[tree.is_leaf] == -2).all()
    assert np.isnan(tree.threshold[tree.is_leaf]).all()
    if subject.needs_every_column:
        assert (tree.column == -2).all() and np.isnan(tree.threshold).all()
        return
    splits = np.flatnonzero(~tree.is_leaf)
    columns = list(study.X)
    assert sorted({columns[column] for column in tree.column[splits]}) == sorted(
        model.features_used_
    )
    path = model.decision_path(study.X).toarray().astype(bool)
    for node in splits:
        values = study.X.iloc[:, tree.column[node]]
        if np.isnan(tree.threshold[node]):
            assert values.dtype.kind in "bO"
            continue
        known = path[:, node] & values.notna().to_numpy()
        left = path[:, tree.children_left[node]]
        np.testing.assert_array_equal(left[known], values[known] <= tree.threshold[node])


def test_importances_are_shares_of_the_improvement(subject):
    model, study = subject.fitted()
    if "importances" in subject.cannot:
        with pytest.raises(AttributeError, match=subject.cannot["importances"]):
            _ = model.feature_importances_
        return
    found = model.feature_importances_
    assert found.shape == (4,) and found.dtype == np.float64
    assert (found >= 0).all() and found.sum() == pytest.approx(1, abs=1e-12)
    asked = [name in model.features_used_ for name in study.X]
    assert (found[~np.array(asked)] == 0).all()
    single = study.fit(subject.make(**{subject.depth: 0}))
    np.testing.assert_array_equal(single.feature_importances_, np.zeros(4))
    assert not hasattr(subject.make(), "feature_importances_")
    # Weights are distinct, so no two trees are equally good.
    weight, order = np.random.default_rng(1).uniform(0.5, 2.0, 80), [2, 0, 3, 1]
    one, turned = (
        study.of(X).fit(subject.make(), sample_weight=weight).feature_importances_
        for X in (study.X, study.X.iloc[:, order])
    )
    np.testing.assert_allclose(turned, one[order], atol=1e-9)


def test_the_only_column_asked_about_has_all_the_importance(subject):
    if "importances" in subject.cannot:
        pytest.skip("has no importances")
    model, study = subject.fitted(**{subject.depth: 1})
    (asked,) = model.features_used_
    expected = [float(name == asked) for name in study.X]
    np.testing.assert_allclose(model.feature_importances_, expected, atol=1e-12)


# Leaves


def test_times_in_the_table_of_leaves_need_curves(subject):
    model, _ = subject.fitted()
    if model.leaves_.has_curves:
        assert len(model.leaf_table(times=[3.5]).columns) > len(model.leaf_table().columns)
        return
    with pytest.raises(ValueError, match="times needs a tree that predicts survival"):
        model.leaf_table(times=[3.5])


@pytest.mark.parametrize("container", ["pandas", "polars", "array"])
def test_the_leaf_table_is_of_the_users_kind(subject, container):
    study = subject.study()
    made = {
        "pandas": (lambda X: X, pd.DataFrame),
        "polars": (pl.from_pandas, pl.DataFrame),
        "array": (lambda X: X.to_numpy(), pd.DataFrame),
    }
    convert, kind = made[container]
    X = convert(study.X)
    weight = np.linspace(0.5, 2.0, 80)
    model = study.of(X).fit(subject.make(), sample_weight=weight)
    table = model.leaf_table()
    assert type(table) is kind
    names = list(table.columns)
    assert names[0] == "leaf"
    assert {"n_samples", "weight", *subject.table} <= set(names)
    leaf = model.apply(X)
    leaves, counts = np.unique(leaf, return_counts=True)
    columns = {name: np.asarray(table[name]) for name in names}
    np.testing.assert_array_equal(columns["leaf"], leaves)
    np.testing.assert_array_equal(columns["n_samples"], counts)
    expected = [weight[leaf == node].sum() for node in leaves]
    np.testing.assert_allclose(columns["weight"], expected, rtol=1e-12)
    with pytest.raises(NotFittedError):
        subject.make().leaf_table()


def test_fitted_arrays_cannot_be_changed(subject):
    model, _ = subject.fitted()
    for name in dir(model):
        if name.endswith("_") and not name.startswith("_"):
            value = getattr(model, name)
            if isinstance(value, np.ndarray) and value.size:
                before = value.copy()
                if value.flags.writeable:  # a copy
                    value[...] = value.flat[-1]
                np.testing.assert_array_equal(getattr(model, name), before, err_msg=name)
