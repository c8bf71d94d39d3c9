"""``OptimalSurvivalTree``: the provably best survival tree over a set of binary features."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.rows import check_row_labels
from bristlecone._data.survival import TrainingData, check_row_losses, check_training_data
from bristlecone._estimators.base import Taught
from bristlecone._estimators.parameters import check_amount, check_parameters, choice
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._leaves.predictions import StepPredictions
from bristlecone._objectives import LEAF_CURVES, SURVIVAL, SurvivalObjective
from bristlecone._objectives.fair import FairSurvival
from bristlecone._objectives.parity import RmstParity, groups_of
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError


@dataclass(kw_only=True, eq=False, repr=False)
class OptimalSurvivalTree(StepPredictions, Reestimation, Taught, SearchedTree):
    """Survival tree with the least loss among all trees over the binary features of the encoder.

    Parameters
    ----------
    objective : {"likelihood", "brier"}, default="likelihood"
        Loss of a leaf.

        * "likelihood": saturated minus fitted log-likelihood (half the deviance) of a proportional
          hazards model with one relative hazard θ per leaf. The baseline is the Nelson–Aalen
          estimate of all training rows [Huisman2024]_ (eq. 20), [LeBlanc1992]_.
        * "brier": integrated Brier score of the leaf's survival curve from 0 to the last training
          time, with inverse probability of censoring weights [Zhang2024]_ (eqs. 1–2).
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
        Number of pseudo-events with θ = 1 that are added to every leaf. It is not rescaled with the
        row weights. The θ of a leaf is the maximum a posteriori estimate (events + prior) /
        (expected events + prior), with the events expected at the baseline hazard, and its loss
        includes the term of the prior. "auto" is 10 for "likelihood"; "brier" has no prior (0).
    shrinkage : float or "auto", default="auto"
        Strength λ >= 0 of the hierarchical shrinkage of predictions [Agarwal2022]_. From the root
        down, each node adds λ pseudo-events with the θ of its parent (1 at the root). Kaplan–Meier
        curves are shrunk by λ pseudo-rows that follow the curve of the parent. The tree, its
        objective and bound, and ``leaf_statistics_`` do not change. "auto" is 20 with "brier", and
        0 with "likelihood" or ``fairness``; ``fairness`` requires 0.
    leaf_curve : {"auto", "proportional", "kaplan-meier", "brier-optimal"}, default="auto"
        Curve of a leaf. With "likelihood" it affects only predictions: "proportional" (the meaning
        of "auto") is exp(−θΛ) with the baseline Λ, and "kaplan-meier" is the leaf's own estimate.
        With "brier" it is the curve whose score is minimised: "kaplan-meier" (the meaning of
        "auto"), or "brier-optimal", the non-increasing step function with the least Brier score on
        the leaf, which is never worse.
    time_grid : array-like of float, shape (n_times,), or None, default=None
        Coarser times for "brier", strictly ascending, in the unit of ``y``. Each training time is
        rounded up to the next time of the grid, and rows beyond the last one are censored there.
        The objective, its bound and the curves then refer to the grid.
    fairness : RmstParity or None, default=None
        Limit on the difference in predicted restricted mean survival time (RMST) between two
        groups. Needs the groups, and ``leaf_curve="auto"``.
    teacher : "auto", estimator or None, default=None
        Model that smooths the outcomes before the search: its cross-fitted predictions are mixed
        into them, so the tree fits less noise. Statistics and predictions of the leaves use the
        real outcomes (docs/guide/teacher.md). "auto" combines ridge regression, a forest and
        boosting. A regressor is fitted to weighted event rates and predicts relative hazards. A
        survival model of scikit-survival, lifelines or this package predicts risks, which are then
        calibrated. Needs ``objective="likelihood"`` without ``fairness``.
    teacher_weight : float, default=0.5
        Share of the teacher's predictions in the smoothed outcomes, between 0 and 1.
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
        Seed of the teacher's folds and models; None is 0. Nothing else is random.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean loss per unit of weight plus ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features has a smaller objective.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same divided by ``abs(objective_value_)``.
    guarantee_ : float
        Largest amount by which another tree can be better than this one: ``gap_``, or
        ``reference_loss_`` if that is smaller and ``status_`` is "reference_optimal".
    status_ : {"optimal", "reference_optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
        "reference_optimal" means that the search finished, but skipped subtrees that would have to
        predict better than the reference model. After ``reestimate`` it is "reestimated".
    reference_loss_ : float or None
        Mean of ``reference_loss``; None if it was not passed.
    training_loss_ : float
        Loss of the tree on the real outcomes, without ``leaf_penalty``.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` is the index of a binary feature.
    leaf_statistics_ : tuple of LeafStatistics
        Rows, events, θ and curves of every leaf, left to right.
    leaf_curve_ : str
        The curve that is predicted, after "auto" is resolved.
    prior_ : float
        Pseudo-events per leaf, after "auto" is resolved.
    min_events_leaf_ : int
        Minimum number of events per leaf, after "auto" is resolved; 0 for no minimum.
    shrinkage_ : float
        Strength of the shrinkage, after "auto" is resolved.
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
    groups_ : array, shape (2,), or None
        The two groups that ``fairness`` compares, in sorted order; None without ``fairness``.
    group_rmst_ : array of float, shape (2,), or None
        Restricted mean survival time (RMST) that the tree predicts, averaged over the training rows
        of each group.
    unique_times_, event_times_ : array of float
        Distinct training times, and those with an event.
    baseline_ : Baseline
        These times with the baseline cumulative hazard Λ.

    See Also
    --------
    GreedySurvivalTree : A tree grown greedily, one split at a time.
    SoftSurvivalTree : Soft splits on all columns, and a survival model in every leaf.

    References
    ----------
    .. [Huisman2024] Huisman, van der Linden, Demirović, "Optimal Survival Trees: A Dynamic
       Programming Approach", AAAI 2024.
    .. [LeBlanc1992] LeBlanc, Crowley, "Relative risk trees for censored survival data", Biometrics
       48 (1992).
    .. [Zhang2024] Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024.
    .. [Agarwal2022] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy
        and interpretability of tree-based methods", ICML 2022.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> veterans = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    >>> tree.status_, tree.n_leaves_
    ('optimal', 2)
    """

    objective: Literal["likelihood", "brier"] = "likelihood"
    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 1
    min_events_leaf: int | float | Literal["auto"] | None = "auto"
    leaf_penalty: float = 0.0
    prior: float | Literal["auto"] = "auto"
    shrinkage: float | Literal["auto"] = "auto"
    leaf_curve: Literal["auto", "proportional", "kaplan-meier", "brier-optimal"] = "auto"
    time_grid: ArrayLike | None = None
    fairness: RmstParity | None = None
    teacher: Any = None
    teacher_weight: float = 0.5
    time_limit: float | None = None
    memory_limit: int | None = None
    n_jobs: int | None = None
    encoder: Any = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        reference_loss: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> OptimalSurvivalTree:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numeric, boolean or categorical columns; convert dates to numbers first. The default
            encoder accepts missing values; a custom encoder may not.
        y : structured array, DataFrame or pair
            A structured array with one boolean field (event) and one float field (time), of any
            names; a DataFrame with columns ``event`` and ``time``; or a pair ``(event, time)``,
            which cross-validation cannot split. Arrays and DataFrames may also have ``entry``
            (delayed entry). The columns of a DataFrame may have other well-known names, in upper or
            lower case:

            * event: event, status, observed, uncensored, death, died, dead, deceased, failure,
              failed, fail, relapse, relapsed, recurrence, recurred, progression, progressed,
              churn, churned, arrest, delta, fstat, fustat, d, e;
            * time: time, duration, tenure, lifetime, followup, survtime, futime, rfstime, lenfol,
              hours, days, weeks, months, years, stop, tstop, exit, t;
            * entry: entry, or start and tstart beside stop, tstop or exit.

            Names may be joined, as in ``event_observed``, ``survival_time`` or ``time_to_death``.
            Other names raise an error. So do ``censored``, ``alive`` and similar names, which mean
            the opposite of an event: pass ``event = ~censored``.

            ``entry`` is the time at which a row came under observation (delayed entry, left
            truncation): the row is at risk at t if ``entry < t <= time``. "brier" does not support
            it. A DataFrame may have ``start`` and ``stop``, or ``entry`` and ``exit``, instead.
            Durations are converted to days. If ``start`` and ``stop`` are dates, the time is the
            number of days between them, and there is no delayed entry.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. Rows with weight zero are left out. A row with an
            integer weight k has the effect of k copies, except that minimum numbers of rows and
            events count it once, and that a teacher may treat it differently.
        sensitive_features : array-like, shape (n,), optional
            Group of every row, with two values, for ``fairness``. If you pass it,
            ``fairness.sensitive_feature`` is not used.
        reference_loss : array-like of float, shape (n,), optional
            Contribution of each row to the integrated Brier score of a reference model, from
            :func:`bristlecone.reference.brier_reference_loss`. The search skips subtrees that would
            have to predict better than this model. It is faster and proves less: ``status_`` is
            "reference_optimal", and ``guarantee_`` is the proven bound. With ``fairness``, the
            search does not use it.
        callback : callable, optional
            Called as ``callback(progress)`` whenever the best tree or the lower bound improves, and
            every quarter of a second, in the thread of ``fit``. The attributes of ``progress`` are
            seconds, objective, lower_bound, gap, n_nodes_explored and, if there is a forecast,
            share and seconds_left. An exception that it raises ends the search and ``fit``.

        Returns
        -------
        OptimalSurvivalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, the numbers of rows differ, or a column cannot be read.
            The message names the parameter, column or row. An earlier fit is kept.
        InfeasibleError
            If a limit or Ctrl-C stopped the search before it found a tree that satisfies
            ``fairness``. ``status_`` has the reason.
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
        ConstantFeatureWarning
            If every column of ``X`` is constant.
        ColumnWarning
            If a column has no values, or may be read differently from what you meant, such as
            numbers stored as text.
        SmallSampleWarning
            If ``min_samples_leaf`` or ``min_events_leaf`` is too large for any split, so the
            tree is a single leaf, or if a fold of the teacher has few events.
        EventFreeWarning
            If one binary feature separates rows without events although at least 20 are expected in
            them. Then ``min_events_leaf="auto"`` sets no minimum.
        """
        start = time.perf_counter()
        groups = {"sensitive_features": sensitive_features}
        search, problem = self._asked(X, y, sample_weight, callback, **groups)
        check_row_labels(X, reference_loss=reference_loss)
        if reference_loss is not None:
            if self.objective != "brier":
                raise InvalidParameterError("reference_loss needs objective='brier'")
            losses = check_row_losses("reference_loss", reference_loss, problem.data)
            problem = replace(problem, reference_loss=losses)
        return self._found(search, problem, start, callback)

    @property
    def groups_(self) -> NDArray[Any] | None:
        """The two groups that ``fairness`` compares; None without ``fairness``."""
        groups = self.certificate_.groups
        return None if groups is None else groups.groups.copy()

    @property
    def group_rmst_(self) -> Floats | None:
        """Predicted restricted mean survival time (RMST), averaged over the rows of each group."""
        groups = self.certificate_.groups
        return None if groups is None else groups.values.copy()

    def _training_data(
        self, X: Any, y: Any, sample_weight: Any, *, sensitive_features: Any = None
    ) -> TrainingData:
        data = self._loss().prepare(check_training_data(X, y, sample_weight))
        if self.fairness is not None:
            groups = groups_of(self.fairness, X, sensitive_features, data.kept)
            return data._replace(groups=groups.values, group=groups.codes)
        if sensitive_features is not None:
            raise InvalidParameterError(
                "sensitive_features needs fairness, such as RmstParity(limit)"
            )
        return data

    def _loss(self) -> SurvivalObjective:
        shrinkage = self.shrinkage
        if self.fairness is not None and shrinkage == "auto":
            shrinkage = 0.0
        return SURVIVAL[self.objective].of(
            leaf_curve=self.leaf_curve,
            prior=self.prior,
            shrinkage=shrinkage,
            time_grid=self.time_grid,
        )

    def _objective(self) -> SurvivalObjective | FairSurvival:
        loss = self._loss()
        if self.fairness is None:
            return loss
        tau = None if self.fairness.tau is None else float(self.fairness.tau)
        return FairSurvival(inner=loss, limit=float(self.fairness.limit), tau=tau)

    def _check_parameters(self) -> None:
        check_parameters(
            self,
            objective=choice(*SURVIVAL),
            shrinkage=check_amount,
            leaf_curve=choice(*LEAF_CURVES),
        )
        smooth = self.objective == "likelihood" and self.fairness is None
        if self.teacher is not None and not smooth:
            raise InvalidParameterError(
                "teacher needs objective='likelihood' without fairness: the Brier score is not a "
                "sum of events, and a limit on groups holds for their real outcomes"
            )
        allowed = SURVIVAL[self.objective].curves
        if self.leaf_curve not in ("auto", *allowed):
            raise InvalidParameterError(
                f"leaf_curve={self.leaf_curve!r} cannot be used with objective="
                f"{self.objective!r}, which supports {' and '.join(map(repr, allowed))}"
            )
        if self.fairness is not None:
            if self.shrinkage not in (0, "auto"):
                raise InvalidParameterError(
                    "shrinkage must be 0 or 'auto' with fairness, because the limit applies to the "
                    f"curves without shrinkage; got {self.shrinkage!r}"
                )
            if not isinstance(self.fairness, RmstParity):
                raise InvalidParameterError(
                    f"fairness must be None or RmstParity(limit); got {self.fairness!r}"
                )
            self.fairness._check_parameters()
            if self.leaf_curve not in ("auto", allowed[0]):
                raise InvalidParameterError(
                    f"fairness applies to the predicted curves; with objective="
                    f"{self.objective!r} it needs leaf_curve={allowed[0]!r}"
                )
        self._loss()
