"""Saved models: their contents, and errors for wrong ones."""

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
from pace import slow_but
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from survival_rows import assert_same_predictions, sample
from tampering import numbers
from write_golden import golden_files

from bristlecone._data.records import read
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._estimators.classifier import OptimalTreeClassifier
from bristlecone._estimators.soft import SoftSurvivalTree
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.document import FORMAT, VERSION, Model, seal, write
from bristlecone._model.registry import dumps, load_model, loads, save_model
from bristlecone.exceptions import InvalidParameterError, ModelFormatError
from bristlecone.export import export_dict


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
    """Copy of the document with one entry changed, or removed if the value is ``...``."""
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


def signed(document):
    """JSON of a changed document, with the right checksum if one can be computed."""
    text = json.dumps(document)
    try:
        return write(seal(read(Model, text)))
    except ValueError:
        return text


def test_document_says_what_it_is_and_holds_no_training_rows(model, document, rows):
    assert (document["format"], document["version"]) == (FORMAT, VERSION)
    assert document["estimator"] == "OptimalSurvivalTree"
    assert document["parameters"] == model.get_params()
    assert str(rows[0]["x0"][3]) not in json.dumps(document)


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


ALIKE = {
    "number and text": {"a": [1, "1", "a"]},
    "flag, number and text": {"a": [True, "1", "True", 2]},
    "level and column of numbers": {"a": ["II", "I", "III"], "a = II": [0.5, 2.0, 1.5]},
    "level and column of flags": {"a": ["II", "I", "III"], "a = II": [True, False]},
    "missing and column of flags": {"a": ["x", "y", None], "a is missing": [True, False]},
}


@pytest.mark.parametrize("case", ALIKE)
@pytest.mark.parametrize(
    "kind",
    [
        SoftSurvivalTree(depth=1, solver_options={"max_iter": 5}, n_restarts=1, random_state=0),
        OptimalSurvivalTree(max_depth=2, min_events_leaf=1),
    ],
    ids=["soft", "optimal"],
)
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.FitConvergenceWarning")
def test_features_whose_names_read_alike_are_distinguished_in_files(kind, case, tmp_path):
    columns = {n: pd.Series((v * 60)[:60], dtype=object) for n, v in ALIKE[case].items()}
    rng = np.random.default_rng(0)
    X = pd.DataFrame(columns).iloc[rng.permutation(60)].reset_index(drop=True)
    model = clone(kind).fit(X, (rng.random(60) < 0.7, rng.exponential(size=60)))
    save_model(model, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if isinstance(model, SoftSurvivalTree):
        assert len(set(model.encoder_.names)) == len(model.encoder_.names) > 2


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


# On some systems the longest float has 64 bits.
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
        ("<M8[s]", ["2020-02-29T12:00:000", "2021-01-01T00:00:00"]),
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
    changed["leaves"]["labels"] = {"type": kind, "values": values}
    with pytest.raises(ModelFormatError, match=r"^leaves\.labels\.(type|values)"):
        loads(signed(changed))


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
    changed["leaves"]["labels"] = {"type": kind, "values": values}
    try:
        again = loads(signed(changed))
    except ModelFormatError:
        return
    assert json.loads(dumps(again))["leaves"]["labels"] == changed["leaves"]["labels"]


@pytest.mark.parametrize("path", ["encoder.features.3.value", "parameters.leaf_penalty"])
def test_whole_numbers_beyond_every_range_are_refused(document, path):
    with pytest.raises(ModelFormatError, match=r"features\[3\].value is|leaf_penalty must be"):
        loads(tampered(document, path, 10**400))


@pytest.mark.parametrize(
    "beyond", slow_but({10**400}, [10**30, 10**400, -(10**400)]), ids=["e30", "e400", "-e400"]
)
@pytest.mark.parametrize("path", golden_files(), ids=lambda path: path.stem)
def test_a_number_beyond_every_range_is_refused_wherever_it_stands(path, beyond):
    text = path.read_text(encoding="utf-8")
    for place, _ in numbers(json.loads(text)):
        if any(isinstance(key, int) and key > 1 for key in place):
            continue
        document = json.loads(text)
        above = document
        for key in place[:-1]:
            above = above[key]
        above[place[-1]] = beyond
        with pytest.raises(ModelFormatError):
            loads(json.dumps(document))


def test_what_has_no_json_form_is_refused_by_name(rows):
    class Mine(BinaryEncoder):
        pass

    class Own(OptimalSurvivalTree):
        pass

    X, y = rows
    with pytest.raises(TypeError, match="encoder is a Mine"):
        dumps(OptimalSurvivalTree(max_depth=1, encoder=Mine()).fit(X, y))
    with pytest.raises(TypeError, match="random_state is a module"):
        dumps(OptimalSurvivalTree(max_depth=1, random_state=np.random).fit(X, y))
    for other, name in ((5, "an int"), (BinaryEncoder().fit(X), "a BinaryEncoder")):
        with pytest.raises(TypeError, match=f"^{name} cannot be saved; only"):
            dumps(other)
    with pytest.raises(TypeError, match="the class OptimalSurvivalTree cannot be saved"):
        dumps(OptimalSurvivalTree)
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


def test_weights_of_any_scale_are_saved():
    # The smallest of them change the baseline hazard by less than a rounding error.
    X, y = sample()
    weight = np.where(np.arange(len(X)) % 2, 1e-100, 1e100)
    model = OptimalSurvivalTree(max_depth=1).fit(X, y, sample_weight=weight)
    hazard = model.baseline_.cumulative_hazard[np.isin(model.unique_times_, model.event_times_)]
    assert (np.diff(hazard) == 0).any()
    assert_same_predictions(model, loads(dumps(model)), X)


@pytest.mark.parametrize("unit", [2.0**53, 2.0**63, 1e300])
def test_whole_times_of_any_size_are_saved(unit):
    time = np.array([1.0, 2.0, 3.0, 4.0]) * unit
    tree = OptimalSurvivalTree(max_depth=1, min_events_leaf=None, prior=0)
    tree.fit([[0], [0], [1], [1]], ([True] * 4, time))
    again = loads(tree.to_json())
    np.testing.assert_array_equal(again.unique_times_, tree.unique_times_)
    np.testing.assert_array_equal(again.predict_median([[0], [1]]), tree.predict_median([[0], [1]]))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_intervals_of_the_leaves_come_back(rows, weighted):
    X, y = rows
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if weighted else None
    model = OptimalSurvivalTree(max_depth=2).fit(X, y, sample_weight=weight)
    again = loads(dumps(model))
    assert again.leaves_.facts() == model.leaves_.facts()
    for ours, theirs in zip(again.leaf_statistics_, model.leaf_statistics_, strict=True):
        np.testing.assert_array_equal(
            ours.curve.confidence_interval(), theirs.curve.confidence_interval()
        )


def test_only_the_four_fitted_values_are_kept(model):
    fitted = {name for name in vars(loads(dumps(model))) if name.endswith("_")}
    assert fitted == {"tree_", "leaves_", "encoder_", "certificate_"}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("parameters.max_depth", -1, "^parameters: max_depth"),
        ("parameters.max_depth", [3], "^parameters: max_depth"),
        ("parameters.leaf_curve", "weibull", "^parameters: leaf_curve"),
        ("parameters.max_depth", ..., "checksum does not match"),
        ("parameters.novelty", 1, r"^parameters\.novelty is not known"),
        ("parameters.max_depth", 1, "checksum does not match"),
        ("estimator", "OptimalTreeRegressor", "^leaves are not those of OptimalTreeRegressor"),
        ("estimator", "GreedySurvivalTree", r"^parameters\.\w+ is not known"),
        ("estimator", "OptimalTree", "^estimator is 'OptimalTree'; expected one of"),
        ("encoder.features", lambda features: features[:1], r"tree\.feature\[\d\] is \d+ of 1"),
        ("encoder.parameters.missing", "guess", r"^encoder\.parameters: missing"),
        ("certificate.n_samples", 1, r"^certificate\.n_samples is not that of the tree"),
        ("leaves.rows.leaves.2.events.0", 5, r"^leaves\.rows\.leaves\[2\]\.events and censored"),
    ],
)
def test_what_the_class_contradicts_is_named(document, path, value, message):
    with pytest.raises(ModelFormatError, match=message):
        loads(tampered(document, path, value))


