"""Random combinations of all parameters of every estimator, compared with all trees.

``BRISTLECONE_CASES`` is the number of problems of every kind that are fitted;
``BRISTLECONE_SEED`` is the first seed. ``python tests/brute_force`` runs any number of cases for a
release (CONTRIBUTING.md). A failure names the command that repeats it.
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
        # A front contained a tree and a smaller one with the same errors.
        ("fit", "measure of classes", 3011375),
        # Both values of a flag had the same weight.
        ("verify", "classes", 3003624),
        ("verify", "classes", 3008575),
        # Costs of both signs cancel except for rounding.
        ("verify", "own task", 20215235),
        # Light rows of one class: rounded errors differ from those of a tree with one prediction.
        ("fit", "measure of classes", 20067382),
        # Censoring weights that leave no digits are rejected.
        ("verify", "brier", 20174955),
        # Digits lost between weights of very different sizes: in effective numbers at risk,
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
        # Terms cancel, and the file contains their size.
        ("fit", "counts", 904712),
        # A perfect tree, whose cost is only penalties,
        ("fit", "classes", 8047628),
        # a policy without a gain, and costs that sum to 0.
        ("verify", "policy", 8126983),
        ("verify", "policy", 91000079),
        ("fit", "estimated policy", 84000702),
        ("verify", "estimated policy", 184000211),
        # The coarse search found a tree with two leaves; the fine one proved that no split pays.
        ("all optimal", "brier", 73000294),
        ("all optimal", "brier", 121000326),
        # A tree with almost no loss was considered as good as one without loss.
        ("alternatives", "brier", 81001436),
        # Overflowing covariances have a random sign.
        ("verify", "policy", 71000101),
        # Alternatives of an almost perfect tree with weights of a wide range.
        ("alternatives", "classes", 71000057),
        ("alternatives", "classes", 115000420),
        # A threshold midway in its node divides all rows like one with too little support.
        ("table", "likelihood", 151000075),
        # Splits whose charge is below their price, with a bound without limits.
        ("fit", "fair", 121000381),
        ("table", "own task", 8062770),
        # With prices of 1e289, sums reported a cost of 0.
        ("sums", "costs", 241),
        # Penalties of a perfect tree that were below the resolution of sums.
        ("sums", "regression", 20261179),
        # Ten penalties that together were below the resolution of sums,
        ("sums", "regression", 41126091),
        # contributions of rounded prices to an objective,
        ("sums", "classes", 90000499),
        # and prices that no tree pays.
        ("parts", "costs", 41126239),
        # An almost perfect tree, which sums cannot resolve; there is an error.
        ("parts", "regression", 90000485),
        # A threshold between values of its node, with missing values in between,
        ("table", "classes", 20261268),
        # or alone above it.
        ("table", "costs", 62000231),
        # Of equally good trees, the one with the fewest leaves on one side of a column that most
        # rows, but not most distinct rows, have.
        ("parts", "classes", 440000276),
    ],
)
def test_problems_that_once_failed(name, kind, seed):
    run(name, kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRAWS)
def test_every_parameter_takes_part(kind):
    """Every parameter is drawn, and takes several values."""
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
