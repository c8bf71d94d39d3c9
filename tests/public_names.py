"""Writes docs/api.txt: every public name with its signature.

    python tests/public_names.py

`test_package.py` checks that the file is current.
"""

import inspect
import textwrap
from pathlib import Path

import bristlecone

FILE = Path(__file__).parents[1] / "docs" / "api.txt"


def signature(value):
    """Names and defaults of the parameters. The types are in the source."""
    try:
        full = inspect.signature(value)
    except (TypeError, ValueError):  # Exceptions, and subclasses of numbers.
        return ""
    names = [one.replace(annotation=one.empty) for one in full.parameters.values()]
    return str(full.replace(parameters=names, return_annotation=full.empty))


def members(cls):
    """Public methods and properties of a class, without those inherited from other packages."""
    owners = [base for base in cls.__mro__ if base.__module__.startswith("bristlecone.")]
    names = {name for base in owners for name in vars(base) if name[0] != "_"}
    # The defaults of constructor parameters are attributes of the class.
    names -= set(cls._get_param_names() if hasattr(cls, "get_params") else ())
    for name in sorted(names):
        value = inspect.getattr_static(cls, name)
        if isinstance(value, (classmethod, staticmethod)):
            yield name, signature(getattr(cls, name))
        elif callable(value):
            # scikit-learn's `available_if` hides a method in a descriptor.
            yield name, signature(getattr(value, "fn", value))
        else:
            yield name, ""


def lines():
    homes = [(bristlecone, "bristlecone")]
    homes += [
        (value, f"bristlecone.{name}")
        for name in bristlecone.__all__
        if inspect.ismodule(value := getattr(bristlecone, name))
    ]
    for module, title in homes:
        yield f"\n{title}"
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if inspect.ismodule(value) or not callable(value):
                yield f"  {name}"
                continue
            yield f"  {name}{signature(value)}"
            if inspect.isclass(value):
                yield from (f"    .{member}{form}" for member, form in members(value))


def text():
    wrap = textwrap.TextWrapper(
        100, subsequent_indent=" " * 8, break_on_hyphens=False, replace_whitespace=False
    )
    return "\n".join("\n".join(wrap.wrap(line)) for line in lines()).strip() + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
