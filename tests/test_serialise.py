"""Saved models: what is in the file, and that nothing wrong comes out of one."""

import copy
import json
import os
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from survival_contract import assert_same_predictions, sample

from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import ModelFormatError
from bristlecone.estimators.classifier import OptimalTreeClassifier
from bristlecone.estimators.survival import OptimalSurvivalTree
from bristlecone.export import export_dict
from bristlecone.model.registry import (
    FORMAT,
    VERSION,
    _checksum,
    dumps,
    load_model,
    loads,
    save_model,
)


@pytest.fixture(scope="module")
def rows():
    return sample()


@pytest.fixture(scope="module")
def model(rows):
    return OptimalSurvivalTree(max_depth=2).fit(*rows)


@pytest.fixture(scope="module")
def document(model):
    return json.loads(dumps(model))


def tampered(document, path, value):
    """Copy of the document with one entry changed, or removed when the value is ``...``."""
    changed = copy.deepcopy(document)
    *parents, last = [int(key) if key.isdigit() else key for key in re.findall(r"\w+", path)]
    inner = changed
    for key in parents:
        inner = inner[key]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value(inner[last]) if callable(value) else value
    return json.dumps(changed)


def test_document_says_what_it_is_and_holds_no_training_rows(model, document, rows):
    assert (document["format"], document["version"]) == (FORMAT, VERSION)
    assert document["estimator"] == "OptimalSurvivalTree"
    assert document["parameters"] == model.get_params()
    assert str(rows[0]["x0"][3]) not in json.dumps(document)


def test_everything_that_was_fitted_comes_back(model):
    again = loads(dumps(model))
    fitted = {name for name in dir(model) if re.fullmatch(r"[a-z]\w*[a-z]_", name)}
    assert {"objective_value_", "lower_bound_", "trace_", "status_", "fit_time_"} <= fitted
    for name in fitted - {"baseline_", "encoder_", "tree_", "leaf_statistics_"}:
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name), err_msg=name)
    for name in ("children_left", "children_right", "feature", "n_node_samples"):
        np.testing.assert_array_equal(getattr(again.tree_, name), getattr(model.tree_, name))


def test_parameters_of_every_kind_come_back(rows):
    X, y = rows
    names = pd.Series(X.columns, dtype=object)
    model = OptimalSurvivalTree(
        max_depth=np.int64(1),
        leaf_penalty=np.float32(0.001),
        time_limit=100,
        random_state=3,
        verbose=True,
        encoder=BinaryEncoder(thresholds="midpoints", max_features=9),
    ).fit(X.set_axis(names.map("Größe {}".format), axis=1), y)
    again = loads(dumps(model))
    assert again.encoder.get_params() == model.encoder.get_params()
    ours, theirs = (m.get_params(deep=False) | {"encoder": None} for m in (again, model))
    assert ours == theirs
    assert "Größe x0" in again.feature_names_in_
    single = OptimalSurvivalTree(max_depth=0).fit(X, y)
    assert_same_predictions(single, loads(dumps(single)), X)


def test_saving_replaces_a_file_completely_or_not_at_all(model, tmp_path):
    path = tmp_path / "model.json"
    save_model(model, path)
    before = path.read_bytes()
    with pytest.raises(NotFittedError):
        save_model(OptimalSurvivalTree(), path)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="no folder"):
        save_model(model, tmp_path / "nowhere" / "model.json")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(model, tmp_path, mode):
    path = tmp_path / "model.json"
    umask = os.umask(0o022)
    try:
        save_model(model, path)
        assert path.stat().st_mode & 0o777 == 0o644
        path.chmod(mode)
        save_model(model, path)
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == mode
    load_model(path)


