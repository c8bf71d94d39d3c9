"""``PolicyTree``: the provably best policy of the form of a tree, from historical data."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from bristlecone.data.arrays import unmasked
from bristlecone.data.checks import check_choice, check_real, row_count
from bristlecone.data.targets import check_amounts, check_labelled_data, check_numbers
from bristlecone.encoder.cuts import RankedColumns
from bristlecone.errors import InvalidParameterError
from bristlecone.estimators.labels import LabelTreeMixin, sum_by_leaf
from bristlecone.estimators.searched import Callback, Engine, Problem, task_engine
from bristlecone.model.registry import register
from bristlecone.search.solve_front import solve_front

__all__ = ["PolicyTree", "policy_rewards"]

# What rounding may add to a share.
_ROUNDING = 1e-9

_TEACHERS = ("direct", "inverse-propensity", "doubly-robust")


class PolicyData(NamedTuple):
    """Checked rows with the estimated outcome of every treatment, float64 (n, n_treatments)."""

    X: Any
    rewards: NDArray[np.float64]
    treatments: NDArray[Any]
    weight: NDArray[np.float64] | None


def policy_rewards(
    y: ArrayLike,
    treatment: NDArray[np.int64],
    n_treatments: int,
    teacher: str,
    *,
    propensity: ArrayLike | None = None,
    predicted_outcomes: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Estimated outcome of every row under every treatment.

    With y the outcome of a row, k its treatment, μ(k) the probability that it had this treatment
    and v(j) its predicted outcome under treatment j (van der Linden et al., NeurIPS 2023,
    eqs. 61–63; eq. 62 as printed leaves out y):

    * "direct": v(j);
    * "inverse-propensity": y / μ(k) for j = k, else 0;
    * "doubly-robust": v(j), plus (y − v(k)) / μ(k) for j = k.

    The mean over the rows of the entry of the prescribed treatment estimates the value of a policy.

    Parameters
    ----------
    y : array-like of float, shape (n,)
        Outcomes; higher is better.
    treatment : array of int, shape (n,)
        Treatment of every row, counted from 0.
    n_treatments : int
        Number of treatments.
    teacher : {"direct", "inverse-propensity", "doubly-robust"}
        The estimate.
    propensity : array-like of float, shape (n,) or (n, n_treatments)
        Probability, in (0, 1], of the treatment each row had, or of every treatment; not needed by
        "direct".
    predicted_outcomes : array-like of float, shape (n, n_treatments)
        Predicted outcome of every row under every treatment; not needed by "inverse-propensity".

    Returns
    -------
    array of float, shape (n, n_treatments)

    Raises
    ------
    ValueError
        When an estimate that the teacher needs is absent, of another shape, not finite, or a
        probability is outside (0, 1]; the row is named.
    """
    n_samples = len(treatment)
    outcome = check_numbers("y", y, n_samples)
    rows = np.arange(n_samples)
    rewards = np.zeros((n_samples, n_treatments))
    if teacher != "inverse-propensity":
        rewards = _predicted(predicted_outcomes, (n_samples, n_treatments), teacher).copy()
    if teacher != "direct":
        share = _of_the_taken(propensity, treatment, n_treatments, teacher)
        rewards[rows, treatment] += (outcome - rewards[rows, treatment]) / share
    return rewards


def _predicted(values: Any, shape: tuple[int, int], teacher: str) -> NDArray[np.float64]:
    if values is None:
        raise ValueError(f"teacher={teacher!r} needs predicted_outcomes")
    why = "one column per treatment that was observed; one that never was cannot be judged"
    return check_amounts("predicted_outcomes", values, shape, minimum=-np.inf, why=why)


