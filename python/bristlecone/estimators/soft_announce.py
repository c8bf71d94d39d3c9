"""What a fit logs and warns of."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING

from bristlecone.encoder.missing import missing_text
from bristlecone.errors import (
    BristleconeWarning,
    ConstantFeatureWarning,
    EmptyLeafWarning,
    FitConvergenceWarning,
)
from bristlecone.soft.training.joint import Trained
from bristlecone.soft.training.problem import Problem

if TYPE_CHECKING:
    from bristlecone.estimators.soft import SoftSurvivalTree

__all__ = ["announce"]

logger = logging.getLogger("bristlecone")


def announce(
    estimator: SoftSurvivalTree, problem: Problem, best: Trained, replaced: str, floor: float
) -> None:
    """Log the fit and warn; called by ``fit`` itself.

    ``replaced`` tells of times that were 0; ``floor`` is the share that every leaf should hold.
    """
    logger.log(
        logging.INFO if estimator.verbose else logging.DEBUG,
        "objective %.6g, best of %d restarts, %d leaves worth %.1f even ones, "
        "%d design columns, %.3f s",
        estimator.objective_value_,
        len(estimator.restart_objectives_),
        estimator.n_leaves_,
        estimator.n_effective_leaves_,
        len(estimator.encoder_.design_),
        estimator.fit_time_,
    )
    missing = missing_text(estimator.encoder_.columns_)
    if missing:
        level = logging.INFO if estimator.verbose else logging.DEBUG
        logger.log(level, "missing values: %s", missing)
    if replaced:
        warnings.warn(replaced, BristleconeWarning, stacklevel=3)
    if estimator.encoder_.constant_:
        names = ", ".join(map(repr, estimator.encoder_.constant_))
        warnings.warn(
            f"constant columns have no weight: {names}", ConstantFeatureWarning, stacklevel=3
        )
    if (estimator.leaf_shares_ < floor).any():
        warnings.warn(_empty_leaves(estimator, floor), EmptyLeafWarning, stacklevel=3)
    if not best.converged:
        parts = _unfinished(estimator, problem, best)
        if parts:
            warnings.warn(
                f"no minimum after max_iter={estimator.max_iter} steps; the gradient is not yet "
                f"below tol={estimator.tol:g} in {parts}",
                FitConvergenceWarning,
                stacklevel=3,
            )


def _empty_leaves(estimator: SoftSurvivalTree, floor: float) -> str:
    """How many leaves hold too little, and what to do."""
    shares = estimator.leaf_shares_
    few, none = int((shares < floor).sum()), int((shares == 0).sum())
    if few == none:
        told = f"{few} of {len(shares)} leaves {'is' if few == 1 else 'are'} empty"
    else:
        told = f"{few} of {len(shares)} leaves {'holds' if few == 1 else 'hold'} less than "
        told += f"{100 * floor:.3g} % of the weight"
    return (
        f"{told} (the tree is worth {estimator.n_effective_leaves_:.1f} even leaves): use "
        f"depth={estimator.depth - 1}, a larger balance or a smaller split_l2"
    )


def _unfinished(estimator: SoftSurvivalTree, problem: Problem, best: Trained) -> str:
    """Splits and leaves where the gradient is larger than ``tol``, in words."""
    size = problem.steepness(best.parameters)
    tree = estimator.tree_
    names = [f"split {node}" for node in tree.splits] + [f"leaf {node}" for node in tree.leaves]
    return ", ".join(
        f"{name} ({steep:.2g})"
        for name, steep in zip(names, size, strict=True)
        if steep > estimator.tol
    )