def test_names_may_be_as_long_as_the_system_allows(model, tmp_path):
    path = tmp_path / ("m" * 250 + ".json")
    save_model(model, path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def labelled(labels):
    X = np.array([[False], [True]] * 5)
    return OptimalTreeClassifier(max_depth=1).fit(X, np.tile(labels, 5)), X


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (["no", "yes"], None),
        ([1, 2], "uint64"),
        ([0.0, 2.0], "float16"),
        ([False, True], None),
        (["a", "bc"], object),
        (["2020-02-29", "2021-01-01"], "datetime64[D]"),
        (["2020-02-29T12:00", "2021-01-01"], "datetime64[ns]"),
        ([-5, 7], "timedelta64[h]"),
    ],
)
def test_labels_of_every_type_come_back(labels, dtype):
    model, X = labelled(np.array(labels, dtype=dtype))
    again = loads(dumps(model))
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), np.tile(model.classes_, 5))
    json.dumps(export_dict(model))


# On some systems the longest float is the one of 64 bits.
LONG = [np.array([1, 2], np.longdouble)] * (np.dtype(np.longdouble).itemsize > 8)


@pytest.mark.parametrize("labels", [[b"a", b"b"], *LONG])
def test_labels_that_cannot_be_saved_are_named(labels):
    model, _ = labelled(labels)
    with pytest.raises(TypeError, match=r"labels of type (\|S1|float\d+) cannot"):
        dumps(model)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("<U500000000", ["no", "yes"]),
        ("<U999999", ["no", "yes"] * 100),
        *[
            (kind, [1, 2])
            for kind in (",", "(,)", "i8,(", "i8", "<c16", "(9,9)<i8", "<i8,<i8", "|V9")
        ],
        ("<M8[7s]", ["2020", "2021"]),
        ("<M8[D]", ["2020-02-30", "2021-01-01"]),
        ("<M8[D]", [18000, 18001]),
        ("<m8[D]", [1.5, 2.5]),
        ("<M8[D]", ["2" * 10**6, *map(str, range(10**4))]),
        ("<i8", [1, 10**400]),
        ("<i8", [1, 2**63]),
        ("<f8", [1.0, 10**400]),
        ("|u1", [1, 256]),
        ("<f2", [1.0, 1e300]),
        ("<m8[D]", [1, "x"]),
        ("<U1", ["a", "bc"]),
        ("|O", [1, None]),
        ("<i8", [[1], [2]]),
        ("<i8", [1, 1]),
        ("<i8", "12"),
    ],
)
def test_labels_are_read_only_where_they_can_be_labels(kind, values):
    model, _ = labelled(["no", "yes"])
    changed = json.loads(dumps(model))
    changed["labels"] = {"type": kind, "values": values}
    changed["checksum"] = _checksum(changed)
    with pytest.raises(ModelFormatError, match=r"^labels\.(type|values) "):
        loads(json.dumps(changed))


@cache
def labelled_text():
    return dumps(labelled(["no", "yes"])[0])


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)


@given(
    st.text("<>|=?biufcOUSVTmM8[]()0123456789,:sDY ", max_size=12)
    | st.sampled_from(["|b1", "<i8", "<f8", "|O", "<U3", "<M8[D]", "<m8[s]"]),
    st.lists(scalars, min_size=2, max_size=2) | scalars,
)
def test_labels_of_any_type_and_value_are_read_again_or_refused(kind, values):
    changed = json.loads(labelled_text())
    changed["labels"] = {"type": kind, "values": values}
    changed["checksum"] = _checksum(changed)
    try:
        again = loads(json.dumps(changed))
    except ModelFormatError:
        return
    assert json.loads(dumps(again))["labels"] == changed["labels"]


@pytest.mark.parametrize("path", ["encoder.features.3.value", "parameters.leaf_penalty"])
def test_whole_numbers_beyond_every_range_are_refused(document, path):
    with pytest.raises(ModelFormatError, match=r"features\[3\].value is|leaf_penalty must be"):
        loads(tampered(document, path, 10**400))


