"""The estimator that the options describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bristlecone
from bristlecone._cli.kinds import OF_TUNING, Kind, flag
from bristlecone._cli.options import BY_NAME, MAPPING, Group
from bristlecone._cli.roles import Columns, Rows
from bristlecone._cli.tables import absent, check_column, spells
from bristlecone._estimators.parameters import Parameter

_NEEDS = {
    "title": "report",
    "time_label": "report",
    **dict.fromkeys(OF_TUNING.values(), "tune"),
}


def build(kind: Kind, given: Mapping[str, Any]) -> Any:
    """Estimator for the given options, with checked parameters."""
    check_needs(given, *(group.needs for group in kind.groups))
    parameters: dict[str, Any] = {}
    for group in kind.groups:
        values = {
            group.argument(option): _value(option, given[option.name])
            for option in group.options
            if option.name in given
        }
        if not group.made:
            parameters |= values
        elif values or isinstance(group.cls, Mapping):
            if group.made in parameters:
                raise ValueError(
                    f"{flag(group.made)} cannot be used with {flag(next(iter(values)))}"
                )
            if group.cls in (MAPPING, BY_NAME):
                parameters[group.made] = values if group.cls == MAPPING else _by_name(group, values)
                continue
            cls = _class(group, values)
            made = parameters[group.made] = getattr(bristlecone, cls)(**values)
            if hasattr(made, "_check_parameters"):
                made._check_parameters()
    estimator = getattr(bristlecone, kind.cls)(**parameters)
    estimator._check_parameters()
    return estimator


def _by_name(group: Group, values: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Values by name and key, from those by key and name; every name needs the first key."""
    needed, *others = group.options
    names = list(values.get(group.argument(needed), {}))
    for option in others:
        for name in values.get(group.argument(option), {}):
            if name not in names:
                raise ValueError(f"{flag(option)}: {name!r} needs {flag(needed)}, too")
    return {
        name: {key: given[name] for key, given in values.items() if name in given} for name in names
    }


def _class(group: Group, values: dict[str, Any]) -> str:
    """Class of a group's parameter; the value that chooses it is removed from the values."""
    if isinstance(group.cls, str):
        return group.cls
    default = next(option.default for option in group.options if option.name == group.made)
    name = values.pop(group.made, default)
    if name not in group.cls:
        raise ValueError(f"{flag(group.made)} must be one of {', '.join(group.cls)}; got {name!r}")
    for option in group.options:
        if option.name != group.made and group.argument(option) not in values:
            raise ValueError(f"{flag(option)} is needed")
    return group.cls[name]


def check_needs(given: Mapping[str, Any], *needs: Mapping[str, str]) -> None:
    """Raise ValueError if an option is given without the one that it needs."""
    for options in (_NEEDS, *needs):
        for option, other in options.items():
            if given.get(option) is not None and given.get(other) is None:
                raise ValueError(f"{flag(option)} needs {flag(other)}")


def _value(option: Parameter, read: Any) -> Any:
    if option.nargs is None:
        return read
    try:
        return option.gather(read)
    except ValueError as error:
        raise ValueError(f"{flag(option)}: {error}") from None


def check_names(kind: Kind, estimator: Any, columns: Columns) -> None:
    """Raise ValueError if a parameter names a feature that does not exist."""
    for parameter, option, names in _mappings(kind, estimator):
        if not kind.keyed[parameter]:
            for name in names:
                check_column(name, columns.features, option)


def name_values(kind: Kind, estimator: Any, columns: Columns, rows: Rows) -> None:
    """Replace the spelling of labels and treatments in parameters by their values."""
    for parameter, option, names in _mappings(kind, estimator):
        role = kind.keyed[parameter]
        if not role:
            continue
        argument = next(one.argument for one in kind.roles if one.name == role)
        found = dict.fromkeys((rows.more[argument] if argument else rows.y).tolist())
        named = {}
        for name, amount in names.items():
            value = next((value for value in found if spells(name, value)), None)
            if value is None:
                raise absent(option, name, columns.roles[role][0], found)
            named[value] = amount
        estimator.set_params(**{parameter: named})


def _mappings(kind: Kind, estimator: Any) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Parameter, option and value of every parameter that is a mapping."""
    given = estimator.get_params(deep=False)
    options = {option.name: flag(option) for group in kind.groups for option in group.options}
    return [
        (name, options.get(name, flag(name)), given[name])
        for name in kind.keyed
        if isinstance(given[name], Mapping)
    ]
