"""Settings that every function of the engine takes."""

from typing import Any

SETTINGS: dict[str, Any] = {
    "max_depth": 2,
    "max_leaf_nodes": None,
    "min_samples_leaf": 1,
    "leaf_penalty": 0.0,
    "n_threads": 1,
    "time_limit": None,
    "memory_limit": None,
    "options": None,
}
