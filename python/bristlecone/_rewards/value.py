"""The value of a policy beside those of other policies, with standard errors and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bristlecone._leaves.base import Columns
from bristlecone._leaves.labels import plain_labels

Floats = NDArray[np.float64]


def comparison(
    labels: NDArray[Any], values: Floats, covariance: Floats, n: int, confidence: float, rows: str
) -> Columns:
    """Columns of the table of policies: the tree's, every treatment for all, and a random one.

    Parameters
    ----------
    labels : array, shape (n_treatments,)
    values : array, shape (n_treatments + 1,)
        Estimated value of the policy, and of every treatment for all rows.
    covariance : array, shape (n_treatments + 1, n_treatments + 1)
        Of their errors, before the correction n / (n − 1).
    n : int
        Number of rows.
    confidence : float
    rows : str
        What the rows are.
    """
    k = len(labels)
    names = ["policy", *(f"always {name}" for name in plain_labels(labels)), "at random"]
    # Every policy as weights of the tree's and of the treatments.
    policies = np.vstack([np.eye(k + 1), np.append(0.0, np.full(k, 1.0 / k))])
    differences = policies[0] - policies
    correction = n / (n - 1) if n > 1 else np.nan

    def errors(weights: Floats) -> Floats:
        variance = np.einsum("ij,jk,ik->i", weights, covariance, weights)
        return np.sqrt(np.maximum(variance, 0.0) * correction)

    value, value_error = policies @ values, errors(policies)
    gain, gain_error = differences @ values, errors(differences)
    # The policy has no difference from itself.
    gain[0] = gain_error[0] = np.nan
    reach = ndtri((1 + confidence) / 2)
    return [
        ("policy", np.array(names, dtype=object)),
        ("value", value),
        ("value_error", value_error),
        ("value_lower", value - reach * value_error),
        ("value_upper", value + reach * value_error),
        ("gain", gain),
        ("gain_error", gain_error),
        ("gain_lower", gain - reach * gain_error),
        ("gain_upper", gain + reach * gain_error),
        ("rows", np.array([rows] * len(names), dtype=object)),
    ]
