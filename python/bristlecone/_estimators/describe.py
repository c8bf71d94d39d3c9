"""Methods sections of fitted trees: what was searched, and what was proven."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from bristlecone._data.arrays import with_article
from bristlecone._data.texts import counted, number
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.features import OneOf
from bristlecone._encoder.missing import missing_by_leaf
from bristlecone._encoder.rules import list_questions, questions, split_questions
from bristlecone._search.certificate import Certificate
from bristlecone._tree import Tree

_WIDTH = 88
_CUTS = {
    "quantiles": "The thresholds of numeric columns are at most {} quantiles of each",
    "kmeans": "The thresholds of numeric columns are at most {} boundaries of clusters of each",
    "midpoints": "The thresholds of numeric columns are all midpoints between neighbouring values",
    "ensemble": "The thresholds of numeric columns are at most {} thresholds of each in boosted "
    "trees fitted to the outcomes; nothing is proven about other thresholds",
    "all": "The thresholds of numeric columns were chosen among all of them",
}
_MISSING = {
    "impute": "a missing number is replaced by the mean of its column, a missing boolean by the "
    "more frequent value, and a missing category matches no level",
    "branch": "a separate binary feature marks missing values of a column that has some, and its "
    "other binary features are false for them; in other columns, a missing number is replaced by "
    "the mean, and a missing boolean by the more frequent value",
}


def document(paragraphs: Iterable[str], features: Sequence[str] = ()) -> str:
    """Paragraphs, then a list of binary features, wrapped; texts of several lines are kept."""
    wrapped = [
        text if "\n" in text else textwrap.fill(" ".join(text.split()), _WIDTH)
        for text in paragraphs
    ]
    if features:
        lines = (
            textwrap.fill(
                line,
                _WIDTH,
                initial_indent="  ",
                subsequent_indent="      ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line in features
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
    """Description of a tree found by search."""
    found = estimator.certificate_
    numbers = ", ".join(f"{name} {value}" for name, value in found.numbers[:3])
    searched = (
        f"bristlecone {found.version} ({type(estimator).__name__}) searched all trees "
        f"{_size(found)} over {_candidates(found)} for {found.aim}."
    )
    penalty = found.parameters["leaf_penalty"]
    if penalty > 0:
        searched += f" Every leaf adds a penalty of {penalty:g}."
    with_cuts = isinstance(found.parameters["encoder"], str) and not found.is_of_partitions
    encoding = _encoding(estimator.encoder_, estimator.tree_, with_cuts)
    result = f"Result of the search: {found.sentence}; {numbers}.{_remarks(found)}"
    return _with_features([searched, *_fit(estimator, result), encoding], estimator)


def _remarks(found: Certificate) -> str:
    return "".join(f" {name.capitalize()}: {text}." for name, text in found.notes)


def _describe_grown(estimator: Any) -> str:
    """Description of a tree that was grown."""
    found = estimator.certificate_
    prior = estimator.leaves_.prior
    with_prior = ""
    if prior:
        with_prior = (
            f", with a prior of {prior:g} pseudo-events at the baseline hazard in every leaf,"
        )
    grown = (
        f"bristlecone {found.version} ({type(estimator).__name__}) grew a tree {_size(found)} "
        f"from the root, taking the best split of each node by {found.aim}. Nothing is proven "
        f"about the tree. Its mean likelihood loss{with_prior} is {found.objective_value:.10g}."
        f"{_remarks(found)}"
    )
    encoding = _encoding(estimator.encoder_, estimator.tree_)
    return _with_features([grown, *_fit(estimator), encoding], estimator)


def _with_features(paragraphs: list[str], estimator: Any) -> str:
    """The paragraphs, then the binary features."""
    features = questions(estimator.encoder_)
    heading = f"The {counted(len(features), 'binary feature')}:"
    if not features:
        heading = "No column gave a binary feature."
    return document([*paragraphs, heading], list_questions(features))


def _describe_reestimated(estimator: Any) -> str:
    """Description of a tree whose leaves were estimated from other rows than its splits."""
    found = estimator.certificate_
    first = found.structure
    how = "found by a search over" if first.is_searched else "grown among"
    searched = (
        f"The splits were {how} trees {_size(found)} over {len(found.binary_features)} binary "
        f"features, with bristlecone ({type(estimator).__name__}) on {first.n_samples} other "
        f"rows, for {found.aim}: {first.sentence}; objective {first.objective_value:.10g}."
    )
    leaves = (
        f"For these splits, bristlecone {found.version} estimated the leaves from the rows below, "
        "which had no part in the choice of the splits (honest estimation). The objective on these "
        f"rows is {found.objective_value:.10g}; another tree may be better on them."
    )
    encoding = _encoding(estimator.encoder_, estimator.tree_)
    return document([searched, leaves, *_fit(estimator), encoding])


def _describe_soft(estimator: Any) -> str:
    """Description of a soft tree."""
    found = estimator.certificate_
    columns = estimator.encoder_.columns_
    used = ", ".join(columns[k].name for k in estimator._columns_used()) or "no column"
    return document(
        [
            f"bristlecone {found.version} ({type(estimator).__name__}) trained a tree of depth "
            f"{estimator.depth_} with soft multivariate splits and "
            f"{with_article(found.parameters['leaf'])} "
            f"model in each of its {estimator.n_leaves_} leaves by {found.aim}. The ridge penalty "
            f"of the leaves is {estimator.l2_:.3g}. The best "
            f"of {counted(found.parameters['n_restarts'], 'start')} was kept, with the objective "
            f"{found.objective_value:.10g}. The tree is not proven to be optimal.",
            _data(estimator),
            f"The splits use {used}.",
        ]
    )


def _fit(estimator: Any, *result: str) -> list[str]:
    """The teacher, the data, the result of the search, and the tree with its leaves and groups."""
    found, tree = estimator.certificate_, estimator.tree_
    return [
        *([] if found.teacher is None else [found.teacher.sentences]),
        _data(estimator),
        *result,
        _tree(estimator),
        *estimator.leaves_.sentences(tree, own_rows=found.status != "reestimated"),
        *_groups(found),
    ]


def _groups(found: Certificate) -> list[str]:
    """Confusion table by group, if there is one."""
    if found.groups is None or not found.groups.table:
        return []
    table = found.groups.table
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in table
    ]
    largest = (
        f"The largest difference between groups is {found.groups.difference:.6g}. Training rows by "
        "group:"
    )
    return [largest, "\n".join(lines)]


def _data(estimator: Any) -> str:
    """The training data in a sentence."""
    tree = estimator.tree_
    rows = counted(int(tree.n_node_samples[0]), "row")
    if tree.is_weighted:
        rows += f" of total weight {number(tree.weighted_n_node_samples[0], 6)}"
    facts = estimator.leaves_.facts()
    if "n_events" in facts[0]:
        rows += f", {counted(sum(fact['n_events'] for fact in facts), 'event')}"
    if "exposure" in facts[0]:
        for name in ("count", "exposure"):
            rows += f", total {name} {number(sum(fact[name] for fact in facts), 6)}"
    return f"Training data: {rows}, {counted(estimator.n_features_in_, 'column')}."


def _tree(estimator: Any) -> str:
    """Size of the tree, and the columns it uses."""
    tree = estimator.tree_
    if tree.n_leaves == 1:
        return f"The tree is a single leaf.{_shrinkage(estimator.leaves_)}"
    splits = split_questions(estimator.encoder_, tree)
    columns = dict.fromkeys(split.column for split in splits.values())
    return (
        f"The tree has {tree.n_leaves} leaves and depth {tree.max_depth}; it splits on "
        f"{', '.join(columns)}.{_shrinkage(estimator.leaves_)}"
    )


def _shrinkage(leaves: Any) -> str:
    """Sentence about shrunk predictions; empty without shrinkage."""
    amount = getattr(leaves, "shrinkage", 0.0)
    if amount == 0:
        return ""
    unit = "pseudo-rows at the prediction"
    if getattr(leaves, "curve", "") == "proportional":
        unit = "pseudo-events at the relative hazard"
    elif getattr(leaves, "size", None) is not None:
        unit = "pseudo-counts at the rate"
    return (
        f" Predictions are shrunk along the path: from the root down, each node adds {amount:g} "
        f"{unit} of its parent (after Agarwal, Tan, Ronen, Singh and Yu, ICML 2022)."
    )


def _size(found: Certificate) -> str:
    """Limits on the size of a tree: "of depth at most 3 with ... and ..."."""
    parameters = found.parameters
    depth, leaves = parameters["max_depth"], parameters["max_leaf_nodes"]
    size, limits = "of any depth" if depth is None else f"of depth at most {depth}", []
    if leaves is not None:
        limits.append(f"at most {leaves} leaves")
    rows = parameters["min_samples_leaf"]
    if not isinstance(rows, Integral):
        limits.append(f"at least {100 * rows:g}% of the training rows in each leaf")
    elif rows != 1:
        rows = found.settings.get("min_samples_leaf", rows)  # at most all training rows
        limits.append(f"at least {rows} training rows in each leaf")
    of_each = parameters.get("min_samples_treatment", 0)
    if of_each:
        of_rows = counted(of_each, "training row")
        limits.append(f"at least {of_rows} of every treatment in each leaf")
    events = found.settings.get("min_events_leaf", 0)
    if events:
        limits.append(f"at least {counted(events, 'training event')} in each leaf")
    return f"{size} with {' and '.join(limits)}" if limits else size


def _candidates(found: Certificate) -> str:
    """Phrase for the candidates of the splits."""
    if "thresholds" in found.facts:
        return "every threshold of the numeric columns and the categories as encoded"
    return counted(len(found.binary_features), "binary feature")


def _encoding(encoder: Any, tree: Tree, with_cuts: bool = False) -> str:
    """How columns became binary features, and the treatment of missing values."""
    if not isinstance(encoder, BinaryEncoder):
        return f"{type(encoder).__name__} computed the binary features."
    cuts = _CUTS[encoder.thresholds].format(encoder.n_thresholds)
    if with_cuts:
        cuts += ", plus those of greedy trees over all thresholds"
    by_risk = dict.fromkeys(one.column for one in encoder.features_ if isinstance(one, OneOf))
    if by_risk:
        cuts += (
            f". The levels of {', '.join(by_risk)} are ordered by their risk in the training rows "
            "and split like numbers; rows with a level that a split does not list, "
            "such as a new level, answer no"
        )
    missing = [schema.name for schema in encoder.columns_ if schema.has_missing]
    if not missing:
        return f"{cuts}. No value was missing."
    text = f"{cuts}. Values were missing in {', '.join(missing)}: {_MISSING[encoder.missing]}."
    by_leaf = missing_by_leaf(tree)
    return f"{text} A value that a split tests was missing in {by_leaf}." if by_leaf else text
