"""Random combinations of all parameters of every estimator against every tree there is.

``BRISTLECONE_CASES`` sizes the tests: the number of problems of every kind that are fitted;
``BRISTLECONE_SEED`` is the first seed. ``python tests/brute_force`` runs any number of cases for a
release (CONTRIBUTING.md). A failure names the command that makes it again.
"""

import inspect
import math
import os

import numpy as np
import pytest
from cases import CASES, run
from problems import DRAWS

N_CASES = int(os.environ.get("BRISTLECONE_CASES", "50"))
SEED = int(os.environ.get("BRISTLECONE_SEED", "0"))
MOST = max(case.share for case in CASES.values())


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, case in CASES.items() for kind in case.draws]
)
def test_random_problems(name, kind):
    for seed in range(SEED, SEED + math.ceil(N_CASES * CASES[name].share / MOST)):
        run(name, kind, seed)


@pytest.mark.parametrize(
    ("name", "kind", "seed"),
    [
        # A front held a tree and one of fewer leaves with the same errors.
        ("fit", "measure of classes", 3011375),
        # Either value of a flag was as frequent by its weights.
        ("verify", "classes", 3003624),
        ("verify", "classes", 3008575),
        # Costs of either sign cancel but for rounding.
        ("verify", "own task", 20215235),
        # Light rows of one class: rounded errors are not those of a tree that says one class.
        ("fit", "measure of classes", 20067382),
        # Censoring weights that leave no digits are refused.
        ("verify", "brier", 20174955),
        # Digits lost between weights of very different size: of effective numbers at risk,
        ("verify", "likelihood", 900106),
        # shrunk curves,
        ("table", "likelihood", 900411),
        # the baseline,
        ("verify", "likelihood", 900548),
        # hazards of rows,
        ("verify", "likelihood", 900297),
        # beside a large prior,
        ("verify", "likelihood", 904698),
        # restricted means of groups,
        ("verify", "brier", 901036),
        # the entropy and the Gini impurity of a light class,
        ("table", "classes", 900384),
        ("verify", "classes", 901609),
        # and in a task of the user's own.
        ("verify", "own task", 901289),
        # Terms cancel, and the file says so.
        ("fit", "counts", 904712),
        # A perfect tree whose penalties are all it costs,
        ("fit", "classes", 8047628),
        # a policy that earns nothing, and costs that add up to nothing.
        ("verify", "policy", 8126983),
        ("verify", "policy", 91000079),
        ("fit", "estimated policy", 84000702),
        ("verify", "estimated policy", 184000211),
        # The coarse search found a tree of two leaves, and the fine one that no split can pay.
        ("all optimal", "brier", 73000294),
        ("all optimal", "brier", 121000326),
        # Beside a tree without loss, one that loses next to none was taken for as good.
        ("alternatives", "brier", 81001436),
        # Covariances beyond the largest number have the sign of their rounding.
        ("verify", "policy", 71000101),
        # Alternatives of a near-perfect tree over weights of a wide range.
        ("alternatives", "classes", 71000057),
        ("alternatives", "classes", 115000420),
        # A threshold midway in its node divides all rows as one of too little support does.
        ("table", "likelihood", 151000075),
        # Splits that are charged less than their price, beside a bound without limits.
        ("fit", "fair", 121000381),
        ("table", "own task", 8062770),
        # Sums beside prices of 1e289 said that a tree costs nothing.
        ("sums", "costs", 241),
        # Penalties of a perfect tree that were smaller than what sums resolve.
        ("sums", "regression", 20261179),
        # Ten penalties that together were nothing beside what sums resolve,
        ("sums", "regression", 41126091),
        # what rounded prices add to an objective,
        ("sums", "classes", 90000499),
        # and prices that no tree pays.
        ("parts", "costs", 41126239),
        # A tree that is almost perfect, which sums do not resolve and say so.
        ("parts", "regression", 90000485),
        # A cut between values of its node, with the missing ones in between,
        ("table", "classes", 20261268),
        # or alone above it.
        ("table", "costs", 62000231),
    ],
)
def test_problems_that_once_failed(name, kind, seed):
    run(name, kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRAWS)
def test_every_parameter_takes_part(kind):
    """A new parameter must be drawn: every one is named, and none is always the same."""
    problems = [DRAWS[kind](np.random.default_rng(seed)) for seed in range(150)]
    estimator = problems[0].estimator
    parameters = set(inspect.signature(estimator).parameters)
    assert all(set(problem.parameters) == parameters for problem in problems)
    for name in parameters - problems[0].constant - {"teacher"}:
        values = {repr(problem.parameters[name]) for problem in problems}
        assert len(values) > 1, f"{name} is always {values}"
    arguments = set(inspect.signature(estimator.fit).parameters) - {"self", "X", "callback"}
    drawn = {name for problem in problems for name in problem.fit if problem.fit[name] is not None}
    assert drawn == arguments - problems[0].elsewhere
