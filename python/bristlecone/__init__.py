"""Optimal and soft survival trees.

The names are those of the stub beside this file; each is imported when it is first used, so that
the command line answers at once.
"""

import ast
from importlib import import_module, resources
from typing import Any

_HOMES: dict[str, str] = {}
for _statement in ast.parse((resources.files(__name__) / "__init__.pyi").read_bytes()).body:
    if isinstance(_statement, ast.ImportFrom) and _statement.module:
        _HOMES |= {_alias.name: _statement.module for _alias in _statement.names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of the package."""
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("_"):
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
