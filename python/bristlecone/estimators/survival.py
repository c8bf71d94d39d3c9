"""``OptimalSurvivalTree``: the provably best survival tree over a set of binary features."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from bristlecone.curves import rmst
from bristlecone.data.checks import (
    TrainingData,
    check_choice,
    check_integer,
    check_row_losses,
    check_training_data,
)
from bristlecone.encoder.cuts import RankedColumns
from bristlecone.errors import InvalidParameterError, SearchLimitWarning
from bristlecone.estimators.encoded import binary_features
from bristlecone.estimators.labels import read_labels, saved_labels
from bristlecone.estimators.searched import Callback, Engine, Problem, SolverMixin
from bristlecone.estimators.survival_predictions import SurvivalTreeMixin
from bristlecone.leaves.minimum import (
    check_min_events,
    check_prior,
    event_free_rows,
    warn_of_event_free_rows,
    warn_of_small_sample,
)
from bristlecone.leaves.shrinkage import check_shrinkage
from bristlecone.leaves.survival import LeafStatistics, SurvivalRows
from bristlecone.model.registry import Fields, register
from bristlecone.objectives import LEAF_CURVES, OBJECTIVES, Objective
from bristlecone.objectives.parity import RmstParity
from bristlecone.search.solve_front import solve_front
from bristlecone.tree import Tree

__all__ = ["OptimalSurvivalTree"]


@register
class OptimalSurvivalTree(SolverMixin, SurvivalTreeMixin, BaseEstimator):
    """Survival tree of least loss among all trees over the binary features of the encoder.

    Parameters
    ----------
    objective : {"likelihood", "brier"}, default="likelihood"
        Loss of a leaf. "likelihood": saturated minus fitted log-likelihood of a proportional
        hazards model with one relative hazard θ per leaf and the Nelson–Aalen estimate of the
        training rows as the baseline [1]_ (eq. 20), [2]_. "brier": integrated Brier score of the
        leaf's survival curve over [0, last time], weighted by the inverse probability of
        censoring [3]_ (eqs. 1–2).
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int or float, default=1
        Fewest training rows in a leaf, whatever their weights; a float between 0 and 1 is a share
        of the training rows, rounded up.
    min_events_leaf : int, float, "auto" or None, default="auto"
        Fewest training rows with an event in a leaf, whatever their weights; a float between 0 and
        1 is a share of the training events, rounded up. "auto" is 5, or all events where there are
        fewer, and no minimum where one question tells rows apart that have no event though 20 or
        more are expected; a warning says so. None: no minimum.
    leaf_penalty : float, default=0.0
        Added to the mean loss per leaf.
    prior : float or "auto", default="auto"
        Pseudo-events at θ = 1 that every leaf has besides its own: the loss of a leaf is that of
        the maximum a posteriori, θ = (events + prior) / (hazard + prior), with the prior's term.
        "auto" is 10 for "likelihood"; "brier" has no prior (0).
    shrinkage : float or "auto", default="auto"
        λ >= 0 of hierarchical shrinkage of the predictions, after [4]_: from the root down, every
        node counts λ pseudo-events at the θ of its parent (at 1 above the root), and a step curve λ
        pseudo-rows that follow the curve of its parent. Tree, objective and bound do not depend on
        it, nor does ``leaf_statistics_``. "auto" is 0 with "likelihood" and with ``fairness``,
        which has no other, and 20 with "brier".
    leaf_curve : {"auto", "proportional", "kaplan-meier", "brier-optimal"}, default="auto"
        Curve of a leaf. With "likelihood" it is for predictions only: "proportional" (which is
        "auto") is exp(−θΛ) with the baseline Λ, "kaplan-meier" the leaf's own estimate. With
        "brier" it is what is scored: "kaplan-meier" (which is "auto"), or "brier-optimal", the
        non-increasing step function of least Brier score on the leaf, never worse.
    time_grid : array-like of float, shape (n_times,), or None, default=None
        Coarser times for "brier", strictly ascending: the time of a training row is moved up to the
        next one of the grid, and a row beyond the last is censored there. This changes the
        objective: the optimum, its value, its bound and the curves are those of the grid.
    fairness : RmstParity or None, default=None
        Limit on the difference of the mean restricted survival time between two groups, for the
        curves that leaves predict. Needs ``leaf_curve`` "auto", and the groups.
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes the tables of the search may take; None is 600 MiB. With less it is slower, and with
        too little for any table it stops likewise.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The tree of a completed search does not depend on it.
    encoder : "auto" or transformer, default="auto"
        Turns ``X`` into binary features; "auto" is ``BinaryEncoder()`` with the cuts of
        greedy trees over every threshold (docs/guide/encoder.md). A clone is fitted to the
        training rows. Any transformer will do whose output is two-dimensional and holds nothing
        but 0 and 1, and which has ``get_feature_names_out``.
    random_state : int, RandomState or None, default=None
        Accepted for uniformity; the search is deterministic and does not use it.
    verbose : int, default=0
        1 or more reports a fit at level INFO of the logger "bristlecone", else DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean loss per unit of weight plus ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features is below this.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
    guarantee_ : float
        How much better than this tree another one can be at most: ``gap_`` or, when ``status_`` is
        "reference_optimal", ``reference_loss_`` if that is less.
    status_ : {"optimal", "reference_optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features;
        "reference_optimal" that the search ended, but left out what a reference model does worse.
    reference_loss_ : float or None
        Mean of ``reference_loss``, None for a fit without.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
    leaf_statistics_ : tuple of LeafStatistics
        Rows, events, θ and curves of every leaf, left to right.
    leaf_curve_ : str
        Curve that is predicted: what ``leaf_curve`` meant to the fit.
    prior_ : float
        Pseudo-events of every leaf: what ``prior`` meant to the fit.
    min_events_leaf_ : int
        Fewest events of a leaf: what ``min_events_leaf`` meant to the fit; 0 for no minimum.
    shrinkage_ : float
        λ of the predictions: what ``shrinkage`` meant to the fit.
    n_leaves_, depth_ : int
        Size of the tree.
    n_binary_features_ : int
        Binary features the encoder made.
    n_nodes_explored_ : int
        Work of the search.
    trace_ : list of (float, float, float)
        Seconds, objective and lower bound at each improvement.
    fit_time_ : float
        Seconds ``fit`` took.
    encoder_ : transformer
        The fitted encoder.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : array of str
        Their names; only when ``X`` had names.
    features_used_ : list of str or int
        The columns that the tree asks about; no others are needed at prediction.
    groups_ : array, shape (2,), or None
        The two values of the groups that ``fairness`` compares, sorted; None without.
    group_rmst_ : array of float, shape (2,), or None
        Mean restricted survival time that the tree predicts for either group's training rows.
    unique_times_, event_times_ : array of float
        Distinct training times, and those with an event.
    baseline_ : Baseline
        Both of them with the baseline cumulative hazard Λ.

    References
    ----------
    .. [1] Huisman, van der Linden, Demirović, "Optimal Survival Trees: A Dynamic Programming
       Approach", AAAI 2024.
    .. [2] LeBlanc, Crowley, "Relative risk trees for censored survival data", Biometrics 48 (1992).
    .. [3] Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024.
    .. [4] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy and
       interpretability of tree-based methods", ICML 2022.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> veterans = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    >>> tree.status_, tree.n_leaves_
    ('optimal', 2)
    """

    _event_free = ""

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
        sensitive: ArrayLike | None = None,
        reference_loss: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> OptimalSurvivalTree:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories; missing values as the encoder allows.
        y : structured array, DataFrame or pair
            A structured array of one boolean (event) and one float field (time), a DataFrame with
            columns ``event`` and ``time`` (or exactly one two-valued and one numeric column), or
            a pair ``(event, time)``. A further field or column ``entry`` is the time from which
            a row was observed (delayed entry, left truncation): the row is at risk at t when
            ``entry < t <= time``. Refused by "brier". A DataFrame may have ``start`` and ``stop``,
            or ``entry`` and ``exit``, instead. Durations count in days; where both are dates, the
            time is the days between them, and nobody enters late.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows (with ``min_samples_leaf=1``).
        sensitive : array-like, shape (n,), optional
            Group of every row, of two values, for ``fairness``; in place of its
            ``sensitive_feature``.
        reference_loss : array-like of float, shape (n,), optional
            What each row adds to the integrated Brier score of a reference model, from
            :func:`bristlecone.reference.brier_reference_loss`. The search leaves out subtrees that
            would have to be better than the reference. It is faster and proves less: ``status_``
            is "reference_optimal", and ``guarantee_`` says what is certain.
        callback : callable, optional
            Called with a :class:`~bristlecone.SearchProgress` whenever the best tree or
            the lower bound may have improved, and every quarter of a second, on the thread of
            ``fit``. An exception it raises ends the search and ``fit``.

        Returns
        -------
        OptimalSurvivalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, rows that do not fit together, and columns that
            cannot be read; parameter, column or row is named, and an earlier fit is kept.
        InfeasibleError
            When a limit or Ctrl-C, which ``status_`` names, stopped the search before a tree that
            keeps ``fairness`` was met.
        KeyboardInterrupt
            At a second Ctrl-C within a second; an earlier fit is kept.

        Warns
        -----
        SearchLimitWarning
            When a limit or Ctrl-C stopped the search; the gap is given.
        SearchCostWarning
            At the start of a search without ``time_limit`` that is forecast to take more than ten
            minutes.
        ConstantFeatureWarning
            When every column of ``X`` takes a single value.
        SmallSampleWarning
            When a share or "auto" as ``min_samples_leaf`` or ``min_events_leaf`` leaves nothing to
            split: the tree is a single leaf.
        EventFreeWarning
            When one question tells rows apart that have no event where twenty or more are
            expected, so that ``min_events_leaf="auto"`` is no minimum.
        """
        start = time.perf_counter()
        problem = self._problem(X, y, sample_weight, sensitive=sensitive)
        reference = self._reference(reference_loss, problem.data)
        options = {} if reference is None else {"reference_loss": reference}
        self._search(problem, start, callback, **options)
        if reference is not None:
            self.reference_loss_ = float(np.average(reference, weights=problem.data.weight))
        self._announce([self])
        return self

    def all_optimal_trees(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, limit: int = 100
    ) -> list[OptimalSurvivalTree]:
        """Every tree that reaches the optimum, to within 1e-9, from one search.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        limit : int, default=100
            Most trees to return.

        Returns
        -------
        list of OptimalSurvivalTree
            Fitted trees with the parameters of this estimator, which is left as it is; the fitted
            encoder is shared. Few leaves come first. Features that divide the training rows of a
            node in the same way count once, by the first of them. When the search is stopped, the
            best tree alone.

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As in ``fit``.

        Warns
        -----
        SearchLimitWarning
            When there are more trees than ``limit``, or a limit or Ctrl-C stopped the search.
        ConstantFeatureWarning
            As in ``fit``.
        """
        start = time.perf_counter()
        check_integer("limit", limit, 1)
        if self.fairness is not None:
            raise InvalidParameterError("all_optimal_trees has no fairness")
        problem = self._problem(X, y, sample_weight)
        # One more tells whether there are more.
        found = self._run(self._with(problem, "all_optimal"), problem, limit=limit + 1)
        trees = []
        for solution in found[:limit]:
            tree = clone(self)
            tree._set_solution(solution, problem, start)
            trees.append(tree)
        trees[0]._announce(trees)
        if len(found) > limit:
            warnings.warn(
                f"more than limit={limit} trees reach the optimum; the others are left out",
                SearchLimitWarning,
                stacklevel=2,
            )
        return trees

    def _training_data(
        self, X: Any, y: Any, sample_weight: Any, *, sensitive: Any = None
    ) -> TrainingData:
        data = self._objective().prepare(self, check_training_data(X, y, sample_weight))
        if self.fairness is not None:
            groups, group = self.fairness.groups_of(X, sensitive, data.kept)
            return data._replace(groups=groups, group=group)
        if sensitive is not None:
            raise InvalidParameterError("sensitive needs fairness, such as RmstParity(limit)")
        return data

    def _smallest_leaf(self, data: TrainingData, n_rows: int) -> dict[str, int]:
        events = self._least_events(data)
        return {**super()._smallest_leaf(data, n_rows), "min_events_leaf": events}

    def _examined(
        self, data: TrainingData, encoder: Any
    ) -> tuple[TrainingData, NDArray[np.uint8] | None]:
        if self.min_events_leaf != "auto":
            return data, None
        features = binary_features(encoder, data.X)
        return data._replace(event_free=event_free_rows(encoder, features, data)), features

    def _warn_of_data(self, stacklevel: int) -> None:
        super()._warn_of_data(stacklevel + 1)
        warn_of_event_free_rows(self._event_free, stacklevel=stacklevel)

    def _warn_of_small_sample(self, problem: Problem, stacklevel: int) -> None:
        fewest = self._smallest_leaf(problem.data, len(problem.features))
        warn_of_small_sample(
            problem.features,
            (self.min_samples_leaf, fewest["min_samples_leaf"]),
            (self.min_events_leaf, fewest["min_events_leaf"], problem.data.event),
            stacklevel=stacklevel,
        )

    def _prior(self) -> float:
        return self._objective().prior(self.prior)

    def _engine(self, problem: Problem) -> Engine:
        forecast = self._with(problem, "forecast") if self._objective().has_forecast else None
        if self.fairness is not None:
            fair = partial(solve_front, *self._fair_task(problem), problem.features)
            return Engine(fair, None, forecast)
        return Engine(self._with(problem, "solve"), self._with(problem, "path"), forecast)

    def _sum_task(
        self, data: TrainingData, columns: RankedColumns | None = None
    ) -> tuple[str, dict[str, Any]]:
        objective = self._objective()
        task = {name: getattr(data, name) for name in ("time", "event", "weight")}
        return objective.name, {**task, **objective.engine_options(self, data)}

    def _fair_task(self, problem: Problem) -> tuple[str, dict[str, Any]]:
        """Name and data of the engine's task."""
        data, fairness = problem.data, self.fairness
        assert fairness is not None
        arrays = {name: getattr(data, name) for name in ("time", "event", "weight", "group")}
        arrays |= self._objective().fair_options(self, data)
        arrays |= {"delta": float(fairness.limit), "tau": self._tau(data.time)}
        return "fair-survival", arrays

    def _tau(self, time: NDArray[np.float64]) -> float:
        tau = None if self.fairness is None else self.fairness.tau
        return float(time.max() if tau is None else tau)

    def _with(self, problem: Problem, what: str) -> Callable[..., Any]:
        """A function of the engine with the data of the problem."""
        data, objective = problem.data, self._objective()
        options = objective.engine_options(self, data)
        function = objective.engine(what)
        return partial(function, problem.features, data.time, data.event, data.weight, **options)

    def _reference(
        self, reference_loss: ArrayLike | None, data: TrainingData
    ) -> NDArray[np.float64] | None:
        """Reference losses of the rows of the fit."""
        if reference_loss is None:
            return None
        if self.objective != "brier":
            raise InvalidParameterError("reference_loss needs objective='brier'")
        return check_row_losses("reference_loss", reference_loss, data)

    def _set_found(self, tree: Tree, problem: Problem, solution: Any) -> None:
        # One for all trees of the problem, as of a size path.
        if "rows" not in problem.memo:
            problem.memo["rows"] = SurvivalRows(problem.data, self._prior())
        self._set_leaves(tree, problem.features, problem.memo["rows"])
        self._event_free = problem.data.event_free
        self.groups_, self.group_rmst_ = None, None
        data = problem.data
        if data.group is not None:
            times = self.unique_times_
            means = rmst(times, self._leaf_survival(times), self._tau(data.time))
            of_row = np.asarray(means)[tree.leaf_index(problem.features)]
            weight = np.ones(len(of_row)) if data.weight is None else data.weight
            total = np.bincount(data.group, weights=weight)
            self.groups_ = data.groups
            self.group_rmst_ = np.bincount(data.group, weights=weight * of_row) / total

    def _statistics(
        self, tree: Tree, leaf: NDArray[np.int64], rows: SurvivalRows
    ) -> tuple[LeafStatistics, ...]:
        statistics = super()._statistics(tree, leaf, rows)
        return self._objective().finish_leaves(self, statistics, leaf, rows.data)

    def _check_parameters(self) -> None:
        check_choice("objective", self.objective, tuple(OBJECTIVES))
        check_choice("leaf_curve", self.leaf_curve, LEAF_CURVES)
        check_min_events(self.min_events_leaf)
        check_prior(self.prior)
        allowed = self._objective().leaf_curves
        if self.leaf_curve not in ("auto", *allowed):
            raise InvalidParameterError(
                f"leaf_curve={self.leaf_curve!r} does not go with objective={self.objective!r}, "
                f"which has {' and '.join(map(repr, allowed))}"
            )
        check_shrinkage(self.shrinkage, auto=True)
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
            if self._curve() != allowed[0]:
                raise InvalidParameterError(
                    f"fairness limits the curves that are predicted; with objective="
                    f"{self.objective!r} it needs leaf_curve={allowed[0]!r}"
                )
        self._objective().check_parameters(self)
        super()._check_parameters()

    def _saved_fields(self) -> dict[str, Any]:
        saved = {**super()._saved_fields(), **self._saved_regularisation()}
        if self.groups_ is not None and self.group_rmst_ is not None:
            groups = {"values": saved_labels(self.groups_), "rmst": self.group_rmst_.tolist()}
            saved["groups"] = groups
        return saved

    def _read_fields(self, fields: Fields) -> None:
        super()._read_fields(fields)
        self._read_regularisation(fields)
        self.groups_, self.group_rmst_ = None, None
        if "groups" in fields.names():
            groups = fields.object("groups")
            self.groups_ = read_labels(groups.object("values"))
            self.group_rmst_ = groups.numbers("rmst")
            groups.finish()
            if self.groups_.shape != (2,) or self.group_rmst_.shape != (2,):
                raise fields.fail("groups", "are not two")

    def _objective(self) -> type[Objective]:
        return OBJECTIVES[self.objective]

    def _curve(self) -> str:
        return self._objective().curve(self.leaf_curve)

    def _shrinkage(self) -> float:
        if self.shrinkage != "auto":
            return float(self.shrinkage)
        return 0.0 if self.fairness is not None else self._objective().auto_shrinkage

    def _predicts_theta(self) -> bool:
        return self._fitted_objective().predicts_theta

    def _leaf_risk(self) -> NDArray[np.float64]:
        return self._fitted_objective().leaf_risk(self)

    def _aim(self) -> str:
        aim = self._fitted_objective().aim(self)
        fairness = self._fitted_parameters()["fairness"]
        if fairness is None or self.groups_ is None:
            return aim
        one, other = self.groups_.tolist()
        end = "the last time" if fairness.tau is None else f"{fairness.tau:g}"
        return (
            f"{aim}, among trees for which the mean restricted survival time up to {end} that is "
            f"predicted for {one} and for {other} differs by at most {fairness.limit:g}"
        )

    def _fitted_objective(self) -> type[Objective]:
        return OBJECTIVES[self._fitted_parameters()["objective"]]

    def _remarks(self) -> list[tuple[str, str]]:
        return self._fitted_objective().remarks(self) + super()._remarks()
