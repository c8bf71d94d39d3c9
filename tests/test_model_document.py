"""The schema of saved models: what is read back, and errors that name the entry."""

import copy
import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from model_values import KINDS, classes, greedy, model_of, policy, soft, step
from write_golden import schema

from bristlecone._data.records import within
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.design import DesignEncoder
from bristlecone._encoder.records import BinaryRecord, DesignRecord
from bristlecone._leaves.base import SurvivalLeaves
from bristlecone._model import document
from bristlecone.exceptions import ModelFormatError

SCHEMA = Path(__file__).parents[1] / "docs" / "model-schema.json"

ENCODERS = {
    BinaryRecord: BinaryEncoder,
    DesignRecord: DesignEncoder,
}


def restored(text, parameters):
    """Tree, leaves and certificate of a file's text, as in a loaded model."""
    model = document.parse(text)
    kinds = {
        BinaryRecord: BinaryEncoder,
        DesignRecord: DesignEncoder,
    }
    with within("encoder"):
        encoder = kinds[type(model.encoder)]._from_record(model.encoder)
    with within("tree"):
        tree = model.tree.value(encoder)
    with within("certificate"):
        certificate = model.certificate.value(parameters, encoder)
    with within("leaves"):
        leaves = model.leaves.value(tree, certificate)
    document.check_sum(model)
    return tree, leaves, certificate


def same(one, other):
    """Whether two fitted values are equal in every field, arrays to the last bit."""
    assert type(one) is type(other)
    for field in fields(one):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(ours, np.ndarray):
            assert ours.dtype == theirs.dtype, field.name
            np.testing.assert_array_equal(ours, theirs, err_msg=field.name)
        elif isinstance(ours, tuple) and ours and hasattr(ours[0], "__dataclass_fields__"):
            for a, b in zip(ours, theirs, strict=True):
                same(a, b)
        elif hasattr(ours, "__dataclass_fields__"):
            same(ours, theirs)
        elif not (field.name == "model" and type(ours) is type(theirs)):
            assert ours == theirs, field.name


@pytest.mark.parametrize("kind", KINDS)
def test_tree_leaves_and_certificate_come_back_to_the_last_bit(kind):
    parts, rows = KINDS[kind]()
    text = document.write(model_of(*parts))
    tree, leaves, certificate = restored(text, parts[4].parameters)
    same(tree, parts[1])
    same(certificate, parts[4])
    same(leaves, parts[2])
    located = [x.locate(tree.leaf_index(rows), rows) for x in (leaves, parts[2])]
    if isinstance(leaves, SurvivalLeaves):
        times = np.linspace(0, 100, 21)
        np.testing.assert_array_equal(
            leaves.survival(located[0], times), parts[2].survival(located[1], times)
        )
        np.testing.assert_array_equal(leaves.risk(located[0]), parts[2].risk(located[1]))
    else:
        np.testing.assert_array_equal(leaves.predict(located[0]), parts[2].predict(located[1]))
    assert leaves.facts() == parts[2].facts()
    again = type(parts[3])._from_record(document.parse(text).encoder)
    assert again._to_record() == parts[3]._to_record()


def test_texts_are_the_same_whenever_they_are_written():
    assert document.write(model_of(*step()[0])) == document.write(model_of(*step()[0]))


def written(parts):
    return json.loads(document.write(model_of(*parts)))


