"""The smoothed outcomes of a fit: cross-fits a teacher and mixes it with the outcomes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from bristlecone._data.checks import thread_count
from bristlecone._data.rows import RowsT
from bristlecone._log import log, warn
from bristlecone._search.certificate import Teaching, reporter
from bristlecone._teacher.folds import folds_of
from bristlecone._teacher.outcomes import Outcomes
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import SmallSampleWarning

# Share of the time limit that the teacher may take.
_SHARE_OF_TIME = 0.5

# With fewer events, or rows of a class, per fold, a teacher learns little.
_FEW = 5


# Moments of smoothed outcomes that are computed again agree to this share. Libraries of linear
# algebra differ in the last digits, and a fit amplifies the differences.
_AGREEMENT = 1e-5


class _Clock(NamedTuple):
    """When a lesson began, when models must end, and what is called in between."""

    start: float
    until: float
    heard: Callable[..., object] | None


def teach(
    estimator: Any, objective: Any, data: RowsT, callback: Callable[..., object] | None = None
) -> tuple[RowsT, Teaching | None]:
    """The training rows with the smoothed outcomes that an estimator requests, and their record."""
    teacher = getattr(estimator, "teacher", None)
    if teacher is None:
        if hasattr(estimator, "certificate_"):
            teacher_of(estimator)  # raises if a file lost the teacher
        return data, None
    smoothed, record = _taught(
        teacher,
        float(estimator.teacher_weight),
        objective.outcomes(data),
        data.X,
        seed=seed_of(getattr(estimator, "random_state", None)),
        time_limit=getattr(estimator, "time_limit", None),
        verbose=estimator.verbose,
        heard=reporter(callback),
        n_threads=_threads(estimator, teacher),
    )
    return _with_smoothed(data, smoothed), record


def parameters_of_fit(tree: Any) -> dict[str, Any]:
    """Parameters of a fitted tree; models that its file does not contain are the current ones."""
    parameters = dict(tree.certificate_.parameters)
    for name in ("outcome_model", "propensity_model"):
        if name in parameters and parameters[name] is None:
            parameters[name] = getattr(tree, name)
    return parameters


def teacher_of(tree: Any) -> Any:
    """The teacher of a fitted tree; None without one, and for leaves of other rows.

    Raises
    ------
    ValueError
        If the tree comes from a file, which holds no teacher, and has been given none since.
    """
    found = tree.certificate_
    if not found.is_taught:
        return None
    teacher = found.parameters["teacher"]
    teacher = tree.teacher if teacher is None else teacher
    if teacher is None:
        raise ValueError(
            f"the teacher of this tree, {found.teacher.name}, is not in its file; set it with "
            "set_params(teacher=...), or fit a clone of the tree without a teacher"
        )
    return teacher


def teach_again(tree: Any, objective: Any, data: RowsT) -> tuple[RowsT, Teaching | None]:
    """The rows of a fitted tree with its smoothed outcomes, from its teacher fitted again.

    Raises
    ------
    ValueError
        As ``teacher_of``, and if the outcomes are not those of the fit.
    """
    teacher = teacher_of(tree)
    if teacher is None:
        return data, None
    known: Teaching = tree.certificate_.teacher
    smoothed, record = _taught(
        teacher,
        known.weight,
        objective.outcomes(data),
        data.X,
        seed=known.seed,
        known=known,
        n_threads=_threads(tree, teacher),
    )
    if not _agree(record, known):
        raise ValueError(
            "the teacher, fitted again, does not give the smoothed outcomes of the fit: it is "
            "another one, or not deterministic, or X and y are not the rows of the fit"
        )
    return _with_smoothed(data, smoothed), known


def _threads(estimator: Any, teacher: Any) -> int | None:
    """Threads for the models of "auto"; None for a custom teacher, which has its own."""
    automatic = isinstance(teacher, str)
    return thread_count(getattr(estimator, "n_jobs", None)) if automatic else None


def _with_smoothed(data: Any, smoothed: Floats) -> Any:
    """The rows with smoothed outcomes; only rows that a teacher supports have the field."""
    return data._replace(smoothed=smoothed)


def seed_of(random_state: Any) -> int:
    """Seed of a teacher; None is 0, so that a fit can be repeated."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _taught(
    teacher: Any,
    share: float,
    outcomes: Outcomes,
    X: Any,
    *,
    seed: int,
    time_limit: float | None = None,
    known: Teaching | None = None,
    verbose: Any = 0,
    heard: Callable[..., object] | None = None,
    n_threads: int | None = None,
) -> tuple[Floats, Teaching]:
    """Cross-fit a teacher and mix its predictions with the outcomes.

    Returns the smoothed outcomes of the rows, and the record of how they were made.

    Parameters
    ----------
    teacher : "auto" or estimator
    share : float
        Weight of the teacher, between 0 and 1.
    outcomes : Outcomes
    X : table, n rows
    seed : int
        For folds and models.
    time_limit : float, optional
        Seconds of the whole fit. Models beyond the first that would take more than half of them
        are left out.
    known : Teaching, optional
        Record of an earlier fit that is repeated: with the same models, and without its warnings.
    verbose : int
    heard : callable, optional
        Called after every fit of a model, as during a search.
    n_threads : int, optional
        Threads on which models are fitted; None leaves it to the models.

    Raises
    ------
    InvalidParameterError, ValueError
        For a teacher without the needed methods, predictions that are none, and rows that cannot
        be divided into folds.
    """
    # Imported here, because ensembles load slowly.
    from bristlecone._teacher.members import design_of, members_of

    start = time.perf_counter()
    automatic = isinstance(teacher, str)
    design = design_of(X, outcomes.weight)
    fold, order = folds_of(design.numbers, outcomes.columns, outcomes.strata, seed)
    _check_folds(outcomes, fold, warns=known is None)
    until = np.inf if time_limit is None else start + _SHARE_OF_TIME * time_limit
    models: dict[str, Any] = {"teacher": teacher}
    exponent = 0
    if automatic:
        # Boosting computes in 32 bits. A power of two rounds nothing.
        outcomes, exponent = outcomes.scaled()
        models = members_of(outcomes, design, seed)
        if known is not None and known.members:
            models = {name: model for name, model in models.items() if name in known.members}
        if not models:
            raise ValueError("the teacher has none of the models that its record names")
    else:
        outcomes.check_teacher(teacher)
    predictions: dict[str, Floats] = {}
    with threadpool_limits(limits=1), warnings.catch_warnings():
        if automatic:
            warnings.simplefilter("ignore", ConvergenceWarning)
        for name, model in models.items():
            begun = time.perf_counter()
            may_skip = bool(predictions) and known is None
            clock = _Clock(start, until if may_skip else np.inf, heard)
            rows = design.read_by(name) if automatic else X
            found = _cross_fitted(outcomes, model, rows, fold, order, clock, n_threads)
            if found is None:
                log(verbose, "teacher: no time for %s", name)
                continue
            predictions[name] = outcomes.checked(found, model)
            score = outcomes.score(predictions[name])
            seconds = time.perf_counter() - begun
            log(verbose, "teacher: %s explains %.3g of the deviance, %.3g s", name, score, seconds)
        predicted = next(iter(predictions.values()))
        if automatic and len(predictions) > 1:
            predicted = outcomes.combined(list(predictions.values()))
    smoothed = np.ascontiguousarray(np.ldexp(outcomes.mixed(predicted, share), exponent))
    record = Teaching(
        name="auto" if automatic else " ".join(repr(teacher).split()),
        weight=float(share),
        n_folds=int(fold.max()) + 1,
        seed=seed,
        members=tuple(predictions) if automatic else (),
        score=float(outcomes.score(predicted)),
        moments=moments(smoothed, outcomes.weight),
        training_loss=np.nan,
    )
    return smoothed, record


