"""Optimal and soft survival trees."""

from bristlecone._core import __version__

__all__ = ["__version__"]