@pytest.mark.parametrize(
    "make", [step, KINDS["brier-optimal shrunk"], greedy, soft, classes, policy, KINDS["means"]]
)
def test_every_field_is_needed_of_its_type_and_no_other_is_known(make):
    parts = make()[0]
    whole = written(parts)

    def objects(value, path):
        if isinstance(value, dict):
            yield path, value
            for name, inner in value.items():
                yield from objects(inner, f"{path}.{name}".strip("."))
        elif isinstance(value, list):
            for k, inner in enumerate(value[:2]):
                yield from objects(inner, f"{path}[{k}]")

    # Values of any kind under any name.
    free = {"parameters", "certificate.settings", "certificate.facts", "leaves.prepared"}
    found = [(path, value) for path, value in objects(whole, "") if path not in free]
    assert len(found) >= 8
    for path, value in found:
        for name in list(value):
            full = f"{path}.{name}".strip(".")
            inside = full.startswith("parameters.")
            kept = value.pop(name)
            with pytest.raises(ModelFormatError, match=re.escape(full) + " is missing|^parameters"):
                restored(json.dumps(whole), parts[4].parameters)
            value[name] = [7, {}] if isinstance(kept, str | float | int | None) else "novel"
            with pytest.raises(ModelFormatError) as error:
                restored(json.dumps(whole), parts[4].parameters)
            assert inside or full in str(error.value) or name in ("format", "version", "type")
            value[name] = kept
        value["novelty"] = 1
        with pytest.raises(ModelFormatError, match=r"novelty is not known|^parameters\."):
            restored(json.dumps(whole), parts[4].parameters)
        del value["novelty"]
    restored(json.dumps(whole), parts[4].parameters)


def tampered(parts, path, value):
    """Text with one entry changed, or removed if the value is ``...``."""
    changed = copy.deepcopy(written(parts))
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    inner = changed
    for key in parents:
        inner = inner[key]
    inner[last] = value(inner[last]) if callable(value) else value
    return json.dumps(changed)


