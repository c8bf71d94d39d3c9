"""Random combinations of all parameters of every estimator: their trees verify, and re-estimate."""

import pytest
from problems import DRAWS
from test_brute_force import close, fitted, for_each

from bristlecone.trust import verify


@pytest.mark.parametrize("kind", DRAWS)
def test_random_trees_verify(kind):
    def check(problem, rng):
        model = fitted(problem)
        if model.status_ == "infeasible":
            return
        rows = dict(problem.fit)
        found = verify(model, problem.X, rows.pop("y", None), **rows)
        assert found.ok, found
        assert "lower bound" not in [check.name for check in found.not_checked] or (
            "not re-proven" in found["lower bound"].reason
        )

    for_each(DRAWS[kind], check, 0.5)


@pytest.mark.parametrize("kind", [kind for kind in DRAWS if kind != "own task"])
def test_the_rows_of_the_fit_estimate_the_same_tree(kind):
    def check(problem, rng):
        model = fitted(problem)
        if model.status_ == "infeasible":
            return
        rows = {name: one for name, one in problem.fit.items() if name != "reference_loss"}
        again = model.reestimate(problem.X, **rows)
        assert close(again.objective_value_, model.objective_value_, problem.scale)
        found = verify(again, problem.X, rows.pop("y", None), **rows)
        assert found.ok, found

    for_each(DRAWS[kind], check, 0.3)
