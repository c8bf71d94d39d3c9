"""Hand-made trees, leaves and certificates of every kind, and the models with them in a file."""

import numpy as np
import pandas as pd

from bristlecone._data.survival import TrainingData
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.design import DesignEncoder
from bristlecone._encoder.rules import question_names
from bristlecone._encoder.use import split_columns
from bristlecone._leaves.labels import ClassLeaves
from bristlecone._leaves.means import MeanLeaves
from bristlecone._leaves.policies import PolicyLeaves
from bristlecone._leaves.rates import RateLeaves
from bristlecone._leaves.smooth import SmoothLeaves
from bristlecone._leaves.statistics import SurvivalRows
from bristlecone._leaves.survival import StepLeaves
from bristlecone._model import document
from bristlecone._search.certificate import Certificate, GroupValues, Teaching
from bristlecone._soft.models import MODELS, Sample
from bristlecone._soft.tree import SoftTree
from bristlecone._tree import Tree


def frame(n=80, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["Größe", "x: 1"])
    table["sort"] = rng.choice(["a", 'b"\\', "c"], size=n)
    table.loc[3, "Größe"] = np.nan
    return table


def rows(n=80, *, weighted=False, entry=False, seed=0):
    rng = np.random.default_rng(seed + 1)
    time = np.ceil(20 * rng.exponential(size=n)) + 1
    event = rng.random(n) < 0.6
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    return TrainingData(None, event, time, weight, np.floor(time / 2) if entry else None)


def tree_of(encoder, features, data, **more):
    left, right = [1, 2, -1, -1, -1], [4, 3, -1, -1, -1]
    # The root takes the best split, and its left child another one.
    asked = np.argsort(np.abs(features.mean(axis=0) - 0.5))[:2]
    feature = [int(asked[0]), int(asked[1]), -2, -2, -2]
    column, threshold = split_columns(encoder, np.array(feature))
    structure = np.array(left), np.array(right), np.array(feature)
    more |= {"threshold": threshold, "column": column}
    return Tree.grown(*structure, features, data.weight, **more)


def teaching(name, members=()):
    moments = 0.5, np.float64(0.375), 0.0, 1.0
    return Teaching(name, 0.5, np.int64(5), 3, members, -0.25, moments, np.float64(0.625))


def certificate(parameters, n_samples, questions, **more):
    values = {
        "aim": "the least loss",
        "status": "optimal",
        "objective_value": 0.5,
        "lower_bound": 0.5,
        "binary_features": questions,
        "parameters": parameters,
        "settings": {"min_events_leaf": 5, "prior": np.float64(10.0)},
        "trace": ((0.0, np.inf, -np.inf), (0.1, 0.5, 0.5)),
        "n_nodes_explored": np.int64(12),
        "seconds": 0.25,
        "n_samples": n_samples,
        "fingerprint": "0" * 64,
        "remarks": (("loss", "its own"),),
        "groups": GroupValues(np.array(["f", "m"]), np.array([1.5, 2.5])),
    }
    return Certificate(**values | more)


def step_leaves(tree, features, data, curve, *, prior=0.0, shrinkage=0.0):
    rows = SurvivalRows(data, prior)
    leaf = tree.apply(features)
    statistics = rows.statistics(tree, leaf)
    by_theta = curve == "proportional"
    return StepLeaves.grown(
        tree, leaf, rows, statistics, curve=curve, by_theta=by_theta, shrinkage=shrinkage
    )


