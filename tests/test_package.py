"""The exports of the package."""

import inspect
import subprocess
import sys

import public_names
import pytest

import bristlecone


def test_every_public_name_is_there_when_it_is_asked_for():
    for name in bristlecone.__all__:
        value = getattr(bristlecone, name)
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
        assert home.startswith("bristlecone.") or name == "__version__", name
    assert set(bristlecone.__all__) <= set(dir(bristlecone))
    assert bristlecone.metrics.__name__ == "bristlecone.metrics"
    with pytest.raises(AttributeError, match="attribute OptimalTeaTree"):
        _ = bristlecone.OptimalTeaTree


def test_a_star_import_brings_every_public_name():
    namespace = {}
    exec("from bristlecone import *", namespace)
    assert set(bristlecone.__all__) <= set(namespace)


def test_the_list_of_public_names_is_current():
    written = public_names.FILE.read_text(encoding="utf-8")
    assert written == public_names.text(), "run: python tests/public_names.py"


def test_the_estimators_are_imported_without_what_few_fits_need():
    heavy = "sklearn.tree", "sklearn.ensemble", "sklearn.pipeline", "sklearn.isotonic"
    heavy += "matplotlib", "pyarrow.parquet", "dask", "sklearn.cluster"
    code = "import sys; from bristlecone import OptimalSurvivalTree; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not set(heavy) & set(found.stdout.split())
