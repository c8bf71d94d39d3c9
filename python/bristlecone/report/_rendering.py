"""Templates and their engine, Jinja2, which is imported when it is needed."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from bristlecone._view.ruler import Ruler


def check_engine() -> None:
    """Raise ImportError, which says what to install, if Jinja2 is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise ImportError(
            "a report needs Jinja2: python -m pip install 'bristlecone[report]'"
        ) from None


@cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bristlecone.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["fit"] = _fit
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "allow_nan": False}
    return environment


def _fit(text: object, width: float, size: float) -> str:
    return Ruler().wrap(str(text), width, size, most=1)[0]


def rendered(name: str, **values: Any) -> str:
    """A template with these values; all text in them is escaped."""
    return str(_environment().get_template(name).render(**values))


def source(name: str) -> Any:
    """A style sheet or script of the package, to be included unchanged."""
    from markupsafe import Markup

    text = resources.files("bristlecone.report").joinpath("templates", name)
    return Markup(text.read_text(encoding="utf-8").strip())