def _of_the_taken(
    values: Any, treatment: NDArray[np.int64], n_treatments: int, teacher: str
) -> NDArray[np.float64]:
    """Probability of the treatment that every row had."""
    if values is None:
        raise ValueError(f"teacher={teacher!r} needs propensity")
    n_samples = len(treatment)
    share = np.asarray(unmasked(values, "propensity"))
    if share.shape != (n_samples,):
        why = "or one value per row; one column per treatment that was observed"
        share = check_amounts("propensity", share, (n_samples, n_treatments), why=why)
        share = share[np.arange(n_samples), treatment]
    share = share.astype(np.float64)
    wrong = ~((share > 0) & (share <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"propensity is {share[row]} in row {row} for the treatment it had; probabilities "
            "must lie in (0, 1]"
        )
    return share


@register
class PolicyTree(LabelTreeMixin, BaseEstimator):
    """Tree that prescribes treatments, of greatest estimated value over the binary features.

    Historical rows have a treatment and an outcome. A teacher estimates what every other treatment
    would have given, and the tree maximises the mean estimate of what it prescribes [1]_ (section
    D).

    Parameters
    ----------
    teacher : {"doubly-robust", "inverse-propensity", "direct"}, default="doubly-robust"
        How the outcome of every treatment is estimated; see :func:`policy_rewards`. "direct" needs
        predicted outcomes, "inverse-propensity" the probabilities of the treatments,
        "doubly-robust" both: it is unbiased when either is right.
    capacities : mapping or None, default=None
        Largest share of the training weight, between 0 and 1, that a treatment may be prescribed
        to; treatments that are not named are unlimited.
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int or float, default=1
        Fewest training rows in a leaf, whatever their weights; a float between 0 and 1 is a share
        of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Subtracted from the mean outcome per leaf.
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
    treatments_ : array, shape (n_treatments,)
        Treatments that were observed, in sorted order.
    policy_value_ : float
        Estimated mean outcome of the tree's policy on the training rows.
    objective_value_ : float
        ``-policy_value_`` plus ``leaf_penalty`` times the number of leaves: lower is better; inf
        when infeasible.
    lower_bound_ : float
        No tree over the binary features is below this.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted", "infeasible"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
        "infeasible": none keeps the capacities; there is no ``tree_``, and predictions raise
        InfeasibleError.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
    leaf_labels_ : array of int, shape (n_leaves,)
        Position in ``treatments_`` of what every leaf prescribes, left to right. Of equally good
        treatments it is the first.
    leaf_values_ : array of float, shape (n_leaves, n_treatments)
        Estimated mean outcome of every treatment in every leaf.
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

    References
    ----------
    .. [1] van der Linden, de Weerdt, Demirović, "Necessary and Sufficient Conditions for Optimal
       Decision Trees using Dynamic Programming", NeurIPS 2023.

    Examples
    --------
    >>> from bristlecone import PolicyTree
    >>> X, outcome = [[0], [0], [1], [1]], [1.0, 0.0, 0.0, 1.0]
    >>> tree = PolicyTree(teacher="inverse-propensity", max_depth=1)
    >>> tree = tree.fit(X, outcome, treatment=["a", "b", "a", "b"], propensity=[0.5] * 4)
    >>> tree.predict([[0], [1]]).tolist(), tree.policy_value_
    (['a', 'b'], 1.0)
    """

    def __init__(
        self,
        *,
        teacher: str = "doubly-robust",
        capacities: Mapping[Any, float] | None = None,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | float = 1,
        leaf_penalty: float = 0.0,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        encoder: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.teacher = teacher
        self.capacities = capacities
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.leaf_penalty = leaf_penalty
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.encoder = encoder
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        treatment: ArrayLike,
        propensity: ArrayLike | None = None,
        predicted_outcomes: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> PolicyTree:
        """Find the best policy.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories; missing values as the encoder allows.
        y : array-like of float, shape (n,)
            Outcomes; higher is better.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows (with ``min_samples_leaf=1``).
        treatment : array-like, shape (n,)
            Treatment that every row had: numbers, texts or booleans; at most 32 treatments.
        propensity : array-like of float, shape (n,) or (n, n_treatments), optional
            Probability, in (0, 1], of the treatment each row had given its features; or of every
            treatment, in sorted order.
        predicted_outcomes : array-like of float, shape (n, n_treatments), optional
            Outcome that a model predicts for every row under every treatment, in sorted order;
            best from a model that was not fitted to the row.
        callback : callable, optional
            Called with a :class:`~bristlecone.SearchProgress` whenever the best tree or
            the lower bound may have improved, and every quarter of a second, on the thread of
            ``fit``. An exception it raises ends the search and ``fit``.

        Returns
        -------
        PolicyTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, estimates that the teacher needs and that are absent
            or of another shape, probabilities outside (0, 1], treatments that were never observed,
            rows that do not fit together, and columns that cannot be read; parameter, column or
            row is named, and an earlier fit is kept.
        InfeasibleError
            When a limit or Ctrl-C, which ``status_`` names, stopped the search before a tree that
            keeps the capacities was met.
        KeyboardInterrupt
            At a second Ctrl-C within a second; an earlier fit is kept.

        Warns
        -----
        SearchLimitWarning
            When a limit or Ctrl-C stopped the search; the gap is given.
        SearchCostWarning
            At the start of a search without ``time_limit`` that is forecast to take more than ten
            minutes.
        InfeasibleWarning
            When no tree keeps the capacities.
        ConstantFeatureWarning
            When every column of ``X`` takes a single value.
        """
        start = time.perf_counter()
        problem = self._problem(
            X,
            y,
            sample_weight,
            treatment=treatment,
            propensity=propensity,
            predicted_outcomes=predicted_outcomes,
        )
        self._search(problem, start, callback)
        self._announce([self])
        return self

    @property
    def policy_value_(self) -> float:
        """Estimated mean outcome of the policy on the training rows."""
        self._check_fitted()
        penalty = float(self._fitted_parameters()["leaf_penalty"])
        return penalty * self.n_leaves_ - self.objective_value_

    def predict_outcomes(self, X: Any) -> NDArray[np.float64]:
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
            When ``fit`` found that no tree satisfies the constraints.
        """
        leaf = self._leaf_of(X)
        return self.leaf_values_[leaf]

    def _aim(self) -> str:
        fitted = self._fitted_parameters()
        limits = ", ".join(
            f"{name} for at most {share:g}" for name, share in (fitted["capacities"] or {}).items()
        )
        return (
            "the greatest mean outcome of the treatments it prescribes, estimated by the "
            f"{fitted['teacher']} method (van der Linden, de Weerdt and Demirović, NeurIPS 2023); "
            "the objective is its negative"
            + (f"; of all rows it may prescribe {limits}" if limits else "")
        )

    def _check_parameters(self) -> None:
        check_choice("teacher", self.teacher, _TEACHERS)
        if self.capacities is not None and not isinstance(self.capacities, Mapping):
            raise InvalidParameterError(
                f"capacities must be a mapping from treatments to shares; got {self.capacities!r}"
            )
        for name, share in (self.capacities or {}).items():
            check_real(f"capacities[{name!r}]", share, 0.0)
            if share > 1:
                raise InvalidParameterError(
                    f"capacities[{name!r}] must be at most 1, a share of the rows; got {share!r}"
                )
        super()._check_parameters()

    def _training_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        treatment: Any,
        propensity: Any = None,
        predicted_outcomes: Any = None,
    ) -> PolicyData:
        data = check_labelled_data(X, treatment, sample_weight, name="treatment")
        n_samples = row_count(X)
        rewards = policy_rewards(
            check_numbers("y", y, n_samples)[data.kept],
            data.labels,
            len(data.classes),
            self.teacher,
            propensity=_kept("propensity", propensity, data.kept),
            predicted_outcomes=_kept("predicted_outcomes", predicted_outcomes, data.kept),
        )
        self._capacity(data.classes, 1.0)
        return PolicyData(data.X, rewards, data.classes, data.weight)

    def _capacity(self, treatments: NDArray[Any], total: float) -> NDArray[np.float64]:
        """Largest weight of every treatment."""
        capacity = np.full(len(treatments), np.inf)
        names = treatments.tolist()
        for name, share in (self.capacities or {}).items():
            if name not in names:
                raise ValueError(
                    f"capacities names {name!r}, a treatment that was never observed; there are "
                    f"{names}"
                )
            # A share of whole rows must not lose one to rounding.
            capacity[names.index(name)] = (share + _ROUNDING) * total
        return capacity

    def _engine(self, problem: Problem) -> Engine:
        data = problem.data
        best = data.rewards.max(axis=1)
        name, task = self._sum_task(data)
        offset = float(np.average(best, weights=data.weight))
        if self.capacities:
            total = float(len(best) if data.weight is None else data.weight.sum())
            task["capacity"] = self._capacity(data.treatments, total)
            search = partial(solve_front, name, task, problem.features)
            return Engine(search, offset=offset)
        return task_engine(name, task, problem.features, offset)

    def _sum_task(
        self, data: PolicyData, columns: RankedColumns | None = None
    ) -> tuple[str, dict[str, Any]]:
        regret = data.rewards.max(axis=1)[:, None] - data.rewards
        return "label-costs", {"costs": regret, "weight": data.weight}

    def _labels(self) -> NDArray[Any]:
        return self.treatments_

    def _set_labels(self, labels: NDArray[Any]) -> None:
        self.treatments_ = labels

    def _set_found(self, tree: Any, problem: Problem, solution: Any) -> None:
        super()._set_found(tree, problem, solution)
        self.treatments_ = problem.data.treatments

    def _values(self, leaf: NDArray[np.int64], n_leaves: int, problem: Problem) -> NDArray[Any]:
        data = problem.data
        total = np.bincount(leaf, weights=data.weight, minlength=n_leaves)
        return sum_by_leaf(leaf, n_leaves, data.rewards, data.weight) / total[:, None]


def _kept(name: str, values: Any, kept: NDArray[np.bool_]) -> Any:
    """The rows that are left of an array given by row."""
    if values is None:
        return None
    array = np.asarray(unmasked(values, name))
    if array.ndim not in (1, 2) or len(array) != len(kept):
        raise ValueError(f"{name} has shape {array.shape} for {len(kept)} rows of X")
    return array[kept]