def step(curve="proportional", *, weighted=False, entry=False, prior=0.0, shrinkage=0.0, n=80):
    """The parts of a tree with step curves, and the features of its rows."""
    table, data = frame(n), rows(n, weighted=weighted, entry=entry)
    encoder = BinaryEncoder().fit(table)
    features = encoder.transform(table)
    tree = tree_of(encoder, features, data, improvement=np.array([0.2, np.nan, 0, 0, 0]))
    leaves = step_leaves(tree, features, data, curve, prior=prior, shrinkage=shrinkage)
    parameters = {
        "encoder": BinaryEncoder(n_thresholds=np.int64(10)),
        "shrinkage": shrinkage if shrinkage else "auto",
        "time_grid": np.arange(3.0),
        "costs": {1: 0.5, "a": [1, 2]},
    }
    return (
        "OptimalSurvivalTree",
        tree,
        leaves,
        encoder,
        certificate(parameters, n, question_names(encoder)),
    ), features


def greedy():
    table, data = frame(), rows()
    encoder = BinaryEncoder().fit(table)
    features = encoder.transform(table)
    tree = tree_of(encoder, features, data)
    leaves = step_leaves(tree, features, data, "proportional", prior=10.0)
    proof = certificate(
        {"encoder": None},
        80,
        question_names(encoder),
        status="grown",
        lower_bound=-np.inf,
        groups=None,
        trace=(),
    )
    return ("GreedySurvivalTree", tree, leaves, encoder, proof), features


def soft(leaf="weibull"):
    table, data = frame(), rows()
    encoder = DesignEncoder().fit(table, None)
    design = encoder.transform(table)
    rng = np.random.default_rng(2)
    width = design.shape[1]
    tree = SoftTree.grown(
        2, rng.normal(size=(3, width)), rng.normal(size=3), design, np.ones(len(design))
    )
    sample = Sample(np.log(data.time), data.event, np.full(80, 1 / 80))
    model = MODELS[leaf].prepare(sample, 2)
    leaves = SmoothLeaves.grown(
        tree,
        model,
        rng.normal(size=(4, width + 1)),
        rng.normal(size=(4, model.n_shape)),
        1.5,
        SurvivalRows(data),
        design,
    )
    proof = certificate(
        {"leaf": leaf, "l2": 0.1},
        80,
        (),
        status="trained",
        settings={"l2": 0.1},
        lower_bound=-np.inf,
        trace=((3.0,), (2.5,)),
        facts={"restart_objectives": [2.5, 2.7], "converged": True},
    )
    return ("SoftSurvivalTree", tree, leaves, encoder, proof), design


def _by_label(make):
    table, data = frame(), rows(weighted=True)
    encoder = BinaryEncoder().fit(table)
    features = encoder.transform(table)
    tree = tree_of(encoder, features, data)
    estimator, leaves, parameters = make(tree)
    more = {}
    if estimator == "OptimalTreeClassifier":
        parameters = {**parameters, "teacher": "auto"}
        more["teacher"] = teaching("auto", ("ridge", "forest"))
    if estimator == "OptimalTreeRegressor":
        parameters = {**parameters, "teacher": None}
        more["teacher"] = teaching("Größe()")
    return (
        estimator,
        tree,
        leaves,
        encoder,
        certificate(parameters, 80, question_names(encoder), **more),
    ), features


def classes(labels=("a", "b"), *, shrinkage=0.0, objective="accuracy", price=None):
    values = np.array([[1.0, 2.5], [3.0, 0.25], [0.0, 4.0]])

    def make(tree):
        balanced = objective == "balanced-accuracy"
        shares = ClassLeaves.shares_of(tree, values, shrinkage, balanced=balanced)
        best = values.argmax(axis=1)
        leaves = ClassLeaves(np.array(labels), best, values, shrinkage, shares, price)
        parameters = {"shrinkage": shrinkage, "objective": objective, "encoder": "auto"}
        return "OptimalTreeClassifier", leaves, parameters

    return _by_label(make)


