"""Predictions of a fitted model, and outcomes of its training rows, in the form of scorers."""

from __future__ import annotations

from typing import Any

import numpy as np

from bristlecone._data.arrays import type_name
from bristlecone._data.outcomes import Survival, as_structured, check_survival
from bristlecone._foreign import predicts_survival, risk_of, survival_of
from bristlecone._types import Floats


def final_of(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Estimator at the end of searches and pipelines, and the rows in its form."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "named_steps"):
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        else:
            return estimator, X


def is_survival_tree(model: Any) -> bool:
    return hasattr(getattr(model, "leaves_", None), "follow_up")


def has_causes(model: Any) -> bool:
    """Whether it is a tree for competing risks."""
    return hasattr(model, "predict_cumulative_incidence")


def check_cause(model: Any, cause: int | None, what: str) -> None:
    """Raise TypeError for a cause other than the first, unless the model has several."""
    if cause not in (None, 1) and not has_causes(model):
        raise TypeError(
            f"{what} with cause={cause} needs a CompetingRisksTree; got {type_name(model)}"
        )


def trained_causes(model: Any, survival_train: Any) -> Any:
    """Outcomes of the training rows of a tree for competing risks, in a form that ``fit`` takes.

    Those that the tree stores have the cause 1 for an event of any cause.
    """
    model._check_fitted()
    if survival_train is not None:
        return survival_train
    return as_structured(_stored(model.leaves_.any_cause))


def trained(estimator: Any, X: Any, what: str, survival_train: Any) -> tuple[Any, Any, Survival]:
    """Fitted survival model, the rows in its form, and the outcomes of its training rows."""
    model, X = final_of(estimator, X)
    ours = callable(getattr(model, "_check_fitted", None))
    if ours:
        model._check_fitted()
    is_tree = is_survival_tree(model)
    if has_causes(model):
        raise TypeError(
            f"{what} is not defined for {type_name(model)}; use the metric concordance, ibs "
            "or likelihood"
        )
    if not is_tree and (ours or not predicts_survival(model)):
        raise TypeError(
            f"{what} needs a fitted survival model; got {type_name(model)}, which predicts "
            "no risks or survival curves"
        )
    if survival_train is not None:
        return model, X, check_survival(survival_train, "survival_train")
    if not is_tree:
        raise TypeError(
            f"{what} needs the outcomes of the training rows of {type(model).__name__}, which only "
            "trees of bristlecone store: pass survival_train, or use bristlecone.tune.evaluate, "
            "which does so"
        )
    return model, X, _stored(model.leaves_)


def _stored(leaves: Any) -> Survival:
    """Outcomes of the training rows of survival leaves.

    With delayed entry, the risk sets are known, but not which row entered when. Entries and times
    are paired in their order, which gives the same risk sets.
    """
    follow_up = leaves.follow_up
    rows = [leaf.rows() for leaf in follow_up]
    event, time = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    order = np.argsort(time, kind="stable")
    late = [leaf.entry_times for leaf in follow_up if leaf.entry_times is not None]
    entry = np.sort(np.concatenate(late)) if late else None
    return Survival(event[order], time[order], entry)


def event_times(train: Survival) -> Floats:
    return np.unique(train.time[train.event])


def predicted_risk(model: Any, X: Any, train: Survival, what: str) -> Floats:
    if is_survival_tree(model):
        return np.asarray(model.predict(X))
    return risk_of(model, X, event_times(train), what)


def predicted_survival(model: Any, X: Any, train: Survival, what: str, times: Floats) -> Floats:
    """Predicted survival of the rows at ``times``, shape (n, n_times)."""
    if is_survival_tree(model):
        return np.asarray(model.predict_survival_function(X, times=times))
    return survival_of(model, X, event_times(train), what).at(times)
