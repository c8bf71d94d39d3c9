"""Rewards from outcomes, propensity scores and predicted outcomes (docs/maths/policy.md)."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.arrays import unmasked
from bristlecone._data.frame import columns_by_name
from bristlecone._data.targets import as_numbers, check_amounts
from bristlecone._types import Bools, Floats, Integers

REWARD_ESTIMATES = ("direct", "inverse-propensity", "doubly-robust")

# If all rewards are smaller than this, they lose digits when they are averaged.
_LEAST = 1e-290

# Propensity scores of a row sum to one up to this: files round them.
_SUM_ROUNDED = 1e-3


def policy_rewards(
    y: Floats,
    treatment: Integers,
    n_treatments: int,
    reward: str,
    *,
    propensity: Floats | None = None,
    predicted_outcomes: Floats | None = None,
) -> Floats:
    """Estimated outcome of every row under every treatment, shape (n, n_treatments).

    With y the outcome of a row, k its treatment, counted from 0, μ(k) its propensity score and v(j)
    its predicted outcome under treatment j (van der Linden et al., NeurIPS 2023, eqs. 61–63; eq. 62
    as printed leaves out y):

    * "direct": v(j);
    * "inverse-propensity": y / μ(k) for j = k, else 0;
    * "doubly-robust": v(j), plus (y − v(k)) / μ(k) for j = k.

    The mean over the rows of the entry of the prescribed treatment estimates the value of a policy.
    Propensity scores are those of the treatment that each row had, shape (n,).
    """
    rows = np.arange(len(treatment))
    rewards = np.zeros((len(treatment), n_treatments))
    if reward != "inverse-propensity":
        assert predicted_outcomes is not None
        rewards = predicted_outcomes.copy()
    if reward != "direct":
        assert propensity is not None
        with np.errstate(over="ignore", invalid="ignore"):
            rewards[rows, treatment] += (y - rewards[rows, treatment]) / propensity
    return rewards


def check_rewards(rewards: Floats, kept: Bools) -> None:
    """Raise ValueError if a mean of the rewards would overflow or lose its digits.

    ``kept`` marks the rows of these rewards among all rows, and the message counts all rows.
    """
    beyond = ~np.isfinite(rewards).all(axis=1)
    if beyond.any():
        row = np.flatnonzero(kept)[beyond.argmax()]
        raise ValueError(
            f"the reward of row {row} is beyond the largest number; change the unit of the outcomes"
        )
    most = np.abs(rewards).max(initial=0.0)
    if 0.0 < most < _LEAST:
        raise ValueError(
            f"no reward of a row is larger than {most:.3g}, less than {_LEAST:g}; change the unit "
            "of the outcomes"
        )


def propensity_of_own(propensity: Floats, treatment: Integers) -> Floats:
    """Propensity score of the treatment that every row had, shape (n,)."""
    if propensity.ndim == 1:
        return propensity
    return np.asarray(propensity[np.arange(len(treatment)), treatment])


def given_propensity(
    value: Any, treatment: Integers, treatments: NDArray[Any], kept: Bools
) -> Floats:
    """Propensity scores from the user: of every treatment (n, n_treatments), or of the one given.

    ``value`` is a number, a mapping from treatments, or has one entry per given row; only the rows
    in ``kept`` count. ``treatment`` contains the codes of the kept rows.

    Raises
    ------
    ValueError
        If a treatment that was observed has none, the shape is another one, a score is not
        strictly between 0 and 1, or those of a row do not sum to one; the row or the treatment is
        named.
    """
    names = treatments.tolist()
    if isinstance(value, Real) and not isinstance(value, bool):
        value = dict.fromkeys(names, value)
    if isinstance(value, Mapping):
        return np.tile(_of_mapping(value, names), (len(treatment), 1))
    value = columns_by_name(unmasked(value, "propensity"), names, "propensity")
    share = np.asarray(value)
    if share.ndim not in (1, 2) or len(share) != len(kept):
        raise ValueError(f"propensity has shape {share.shape} for {len(kept)} rows of X")
    share, rows = share[kept], np.flatnonzero(kept)
    if share.ndim == 2 and share.shape[1] != len(names):
        why = "or one value per row; one column per treatment that was observed"
        check_amounts("propensity", share, (len(treatment), len(names)), why=why)
    share = as_numbers("propensity", share)
    whole = share if share.ndim == 2 else share[:, None]
    # With a single treatment the score is 1.
    wrong = ~((whole > 0) & ((whole < 1) | (len(names) == 1)))
    if wrong.any():
        place, column = (int(at) for at in np.argwhere(wrong)[0])
        name = names[treatment[place] if share.ndim == 1 else column]
        raise ValueError(
            f"propensity is {whole[place, column]} in row {rows[place]} for treatment {name!r}; "
            "probabilities must lie in (0, 1): otherwise the row has no counterpart under another "
            "treatment. Leave such rows out"
        )
    if share.ndim == 2:
        _check_sums(share.sum(axis=1), lambda place: f"the entries of row {rows[place]}")
    return share


def _of_mapping(shares: Mapping[Any, Any], names: list[Any]) -> Floats:
    """Propensity scores of a trial in the order of the treatments."""
    lacking = [name for name in names if name not in shares]
    if lacking:
        raise ValueError(f"propensity has no entry for the treatment {lacking[0]!r}")
    found = check_amounts("propensity", list(shares.values()))
    wrong = ~((found > 0) & ((found < 1) | (len(found) == 1)))
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(
            f"propensity is {found[place]} for treatment {list(shares)[place]!r}; probabilities "
            "must lie in (0, 1)"
        )
    _check_sums(found.sum(keepdims=True), lambda _: f"{found.tolist()}")
    return np.array([float(shares[name]) for name in names])


def _check_sums(sums: Floats, of: Any) -> None:
    wrong = np.abs(sums - 1.0) > _SUM_ROUNDED
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(
            f"propensity: {of(place)} sum to {sums[place]:.6g}; the probabilities of all "
            "treatments must sum to one"
        )


def given_predictions(value: Any, treatments: NDArray[Any], kept: Bools) -> Floats:
    """Predicted outcomes from the user, shape (n, n_treatments).

    Raises
    ------
    ValueError
        For another shape or other names of columns, and for numbers that are not finite.
    """
    value = unmasked(value, "predicted_outcomes")
    values = np.asarray(columns_by_name(value, treatments.tolist(), "predicted_outcomes"))
    if values.ndim not in (1, 2) or len(values) != len(kept):
        raise ValueError(f"predicted_outcomes has shape {values.shape} for {len(kept)} rows of X")
    # What is given for rows without weight does not matter.
    values = values.copy()
    values[~kept] = 0
    shape = (len(kept), len(treatments))
    why = "one column per observed treatment; others cannot be evaluated"
    return check_amounts("predicted_outcomes", values, shape, minimum=-np.inf, why=why)[kept]
