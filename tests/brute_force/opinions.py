"""Second opinions on fits of random problems: verification, re-estimation, and fits to tables."""

from fractions import Fraction

import numpy as np
import pandas as pd
from checks import fitted, is_near
from drawing import Amount, as_given, one_of
from sklearn.base import clone

from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.features import Threshold
from bristlecone.exceptions import InvalidParameterError
from bristlecone.trust import verify
from bristlecone.trust._proof import slack_of


def check_verified(model, X, fit):
    rows = dict(fit)
    found = verify(model, X, rows.pop("y", None), **rows)
    assert found.ok, str(found)
    assert "lower bound" not in [check.name for check in found.not_checked] or (
        "not proven again" in found["lower bound"].reason or "no lower bound" in str(found)
    )
    return found


def a_tree_verifies(problem, rng):
    model = fitted(problem)
    if not model.certificate_.is_infeasible:
        check_verified(model, problem.X, problem.fit)


def the_rows_of_the_fit_estimate_the_same_tree(problem, rng):
    model = fitted(problem)
    if model.certificate_.is_infeasible:
        return
    rows = {name: one for name, one in problem.fit.items() if name != "reference_loss"}
    again = model.reestimate(problem.X, **rows)
    reported = Amount(Fraction(model.objective_value_), problem.value(model).terms)
    assert is_near(again.objective_value_, reported)
    check_verified(again, problem.X, rows)


def taken(values, rows):
    """These rows of an argument of ``fit``."""
    if isinstance(values, tuple):
        return tuple(taken(one, rows) for one in values)
    return values[rows] if isinstance(values, np.ndarray) else values


def other_rows_estimate_a_tree_that_verifies(problem, rng):
    problem = problem.without_reference()
    model = fitted(problem)
    if model.certificate_.is_infeasible:
        return []
    rows = rng.integers(0, len(problem.X), int(rng.integers(4, 2 * len(problem.X))))
    X, fit = problem.X[rows], {name: taken(one, rows) for name, one in problem.fit.items()}
    try:
        again = model.reestimate(X, **fit)
    except (ValueError, InvalidParameterError) as error:
        # A leaf without rows, no event, or a missing group or class is an error.
        return [f"refused: {str(error)[:40]}"]
    assert again.certificate_.status == "reestimated"
    assert np.array_equal(again.apply(problem.X), model.apply(problem.X))
    check_verified(again, X, fit)
    return ["estimated"]


LETTERS = np.array(["a", "b", "it's", "ö"], dtype=object)


def column(rng, flags):
    """A column of any kind that depends on the flags, with some missing values."""
    n = len(flags)
    near = flags ^ (rng.random(n) < 0.15)
    kind = one_of(rng, "flag", "flag", "code", "whole", "number", "close", "text", "grade", "maybe")
    if kind == "flag":
        return flags
    if kind == "code":
        return flags.astype(int)
    whole = 2 * near + rng.integers(0, 3, n)
    absent = rng.random(n) < one_of(rng, 0.0, 0.2, 0.5)
    if kind == "maybe":
        return pd.array(np.where(absent, None, near), dtype="boolean")
    if kind in ("whole", "number", "close"):
        scale = {"whole": 1.0, "number": 0.7, "close": np.finfo(float).eps}[kind]
        values = whole * scale + (kind == "close")
        return np.where(absent, np.nan, values)
    text = LETTERS[np.minimum(whole, 3)]
    text[absent] = None
    if kind == "text":
        return text
    return pd.Categorical(text, categories=LETTERS.tolist(), ordered=True)


def table_of(problem, rng):
    """A table with missing values for the rows of the problem; its first columns are unchanged.

    Columns that a limit on groups names stay the same.
    """
    named = {getattr(problem.parameters.get("fairness"), "sensitive_feature", None)}
    columns = {
        f"x{k}": flags if k in named else column(rng, flags) for k, flags in enumerate(problem.X.T)
    }
    return pd.DataFrame(columns), named != {None}


def any_encoder(rng):
    return one_of(
        rng,
        "auto",
        *[
            BinaryEncoder(
                thresholds=one_of(rng, "quantiles", "midpoints", "kmeans", "all"),
                n_thresholds=one_of(rng, 1, 2, 3),
                max_categories=one_of(rng, None, 1, 2, 10),
                categories="levels",
                missing=one_of(rng, "impute", "branch"),
                min_support=one_of(rng, 0.0, 0.01, 0.2),
                max_features=one_of(rng, 2, 3, 4),
                handle_unknown=one_of(rng, "ignore", "error"),
            )
        ]
        * 4,
    )


def every_question(model, table, weight):
    """The features of a tree that are no thresholds, and those of all midpoints."""
    midpoints = clone(model.encoder_).set_params(thresholds="midpoints", max_features=None)
    midpoints.fit(table, sample_weight=weight)
    parts = [
        encoder.transform(table)[:, [isinstance(one, Threshold) == of for one in encoder.features_]]
        for encoder, of in ((model.encoder_, False), (midpoints, True))
    ]
    return np.hstack(parts)


def the_tree_of_a_table_is_that_of_its_questions(problem, rng):
    table, named = table_of(problem, rng)
    if problem.depth > 2 and problem.parameters["max_depth"] is None:
        return []
    encoder = any_encoder(rng)
    if encoder != "auto" and not problem.kept.all():
        # Rows with weight 0 may have other levels.
        encoder.set_params(handle_unknown="ignore")
    model = problem.make(encoder=encoder)
    try:
        model.fit(table, **problem.fit)
    except InvalidParameterError as refusal:
        # Not every objective supports a search over every threshold.
        assert encoder != "auto" and encoder.thresholds == "all"
        assert "BinaryEncoder(thresholds='all') cannot be used" in str(refusal)
        return ["refused"]
    if model.certificate_.is_infeasible:
        return []
    found = check_verified(model, table, problem.fit)
    proof = found["lower bound"].result
    features = np.asarray(model.encoder_.transform(table)).astype(bool)
    if named or problem.parameters.get("feature_costs") is not None or not features.shape[1]:
        return [f"lower bound {proof}"]
    # The value of a minimum of "auto" is determined before thresholds are added.
    known = problem.make(encoder=as_given())
    if "min_events_leaf" in problem.parameters:
        known.set_params(min_events_leaf=model.certificate_.settings["min_events_leaf"] or None)
    known.fit(features, **problem.fit)
    apart = Fraction(model.objective_value_) - Fraction(known.objective_value_)
    slack = slack_of(known, features, **problem.fit)
    assert apart >= -slack
    if apart > slack:
        # A threshold midway in its node may divide all rows differently from those of the search.
        assert "thresholds" in model.certificate_.facts
        known.fit(every_question(model, table, problem.fit.get("sample_weight")), **problem.fit)
        assert abs(Fraction(model.objective_value_) - Fraction(known.objective_value_)) <= slack
        return [f"lower bound {proof}", "better trees over its features"]
    assert known.status_ == model.status_
    if proof == "passed" and known.status_ == "optimal" and known.n_leaves_ == model.n_leaves_:
        same = np.array_equal(known.apply(features), model.apply(table))
        return [f"lower bound {proof}", "same tree" if same else "another tree as good"]
    return [f"lower bound {proof}"]
