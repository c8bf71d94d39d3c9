"""``GreedySurvivalTree``: the baseline that optimal trees are compared with."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from bristlecone import _core
from bristlecone.data.checks import (
    TrainingData,
    check_choice,
    check_integer,
    check_seed,
    check_training_data,
)
from bristlecone.encoder import BinaryEncoder
from bristlecone.encoder.numeric import NumericColumns
from bristlecone.encoder.rules import Question
from bristlecone.estimators.describe import describe_greedy
from bristlecone.estimators.encoded import EncodedTreeMixin, binary_features
from bristlecone.estimators.survival_predictions import SurvivalTreeMixin
from bristlecone.leaves.minimum import (
    check_min_events,
    check_min_samples,
    check_prior,
    event_free_rows,
    least_rows,
    prior_events,
    warn_of_event_free_rows,
    warn_of_small_sample,
)
from bristlecone.leaves.shrinkage import check_shrinkage
from bristlecone.leaves.survival import LeafStatistics, SurvivalRows
from bristlecone.model.registry import Fields, register
from bristlecone.objectives import Likelihood
from bristlecone.tree import Tree

__all__ = ["GreedySurvivalTree"]

logger = logging.getLogger("bristlecone")


@register
class GreedySurvivalTree(EncodedTreeMixin, SurvivalTreeMixin, BaseEstimator):
    """Survival tree grown from the root, one best split after the other.

    Parameters
    ----------
    criterion : {"likelihood", "logrank"}, default="likelihood"
        What the best split of a node has most of. "likelihood": fall of the loss of
        ``OptimalSurvivalTree``, as in the trees of LeBlanc and Crowley (1992). "logrank":
        two-sample log-rank statistic of the sides over the rows of the node (Segal 1988), as in
        scikit-survival's ``SurvivalTree``; weights count as repetition.
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf, None is no limit.
    max_leaf_nodes : int or None, default=None
        Most leaves; with it the node whose best split is worth most is split first.
    min_samples_leaf : int or float, default=1
        Fewest training rows in a leaf, whatever their weights; a float between 0 and 1 is a share
        of the training rows, rounded up.
    min_events_leaf : int, float, "auto" or None, default="auto"
        Fewest training rows with an event in a leaf, whatever their weights; a float between 0 and
        1 is a share of the training events, rounded up. "auto" is 5, or all events where there are
        fewer; as in ``OptimalSurvivalTree`` no minimum where a feature tells rows apart that have
        no event. None: no minimum.
    prior : float or "auto", default="auto"
        Pseudo-events at θ = 1 that every leaf has besides its own: the loss of a leaf is that of
        the maximum a posteriori, θ = (events + prior) / (hazard + prior), with the prior's term.
        "auto" is 10. The criterion "logrank" does not know it; ``objective_value_`` and θ have it.
    shrinkage : float or "auto", default="auto"
        λ >= 0 of hierarchical shrinkage of the predictions, as in ``OptimalSurvivalTree``: from the
        root down, every node counts λ pseudo-events, or pseudo-rows, at the prediction of its
        parent. Tree and ``objective_value_`` do not depend on it. "auto" is 0.
    leaf_curve : {"auto", "proportional", "kaplan-meier"}, default="auto"
        Curve of a leaf: exp(−θΛ) with the baseline Λ, or the leaf's own Kaplan–Meier estimate.
        "auto" is "proportional".
    encoder : "auto", transformer or None, default="auto"
        Turns ``X`` into binary features; "auto" is ``BinaryEncoder()``, the features of
        ``OptimalSurvivalTree``. A clone is fitted to the training rows. None splits complete
        numeric columns at every threshold, midway between neighbouring values of the node.
    random_state : int, RandomState or None, default=None
        Accepted for uniformity; the tree is deterministic.
    verbose : int, default=0
        1 or more reports a fit at level INFO of the logger "bristlecone", else DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean likelihood loss per unit of weight, whatever the criterion, with that of the prior.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features or, with
        ``encoder=None``, columns of ``X``, cut at ``threshold``.
    leaf_statistics_ : tuple of LeafStatistics
        Rows, events, θ, Kaplan–Meier and Nelson–Aalen curve of every leaf, left to right.
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
    fit_time_ : float
        Seconds ``fit`` took.
    encoder_ : transformer
        The fitted encoder; with ``encoder=None`` it passes the columns through.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : array of str
        Their names; only when ``X`` had names.
    features_used_ : list of str or int
        The columns that the tree asks about; no others are needed at prediction.
    unique_times_, event_times_ : array of float
        Distinct training times, and those with an event.
    baseline_ : Baseline
        Both of them with the baseline cumulative hazard Λ.

    Notes
    -----
    A node is not split when no split gains anything. Of equal splits the first column, then the
    smallest threshold is taken; the tree does not depend on the order of the rows. A level of the
    tree takes O(columns · n) for "likelihood" and O(columns · n log n) for "logrank", besides
    sorting the columns once.

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

    def __init__(
        self,
        *,
        criterion: str = "likelihood",
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | float = 1,
        min_events_leaf: int | float | str | None = "auto",
        prior: float | str = "auto",
        shrinkage: float | str = "auto",
        leaf_curve: str = "auto",
        encoder: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_events_leaf = min_events_leaf
        self.prior = prior
        self.shrinkage = shrinkage
        self.leaf_curve = leaf_curve
        self.encoder = encoder
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> GreedySurvivalTree:
        """Grow the tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories, missing values as the encoder allows; complete numbers
            with ``encoder=None``.
        y : structured array, DataFrame or pair
            A structured array of one boolean (event) and one float field (time), a DataFrame with
            columns ``event`` and ``time`` (or exactly one two-valued and one numeric column), or
            a pair ``(event, time)``. Delayed entry (``entry``) is refused. Durations count in days;
            where a DataFrame has dates ``start`` and ``stop``, or ``entry`` and ``exit``, the time
            is the days between them.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows (with ``min_samples_leaf=1``).

        Returns
        -------
        GreedySurvivalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, rows that do not fit together, and columns that
            cannot be read; parameter, column or row is named, and an earlier fit is kept.
        KeyboardInterrupt
            On Ctrl-C; an earlier fit is kept.

        Warns
        -----
        ConstantFeatureWarning
            When every column of ``X`` takes a single value.
        SmallSampleWarning
            When a share or "auto" as ``min_samples_leaf`` or ``min_events_leaf`` leaves nothing to
            split: the tree is a single leaf.
        EventFreeWarning
            When a feature tells rows apart that have no event where twenty or more are expected, so
            that ``min_events_leaf="auto"`` is no minimum.
        """
        start = time.perf_counter()
        self._check_parameters()
        data = check_training_data(X, y, sample_weight)
        if data.entry is not None:
            raise ValueError(
                "y has an 'entry': GreedySurvivalTree has no delayed entry; OptimalSurvivalTree has"
            )
        encoder = self._fitted_encoder(data.X, data.weight)
        rows = _rows(encoder, data.X)
        fewest = least_rows(self.min_samples_leaf, len(rows))
        if self.min_events_leaf == "auto" and not isinstance(encoder, NumericColumns):
            data = data._replace(event_free=event_free_rows(encoder, rows, data))
        events = self._least_events(data)
        if self.max_depth != 0:
            warn_of_small_sample(
                None if isinstance(encoder, NumericColumns) else rows,
                (self.min_samples_leaf, fewest),
                (self.min_events_leaf, events, data.event),
                stacklevel=2,
            )
        grown = _core.grow_greedy(
            rows,
            data.time,
            data.event,
            data.weight,
            criterion=self.criterion,
            max_depth=self.max_depth,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=fewest,
            min_events_leaf=events,
            prior=self._prior(),
        )
        tree = Tree.grown(
            grown["children_left"],
            grown["children_right"],
            grown["feature"],
            rows,
            data.weight,
            grown["threshold"],
        )
        self._set_leaves(tree, rows, SurvivalRows(data, self._prior()))
        self.encoder_ = encoder
        self._remember_parameters()
        self.objective_value_ = _mean_loss(self.leaf_statistics_, self.prior_, data)
        self.fit_time_ = time.perf_counter() - start
        logger.log(
            logging.INFO if self.verbose else logging.DEBUG,
            "%s: objective %.6g, %d leaves of depth %d, %.3f s",
            self.criterion,
            self.objective_value_,
            self.n_leaves_,
            self.depth_,
            self.fit_time_,
        )
        self._warn_of_constants()
        warn_of_event_free_rows(data.event_free, stacklevel=2)
        return self

    def _check_parameters(self) -> None:
        check_choice("criterion", self.criterion, ("likelihood", "logrank"))
        check_integer("max_depth", self.max_depth, 0, optional=True)
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 1, optional=True)
        check_min_samples(self.min_samples_leaf)
        check_min_events(self.min_events_leaf)
        check_prior(self.prior)
        check_shrinkage(self.shrinkage, auto=True)
        check_choice("leaf_curve", self.leaf_curve, ("auto", *Likelihood.leaf_curves))
        check_seed("random_state", self.random_state)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, 0)
        if self.encoder is not None:
            self._check_encoder()

    def _prior(self) -> float:
        return prior_events(self.prior)

    def _fitted_encoder(self, X: Any, weight: NDArray[np.float64] | None) -> Any:
        if self.encoder is None:
            return NumericColumns().fit(X)
        return super()._fitted_encoder(X, weight)

    def _shrinkage(self) -> float:
        return Likelihood.auto_shrinkage if self.shrinkage == "auto" else float(self.shrinkage)

    def _described(self) -> str:
        return describe_greedy(self)

    def _questions(self) -> list[Question]:
        if not isinstance(self.encoder_, NumericColumns):
            return super()._questions()
        whole = self.encoder_.whole_features_in_
        return [
            Question(kind="at most", column=name, whole=name in whole)
            for name in self._split_names()
        ]

    def _saved_fields(self) -> dict[str, Any]:
        return {
            "encoder": self.encoder_.to_dict(),
            "growth": {"objective_value": self.objective_value_, "fit_time": self.fit_time_},
            **self._saved_regularisation(),
        }

    def _read_fields(self, fields: Fields) -> None:
        if self.encoder is None:
            self.encoder_ = NumericColumns.from_fields(fields.object("encoder"))
        else:
            self.encoder_ = BinaryEncoder.from_dict(fields.take("encoder"))
        growth = fields.object("growth")
        # A loss of zero may be rounded to either side.
        self.objective_value_ = growth.number("objective_value", minimum=-math.inf)
        self.fit_time_ = growth.number("fit_time")
        growth.finish()
        self._read_regularisation(fields)


def _rows(encoder: Any, X: Any) -> NDArray[Any]:
    """Rows as the tree reads them: numbers to be cut, or binary features."""
    if isinstance(encoder, NumericColumns):
        return encoder.transform(X)
    return binary_features(encoder, X)


def _mean_loss(leaves: tuple[LeafStatistics, ...], prior: float, data: TrainingData) -> float:
    """Likelihood loss of the leaves and priors per unit of weight (Huisman et al., eq. 20)."""
    table = _core.risk_table(data.time, data.event, data.weight)
    happened = table["events"] > 0
    saturated = -np.sum(table["events"][happened] * np.log(table["nelson_aalen"][happened]))
    fitted = sum((leaf.events + prior) * np.log(leaf.theta) for leaf in leaves)
    return float((saturated - fitted) / sum(leaf.weight for leaf in leaves))
