"""``PolicyTree``: the provably best policy in the form of a tree, from historical data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.targets import PolicyData
from bristlecone._estimators.label_predictions import LabelPredictions
from bristlecone._estimators.parameters import (
    Check,
    check_parameters,
    choice,
    has_methods,
    integer,
    is_auto,
    number,
)
from bristlecone._estimators.policy_values import PolicyValues, Treated
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._leaves.base import view
from bristlecone._objectives.rewards import Rewards, mean_reward
from bristlecone._rewards.censored import ESTIMANDS
from bristlecone._rewards.estimate import prepare
from bristlecone._rewards.formulas import REWARD_ESTIMATES
from bristlecone._search.certificate import reporter
from bristlecone._search.progress import SearchProgress
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import InvalidParameterError


@dataclass(kw_only=True, eq=False, repr=False)
class PolicyTree(PolicyValues, LabelPredictions, Reestimation, SearchedTree):
    """Tree that prescribes treatments, with the greatest estimated value.

    Each row of historical data has a treatment and an outcome. The outcome under every treatment,
    the reward, is estimated. Among all trees over the binary features, the search finds the one
    whose prescribed treatments have the greatest mean reward [Linden2023]_ (section D).

    Parameters
    ----------
    reward : {"doubly-robust", "inverse-propensity", "direct"}, default="doubly-robust"
        Estimate of the reward of every row under every treatment. "direct" needs predicted
        outcomes, "inverse-propensity" needs propensity scores, and "doubly-robust" needs both; it
        is unbiased if either is correct. The models below estimate what is not passed to ``fit``.
    outcome_model : "auto", estimator or None, default="auto"
        Model of the outcome, fitted for each treatment by cross-fitting: every row is predicted by
        models that were fitted to other rows. "auto" averages ridge regression and boosting. A
        classifier of the outcomes 0 and 1 works, too. With ``horizon``, it is a survival model
        (``predict_survival_function``), fitted to the events and again to the censoring; "auto"
        combines Breslow's estimate with relative hazards of ridge regression and boosting. None: no
        model is fitted.
    propensity_model : "auto", classifier or None, default="auto"
        Model of the treatment, cross-fitted, with ``predict_proba``. "auto" averages logistic
        regression and boosting. None: no model is fitted.
    min_propensity : float, default=0.01
        Estimated propensity scores, and estimated probabilities of being uncensored, are raised to
        this value if they are smaller; greater than 0 and at most 0.5. A warning then gives the
        share of the rows. Propensity scores that are passed to ``fit`` do not change.
    horizon : float or None, default=None
        For censored outcomes: the time, in the unit of ``y``, up to which survival counts. It must
        not be beyond the last event. ``y`` then has event and time.
    estimand : {"restricted-mean", "survival"}, default="restricted-mean"
        With ``horizon``, the quantity to maximise: the restricted mean survival time up to the
        horizon, or the probability of surviving it.
    capacities : mapping or None, default=None
        Largest share of the training weight, between 0 and 1, to which a treatment may be
        prescribed; treatments that are not named are unlimited.
    max_depth : int or None, default=3
        Maximum number of splits from the root to a leaf; 0 is a single leaf. None means no
        limit and needs ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves.
    min_samples_leaf : int or float, default=1
        Minimum number of training rows in a leaf, regardless of their weights. A float
        between 0 and 1 is a share of the training rows, rounded up.
    min_samples_treatment : int, default=0
        Minimum number of training rows of every treatment in a leaf, regardless of their weights;
        0 is no minimum. It cannot be used with ``capacities``.
    leaf_penalty : float, default=0.0
        Penalty for each leaf: the value of a tree is the mean outcome minus this times the number
        of leaves.
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
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the models that estimate rewards; None is 0. Nothing else is
        random.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    treatments_ : array, shape (n_treatments,)
        Treatments that were observed, in sorted order.
    policy_value_ : float
        Estimated mean outcome of the tree's policy on the training rows, for which it is too
        optimistic; see ``policy_table``.
    objective_value_ : float
        ``-policy_value_`` plus ``leaf_penalty`` times the number of leaves: lower is better; inf if
        infeasible.
    lower_bound_ : float
        No tree over the binary features that keeps the capacities has a smaller objective.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same divided by ``abs(objective_value_)``.
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
        Estimated mean outcome of every treatment in every leaf. With ``horizon``, the restricted
        mean survival time, or the survival probability, at the horizon (see ``estimand``).
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
        Share of each column in the improvement of the loss; see the property.
    leaves_ : Leaves
        Object with the statistics and predictions of all leaves.
    certificate_ : Certificate
        Record of the fit: the binary features and parameters, the result, the time, the version,
        and a fingerprint of the training rows. It includes the lower bound that proves the result.

    See Also
    --------
    CostSensitiveTreeClassifier : Takes costs that are known, not estimated.
    bristlecone.plot.plot_overlap : The propensity scores.
    bristlecone.plot.plot_treatment_curves : Kaplan–Meier curves of the treatments in every leaf.

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

    reward: Literal["doubly-robust", "inverse-propensity", "direct"] = "doubly-robust"
    outcome_model: Any = "auto"
    propensity_model: Any = "auto"
    min_propensity: float = 0.01
    horizon: float | None = None
    estimand: Literal["restricted-mean", "survival"] = "restricted-mean"
    capacities: Mapping[Any, float] | None = None
    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 1
    min_samples_treatment: int = 0
    leaf_penalty: float = 0.0
    time_limit: float | None = None
    memory_limit: int | None = None
    n_jobs: int | None = None
    encoder: Any = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    treatments_ = view("leaves_", "labels", "Observed treatments, sorted.", NDArray[Any])

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
            Numeric, boolean or categorical columns; convert dates to numbers first. The default
            encoder accepts missing values; a custom encoder may not.
        y : array-like of float, shape (n,), or outcome
            Outcomes; higher is better. With ``horizon``, event and time: a structured array, a
            DataFrame or a pair, as for survival trees, without delayed entry.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. Rows with weight zero are left out. A row with an
            integer weight k has the effect of k copies, except for minimum numbers of rows, rewards
            that models estimate, and standard errors.
        treatment : array-like, shape (n,)
            Treatment that every row had: whole numbers, texts or booleans; at most 32 treatments.
        propensity : float, mapping or array-like, shape (n,) or (n, n_treatments), optional
            Propensity score: the probability, in (0, 1), of the treatment each row had given its
            features, or of every treatment: a DataFrame with a column per treatment, or an array
            with the treatments in sorted order; these sum to one. For a randomised trial, pass a
            mapping from treatments to probabilities, or one number if all are equally probable. By
            default, ``propensity_model`` estimates them.
        predicted_outcomes : array-like of float, shape (n, n_treatments), optional
            Outcome that a model predicts for every row under every treatment: a DataFrame with a
            column per treatment, or an array with the treatments in sorted order. The model should
            not have been fitted to the same row. By default, ``outcome_model`` predicts them. Not
            with ``horizon``.
        callback : callable, optional
            Called as ``callback(progress)`` whenever the best tree or the lower bound improves, and
            every quarter of a second, in the thread of ``fit``. The attributes of ``progress`` are
            seconds, objective, lower_bound, gap, n_nodes_explored and, if there is a forecast,
            share and seconds_left. An exception that it raises ends the search and ``fit``.

        Returns
        -------
        PolicyTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, estimates for ``reward`` are missing or have another shape,
            propensity scores lie outside (0, 1) or do not sum to one, a treatment was never
            observed or has too few rows for a model, the horizon is beyond what was observed, the
            numbers of rows differ, or a column cannot be read. The message names the parameter,
            column, row or treatment. An earlier fit is kept.
        InfeasibleError
            If a limit or Ctrl-C stopped the search before it found a tree that keeps the
            capacities. ``status_`` has the reason.
        KeyboardInterrupt
            If Ctrl-C is pressed twice within a second; an earlier fit is kept. A single Ctrl-C
            stops the search and keeps the best tree so far.

        Warns
        -----
        SearchLimitWarning
            If a limit or Ctrl-C stopped the search. The message reports the gap.
        SearchCostWarning
            As soon as the search is forecast to exceed ``time_limit`` (ten minutes without one).
            The message suggests smaller settings. Never with ``time_limit=0``.
        OverlapWarning
            If a treatment, or being under observation, is less probable than ``min_propensity``
            for some rows, by its estimate or by the number of such rows that had it. The message
            gives their share or number.
        InfeasibleWarning
            If no tree keeps the capacities.
        ConstantFeatureWarning
            If every column of ``X`` is constant.
        SmallSampleWarning
            If ``min_samples_leaf`` is too large for any split, so the tree is a single leaf.
        ColumnWarning
            If a column has no values, or may be read differently from what you meant, such as
            numbers stored as text.
        """
        given = {"propensity": propensity, "predicted_outcomes": predicted_outcomes}
        heard, during = _one_after_the_other(callback)
        return self._fit(X, y, sample_weight, during, treatment=treatment, heard=heard, **given)

    @property
    def policy_value_(self) -> float:
        """Estimated mean outcome of the policy on the training rows."""
        self._check_fitted()
        return mean_reward(self.tree_, self.leaves_)

    def predict_outcomes(self, X: Any) -> Floats:
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

    def _check_parameters(self) -> None:
        check_parameters(
            self,
            reward=choice(*REWARD_ESTIMATES),
            outcome_model=_check_model,
            propensity_model=_check_model,
            min_propensity=_positive(0.5),
            horizon=_positive(optional=True),
            estimand=choice(*ESTIMANDS),
            capacities=_check_capacities,
            min_samples_treatment=integer(0),
        )
        if self.capacities and self.min_samples_treatment:
            raise InvalidParameterError(
                "min_samples_treatment cannot be used with capacities: no search supports both"
            )

    def _training_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        treatment: Any,
        propensity: Any = None,
        predicted_outcomes: Any = None,
        heard: Any = None,
        count: Integers | None = None,
    ) -> PolicyData:
        rows = self._checked(
            Treated(X, y, sample_weight, treatment, propensity, predicted_outcomes)
        )
        if len(rows.classes) == 1:
            one = rows.classes.tolist()[0]
            raise ValueError(
                f"treatment has one value, {one!r}; a policy needs at least two treatments"
            )
        self._objective().capacity(rows.classes, 1.0)
        how = self._estimation()
        given = propensity, predicted_outcomes, heard
        data = prepare(how, rows, y, *given, count=count).data
        self._objective().check_minimum(data)
        return data

    def _objective(self) -> Rewards:
        return Rewards(
            reward=self.reward,
            capacities=self.capacities,
            horizon=self.horizon,
            estimand=self.estimand,
            min_samples_treatment=self.min_samples_treatment,
            models=(self.propensity_model, self.outcome_model),
        )


def _one_after_the_other(
    callback: Callback | None,
) -> tuple[Callable[..., object] | None, Callback | None]:
    """Callbacks for the models and for the search, with one clock for both."""
    heard = reporter(callback)
    if heard is None or callback is None:
        return None, callback
    before = [0.0]

    def of_models(seconds: float, *point: Any) -> None:
        before[0] = seconds
        heard(seconds, *point)

    def of_search(progress: SearchProgress) -> None:
        callback(replace(progress, seconds=progress.seconds + before[0]))

    return of_models, of_search


def _check_capacities(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidParameterError(
            f"{name} must be a mapping from treatments to shares; got {value!r}"
        )
    for treatment, share in (value or {}).items():
        try:
            number(0.0, 1.0)(name, share)
        except InvalidParameterError:
            raise InvalidParameterError(
                f"{name}[{treatment!r}] must be a share of the rows, between 0 and 1; got {share!r}"
            ) from None


def _check_model(name: str, value: Any) -> None:
    needed = "predict_proba" if name == "propensity_model" else "fit"
    if not (value is None or is_auto(value) or has_methods(value, "fit", needed)):
        raise InvalidParameterError(
            f"{name} must be None, 'auto' or an estimator with {needed}; got {value!r}"
        )


def _positive(most: float = math.inf, *, optional: bool = False) -> Check:
    """Check of a finite number greater than 0 (or None)."""

    def check(name: str, value: Any) -> None:
        if isinstance(value, Real) and value <= 0:
            raise InvalidParameterError(f"{name} must be greater than 0; got {value!r}")
        number(0.0, most, optional=optional)(name, value)

    return check
