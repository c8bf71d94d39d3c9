"""The checks of random problems, and the problems for each: all proofs and equalities.

``CASES`` maps a name to a function of a problem and a random generator, which fails with an
AssertionError and may return words to count.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import fits
import in_parts
import neighbours
import numpy as np
import opinions
from problems import DRAWS, fair_front, front, greedy, listed

from bristlecone.exceptions import BristleconeWarning

GREEDY = {"greedy": greedy}
# Words in the errors about data of wide range.
NAMED = re.compile(
    r"\b(y|times?|exposure|rows?|weights?|sample_weight|costs?|rewards?|statistics|sums|feature_costs)\b"
)
SAVED = {kind: draw for kind, draw in DRAWS.items() if kind != "own task"}
# Models that estimate rewards do not read a table as binary features.
OF_QUESTIONS = {kind: draw for kind, draw in DRAWS.items() if kind != "estimated policy"}
# Objectives that are sums over rows.
SUMMED = {
    kind: DRAWS[kind]
    for kind in ("likelihood", "causes", "classes", "costs", "policy", "regression", "counts")
}


@dataclass(frozen=True)
class Case:
    """A check, its problems, and how often it runs relative to the others."""

    check: Callable
    draws: dict
    share: int = 1


CASES = {
    "fit": Case(fits.a_fit_finds_the_best_tree_and_says_nothing_false, DRAWS, 4),
    "stopped": Case(fits.a_stopped_search_says_nothing_false, DRAWS, 4),
    "callback": Case(fits.a_callback_ends_the_search_and_the_fit, DRAWS),
    "size path": Case(fits.the_size_path_has_the_best_value_of_every_size, DRAWS, 2),
    "switches": Case(fits.no_switch_changes_what_is_found, DRAWS, 2),
    "front": Case(
        fits.a_front_has_all_trees_that_are_not_dominated_and_no_other, {"classes": front}, 4
    ),
    "fair front": Case(
        fits.a_front_of_fair_trees_is_that_of_all_trees_within_the_limit, {"fair": fair_front}, 4
    ),
    "alternatives": Case(neighbours.an_alternative_is_the_best_tree_with_another_question, DRAWS),
    "near-optimal": Case(neighbours.near_optimal_trees_are_all_and_near, DRAWS),
    "all optimal": Case(
        neighbours.near_optimal_trees_of_no_slack_are_all_and_optimal,
        {kind: lambda rng, kind=kind: listed(rng, kind) for kind in ("likelihood", "brier")},
        4,
    ),
    "verify": Case(opinions.a_tree_verifies, {**DRAWS, **GREEDY}, 2),
    "same rows": Case(opinions.the_rows_of_the_fit_estimate_the_same_tree, {**SAVED, **GREEDY}),
    "other rows": Case(opinions.other_rows_estimate_a_tree_that_verifies, {**SAVED, **GREEDY}),
    "parts": Case(in_parts.a_fit_over_parts_finds_the_best_tree, SUMMED, 2),
    "sums": Case(in_parts.sums_of_parts_give_the_best_tree, SUMMED, 2),
    "table": Case(opinions.the_tree_of_a_table_is_that_of_its_questions, OF_QUESTIONS, 2),
}


def run(name, kind, seed):
    """Check the problem of a seed; return the problem and the words to count."""
    case = CASES[name]
    problem = case.draws[kind](np.random.default_rng(seed))
    # Small data may be constant, constrained or stopped, so these warnings are expected.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        try:
            counted = case.check(problem, np.random.default_rng(seed))
        except ValueError as error:
            if problem.wide and NAMED.search(str(error)):
                return problem, ["refused: too wide"]
            raise AssertionError(f"{replay(name, kind, seed)}: {words(problem)}") from error
        except Exception as error:
            raise AssertionError(f"{replay(name, kind, seed)}: {words(problem)}") from error
    return problem, counted or []


def replay(name, kind, seed):
    """The command that repeats one case."""
    return f"python tests/brute_force --replay '{name}/{kind}/{seed}'"


def words(problem):
    """A problem on one line."""
    shape = "x".join(map(str, problem.X.shape))
    return f"{problem.estimator.__name__} of {shape}, {problem.parameters}"
