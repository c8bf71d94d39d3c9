"""Partitions on a Dask cluster with two worker processes; one is killed."""

import os
import pickle
import signal
import threading
import time
from copy import deepcopy

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from test_scale import FEATURES, random_table

from bristlecone import (
    BinaryEncoder,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    SoftSurvivalTree,
    load_model,
    outcome,
    save_model,
)
from bristlecone.exceptions import InvalidParameterError
from bristlecone.scale import (
    DaskOptimalSurvivalTree,
    DaskOptimalTreeClassifier,
    fit_partitions,
    predict_partitions,
)
from bristlecone.trust import verify
from bristlecone.tune import TreeSizeCV

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLAIN = [name for name in FEATURES if name != "grade"]


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def table():
    return random_table(0)


@pytest.fixture(scope="module")
def whole(table):
    tree = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4))
    return tree.fit(table[PLAIN], outcome(table["event"], table["time"]))


def dask_frame(table, n_parts=5):
    return dd.from_pandas(table.reset_index(drop=True), npartitions=n_parts, sort=False)


@pytest.mark.slow
def test_tree_of_a_cluster_is_that_of_one_frame(client, table, whole):
    frame = dask_frame(table)
    tree = DaskOptimalSurvivalTree(
        client=client, max_depth=2, encoder=BinaryEncoder(n_thresholds=4)
    ).fit(frame[PLAIN], frame[["event", "time"]])
    local = tree.to_local()
    assert type(local) is OptimalSurvivalTree
    assert tree.objective_value_ == whole.objective_value_
    assert tree.lower_bound_ == whole.lower_bound_
    pd.testing.assert_frame_equal(local.leaf_table(), whole.leaf_table(), check_exact=True)
    for got, expected in (
        (tree.predict(frame), whole.predict(table)),
        (tree.apply(frame), whole.apply(table)),
        (
            tree.predict_survival_function(frame, times=[20.0, 80.0]),
            whole.predict_survival_function(table, times=[20.0, 80.0]),
        ),
    ):
        assert np.array_equal(got.compute().to_numpy(), expected)
        assert np.array_equal(got.compute().index, frame.index.compute())
    # Without Dask, as before.
    assert np.array_equal(tree.predict(table), whole.predict(table))


@pytest.mark.slow
def test_classifier_with_weights(client, table, tmp_path):
    frame = dask_frame(table)
    weight = table["weight"] + 1.0
    whole = OptimalTreeClassifier(max_depth=2, encoder=BinaryEncoder()).fit(
        table[PLAIN], table["label"].astype(str), weight
    )
    tree = DaskOptimalTreeClassifier(client=client, max_depth=2, encoder=BinaryEncoder())
    tree.fit(frame[PLAIN], frame["label"], frame["weight"] + 1.0)
    assert tree.objective_value_ == pytest.approx(whole.objective_value_, rel=1e-13)
    shares = tree.predict_proba(frame).compute()
    assert shares.columns.tolist() == whole.classes_.tolist()
    np.testing.assert_allclose(shares, whole.predict_proba(table), rtol=1e-12)
    save_model(tree.to_local(), tmp_path / "tree.json")
    loaded = load_model(tmp_path / "tree.json")
    assert loaded.predict(table).tolist() == tree.predict(frame).compute().tolist()


def slowly(part):
    time.sleep(0.1)
    return part


@pytest.mark.slow
def test_a_worker_that_dies_changes_nothing(client, table, whole):
    frame = dask_frame(table, 20).map_partitions(slowly, meta=table[:0])
    victims = []

    def kill(progress):
        if progress.name == "sums" and progress.n_parts >= 3 and not victims:
            pids = client.run(os.getpid)
            victims.extend(pids.values())
            os.kill(victims[0], signal.SIGKILL)

    tree = fit_partitions(
        OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4)),
        frame[[*PLAIN, "time", "event"]],
        client=client,
        callback=lambda progress: kill(progress) if hasattr(progress, "n_parts") else None,
    )
    assert victims
    assert tree.objective_value_ == whole.objective_value_
    assert tree.lower_bound_ == whole.lower_bound_
    pd.testing.assert_frame_equal(tree.leaf_table(), whole.leaf_table(), check_exact=True)