def test_models_without_long_curves_are_saved_as_they_are(model):
    assert dumps(model, curve_points=1000) == dumps(model)
    model, _ = labelled(["no", "yes"])
    assert dumps(model, curve_points=1) == dumps(model)


def test_a_parameter_younger_than_the_file_has_its_default(document):
    older = copy.deepcopy(document)
    del older["parameters"]["verbose"]
    assert loads(signed(older)).verbose == 0


@pytest.mark.parametrize("objective", ["likelihood", "brier"])
def test_thinned_curves_say_how_far_they_are_off(objective, tmp_path):
    X, y = sample(600)
    model = OptimalSurvivalTree(max_depth=2, objective=objective).fit(X, y)
    path = tmp_path / "model.json"
    save_model(model, path, curve_points=8)
    thinner = load_model(path)
    times = np.arange(0, 1.2 * model.unique_times_[-1], 0.25)
    off = np.abs(
        model.predict_survival_function(X, times=times)
        - thinner.predict_survival_function(X, times=times)
    ).max()
    stated = thinner.certificate_.facts["curve_error"]
    assert 0 < off <= stated <= 1.1 * off
    assert f"off by at most {stated:.2g}" in thinner.describe()
    if objective == "likelihood":
        np.testing.assert_array_equal(model.predict(X), thinner.predict(X))
    assert model.to_json(curve_points=8) == path.read_text(encoding="utf-8")
    again = loads(thinner.to_json(curve_points=4))
    assert again.certificate_.facts["curve_error"] > stated
    assert again.describe().count("hinned to at most") == 1
    with pytest.raises(InvalidParameterError, match="curve_points"):
        save_model(model, path, curve_points=0)


def test_a_thinned_soft_tree_keeps_the_times_of_its_risk():
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(500, 3)), rng.exponential(size=500)
    model = SoftSurvivalTree(depth=1, n_restarts=1).fit(X, (rng.random(500) < 0.8, time))
    assert len(model.leaves_.event_times) > 200
    thinner = loads(dumps(model, curve_points=20))
    np.testing.assert_array_equal(thinner.leaves_.risk_times, model.leaves_.risk_times)
    np.testing.assert_array_equal(thinner.predict(X), model.predict(X))
    for whole, thin in zip(model.leaves_.statistics, thinner.leaves_.statistics, strict=True):
        # At its steps the curve is exact, and so is the error of log S.
        place = np.searchsorted(whole.event_times, thin.event_times, side="right") - 1
        np.testing.assert_array_equal(thin.kaplan_meier, whole.kaplan_meier[place])
        np.testing.assert_allclose(
            thin.curve.log_variance[:-1], whole.curve.log_variance[place][:-1], rtol=1e-9
        )
