"""Random trees over odd columns as programs with the leaves and predictions of the tree."""

import json
import warnings

import numpy as np
from fuzz_encoder import encoders, table, table_like
from test_export_forms import holds
from test_export_programs import agree, by_duckdb, by_onnx, by_python, by_sqlite, times_of

from bristlecone import (
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)
from bristlecone.exceptions import BristleconeWarning
from bristlecone.export import export_rules
from bristlecone.export._program import program_of


def tree(rng):
    """A fitted tree, its rows and others, at thresholds and with missing values."""
    n = int(rng.integers(8, 60))
    X = table(rng, n)
    encoder = encoders(rng).set_params(handle_unknown="ignore", max_features=8)
    depth, signal = int(rng.integers(0, 5)), rng.normal(size=n)
    kind = rng.integers(4)
    if kind == 0:
        model = OptimalTreeClassifier(max_depth=depth, encoder=encoder)
        labels = [["no", "it's"], [0, 1], [0.0, 2.0], ["a", "ö"]][rng.integers(4)]
        model.fit(X, np.array(labels)[(signal > 0).astype(int)])
    elif kind == 1:
        model = OptimalTreeRegressor(max_depth=depth, encoder=encoder, shrinkage=rng.choice([0, 2]))
        model.fit(X, signal * rng.choice([1e-140, 1.0, 1e100]))
    else:
        event = rng.random(n) < 0.8
        event[0] = True
        y = (event, np.ceil(20 * rng.exponential(size=n)) / 10)
        kinds = OptimalSurvivalTree, GreedySurvivalTree
        model = kinds[kind - 2](
            max_depth=depth, encoder=encoder, min_events_leaf=None,
            leaf_curve=str(rng.choice(["kaplan-meier", "proportional"])),
        ).fit(X, y)  # fmt: skip
    rows = table_like(rng, X)
    return model, X if rng.random() < 0.5 else rows


def exports(rng):
    """All programs of one tree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        try:
            model, X = tree(rng)
        except ValueError as error:
            assert "column" in str(error), error
            return "refused"
        X = X.astype(object)
        model.apply(X)
        options = times_of(model)
        agree(model, X, by_python(model, X, **options))
        rules(model, X)
        if not any("" in levels for levels in program_of(model, "fuzz").levels.values()):
            # If the empty text is a category, there is an error and no file.
            agree(model, X, by_onnx(model, X, **options))
        dialect = str(rng.choice(["ansi", "sqlite"]))
        agree(model, X, by_sqlite(model, X, dialect=dialect, **options))
        if rng.random() < 0.3:
            agree(model, X, by_duckdb(model, X, dialect="duckdb", **options))
    return f"{model.n_leaves_} leaves"


def rules(model, X):
    """Every row satisfies exactly one rule."""
    found = export_rules(model)
    parsed = [json.loads(text) for text in found["conditions"]]
    for row, leaf in zip(X.to_dict("records"), model.apply(X), strict=True):
        inside = [all(holds(one, row[one["column"]]) for one in each) for each in parsed]
        assert found["leaf"][inside].tolist() == [leaf]
