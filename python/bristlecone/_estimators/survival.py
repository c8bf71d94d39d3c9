"""``OptimalSurvivalTree``: the provably best survival tree over a set of binary features."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.rows import check_row_labels
from bristlecone._data.survival import TrainingData, check_row_losses, check_training_data
from bristlecone._estimators.docstrings import documented
from bristlecone._estimators.parameters import check_parameters, check_shrinkage, choice
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._leaves.predictions import StepPredictions
from bristlecone._objectives import LEAF_CURVES, SURVIVAL, SurvivalObjective
from bristlecone._objectives.fair import FairSurvival
from bristlecone._objectives.parity import RmstParity
from bristlecone.exceptions import InvalidParameterError

__all__ = ["OptimalSurvivalTree"]


@documented
class OptimalSurvivalTree(StepPredictions, Reestimation, SearchedTree):
    """Survival tree of least loss among all trees over the binary features of the encoder.

    Parameters
    ----------
    objective : {"likelihood", "brier"}
        Loss of a leaf. "likelihood": saturated minus fitted log-likelihood of a proportional
        hazards model with one relative hazard θ per leaf and the Nelson–Aalen estimate of the
        training rows as the baseline [Huisman2024]_ (eq. 20), [LeBlanc1992]_. "brier": integrated
        Brier score of the leaf's survival curve over [0, last time], weighted by the inverse
        probability of censoring [Zhang2024]_ (eqs. 1–2).
    {max_depth, max_leaf_nodes, min_samples_leaf, min_events_leaf}
    leaf_penalty : float
        Added to the mean loss per leaf.
    {prior}
        "auto" is 10 for "likelihood"; "brier" has no prior (0).
    shrinkage : float or "auto"
        λ >= 0 of hierarchical shrinkage of the predictions, after [Agarwal2022]_: from the root
        down, every node counts λ pseudo-events at the θ of its parent (at 1 above the root), and a
        step curve λ pseudo-rows that follow the curve of its parent. Tree, objective and bound do
        not depend on it, nor does ``leaf_statistics_``. "auto" is 0 with "likelihood" and with
        ``fairness``, which has no other, and 20 with "brier".
    leaf_curve : {"auto", "proportional", "kaplan-meier", "brier-optimal"}
        Curve of a leaf. With "likelihood" it is for predictions only: "proportional" (which is
        "auto") is exp(−θΛ) with the baseline Λ, "kaplan-meier" the leaf's own estimate. With
        "brier" it is what is scored: "kaplan-meier" (which is "auto"), or "brier-optimal", the
        non-increasing step function of least Brier score on the leaf, never worse.
    time_grid : array-like of float, shape (n_times,), or None
        Coarser times for "brier", strictly ascending: the time of a training row is moved up to the
        next one of the grid, and a row beyond the last is censored there. This changes the
        objective: the optimum, its value, its bound and the curves are those of the grid.
    fairness : RmstParity or None
        Limit on the difference of the mean restricted survival time between two groups, for the
        curves that leaves predict. Needs ``leaf_curve`` "auto", and the groups.
    {time_limit, memory_limit, n_jobs, encoder, random_state, verbose}

    Attributes
    ----------
    objective_value_ : float
        Mean loss per unit of weight plus ``leaf_penalty`` times the number of leaves.
    {lower_bound_, gap_}
    guarantee_ : float
        How much better than this tree another one can be at most: ``gap_`` or, when ``status_`` is
        "reference_optimal", ``reference_loss_`` if that is less.
    status_ : {"optimal", "reference_optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features;
        "reference_optimal" that the search ended, but left out what a reference model does worse.
    reference_loss_ : float or None
        Mean of ``reference_loss``, None for a fit without.
    {tree_}
    leaf_statistics_ : tuple of LeafStatistics
        Rows, events, θ and curves of every leaf, left to right.
    {leaf_curve_, prior_, min_events_leaf_, shrinkage_, n_leaves_, n_binary_features_}
    {n_nodes_explored_, trace_, fit_time_, encoder_, n_features_in_, feature_names_in_}
    {features_used_}
    {questions_, feature_importances_, leaves_, certificate_}
    groups_ : array, shape (2,), or None
        The two values of the groups that ``fairness`` compares, sorted; None without.
    group_rmst_ : array of float, shape (2,), or None
        Mean restricted survival time that the tree predicts for either group's training rows.
    {unique_times_, baseline_}

    See Also
    --------
    GreedySurvivalTree : One best split after the other.
    SoftSurvivalTree : Weighs columns, with a survival model in every leaf.

    References
    ----------
    .. [Huisman2024] Huisman, van der Linden, Demirović, "Optimal Survival Trees: A Dynamic
       Programming Approach", AAAI 2024.
    .. [LeBlanc1992] LeBlanc, Crowley, "Relative risk trees for censored survival data", Biometrics
       48 (1992).
    .. [Zhang2024] Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024.
    {Agarwal2022}

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> veterans = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    >>> tree.status_, tree.n_leaves_
    ('optimal', 2)
    """

    def __init__(
        self,
        *,
        objective: str = "likelihood",
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | float = 1,
        min_events_leaf: int | float | str | None = "auto",
        leaf_penalty: float = 0.0,
        prior: float | str = "auto",
        shrinkage: float | str = "auto",
        leaf_curve: str = "auto",
        time_grid: ArrayLike | None = None,
        fairness: RmstParity | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        encoder: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_events_leaf = min_events_leaf
        self.leaf_penalty = leaf_penalty
        self.prior = prior
        self.shrinkage = shrinkage
        self.leaf_curve = leaf_curve
        self.time_grid = time_grid
        self.fairness = fairness
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.encoder = encoder
        self.random_state = random_state
        self.verbose = verbose

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
        {X}
        {y}
            A further field or column ``entry`` is the time from which
            a row was observed (delayed entry, left truncation): the row is at risk at t when
            ``entry < t <= time``. Refused by "brier". A DataFrame may have ``start`` and ``stop``,
            or ``entry`` and ``exit``, instead. Durations count in days; where both are dates, the
            time is the days between them, and nobody enters late.
        {sample_weight}
        sensitive_features : array-like, shape (n,), optional
            Group of every row, of two values, for ``fairness``; takes the place of its
            ``sensitive_feature``.
        reference_loss : array-like of float, shape (n,), optional
            What each row adds to the integrated Brier score of a reference model, from
            :func:`bristlecone.reference.brier_reference_loss`. The search leaves out subtrees that
            would have to be better than the reference. It is faster and proves less: ``status_``
            is "reference_optimal", and ``guarantee_`` says what is certain.
        {callback}

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError}
        InfeasibleError
            When a limit or Ctrl-C, which ``status_`` names, stopped the search before a tree that
            keeps ``fairness`` was met.
        {KeyboardInterrupt}

        Warns
        -----
        {SearchLimitWarning, SearchCostWarning, ConstantFeatureWarning, SmallSampleWarning}
        {EventFreeWarning}
        """
        start = time.perf_counter()
        search, problem = self._asked(X, y, sample_weight, sensitive_features=sensitive_features)
        check_row_labels(X, reference_loss=reference_loss)
        losses = self._reference(reference_loss, problem.data)
        if losses is not None:
            problem = problem._replace(reference_loss=losses)
        return self._found(search, problem, start, callback)

    @property
    def groups_(self) -> NDArray[Any] | None:
        """The two values of the groups that ``fairness`` compares; None without."""
        groups = self.certificate_.groups
        return None if groups is None else groups.groups

    @property
    def group_rmst_(self) -> NDArray[np.float64] | None:
        """Mean restricted survival time that the tree predicts for either group's rows."""
        groups = self.certificate_.groups
        return None if groups is None else groups.values

    def _training_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        sensitive_features: Any = None,
    ) -> TrainingData:
        data = self._loss().prepare(check_training_data(X, y, sample_weight))
        if self.fairness is not None:
            groups = self.fairness.groups_of(X, sensitive_features, data.kept)
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
        return FairSurvival(inner=loss, limit=self.fairness.limit, tau=self.fairness.tau)

    def _reference(
        self, reference_loss: ArrayLike | None, data: TrainingData
    ) -> NDArray[np.float64] | None:
        """Reference losses of the rows of the fit."""
        if reference_loss is None:
            return None
        if self.objective != "brier":
            raise InvalidParameterError("reference_loss needs objective='brier'")
        return check_row_losses("reference_loss", reference_loss, data)

    def _check_parameters(self) -> None:
        check_parameters(
            self,
            objective=choice(*SURVIVAL),
            shrinkage=check_shrinkage,
            leaf_curve=choice(*LEAF_CURVES),
        )
        allowed = SURVIVAL[self.objective].curves
        if self.leaf_curve not in ("auto", *allowed):
            raise InvalidParameterError(
                f"leaf_curve={self.leaf_curve!r} does not go with objective={self.objective!r}, "
                f"which has {' and '.join(map(repr, allowed))}"
            )
        if self.fairness is not None:
            if self.shrinkage not in (0, "auto"):
                raise InvalidParameterError(
                    "shrinkage must be 0 or 'auto' with fairness, which limits the curves of the "
                    f"leaves as they are; got {self.shrinkage!r}"
                )
            if not isinstance(self.fairness, RmstParity):
                raise InvalidParameterError(
                    f"fairness must be None or RmstParity(limit); got {self.fairness!r}"
                )
            self.fairness.check()
            if self.leaf_curve not in ("auto", allowed[0]):
                raise InvalidParameterError(
                    f"fairness limits the curves that are predicted; with objective="
                    f"{self.objective!r} it needs leaf_curve={allowed[0]!r}"
                )
        self._loss()
