"""Trees from tables that do not fit into memory, or are on several machines."""

from bristlecone.scale._dask import DaskOptimalSurvivalTree, DaskOptimalTreeClassifier
from bristlecone.scale._fit import fit_partitions
from bristlecone.scale._partial import PartialSums
from bristlecone.scale._predict import predict_partitions
from bristlecone.scale._run import PassProgress

__all__ = [
    "DaskOptimalSurvivalTree",
    "DaskOptimalTreeClassifier",
    "PartialSums",
    "PassProgress",
    "fit_partitions",
    "predict_partitions",
]
