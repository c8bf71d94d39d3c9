"""Trees as ONNX."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._core import __version__
from bristlecone._encoder.decisions import Decision
from bristlecone.export._program import Program, exact, level_texts, program_of, unlike

# Versions of 2022, which current runtimes support.
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8
_ROWS = "rows"
_ABSENT = ""
_KINDS: dict[str, type] = {"f": np.float64, "i": np.int64, "u": np.uint64, "b": np.bool_}


def export_onnx(tree: Any, *, times: ArrayLike | None = None) -> bytes:
    """Return a fitted tree as an ONNX model.

    Parameters
    ----------
    tree : fitted tree
        Any tree except a soft tree.
    times : sequence of float, shape (n_times,), optional
        Times at which a survival tree predicts survival.

    Returns
    -------
    bytes
        A model for runtimes such as onnxruntime. Its inputs are the columns that the tree uses,
        each of shape (n,): numbers and booleans as float64, with NaN for missing values; categories
        as text, empty if missing. A tree of one leaf takes the first column to count the rows.

        Its outputs are ``leaf`` (int64, as from ``apply``); for survival trees ``risk`` and, with
        ``times``, ``survival`` (n, n_times); for classifiers ``label`` and ``probability``
        (n, n_classes); for policies ``treatment`` and ``outcome``; for other trees ``value``. Their
        types and values are those of the tree's predictions, equal to the last bit. An output with
        the name of an input gets the suffix ``_``. The metadata of the model contain the times,
        classes or treatments of every matrix.

    Raises
    ------
    ImportError
        If the package onnx is not installed.
    TypeError
        If ``tree`` is a soft tree, whose splits use many columns, or has a custom encoder.
    NotFittedError, InfeasibleError
        If there is no tree.
    ValueError
        If ``times`` are negative, not finite or repeated, or the tree does not predict survival; if
        the empty text is a category of a column; if a number and a text in a column read alike; if
        a category is a whole number of 2**53 or more.

    See Also
    --------
    export_python : A function in plain Python.

    Notes
    -----
    Operator sets 17 and ai.onnx.ml 3 (2022). A column whose categories are all numbers is float64.
    If a column has both numbers and texts as categories, pass the numbers as text, as Python writes
    them, and True and False as 1 and 0.

    Examples
    --------
    >>> import numpy as np
    >>> from onnxruntime import InferenceSession
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.export import export_onnx
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> session = InferenceSession(export_onnx(tree))
    >>> leaf, value = session.run(None, {"x0": np.array([1.5, 9.0, np.nan])})
    >>> leaf.tolist(), value.tolist()
    ([1, 2, 1], [2.0, 11.0, 2.0])
    """
    program = program_of(tree, "export_onnx", times)
    try:
        import onnx
    except ImportError:
        raise ImportError(
            "export_onnx needs the package onnx; python -m pip install 'bristlecone[onnx]'"
        ) from None
    graph, helper = _Graph(program, onnx), onnx.helper
    made = helper.make_graph(
        graph.nodes, "tree", graph.inputs, graph.outputs, initializer=graph.constants
    )
    model = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid(*opset) for opset in _OPSETS.items()],
        ir_version=_IR_VERSION,
        producer_name="bristlecone",
        producer_version=__version__,
    )
    helper.set_model_props(model, graph.keys)
    content: bytes = model.SerializeToString()
    return content


class _Graph:
    """Operators from the columns to the position of the leaf, and from there to the outputs."""

    def __init__(self, program: Program, onnx: Any) -> None:
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: list[Any] = []
        self.keys: dict[str, str] = {}
        self._program, self._onnx = program, onnx
        self._columns = program.used or [program.names[0]]
        # Names of intermediate values start with a prefix that no column has.
        self._mark = "/"
        while any(column.startswith(self._mark) for column in self._columns):
            self._mark += "/"
        self._texts = level_texts(program, "export_onnx")
        for column, texts in self._texts.items():
            if _ABSENT in texts.values():
                raise ValueError(
                    f"export_onnx: the empty text is a category of column {column!r}, but it "
                    "stands for a missing value in ONNX; rename the category"
                )
        self._read_columns()
        position = self._position()
        names = unlike([output.name for output in program.outputs], self._columns)
        for name, output in zip(names, program.outputs, strict=True):
            self._write(name, output.values, position)
            if output.keys:
                self.keys[name] = json.dumps(output.keys)

    def _read_columns(self) -> None:
        """Declare the inputs and number the text categories; missing values come last."""
        for column in self._columns:
            is_text = column in self._texts
            only_counted = not self._program.used and self._program.first_is_text
            kinds = self._onnx.TensorProto
            kind = kinds.STRING if is_text or only_counted else kinds.DOUBLE
            self.inputs.append(self._info(column, kind, [_ROWS]))
            if is_text:
                texts = [*self._texts[column].values(), _ABSENT]
                self._add(
                    "LabelEncoder",
                    [column],
                    self._code(column),
                    domain="ai.onnx.ml",
                    keys_strings=texts,
                    values_int64s=list(range(len(texts))),
                    default_int64=-1,
                )

    def _code(self, column: str) -> str:
        return f"{self._mark}code/{column}"

    def _position(self) -> str:
        """Position of the leaf of every row, from the leaves up to the root."""
        structure = self._program.tree
        at = {
            leaf: self._constant(np.int64(place))
            for place, leaf in enumerate(structure.leaves.tolist())
        }
        if structure.node_count == 1:
            shape = self._add("Shape", [self._columns[0]])
            return self._add("Expand", [at[0], shape])
        for node, decision in sorted(self._program.decisions.items(), reverse=True):
            left, right = structure.children_left[node], structure.children_right[node]
            at[node] = self._add("Where", [self._answer(decision), at[left], at[right]])
        return at[0]

    def _answer(self, decision: Decision) -> str:
        column = decision.column
        if column in self._texts:
            answers = [level in decision.levels for level in self._texts[column]]
            # A category that was not seen in training has the number -1, the last.
            table = self._constant(np.array([*answers, decision.missing, False]))
            return self._add("Gather", [table, self._code(column)])
        answer = ""
        if decision.kind == "at most":
            answer = self._add("LessOrEqual", [column, self._constant(np.float64(decision.bound))])
        elif decision.kind == "flag":
            answer = self._add("Greater", [column, self._constant(np.float64(0.5))])
        for level in decision.levels:
            this = self._add(
                "Equal", [column, self._constant(np.float64(exact(level, "export_onnx")))]
            )
            answer = self._add("Or", [answer, this]) if answer else this
        if not decision.missing:
            return answer
        absent = self._add("IsNaN", [column])
        return self._add("Or", [answer, absent]) if answer else absent

    def _write(self, name: str, values: NDArray[Any], position: str) -> None:
        kind = _KINDS.get(values.dtype.kind)
        table = _of_objects(values) if kind is None else values.astype(kind)
        self._add("Gather", [self._constant(table), position], name)
        shape = [_ROWS, *table.shape[1:]]
        self.outputs.append(self._info(name, self.constants[-1].data_type, shape))

    def _info(self, name: str, kind: int, shape: Sequence[Any]) -> Any:
        """Description of an input or output."""
        return self._onnx.helper.make_tensor_value_info(name, kind, shape)

    def _constant(self, value: Any) -> str:
        name = f"{self._mark}constant/{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def _add(self, operator: str, inputs: Sequence[str], output: str = "", **options: Any) -> str:
        name = output or f"{self._mark}value/{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, inputs, [name], **options))
        return name


def _of_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Labels as an array of text or of numbers."""
    found = np.array(values.tolist())
    kind = _KINDS.get(found.dtype.kind)
    return found.astype(object if kind is None else kind)
