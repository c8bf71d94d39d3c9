"""The binarised data sets of the OSST study in tests/data."""

import csv
import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "data" / "osst"
SETS = json.loads((FOLDER / "sets.json").read_text(encoding="utf-8"))
# Larger sets, which are beside the repository on some machines.
ELSEWHERE = Path(__file__).parents[2] / "shared" / "data" / "osst"


def load(name):
    """Boolean features, event and time of a set."""
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    X = np.array([[bit == "1" for bit in row["features"]] for row in rows])
    event = np.array([row["event"] == "1" for row in rows])
    return X, event, np.array([float(row["time"]) for row in rows])


def load_elsewhere(name):
    """As ``load``, from a file of the study; FileNotFoundError if it is missing."""
    values = np.loadtxt(ELSEWHERE / f"{name}.csv", delimiter=",", skiprows=1)
    return values[:, :-2] > 0, values[:, -2] > 0, values[:, -1]


def published_scale(time):
    """Factor of the penalty: the published program divides by y_max − y_min, and we by y_max."""
    return time.max() / (time.max() - time.min())
