"""``OptimalSurvivalTree``: the provably best survival tree over a set of binary features."""

from __future__ import annotations

import logging
import math
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from bristlecone import _core
from bristlecone._encoded import EncodedTreeMixin, binary_features
from bristlecone._survival import LEAF_CURVES
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import InvalidParameterError, SearchLimitWarning
from bristlecone.serialise import Fields, register
from bristlecone.tree import Tree
from bristlecone.validation import (
    check_choice,
    check_integer,
    check_real,
    check_seed,
    check_training_data,
    thread_count,
)

__all__ = ["OptimalSurvivalTree"]

logger = logging.getLogger(__name__)

_STATUSES = ("optimal", "time_limit", "memory_limit", "interrupted")


@register
class OptimalSurvivalTree(EncodedTreeMixin, BaseEstimator):
    """Survival tree of least loss among all trees over the binary features of the encoder.

    The loss is that of Huisman, van der Linden and Demirović, "Optimal Survival Trees: A Dynamic
    Programming Approach" (AAAI-24), eq. 20, after LeBlanc and Crowley (1992): the saturated minus
    the fitted log-likelihood of a proportional hazards model with one relative hazard θ per
    leaf and the Nelson–Aalen estimate of the training rows as the baseline.

    Parameters
    ----------
    objective : {"likelihood"}, default="likelihood"
        Loss of a leaf.
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int, default=1
        Fewest training rows in a leaf, whatever their weights.
    leaf_penalty : float, default=0.0
        Added to the mean loss per leaf.
    leaf_curve : {"auto", "proportional", "kaplan-meier"}, default="auto"
        Curve of a leaf: exp(−θΛ) with the baseline Λ, or the leaf's own Kaplan–Meier estimate.
        "auto" is "proportional".
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes the search may use before it stops likewise.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The tree of a completed search does not depend on it.
    encoder : "auto" or transformer, default="auto"
        Turns ``X`` into binary features; "auto" is ``BinaryEncoder()``. A clone is fitted to the
        training rows. Any transformer will do whose output is two-dimensional and holds nothing
        but 0 and 1, and which has ``get_feature_names_out``.
    random_state : int, RandomState or None, default=None
        Accepted for uniformity; the search is deterministic and does not use it.
    verbose : int, default=0
        1 or more reports a fit at level INFO of the logger "bristlecone.optimal", else DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean loss per unit of weight plus ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features is below this.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
    leaf_statistics_ : tuple of LeafStatistics
        Rows, events, θ, Kaplan–Meier and Nelson–Aalen curve of every leaf, left to right.
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
    unique_times_, event_times_ : array of float
        Distinct training times, and those with an event.
    baseline_ : Baseline
        Both of them with the baseline cumulative hazard Λ.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import OptimalSurvivalTree
    >>> X = np.array([[0], [0], [1], [1]], dtype=bool)
    >>> event, time = np.array([True, True, True, False]), np.array([1.0, 2.0, 5.0, 6.0])
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(X, (event, time))
    >>> tree.status_, tree.n_leaves_
    ('optimal', 2)
    """

    def __init__(
        self,
        *,
        objective: str = "likelihood",
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 1,
        leaf_penalty: float = 0.0,
        leaf_curve: str = "auto",
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
        self.leaf_penalty = leaf_penalty
        self.leaf_curve = leaf_curve
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.encoder = encoder
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> OptimalSurvivalTree:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories; missing values as the encoder allows.
        y : structured array, DataFrame or pair
            A structured array of one boolean (event) and one float field (time), a DataFrame with
            columns ``event`` and ``time`` (or exactly one two-valued and one numeric column), or
            a pair ``(event, time)``.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows (with ``min_samples_leaf=1``).

        Returns
        -------
        OptimalSurvivalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, rows that do not fit together, and columns that
            cannot be read; parameter, column or row is named, and an earlier fit is kept.

        Warns
        -----
        SearchLimitWarning
            When a limit or Ctrl-C stopped the search; the gap is given.
        ConstantFeatureWarning
            When a column of ``X`` takes a single value.
        """
        start = time.perf_counter()
        self._check_parameters()
        data = check_training_data(X, y, sample_weight)
        encoder = self._fitted_encoder(data.X, data.weight)
        features = binary_features(encoder, data.X)
        solution = _core.solve_likelihood(
            features,
            data.time,
            data.event,
            data.weight,
            max_depth=self._depth_limit(features),
            max_leaf_nodes=self._leaf_limit(features),
            min_samples_leaf=self.min_samples_leaf,
            leaf_penalty=float(self.leaf_penalty),
            n_threads=thread_count(self.n_jobs),
            time_limit=None if self.time_limit is None else float(self.time_limit),
            memory_limit=self.memory_limit,
            options=None,
        )
        tree = Tree.grown(
            solution.children_left,
            solution.children_right,
            solution.feature,
            features,
            data.weight,
        )
        self._set_leaves(tree, features, data)
        self.encoder_ = encoder
        self.objective_value_ = solution.objective
        self.lower_bound_ = solution.lower_bound
        self.status_ = solution.status
        self.n_nodes_explored_ = solution.n_nodes_explored
        self.trace_ = [tuple(entry) for entry in solution.trace]
        self.fit_time_ = time.perf_counter() - start
        self._warn_of_constants()
        self._report()
        return self

    @property
    def gap_(self) -> float:
        """Distance of the objective from the lower bound."""
        return self.objective_value_ - self.lower_bound_

    @property
    def relative_gap_(self) -> float:
        """The gap as a share of the objective."""
        if self.gap_ == 0:
            return 0.0
        return self.gap_ / abs(self.objective_value_) if self.objective_value_ else math.inf

    @property
    def n_binary_features_(self) -> int:
        """Number of binary features the tree was searched over."""
        return len(self._split_names())

    def _check_parameters(self) -> None:
        check_choice("objective", self.objective, ("likelihood",))
        check_integer("max_depth", self.max_depth, 0, optional=True)
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 1, optional=True)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        check_real("leaf_penalty", self.leaf_penalty, 0.0)
        check_choice("leaf_curve", self.leaf_curve, LEAF_CURVES)
        check_real("time_limit", self.time_limit, 0.0, optional=True)
        check_integer("memory_limit", self.memory_limit, 1, optional=True)
        check_seed("random_state", self.random_state)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, 0)
        self._check_encoder()
        thread_count(self.n_jobs)
        if self.max_depth is None and self.max_leaf_nodes is None and self.leaf_penalty == 0:
            raise InvalidParameterError(
                "max_depth=None means unlimited depth and needs leaf_penalty > 0 or max_leaf_nodes"
            )

    def _depth_limit(self, features: NDArray[np.uint8]) -> int:
        # No path asks a question twice, and every split leaves a row behind.
        most = min(features.shape[1], features.shape[0] - 1)
        if self.max_leaf_nodes is not None:
            most = min(most, self.max_leaf_nodes - 1)
        return most if self.max_depth is None else min(self.max_depth, most)

    def _leaf_limit(self, features: NDArray[np.uint8]) -> int | None:
        return None if self.max_leaf_nodes is None else min(self.max_leaf_nodes, features.shape[0])

    def _report(self) -> None:
        """Log the fit and warn when a limit stopped it; called by ``fit`` itself."""
        logger.log(
            logging.INFO if self.verbose else logging.DEBUG,
            "%s: objective %.6g, lower bound %.6g, %d leaves, depth %d, %d binary features, %.3f s",
            self.status_,
            self.objective_value_,
            self.lower_bound_,
            self.n_leaves_,
            self.depth_,
            self.n_binary_features_,
            self.fit_time_,
        )
        if self.status_ != "optimal":
            warnings.warn(
                f"the search stopped ({self.status_}) with objective {self.objective_value_:.6g} "
                f"and lower bound {self.lower_bound_:.6g}: gap {self.gap_:.3g}",
                SearchLimitWarning,
                stacklevel=3,
            )

    def _saved_fields(self) -> dict[str, Any]:
        return {
            "encoder": self.encoder_.to_dict(),
            "search": {
                "objective_value": self.objective_value_,
                "lower_bound": self.lower_bound_,
                "status": self.status_,
                "n_nodes_explored": self.n_nodes_explored_,
                "trace": self.trace_,
                "fit_time": self.fit_time_,
            },
        }

    def _read_fields(self, fields: Fields) -> None:
        self.encoder_ = BinaryEncoder.from_dict(fields.take("encoder"))
        search = fields.object("search")
        # A loss of zero may be rounded to either side.
        self.objective_value_ = search.number("objective_value", minimum=-math.inf)
        self.lower_bound_ = search.number("lower_bound", minimum=-math.inf)
        self.status_ = search.text("status", _STATUSES)
        self.n_nodes_explored_ = search.integer("n_nodes_explored")
        self.trace_ = search.rows("trace", 3)
        self.fit_time_ = search.number("fit_time")
        search.finish()
        if self.gap_ < 0 or (self.status_ == "optimal" and self.gap_ > 1e-9):
            raise search.fail("lower_bound", "contradicts objective_value or status")