def moments(smoothed: Floats, weight: Floats | None) -> tuple[float, float, float, float]:
    """Weighted mean, root mean square, minimum and maximum of smoothed outcomes."""
    by_row = smoothed.reshape(len(smoothed), -1)
    low, high = float(by_row.min()), float(by_row.max())
    # Squares of extreme costs are out of range.
    size = max(abs(low), abs(high)) or 1.0
    square = np.average(((by_row / size) ** 2).mean(axis=1), weights=weight)
    mean = np.average(by_row.mean(axis=1), weights=weight)
    return float(mean), size * float(np.sqrt(square)), low, high


def _agree(one: Teaching, other: Teaching) -> bool:
    """Whether two records describe the same outcomes, up to the last digits of their numbers."""
    size = max(map(abs, other.moments[2:])) or 1.0
    off = [abs(a - b) / size for a, b in zip(one.moments, other.moments, strict=True)]
    off.append(abs(one.score - other.score) / max(1.0, abs(other.score)))
    same = one.n_folds == other.n_folds and one.members == other.members
    return same and max(off) <= _AGREEMENT


def _cross_fitted(
    outcomes: Outcomes,
    model: Any,
    X: Any,
    fold: Integers,
    order: Integers,
    clock: _Clock,
    n_threads: int | None,
) -> Floats | None:
    """Prediction of every row by a model fitted to the other folds; None if time runs out.

    Models that draw rows by position get the rows in this ``order``. They are fitted on
    ``n_threads`` threads and predict on one, because sums over trees would depend on which thread
    is first.
    """
    predicted = outcomes.empty()
    n_folds = int(fold.max()) + 1
    begun = time.perf_counter()
    for k in range(n_folds):
        held = fold == k
        others = order[~held[order]] if isinstance(X, np.ndarray) else ~held
        with nullcontext() if n_threads is None else parallel_config("threading", n_jobs=n_threads):
            fitted = outcomes.fitted(model, X, others)
        own = outcomes.predicted(fitted, X, held)
        if own.shape != predicted[held].shape:
            raise ValueError(
                f"{outcomes.parameter}={model!r} predicted an array of shape {own.shape}; expected "
                f"{predicted[held].shape}"
            )
        predicted[held] = own
        now = time.perf_counter()
        if clock.heard is not None:
            clock.heard(now - clock.start, np.inf, -np.inf, 0)
        if now + (now - begun) / (k + 1) * (n_folds - k - 1) > clock.until:
            return None
    return predicted


def _check_folds(outcomes: Outcomes, fold: Integers, *, warns: bool) -> None:
    """Raise ValueError if folds cannot be predicted from the others; warn if they barely can."""
    if fold.max() < 1:
        raise ValueError("a teacher needs at least two different rows")
    least, what = outcomes.fewest(fold)
    if warns and least < _FEW:
        warn(
            f"a fold of the teacher has fewer than {_FEW} {what}: its predictions are hardly more "
            "than noise; with so few rows use teacher=None",
            SmallSampleWarning,
        )
