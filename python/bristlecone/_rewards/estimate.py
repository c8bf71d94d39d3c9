"""Computes rewards of every treatment from rows and what is known about their treatments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.outcomes import check_survival, is_outcome
from bristlecone._data.rows import check_length
from bristlecone._data.targets import LabelledData, PolicyData, check_numbers
from bristlecone._foreign import predicts_curves
from bristlecone._log import warn
from bristlecone._rewards.censored import Lives, survival_scores
from bristlecone._rewards.formulas import (
    check_rewards,
    given_predictions,
    given_propensity,
    policy_rewards,
    propensity_of_own,
)
from bristlecone._rewards.nuisance import Rows, outcome_predictions, propensity_scores
from bristlecone._types import Bools, Floats, Integers
from bristlecone.exceptions import InvalidParameterError, OverlapWarning

NO_LATE_ROWS = "PolicyTree; leave out the rows that entered late"
"""Advice in messages about delayed entry."""

# Propensity scores below this are commonly left out (Crump, Hotz, Imbens and Mitnik, Biometrika 96,
# 2009), and so many treated rows must be expected before their number is compared with the scores.
_IMPROBABLE, _FEWEST_EXPECTED = 0.1, 5


class Estimation(NamedTuple):
    """How rewards are estimated: the parameters of ``PolicyTree`` of these names."""

    reward: str
    outcome_model: Any
    propensity_model: Any
    min_propensity: float
    horizon: float | None
    estimand: str
    seed: int


@dataclass(frozen=True, eq=False)
class EstimatedRewards:
    """Estimated rewards of rows under every treatment, and what they were estimated from.

    ``PolicyTree.estimate_rewards`` returns them; rows of weight zero are NaN.

    Parameters
    ----------
    treatments : array, shape (n_treatments,)
        The treatments in sorted order, as the columns of the arrays below.
    treatment : array of int, shape (n,)
        Position in ``treatments`` of the treatment that every row had; -1 for rows of weight zero.
    rewards : array of float, shape (n, n_treatments)
        Estimated outcome of every row under every treatment.
    propensity : array of float, shape (n, n_treatments), or None
        Propensity scores before they are clipped; None if they were not needed, or are known of
        the treatment of every row only.
    predicted_outcomes : array of float, shape (n, n_treatments), or None
        Predicted outcomes; None if they were not needed.
    uncensored : array of float, shape (n,), or None
        With a horizon: probability of being under observation until the event or the horizon.
    min_propensity : float
        The parameter.

    See Also
    --------
    bristlecone.plot.plot_overlap : A picture of the propensity scores.

    Examples
    --------
    >>> from bristlecone import PolicyTree
    >>> X, outcome = [[0], [0], [1], [1]], [1.0, 0.0, 0.0, 1.0]
    >>> tree = PolicyTree(reward="inverse-propensity")
    >>> trial = {"treatment": ["a", "b", "a", "b"], "propensity": 0.5}
    >>> tree.estimate_rewards(X, outcome, **trial).rewards.tolist()
    [[2.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 2.0]]
    """

    treatments: NDArray[Any]
    treatment: Integers
    rewards: Floats
    propensity: Floats | None
    predicted_outcomes: Floats | None
    uncensored: Floats | None
    min_propensity: float

    @property
    def lacks_overlap(self) -> Bools:
        """Whether a row has a propensity below ``min_propensity``, shape (n,).

        That is the propensity score of any treatment or, with a horizon, the probability of being
        under observation until the event or the horizon.
        """
        lacking = np.zeros(len(self.rewards), dtype=bool)
        for values in (self.propensity, self.uncensored):
            if values is not None:
                whole = values.reshape(len(values), -1)
                lacking |= (whole < self.min_propensity).any(axis=1)
        return lacking

    def spread(self, kept: Bools) -> EstimatedRewards:
        """The same for all given rows; these are the ``kept`` ones."""

        def widened(values: Floats | None) -> Any:
            if values is None:
                return None
            wide = np.full((len(kept), *values.shape[1:]), np.nan)
            wide[kept] = values
            return wide

        treatment = np.full(len(kept), -1)
        treatment[kept] = self.treatment
        names = "rewards", "propensity", "predicted_outcomes", "uncensored"
        wide = {name: widened(getattr(self, name)) for name in names}
        return replace(self, treatment=treatment, **wide)


class Prepared(NamedTuple):
    """The rows of a fit with their rewards, and the estimates behind these."""

    data: PolicyData
    estimates: EstimatedRewards


def prepare(
    how: Estimation,
    rows: LabelledData,
    y: Any,
    propensity: Any = None,
    predicted_outcomes: Any = None,
    heard: Callable[..., object] | None = None,
    *,
    judging: bool = False,
    count: Integers | None = None,
) -> Prepared:
    """Rewards of checked rows, whose labels are the treatments; each may stand for ``count``.

    Rows that are only ``judging`` a policy may have their last event before the horizon, as long as
    rows of every treatment were under observation until then.

    Raises
    ------
    ValueError
        For invalid outcomes or propensity scores, estimates of another shape, a horizon beyond the
        observed times, and treatments that need a model but have no rows; the message names the
        row or the treatment.
    """
    outcome, happened = _outcome(how, rows, y, judging=judging)
    scores = predictions = None
    if predicted_outcomes is not None:
        if how.horizon is not None:
            raise InvalidParameterError(
                "predicted_outcomes cannot be used with horizon, which needs survival curves; pass "
                "a survival model as outcome_model"
            )
        predictions = given_predictions(predicted_outcomes, rows.classes, rows.kept)
    if propensity is not None:
        scores = given_propensity(propensity, rows.labels, rows.classes, rows.kept)
    needs_scores = how.reward != "direct"
    needs_predictions = how.reward != "inverse-propensity" or how.horizon is not None

    @cache
    def divided() -> Rows:
        """The rows with their folds, made when the first model is fitted."""
        columns, strata = outcome, rows.labels
        if happened is not None:
            columns = np.column_stack([columns, happened])
            strata = 2 * strata + happened
        return Rows.of(rows, columns, strata, how.seed, heard)

    estimated = needs_scores and scores is None
    shares = scores
    if estimated:
        _check_model(how.propensity_model, "propensity_model", "propensity", how.reward)
        shares = propensity_scores(divided(), how.propensity_model)
    own = None if shares is None else propensity_of_own(shares, rows.labels)
    if estimated and own is not None:
        own = np.maximum(own, how.min_propensity)
    uncensored = None
    if how.horizon is not None:
        assert happened is not None
        _check_model(how.outcome_model, "outcome_model", "", how.reward)
        if not isinstance(how.outcome_model, str) and not predicts_curves(how.outcome_model):
            raise InvalidParameterError(
                "outcome_model must predict survival curves if there is a horizon "
                f"(predict_survival_function); got {how.outcome_model!r}"
            )
        lives = Lives.until(happened, outcome, float(how.horizon))
        rewards, found, uncensored = _of_lives(how, divided(), lives, own)
    else:
        found = predictions
        if needs_predictions and predictions is None:
            _check_model(how.outcome_model, "outcome_model", "predicted_outcomes", how.reward)
            found = outcome_predictions(divided(), outcome, how.outcome_model)
        rewards = policy_rewards(
            outcome,
            rows.labels,
            len(rows.classes),
            how.reward,
            propensity=own,
            predicted_outcomes=found,
        )
    check_rewards(rewards, rows.kept)
    estimates = EstimatedRewards(
        treatments=rows.classes,
        treatment=rows.labels,
        rewards=rewards,
        propensity=shares if shares is not None and shares.ndim == 2 else None,
        predicted_outcomes=found,
        uncensored=uncensored,
        min_propensity=how.min_propensity,
    )
    counts = np.ones(len(rewards), dtype=np.int64) if count is None else count[rows.kept]
    _warn_of_overlap(estimates, counts, is_estimated=estimated)
    # Columns that the rewards do not use do not belong to the rows of the fit.
    used = predictions if how.reward != "inverse-propensity" else None
    given = scores if needs_scores else None
    data = PolicyData(
        X=rows.X,
        rewards=rewards,
        treatments=rows.classes,
        weight=rows.weight,
        treatment=rows.labels,
        outcome=outcome,
        happened=happened,
        propensity=None if given is None else propensity_of_own(given, rows.labels),
        predicted_outcomes=used,
    )
    return Prepared(data, estimates)


def _of_lives(
    how: Estimation, rows: Rows, lives: Lives, own: Floats | None
) -> tuple[Floats, Floats | None, Floats | None]:
    """Rewards of censored outcomes, the predicted ones, and the follow-up of the rows."""
    scores = survival_scores(
        rows, lives, how.estimand, how.outcome_model, how.min_propensity, how.reward
    )
    if how.reward == "direct":
        return scores.predicted, scores.predicted, None
    assert own is not None
    predicted = None if how.reward == "inverse-propensity" else scores.predicted
    observed = scores.weighted if predicted is None else scores.correction
    rewards = np.zeros_like(scores.predicted) if predicted is None else predicted.copy()
    rewards[np.arange(len(own)), rows.treatment] += observed / own
    return rewards, predicted, scores.uncensored


def _outcome(
    how: Estimation, rows: LabelledData, y: Any, *, judging: bool
) -> tuple[Floats, Bools | None]:
    """Outcomes of the kept rows: numbers, or times with their events if there is a horizon."""
    n = len(rows.kept)
    if how.horizon is None:
        if _is_survival(y):
            raise InvalidParameterError(
                "y has events and times, for which PolicyTree needs the parameter horizon"
            )
        return check_numbers("y", y, n)[rows.kept], None
    event, time, _ = check_survival(y, without_entry=NO_LATE_ROWS)
    check_length(event, "y", n)
    event, time = event[rows.kept], time[rows.kept]
    horizon = float(how.horizon)
    if not event.any():
        raise ValueError("y has no event: every row is censored")
    last = float(time[event].max())
    if horizon > last and not judging:
        raise ValueError(
            f"horizon={horizon:g} is beyond the last event of y, at {last:g}; nothing is known of "
            "later times"
        )
    if not (event & (time <= horizon)).any():
        raise ValueError(f"y has no event by horizon={horizon:g}; choose a later one")
    for code, name in enumerate(rows.classes.tolist()):
        own = time[rows.labels == code]
        if own.size and own.max() < horizon:
            raise ValueError(
                f"horizon={horizon:g} is beyond the last time of treatment {name!r}, "
                f"{own.max():g}; nothing is known of its later times"
            )
    return time, event


def _is_survival(y: Any) -> bool:
    """Whether these are events and times in a form that ``check_survival`` accepts."""
    try:
        return is_outcome(y) and bool(check_survival(y))
    except ValueError:
        return False


def _check_model(model: Any, parameter: str, argument: str, reward: str) -> None:
    if model is None:
        needed = f"{argument}, or {parameter}" if argument else parameter
        raise ValueError(
            f"reward={reward!r} needs {needed}; {parameter} is None (a model file does not contain "
            "a custom one: set it with set_params)"
        )


def _warn_of_overlap(found: EstimatedRewards, count: Integers, *, is_estimated: bool) -> None:
    """Warn of rows without overlap: their share, and the treatments that they lack."""
    n, lacking = int(count.sum()), int(count[found.lacks_overlap].sum())
    least, texts = found.min_propensity, []
    if lacking:
        parts = []
        if found.propensity is not None:
            below = count @ (found.propensity < least)
            parts += [
                f"{n_below} of treatment {name!r}"
                for name, n_below in zip(found.treatments.tolist(), below.tolist(), strict=True)
                if n_below
            ]
        if found.uncensored is not None and (found.uncensored < least).any():
            unseen = int(count[found.uncensored < least].sum())
            parts.append(f"{unseen} of being under observation")
        texts.append(
            f"{100 * lacking / n:.3g}% of the rows ({lacking} of {n}) have no overlap: a "
            f"probability below min_propensity={least:g} ({', '.join(parts)})"
        )
    if is_estimated and found.propensity is not None:
        texts += _overestimated(found, found.propensity, count)
    if texts:
        warn(
            f"{'; '.join(texts)}. The estimates for these rows depend on few similar rows; see "
            "bristlecone.plot.plot_overlap, and consider leaving them out",
            OverlapWarning,
        )


def _overestimated(found: EstimatedRewards, scores: Floats, count: Integers) -> Iterator[str]:
    """Treatments that improbable rows had less often than ``min_propensity``, in words.

    Models smooth, so the scores of rows that never have a treatment may exceed the minimum.
    """
    for k, name in enumerate(found.treatments.tolist()):
        score = scores[:, k]
        low = score < _IMPROBABLE
        n, expected = int(count[low].sum()), float(count[low] @ score[low])
        had = int(count[low & (found.treatment == k)].sum())
        if expected >= _FEWEST_EXPECTED and had < found.min_propensity * n:
            yield (
                f"treatment {name!r} has a probability below {_IMPROBABLE} in {n} rows, of which "
                f"{had} had it ({expected:.0f} expected)"
            )
