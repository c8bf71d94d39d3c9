"""Messages to the user: warnings, and progress through the logger "bristlecone"."""

from __future__ import annotations

import inspect
import logging
import warnings
from pathlib import Path
from typing import Any

logger = logging.getLogger("bristlecone")

_PACKAGE = str(Path(__file__).parent / "x")[:-1]


def log(verbose: Any, message: str, *values: Any) -> None:
    """Log at level INFO if ``verbose``, else DEBUG.

    With ``verbose`` and no logging set up, messages go to standard error.
    """
    if verbose and not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    logger.log(logging.INFO if verbose else logging.DEBUG, message, *values)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line outside the package that called it."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
