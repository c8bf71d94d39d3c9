"""Stands in for the sums of the engine: keeps all rows and solves the whole, which is slow."""

import numpy as np

from bristlecone import _core


class RowsAsSums:
    """What ``bristlecone._search.engine.partial_sums`` gives."""

    def __init__(self, task, data, count, *, n_features, **settings):
        self.task, self.data, self.count = task, data, count
        self.n_features = n_features
        self.parts = []

    def add(self, features, outcome):
        assert features.dtype == np.uint8 and features.flags.c_contiguous
        assert features.shape == (len(outcome), self.n_features)
        assert outcome.dtype == np.uint32
        self.parts.append((features.copy(), outcome.copy()))

    def merge(self, other):
        self.parts += other.parts

    def solve(self, **settings):
        features = np.concatenate([part[0] for part in self.parts])
        outcome = np.concatenate([part[1] for part in self.parts])
        assert np.array_equal(np.bincount(outcome, minlength=len(self.count)), self.count)
        order = np.argsort(outcome, kind="stable")
        size = len(self.count)
        data = {
            name: value[outcome[order]]
            if np.shape(value)[:1] == (size,) and name not in OF_TASK
            else value
            for name, value in self.data.items()
        }
        return _core.solve(self.task, data, np.ascontiguousarray(features[order]), **settings)

    def finish(self, solution, counts):
        assert np.array_equal(counts.sum(axis=0), self.count)
        return solution


# Data of tasks that are not by row.
OF_TASK = {"cause_weights", "feature_cost", "feature_group"}


def partial_sums(task, count, **settings):
    return RowsAsSums(*task, count, **settings)
