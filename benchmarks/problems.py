"""Load a problem of problems.json into the arrays that every library is given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

from benchmarks import fair_survival, label_data

# Features, event, time.
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]

CATALOGUE = Path(__file__).with_name("problems.json")
# The binarised sets of the OSST study (see tests/data/osst/README.md), beside the repository.
OSST = Path(__file__).parents[2] / "shared" / "data" / "osst"


@dataclass(frozen=True)
class Problem:
    """One data set, encoded once so that all libraries solve the very same matrix.

    Parameters
    ----------
    name : str
        Key in problems.json.
    X : ndarray of shape (n, F)
        uint8 of 0 and 1, or float64 for problems with numeric features.
    target : dict of str to ndarray
        "event" (bool) and "time" (float64), of shape (n,), for survival problems, with "group" and
        "limit" where groups may differ little; what `label_data` returns for the others.
    """

    name: str
    X: np.ndarray
    target: dict[str, np.ndarray]

    @property
    def fingerprint(self) -> str:
        """Hash of the arrays: equal in two records when both solved the same numbers."""
        digest = hashlib.sha256()
        for array in (self.X, *(self.target[key] for key in sorted(self.target))):
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    def save(self, path: Path) -> None:
        """Write the arrays to an .npz file."""
        arrays: dict[str, Any] = {"X": self.X, **self.target}
        np.savez(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> Problem:
        """Read what `save` wrote; the file's stem is the name."""
        with np.load(path) as arrays:
            target = {key: arrays[key] for key in arrays.files if key != "X"}
            return cls(path.stem, arrays["X"], target)


def catalogue() -> dict[str, Any]:
    """Return problems.json as a dictionary."""
    return json.loads(CATALOGUE.read_text(encoding="utf-8"))


def build(name: str) -> Problem:
    """Make the problem of that name from its entry in problems.json.

    Raises
    ------
    KeyError
        If the name or its source is unknown.
    """
    definition = dict(catalogue()["problems"][name])
    source = definition.pop("source")
    if source in TARGETS:
        return Problem(name, *TARGETS[source](**definition))
    X, event, time = SOURCES[source](**definition)
    target = {"event": event.astype(bool), "time": time.astype(np.float64)}
    return Problem(name, np.ascontiguousarray(X), target)


def survset(name: str) -> Arrays:
    """Return a set of the SurvSet package, encoded by the default BinaryEncoder.

    Start-stop sets are read as the SurTree study reads them: `time2` is ignored.
    """
    from SurvSet.data import SurvLoader

    from bristlecone import BinaryEncoder

    frame = SurvLoader().load_dataset(name)["df"]
    features = frame.drop(columns=["pid", "event", "time", "time2"], errors="ignore")
    X = np.asarray(BinaryEncoder().fit_transform(features), dtype=np.uint8)
    return X, frame["event"].to_numpy(), frame["time"].to_numpy()


def osst(name: str) -> Arrays:
    """Return a binarised set of the OSST study: features, then event and time."""
    path = OSST / f"{name}.csv"
    header = path.read_text(encoding="utf-8").partition("\n")[0]
    values = np.loadtxt(path, delimiter=",", skiprows=1)
    first = 1 if header.startswith(",") else 0  # some have a column of row numbers
    return values[:, first:-2].astype(np.uint8), values[:, -2], values[:, -1]


def household(rows: int, features: int, censored: float, seed: int) -> Arrays:
    """Return independent fair 0/1 features and distinct times, a given share of them censored.

    In the shape of the household set of the OSST study: some features act strongly enough for a
    tree at its penalty of 0.01, times are Weibull, censoring is independent of everything.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(rows, features), dtype=np.uint8)
    log_hazard = X[:, :5] @ np.array([2.0, -1.5, 1.0, 0.8, -0.6]) + 0.6 * (X[:, 5] & X[:, 6])
    hazard = np.exp(log_hazard)
    # P(censored) = c / (c + hazard), its mean over the rows rises with the rate c.
    rate = brentq(lambda c: np.mean(c / (c + hazard)) - censored, 1e-6, 1e6)
    survival, censoring = rng.exponential(1 / hazard), rng.exponential(1 / rate, size=rows)
    return X, survival <= censoring, np.sqrt(np.minimum(survival, censoring))


def bernoulli(rows: int, features: int, seed: int) -> Arrays:
    """Return independent fair 0/1 features; three of them act on the hazard."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(rows, features), dtype=np.uint8)
    log_hazard = 0.8 * X[:, 0] - 0.6 * (X[:, 1] & X[:, 2])
    return X, *_exponential(rng, log_hazard)


def normal(rows: int, features: int, seed: int) -> Arrays:
    """Return independent standard normal features; three of them act on the hazard.

    The values are exact in float32, so that libraries of either precision see the same numbers.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features), dtype=np.float32).astype(np.float64)
    log_hazard = 0.8 * (X[:, 0] > 0) + 0.5 * X[:, 1] * (X[:, 2] > 0)
    return X, *_exponential(rng, log_hazard)


def _exponential(rng: np.random.Generator, log_hazard: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (event, time): exponential survival, independent exponential censoring."""
    survival = rng.exponential(np.exp(-log_hazard))
    censoring = rng.exponential(1.5, size=len(log_hazard))
    return survival <= censoring, np.minimum(survival, censoring)


# These return the whole target.
TARGETS: dict[str, Callable[..., Any]] = {
    **label_data.SOURCES,
    "packaged": fair_survival.packaged,
}

SOURCES: dict[str, Callable[..., Arrays]] = {
    "survset": survset,
    "osst": osst,
    "household": household,
    "bernoulli": bernoulli,
    "normal": normal,
}
