"""Fitted trees in the words of a methods section: what was searched, and what was proven."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.rules import list_questions, questions, split_questions
from bristlecone._search.certificate import Certificate

__all__ = ["describe", "document"]

_WIDTH = 88
_CUTS = {
    "quantiles": "Numbers are cut at no more than {} quantiles each",
    "kmeans": "Numbers are cut at no more than {} borders of clusters each",
    "midpoints": "Numbers are cut between all neighbouring values",
    "ensemble": "Numbers are cut at no more than {} places each, where boosted trees fitted to the "
    "outcomes cut them; nothing is proven of other thresholds",
}
_MISSING = {
    "impute": "a missing number counts as the mean of its column, a missing yes or no as the more "
    "frequent answer, and a missing category matches no level",
    "branch": "whether a value is missing is a question of its own, and every other question about "
    "its column is answered no",
}


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


def describe(estimator: Any) -> str:
    """Description of a fitted tree."""
    kinds = {
        "grown": _describe_grown,
        "trained": _describe_soft,
        "reestimated": _describe_reestimated,
    }
    return kinds.get(estimator.certificate_.status, _describe_search)(estimator)


def _describe_search(estimator: Any) -> str:
    """Description of a tree that was searched for."""
    found = estimator.certificate_
    numbers = ", ".join(f"{name} {value}" for name, value in found.numbers[:3])
    remarks = "".join(f" {name.capitalize()}: {text}." for name, text in found.told)
    count = len(found.binary_features)
    searched = (
        f"bristlecone {found.version} ({type(estimator).__name__}) searched all trees "
        f"{_size(found)} over {count} binary features for {found.aim}."
    )
    penalty = found.parameters["leaf_penalty"]
    if penalty > 0:
        searched += f" Every leaf adds {penalty:g}."
    encoding = _encoding(estimator.encoder_, isinstance(found.parameters["encoder"], str))
    return document(
        [
            searched,
            _data(estimator),
            f"The search ended with: {found.sentence}; {numbers}.{remarks}",
            _tree(estimator),
            encoding,
            f"The {count} binary features, as questions with the answer yes or no:"
            if count
            else "There was nothing to ask: no column gave a binary feature.",
        ],
        list_questions(questions(estimator.encoder_)),
    )


def _describe_grown(estimator: Any) -> str:
    """Description of a tree that was grown."""
    found = estimator.certificate_
    prior = estimator.leaves_.prior
    with_prior = ""
    if prior:
        with_prior = (
            f", with a prior of {prior:g} pseudo-events at the baseline hazard in every leaf,"
        )
    paragraphs = [
        f"bristlecone {found.version} ({type(estimator).__name__}) grew a tree {_size(found)} "
        f"from the root, one best split after the other by {found.aim}. Nothing is proven of it; "
        f"its mean likelihood loss{with_prior} is {found.objective_value:.10g}.",
        _data(estimator),
        _tree(estimator),
    ]
    if estimator.tree_.numeric:
        names = ", ".join(found.binary_features)
        paragraphs.append(
            f"Every threshold midway between neighbouring values was tried of {names}."
        )
        return document(paragraphs)
    asked = questions(estimator.encoder_)
    paragraphs += [
        _encoding(estimator.encoder_),
        f"The {len(asked)} binary features, as questions with the answer yes or no:",
    ]
    return document(paragraphs, list_questions(asked))


def _describe_reestimated(estimator: Any) -> str:
    """Description of a tree whose leaves are of other rows than its questions."""
    found = estimator.certificate_
    first = found.structure
    how = "searched for" if first.is_searched else "grown"
    searched = (
        f"The questions were {how} by bristlecone ({type(estimator).__name__}) in trees "
        f"{_size(found)} over {len(found.binary_features)} binary features, on "
        f"{first.n_samples} other rows, for {found.aim}: {first.sentence}; "
        f"objective {first.objective_value:.10g}."
    )
    leaves = (
        f"With these questions bristlecone {found.version} estimated the leaves from the rows "
        f"below, which had no part in the choice of the questions (honest estimation). Objective "
        f"on these rows: {found.objective_value:.10g}; that no other tree is better on them is not "
        "proven."
    )
    encoding = "" if estimator.tree_.numeric else _encoding(estimator.encoder_)
    parts = [searched, leaves, _data(estimator), _tree(estimator), encoding]
    return document([part for part in parts if part])


def _describe_soft(estimator: Any) -> str:
    """Description of a soft tree."""
    found = estimator.certificate_
    used = ", ".join(map(str, estimator.features_used_)) or "no column"
    return document(
        [
            f"bristlecone {found.version} ({type(estimator).__name__}) trained a tree of depth "
            f"{estimator.depth_} with soft multivariate splits and a {found.parameters['leaf']} "
            f"model in each of its {estimator.n_leaves_} leaves by {found.aim}. The best "
            f"of {found.parameters['n_restarts']} starts was kept, with the objective "
            f"{found.objective_value:.10g}; that no other tree is better is not proven.",
            _data(estimator),
            f"The splits weigh {used}.",
        ]
    )


def _data(estimator: Any) -> str:
    """The training data in a sentence."""
    tree = estimator.tree_
    rows = f"{int(tree.n_node_samples[0])} rows"
    if tree.is_weighted:
        rows += f" of total weight {tree.weighted_n_node_samples[0]:.6g}"
    facts = estimator.leaves_.facts()
    if facts and "n_events" in facts[0]:
        rows += f", {sum(fact['n_events'] for fact in facts)} events"
    columns = estimator.n_features_in_
    return f"Training data: {rows}, {columns} {'column' if columns == 1 else 'columns'}."


def _tree(estimator: Any) -> str:
    """Size of the tree, and the columns it asks about."""
    tree = estimator.tree_
    if tree.n_leaves == 1:
        return f"The tree is a single leaf.{_shrinkage(estimator.leaves_)}"
    asked = split_questions(estimator.encoder_, tree)
    columns = dict.fromkeys(question.column for question in asked.values())
    return (
        f"The tree has {tree.n_leaves} leaves and depth {tree.max_depth}; it asks about "
        f"{', '.join(columns)}.{_shrinkage(estimator.leaves_)}"
    )


def _shrinkage(leaves: Any) -> str:
    """How predictions were shrunk, as a sentence; empty where they were not."""
    amount = getattr(leaves, "shrinkage", 0.0)
    if amount == 0:
        return ""
    unit = {"proportional": "pseudo-events at the relative hazard"}.get(
        getattr(leaves, "curve", ""), "pseudo-rows at the prediction"
    )
    return (
        f" Predictions are shrunk along the path: from the root down, every node counts {amount:g} "
        f"{unit} of its parent (after Agarwal, Tan, Ronen, Singh and Yu, ICML 2022)."
    )


def _size(found: Certificate) -> str:
    """Limits on the size of a tree: "of depth at most 3, with ..."."""
    parameters = found.parameters
    depth, leaves = parameters["max_depth"], parameters["max_leaf_nodes"]
    limits = ["of any depth" if depth is None else f"of depth at most {depth}"]
    if leaves is not None:
        limits.append(f"at most {leaves} leaves")
    rows = parameters["min_samples_leaf"]
    if not isinstance(rows, Integral):
        limits.append(f"at least {100 * rows:g} % of the training rows in each leaf")
    elif rows != 1:
        limits.append(f"at least {rows} training rows in each leaf")
    events = found.settings.get("min_events_leaf", 0)
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