def test_what_has_no_json_form_is_refused_by_name(rows):
    class Mine(BinaryEncoder):
        pass

    class Own(OptimalSurvivalTree):
        pass

    X, y = rows
    with pytest.raises(TypeError, match="encoder is a Mine"):
        dumps(OptimalSurvivalTree(max_depth=1, encoder=Mine()).fit(X, y))
    with pytest.raises(TypeError, match="random_state is a RandomState"):
        dumps(OptimalSurvivalTree(max_depth=1, random_state=np.random.RandomState(0)).fit(X, y))
    with pytest.raises(TypeError, match="Own cannot be saved"):
        dumps(Own(max_depth=1).fit(X, y))


def test_a_model_of_another_class_is_refused(document):
    class Other(BaseEstimator):
        pass

    with pytest.raises(ModelFormatError, match="estimator is OptimalSurvivalTree; expected Other"):
        loads(json.dumps(document), Other)


def test_every_truncation_is_noticed(model, tmp_path):
    text = dumps(model)
    path = tmp_path / "model.json"
    for length in [0, 1, *range(2, len(text) - 2, 997), len(text) - 3]:
        path.write_text(text[:length], encoding="utf-8")
        with pytest.raises(ModelFormatError, match=r"model\.json: the file is truncated"):
            load_model(path)
    path.write_bytes(text.encode()[:100] + b"\xff" + text.encode()[100:])
    with pytest.raises(ModelFormatError, match="not UTF-8"):
        load_model(path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the file is not a JSON object"),
        ("{}", "format is missing"),
        ('{"format": "pickle"}', "format is not"),
        ('{"format": NaN}', "NaN"),
        ('{"format": "a", "format": "b"}', "format occurs twice"),
        ("[" * 100_000, "truncated or not JSON"),
        ('{"format": 1' + "0" * 5000 + "}", "truncated or not JSON"),
    ],
)
def test_other_json_is_refused(text, message):
    with pytest.raises(ModelFormatError, match=message):
        loads(text)


@pytest.mark.parametrize("version", [0, VERSION + 1, "1", 1.0, True, None])
def test_other_versions_are_refused(document, version):
    with pytest.raises(ModelFormatError, match=r"^version is"):
        loads(tampered(document, "version", version))


