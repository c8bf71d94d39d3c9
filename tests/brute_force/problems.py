"""Random small problems of every estimator, with their optima from ``exhaustive``.

``DRAWS`` maps a name to a function of a random generator. A problem contains how to make the
estimator and fit it (``parameters``, ``fit``), the best objective for a number of leaves
(``optimum``), and the cost of a fitted tree from its rows (``value``).
"""

from cause_problems import causes
from label_problems import (
    classification,
    costs,
    estimated_policy,
    fair_front,
    fair_labels,
    front,
    policy,
)
from number_problems import counts, own_task, regression
from survival_problems import greedy, listed, survival

__all__ = ["DRAWS", "fair_front", "front", "greedy", "listed"]

DRAWS = {
    "likelihood": lambda rng: survival(rng, "likelihood"),
    "brier": lambda rng: survival(rng, "brier"),
    "causes": causes,
    "classes": lambda rng: classification(
        rng, ("accuracy", "balanced-accuracy", "gini", "entropy")
    ),
    "measure of classes": lambda rng: classification(rng, ("f1", "mcc")),
    "costs": costs,
    "fair": fair_labels,
    "policy": policy,
    "estimated policy": estimated_policy,
    "regression": regression,
    "counts": counts,
    "own task": own_task,
}
