"""What fits tell, through the logger "bristlecone"."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["logger", "tell"]

logger = logging.getLogger("bristlecone")


def tell(verbose: Any, message: str, *values: Any) -> None:
    """Log at level INFO if ``verbose``, else DEBUG.

    Who asks for more and has set up no logging reads it on standard error.
    """
    if verbose and not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    logger.log(logging.INFO if verbose else logging.DEBUG, message, *values)