STEP = [
    ("tree.children_left.0", 0, r"^tree\.children_left\[0\] is 0"),
    ("tree.children_left.0", 10**9, r"^tree\.children_left\[0\] is 1000000000"),
    ("tree.children_left.0", 2**63, r"^tree\.children_left has an integer of more than 64"),
    ("tree.children_right.0", 1, r"^tree\.children_right\[0\] is 1"),
    ("tree.children_left", [-1], r"^tree\.children_right has shape"),
    ("tree.feature.0", 10**6, r"^tree\.feature\[0\] is 1000000 of"),
    ("tree.feature.0", 1.0, r"^tree\.feature\[0\] is float; expected int"),
    ("tree.feature.2", 0, r"^tree\.feature\[2\] is 0 at a leaf"),
    ("tree.n_node_samples.1", 1, r"^tree\.n_node_samples of a node"),
    ("tree.n_node_samples.1", -1, r"^tree\.n_node_samples\[1\] is not int >= 0"),
    ("tree.weighted_n_node_samples.0", 1e9, r"^tree\.weighted_n_node_samples of a node"),
    ("tree.improvement", [0.0], r"^tree\.improvement has shape"),
    ("tree.type", "oak", r"^tree\.type is 'oak'"),
    ("leaves.rows.times.0", -1.0, r"^leaves\.rows\.times\[0\] is -1.0"),
    ("leaves.rows.times.1", 0.0, r"^leaves\.rows\.times\[1\]"),
    ("leaves.rows.times.0", None, r"rows\.times\[0\] is null; expected"),
    (
        "leaves.estimates.baseline.event_times",
        [],
        r"^leaves\.estimates\.baseline\.event_times is empty",
    ),
    ("leaves.estimates.baseline.event_times", lambda times: times[1:], r"cumulative_hazard rises"),
    (
        "leaves.estimates.baseline.cumulative_hazard.5",
        1e6,
        r"cumulative_hazard\[6\] is not monotone",
    ),
    (
        "leaves.estimates.baseline.cumulative_hazard",
        lambda hazard: hazard[:-1],
        "one value per time",
    ),
    (
        "leaves.estimates.leaves",
        lambda x: x[1:],
        r"^leaves\.estimates\.leaves has 2 entries for 3 leaves",
    ),
    ("leaves.estimates.leaves.0", 7, r"^leaves\.estimates\.leaves\[0\] is int; expected object"),
    ("leaves.estimates.leaves.0.node", 0, r"^leaves\.estimates\.leaves\[0\]\.node contradicts"),
    ("leaves.estimates.leaves.1.n_samples", 1, r"leaves\[1\]\.n_samples contradicts"),
    ("leaves.estimates.leaves.1.n_events", 10**6, r"leaves\[1\]\.n_events contradicts"),
    ("leaves.estimates.leaves.1.weight", 1.0, r"leaves\[1\]\.weight contradicts"),
    ("leaves.estimates.leaves.1.events", 1e6, r"leaves\[1\]\.events contradicts"),
    ("leaves.estimates.leaves.1.hazard", 0.0, r"leaves\[1\]\.hazard contradicts"),
    (
        "leaves.estimates.leaves.2.theta",
        lambda theta: theta * (1 + 1e-15),
        r"^leaves\.estimates\.leaves\[2\]\.theta is not events",
    ),
    ("leaves.estimates.leaves.2.theta", 10**400, r"leaves\[2\]\.theta is not a finite number"),
    ("leaves.estimates.leaves.0.event_times", lambda x: x[:-1], r"\[0\]\.kaplan_meier contradicts"),
    ("leaves.estimates.leaves.0.event_times.0", 0.125, r"\[0\]\.event_times contradicts"),
    (
        "leaves.estimates.leaves.0.kaplan_meier.0",
        1.5,
        r"kaplan_meier\[0\] is 1.5, outside \[0, 1\]",
    ),
    ("leaves.estimates.leaves.0.kaplan_meier.1", 1.0, r"kaplan_meier\[1\] is not monotone"),
    ("leaves.estimates.leaves.0.kaplan_meier.0", 1.0, r"kaplan_meier does not go with nelson"),
    ("leaves.estimates.leaves.0.kaplan_meier.0", "1", r"kaplan_meier\[0\] is str; expected float"),
    ("leaves.estimates.leaves.0.nelson_aalen.0", -1.0, r"nelson_aalen\[0\] is -1.0"),
    ("leaves.estimates.leaves.0.at_risk", lambda x: x[1:], r"\[0\]\.at_risk contradicts"),
    ("leaves.estimates.leaves.0.at_risk.0", 1e6, r"\[0\]\.at_risk contradicts"),
    ("leaves.estimates.leaves.0.brier_times", [1.0], r"\[0\]\.brier_times contradicts the curve"),
    ("leaves.curve", "weibull", r"^leaves\.curve is 'weibull'"),
    ("leaves.prior", -1.0, r"^leaves\.prior is not float >= 0"),
    ("leaves.type", "means", r"^leaves\."),
    ("certificate.status", "proven", r"^certificate\.status is 'proven'"),
    ("certificate.status", "infeasible", r"^certificate\.status is 'infeasible'"),
    ("certificate.lower_bound", 99.0, r"^certificate\.lower_bound contradicts"),
    ("certificate.lower_bound", 0.0, r"^certificate\.lower_bound contradicts"),
    ("certificate.objective_value", None, r"^certificate\.objective_value is null"),
    ("certificate.trace", [[1.0, 2.0]], r"^certificate\.trace is not 3 numbers"),
    ("certificate.trace", [[1.0, 2.0, 1.0], [1.0]], r"^certificate\.trace has points of diff"),
    ("certificate.n_nodes_explored", 1.5, r"^certificate\.n_nodes_explored is float"),
    ("certificate.n_nodes_explored", 2**63, r"^certificate\.n_nodes_explored is not"),
    ("certificate.status", "reference_optimal", r"^certificate\.status needs a reference_loss"),
    ("certificate.groups.values", [1.0], r"^certificate\.groups\.values has 1"),
    ("certificate.groups.groups.type", "<c16", r"^certificate\.groups\.groups\.type is '<c16'"),
    ("encoder.features.0.value", 10**400, r"^encoder\.features\[0\]\.value is not a finite"),
    ("encoder.features.0.column", "nope", r"^encoder\.features\[0\] asks for a"),
    ("encoder.columns.0.kind", "odd", r"^encoder\.columns\[0\]\.kind is 'odd'"),
    ("estimator", "os.system", "^estimator is 'os.system'"),
    ("estimator", ["OptimalSurvivalTree"], "^estimator is array; expected str"),
    ("parameters.encoder", {"evil": {}}, r"^parameters\.encoder\.type is missing"),
    ("parameters.encoder", {"type": "evil"}, r"^parameters\.encoder\.type is 'evil'"),
    ("parameters.shrinkage", 3.0, r"checksum"),
    ("bristlecone", "9.9", "checksum does not match"),
    ("certificate.aim", "", "checksum does not match"),
    ("leaves.estimates.leaves.1.n_events", lambda events: events - 1, "checksum does not match"),
    ("checksum", "0" * 64, "checksum does not match"),
]


