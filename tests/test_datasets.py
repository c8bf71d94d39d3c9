"""The bundled data sets are complete, described, and those of the published values."""

import csv
from importlib import resources

import numpy as np
import pandas as pd
import pytest

from bristlecone import _core, datasets
from bristlecone._encoder.binary import BinaryEncoder

NAMES = datasets.list_datasets()
FOLDER = resources.files(datasets)


def raw_rows(name):
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_at_least_six_sets_are_bundled_the_promised_ones_among_them():
    assert len(NAMES) >= 6
    assert {"gbsg2", "veterans", "whas500", "aids"} <= set(NAMES)


def test_the_data_files_stay_below_one_megabyte_together():
    sizes = [len((FOLDER / f"{name}.csv").read_bytes()) for name in NAMES]
    assert sum(sizes) < 1_000_000


@pytest.mark.parametrize("name", NAMES)
def test_registry_counts_and_columns_are_those_of_the_file(name):
    header, *rows = raw_rows(name)
    info = datasets.describe(name)
    assert header == [*info.columns, "event", "time"]
    assert info.rows == len(rows)
    assert info.events == sum(row[-2] == "1" for row in rows)
    assert {row[-2] for row in rows} == {"0", "1"}
    assert all(float(row[-1]) >= 0 for row in rows)


@pytest.mark.parametrize("name", NAMES)
def test_source_licence_and_citation_are_recorded(name):
    info = datasets.describe(name)
    for text in (info.title, info.source, info.licence, info.citation, info.changes):
        assert len(text) > 10
    if "licences/" in info.licence:
        file = info.licence.partition("(")[2].rstrip(")")
        assert (FOLDER / file).is_file()
    else:
        assert info.licence.startswith("No licence is stated")


@pytest.mark.parametrize("name", NAMES)
def test_readme_says_what_the_registry_says(name):
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    info = datasets.describe(name)
    assert (
        f"| {name} | {info.rows} | {info.events} | {len(info.columns)} | {info.time_unit} "
        f"| {info.title} |"
    ) in readme
    section = readme.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    for text in (info.source, info.licence, info.citation, info.changes, info.event, info.time):
        assert text.rstrip(".") in section
    for column, meaning in info.columns.items():
        assert f"| {column} | {meaning} |" in section


@pytest.mark.parametrize("name", NAMES)
def test_the_frame_holds_the_values_of_the_file(name):
    header, *rows = raw_rows(name)
    dataset = datasets.load(name)
    assert type(dataset.X) is pd.DataFrame
    assert dataset.X.shape == (len(rows), len(header) - 2)
    assert list(dataset.X.columns) == header[:-2]
    for position, column in enumerate(header[:-2]):
        values = list(dataset.X[column])
        for cell, value in zip((row[position] for row in rows), values, strict=True):
            if cell == "":
                assert np.isnan(value)
            elif isinstance(value, str):
                assert value == cell
            else:
                assert value == float(cell)


def test_outcome_is_a_structured_array_of_bool_and_float():
    dataset = datasets.load("veterans")
    assert dataset.y.dtype == np.dtype([("event", bool), ("time", float)])
    assert dataset.y["event"].sum() == 128
    assert dataset.y["time"][:3].tolist() == [72.0, 411.0, 228.0]


def test_unknown_name_gets_a_suggestion_and_the_list():
    with pytest.raises(ValueError, match=r"'gbsg'; did you mean 'gbsg2'\? .*veterans, whas500"):
        datasets.load("gbsg")


def without_deaths_in_hospital(X, y):
    """The 461 rows of whas500 in SurvSet; see the README of the data."""
    died_in_hospital = y["event"] & (y["time"] <= X["los"])
    died_in_hospital[36] = False
    return X[~died_in_hospital], y[~died_in_hospital]


@pytest.mark.parametrize(
    ("name", "n_rows", "single_leaf", "one_split"),
    [
        ("gbsg2", 686, 0.6965823489590519, 0.6497759197081168),
        ("veterans", 137, 0.5748456947359405, 0.4639605931766774),
        ("whas500", 461, 0.6709323799384523, 0.5724761387512093),
    ],
)
def test_published_losses_come_out_of_these_files(name, n_rows, single_leaf, one_split):
    # Losses of the published implementation of SurTree on the data of SurvSet, computed
    # here from the formulas (LeBlanc and Crowley 1992), without the engine.
    dataset = datasets.load(name)
    X, y = dataset.X, dataset.y
    if name == "whas500":
        X, y = without_deaths_in_hospital(X, y)
    assert X.shape[0] == n_rows
    event, time = y["event"], y["time"]
    table = _core.RiskTable(time.copy(), event.copy())
    hazard = table.nelson_aalen()[np.searchsorted(table.time, time)]
    hazard = np.where(hazard > 0, hazard, 1 / (n_rows + 1))

    def leaf_loss(rows):
        events = event[rows].sum()
        loss = -np.sum(np.log(hazard[rows][event[rows]]))
        return loss - events * np.log(events / hazard[rows].sum()) if events else 0.0

    features = BinaryEncoder().fit_transform(X)
    split_losses = [leaf_loss(column) + leaf_loss(~column) for column in features.T]
    assert leaf_loss(np.ones(n_rows, dtype=bool)) / n_rows == pytest.approx(single_leaf, abs=1e-12)
    assert min(split_losses) / n_rows == pytest.approx(one_split, abs=1e-12)


def test_descriptions_may_be_changed():
    datasets.describe("lung").columns.clear()
    assert datasets.describe("lung").columns
