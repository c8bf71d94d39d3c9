"""Fits over random partitions of random problems, compared with all trees."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pandas as pd
from checks import PROOF, check_certificate, fitted, is_at_most, is_near, shown
from drawing import Amount
from opinions import check_verified

from bristlecone import BinaryEncoder
from bristlecone._estimators.searched import again
from bristlecone._search.engine import sum_tasks
from bristlecone.exceptions import InvalidParameterError
from bristlecone.scale import PartialSums, fit_partitions

# Arguments of ``fit`` for parameters that are rejected.
UNUSED = "predicted_outcomes", "sensitive_features"
# Parameters with constraints that sums cannot check.
REFUSED = "fairness", "capacities", "min_samples_treatment"


def a_fit_over_parts_finds_the_best_tree(problem, rng):
    model = problem.make().set_params(encoder="auto")
    table, roles = table_of(problem)
    ends = np.sort(rng.integers(0, len(table) + 1, int(rng.integers(1, 5))))
    parts = [table[a:b] for a, b in zip([0, *ends], [*ends, len(table)], strict=True)]
    parts = [part for part in parts if len(part)]
    parts = [parts[k] for k in rng.permutation(len(parts))]
    n_jobs = int(rng.integers(1, 3))
    try:
        fit_partitions(model, parts, n_jobs=n_jobs, **roles)
    except InvalidParameterError as error:
        words = ("rows", "max_depth=4", "front", "teacher", "capacities", "predicted outcomes")
        assert any(word in str(error) for word in words), error
        return ["refused"]
    except ValueError as error:
        is_squared = problem.parameters.get("objective") == "squared-error"
        if is_squared and "certain to" in str(error) and is_almost_perfect(problem):
            return ["almost perfect"]
        raise
    paid = problem.parameters.get("feature_costs") is not None
    if paid and len(model.encoder_.features_) < problem.X.shape[1]:
        # The encoder keeps one of several equal features, whatever their prices.
        return ["equal features"]
    check_certificate(problem, model)
    fit = {name: one for name, one in problem.fit.items() if name not in UNUSED}
    check_verified(model, problem.X, fit)
    whole = problem.make().set_params(encoder=BinaryEncoder())
    whole.fit(table[list(model.feature_names_in_)], **fit)
    assert model.encoder_.to_dict() == whole.encoder_.to_dict()
    if problem.fit.get("sample_weight") is None:
        assert model.objective_value_ == whole.objective_value_
        # The bound allows for lost digits, which other searches may not lose.
        bound = Amount(Fraction(model.lower_bound_), problem.value(model).terms)
        assert is_near(whole.lower_bound_, bound)
    # With finer numbers, other trees may be equally good.
    assert np.array_equal(model.tree_.feature, whole.tree_.feature) or problem.wide
    return ["fitted"]


def sums_of_parts_give_the_best_tree(problem, rng):
    problem = problem.without_reference()
    if any(problem.parameters.get(name) for name in REFUSED):
        return ["refused"]
    model = fitted(problem)
    asked = again(model, problem.X, **problem.fit)
    task = asked.search.objective.task_of(asked.problem)
    depth = asked.search.limits.depth(asked.problem.features.shape)
    if task.name not in sum_tasks() or not 1 <= depth <= 4:
        return ["refused"]
    features = np.asarray(asked.problem.features).astype(bool)
    settings = {
        "n_features": features.shape[1],
        "max_depth": depth,
        "max_leaf_nodes": model.max_leaf_nodes,
        "leaf_penalty": model.leaf_penalty,
        "flipped": rng.random(features.shape[1]) < 0.5,
        **asked.problem.least,
    }
    # Every row has a different outcome.
    counts, part = np.ones(len(features), int), rng.integers(0, 4, len(features))
    whole = PartialSums(task.name, task.data, counts, **settings)
    for own in np.unique(part):
        sums = PartialSums(task.name, task.data, counts, **settings)
        rows = np.flatnonzero(part == own)
        sums.add(features[rows], rows)
        whole.merge(PartialSums.from_bytes(sums.to_bytes()) if rng.random() < 0.5 else sums)
    best, leaf = problem.optimum(problem.most_leaves)[0], problem.optimum(1)[0]
    perfect = is_almost_perfect(problem)
    try:
        found = whole.solve()
    except ValueError as error:
        if str(error).startswith("sums give the objective") and perfect:
            return ["almost perfect"]
        raise
    if perfect and not problem.penalty:
        best = Amount(best.value, leaf.terms)
    assert found.status == "optimal", found.status
    assert is_near(found.objective_value, best), (found.objective_value, shown(best))
    assert is_at_most(found.lower_bound, best, PROOF), (found.lower_bound, shown(best))
    assert found.lower_bound <= found.objective_value
    return ["summed"]


def is_almost_perfect(problem):
    """Whether the loss of the best tree may be below the resolution of sums."""
    best, leaf = problem.optimum(problem.most_leaves)[0], problem.optimum(1)[0]
    return abs(best.value) < 1e-4 * leaf.terms


def table_of(problem):
    """The rows as a frame with columns for all arguments."""
    X = np.asarray(problem.X)
    columns = {f"x{k}": X[:, k] for k in range(X.shape[1])}
    roles = {"time": None, "event": None}
    given = dict(problem.fit)
    y = given.pop("y")
    for name in UNUSED:
        given.pop(name, None)
    if isinstance(y, tuple):
        columns["event"], columns["time"] = y
        roles |= {"event": "event", "time": "time"}
    elif getattr(y, "dtype", None) is not None and y.dtype.names:
        event, time, *entry = y.dtype.names
        columns |= {"event": y[event], "time": y[time]}
        roles |= {"event": "event", "time": "time"}
        if entry:
            columns["entry"] = y[entry[0]]
            roles["entry"] = "entry"
    else:
        columns["target"] = np.asarray(y)
        roles["target"] = "target"
    names = {"sample_weight": "weight", "costs": "costs", "propensity": "propensity"}
    for name, values in given.items():
        if values is None:
            continue
        if isinstance(values, Mapping):
            values = [values[arm] for arm in np.asarray(given["treatment"]).tolist()]
        elif np.ndim(values) == 0:
            values = np.full(len(X), values)
        role, values = names.get(name, name), np.asarray(values)
        if values.ndim == 1 and role != "costs":
            columns[role], roles[role] = values, role
        else:
            own = [f"{role} {k}" for k in range(values.shape[1])]
            columns |= dict(zip(own, values.T, strict=True))
            roles[role] = own
    return pd.DataFrame(columns), roles