@pytest.mark.parametrize(("path", "value", "message"), STEP)
def test_tampered_fields_are_named(path, value, message):
    parts = step(weighted=True)[0]
    with pytest.raises(ModelFormatError, match=message):
        restored(tampered(parts, path, value), parts[4].parameters)


@pytest.mark.parametrize(
    ("make", "path", "value", "message"),
    [
        ("brier-optimal", "leaves.estimates.leaves.0.brier_times", None, "brier_times contradicts"),
        (
            "brier-optimal",
            "leaves.estimates.leaves.0.brier_survival",
            None,
            "brier_survival does not go",
        ),
        ("brier-optimal", "leaves.estimates.leaves.0.brier_survival.0", 1.0, "without a fall"),
        (
            "brier-optimal",
            "leaves.estimates.leaves.0.brier_times.0",
            0.5,
            "not part of the training",
        ),
        ("brier-optimal shrunk", "leaves.shrunk", None, r"^leaves\.shrunk contradicts"),
        ("brier-optimal shrunk", "leaves.shrunk.hazard.0.0", 2.0, "shrunk.hazard is outside"),
        ("brier-optimal shrunk", "leaves.shrunk.times.0", 0.5, "shrunk.times are not those"),
        ("brier-optimal shrunk", "leaves.shrunk.hazard.0", [1.0], r"hazard\[0\] has 1 numbers"),
        ("brier-optimal shrunk", "leaves.shrinkage", 0.0, "shrinkage is not the parameter"),
        ("classes", "leaves.label.0", 2, r"^leaves\.label counts beyond 2 labels"),
        ("classes", "leaves.label", [0], r"^leaves\.label has 1 integers; expected 3"),
        ("classes", "leaves.values.0", [1.0], r"^leaves\.values\[0\] has 1 numbers; expected 2"),
        ("classes", "leaves.values.0", [0.0, 0.0], r"^leaves\.values of a leaf are all zero"),
        ("priced", "leaves.price.0", -1.0, r"^leaves\.price\[0\] is not float >= 0"),
        ("priced", "leaves.price", [1.0], r"^leaves\.price has 1 numbers"),
        ("means", "leaves.variance.0", -1.0, r"^leaves\.variance\[0\] is not float >= 0"),
        ("means", "leaves.mean", [1.0], r"^leaves\.mean has 1 numbers; expected 3"),
        (
            "means",
            "leaves.rates",
            {"count": [], "exposure": [], "size": None},
            "rates do not match",
        ),
        ("rates", "leaves.rates", None, r"^leaves\.rates do not match the objective"),
        ("rates", "leaves.rates.count", [1.0], r"^leaves\.rates\.count has 1 numbers; expected 3"),
        ("rates", "leaves.rates.exposure.1", 0.0, r"^leaves\.rates\.exposure of a leaf is zero"),
        ("rates", "leaves.rates.size", [1.0], r"^leaves\.rates\.size has 1 numbers; expected 3"),
        ("rates", "leaves.rates.size", None, r"^leaves\.rates\.size does not match the shrinkage"),
        ("means", "leaves.quantiles.0.3", -9.0, r"^leaves\.quantiles of a leaf fall"),
        ("means", "leaves.quantiles.1", [1.0], r"^leaves\.quantiles\[1\] has 1 numbers"),
        (
            "kaplan-meier",
            "leaves.rows.leaves.0.times.0",
            0,
            r"rows\.leaves\[0\]\.times\[0\] is not int",
        ),
        ("kaplan-meier", "leaves.rows.leaves.0.times.0", 10**6, r"leaves\[0\]\.times goes beyond"),
        ("kaplan-meier", "leaves.rows.leaves.0.times.0", 2**62, r"leaves\[0\]\.times goes beyond"),
        (
            "kaplan-meier",
            "leaves.rows.leaves.0.times",
            lambda steps: [2**63 - 1, 2**63 - 1, 4, *steps[3:]],
            r"leaves\[0\]\.times goes beyond",
        ),
        ("kaplan-meier", "leaves.rows.leaves.0.events", [1], r"leaves\[0\]\.events has 1 integers"),
        (
            "kaplan-meier",
            "leaves.rows.leaves.0.censored.0",
            2**63 - 1,
            r"censored are not the rows",
        ),
        (
            "kaplan-meier",
            "leaves.rows.leaves",
            lambda x: x[:2],
            r"rows\.leaves has 2 entries for 3",
        ),
        ("entry", "leaves.estimates", None, r"^leaves\.estimates are missing: rows have entry"),
        ("entry", "leaves.rows.leaves.0.entry_times", [1.0], r"entry_times has 1 numbers"),
        ("entry", "leaves.rows.leaves.0.entry_times.0", 99.0, r"entry_times do not ascend"),
        ("brier-optimal", "leaves.estimates", None, r"^leaves\.estimates are missing: rows have w"),
        ("kaplan-meier rows", "leaves.shrunk", {"times": [], "hazard": []}, "shrunk needs estim"),
        ("means", "leaves.shrinkage", 1.0, r"^leaves\.shrinkage is not the parameter"),
        ("greedy", "certificate.lower_bound", 0.1, "lower_bound is of a tree that was not"),
        ("weibull", "certificate.trace", [[2.0], [2.5]], r"^certificate\.trace rises"),
        ("weibull", "certificate.facts", {}, r"facts\.restart_objectives is missing"),
        ("greedy", "certificate.facts.errors", [1.0], r"^certificate\.facts\.errors"),
        ("weibull", "certificate.facts.converged", "x", r"facts\.converged is str; expected bool"),
        ("weibull", "certificate.facts.restart_objectives", 2.0, r"facts\.restart_objectives is"),
        (
            "greedy",
            "certificate.facts.thresholds",
            "all",
            r"facts\.thresholds is str; expected int",
        ),
        ("greedy", "certificate.facts.curve_error", -0.1, r"facts\.curve_error is not float >= 0"),
        ("greedy", "certificate.settings.min_events_leaf", "five", r"settings\.min_events_leaf is"),
        (
            "greedy",
            "certificate.settings.min_samples_leaf",
            [1.0],
            r"settings\.min_samples_leaf is",
        ),
        ("weibull", "certificate.settings", {}, r"^certificate\.settings\.l2 is not a number"),
        ("weibull", "certificate.settings.l2", -1.0, r"settings\.l2 is not a number of at least 0"),
        ("weibull", "certificate.settings.l2", 0.2, r"settings\.l2 is not the parameter"),
        ("weibull", "tree.depth", 30, r"^tree\.weights has 3 rows; expected 1073741823"),
        ("weibull", "tree.depth", 31, r"^tree\.depth is not int <= 30"),
        ("weibull", "tree.weights.0", [1.0], r"^tree\.weights\[0\] has 1 numbers"),
        ("weibull", "leaves.model", "gumbel", r"^leaves\.model is 'gumbel'"),
        ("weibull", "leaves.typical_linear", [1.0], r"^leaves\.typical_linear has 1 numbers"),
        (
            "weibull",
            "leaves.rows.leaves.0.events.0",
            9,
            r"leaves\[0\]\.events and censored are not",
        ),
        ("weibull", "leaves.prepared", {"knots": [1.0]}, r"^leaves\.prepared: "),
        ("spline-ph", "leaves.prepared.knots", [2.0, 1.0], r"^leaves\.prepared: knots must"),
        ("spline-ph", "leaves.shape.0", [1.0], r"^leaves\.shape\[0\] has 1 numbers"),
        ("weibull", "encoder.design.0.low", 1e9, r"^encoder\.design\[0\]\.high is not above low"),
        (
            "weibull",
            "encoder.design.0.column",
            "sort",
            r"^encoder\.design\[0\] does not fit",
        ),
    ],
)
def test_contradictions_of_every_kind_are_named(make, path, value, message):
    parts = KINDS[make]()[0]
    with pytest.raises(ModelFormatError, match=message):
        restored(tampered(parts, path, value), parts[4].parameters)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the whole is array; expected object"),
        ("{}", "format is missing"),
        ('{"format": "pickle", "version": 2}', "format is not"),
        ('{"format": NaN}', "not JSON"),
        ("[" * 100_000, "the whole is array|not JSON"),
        ('{"format": ' + "[" * 100_000, "truncated or not JSON"),
        ('{"format": 1' + "0" * 5000 + "}", "format is not"),
        ('{"format": "\\ud800"}', "truncated or not JSON"),
    ],
)
def test_other_json_is_refused(text, message):
    with pytest.raises(ModelFormatError, match=message):
        document.parse(text)


