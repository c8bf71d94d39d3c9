"""``PolicyTree``: the provably best policy in the form of a tree, from historical data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import unmasked
from bristlecone._data.rows import check_row_labels, check_sample_weight, row_count
from bristlecone._data.targets import PolicyData, check_labelled_data, check_numbers, known_codes
from bristlecone._estimators.label_predictions import LabelPredictions
from bristlecone._estimators.parameters import check_parameters, choice, number
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._leaves.base import view
from bristlecone._objectives.rewards import (
    REWARD_ESTIMATES,
    Rewards,
    mean_reward,
    policy_rewards,
    propensity_of,
)
from bristlecone.exceptions import InvalidParameterError


@dataclass(kw_only=True, eq=False, repr=False)
class PolicyTree(LabelPredictions, Reestimation, SearchedTree):
    """Tree that prescribes treatments, with the greatest estimated value.

    Each row of historical data has a treatment and an outcome. The outcome under every treatment,
    the reward, is estimated. Among all trees over the binary features, the search finds the one
    whose prescribed treatments have the greatest mean reward [Linden2023]_ (section D).

    Parameters
    ----------
    reward : {"doubly-robust", "inverse-propensity", "direct"}, default="doubly-robust"
        Estimate of the reward of every row under every treatment. "direct" needs predicted
        outcomes, "inverse-propensity" needs propensity scores, and "doubly-robust" needs both; it
        is unbiased if either is correct.
    capacities : mapping or None, default=None
        Largest share of the training weight, between 0 and 1, that a treatment may be prescribed
        to; treatments that are not named are unlimited.
    max_depth : int or None, default=3
        Maximum number of splits from the root to a leaf; 0 is a single leaf. None means no
        limit and needs ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves.
    min_samples_leaf : int or float, default=1
        Minimum number of training rows in a leaf, regardless of their weights. A float
        between 0 and 1 is a share of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Subtracted from the mean outcome per leaf.
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes that the tables of the search may take; None is 600 MiB. With less memory the
        search is slower; if no table fits, it stops with the best tree so far.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all cores. The tree of a completed search does
        not depend on it.
    encoder : "auto" or transformer, default="auto"
        Turns ``X`` into binary features. "auto" is ``BinaryEncoder()`` plus the thresholds
        of greedy trees over all thresholds (docs/guide/encoder.md). A clone is fitted to
        the training rows, and to their outcomes if its ``fit`` takes ``y``. Any transformer
        works whose output is two-dimensional and contains only 0 and 1, and which has
        ``get_feature_names_out``.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at
        DEBUG.

    Attributes
    ----------
    treatments_ : array, shape (n_treatments,)
        Treatments that were observed, in sorted order.
    policy_value_ : float
        Estimated mean outcome of the tree's policy on the training rows.
    objective_value_ : float
        ``-policy_value_`` plus ``leaf_penalty`` times the number of leaves: lower is better; inf
        when infeasible.
    lower_bound_ : float
        No tree over the binary features has a smaller objective.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted", "infeasible"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
        "infeasible" means that none keeps the capacities; there is no ``tree_``, and predictions
        raise InfeasibleError.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` is the index of a binary feature.
    leaf_labels_ : array of int, shape (n_leaves,)
        Position in ``treatments_`` of the treatment that every leaf prescribes, left to right. If
        several treatments are equally good, it is the first.
    leaf_values_ : array of float, shape (n_leaves, n_treatments)
        Estimated mean outcome of every treatment in every leaf.
    n_leaves_, depth_ : int
        Size of the tree.
    n_binary_features_ : int
        Number of binary features that were searched.
    n_nodes_explored_ : int
        Number of nodes that the search visited.
    trace_ : list of TracePoint
        Named tuples (seconds, objective, lower_bound), one per improvement.
    fit_time_ : float
        Seconds that ``fit`` took.
    encoder_ : transformer
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : array of str
        Their names; only if ``X`` had names.
    features_used_ : list of str or int
        Columns in the splits of the tree. Predictions need no others.
    splits_ : dict
        Splits in words, by node id.
    feature_importances_ : array of float, shape (n_features_in_,)
        Share of each column in the improvement of the objective; see the property.
    leaves_ : Leaves
        Statistics and predictions of the leaves, as one value.
    certificate_ : Certificate
        Record of the search: the binary features and parameters, the result and the proof, the
        time, the version, and a fingerprint of the training rows.

    See Also
    --------
    CostSensitiveTreeClassifier : Takes costs that are known, not estimated.

    References
    ----------
    .. [Linden2023] van der Linden, de Weerdt, Demirović, "Necessary and Sufficient Conditions for
        Optimal Decision Trees using Dynamic Programming", NeurIPS 2023.

    Examples
    --------
    >>> from bristlecone import PolicyTree
    >>> X, outcome = [[0], [0], [1], [1]], [1.0, 0.0, 0.0, 1.0]
    >>> tree = PolicyTree(reward="inverse-propensity", max_depth=1)
    >>> tree = tree.fit(X, outcome, treatment=["a", "b", "a", "b"], propensity=[0.5] * 4)
    >>> tree.predict([[0], [1]]).tolist(), tree.policy_value_
    (['a', 'b'], 1.0)
    """

    reward: str = "doubly-robust"
    capacities: Mapping[Any, float] | None = None
    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 1
    leaf_penalty: float = 0.0
    time_limit: float | None = None
    memory_limit: int | None = None
    n_jobs: int | None = None
    encoder: Any = "auto"
    verbose: int = 0

    treatments_ = view("leaves_", "labels", "Treatments that were observed, in sorted order.")

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        treatment: ArrayLike,
        propensity: ArrayLike | Mapping[Any, float] | None = None,
        predicted_outcomes: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> PolicyTree:
        """Find the best policy.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, dates or categories. Whether values may be missing depends on the
            encoder.
        y : array-like of float, shape (n,)
            Outcomes; higher is better.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. Rows of weight zero are left out. An integer
            weight k has the effect of k copies of the row (with ``min_samples_leaf=1``).
        treatment : array-like, shape (n,)
            Treatment that every row had: numbers, texts or booleans; at most 32 treatments.
        propensity : float, mapping or array-like, shape (n,) or (n, n_treatments), optional
            Propensity score: the probability, in (0, 1], of the treatment each row had given its
            features, or of every treatment in sorted order. For a randomised trial, pass one number
            for all treatments or a mapping from treatments to probabilities.
        predicted_outcomes : array-like of float, shape (n, n_treatments), optional
            Outcome that a model predicts for every row under every treatment, in sorted order. The
            model should not have been fitted to the same row.
        callback : callable, optional
            Called with the progress of the search (seconds, objective, lower bound, nodes, share
            done and seconds left) whenever the best tree or the lower bound improves, and every
            quarter of a second, on the thread of ``fit``. An exception that it raises ends the
            search and ``fit``.

        Returns
        -------
        PolicyTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, estimates for ``reward`` are missing or have another shape,
            propensity scores lie outside (0, 1], a treatment was never observed, the numbers of
            rows differ, or a column cannot be read. The message names the parameter, column or row.
            An earlier fit is kept.
        InfeasibleError
            If a limit or Ctrl-C (see ``status_``) stopped the search before a tree that
            keeps the capacities was found.
        KeyboardInterrupt
            At a second Ctrl-C within a second. An earlier fit is kept.

        Warns
        -----
        SearchLimitWarning
            If a limit or Ctrl-C stopped the search. The message reports the gap.
        SearchCostWarning
            As soon as the search is forecast to exceed ``time_limit`` (ten minutes without one).
            The message suggests smaller settings. Never with ``time_limit=0``.
        InfeasibleWarning
            If no tree keeps the capacities.
        ConstantFeatureWarning
            If every column of ``X`` is constant.
        """
        given = {"propensity": propensity, "predicted_outcomes": predicted_outcomes}
        return self._fit(X, y, sample_weight, callback, treatment=treatment, **given)

    @property
    def policy_value_(self) -> float:
        """Estimated mean outcome of the policy on the training rows."""
        self._check_fitted()
        return mean_reward(self.tree_, self.leaves_)

    def predict_outcomes(self, X: Any) -> NDArray[np.float64]:
        """Estimated mean outcome of every treatment in the leaf of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n, n_treatments)
            In the order of ``treatments_`` and the unit of the outcome.

        Raises
        ------
        InfeasibleError
            If ``fit`` found that no tree satisfies the constraints.
        """
        leaves, leaf = self._located(X)
        return leaves.values[leaf]

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        treatment: ArrayLike,
        propensity: ArrayLike | Mapping[Any, float] | None = None,
        predicted_outcomes: ArrayLike | None = None,
    ) -> float:
        """Estimated mean outcome of the policy for rows whose treatment and outcome are known.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : array-like of float, shape (n,)
            Outcomes; higher is better.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative.
        treatment : array-like, shape (n,)
            Treatment that every row had, all among ``treatments_``.
        propensity, predicted_outcomes : array-like of float, optional
            As in ``fit``, with one column per treatment of ``treatments_``.

        Returns
        -------
        float
            The estimate of ``reward`` at the time of the fit; on the training rows,
            ``policy_value_``.

        Raises
        ------
        ValueError
            If a treatment is not among ``treatments_``, and as in ``fit``.
        """
        leaves, leaf = self._located(X)
        check_row_labels(X, y=y, treatment=treatment, sample_weight=sample_weight)
        check_row_labels(X, propensity=propensity, predicted_outcomes=predicted_outcomes)
        codes = known_codes("treatment", treatment, leaves.labels, len(leaf))
        rewards = policy_rewards(
            y,
            codes,
            len(leaves.labels),
            self.certificate_.parameters["reward"],
            propensity=propensity_of(propensity, codes, leaves.labels),
            predicted_outcomes=predicted_outcomes,
        )
        given = rewards[np.arange(len(leaf)), leaves.label[leaf]]
        weight = check_sample_weight(sample_weight, len(leaf))
        return float(np.average(given, weights=weight))

    def _check_parameters(self) -> None:
        check_parameters(self, reward=choice(*REWARD_ESTIMATES), capacities=_check_capacities)

    def _training_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        treatment: Any,
        propensity: Any = None,
        predicted_outcomes: Any = None,
    ) -> PolicyData:
        check_row_labels(X, y=y, propensity=propensity, predicted_outcomes=predicted_outcomes)
        data = check_labelled_data(X, treatment, sample_weight, name="treatment")
        n_samples = row_count(X)
        rewards = policy_rewards(
            check_numbers("y", y, n_samples)[data.kept],
            data.labels,
            len(data.classes),
            self.reward,
            propensity=propensity_of(
                _kept("propensity", propensity, data.kept), data.labels, data.classes
            ),
            predicted_outcomes=_kept("predicted_outcomes", predicted_outcomes, data.kept),
        )
        self._objective().capacity(data.classes, 1.0)
        return PolicyData(data.X, rewards, data.classes, data.weight)

    def _objective(self) -> Rewards:
        return Rewards(reward=self.reward, capacities=self.capacities)


def _check_capacities(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidParameterError(
            f"{name} must be a mapping from treatments to shares; got {value!r}"
        )
    for treatment, share in (value or {}).items():
        number(0.0, 1.0)(f"{name}[{treatment!r}]", share)


def _kept(name: str, values: Any, kept: NDArray[np.bool_]) -> Any:
    """The kept rows of an array with one entry per row; a number or mapping applies to all."""
    if values is None or isinstance(values, Mapping) or np.ndim(values) == 0:
        return values
    array = np.asarray(unmasked(values, name))
    if array.ndim not in (1, 2) or len(array) != len(kept):
        raise ValueError(f"{name} has shape {array.shape} for {len(kept)} rows of X")
    return array[kept]
