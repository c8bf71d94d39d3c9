"""Problems of classification, regression, costs, policies and fairness: binary matrices.

The published sets lie beside the repository; generated ones need nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

Labelled = tuple[np.ndarray, dict[str, np.ndarray]]

DATA = Path(__file__).parents[2] / "shared" / "data"


def classification(name: str) -> Labelled:
    """Return a binarised UCI set of the STreeD study; the label comes first."""
    values = np.loadtxt(_file("classification", name))
    return _binary(values[:, 1:]), {"y": values[:, 0].astype(np.int64)}


def osdt(name: str) -> Labelled:
    """Return a set of the OSDT study; numeric columns become one column per distinct value."""
    values = np.loadtxt(_file("osdt", name), delimiter=";", skiprows=1)
    columns = []
    for column in values[:, :-1].T:
        distinct = np.unique(column)
        levels = [1.0] if set(distinct) <= {0.0, 1.0} else distinct
        columns += [column == level for level in levels]
    _, y = np.unique(values[:, -1], return_inverse=True)
    return _binary(np.stack(columns, axis=1)), {"y": y.astype(np.int64)}


def cost_sensitive(name: str, level: str) -> Labelled:
    """Return a training split of the STreeD study with its costs of labels and of questions."""
    values = np.loadtxt(_file("cost-sensitive", f"{name}-train-1"))
    lines = _file("cost-sensitive", f"{name}-{level}-costs").read_text().split("\n")
    header = next(k for k, line in enumerate(lines) if line.startswith("Attribute-name"))
    n_features = values.shape[1] - 1
    cost, discount = np.zeros(n_features), np.zeros(n_features)
    origin, group = np.zeros(n_features, np.int64), np.full(n_features, -1)
    groups: dict[str, int] = {}
    for number, line in enumerate(filter(None, lines[header + 1 :])):
        _, price, discounted, letter, first, last = line.split()
        columns = slice(int(first), int(last) + 1)
        cost[columns], discount[columns] = float(price), float(discounted)
        origin[columns] = number
        if letter != "x":
            group[columns] = groups.setdefault(letter, len(groups))
    return _binary(values[:, 1:]), {
        "y": values[:, 0].astype(np.int64),
        "cost_matrix": np.array([line.split() for line in lines[:header] if line], np.float64),
        "feature_cost": cost,
        "feature_discount": discount,
        "feature_origin": origin,
        "feature_group": group,
    }


def warfarin(name: str) -> Labelled:
    """Return a training set of warfarin policies of the STreeD study."""
    values = np.loadtxt(_file("policy", name))
    return _binary(values[:, 11:]), {
        "treatment": values[:, 0].astype(np.int64),
        "outcome": values[:, 2],
        "propensity": values[:, 3],
        "predicted": values[:, 4:7],
    }


def fairness(name: str, delta: float) -> Labelled:
    """Return a fairness set of the STreeD study; the first feature is the sensitive one."""
    values = np.loadtxt(_file("fairness", f"{name}-binarized"))
    X = _binary(values[:, 1:])
    return X, {
        "y": values[:, 0].astype(np.int64),
        "group": X[:, 0].astype(np.int64),
        "delta": np.array([delta]),
    }


def labels(rows: int, features: int, classes: int, seed: int) -> Labelled:
    """Return independent fair 0/1 features, noisy classes, and everything the objectives ask."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(rows, features), dtype=np.uint8)
    y = (X[:, 0] + 2 * (X[:, 1] & X[:, 2]) + rng.integers(0, 2, size=rows)) % classes
    cost = np.round(rng.uniform(0, 0.2, size=features), 3)
    return X, {
        "y": y.astype(np.int64),
        "cost_matrix": np.round(rng.uniform(0.5, 2, size=(classes, classes)), 3)
        * (1 - np.eye(classes)),
        "feature_cost": cost,
        "feature_discount": cost / 2,
        "feature_origin": np.arange(features) // 2,
        "feature_group": np.arange(features) % 2,
        "treatment": rng.permutation(np.arange(rows) % 3),
        "outcome": rng.normal(size=rows) + X[:, 1],
        "propensity": rng.uniform(0.2, 0.8, size=rows),
        "predicted": rng.normal(size=(rows, 3)) + X[:, :3],
        "group": X[:, -1].astype(np.int64),
        "delta": np.array([0.05]),
    }


def covariate(name: str, target: str) -> Labelled:
    """Return a set of the SurvSet package whose target is one of its covariates."""
    from SurvSet.data import SurvLoader

    from bristlecone import BinaryEncoder

    frame = SurvLoader().load_dataset(name)["df"]
    frame = frame[frame[target].notna()]
    features = frame.drop(columns=["pid", "event", "time", target])
    X = np.asarray(BinaryEncoder().fit_transform(features), dtype=np.uint8)
    return X, {"y": frame[target].to_numpy(np.float64)}


def targets(rows: int, features: int, seed: int) -> Labelled:
    """Return independent fair 0/1 features and normal targets; three features act on the mean."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(rows, features), dtype=np.uint8)
    return X, {"y": 2.0 * X[:, 0] - (X[:, 1] & X[:, 2]) + rng.normal(size=rows)}


def _file(folder: str, name: str) -> Path:
    path = DATA / folder / f"{name}.csv"
    return path if path.exists() else path.with_suffix(".csv.gz")


def _binary(values: np.ndarray) -> np.ndarray:
    if not np.isin(values, (0, 1)).all():
        raise ValueError("the features are not binary")
    return np.ascontiguousarray(values, dtype=np.uint8)


SOURCES: dict[str, Callable[..., Labelled]] = {
    "classification": classification,
    "osdt": osdt,
    "cost-sensitive": cost_sensitive,
    "warfarin": warfarin,
    "fairness": fairness,
    "labels": labels,
    "covariate": covariate,
    "targets": targets,
}