@pytest.mark.parametrize("version", [0, 1, 2, document.VERSION + 1, "3", 3.0, True, None])
def test_other_versions_are_refused(version):
    with pytest.raises(ModelFormatError, match=r"^version is .*; this release reads version 4"):
        document.parse(tampered(step()[0], "version", version))


def test_event_times_of_baseline_and_leaves_must_agree():
    parts = step(weighted=True)[0]

    def shorter(leaves):
        names = ("event_times", "kaplan_meier", "nelson_aalen", "at_risk")
        return [leaf | {name: leaf[name][:-1] for name in names} for leaf in leaves]

    with pytest.raises(
        ModelFormatError, match=r"^leaves\.estimates\.baseline\.event_times are not"
    ):
        restored(tampered(parts, "leaves.estimates.leaves", shorter), parts[4].parameters)


def test_names_that_occur_twice_are_refused():
    text = document.write(model_of(*step()[0]))
    for name in ("curve", "status", "n_thresholds", "estimator"):
        twice = re.sub(rf'("{name}": ?(?:"[^"]*"|\d+)),', r"\1,\1,", text, count=1)
        assert twice != text
        with pytest.raises(ModelFormatError, match=f"^{name} occurs twice"):
            document.parse(twice)


def test_every_truncation_is_noticed():
    text = document.write(model_of(*step()[0]))
    for length in [0, 1, *range(2, len(text) - 2, 397), len(text) - 3]:
        with pytest.raises(ModelFormatError, match="truncated or not JSON"):
            document.parse(text[:length])


