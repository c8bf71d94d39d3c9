"""The form "where does this case fall": fields from the columns, and decisions for the script."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bristlecone._data.texts import number
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.decisions import Decision, tree_decisions
from bristlecone._encoder.design import DesignEncoder
from bristlecone._encoder.features import Missing
from bristlecone._encoder.schema import ColumnSchema
from bristlecone._soft.tree import SoftTree
from bristlecone._view.fitted import FittedTree


@dataclass(frozen=True)
class Field:
    """A column to be filled in.

    Parameters
    ----------
    name : str
    kind : {"number", "flag", "category"}
    low, high : float or None
        Least and greatest training value of a number.
    step : float or None
        1 for columns of whole numbers; None is any.
    levels : tuple of str
        Levels of a category, in order.
    takes_unknown : bool
        Whether rows with a level not seen in training are predicted.
    note : str
        Treatment of a missing value.
    """

    name: str
    kind: str
    low: float | None = None
    high: float | None = None
    step: float | None = None
    levels: tuple[str, ...] = ()
    takes_unknown: bool = False
    note: str = ""

    @property
    def middle(self) -> float:
        """Initial value of a slider."""
        return ((self.low or 0.0) + (self.high or 0.0)) / 2

    @property
    def range(self) -> str:
        """Range of the training values as text."""
        if self.low is None or self.high is None:
            return ""
        return f"{number(self.low, 6)} to {number(self.high, 6)}"


@dataclass(frozen=True)
class Case:
    """The form, or the reason why there is none.

    Parameters
    ----------
    fields : tuple of Field
    refusal : str
        A sentence in place of the form.
    data : mapping
        Decisions for the script, as plain JSON types.
    """

    fields: tuple[Field, ...] = ()
    refusal: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def case(tree: FittedTree) -> Case:
    """Form of a fitted tree."""
    encoder = tree.encoder_
    if isinstance(tree.tree_, SoftTree):
        return _soft(tree.tree_, encoder)
    if not isinstance(encoder, BinaryEncoder):
        return Case(
            refusal="There is no form: the binary features come from a custom encoder "
            f"({type(encoder).__name__}), which does not say how they follow from the columns."
        )
    if tree.tree_.n_leaves == 1:
        return Case(refusal="The tree has a single leaf, so every case falls into it.")
    decisions = tree_decisions(encoder, tree.tree_)
    fields: dict[int, Field] = {}
    for decision in decisions.values():
        if decision.place not in fields:
            schema = encoder.columns_[decision.place]
            fields[decision.place] = _field(schema, encoder.handle_unknown)
    # In the order in which the tree uses them.
    order = list(fields)
    return Case(
        fields=tuple(fields.values()),
        data={
            "splits": {
                str(node): {
                    "field": order.index(decision.place),
                    "yes": int(tree.tree_.children_left[node]),
                    "no": int(tree.tree_.children_right[node]),
                    **_plain(decision, encoder),
                }
                for node, decision in decisions.items()
            }
        },
    )


def _plain(decision: Decision, encoder: Any) -> dict[str, Any]:
    """A decision for the script; levels are given by their position in the column."""
    plain: dict[str, Any] = {"kind": decision.kind, "missing": decision.missing}
    if decision.bound is not None:
        plain["bound"] = decision.bound
    if decision.levels:
        levels = encoder.columns_[decision.place].levels
        plain["levels"] = [k for k, level in enumerate(levels) if level in decision.levels]
    return plain


def _field(schema: ColumnSchema, handle_unknown: str) -> Field:
    note = "" if schema.fill is None else _counts_as(schema.fill)
    if schema.kind == "categorical":
        return Field(
            schema.name,
            "category",
            levels=tuple(map(str, schema.levels)),
            takes_unknown=handle_unknown != "error",
            note=note,
        )
    if schema.kind == "flag":
        return Field(schema.name, "flag", note=note)
    step = 1.0 if schema.whole else None
    return Field(schema.name, "number", low=schema.low, high=schema.high, step=step, note=note)


def _counts_as(fill: bool | float) -> str:
    shown = ("no", "yes")[fill] if isinstance(fill, bool) else number(fill, 4)
    return f"treated as {shown}"


def _soft(tree: SoftTree, encoder: DesignEncoder) -> Case:
    """Design columns that a split weights; the script computes the same sums in the same order."""
    weighed = (tree.weights != 0).any(axis=0)
    parts = [(j, part) for j, part in enumerate(encoder.design_) if weighed[j]]
    names = list(dict.fromkeys(part.column for _, part in parts))
    schemas = {schema.name: schema for schema in encoder.columns_}
    fields = [_field(schemas[name], encoder.handle_unknown) for name in names]
    design: list[dict[str, Any]] = []
    for _, part in parts:
        plain: dict[str, Any] = {"field": names.index(part.column)}
        if part.question is None:
            shift, low, high = part.scale
            plain |= {"shift": shift, "low": low, "span": high - low, "fill": part.fill}
        elif isinstance(part.question, Missing):
            plain["kind"] = "missing"
        else:
            asked = part.question
            wanted = getattr(asked, "levels", None) or (getattr(asked, "level", None),)
            levels = schemas[part.column].levels
            plain["levels"] = [k for k, level in enumerate(levels) if level in wanted]
        design.append(plain)
    kept = [j for j, _ in parts]
    if not fields:
        return Case(refusal="No split uses a column, so all cases fall into the same leaves.")
    return Case(
        fields=tuple(fields),
        data={
            "design": design,
            "weights": tree.weights[:, kept].tolist(),
            "intercepts": tree.intercepts.tolist(),
            # Nodes level by level, in the order of the weights.
            "nodes": tree.number.tolist(),
        },
    )
