"""``GreedySurvivalTree``: a survival tree grown one best split after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from bristlecone import _core
from bristlecone._data.survival import TrainingData, check_training_data
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.ranked import RankedFeatures
from bristlecone._encoder.rules import question_names
from bristlecone._encoder.use import split_columns, warn_of_constants
from bristlecone._estimators.base import Taught, refuse_entry
from bristlecone._estimators.parameters import check_amount, check_encoder, check_parameters, choice
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._fit.assemble import settle, with_leaves, with_loss
from bristlecone._fit.encode import encode, warn_of_shares
from bristlecone._fit.search import Limits, Search
from bristlecone._leaves.minimum import warn_of_event_free_rows
from bristlecone._leaves.predictions import StepPredictions
from bristlecone._log import log
from bristlecone._objectives.likelihood import Likelihood
from bristlecone._search.certificate import Certificate, fingerprint
from bristlecone._search.engine import Problem
from bristlecone._teacher.lesson import teach
from bristlecone._tree import Tree
from bristlecone.exceptions import InvalidParameterError

_AIMS = {
    "likelihood": "the decrease of the likelihood loss (LeBlanc and Crowley, Biometrics 48, 1992)",
    "logrank": "the two-sample log-rank statistic (Segal, Biometrics 44, 1988)",
}


@dataclass(kw_only=True, eq=False, repr=False)
class GreedySurvivalTree(StepPredictions, Reestimation, Taught):
    """Survival tree grown greedily from the root, one split at a time.

    Parameters
    ----------
    criterion : {"likelihood", "logrank"}, default="likelihood"
        Measure that the best split of a node maximises. "likelihood": decrease of the loss of
        ``OptimalSurvivalTree``, as in the trees of LeBlanc and Crowley (1992). "logrank":
        two-sample log-rank statistic of the two sides, over the rows of the node (Segal 1988), as
        in scikit-survival's ``SurvivalTree``. Row weights are treated as frequencies.
    max_depth : int or None, default=3
        Maximum number of splits from the root to a leaf; 0 is a single leaf. None means no limit.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves. If set, the node whose best split gains most is split next.
    min_samples_leaf : int or float, default=1
        Minimum number of training rows in a leaf, regardless of their weights. A float
        between 0 and 1 is a share of the training rows, rounded up.
    min_events_leaf : int, float, "auto" or None, default="auto"
        Minimum number of training rows with an event in a leaf, regardless of their
        weights. A float between 0 and 1 is a share of the training events, rounded up.
        "auto" is 5, or the number of events if that is smaller. If one binary feature separates
        rows without events, although at least 20 events would be expected in them at the overall
        hazard, "auto" sets no minimum and a warning is shown. None: no minimum.
    prior : float or "auto", default="auto"
        Number of pseudo-events with θ = 1 that are added to every leaf. It is not rescaled with the
        row weights. The θ of a leaf is the maximum a posteriori estimate (events + prior) /
        (expected events + prior), with the events expected at the baseline hazard, and its loss
        includes the term of the prior. "auto" is 10. The criterion "logrank" ignores it;
        ``objective_value_`` and θ include it.
    shrinkage : float or "auto", default="auto"
        Strength λ >= 0 of the hierarchical shrinkage of predictions, as in ``OptimalSurvivalTree``:
        from the root down, every node adds λ pseudo-events, or pseudo-rows, with the prediction of
        its parent. The tree and ``objective_value_`` do not change. "auto" is 0.
    leaf_curve : {"auto", "proportional", "kaplan-meier"}, default="auto"
        Curve of a leaf: exp(−θΛ) with the baseline Λ, or the leaf's own Kaplan–Meier estimate.
        "auto" is "proportional".
    teacher : "auto", estimator or None, default=None
        Model that smooths the outcomes before the search: its cross-fitted predictions are mixed
        into them, so the tree fits less noise. Statistics and predictions of the leaves use the
        real outcomes (docs/guide/teacher.md). "auto" combines ridge regression, a forest and
        boosting. A regressor is fitted to weighted event rates and predicts relative hazards. A
        survival model of scikit-survival, lifelines or this package predicts risks, which are then
        calibrated. Needs ``criterion="likelihood"``.
    teacher_weight : float, default=0.5
        Share of the teacher's predictions in the smoothed outcomes, between 0 and 1.
    encoder : "auto", transformer or None, default="auto"
        Turns ``X`` into binary features. "auto" is ``BinaryEncoder()``, without the further
        thresholds that ``OptimalSurvivalTree`` adds. A clone is fitted to the training rows. With
        ``BinaryEncoder(thresholds="all")`` numeric columns are split at any threshold, midway
        between neighbouring values of the node. None is this encoder with ``min_support=0``.
    random_state : int, RandomState or None, default=None
        Seed of the teacher's folds and models; None is 0. Nothing else is random.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean likelihood loss per unit of weight, including the prior, for both criteria.
    training_loss_ : float
        Loss of the tree on the real outcomes, not smoothed by a teacher.
    tree_ : Tree
        Structure as parallel arrays in preorder.
    leaf_statistics_ : tuple of LeafStatistics
        Rows, events, θ, Kaplan–Meier and Nelson–Aalen curve of every leaf, left to right.
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
        and a fingerprint of the training rows.
    unique_times_, event_times_ : array of float
        Distinct training times, and those with an event.
    baseline_ : Baseline
        These times with the baseline cumulative hazard Λ.

    See Also
    --------
    OptimalSurvivalTree : The best of all trees, with a certificate.

    Notes
    -----
    A node is not split if no split gains anything. If several splits are equally good, the first
    column is taken, then the smallest threshold; the tree does not depend on the order of the rows.
    A level of the tree takes O(columns · n) for "likelihood" and O(columns · n log n) for
    "logrank", plus sorting the columns once.

    References
    ----------
    LeBlanc, Crowley, "Relative risk trees for censored survival data", Biometrics 48 (1992).
    Segal, "Regression trees for censored data", Biometrics 44 (1988).

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import GreedySurvivalTree
    >>> X = np.array([[0.5], [1.5], [3.5], [4.5]])
    >>> event, time = np.array([True, True, True, False]), np.array([1.0, 2.0, 5.0, 6.0])
    >>> tree = GreedySurvivalTree(max_depth=1, min_events_leaf=None, prior=0, encoder=None)
    >>> tree = tree.fit(X, (event, time))
    >>> float(tree.tree_.threshold[0])
    4.0
    """

    criterion: Literal["likelihood", "logrank"] = "likelihood"
    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 1
    min_events_leaf: int | float | Literal["auto"] | None = "auto"
    prior: float | Literal["auto"] = "auto"
    shrinkage: float | Literal["auto"] = "auto"
    leaf_curve: Literal["auto", "proportional", "kaplan-meier"] = "auto"
    teacher: Any = None
    teacher_weight: float = 0.5
    encoder: Any = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> GreedySurvivalTree:
        """Grow the tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numeric, boolean or categorical columns; convert dates to numbers first. The default
            encoder accepts missing values; a custom encoder may not.
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
            integer weight k has the effect of k copies, except that minimum numbers of rows and
            events count it once, and that a teacher may treat it differently.

        Returns
        -------
        GreedySurvivalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, the numbers of rows differ, or a column cannot be read.
            The message names the parameter, column or row. An earlier fit is kept.
        KeyboardInterrupt
            On Ctrl-C. An earlier fit is kept.

        Warns
        -----
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
        problem = self._asked(X, y, sample_weight, start)
        self._grow(problem, start)
        _warn(problem)
        return self

    def _asked(self, X: Any, y: Any, sample_weight: Any, start: float) -> Problem[TrainingData]:
        """The rows and features from which trees grow."""
        self._check_parameters()
        objective = self._objective()
        data, teaching = teach(self, objective, self._training_data(X, y, sample_weight))
        given = self.encoder
        if given is None:
            given = BinaryEncoder(thresholds="all", min_support=0.0)
        elif isinstance(given, str):
            given = BinaryEncoder()  # "auto" would add the thresholds of other greedy trees
        search = Search(objective, given, Limits.of(self), self.verbose)
        problem = replace(encode(search, data, start), teaching=teaching)
        warn_of_shares(search.limits, problem)
        return problem

    def _grow(self, problem: Problem[TrainingData], start: float) -> None:
        """Grow the tree and store it."""
        objective, data, features = self._objective(), problem.data, problem.features
        is_ranked = isinstance(features, RankedFeatures)
        grown = _core.grow_greedy(
            features.ranks if is_ranked else features,
            data.time,
            data.event,
            data.weight,
            criterion=self.criterion,
            max_depth=self.max_depth,
            max_leaf_nodes=self.max_leaf_nodes,
            prior=objective.prior,
            smoothed=data.smoothed,
            **problem.least,
        )
        facts = {}
        if is_ranked:
            facts = {"thresholds": features.shape[1], "rows_per_side": features.n_side}
            grown["feature"] = features.questions(grown["feature"], grown["below"])
        problem, solution = settle(problem, SimpleNamespace(**grown))
        column, threshold = split_columns(problem.encoder, solution.feature)
        tree = Tree.grown(
            solution.children_left,
            solution.children_right,
            solution.feature,
            problem.features,
            data.weight,
            threshold=threshold,
            column=column,
        )
        tree, leaves = with_leaves(objective, tree, problem, None)
        certificate = Certificate(
            aim=_AIMS[self.criterion],
            status="grown",
            objective_value=objective.value(tree, problem, leaves),
            lower_bound=-np.inf,
            binary_features=question_names(problem.encoder),
            parameters=self._parameters(),
            settings=problem.least,
            trace=(),
            n_nodes_explored=0,
            seconds=time.perf_counter() - start,
            n_samples=len(problem.features),
            fingerprint=fingerprint(problem.features, data),
            teacher=with_loss(objective, tree, problem, leaves),
            facts=facts,
        )
        self._set_fitted(tree, leaves, problem.encoder, certificate, data.X)
        log(
            self.verbose,
            "%s: objective %.6g, %d leaves of depth %d, %.3f s",
            self.criterion,
            self.objective_value_,
            self.n_leaves_,
            self.depth_,
            self.fit_time_,
        )

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        data = check_training_data(X, y, sample_weight)
        refuse_entry(self, data)
        return data

    def _objective(self) -> Likelihood:
        return Likelihood.of(
            leaf_curve=self.leaf_curve, prior=self.prior, shrinkage=self.shrinkage, time_grid=None
        )

    def size_path(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> list[GreedySurvivalTree]:
        """Grow a greedy tree of every size.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        list of GreedySurvivalTree
            Entry k is the tree with ``max_leaf_nodes=k + 1``. The list ends when no further split
            gains anything or is allowed by the parameters, including ``max_leaf_nodes``.

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As in ``fit``.

        Warns
        -----
        ConstantFeatureWarning, ColumnWarning, SmallSampleWarning, EventFreeWarning
            As in ``fit``.
        """
        start = time.perf_counter()
        problem = self._asked(X, y, sample_weight, start)
        path: list[GreedySurvivalTree] = []
        for leaves in range(1, Limits.of(self).most_leaves(problem.features) + 1):
            tree = clone(self)
            tree.max_leaf_nodes = leaves
            tree._grow(problem, start)
            if tree.n_leaves_ < leaves:
                break
            path.append(tree)
        _warn(problem)
        return path

    def _check_parameters(self) -> None:
        if self.teacher is not None and self.criterion == "logrank":
            raise InvalidParameterError(
                "teacher needs criterion='likelihood': the log-rank statistic counts real events"
            )
        check_parameters(
            self,
            criterion=choice("likelihood", "logrank"),
            shrinkage=check_amount,
            leaf_curve=choice("auto", *Likelihood.curves),
            encoder=_check_encoder,
        )


def _warn(problem: Problem[TrainingData]) -> None:
    warn_of_constants(problem.encoder)
    warn_of_event_free_rows(problem.data.event_free)


def _check_encoder(name: str, value: Any) -> None:
    if value is not None:
        check_encoder(name, value)