def test_every_field_is_needed_and_no_other_is_known(document):
    def objects(value, path=""):
        """Paths of all objects whose fields this package reads itself."""
        if path != "encoder" and isinstance(value, dict):
            yield path
            for key, inner in value.items():
                yield from objects(inner, f"{path}.{key}".strip("."))
        if path == "leaves":
            yield from (f"leaves.{k}" for k in range(len(value)))

    found = list(objects(document))
    assert {"", "parameters", "search", "baseline", "tree", "leaves.0"} <= set(found)
    for path in found:
        inner = document
        for key in filter(None, path.split(".")):
            inner = inner[int(key) if key.isdigit() else key]
        for name in inner:
            # Without it a file is one of no prior, and θ says that there was one.
            named = r"theta is not" if name == "regularisation" else re.escape(name)
            with pytest.raises(ModelFormatError, match=named):
                loads(tampered(document, f"{path}.{name}", ...))
        with pytest.raises(ModelFormatError, match="novelty"):
            loads(tampered(document, f"{path}.novelty", 1))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("estimator", "os.system", "estimator is 'os.system'"),
        ("estimator", ["OptimalSurvivalTree"], "estimator is not a string"),
        ("parameters.max_depth", -1, "parameters: max_depth"),
        ("parameters.max_depth", [3], "parameters.max_depth is a list"),
        ("parameters.encoder", {"evil": {}}, "parameters.encoder.BinaryEncoder is missing"),
        ("parameters.leaf_curve", "weibull", "parameters: leaf_curve"),
        ("encoder", {}, "encoder"),
        ("encoder.features", lambda features: features[:1], r"tree\.feature\[\d\] is \d+ of 1"),
        ("search.objective_value", "0.5", "search.objective_value is not a finite number"),
        ("search.objective_value", -0.5, "search.lower_bound contradicts"),
        ("search.lower_bound", 99.0, "search.lower_bound contradicts"),
        ("search.lower_bound", 0.0, "search.lower_bound contradicts"),
        ("search.status", "proven", "search.status is 'proven'"),
        ("search.n_nodes_explored", 1.5, "search.n_nodes_explored is not an integer"),
        ("search.trace", [[0.0, 1.0]], r"search.trace\[0\] is not 3 finite numbers"),
        ("baseline.unique_times.0", -1.0, r"baseline.unique_times\[0\] is -1.0"),
        ("baseline.unique_times.1", 0.0, r"baseline.unique_times\[1\]"),
        ("baseline.unique_times.0", None, r"baseline.unique_times\[0\] is not a finite number"),
        ("baseline.unique_times", 3.0, "baseline.unique_times is not a list"),
        ("baseline.event_times", [], "baseline.event_times is empty"),
        ("baseline.event_times.0", 0.25, "baseline.event_times"),
        ("baseline.event_times", lambda times: times[1:], "baseline.cumulative_hazard rises"),
        ("baseline.cumulative_hazard.5", 1e6, r"baseline.cumulative_hazard\[6\] is not monotone"),
        ("baseline.cumulative_hazard", lambda hazard: hazard[:-1], "one value per time"),
        ("tree.children_left.0", 0, r"tree.children_left\[0\] is 0"),
        ("tree.children_left.0", 10**9, r"tree.children_left\[0\] is 1000000000"),
        ("tree.children_left.0", 2**63, r"tree.children_left\[0\] is not an integer"),
        ("tree.children_right.0", 1, r"tree.children_right\[0\] is 1"),
        ("tree.children_right.1", 0, r"tree.children_right\[1\] is 0"),
        ("tree.children_left", [-1], "tree.children_right has shape"),
        ("tree.feature.0", 10**6, r"tree.feature\[0\] is 1000000 of"),
        ("tree.feature.0", -5, r"tree.feature\[0\] is -5"),
        ("tree.feature.0", 1.0, r"tree.feature\[0\] is not an integer"),
        ("tree.feature.2", 0, r"tree.feature\[2\] is 0 at a leaf"),
        ("tree.n_node_samples.1", 1, "tree.n_node_samples of a node"),
        ("tree.weighted_n_node_samples.0", 1e9, "tree.weighted_n_node_samples of a node"),
        ("leaves", lambda leaves: leaves[1:], "leaves has 3 entries for 4 leaves"),
        ("leaves.0", 7, r"leaves\[0\] is not a JSON object"),
        ("leaves.0.node", 0, r"leaves\[0\].node contradicts"),
        ("leaves.1.n_samples", 1, r"leaves\[1\].n_samples contradicts"),
        ("leaves.1.n_events", 10**6, r"leaves\[1\].n_events contradicts"),
        ("leaves.1.weight", 1.0, r"leaves\[1\].weight contradicts"),
        ("leaves.1.events", 1e6, r"leaves\[1\].events contradicts"),
        ("leaves.1.hazard", 0.0, r"leaves\[1\].hazard contradicts"),
        ("leaves.2.theta", lambda theta: theta * (1 + 1e-15), r"leaves\[2\].theta is not events"),
        ("leaves.2.theta", float("inf"), "Infinity, which is not JSON"),
        ("leaves.0.event_times", lambda times: times[:-1], r"leaves\[0\].kaplan_meier contradicts"),
        ("leaves.0.event_times.0", 0.125, r"leaves\[0\].event_times contradicts"),
        ("leaves.0.kaplan_meier.0", 1.5, r"leaves\[0\].kaplan_meier\[0\] is 1.5, outside \[0, 1\]"),
        ("leaves.0.kaplan_meier.1", 1.0, r"leaves\[0\].kaplan_meier\[1\] is not monotone"),
        ("leaves.0.kaplan_meier.0", 1.0, r"leaves\[0\].kaplan_meier does not go with nelson"),
        ("leaves.0.nelson_aalen.0", 0.0, r"leaves\[0\].kaplan_meier does not go with nelson"),
        ("leaves.0.kaplan_meier.0", float("nan"), "NaN, which is not JSON"),
        ("leaves.0.kaplan_meier.0", "1", r"leaves\[0\].kaplan_meier\[0\] is not a finite number"),
        ("leaves.0.nelson_aalen.0", -1.0, r"leaves\[0\].nelson_aalen\[0\] is -1.0"),
        ("leaves.0.at_risk", lambda at_risk: at_risk[1:], r"leaves\[0\].at_risk contradicts"),
        ("leaves.0.at_risk.0", 0.0, r"leaves\[0\].at_risk contradicts"),
        ("leaves.0.at_risk.0", 1e6, r"leaves\[0\].at_risk contradicts"),
        ("leaves.0.nelson_aalen.0", 99.0, r"leaves\[0\].nelson_aalen\[1\] is not monotone"),
    ],
)
def test_tampered_fields_are_named(document, path, value, message):
    with pytest.raises(ModelFormatError, match=message):
        loads(tampered(document, path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("bristlecone", "9.9"),
        ("parameters.max_depth", 1),
        ("encoder.features.3.value", 1e6),
        ("encoder.features.3.condition", "<= 7"),
        ("encoder.parameters.min_support", 0.2),
        ("search.n_nodes_explored", 1),
        ("tree.feature.0", lambda feature: feature + 1),
        ("leaves.1.n_events", lambda events: events - 1),
        ("leaves.2.kaplan_meier.0", lambda survival: survival + 1e-12),
        ("checksum", "0" * 64),
    ],
)
def test_what_contradicts_nothing_is_found_by_the_checksum(document, path, value):
    with pytest.raises(ModelFormatError, match="checksum does not match"):
        loads(tampered(document, path, value))


