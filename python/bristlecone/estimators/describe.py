"""Fitted trees in the words of a methods section: what was searched, and what was proven."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from bristlecone import _core
from bristlecone.encoder import BinaryEncoder
from bristlecone.encoder.rules import list_questions

if TYPE_CHECKING:
    from bristlecone.estimators.base import TreeMixin
    from bristlecone.estimators.greedy import GreedySurvivalTree
    from bristlecone.estimators.searched import SolverMixin

__all__ = [
    "certificate",
    "describe_greedy",
    "describe_search",
    "describe_soft",
    "described_data",
    "described_tree",
    "document",
]

_WIDTH = 88
_CUTS = {
    "quantiles": "Numbers are cut at no more than {} quantiles each",
    "kmeans": "Numbers are cut at no more than {} borders of clusters each",
    "midpoints": "Numbers are cut between all neighbouring values",
}
_MISSING = {
    "impute": "a missing number counts as the mean of its column, a missing yes or no as the more "
    "frequent answer, and a missing category matches no level",
    "branch": "whether a value is missing is a question of its own, and every other question about "
    "its column is answered no",
}


def certificate(estimator: Any) -> tuple[str, list[tuple[str, str]]]:
    """What the search proved: a sentence, and the numbers behind it as (name, value) pairs.

    Parameters
    ----------
    estimator : fitted tree that was searched for
        One with a certificate and ``n_binary_features_``.
    """
    count = estimator.n_binary_features_
    over = f"optimal among trees over these {count} binary features"
    if estimator.status_ == "optimal":
        sentence = over
    elif estimator.status_ == "reference_optimal":
        sentence = f"best with respect to the reference model, not proven {over}"
    else:
        sentence = f"{estimator.status_}: the best tree found, not proven {over}"
    return sentence, [
        ("objective", f"{estimator.objective_value_:.10g}"),
        ("lower bound", f"{estimator.lower_bound_:.10g}"),
        ("gap", f"{estimator.gap_:.3g} ({100 * estimator.relative_gap_:.3g} %)"),
        ("binary features", str(count)),
        ("seconds", f"{estimator.fit_time_:.3g}"),
        *estimator._remarks(),
    ]


def document(paragraphs: Iterable[str], questions: Sequence[str] = ()) -> str:
    """Paragraphs, then a list of questions, wrapped."""
    wrapped = [textwrap.fill(" ".join(text.split()), _WIDTH) for text in paragraphs]
    if questions:
        lines = (
            textwrap.fill(
                line,
                _WIDTH,
                initial_indent="  ",
                subsequent_indent="      ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line in questions
        )
        wrapped.append("\n".join(lines))
    return "\n\n".join(wrapped) + "\n"


def describe_search(estimator: SolverMixin) -> str:
    """Description of a tree that was searched for."""
    parameters = estimator._fitted_parameters()
    sentence, pairs = certificate(estimator)
    numbers = ", ".join(f"{name} {value}" for name, value in pairs[:3])
    remarks = "".join(f" {name.capitalize()}: {text}." for name, text in estimator._remarks())
    count = estimator.n_binary_features_
    searched = (
        f"bristlecone {_core.__version__} ({type(estimator).__name__}) searched all trees "
        f"{_size(estimator)} over {count} binary features for {estimator._aim()}."
    )
    penalty = parameters["leaf_penalty"]
    if penalty > 0:
        searched += f" Every leaf adds {penalty:g}."
    return document(
        [
            searched,
            described_data(estimator),
            f"The search ended with: {sentence}; {numbers}.{remarks}",
            described_tree(estimator),
            _encoding(estimator.encoder_, with_cuts=isinstance(parameters["encoder"], str)),
            f"The {count} binary features, as questions with the answer yes or no:"
            if count
            else "There was nothing to ask: no column gave a binary feature.",
        ],
        list_questions(estimator._questions()),
    )


def describe_greedy(estimator: GreedySurvivalTree) -> str:
    """Description of a tree that was grown."""
    parameters = estimator._fitted_parameters()
    by = {
        "likelihood": "the fall of the likelihood loss (LeBlanc and Crowley, Biometrics 48, 1992)",
        "logrank": "the two-sample log-rank statistic (Segal, Biometrics 44, 1988)",
    }[parameters["criterion"]]
    prior = ""
    if estimator.prior_:
        prior = (
            f", with a prior of {estimator.prior_:g} pseudo-events at the baseline hazard in every "
        )
        prior += "leaf,"
    paragraphs = [
        f"bristlecone {_core.__version__} (GreedySurvivalTree) grew a tree {_size(estimator)} "
        f"from the root, one best split after the other by {by}. Nothing is proven of it; its "
        f"mean likelihood loss{prior} is {estimator.objective_value_:.10g}.",
        described_data(estimator),
        described_tree(estimator),
    ]
    if estimator.tree_.threshold is not None:
        names = ", ".join(estimator._split_names())
        paragraphs.append(
            f"Every threshold midway between neighbouring values was tried of {names}."
        )
        return document(paragraphs)
    asked = estimator._questions()
    paragraphs += [
        _encoding(estimator.encoder_),
        f"The {len(asked)} binary features, as questions with the answer yes or no:",
    ]
    return document(paragraphs, list_questions(asked))


def describe_soft(estimator: Any) -> str:
    """Description of a soft tree."""
    parameters = estimator._fitted_parameters()
    used = ", ".join(map(str, estimator.features_used_)) or "no column"
    return document(
        [
            f"bristlecone {_core.__version__} (SoftSurvivalTree) trained a tree of depth "
            f"{estimator.depth_} with soft multivariate splits and a {parameters['leaf']} model in "
            f"each of its {estimator.n_leaves_} leaves by penalised maximum likelihood (Consolo, "
            "Amaldi and Carrizosa, European Journal of Operational Research 331, 2026). The best "
            f"of {parameters['n_restarts']} starts was kept, with the objective "
            f"{estimator.objective_value_:.10g}; that no other tree is better is not proven.",
            described_data(estimator),
            f"The splits weigh {used}.",
        ]
    )


def described_data(estimator: TreeMixin) -> str:
    """The training data in a sentence."""
    tree = estimator.tree_
    rows = f"{int(tree.n_node_samples[0])} rows"
    if estimator._is_weighted:
        rows += f" of total weight {tree.weighted_n_node_samples[0]:.6g}"
    facts = estimator._leaf_facts()
    if facts and "n_events" in facts[0]:
        rows += f", {sum(fact['n_events'] for fact in facts)} events"
    columns = estimator.n_features_in_  # type: ignore[attr-defined]
    return f"Training data: {rows}, {columns} {'column' if columns == 1 else 'columns'}."


def described_tree(estimator: TreeMixin) -> str:
    """Size of the tree, and the columns it asks about."""
    tree = estimator.tree_
    if tree.n_leaves == 1:
        return f"The tree is a single leaf.{_shrinkage(estimator)}"
    asked = estimator._questions()
    inner = [node for node in range(tree.node_count) if not tree.is_leaf[node]]
    columns = dict.fromkeys(estimator._asked(node, asked).column for node in inner)
    return (
        f"The tree has {tree.n_leaves} leaves and depth {tree.max_depth}; it asks about "
        f"{', '.join(columns)}.{_shrinkage(estimator)}"
    )


def _shrinkage(estimator: TreeMixin) -> str:
    """How predictions were shrunk, as a sentence; empty where they were not."""
    amount = getattr(estimator, "shrinkage_", 0.0)
    if amount == 0:
        return ""
    unit = {"proportional": "pseudo-events at the relative hazard"}.get(
        getattr(estimator, "leaf_curve_", ""), "pseudo-rows at the prediction"
    )
    return (
        f" Predictions are shrunk along the path: from the root down, every node counts {amount:g} "
        f"{unit} of its parent (after Agarwal, Tan, Ronen, Singh and Yu, ICML 2022)."
    )


def _size(estimator: TreeMixin) -> str:
    """Limits on the size of a tree: "of depth at most 3, with ..."."""
    parameters = estimator._fitted_parameters()
    depth, leaves = parameters["max_depth"], parameters["max_leaf_nodes"]
    limits = ["of any depth" if depth is None else f"of depth at most {depth}"]
    if leaves is not None:
        limits.append(f"at most {leaves} leaves")
    rows = parameters["min_samples_leaf"]
    if not isinstance(rows, Integral):
        limits.append(f"at least {100 * rows:g} % of the training rows in each leaf")
    elif rows != 1:
        limits.append(f"at least {rows} training rows in each leaf")
    events = getattr(estimator, "min_events_leaf_", 0)
    if events:
        limits.append(f"at least {events} training {_plural(events, 'event')} in each leaf")
    return " and ".join(limits)


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def _encoding(encoder: Any, with_cuts: bool = False) -> str:
    """How columns became questions, and what becomes of missing values."""
    if not isinstance(encoder, BinaryEncoder):
        return f"The binary features were made by {type(encoder).__name__}."
    cuts = _CUTS[encoder.thresholds].format(encoder.n_thresholds)
    if with_cuts:
        cuts += ", or where greedy trees over every threshold cut them"
    missing = [schema.name for schema in encoder.columns_ if schema.has_missing]
    if not missing:
        return f"{cuts}. No value was missing."
    return f"{cuts}. Values were missing in {', '.join(missing)}: {_MISSING[encoder.missing]}."
