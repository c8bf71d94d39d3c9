"""Trees from tables that do not fit into memory, or are on several machines."""

from bristlecone.scale._fit import fit_partitions
from bristlecone.scale._run import PassProgress

__all__ = ["PassProgress", "fit_partitions"]
