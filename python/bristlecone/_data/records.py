"""Records of a JSON document: declared once, and read as untrusted input."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from bristlecone._types import Floats, Integers
from bristlecone.exceptions import ModelFormatError

Kind = TypeVar("Kind")
Written = TypeVar("Written", bound="Record")

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
NotNegative = Annotated[float, Meta(ge=0.0)]
# JSON has no such numbers, but dictionaries may contain them.
Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]

_AT = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_MESSAGES = {
    r"Object missing required field `(.*)`": "{field} is missing",
    r"Object contains unknown field `(.*)`": "{field} is not known",
    r"Expected `(.*)`, got `(.*)`": "{path} is {1}; expected {0}",
    r"Expected (.*)": "{path} is not {0}",
    r"Invalid (?:enum )?value (.*)": "{path} is {0}",
    r"(?:Number|Integer value) out of range": "{path} is not a finite number in range",
}


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object with exactly these fields."""

    @classmethod
    def of(cls: type[Written], value: Any, **more: Any) -> Written:
        """The record of a value with attributes of these names; ``more`` are used unchanged.

        Raises
        ------
        ModelFormatError
            If an attribute is of another type, such as a number that is not finite where null
            has no meaning; it is named.
        """
        names = [name for name in cls.__struct_fields__ if name not in more]
        return convert(cls, {name: _written(getattr(value, name)) for name in names} | more)


def read(kind: type[Kind], text: str | bytes) -> Kind:
    """Value of a declared type from JSON.

    Raises
    ------
    ModelFormatError
        If the text is not JSON, or not of this type; the field is named.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise ModelFormatError(_explained(str(error))) from None
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"the file is truncated or not JSON: {error}") from None


def convert(kind: type[Kind], value: Any) -> Kind:
    """Value of a declared type from plain values; raises ModelFormatError as ``read`` does."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ModelFormatError(_explained(str(error))) from None


def _explained(message: str) -> str:
    """Message of msgspec about a field, beginning with its full name."""
    parts = _AT.fullmatch(message)
    assert parts is not None
    what, path = parts["what"], parts["path"] or ""
    for pattern, wording in _MESSAGES.items():
        found = re.fullmatch(pattern, what, re.DOTALL)
        if found:
            groups = [group.replace("`", "") for group in found.groups()]
            field = ".".join(part for part in (path, *groups[:1]) if part)
            return wording.format(*groups, path=path or "the whole", field=field)
    return f"{path}.{what}" if path else what


@contextmanager
def within(path: str) -> Iterator[None]:
    """Put the name of the record before the field in an error."""
    try:
        yield
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}.{error}") from None


def _written(value: Any) -> Any:
    """Attribute in the types of JSON; null for numbers that are not finite."""
    if isinstance(value, np.ndarray) and (value.dtype.kind != "f" or np.isfinite(value).all()):
        return value.tolist()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_written(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _written(item) for name, item in value.items()}
    value = plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any) -> Any:
    """Mappings, NumPy scalars, arrays, series and frames in the types of JSON."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "__array__") and not isinstance(value, type):
        return np.asarray(value).tolist()
    return value


def floats(values: Sequence[float], name: str, size: int | None = None) -> Floats:
    """Array of numbers, of ``size`` if given."""
    return _array(values, name, size, np.float64, "numbers", "beyond every float")


def integers(values: Sequence[int], name: str, size: int | None = None) -> Integers:
    """Array of integers, of ``size`` if given."""
    return _array(values, name, size, np.int64, "integers", "of more than 64 bits")


def _array(
    values: Sequence[float], name: str, size: int | None, dtype: type, what: str, wide: str
) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.array(values, dtype=dtype)
    except OverflowError:
        raise ModelFormatError(f"{name} has an integer {wide}") from None
    if size is not None and found.shape != (size,):
        raise ModelFormatError(f"{name} has {len(values)} {what}; expected {size}")
    return found


def matrix(
    rows: Sequence[Sequence[float]], name: str, shape: tuple[int, int], dtype: Any = np.float64
) -> NDArray[Any]:
    """Array of this shape from a list of rows."""
    if len(rows) != shape[0]:
        raise ModelFormatError(f"{name} has {len(rows)} rows; expected {shape[0]}")
    for k, row in enumerate(rows):
        if len(row) != shape[1]:
            raise ModelFormatError(f"{name}[{k}] has {len(row)} numbers; expected {shape[1]}")
    return np.array(rows, dtype=dtype).reshape(shape)


def monotone(values: Sequence[float], name: str, *, high: float, sign: int) -> Floats:
    """Numbers within [0, high] that never decrease (``sign`` 1) or never increase (-1)."""
    found = floats(values, name)
    wrong = (found < 0.0) | (found > high)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ModelFormatError(f"{name}[{k}] is {found[k]}, outside [0, {high:g}]")
    turns = sign * np.diff(found) < 0
    if turns.any():
        raise ModelFormatError(f"{name}[{int(np.argmax(turns)) + 1}] is not monotone")
    return found


def times(values: Sequence[float], name: str) -> Floats:
    """Strictly ascending times, none negative."""
    found = monotone(values, name, high=np.inf, sign=1)
    ties = np.diff(found) == 0
    if ties.any():
        raise ModelFormatError(f"{name}[{int(np.argmax(ties)) + 1}] repeats a time")
    return found
