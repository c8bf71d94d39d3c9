"""``SoftSurvivalTree``: soft oblique splits and a survival model in every leaf."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._data.groups import check_groups
from bristlecone._data.rows import check_row_labels, check_sample_weight
from bristlecone._data.survival import check_training_data
from bristlecone._encoder.design import DesignEncoder
from bristlecone._encoder.features import Other
from bristlecone._encoder.missing import missing_text
from bristlecone._estimators.base import refuse_entry
from bristlecone._estimators.parameters import (
    Check,
    check_amount,
    check_parameters,
    choice,
    integer,
    is_auto,
    number,
)
from bristlecone._estimators.soft_views import SoftViews
from bristlecone._leaves.base import view
from bristlecone._leaves.predictions import SurvivalPredictions
from bristlecone._leaves.smooth import SmoothLeaves
from bristlecone._leaves.statistics import Baseline, SurvivalRows
from bristlecone._log import log, warn
from bristlecone._objectives.parity import CurveParity, groups_of
from bristlecone._search.certificate import Certificate, TracePoint, fingerprint
from bristlecone._soft.models import MODELS
from bristlecone._soft.training.fairness import gini_mix, pair_distance, quadrature
from bristlecone._soft.training.rows import positive_times
from bristlecone._soft.training.train import SoftSettings, TrainedTree, TrainingRows, train
from bristlecone._soft.tree import SoftTree
from bristlecone._types import Bools, Floats
from bristlecone.exceptions import (
    BristleconeWarning,
    ColumnWarning,
    ConstantFeatureWarning,
    EmptyLeafWarning,
    FitConvergenceWarning,
    InvalidParameterError,
)

_AIM = (
    "penalised maximum likelihood (Consolo, Amaldi and Carrizosa, European Journal of Operational "
    "Research 331, 2026)"
)
# 2^10 leaves; a larger tree would have hardly any rows per leaf.
_MOST_DEPTH = 10

# The ridge penalty of the leaves is at least _L2, and with fewer events _L2_EVENTS per event.
_L2, _L2_EVENTS = 0.1, 30.0

# Checks of the options of the solver.
_OPTIONS: dict[str, Check] = {
    "init": choice("kmeans", "random"),
    "n_macro": integer(0),
    "max_iter": integer(1),
    "tol": number(0.0),
}


@dataclass(kw_only=True, eq=False, repr=False)
class SoftSurvivalTree(SurvivalPredictions, SoftViews):
    """Survival tree with soft multivariate splits and a survival model in every leaf.

    At each split, a row goes left with a probability that is a logistic function of its features.
    Each leaf has a survival model whose curve also depends on the features. A row is predicted by
    one leaf: the one that is reached by the more probable branch at each split (Consolo, Amaldi and
    Carrizosa, "Soft decision trees for survival analysis", EJOR 331(3), 2026).

    Parameters
    ----------
    depth : int, default=2
        Number of splits from the root to each leaf, at most 10; 0 is a single leaf.
    leaf : str, default="log-logistic"
        Survival model of the leaves: "log-logistic", "exponential", "weibull", "spline-ph" or
        "spline-po" (natural cubic splines of log time under proportional hazards or odds, kept
        monotone).
    n_knots : int, default=2
        Internal knots of the splines, at percentiles of the uncensored log times.
    solver : {"nodec", "joint"}, default="nodec"
        "nodec" trains one subtree at a time, reassigns rows if a split is unbalanced, and then
        optimises all parameters together; "joint" does only the last step.
    solver_options : mapping or None, default=None
        Settings of the solver that differ from their defaults:

        * "init": starting point of a restart, "kmeans" (default) for clusters of the rows,
          "random" for random hyperplanes;
        * "n_macro": maximum number of passes of "nodec" over the splits, default 10;
        * "max_iter": maximum number of L-BFGS steps over all parameters, default 1000;
        * "tol": L-BFGS stops when no component of the gradient is larger, default 1e-4.
    n_restarts : int, default=5
        Number of restarts. Those in which every leaf has ``min_leaf_share`` are preferred; among
        these (or all, if there are none), the one with the least objective is kept.
    l2 : float or "auto", default="auto"
        Ridge penalty λ on the weights and shapes β of the leaves: λ/2 ‖mean of β‖², plus
        ``pooling`` · λ/2 times the summed squared deviations of the leaves from this mean. "auto"
        is 0.1, or 30 divided by the number of rows with an event if that is more: with few events,
        curves would otherwise be too extreme.
    pooling : float or None, default=3.0
        Strength with which leaves are pulled towards each other. Similar leaves cost no more than
        a single leaf, so the fit gains nothing by emptying them. None: every leaf has its own
        penalty λ/2 ‖β‖².
    split_l2 : float, default=0.002
        Ridge penalty of the splits' weights. Without it, splits become steep and follow single
        rows. If it is large, splits stay flat and all rows share a leaf.
    l1 : float, default=0.0
        Lasso penalty of the splits' weights; see ``n_features_used_``.
    balance : float, default=0.01
        Weight of the penalty on uneven leaves. The penalty is 0 if all leaves have the same weight,
        and grows without bound as a leaf becomes empty [Frosst2017]_.
    min_leaf_share : float, default=0.05
        Share of the training weight that every leaf should have, at most half of an even share
        (1/(2 · leaves)). Restarts that satisfy it are preferred; if there is none, a warning is
        shown.
    fairness : CurveParity or None, default=None
        Penalty on the distance between the survival curves of two groups.
    max_categories : int or None, default=10
        Largest number of levels of a categorical column with a separate weight; the rest are
        merged.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Treatment of a category at prediction that was not seen in training: "ignore" matches no
        level, "error" raises a ValueError.
    n_jobs : int or None, default=None
        Number of processes for the restarts: None is one, -1 all cores. The fit does not depend on
        it.
    random_state : int, RandomState or None, default=None
        Seed of the restarts; None is random.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean negative log-likelihood under the soft memberships (per unit of weight, with time in
        the unit of ``y``) plus penalties.
    trace_ : list of TracePoint
        Named tuples (seconds, objective, lower_bound), one for every accepted step of the restart
        that was kept. ``objective`` never rises; ``seconds`` is NaN and ``lower_bound`` -inf.
    restart_objectives_ : array of float, shape (n_restarts,)
        Objective of every restart.
    l2_ : float
        The ridge penalty of the leaves, after "auto" is resolved.
    converged_ : bool
        Whether the kept restart ended at a minimum.
    tree_ : SoftTree
        Nodes in preorder; weights over features scaled to [0, 1].
    leaf_shares_ : array of float, shape (n_leaves,)
        Share of the training weight of the rows that are assigned to each leaf (see ``apply``).
    n_effective_leaves_ : float
        Effective number of leaves: exp(−Σ share log share).
    coef_, intercept_ : array of float, shape (n_splits, n_design) and (n_splits,)
        Weights of the splits in the units of ``X``, in preorder.
    leaf_coef_, leaf_intercept_ : array of float, shape (n_leaves, n_design) and (n_leaves,)
        Weights of the leaves' linear predictors in the units of ``X``.
    leaf_parameters_ : dict of array of float, shape (n_leaves,)
        Further parameters of the leaves by name, such as "alpha".
    design_names_ : list of str
        Names of the design columns, in the order of these weights: "age", "stage = II".
    n_leaves_, depth_ : int
        Size of the tree.
    features_used_ : list of str or int
        Columns in the splits. Predictions also need the columns in the leaves.
    splits_ : dict
        Splits in words, by node id.
    leaves_ : Leaves
        Object with the statistics and predictions of all leaves.
    certificate_ : Certificate
        Record of the fit: the columns and parameters, the result, the time, the version, and a
        fingerprint of the training rows. Nothing is proven about the tree.
    n_features_used_ : int
        Number of columns in the splits.
    fairness_distance_ : float
        Mean distance ∫ (S_i − S_j)² dt of two training rows of different groups; only with groups.
    leaf_gini_ : (float, float)
        How evenly the groups are mixed in the leaves (Gini index), unweighted and weighted by rows:
        1 if they are evenly mixed, 0 if each leaf has only one group. Only with groups.
    encoder_ : DesignEncoder
        The fitted encoder, which computes the design matrix.
    n_features_in_ : int
        Number of columns of ``X``.
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
    OptimalSurvivalTree : Splits on single columns, with a certificate.

    Notes
    -----
    Features are scaled to [0, 1] for the tree and standardised for training. The penalties apply to
    the weights of standardised features; intercepts are not penalised. Missing numbers are replaced
    by the mean. A fit takes O(n · (p + leaves)) per step. The paper has neither pooling nor balance
    nor a penalty of the splits: ``pooling=None, balance=0, split_l2=0, min_leaf_share=0``. Its
    penalty of the leaves, of a fixed strength, includes the intercepts and the weights of features
    that are scaled to [0, 1].

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

    depth: int = 2
    leaf: Literal["log-logistic", "exponential", "weibull", "spline-ph", "spline-po"] = (
        "log-logistic"
    )
    n_knots: int = 2
    solver: Literal["nodec", "joint"] = "nodec"
    solver_options: Mapping[str, Any] | None = None
    n_restarts: int = 5
    l2: float | Literal["auto"] = "auto"
    pooling: float | None = 3.0
    split_l2: float = 0.002
    l1: float = 0.0
    balance: float = 0.01
    min_leaf_share: float = 0.05
    fairness: CurveParity | None = None
    max_categories: int | None = 10
    handle_unknown: Literal["ignore", "error"] = "ignore"
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    tree_: SoftTree = field(init=False)
    leaves_: SmoothLeaves = field(init=False)

    baseline_ = view("leaves_", "baseline", "Training times and baseline hazard.", Baseline)

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
            Numbers, booleans or categories. Values may be missing.
        y : structured array, DataFrame or pair
            A structured array with one boolean field (event) and one float field (time), of any
            names; a DataFrame with columns ``event`` and ``time``; or a pair ``(event, time)``,
            which cross-validation cannot split. The columns of a DataFrame may have other
            well-known names, in upper or lower case:

            * event: event, status, observed, uncensored, death, died, dead, deceased, failure,
              failed, fail, relapse, relapsed, recurrence, recurred, progression, progressed,
              churn, churned, arrest, delta, fstat, fustat, d, e;
            * time: time, duration, tenure, lifetime, followup, survtime, futime, rfstime, lenfol,
              hours, days, weeks, months, years, stop, tstop, exit, t;
            * entry: entry, or start and tstart beside stop, tstop or exit.

            Names may be joined, as in ``event_observed``, ``survival_time`` or ``time_to_death``.
            Other names raise an error. So do ``censored``, ``alive`` and similar names, which mean
            the opposite of an event: pass ``event = ~censored``.

            Delayed entry (left truncation) is not supported and raises an error. Durations are
            converted to days. If a DataFrame has dates ``start`` and ``stop``, or ``entry`` and
            ``exit``, the time is the number of days between them.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. Rows with weight zero are left out. A row with an
            integer weight k has the effect of k copies, except that ``l2="auto"`` counts it once.
        sensitive_features : array-like, shape (n,), optional
            Group of every row, with two values, for ``fairness``. If you pass it,
            ``fairness.sensitive_feature`` is not used.

        Returns
        -------
        SoftSurvivalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, groups are missing or not two, the numbers of rows differ,
            there is delayed entry, or a column cannot be read. The message names the parameter,
            column or row. An earlier fit is kept.

        Warns
        -----
        FitConvergenceWarning
            If the minimisation ended before it converged; the message names the parts.
        EmptyLeafWarning
            If a leaf has less of the training weight than ``min_leaf_share``.
        ConstantFeatureWarning
            If a column of ``X`` takes a single value.
        ColumnWarning
            If a column has more than ``max_categories`` levels, and the rarest are merged.
        BristleconeWarning
            If a time is 0; it is replaced by half the smallest positive time.
        """
        start = time.perf_counter()
        self._check_parameters()
        data = check_training_data(X, y, sample_weight)
        refuse_entry(self, data)
        group = self._groups(X, sensitive_features, data.kept)
        times, replaced = positive_times(data.time)
        encoder = DesignEncoder(self.max_categories, self.handle_unknown).fit(data.X, data.weight)
        _warn_of_merged(encoder)
        design = encoder.transform(data.X)
        weight = np.ones(len(times)) if data.weight is None else data.weight
        names = encoder.names if encoder.named_ else None
        rows = TrainingRows(design, data.event, times, weight, group, names)
        settings = self._settings(int(data.event.sum()))
        found = train(rows, settings)
        survival = SurvivalRows(data._replace(time=times))
        leaves = SmoothLeaves.grown(
            found.tree, found.model, found.linear, found.shape, found.log_unit, survival, design
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
            settings={"l2": settings.l2},
            trace=tuple((value,) for value in found.trace),
            n_nodes_explored=0,
            seconds=time.perf_counter() - start,
            n_samples=len(times),
            fingerprint=fingerprint(design, data),
            facts=facts,
        )
        self._set_fitted(found.tree, leaves, encoder, certificate, X)
        self._announce(found, replaced, settings)
        return self

    def _announce(self, found: TrainedTree, replaced: str, settings: SoftSettings) -> None:
        """Log the fit and warn; ``replaced`` is the message about times of 0."""
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
            message = f"these columns are constant and have no weight: {names}"
            warn(message, ConstantFeatureWarning)
        if (self.leaf_shares_ < settings.floor).any():
            warn(self._empty_leaves(settings.floor), EmptyLeafWarning)
        if found.unfinished:
            warn(
                f"no minimum after max_iter={settings.max_iter} steps; the gradient is not yet "
                f"below tol={settings.tol:g} in {found.unfinished}",
                FitConvergenceWarning,
            )

    def _empty_leaves(self, floor: float) -> str:
        """Message about the leaves that hold too little, and the remedy."""
        shares = self.leaf_shares_
        few, none = int((shares < floor).sum()), int((shares == 0).sum())
        if few == none:
            message = f"{few} of {len(shares)} leaves {'is' if few == 1 else 'are'} empty"
        else:
            message = f"{few} of {len(shares)} leaves {'holds' if few == 1 else 'hold'} less than "
            message += f"{100 * floor:.3g}% of the weight"
        smaller = "l1 or split_l2" if self.l1 else "split_l2"
        return (
            f"{message} (effective number of leaves: {self.n_effective_leaves_:.1f}): use "
            f"depth={self.depth - 1}, a larger balance, or a smaller {smaller}"
        )

    @property
    def l2_(self) -> float:
        """The ridge penalty of the leaves, after "auto" is resolved."""
        self._check_fitted()
        return float(self.certificate_.settings["l2"])

    @property
    def feature_importances_(self) -> Floats:
        """Not available for a soft tree: its splits use many columns at once."""
        raise AttributeError(
            "a SoftSurvivalTree has no feature_importances_: its splits use many columns at "
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
        """Gini mix of the groups in the leaves, plain and weighted."""
        return self._fairness_fact("gini"), self._fairness_fact("gini_weighted")

    def _fairness_fact(self, name: str) -> float:
        facts = self.certificate_.facts
        if name not in facts:
            raise AttributeError("the tree was fitted without fairness=CurveParity(...)")
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
        """Missing values of the columns in training; empty if there were none."""
        return missing_text(self.encoder_.columns_)

    def _settings(self, n_events: int) -> SoftSettings:
        penalty = 0.0 if self.fairness is None else float(self.fairness.penalty)
        names = {field.name for field in fields(SoftSettings)} - {"fairness_penalty", *_OPTIONS}
        own = {name: getattr(self, name) for name in names}
        own["l2"] = max(_L2, _L2_EVENTS / max(n_events, 1)) if is_auto(self.l2) else float(self.l2)
        return SoftSettings(**own, **(self.solver_options or {}), fairness_penalty=penalty)

    def _groups(self, X: Any, sensitive_features: Any, kept: Bools | None) -> Bools | None:
        """Whether each kept row is in the second of the two groups; None without groups."""
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
        """Measure how differently the tree treats two groups.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        sensitive_features : array-like, shape (n,)
            Group of every row, with two values.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. Rows of weight zero are left out.

        Returns
        -------
        dict
            ``distance``: mean of ∫ (S_i − S_j)² dt over pairs of rows of different groups, from
            the first to the last training time. ``gini`` and ``gini_weighted``: Gini mix of the
            leaves, 1 if the groups are evenly mixed and 0 if every leaf contains only one group.

        Raises
        ------
        ValueError
            If ``sensitive_features`` does not have two values, or not one entry per row of ``X``.
        """
        design = self._rows(X)
        check_row_labels(X, sample_weight=sample_weight)
        given = check_sample_weight(sample_weight, len(design))
        weight = np.ones(len(design)) if given is None else given
        kept = weight > 0
        groups = check_groups(X, sensitive_features, None, kept, "compare_groups")
        if groups is None:
            raise ValueError("compare_groups needs sensitive_features; it is None")
        return _compared(self.tree_, self.leaves_, design[kept], groups.codes == 1, weight[kept])

    def _check_parameters(self) -> None:
        free = dict.fromkeys(("split_l2", "l1", "balance"), number(0.0))
        check_parameters(
            self,
            depth=integer(0, _MOST_DEPTH),
            min_leaf_share=number(0.0, 1.0),
            leaf=choice(*MODELS),
            n_knots=integer(0),
            solver=choice("nodec", "joint"),
            solver_options=_check_options,
            l2=check_amount,
            n_restarts=integer(1),
            pooling=number(0.0, optional=True),
            fairness=_check_fairness,
            max_categories=integer(1, optional=True),
            handle_unknown=choice("ignore", "error"),
            **free,
        )


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
        _OPTIONS[key](f"{name}[{key!r}]", given)


def _check_fairness(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, CurveParity):
        raise InvalidParameterError(f"{name} must be None or CurveParity(penalty); got {value!r}")
    value._check_parameters()


def _warn_of_merged(encoder: DesignEncoder) -> None:
    """Warn of columns whose rarest levels share one column of the design."""
    for part in encoder.design_:
        if isinstance(part.question, Other):
            n = len(part.question.levels)
            warn(
                f"the {n} rarest levels of column {part.column!r} are merged "
                f'into "{part.column} = other"; raise max_categories to keep them apart',
                ColumnWarning,
            )


def _compared(
    tree: SoftTree, leaves: SmoothLeaves, design: Floats, group: Bools, weight: Floats
) -> dict[str, float]:
    """Measures of ``compare_groups`` for encoded rows."""
    leaf = tree.leaf_index(design)
    at, step = quadrature(leaves.unique_times)
    survival = leaves.survival(leaves.locate(leaf, design), at)
    inside, outside = weight * group, weight * ~group
    total = pair_distance(survival, inside, outside, step)[0]
    plain, weighted = gini_mix(leaf, group, weight)
    return {
        "distance": total / float(inside.sum() * outside.sum()),
        "gini": plain,
        "gini_weighted": weighted,
    }