def policy(horizon=None):
    def make(tree):
        values = np.array([[1.0, -2.5, 0.0], [3.0, 0.25, 1.0], [0.0, 4.0, 2.0]])
        labels = np.array(["2020-02-29", "2021-01-01", "2022-01-01"], "M8[D]")
        root = np.array([[[1.0, 0.5, k], [-0.25, 1e-300, 0.0], [0.0, 2.0, 1.0]] for k in range(3)])
        treated = np.zeros((3, 3), dtype=np.int64)
        treated[:, 1] = tree.n_node_samples[tree.leaves]
        leaves = PolicyLeaves(
            labels,
            np.array([0, 2, 1]),
            values,
            root @ root.transpose(0, 2, 1),
            treated,
            None if horizon is None else treated // 3,
            np.diag([1.0, 0.25, np.inf, 3.0]),
        )
        return "PolicyTree", leaves, {"capacities": None, "horizon": horizon}

    return _by_label(make)


def means(shrinkage=3.0):
    def make(tree):
        mean, variance = np.array([1.0, -0.1, 1e300]), np.array([0.0, 0.5, 2.0])
        predicted = MeanLeaves.shrunk(tree, mean, shrinkage)
        quantiles = np.sort(np.random.default_rng(3).normal(size=(3, 7)), axis=1)
        leaves = MeanLeaves(mean, variance, quantiles, shrinkage, predicted)
        return "OptimalTreeRegressor", leaves, {"shrinkage": shrinkage, "encoder": "auto"}

    return _by_label(make)


def rates(shrinkage=3.0):
    def make(tree):
        mean, count, exposure = np.array([[1.0, 0.5, 0.0], [8.0, 3.5, 0.0], [8.0, 7.0, 2.5]])
        size = None if shrinkage == 0 else exposure * 0.7
        predicted = MeanLeaves.shrunk(tree, mean, shrinkage, size)
        quantiles = np.sort(np.random.default_rng(3).random(size=(3, 7)), axis=1)
        known = mean, np.array([0.0, 0.5, 2.0]), quantiles, shrinkage, predicted
        leaves = RateLeaves(*known, count, exposure, size)
        parameters = {"objective": "poisson", "shrinkage": shrinkage, "encoder": "auto"}
        return "OptimalTreeRegressor", leaves, parameters

    return _by_label(make)


KINDS = {
    "proportional": step,
    "entry": lambda: step(entry=True, prior=10.0),
    "weighted": lambda: step(weighted=True, shrinkage=2.0),
    "kaplan-meier": lambda: step("kaplan-meier"),
    "kaplan-meier shrunk": lambda: step("kaplan-meier", shrinkage=20.0, weighted=True),
    "kaplan-meier rows": lambda: step("kaplan-meier", shrinkage=20.0),
    "brier-optimal": lambda: step("brier-optimal", weighted=True),
    "brier-optimal rows": lambda: step("brier-optimal"),
    "brier-optimal shrunk rows": lambda: step("brier-optimal", shrinkage=20.0),
    "brier-optimal shrunk": lambda: step("brier-optimal", shrinkage=20.0, weighted=True),
    "greedy": greedy,
    **{leaf: lambda leaf=leaf: soft(leaf) for leaf in MODELS},
    "classes": classes,
    "balanced": lambda: classes(shrinkage=2.0, objective="balanced-accuracy"),
    "priced": lambda: classes([1.5, 2.0], price=np.array([0.0, 1.0, 2.0])),
    "labels": policy,
    "labels at a horizon": lambda: policy(20.0),
    "means": means,
    "rates": rates,
    "rates unshrunk": lambda: rates(0.0),
}


def model_of(estimator, tree, leaves, encoder, proof):
    """The model as a file contains it."""
    record = document.SoftTreeRecord if isinstance(tree, SoftTree) else document.TreeRecord
    return document.seal(
        document.Model(
            format=document.FORMAT,
            version=document.VERSION,
            bristlecone="0",
            estimator=estimator,
            parameters={
                name: document.plain_parameter(name, value)
                for name, value in proof.parameters.items()
            },
            tree=record.of(tree),
            leaves=document.ESTIMATORS[estimator].of(leaves, tree),
            encoder=encoder._to_record(),
            certificate=document.CertificateRecord.of(proof),
            checksum="",
        )
    )
