"""What the package exports."""

import pytest

import bristlecone


def test_every_public_name_is_there_when_it_is_asked_for():
    for name in bristlecone.__all__:
        value = getattr(bristlecone, name)
        assert getattr(value, "__module__", "bristlecone.").startswith("bristlecone."), name
    assert set(bristlecone.__all__) <= set(dir(bristlecone))
    assert bristlecone.metrics.__name__ == "bristlecone.metrics"
    with pytest.raises(AttributeError, match="no attribute 'OptimalTeaTree'"):
        _ = bristlecone.OptimalTeaTree


def test_public_names_are_those_of_the_stub():
    assert "OptimalSurvivalTree" in bristlecone.__all__
    assert "load_model" in bristlecone.__all__
    namespace = {}
    exec("from bristlecone import *", namespace)
    assert set(bristlecone.__all__) <= set(namespace)