def negative_in_the_third(part, partition_info=None):
    if partition_info is not None and partition_info["number"] == 2:
        return part.assign(time=-1.0)
    return part


@pytest.mark.slow
def test_errors_of_workers_name_the_partition(client, table):
    frame = dask_frame(table).map_partitions(negative_in_the_third, meta=table[:0])
    tree = DaskOptimalSurvivalTree(client=client)
    with pytest.raises(ValueError, match=r"^Dask partition 2: .*time.* is -1.0 in row 0"):
        fit_partitions(OptimalSurvivalTree(), frame[[*PLAIN, "time", "event"]], client=client)
    with pytest.raises(ValueError, match=r"^Dask partition 2: .*'time' of y is -1.0 in row 0"):
        tree.fit(frame[PLAIN], frame[["time", "event"]])
    with pytest.raises(InvalidParameterError, match="X is a DataFrame; expected a Dask"):
        tree.fit(table[PLAIN], table[["time", "event"]])
    with pytest.raises(ValueError, match="X has 5 partitions and y has 2"):
        tree.fit(frame[PLAIN], dask_frame(table, 2)[["time", "event"]])


@pytest.mark.slow
def test_parquet_on_a_cluster(client, table, whole, tmp_path):
    columns = [*PLAIN, "time", "event"]
    for start in range(0, 300, 60):
        table[columns][start : start + 60].to_parquet(tmp_path / f"{start:03}.parquet")
    tree = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4))
    fit_partitions(tree, tmp_path, client=client)
    assert tree.objective_value_ == whole.objective_value_
    lazily = predict_partitions(tree, dd.read_parquet(tmp_path))
    assert np.array_equal(lazily.compute(), whole.predict(table))
    parts = list(predict_partitions(tree, tmp_path, "predict_median"))
    assert np.array_equal(np.concatenate(parts), whole.predict_median(table))


def test_other_methods_ask_for_rows_in_memory(table):
    frame = dask_frame(table, 2)
    X, y = frame[PLAIN], frame[["event", "time"]]
    own, outcomes = X.compute(), y.compute()
    tree = DaskOptimalSurvivalTree(max_depth=1).fit(X, y)
    for use in (tree.score, tree.log_likelihood, tree.size_path, tree.estimate_cost):
        with pytest.raises(TypeError, match=r"X is a dask DataFrame.*call compute\(\) first"):
            use(X, y)
        with pytest.raises(TypeError, match=r"y is a dask DataFrame.*call compute\(\) first"):
            use(own, y)
        use(own, outcomes)
    with pytest.raises(TypeError, match=r"call compute\(\) first"):
        DaskOptimalTreeClassifier(max_depth=1).pareto_front(X, frame["label"])
    assert verify(tree, own, outcomes).ok


def test_dask_frame_without_a_cluster(table, whole):
    frame = dask_frame(table)[[*PLAIN, "time", "event"]]
    tree = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4))
    result = []

    def fit():  # a new thread has no current client
        result.append(fit_partitions(tree, frame, n_jobs=2))

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert result[0].objective_value_ == whole.objective_value_


def test_partitions_are_the_same_for_few_columns_as_for_many(table, whole, tmp_path):
    """Dask joins partitions of files when only a few of their columns are read."""
    unused = [f"unused {k}" for k in range(30)]
    wide = table[[*PLAIN, "time", "event"]].assign(**dict.fromkeys(unused, 0.0))
    for part, start in enumerate(range(0, len(wide), 60)):
        wide[start : start + 60].to_parquet(tmp_path / f"{part}.parquet", index=False)
    frame = dd.read_parquet(tmp_path)
    tree = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4))
    fit_partitions(tree, frame, drop=unused)
    assert tree.objective_value_ == whole.objective_value_
    own = DaskOptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4))
    own.fit(frame[PLAIN], frame[["event", "time"]])
    assert own.objective_value_ == whole.objective_value_


