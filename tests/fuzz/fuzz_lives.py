"""Random estimators over odd columns: fitted, shown, saved, verified and fitted again."""

import pickle
import warnings

import numpy as np
from contract.studies import Study
from contract.subjects import EVERY, same
from fuzz_encoder import encoders, table, table_like
from matplotlib import pyplot
from sklearn.base import clone

from bristlecone import BinaryEncoder, export, plot, report, trust
from bristlecone.exceptions import BristleconeWarning
from bristlecone.tune import TreeSizeCV

# Parameters that are drawn here, or whose other values are for the rows of the contract alone.
KEPT = {"encoder", "verbose", "task", "cause_weights", "n_causes", "feature_costs", "cost_matrix"}


def lives(rng):
    """One estimator; whatever is computed twice is the same."""
    name = str(rng.choice(list(EVERY)))
    subject = EVERY[name]
    X = table(rng, int(rng.integers(12, 90)))
    y, rows = subject.outcome(rng, rng.normal(size=len(X)))
    study = Study(X, y, rows)
    if rng.random() < 0.4:
        study.rows["sample_weight"] = rng.choice([0.0, 0.5, 1.0, 3.0], len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        # Fonts lack letters of the column names; a fold may lack one of few rows of a class.
        warnings.filterwarnings("ignore", "Glyph")
        # Its axes cannot show the largest floats.
        warnings.filterwarnings("ignore", "overflow encountered", module="matplotlib")
        try:
            model = study.fit(estimator(rng, subject))
        except ValueError:
            return "refused"
        alike(rng, subject, model, study)
        shown(rng, model, study)
        if subject.searched:
            around(rng, model, study)
    return name


def estimator(rng, subject):
    """A small estimator with some other parameters, and one of many encoders."""
    names = [name for name in subject.other if name not in KEPT]
    chosen = {name: subject.other[name] for name in names if rng.random() < 0.25}
    if "encoder" in subject.other:
        if rng.random() < 0.3:
            encoder = BinaryEncoder(thresholds="all")
        else:
            encoder = encoders(rng).set_params(handle_unknown="ignore", max_features=8)
        categories = str(rng.choice(["levels", "risk"]))
        chosen["encoder"] = encoder.set_params(categories=categories)
    return subject.make(**chosen)


def alike(rng, subject, model, study):
    """Copies, files and a second fit predict the same numbers; the rows confirm the tree."""
    expected = subject.predicted(model, study.X)
    for values in expected.values():
        assert values.dtype.kind != "f" or not np.isnan(values).any()
    attempt(lambda: subject.predicted(model, table_like(rng, study.X)))
    same(subject.predicted(pickle.loads(pickle.dumps(model)), study.X), expected)
    same(subject.predicted(study.fit(clone(model)), study.X), expected)
    if "files" not in subject.cannot:
        loaded = type(model).from_json(model.to_json())
        same(subject.predicted(loaded, study.X), expected)
        assert loaded.to_json() == model.to_json()
        assert loaded.describe() == model.describe()
        verified(loaded, study)
    verified(model, study)


def verified(model, study):
    found = trust.verify(model, study.X, study.y, **study.rows)
    assert found.ok, found.failed


def shown(rng, model, study):
    """Texts, tables, pictures and exports are made, or refused with a reason."""
    assert repr(model) and model.describe()
    assert len(model.leaf_table()) == model.n_leaves_
    drawn = (
        lambda: plot.plot_tree(model),
        lambda: plot.plot_thresholds(model, study.X),
        lambda: plot.plot_leaf_curves(model),
        lambda: plot.plot_survival(model, study.X.iloc[:3]),
        lambda: plot.plot_calibration(model, study.X, study.y),
        lambda: plot.plot_trace(model),
    )
    attempt(drawn[rng.integers(len(drawn))])
    pyplot.close("all")
    attempt(lambda: report.html_report(model))
    for write in (export.export_text, export.export_dict, export.export_dot):
        assert write(model)
    for write in (export.export_rules, export.export_python, export.export_r, export.export_sql):
        attempt(lambda write=write: write(model, times=[1.0, 5.0]))
        attempt(lambda write=write: write(model))


def around(rng, model, study):
    """Sizes rise along the path; other estimates of the leaves are confirmed by the rows, too."""
    rows = (study.X, study.y)
    path = model.size_path(*rows, **study.rows)
    sizes = [tree.n_leaves_ for tree in path]
    assert sizes == sorted(sizes)
    if hasattr(model, "reestimate"):
        honest = attempt(lambda: model.reestimate(*rows, **study.rows))
        if honest is not None:
            verified(honest, study)
    others = (
        lambda: trust.stability(model, *rows, n_resamples=3, random_state=0, **study.rows),
        lambda: trust.alternatives(model, *rows, **study.rows),
        lambda: trust.near_optimal_trees(model, *rows, epsilon=0.05, limit=50, **study.rows),
        lambda: trust.threshold_gap(model, *rows, time_limit=0.2, **study.rows),
        lambda: TreeSizeCV(clone(model), cv=3).fit(*rows, **study.rows).describe(),
        lambda: model.estimate_cost(*rows, **study.rows),
    )
    attempt(others[rng.integers(len(others))])


def attempt(call):
    """The result, or None if it is refused with a reason."""
    try:
        return call()
    except (ValueError, TypeError) as refusal:
        assert str(refusal)
        return None