def test_the_layout_of_the_file_is_free(model, document, rows):
    again = loads(json.dumps(document, indent=3, sort_keys=True, ensure_ascii=False))
    assert_same_predictions(model, again, rows[0])


def test_weights_of_any_scale_are_saved():
    # The least of them raise the baseline hazard by less than a rounding error.
    X, y = sample()
    weight = np.where(np.arange(len(X)) % 2, 1e-100, 1e100)
    model = OptimalSurvivalTree(max_depth=1).fit(X, y, sample_weight=weight)
    hazard = model.baseline_.cumulative_hazard[np.isin(model.unique_times_, model.event_times_)]
    assert (np.diff(hazard) == 0).any()
    assert_same_predictions(model, loads(dumps(model)), X)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_intervals_of_the_leaves_come_back(rows, weighted):
    X, y = rows
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if weighted else None
    model = OptimalSurvivalTree(max_depth=2).fit(X, y, sample_weight=weight)
    again = loads(dumps(model))
    assert again._leaf_facts() == model._leaf_facts()
    for ours, theirs in zip(again.leaf_statistics_, model.leaf_statistics_, strict=True):
        np.testing.assert_array_equal(
            ours.curve.confidence_interval(), theirs.curve.confidence_interval()
        )


def test_huge_numbers_are_not_infinite(document):
    text = json.dumps(document)
    changed = text.replace('"fit_time": ', '"fit_time": 1e999, "x": ', 1)
    assert changed != text
    with pytest.raises(ModelFormatError, match=r"search.fit_time is not a finite number"):
        loads(changed)


def test_event_times_of_baseline_and_leaves_must_agree(document):
    leaves = document["leaves"]
    kept = copy.deepcopy(leaves)
    for name in ("event_times", "kaplan_meier", "nelson_aalen", "at_risk"):
        for leaf in kept:
            leaf[name] = leaf[name][:-1]
    with pytest.raises(ModelFormatError, match=r"baseline.event_times are not"):
        loads(tampered(document, "leaves", kept))