def test_predicted_labels_of_text_are_written_to_parquet(table, tmp_path):
    frame = dask_frame(table)
    tree = OptimalTreeClassifier(max_depth=1).fit(table[PLAIN], table["label"])
    for rows in (frame, frame[frame["age"] > 60], frame[frame["age"] > 1000]):
        labels = predict_partitions(tree, rows)
        assert labels.dtype == labels.compute().dtype
        labels.to_frame().to_parquet(tmp_path, overwrite=True, write_index=False)
        expected = tree.predict(rows.compute()).tolist()
        assert pd.read_parquet(tmp_path)["predict"].tolist() == expected


def test_no_rows_of_a_dask_frame_joined_to_some_of_its_own_are_lost(table):
    frame, older = (
        one[[*PLAIN, "time", "event"]] for one in (dask_frame(table), table[table["age"] > 60])
    )
    tree = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4))
    fit_partitions(tree, dd.concat([frame, frame[frame["age"] > 60]]))
    rows = pd.concat([table, older], ignore_index=True)
    assert verify(tree, rows[PLAIN], outcome(rows["event"], rows["time"])).ok


def test_columns_of_dask_that_do_not_belong_together_are_refused(table):
    table = table.reset_index(drop=True)
    frame = dask_frame(table, 1)
    turned = dd.from_pandas(table[::-1], npartitions=1, sort=False)
    surviving, labelled = (
        kind(max_depth=1) for kind in (DaskOptimalSurvivalTree, DaskOptimalTreeClassifier)
    )
    X, y = frame[PLAIN], frame[["event", "time"]]
    ages = frame[["age"]].to_dask_array()
    numbered = dd.from_pandas(table[PLAIN].set_axis(range(len(PLAIN)), axis=1), npartitions=1)
    for tree, *given, message in (
        (surviving, X, turned[["event", "time"]], "X and y have the same index in another order"),
        (surviving, X, y, turned["weight"], "X and sample_weight have the same index in another"),
        (labelled, X, turned["label"], "X and y have the same index in another order"),
        (labelled, X, frame[["label", "event"]], "y has 2 columns; expected one, with the labels"),
        (labelled, numbered, frame["label"], "column names must be strings; got 0"),
        (labelled, frame["age"], frame["label"], "X is a Series of Dask; expected a DataFrame"),
        (labelled, ages, frame["label"], "X is an Array of Dask; expected a DataFrame"),
    ):
        with pytest.raises(ValueError, match=message):
            tree.fit(*given)
    with pytest.raises(InvalidParameterError, match="a Dask DataFrame; got Array"):
        fit_partitions(OptimalSurvivalTree(), ages)


@pytest.mark.slow
def test_a_client_of_another_type_is_named(table):
    frame = dask_frame(table)
    with pytest.raises(InvalidParameterError, match="client must be a distributed"):
        tree = DaskOptimalSurvivalTree(client="scheduler:8786")
        tree.fit(frame[PLAIN], frame[["event", "time"]])


@pytest.mark.parametrize("kind", [DaskOptimalSurvivalTree, DaskOptimalTreeClassifier])
def test_clones_keep_the_client_and_pickles_leave_it_out(kind):
    tree = kind(max_depth=2, client=threading.Lock())  # as little to be copied as a client
    with config_context(enable_metadata_routing=True):
        cloned = clone(tree.set_fit_request(sample_weight=True))
        assert cloned.get_metadata_routing().fit.requests["sample_weight"]
    assert cloned.client is tree.client and cloned.max_depth == 2
    for other in (pickle.loads(pickle.dumps(tree)), deepcopy(tree)):
        assert other.client is None and other.max_depth == 2


@pytest.mark.slow
def test_joblib_on_the_cluster(client, table):
    X, y = table[["age", "flag"]], outcome(table["event"], table["time"])
    alone = TreeSizeCV(OptimalSurvivalTree(max_depth=2), cv=3).fit(X, y)
    soft = SoftSurvivalTree(depth=1, n_restarts=2, random_state=0)
    one = soft.fit(X, y).objective_value_
    with joblib.parallel_config("dask"):
        there = TreeSizeCV(OptimalSurvivalTree(max_depth=2), cv=3, n_jobs=2).fit(X, y)
        two = SoftSurvivalTree(depth=1, n_restarts=2, random_state=0, n_jobs=2).fit(X, y)
    assert there.best_n_leaves_ == alone.best_n_leaves_
    np.testing.assert_array_equal(
        there.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
    assert two.objective_value_ == one
