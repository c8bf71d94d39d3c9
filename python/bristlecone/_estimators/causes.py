"""``CompetingRisksTree``: the provably best tree for events of several causes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import as_array
from bristlecone._data.checks import check_times
from bristlecone._data.frame import by_cause
from bristlecone._data.outcomes import read_causes
from bristlecone._data.rows import check_length, check_row_labels
from bristlecone._data.survival import TrainingData, check_cause_data
from bristlecone._estimators.parameters import check_amount, check_parameters, choice, integer
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._leaves.base import view
from bristlecone._leaves.causes import IncidenceLeaves
from bristlecone._leaves.minimum import prior_events
from bristlecone._objectives.causes import CauseLikelihood
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError
from bristlecone.metrics._causes import concordance_index_cause

# Causes that the engine has sums for.
MOST_CAUSES = 8


@dataclass(kw_only=True, eq=False, repr=False)
class CompetingRisksTree(Reestimation, SearchedTree):
    """Optimal survival tree for competing risks.

    The tree minimises the likelihood loss, summed over the causes. Each leaf has a relative hazard
    θ and a cumulative incidence for every cause. An event of one cause prevents the events of the
    others. Kaplan–Meier, which treats the other events as censored, therefore overestimates the
    probability of an event.

    Parameters
    ----------
    max_depth : int or None, default=3
        Maximum number of splits from the root to a leaf; 0 is a single leaf. None means no
        limit and needs ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves.
    min_samples_leaf : int or float, default=1
        Minimum number of training rows in a leaf, regardless of their weights. A float
        between 0 and 1 is a share of the training rows, rounded up.
    min_events_leaf : int, float, "auto" or None, default="auto"
        Minimum number of training rows with an event in a leaf, regardless of their
        weights. A float between 0 and 1 is a share of the training events, rounded up.
        "auto" is 5, or the number of events if that is smaller. If one binary feature separates
        rows without events, although at least 20 events would be expected in them at the overall
        hazard, "auto" sets no minimum and a warning is shown. None: no minimum.
    leaf_penalty : float, default=0.0
        Penalty for each leaf: the objective is the mean loss plus this times the number of leaves.
    prior : float or "auto", default="auto"
        Number of pseudo-events with θ = 1 that are added to every leaf and cause. It is not
        rescaled with the row weights. "auto" is 10.
    shrinkage : float or "auto", default="auto"
        Strength λ >= 0 of the hierarchical shrinkage of predictions: from the root down, each node
        adds λ pseudo-events with the θ of its parent (1 at the root). The tree, its objective and
        bound do not change. "auto" is 0; other values need ``leaf_curve="proportional"``.
    leaf_curve : {"aalen-johansen", "proportional"}, default="aalen-johansen"
        Curves that a leaf predicts; the search does not depend on them. "aalen-johansen" is the
        estimate from the rows of the leaf [Aalen1978]_. "proportional" uses the hazards θ_k λ_k(t),
        with the baseline hazard λ_k of cause k in all training rows.
    cause_weights : array-like of float, shape (n_causes,), or None, default=None
        Weight of every cause in the objective, not negative and not all 0; None is 1 each. They are
        in the order of the causes, unless the index of a series names these. A cause with weight 0
        does not influence the splits, but its events still end the time at risk.
    n_causes : int or None, default=None
        Number of causes, at most 8. None is the largest cause in ``y``; every cause up to it must
        then have an event. If you pass a number, causes without events are allowed, as in the folds
        of a cross-validation: they add nothing to the loss, their θ is 1 and their incidence 0.
        ``TreeSizeCV`` and ``evaluate`` pass the number of causes of all rows.
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
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean loss per unit of weight, summed over the causes with their weights, plus
        ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features has a smaller objective.
    gap_, relative_gap_, guarantee_ : float
        ``objective_value_ - lower_bound_``, the same divided by ``abs(objective_value_)``, and the
        largest amount by which another tree can be better.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` is the index of a binary feature.
    n_causes_ : int
        Number of causes in the training rows.
    theta_ : array of float, shape (n_causes, n_leaves)
        Predicted relative hazard of every cause in every leaf, left to right.
    prior_ : float
        Pseudo-events per leaf and cause, after "auto" is resolved.
    shrinkage_ : float
        Strength of the shrinkage, after "auto" is resolved.
    unique_times_ : array of float
        Distinct training times.
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
    OptimalSurvivalTree : Trees for a single kind of event, with more objectives and a teacher.

    References
    ----------
    .. [Aalen1978] Aalen, Johansen, "An empirical transition matrix for non-homogeneous Markov
       chains based on censored observations", Scandinavian Journal of Statistics 5 (1978).

    Examples
    --------
    >>> from bristlecone import CompetingRisksTree
    >>> X = [[0], [0], [0], [0], [1], [1], [1], [1]]
    >>> cause, time = [1, 1, 2, 0, 2, 2, 1, 0], [2, 3, 6, 9, 1, 2, 7, 8]
    >>> tree = CompetingRisksTree(max_depth=1, min_events_leaf=1).fit(X, (cause, time))
    >>> tree.status_, tree.n_causes_
    ('optimal', 2)
    >>> tree.predict_cumulative_incidence([[0], [1]], cause=2, times=[5.0]).round(3).tolist()
    [[0.0], [0.5]]
    """

    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 1
    min_events_leaf: int | float | Literal["auto"] | None = "auto"
    leaf_penalty: float = 0.0
    prior: float | Literal["auto"] = "auto"
    shrinkage: float | Literal["auto"] = "auto"
    leaf_curve: Literal["aalen-johansen", "proportional"] = "aalen-johansen"
    cause_weights: ArrayLike | None = None
    n_causes: int | None = None
    time_limit: float | None = None
    memory_limit: int | None = None
    n_jobs: int | None = None
    encoder: Any = "auto"
    verbose: int = 0

    n_causes_ = view("leaves_", "n_causes", "Number of causes.", int)
    theta_ = view("leaves_", "theta", "Relative hazard by cause and leaf.", Floats)
    unique_times_ = view("leaves_", "unique_times", "Distinct training times, ascending.", Floats)
    shrinkage_ = view("leaves_", "shrinkage", "Strength λ of the shrinkage.", float)

    leaves_: IncidenceLeaves = field(init=False)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callback | None = None,
    ) -> CompetingRisksTree:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numeric, boolean or categorical columns; convert dates to numbers first. The default
            encoder accepts missing values; a custom encoder may not.
        y : structured array, DataFrame or pair
            A structured array with one integer field (event) and one float field (time), of any
            names; a DataFrame with columns ``event`` and ``time``; or a pair ``(event, time)``,
            which cross-validation cannot split. Arrays and DataFrames may also have ``entry``
            (delayed entry). The event is the number of its cause, from 1 without gaps, and 0 if
            the row is censored. Columns may have the other names that
            ``OptimalSurvivalTree.fit`` accepts.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. Rows with weight zero are left out. A row with an
            integer weight k has the effect of k copies, except that minimum numbers of rows and
            events count it once.
        callback : callable, optional
            Called as ``callback(progress)`` whenever the best tree or the lower bound improves, and
            every quarter of a second, in the thread of ``fit``. The attributes of ``progress`` are
            seconds, objective, lower_bound, gap, n_nodes_explored and, if there is a forecast,
            share and seconds_left. An exception that it raises ends the search and ``fit``.

        Returns
        -------
        CompetingRisksTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, a cause is negative or fractional or (without ``n_causes``)
            never occurs, there are more than eight causes, the numbers of rows differ, or a column
            cannot be read. The message names the parameter, column or row. An earlier fit is kept.
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
        ConstantFeatureWarning, ColumnWarning, SmallSampleWarning, EventFreeWarning
            As in ``OptimalSurvivalTree.fit``.
        """
        return self._fit(X, y, sample_weight, callback)

    @property
    def prior_(self) -> float:
        """Pseudo-events per leaf and cause."""
        self._check_fitted()
        return self.leaves_.of_cause[0].prior

    def predict(self, X: Any, cause: int = 1) -> Floats:
        """Predict the relative hazard θ of a cause, a risk score.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        cause : int, default=1
            Number of the cause.

        Returns
        -------
        array of float, shape (n,)
            Not negative; higher means more events of the cause per time at risk.

        Raises
        ------
        ValueError
            If there is no such cause.
        """
        leaves, rows = self._located(X)
        leaves.check_cause(cause)
        return leaves.theta[cause - 1][rows]

    def predict_cumulative_incidence(
        self, X: Any, cause: int = 1, times: ArrayLike | None = None
    ) -> Floats:
        """Predict the cumulative incidence of a cause: the probability of its event by each time.

        At each time, the incidences of all causes and the survival function sum to 1. They are
        constant after the last training time, which is the end of what the data say.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        cause : int, default=1
            Number of the cause.
        times : array-like of float, shape (n_times,), optional
            Finite, not negative; ``unique_times_`` by default.

        Returns
        -------
        array of float, shape (n, n_times)

        Raises
        ------
        ValueError
            If there is no such cause, or a time is negative or not finite.
        """
        leaves, rows = self._located(X)
        at = leaves.unique_times if times is None else check_times(times)
        leaves.check_cause(cause)
        return leaves.incidence_at(cause, at)[rows]

    def predict_survival_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict event-free survival: the probability of no event of any cause by each time.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        return_array : bool
            Return values at ``unique_times_`` instead of functions.
        times : array-like of float, shape (n_times,), optional
            Return values at these times instead of functions; finite, not negative.

        Returns
        -------
        array, shape (n,), (n, len(unique_times_)) or (n, n_times)
            Functions of time with ``x``, ``y`` and ``domain``, or float values.

        Raises
        ------
        ValueError
            If a time is negative or not finite.
        """
        leaves, rows = self._located(X)
        if times is None and not return_array:
            return leaves.functions(rows)
        at = leaves.unique_times if times is None else check_times(times)
        return leaves.survival_at(at)[rows]

    def log_likelihood(self, X: Any, y: Any, cause: int | None = None) -> Floats:
        """Log-likelihood of the outcome of every row under the hazards θ_k λ_k(t) of its leaf.

        It is the sum over the causes k of δ_k + δ_k ln H_k − H_k, with H_k = θ_k Λ_k from the row's
        entry to its time and δ_k = 1 for an event of cause k. This is the fitted minus the
        saturated log-likelihood, at most 0, whatever the ``leaf_curve``. Its mean over the training
        rows is ``-objective_value_`` if the tree has no prior, shrinkage, penalty or cause weights
        and every leaf has events of every cause. If Λ_k is 0, because no training event happened so
        early, it is replaced by 1/(W + 1), with W the training weight.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : structured array, DataFrame or pair
            As in ``fit``, but a cause need not occur.
        cause : int, optional
            Number of the only cause to count; by default all causes are counted.

        Returns
        -------
        array of float, shape (n,)
            Higher is better.

        Raises
        ------
        ValueError
            If there is no such cause, the numbers of rows differ, or (without ``cause``) ``y`` has
            an event of a cause that the tree does not know.
        """
        leaves, rows = self._located(X)
        check_row_labels(X, y=y)
        outcomes = read_causes(y)
        codes: NDArray[Any] = outcomes.event
        check_length(codes, "y", len(rows))
        counted = range(1, leaves.n_causes + 1)
        if cause is not None:
            leaves.check_cause(cause)
            counted = range(cause, cause + 1)
        elif codes.max() > leaves.n_causes:
            row = int(np.argmax(codes > leaves.n_causes))
            raise ValueError(
                f"y has an event of cause {codes[row]} in row {row}, but the tree was fitted to "
                f"{leaves.n_causes} causes"
            )
        found = np.zeros(len(codes))
        for k in counted:
            alone = outcomes._replace(event=codes == k)
            found += leaves.of_cause[k - 1].log_likelihood(rows, alone)
        return found

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, cause: int = 1
    ) -> float:
        """Concordance index of a cause; see :func:`bristlecone.metrics.concordance_index_cause`.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : structured array, DataFrame or pair
            As in ``fit``, but a cause need not occur, and without delayed entry, for which there is
            ``log_likelihood``.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative.
        cause : int, default=1
            Number of the cause.

        Returns
        -------
        float
            0.5 is chance, 1 is best.

        Raises
        ------
        ValueError
            If there is no such cause, no pair can be compared, or rows entered late.
        """
        check_row_labels(X, y=y, sample_weight=sample_weight)
        risk = self.predict(X, cause)
        return concordance_index_cause(y, risk, cause, sample_weight=sample_weight)

    def _check_labels(self, rows: TrainingData) -> None:
        found, known = rows.n_causes, self.leaves_.n_causes
        if found != known:
            raise ValueError(
                f"y has {found} causes, but the tree was fitted to {known}; reestimate needs rows "
                "with each"
            )

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        data = check_cause_data(X, y, sample_weight, self.n_causes)
        weights, n_causes = self._cause_weights(), data.n_causes
        if n_causes > MOST_CAUSES:
            raise ValueError(f"y has {n_causes} causes; at most {MOST_CAUSES} are supported")
        if weights and len(weights) != n_causes:
            raise InvalidParameterError(
                f"cause_weights has {len(weights)} values, but the number of causes is {n_causes}"
            )
        assert data.cause is not None
        if weights and not any(weights[k - 1] for k in set(data.cause[data.event].tolist())):
            raise ValueError("y has no event of a cause with a positive weight in cause_weights")
        return data

    def _cause_weights(self) -> tuple[float, ...]:
        if self.cause_weights is None:
            return ()
        given = as_array(by_cause(self.cause_weights, "cause_weights"), "cause_weights")
        if given.ndim != 1 or given.dtype.kind not in "biuf" or not given.size:
            raise InvalidParameterError(
                f"cause_weights must be None or one number per cause; got {self.cause_weights!r}"
            )
        weights = given.astype(np.float64)
        wrong = ~(np.isfinite(weights) & (weights >= 0))
        if wrong.any() or not weights.any():
            raise InvalidParameterError(
                f"cause_weights must be finite, not negative and not all 0; got {weights.tolist()}"
            )
        return tuple(weights.tolist())

    def _objective(self) -> CauseLikelihood:
        return CauseLikelihood(
            curve=self.leaf_curve,
            prior=prior_events(self.prior),
            shrinkage=0.0 if isinstance(self.shrinkage, str) else float(self.shrinkage),
            cause_weights=self._cause_weights(),
        )

    def _check_parameters(self) -> None:
        check_parameters(
            self,
            shrinkage=check_amount,
            leaf_curve=choice("aalen-johansen", "proportional"),
            n_causes=integer(1, MOST_CAUSES, optional=True),
        )
        if self.leaf_curve == "aalen-johansen" and self.shrinkage not in (0, "auto"):
            raise InvalidParameterError(
                "shrinkage needs leaf_curve='proportional', because an Aalen–Johansen curve is the "
                f"estimate from the rows of the leaf; got {self.shrinkage!r}"
            )
        self._cause_weights()