def test_the_layout_of_the_file_and_the_spelling_of_numbers_are_free():
    parts = step()[0]
    whole = written(parts)
    loose = json.dumps(whole, indent=3, sort_keys=True, ensure_ascii=True)
    assert loose != document.write(model_of(*parts))
    restored(loose.replace('"seconds": 0.25', '"seconds": 25e-2'), parts[4].parameters)


def test_numbers_that_are_not_finite_are_not_written():
    parts = step(weighted=True)[0]
    leaves = copy.copy(parts[2])
    object.__setattr__(leaves.baseline, "cumulative_hazard", np.array([np.inf]))
    with pytest.raises(ValueError, match=r"cumulative_hazard.* is null"):
        model_of(*parts[:2], leaves, *parts[3:])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "parameter x is an object"),
        (np.random.RandomState(0), "parameter x is a RandomState"),
        ([1, object()], "parameter x is an object"),
        (np.inf, "parameter x is inf"),
        ({"a": object()}, "parameter x is an object"),
    ],
)
def test_what_has_no_json_form_is_refused_by_name(value, message):
    with pytest.raises(TypeError, match=message):
        document.plain_parameter("x", value)


def test_integers_beyond_64_bits_are_neither_written_nor_read():
    parts = step()[0]
    with pytest.raises(ModelFormatError, match="more than 64 bits"):
        restored(tampered(parts, "parameters.shrinkage", 10**30), {"shrinkage": "auto"})
    parts[4].parameters["shrinkage"] = 10**30
    with pytest.raises(ValueError, match="more than 64 bits"):
        model_of(*parts)


def test_the_schema_in_the_docs_is_current():
    assert SCHEMA.read_bytes() == schema(), "write it: python tests/write_golden.py schema"
