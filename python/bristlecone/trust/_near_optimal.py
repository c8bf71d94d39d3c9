"""All trees that are nearly as good as the best one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bristlecone._data.checks import check_integer, check_real
from bristlecone._log import warn
from bristlecone._types import Floats
from bristlecone.exceptions import CertificateError, SearchLimitWarning
from bristlecone.trust._alternatives import refusal, search_again, table_of
from bristlecone.trust._optimality import assert_not_below
from bristlecone.trust._proof import slack_of


class NearOptimalTrees(Sequence[Any]):
    """Trees whose objective is within ε of the optimum, those with the fewest leaves first.

    Parameters
    ----------
    trees : sequence of fitted trees
    epsilon : float
    complete : bool
        Whether these are all such trees over the binary features of the search. If not, they are
        some of those with the fewest leaves; after a search that stopped, those that are known to
        be within ε, which may be none.
    frame_kind : object
        Kind of data frame for the tables.

    Attributes
    ----------
    epsilon, complete
        As given.

    See Also
    --------
    near_optimal_trees : Finds them.

    Examples
    --------
    >>> from bristlecone import OptimalTreeClassifier
    >>> from bristlecone.trust import near_optimal_trees
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 1, 1]
    >>> tree = OptimalTreeClassifier(max_depth=1).fit(X, y)
    >>> near = near_optimal_trees(tree, X, y, epsilon=0.5, limit=10)
    >>> len(near), near.complete, [one.objective_value_ for one in near]
    (3, True, [0.5, 0.0, 0.5])
    """

    def __init__(
        self, trees: Sequence[Any], epsilon: float, complete: bool, frame_kind: Any
    ) -> None:
        self._trees = tuple(trees)
        self.epsilon = epsilon
        self.complete = complete
        self._frame_kind = frame_kind

    @property
    def objective_values(self) -> Floats:
        """Objective of every tree, shape (n_trees,)."""
        return np.array([tree.objective_value_ for tree in self])

    def columns(self) -> Any:
        """Count the trees that use each column of ``X``.

        Returns
        -------
        DataFrame
            From the same library as ``X`` in ``fit``: ``column``, ``n_trees`` that use it, their
            ``share``, and ``best_objective_without``, the least objective of the trees that do not
            use it (NaN if all do). The columns used most often come first; unused ones are left
            out. If the trees are not ``complete``, the counts and shares are those of the trees
            that were found, and ``best_objective_without`` is NaN: a better tree without the
            column may be missing.
        """
        used = [set(tree.features_used_) for tree in self]
        values = self.objective_values
        rows = []
        for name in sorted(set().union(*used), key=str):
            asks = np.array([name in of_tree for of_tree in used])
            known = self.complete and not asks.all()
            without = float(values[~asks].min()) if known else np.nan
            rows.append((name, int(asks.sum()), float(asks.mean()), without))
        rows.sort(key=lambda row: -row[1])
        columns = "column", "n_trees", "share", "best_objective_without"
        return table_of(columns, rows, self._frame_kind)

    def __getitem__(self, index: int | slice) -> Any:
        return self._trees[index]

    def __len__(self) -> int:
        return len(self._trees)

    def __repr__(self) -> str:
        whole = "all" if self.complete else "not all"
        trees = "tree" if len(self) == 1 else "trees"
        return f"NearOptimalTrees({len(self)} {trees} within {self.epsilon:g}, {whole})"


def near_optimal_trees(
    tree: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    epsilon: float,
    limit: int = 1000,
    **data: Any,
) -> NearOptimalTrees:
    """Find all trees whose objective is within ε of the optimum.

    The trees are built from the binary features of the search. The teacher of a tree is fitted
    again, from its parameters and its seed, and all objectives are those of the smoothed outcomes.
    If a tree with a custom teacher comes from a file, call ``set_params(teacher=...)`` first.

    Parameters
    ----------
    tree : fitted tree
        A tree found by search whose objective is a sum over leaves: no ``OptimalTree``, no F1 or
        Matthews correlation, no limits on groups or treatments, no feature costs.
    X, y, sample_weight, **data
        The arguments of ``fit``, with the same rows, except ``callback`` and ``reference_loss``.
    epsilon : float
        Largest difference to the optimum, in the unit of ``objective_value_``; at least 0. 0
        returns the optimal trees.
    limit : int, default=1000
        Largest number of trees to return. If there are more, those with the fewest leaves are
        returned.

    Returns
    -------
    NearOptimalTrees
        Fitted trees with the parameters of the fit, those with the fewest leaves first. If several
        binary features divide the training rows of a node in the same way, only the first is used.
        The ``status_`` of trees that are not optimal is "near_optimal", and their ``lower_bound_``
        is the optimum.

    Raises
    ------
    TypeError
        If the tree was not found by search, or its objective is not supported.
    ValueError
        If ``epsilon`` is negative, the rows are not those of the fit, or its teacher is unknown.
    NotFittedError, InfeasibleError
        If there is no tree.
    CertificateError
        If a tree has a lower objective than the certificate of the fitted tree allows, or no tree
        is as good as the fitted one.

    Warns
    -----
    SearchLimitWarning
        If there are more trees than ``limit``, or a limit or Ctrl-C stopped the search. In the
        latter case there may be no trees.

    See Also
    --------
    alternatives : One split at a time.

    References
    ----------
    Xin, Zhong, Chen, Takagi, Seltzer, Rudin, "Exploring the whole Rashomon set of sparse decision
    trees", NeurIPS 2022, count such sets.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.trust import near_optimal_trees
    >>> veterans = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(veterans.X, veterans.y)
    >>> near = near_optimal_trees(tree, veterans.X, veterans.y, epsilon=0.005)
    >>> near
    NearOptimalTrees(1 tree within 0.005, all)
    """
    check_real("epsilon", epsilon, 0.0)
    check_integer("limit", limit, 1)
    start = time.perf_counter()
    search_data = search_again(tree, "near_optimal_trees", X, y, sample_weight, data)
    search, problem = search_data.search, search_data.searched
    near_optimal = search.engine(problem).near_optimal
    if near_optimal is None:
        raise TypeError(refusal(tree, "near_optimal_trees"))
    settings = search.limits.settings(problem, slack=float(epsilon), limit=limit)
    found, complete = near_optimal(**settings)
    off = slack_of(tree, X, y, problem, sample_weight=sample_weight, **data)
    trees = [search_data.tree(solution, problem, start) for solution in found]
    for one in trees:
        which = f"a tree of {one.n_leaves_} leaves that the search found"
        assert_not_below(tree, one.objective_value_, off, which)
        proof = one.certificate_
        if proof.status == "optimal" and one.objective_value_ > tree.objective_value_ + off:
            one.certificate_ = replace(proof, status="near_optimal")
    least = min(one.objective_value_ for one in trees)
    if complete and least > tree.objective_value_ + off:
        raise CertificateError(
            f"the least objective of all trees is {least:.17g}; the fitted {type(tree).__name__} "
            f"reports {tree.objective_value_:.17g}"
        )
    if not complete:
        why, rest = f"the search stopped ({found[0].status})", "others are left out"
        if trees[0].certificate_.is_proved:
            why = f"more than limit={limit} trees are within {epsilon:g} of the optimum"
        else:
            # The optimum may not be known yet, and then the best tree so far may be far from it.
            most = max(tree.lower_bound_, found[0].lower_bound) + epsilon + off
            trees = [one for one in trees if one.objective_value_ <= most]
            if not trees:
                rest = f"no tree is known to be within {epsilon:g} of the optimum"
        warn(f"{why}; {rest}", SearchLimitWarning)
    return NearOptimalTrees(trees, float(epsilon), complete, tree._frame_kind)
