"""Parameters that several estimators share. One entry defines the check and the option of each.

A class passes further checks to :func:`check_parameters`. Defaults are those of the signatures.
Nothing heavy is imported here, because the help of the command line uses these entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

Check = Callable[[str, Any], None]
"""Raises InvalidParameterError for a value (second) that the parameter of this name cannot have."""

# With a larger prior the data no longer matter, and sums lose digits.
_MOST_PRIOR = 1e9


class Parameter(NamedTuple):
    """A parameter of estimators, or an option of the command line only.

    Attributes
    ----------
    name : str
    default : object
        Default of most classes; the signature of a class has precedence.
    check : callable or None
        See ``Check``.
    read, metavar, help, nargs
        Option of the command line, as in argparse; without ``help`` there is no option.
    flag : str
        Name of the option, if it differs from the parameter.
    gather : callable
        Combines several values into one.
    """

    name: str
    default: Any
    check: Check | None = None
    read: Callable[[str], Any] = str
    metavar: str | None = None
    help: str = ""
    nargs: str | None = None
    flag: str = ""
    gather: Callable[[list[Any]], Any] = list


def check_parameters(estimator: Any, **own: Check) -> None:
    """Check the shared parameters of an estimator, and further ones.

    Parameters
    ----------
    estimator : estimator
    **own : Check
        Checks by name of a parameter; they replace or extend the shared checks.

    Raises
    ------
    InvalidParameterError
        If a parameter has a wrong type or value; the message names it.
    """
    given = vars(estimator)
    for name, parameter in PARAMETERS.items():
        if name in given and name not in own and parameter.check is not None:
            parameter.check(name, given[name])
    for name, check in own.items():
        check(name, given[name])
    if (
        given.get("leaf_penalty", math.inf) == 0
        and given["max_depth"] is None
        and given["max_leaf_nodes"] is None
    ):
        raise _invalid(
            "max_depth=None means unlimited depth and needs leaf_penalty > 0 or max_leaf_nodes"
        )


def integer(least: int, most: float = math.inf, *, optional: bool = False) -> Check:
    """Check of an integer between two (or None)."""

    def check(name: str, value: Any) -> None:
        _checks().check_integer(name, value, least, optional=optional)
        _check_most(name, value, most)

    return check


def number(least: float, most: float = math.inf, *, optional: bool = False) -> Check:
    """Check of a finite number between two (or None)."""

    def check(name: str, value: Any) -> None:
        _checks().check_real(name, value, least, optional=optional)
        _check_most(name, value, most)

    return check


def choice(*choices: str) -> Check:
    """Check of one of several texts."""
    return lambda name, value: _checks().check_choice(name, value, choices)


def check_encoder(name: str, value: Any) -> None:
    """Check of "auto" or a transformer that names its features."""
    if not (is_auto(value) or has_methods(value, "fit", "transform", "get_feature_names_out")):
        raise _invalid(
            f"{name} must be 'auto' or a transformer such as BinaryEncoder(); got {value!r}"
        )


def check_amount(name: str, value: Any, most: float = math.inf) -> None:
    """Check of a finite number between 0 and ``most``, or "auto"."""
    if not isinstance(value, str):
        number(0.0, most)(name, value)
    elif value != "auto":
        raise _invalid(f"{name} must be 'auto' or a finite number of at least 0; got {value!r}")


def is_auto(value: Any) -> bool:
    """Whether a value is the text "auto"."""
    return isinstance(value, str) and value == "auto"


def has_methods(value: Any, *methods: str) -> bool:
    """Whether a value is an object with these methods, and not a class."""
    return not isinstance(value, type) and all(hasattr(value, method) for method in methods)


def reader(read: Callable[[str], Any], name: str, **words: Any) -> Callable[[str], Any]:
    """Reader of an option's text; ``words`` in any case have their own values.

    argparse shows ``name`` in its messages.
    """

    def value(text: str) -> Any:
        word = text.lower()
        return words[word] if word in words else read(text)

    value.__name__ = name
    return value


def _read_count_or_share(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


count_or_none = reader(int, "integer", none=None)
number_or_none = reader(float, "number", none=None)
number_or_auto = reader(float, "number", auto="auto")
word_or_none = reader(str, "word", none=None)
_count_or_share = reader(_read_count_or_share, "number")
_events = reader(_read_count_or_share, "number", none=None, auto="auto")


def _checks() -> Any:
    """The module of checks, imported late because it needs NumPy."""
    from bristlecone._data import checks

    return checks


def _invalid(message: str) -> ValueError:
    from bristlecone.exceptions import InvalidParameterError

    return InvalidParameterError(message)


def _check_most(name: str, value: Any, most: float) -> None:
    if value is not None and value > most:
        raise _invalid(f"{name} must be at most {most:g}; got {value!r}")


def _check_count_or_share(name: str, value: Any, more: str = "") -> None:
    is_count = _checks().is_integer(value)
    if is_count:
        is_right = int(value) >= 1
    else:
        # Other integers are booleans and durations.
        is_share = isinstance(value, Real) and not isinstance(value, Integral)
        is_right = is_share and 0.0 < float(value) < 1.0
    if not is_right:
        comma = "," if more else " or"
        raise _invalid(
            f"{name} must be an integer of at least 1{comma} a share between 0 and 1 "
            f"(exclusive){more}; got {value!r}"
        )
    if is_count:
        _checks().check_integer(name, value, 1)


def _check_events(name: str, value: Any) -> None:
    if value is not None and not is_auto(value):
        _check_count_or_share(name, value, ", 'auto' or None")


def _check_teacher(name: str, value: Any) -> None:
    if not (value is None or is_auto(value) or has_methods(value, "fit")):
        raise _invalid(f"{name} must be None, 'auto' or an estimator; got {value!r}")


def _check_verbose(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        _checks().check_integer(name, value, 0)


PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter(
            "max_depth",
            3,
            integer(0, optional=True),
            count_or_none,
            "D",
            "maximum number of splits from the root to a leaf; none for no limit, which needs "
            "--max-leaf-nodes or --leaf-penalty",
        ),
        Parameter(
            "max_leaf_nodes",
            None,
            integer(1, optional=True),
            count_or_none,
            "N",
            "maximum number of leaves",
        ),
        Parameter(
            "min_samples_leaf",
            1,
            _check_count_or_share,
            _count_or_share,
            "N",
            "minimum number of rows in a leaf; a value below 1 is a share of the rows",
        ),
        Parameter(
            "min_events_leaf",
            "auto",
            _check_events,
            _events,
            "N",
            "minimum number of events in a leaf; a value below 1 is a share of the events; auto "
            "or none",
        ),
        Parameter(
            "leaf_penalty",
            0.0,
            number(0.0),
            float,
            "LOSS",
            "penalty per leaf, added to the mean loss; larger values give smaller trees",
        ),
        Parameter(
            "prior",
            "auto",
            partial(check_amount, most=_MOST_PRIOR),
            number_or_auto,
            "EVENTS",
            "pseudo-events at the baseline hazard added to every leaf (objective likelihood); or "
            "auto",
        ),
        Parameter(
            "shrinkage",
            0.0,
            number(0.0),
            float,
            "L",
            "pseudo-rows that pull the predictions of a node towards those of its parent",
        ),
        Parameter(
            "teacher",
            None,
            _check_teacher,
            word_or_none,
            "auto",
            "smooth the outcomes before the search by cross-fitted predictions of a model; auto or "
            "none",
        ),
        Parameter(
            "teacher_weight",
            0.5,
            number(0.0, 1.0),
            float,
            "SHARE",
            "share of the teacher in the smoothed outcomes, between 0 and 1",
        ),
        Parameter(
            "time_limit",
            None,
            number(0.0, optional=True),
            float,
            "SECONDS",
            "stop the search after this time and keep the best tree so far (default: no limit)",
        ),
        Parameter(
            "memory_limit",
            None,
            integer(1, optional=True),
            int,
            "BYTES",
            "memory for the tables of the search; with less, it is slower (default: 600 MiB)",
        ),
        Parameter(
            "n_jobs",
            None,
            lambda name, value: _checks().thread_count(value),
            int,
            "N",
            "number of threads; -1 for all cores (default: 1)",
        ),
        Parameter("encoder", "auto", check_encoder),
        Parameter("random_state", None, lambda name, value: _checks().check_seed(name, value)),
        Parameter("verbose", 0, _check_verbose),
    )
}
"""The shared parameters by name, in the order of the signatures."""
