"""``evaluate``: compare estimators over the same folds."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from bristlecone._data.arrays import type_name
from bristlecone._data.frame import frame_backend, native_frame
from bristlecone._data.outcomes import as_structured, check_survival, either_outcome, is_outcome
from bristlecone._data.rows import check_sample_weight
from bristlecone._foreign import fitted_to_columns, frame_of, takes_columns
from bristlecone._teacher.folds import naming
from bristlecone.exceptions import InvalidParameterError
from bristlecone.tune._folds import corrected_error, folds_of, standard_error
from bristlecone.tune._rows import GivenRows, accepted, of_all_causes
from bristlecone.tune._scoring import check_scored, metrics_of, score_of


def evaluate(
    estimators: Any,
    X: Any,
    y: Any = None,
    sample_weight: ArrayLike | None = None,
    *,
    cv: Any = 5,
    scoring: Any = None,
    against: str | None = None,
    n_repeats: int = 1,
    random_state: int | np.random.RandomState | None = 0,
    **params: Any,
) -> Any:
    """Compare estimators by cross-validation over the same folds.

    Every estimator is fitted to the training rows of every fold and scored on its test rows. A
    search, such as ``TreeSizeCV`` or ``GridSearchCV``, is repeated in every fold (nested
    cross-validation).

    Parameters
    ----------
    estimators : mapping of str to estimator, or estimator
        Estimators of this package, scikit-learn, scikit-survival or lifelines (regression models,
        for numeric features); they are not changed.
    X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
        Features, in a form that all estimators accept.
    y : structured array, DataFrame, pair or array-like, n rows
        Outcomes, in a form that all estimators accept.
    sample_weight : array-like of float, shape (n,), optional
        Row weights, passed to the fits and metrics that have this parameter.
    cv : int, splitter or iterable, default=5
        As in ``TreeSizeCV``.
    scoring : None, str, callable, list or mapping, default=None
        As in ``TreeSizeCV``. The survival metrics accept any model that predicts what they score:
        risks, or functions of survival or cumulative hazard. A metric whose signature has
        ``survival_train`` receives the outcomes of the training rows.
    against : str, optional
        Name of the estimator that the others are compared with; the first by default.
    n_repeats : int, default=1
        Number of repeats of the folds, if ``cv`` is a number.
    random_state : int, RandomState or None, default=0
        Seed for shuffling the rows, if ``cv`` is a number.
    **params
        Further arguments of ``fit``, such as ``treatment``. Arrays with one entry per row are split
        with the rows. ``groups`` is passed to the splitter.

    Returns
    -------
    DataFrame
        From the library of ``X``, or pandas if ``X`` is an array. One row per metric and estimator,
        with the columns ``metric``, ``estimator``, ``mean`` over the folds, ``standard_error`` (as
        in ``TreeSizeCV``), ``difference`` of the mean from that of ``against``, its
        ``nadeau_bengio_error``, and the score of every fold, ``split0`` and so on.

    Raises
    ------
    InvalidParameterError
        If there is no estimator, a metric or ``against`` is unknown, ``cv`` gives no valid folds,
        or no estimator's ``fit`` takes a parameter.
    ValueError, TypeError
        Errors of fits and metrics.

    See Also
    --------
    TreeSizeCV : Chooses the size of a tree.

    Notes
    -----
    ``nadeau_bengio_error`` is the corrected resampled standard error of the mean difference over J
    folds with variance s²: the square root of (1/J + n_test/n_train) s². The folds share training
    rows, so the square root of s²/J would be too small. A difference of less than two of these
    errors is no evidence that one estimator is better than the other.

    References
    ----------
    Nadeau, Bengio, "Inference for the generalization error", Machine Learning 52 (2003).

    Examples
    --------
    >>> from bristlecone import GreedySurvivalTree, OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.tune import evaluate
    >>> data = load("gbsg2")
    >>> trees = {"optimal": OptimalSurvivalTree(), "greedy": GreedySurvivalTree()}
    >>> table = evaluate(trees, data.X, data.y, scoring=["concordance", "ibs"])
    >>> [name for name in table.columns if not name.startswith("split")][:4]
    ['metric', 'estimator', 'mean', 'standard_error']
    >>> table["mean"].round(3).tolist()
    [0.635, 0.638, -0.181, -0.177]
    """
    if isinstance(estimators, (list, tuple)):
        raise InvalidParameterError(
            f"estimators is {type_name(estimators)}; expected an estimator or a mapping from names "
            "to estimators"
        )
    if not isinstance(estimators, Mapping):
        estimators = {type(estimators).__name__: estimators}
    if not estimators:
        raise InvalidParameterError("estimators is empty: evaluate needs at least one")
    names = [str(name) for name in estimators]
    if against is not None and against not in names:
        raise InvalidParameterError(f"against must be one of {names}; got {against!r}")
    metrics = metrics_of(scoring)
    for estimator in estimators.values():
        check_scored(estimator, metrics)
    rows = GivenRows.of(X, y, {**params, "sample_weight": sample_weight})
    first = next(iter(estimators.values()))
    folds = folds_of(cv, rows, first, n_repeats=n_repeats, random_state=random_state)
    rows.by_row.pop("groups", None)
    models = [of_all_causes(model, rows.y) for model in estimators.values()]
    _check_taken(models, rows)

    # Metric, estimator, fold.
    scores = np.empty((len(metrics), len(models), len(folds)))
    for fold, (train, test) in enumerate(folds):
        with naming(f"fold {fold + 1} of {len(folds)}"):
            known, held = rows.taken(train), rows.taken(test)
            outcomes = _outcomes(known)
            for k, model in enumerate(models):
                fitted = _fitted(model, known)
                for m, metric in enumerate(metrics.values()):
                    scores[m, k, fold] = score_of(metric, fitted, held, outcomes)

    reference = 0 if against is None else names.index(against)
    with np.errstate(invalid="ignore"):  # infinite scores have no difference
        differences = scores - scores[:, [reference]]
    by_fold = np.moveaxis(scores, -1, 0)
    columns: list[tuple[str, NDArray[Any]]] = [
        ("metric", np.repeat(np.array(list(metrics), dtype=object), len(models))),
        ("estimator", np.tile(np.array(names, dtype=object), len(metrics))),
        ("mean", scores.mean(axis=-1).ravel()),
        ("standard_error", standard_error(by_fold, folds, rows.n_rows).ravel()),
        ("difference", differences.mean(axis=-1).ravel()),
        (
            "nadeau_bengio_error",
            np.array([corrected_error(one, folds) for one in differences.reshape(-1, len(folds))]),
        ),
        *((f"split{fold}", values.ravel()) for fold, values in enumerate(by_fold)),
    ]
    return native_frame(columns, frame_backend(X))


def _fitted(model: Any, rows: GivenRows) -> Any:
    """A copy of an estimator, fitted to the rows."""
    if takes_columns(model):
        weight = check_sample_weight(rows.by_row.get("sample_weight"), rows.n_rows)
        y = as_structured(check_survival(rows.y))
        return fitted_to_columns(model, frame_of(rows.X), y, weight)
    copy = clone(model)
    copy.fit(rows.X, rows.y, **_taken_by(copy, rows))
    tree = copy.steps[-1][1] if hasattr(copy, "steps") else getattr(copy, "best_estimator_", copy)
    if getattr(tree, "status_", None) == "interrupted":
        # Scores of a part of the searches are of no use.
        raise KeyboardInterrupt
    return copy


def _outcomes(rows: GivenRows) -> NDArray[np.void] | None:
    """Outcomes with times of the rows of positive weight; None for other outcomes."""
    if not is_outcome(rows.y):
        return None
    y = as_structured(either_outcome(rows.y))
    weight = check_sample_weight(rows.by_row.get("sample_weight"), rows.n_rows)
    return y if weight is None else y[weight > 0]


def _taken_by(model: Any, rows: GivenRows) -> dict[str, Any]:
    """Further arguments of a fit: those in its signature, or all if it takes any."""
    if takes_columns(model):
        return {name: x for name, x in rows.by_row.items() if name == "sample_weight"}
    kinds = [one.kind for one in inspect.signature(model.fit).parameters.values()]
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return rows.more
    return accepted(model.fit, rows.more)


def _check_taken(models: list[Any], rows: GivenRows) -> None:
    taken = {name for model in models for name in _taken_by(model, rows)}
    for name in rows.more:
        if name not in taken:
            raise InvalidParameterError(f"no estimator's fit takes {name!r}")
