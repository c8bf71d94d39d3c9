"""``SoftSurvivalTree``: soft oblique splits, a full survival model in every leaf."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.groups import check_two_groups
from bristlecone._data.rows import check_sample_weight
from bristlecone._data.survival import check_training_data
from bristlecone._encoder.design import DesignEncoder
from bristlecone._encoder.missing import missing_text
from bristlecone._estimators.base import BaseTree
from bristlecone._estimators.parameters import (
    Check,
    check_parameters,
    choice,
    integer,
    number,
)
from bristlecone._estimators.soft_views import SoftViews
from bristlecone._leaves.base import view
from bristlecone._leaves.predictions import SurvivalPredictions
from bristlecone._leaves.smooth import SmoothLeaves
from bristlecone._leaves.statistics import SurvivalRows
from bristlecone._log import log, warn
from bristlecone._objectives.parity import CurveParity, groups_of
from bristlecone._search.certificate import Certificate, TracePoint, fingerprint
from bristlecone._soft.models import MODELS
from bristlecone._soft.training.fairness import gini_mix, pair_distance, quadrature
from bristlecone._soft.training.rows import positive_times
from bristlecone._soft.training.train import SoftSettings, TrainedTree, TrainingRows, train
from bristlecone._soft.tree import SoftTree
from bristlecone.exceptions import (
    BristleconeWarning,
    ConstantFeatureWarning,
    EmptyLeafWarning,
    FitConvergenceWarning,
    InvalidParameterError,
)

__all__ = ["SoftSurvivalTree"]

Floats = NDArray[np.float64]

# 2^10 leaves: more would have hardly any rows.
_MOST_DEPTH = 10

_AIM = (
    "penalised maximum likelihood (Consolo, Amaldi and Carrizosa, European Journal of Operational "
    "Research 331, 2026)"
)


class SoftSurvivalTree(SoftViews, SurvivalPredictions, BaseTree):
    """Survival tree with soft multivariate splits and a survival model in every leaf.

    Consolo, Amaldi and Carrizosa, "Soft decision trees for survival analysis", EJOR 331(3), 2026:
    at every split a row goes left with a probability that is logistic in its features; in
    every leaf its survival curve depends on them, too. A prediction is the curve of one leaf, the
    one at the end of the more probable branches.

    Parameters
    ----------
    depth : int, default=2
        Splits from the root to each leaf; 0 is a single leaf.
    leaf : str, default="log-logistic"
        Survival model of the leaves: "log-logistic", "exponential", "weibull", "spline-ph" or
        "spline-po" (natural cubic splines of log time under proportional hazards or odds, kept
        monotone).
    n_knots : int, default=2
        Internal knots of the splines, at percentiles of the uncensored log times.
    solver : {"nodec", "joint"}, default="nodec"
        "nodec" trains one subtree at a time and reassigns rows where a split is unbalanced,
        then refines all parameters; "joint" does only the last.
    solver_options : mapping or None, default=None
        Settings of the solver that differ from their defaults:

        * "init": "kmeans" (default) starts from clusters of the rows, "random" from random
          hyperplanes;
        * "n_macro": maximum number of passes of "nodec" over the splits, default 10;
        * "max_iter": maximum number of L-BFGS steps over all parameters, default 1000;
        * "tol": L-BFGS stops when no component of the gradient is larger, default 1e-4.
    n_restarts : int, default=5
        Restarts; of those whose leaves hold ``min_leaf_share``, or else of all, the one of least
        objective is kept.
    l2 : float, default=0.1
        Ridge penalty λ of the leaves' weights and shapes: λ/2 of the square of their mean, plus
        ``pooling`` times λ/2 of the squares of the leaves' departures from it.
    pooling : float or None, default=3.0
        How much leaves are drawn together. Leaves that are alike cost no more than a single one:
        it does not pay to empty them. None: every leaf has a penalty λ/2 ‖β‖² of its own.
    split_l2 : float, default=0.002
        Ridge penalty of the splits' weights. Without it splits grow steep and follow single
        rows; with much of it they stay level and all rows share a leaf.
    l1 : float, default=0.0
        Lasso penalty of the splits' weights; see ``n_features_used_``.
    balance : float, default=0.01
        Weight of the penalty on uneven leaves, which is 0 where all hold the same weight and
        grows without bound as one empties [Frosst2017]_.
    min_leaf_share : float, default=0.05
        Share of the training weight that every leaf should hold, at most half of an even share
        (1/(2 · leaves)): restarts that do so come first, and a fit without one warns.
    fairness : CurveParity or None, default=None
        Penalty on the distance between the survival curves of two groups.
    max_categories : int or None, default=10
        Most levels per categorical column that get a weight of their own; the rest are merged.
    handle_unknown : {"ignore", "error"}, default="ignore"
        What a prediction does with a category not seen in training: it matches no level, or
        it raises.
    n_jobs : int or None, default=None
        Processes that share the restarts: None is one, -1 all. The fit does not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the restarts.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at
        DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean negative log-likelihood under the soft memberships (per unit of weight, time in the
        user's unit) plus penalties.
    trace_ : list of TracePoint
        Named tuples (seconds, objective, lower_bound), one for every accepted step of the restart
        that was kept. ``objective`` never rises; ``seconds`` is NaN and ``lower_bound`` -inf.
    restart_objectives_ : array of float, shape (n_restarts,)
        Objective of every restart.
    converged_ : bool
        Whether the kept restart ended at a minimum.
    tree_ : SoftTree
        Nodes in preorder; weights over features scaled to [0, 1].
    leaf_shares_ : array of float, shape (n_leaves,)
        Share of the training weight at the end of the most probable paths to each leaf.
    n_effective_leaves_ : float
        Number of equal leaves of the same entropy: exp(−Σ share log share).
    coef_, intercept_ : array of float, shape (n_splits, n_design) and (n_splits,)
        Weights of the splits in the user's units, in preorder.
    leaf_coef_, leaf_intercept_ : array of float, shape (n_leaves, n_design) and (n_leaves,)
        Weights of the leaves' linear predictors in the user's units.
    leaf_parameters_ : dict of array of float, shape (n_leaves,)
        Further parameters of the leaves by name, such as "alpha".
    design_names_ : list of str
        Columns of the design, of which these are the weights: "age", "stage = II".
    n_leaves_, depth_ : int
        Size of the tree.
    features_used_ : list of str or int
        Columns that a split weighs; at prediction those that a leaf weighs are needed too.
    splits_ : dict
        Splits in words, by node id.
    leaves_ : Leaves
        Statistics and predictions of the leaves, as one value.
    certificate_ : Certificate
        What was searched, over which binary features and with which parameters; what was found
        and proven; the time it took; the version; and a fingerprint of the training rows.
    n_features_used_ : int
        Their number.
    fairness_distance_ : float
        Mean distance ∫ (S_i − S_j)² dt of two training rows of different groups; only with a
        group.
    leaf_gini_ : (float, float)
        Gini mix of the groups in the leaves, plain and weighted; only with a group.
    encoder_ : DesignEncoder
        Makes the design.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : array of str
        Their names; only if ``X`` had names.
    unique_times_, event_times_ : array of float
        Distinct training times, and those with an event.
    baseline_ : Baseline
        These times with the baseline cumulative hazard Λ.
    fit_time_ : float
        Seconds that ``fit`` took.

    See Also
    --------
    OptimalSurvivalTree : Yes-no questions, with a certificate.

    Notes
    -----
    Features are scaled to [0, 1] for the tree and standardised for training; the penalties
    are on the weights of standardised features, intercepts are free. Numbers that are missing
    become the mean. A fit takes O(n · (p + leaves)) per step. The paper's objective is that of
    ``pooling=None, balance=0, split_l2=0, min_leaf_share=0``.

    References
    ----------
    .. [Frosst2017] Frosst, Hinton, "Distilling a neural network into a soft decision tree", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import SoftSurvivalTree
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(200, 2))
    >>> time = random.weibull(2.0, size=200) * np.exp(X[:, 0] * (X[:, 1] > 0))
    >>> tree = SoftSurvivalTree(depth=1, random_state=0).fit(X, (np.ones(200, bool), time))
    >>> tree.n_leaves_, tree.predict_median(X).shape
    (2, (200,))
    """

    tree_: SoftTree  # type: ignore[assignment]
    leaves_: SmoothLeaves

    baseline_ = view("leaves_", "baseline", "Training times and baseline cumulative hazard.")
    leaf_shares_ = view("leaves_", "share", "Share of the training weight in every leaf.")

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf: str = "log-logistic",
        n_knots: int = 2,
        solver: str = "nodec",
        solver_options: Mapping[str, Any] | None = None,
        n_restarts: int = 5,
        l2: float = 0.1,
        pooling: float | None = 3.0,
        split_l2: float = 0.002,
        l1: float = 0.0,
        balance: float = 0.01,
        min_leaf_share: float = 0.05,
        fairness: CurveParity | None = None,
        max_categories: int | None = 10,
        handle_unknown: str = "ignore",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.depth = depth
        self.leaf = leaf
        self.n_knots = n_knots
        self.solver = solver
        self.solver_options = solver_options
        self.n_restarts = n_restarts
        self.l2 = l2
        self.pooling = pooling
        self.split_l2 = split_l2
        self.l1 = l1
        self.balance = balance
        self.min_leaf_share = min_leaf_share
        self.fairness = fairness
        self.max_categories = max_categories
        self.handle_unknown = handle_unknown
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> SoftSurvivalTree:
        """Train the tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories; missing values.
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
            Any other name is an error. Columns such as ``censored`` and ``alive`` are rejected:
            pass ``event = ~censored``.
            Durations count in days; where a DataFrame has dates
            ``start`` and ``stop``, or ``entry`` and ``exit``, the time is the days between them.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows.
        sensitive_features : array-like, shape (n,), optional
            Group of every row, of two values, for ``fairness``; takes the place of its
            ``sensitive_feature``.

        Returns
        -------
        SoftSurvivalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, groups that are missing or not two, rows that do
            not fit together, delayed entry, and columns that cannot be read; parameter, column
            or row is named, and an earlier fit is kept.

        Warns
        -----
        FitConvergenceWarning
            When the minimisation ended before a minimum; the parts are named.
        EmptyLeafWarning
            When a leaf holds less of the training weight than ``min_leaf_share``.
        ConstantFeatureWarning
            When a column of ``X`` takes a single value.
        BristleconeWarning
            When a time is 0: half the least positive time takes its place.
        """
        start = time.perf_counter()
        self._check_parameters()
        data = check_training_data(X, y, sample_weight)
        if data.entry is not None:
            raise ValueError("y has delayed entry, which the soft tree does not support")
        group = self._groups(X, sensitive_features, data.kept)
        times, replaced = positive_times(data.time)
        encoder = DesignEncoder(self.max_categories, self.handle_unknown).fit(data.X, data.weight)
        design = encoder.transform(data.X)
        weight = np.ones(len(times)) if data.weight is None else data.weight
        names = encoder.names if encoder.named_ else None
        rows = TrainingRows(design, data.event, times, weight, group, names)
        settings = self._settings()
        found = train(rows, settings)
        leaves = SmoothLeaves.grown(
            found.tree,
            found.model,
            found.linear,
            found.shape,
            found.log_unit,
            SurvivalRows(data._replace(time=times)),
            design,
        )
        facts: dict[str, Any] = {
            "restart_objectives": found.restart_objectives.tolist(),
            "converged": bool(found.converged),
        }
        if group is not None:
            facts |= _compared(found.tree, leaves, design, group, weight)
        certificate = Certificate(
            aim=_AIM,
            status="trained",
            objective_value=found.objective,
            lower_bound=-np.inf,
            binary_features=(),
            parameters=self._parameters(),
            settings={},
            trace=tuple((value,) for value in found.trace),
            n_nodes_explored=0,
            seconds=time.perf_counter() - start,
            n_samples=len(times),
            fingerprint=fingerprint(design, data[1:]),
            facts=facts,
        )
        self._set_fitted(found.tree, leaves, encoder, certificate, X)
        self._announce(found, replaced, settings)
        return self

    def _announce(self, found: TrainedTree, replaced: str, settings: SoftSettings) -> None:
        """Log the fit and warn; called by ``fit`` itself.

        ``replaced`` tells of times that were 0; ``floor`` is the share that every leaf should hold.
        """
        encoder = self.encoder_
        log(
            self.verbose,
            "objective %.6g, best of %d restarts, %d leaves worth %.1f even ones, "
            "%d design columns, %.3f s",
            self.objective_value_,
            len(found.restart_objectives),
            self.n_leaves_,
            self.n_effective_leaves_,
            len(encoder.design_),
            self.fit_time_,
        )
        missing = missing_text(encoder.columns_)
        if missing:
            log(self.verbose, "missing values: %s", missing)
        if replaced:
            warn(replaced, BristleconeWarning)
        if encoder.constant_:
            names = ", ".join(map(repr, encoder.constant_))
            told = f"constant columns have no weight: {names}"
            warn(told, ConstantFeatureWarning)
        if (self.leaf_shares_ < settings.floor).any():
            warn(self._empty_leaves(settings.floor), EmptyLeafWarning)
        if found.unfinished:
            warn(
                f"no minimum after max_iter={settings.max_iter} steps; the gradient is not yet "
                f"below tol={settings.tol:g} in {found.unfinished}",
                FitConvergenceWarning,
            )

    def _empty_leaves(self, floor: float) -> str:
        """How many leaves hold too little, and what to do."""
        shares = self.leaf_shares_
        few, none = int((shares < floor).sum()), int((shares == 0).sum())
        if few == none:
            told = f"{few} of {len(shares)} leaves {'is' if few == 1 else 'are'} empty"
        else:
            told = f"{few} of {len(shares)} leaves {'holds' if few == 1 else 'hold'} less than "
            told += f"{100 * floor:.3g} % of the weight"
        return (
            f"{told} (the tree is worth {self.n_effective_leaves_:.1f} even leaves): use "
            f"depth={self.depth - 1}, a larger balance or a smaller split_l2"
        )

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``."""
        self._check_fitted()
        return len(self.encoder_.columns_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of these columns, if they had names."""
        self._check_fitted()
        if not self.encoder_.named_:
            raise AttributeError("the columns of X had no names")
        return np.array([schema.name for schema in self.encoder_.columns_], dtype=object)

    @property
    def feature_importances_(self) -> Floats:
        """None of a soft tree: its splits weigh many columns at once."""
        raise AttributeError(
            "a SoftSurvivalTree has no feature_importances_: its splits weigh many columns at "
            "once; see coef_ and leaf_coef_"
        )

    @property
    def trace_(self) -> list[TracePoint]:
        """Objective after every accepted step of the restart that was kept."""
        return [TracePoint(math.nan, value, -math.inf) for (value,) in self.certificate_.trace]

    @property
    def restart_objectives_(self) -> Floats:
        """Objective of every restart, shape (n_restarts,)."""
        return np.array(self.certificate_.facts["restart_objectives"])

    @property
    def converged_(self) -> bool:
        """Whether the kept restart ended at a minimum."""
        return bool(self.certificate_.facts["converged"])

    @property
    def fairness_distance_(self) -> float:
        """Mean distance of the curves of two training rows of different groups."""
        return float(self._fairness_fact("distance"))

    @property
    def leaf_gini_(self) -> tuple[float, float]:
        """Gini mix of the leaves, plain and weighted."""
        return self._fairness_fact("gini"), self._fairness_fact("gini_weighted")

    def _fairness_fact(self, name: str) -> float:
        facts = self.certificate_.facts
        if name not in facts:
            raise AttributeError("the tree was fitted without groups")
        return float(facts[name])

    def _columns_used(self) -> list[int]:
        used = (self.tree_.weights != 0).any(axis=0)
        weighed = {
            part.column
            for part, is_used in zip(self.encoder_.design_, used, strict=True)
            if is_used
        }
        return [j for j, column in enumerate(self.encoder_.columns_) if column.name in weighed]

    def _missing_text(self) -> str:
        """Missing values that the columns had in training; empty if there were none."""
        return missing_text(self.encoder_.columns_)

    def _rows(self, X: Any) -> Floats:
        self._check_fitted()
        weighed = (self.tree_.weights != 0).any(axis=0) | self.leaves_.weighed
        return self.encoder_.transform(X, weighed)

    def _settings(self) -> SoftSettings:
        penalty = 0.0 if self.fairness is None else float(self.fairness.penalty)
        names = {field.name for field in fields(SoftSettings)} - {"fairness_penalty", *_OPTIONS}
        own = {name: getattr(self, name) for name in names}
        options = {name: default for name, (default, _) in _OPTIONS.items()}
        options |= self.solver_options or {}
        return SoftSettings(**own, **options, fairness_penalty=penalty)

    def _groups(
        self, X: Any, sensitive_features: Any, kept: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_] | None:
        """Whether each kept row is of the greater of the two groups; None without groups."""
        if self.fairness is not None:
            return groups_of(self.fairness, X, sensitive_features, kept).codes == 1
        if sensitive_features is not None:
            raise InvalidParameterError(
                "sensitive_features needs fairness, such as CurveParity(penalty)"
            )
        return None

    def compare_groups(
        self, X: Any, sensitive_features: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> dict[str, float]:
        """How differently two groups are treated.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        sensitive_features : array-like, shape (n,)
            Group of every row; two values.
        sample_weight : array-like of float, shape (n,), optional
            Row weights.

        Returns
        -------
        dict
            ``distance``: mean of ∫ (S_i − S_j)² dt over pairs of rows of different groups, from
            the first to the last training time. ``gini`` and ``gini_weighted``: Gini mix of the
            leaves, 1 where the groups are evenly mixed, 0 where every leaf is of one group.

        Raises
        ------
        ValueError
            When ``sensitive_features`` does not have two values, or one per row of ``X``.
        """
        design = self._rows(X)
        groups = check_two_groups(X, sensitive_features, None, None, "compare_groups")
        if groups is None:
            raise ValueError("compare_groups needs sensitive_features; it is None")
        inside = groups.codes == 1
        weight = check_sample_weight(sample_weight, len(design))
        weight = np.ones(len(design)) if weight is None else weight
        return _compared(self.tree_, self.leaves_, design, inside, weight)

    def _check_parameters(self) -> None:
        free = dict.fromkeys(
            ("l2", "split_l2", "l1", "balance", "min_leaf_share"),
            number(0.0),
        )
        check_parameters(
            self,
            depth=integer(0, _MOST_DEPTH),
            leaf=choice(*MODELS),
            n_knots=integer(0),
            solver=choice("nodec", "joint"),
            solver_options=_check_options,
            n_restarts=integer(1),
            pooling=number(0.0, optional=True),
            fairness=_check_fairness,
            max_categories=integer(1, optional=True),
            handle_unknown=choice("ignore", "error"),
            **free,
        )


def _compared(
    tree: SoftTree, leaves: SmoothLeaves, design: Floats, group: NDArray[np.bool_], weight: Floats
) -> dict[str, float]:
    """How differently the rows of two groups are treated; see ``compare_groups``."""
    leaf = tree.leaf_index(design)
    times = leaves.unique_times
    at, step = quadrature(times[0], times[-1])
    survival = leaves.survival(leaves.locate(leaf, design), at)
    inside, outside = weight * group, weight * ~group
    total = pair_distance(survival, inside, outside, step)[0]
    plain, weighted = gini_mix(leaf, group, weight)
    return {
        "distance": total / float(inside.sum() * outside.sum()),
        "gini": plain,
        "gini_weighted": weighted,
    }


# Default and check of every option of the solver.
_OPTIONS: dict[str, tuple[Any, Check]] = {
    "init": ("kmeans", choice("kmeans", "random")),
    "n_macro": (10, integer(0)),
    "max_iter": (1000, integer(1)),
    "tol": (1e-4, number(0.0)),
}


def _check_options(name: str, value: Any) -> None:
    if value is None:
        return
    known = ", ".join(map(repr, _OPTIONS))
    if not isinstance(value, Mapping):
        raise InvalidParameterError(
            f"{name} must be None or a mapping with keys among {known}; got {value!r}"
        )
    for key, given in value.items():
        if key not in _OPTIONS:
            raise InvalidParameterError(f"{name} has an unknown key {key!r}; known are {known}")
        _OPTIONS[key][1](f"{name}[{key!r}]", given)


def _check_fairness(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, CurveParity):
        raise InvalidParameterError(f"{name} must be None or CurveParity(penalty); got {value!r}")
    value._check_parameters()
