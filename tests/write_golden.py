"""Write golden files of this version of the format, or the JSON Schema of the docs.

``python tests/write_golden.py schema`` after a change of what a file declares, and
``python tests/write_golden.py golden`` writes the files of new variants. It keeps existing files,
because a saved model must always load and predict the numbers next to it. Every version of the
format has its own folder. Once a release has written a version, no file of it is changed or
removed.
"""

import json
import sys
from inspect import cleandoc
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
from sklearn.linear_model import PoissonRegressor, Ridge

import bristlecone as bc
from bristlecone._model.document import VERSION, Model
from bristlecone._objectives.parity import CurveParity

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
SCHEMA = ROOT / "docs" / "model-schema.json"
# Rows to predict.
ROWS = 12


def golden_files(version=None):
    """Files of one version of the format, or of all."""
    return sorted(GOLDEN.glob(f"v{version or '*'}/*.json"))


def schema():
    """JSON Schema of saved models, as in the docs."""
    title = {"title": "A model saved by bristlecone", **msgspec.json.schema(Model)}
    for record in title["$defs"].values():
        # msgspec keeps the indentation of docstrings before version 0.23.
        if "description" in record:
            record["description"] = cleandoc(record["description"])
    return msgspec.json.format(msgspec.json.encode(title)) + b"\n"


rng = np.random.default_rng(0)
N = 60
X = pd.DataFrame({"Alter": rng.integers(40, 80, N) * 1.0, "dose": rng.normal(size=N).round(3)})
X["stage"] = rng.choice(["I", "II", "III"], N)
X["smoker"] = rng.random(N) < 0.5
X.loc[[2, 5, 31], "Alter"] = np.nan
NUMBERS = X[["dose"]].assign(whole=rng.integers(0, 9, N) * 1.0)
LIVED = np.ceil(30 * rng.exponential(size=N) / (1 + 2 * X["smoker"]))
FOLLOWED = np.ceil(rng.uniform(5, 60, N))
Y = np.array(
    list(zip(LIVED <= FOLLOWED, np.minimum(LIVED, FOLLOWED), strict=True)),
    dtype=[("event", bool), ("time", float)],
)
CAUSE = np.where(Y["event"], 1 + (np.arange(N) % 3 == 0), 0)
ENTERED = np.empty(N, dtype=[*Y.dtype.descr, ("entry", float)])
ENTERED["event"], ENTERED["time"], ENTERED["entry"] = Y["event"], Y["time"], Y["time"] // 3
WEIGHT = rng.integers(1, 5, N) / 2
GROUP = rng.choice(["f", "m"], N)
CODE = ((X["dose"] > 0).to_numpy() ^ (rng.random(N) < 0.2)).astype(int)
AMOUNT = (3 * X["dose"] + X["smoker"]).to_numpy()
TINY = {"max_depth": 2}


def labelled(labels, **parameters):
    labels = np.asarray(labels)
    return bc.OptimalTreeClassifier(**TINY, **parameters).fit(X, labels[CODE])


def soft(leaf, **more):
    tree = bc.SoftSurvivalTree(
        depth=1, leaf=leaf, n_restarts=1, random_state=0, solver_options={"tol": 1e-2}, **more
    )
    return tree.fit(X, Y, sensitive_features=GROUP if more else None)


def survival(**parameters):
    return bc.OptimalSurvivalTree(**TINY, **parameters)


VARIANTS = {
    "CompetingRisksTree": lambda: bc.CompetingRisksTree(**TINY).fit(X, (CAUSE, Y["time"])),
    "CompetingRisksTree-proportional": lambda: bc.CompetingRisksTree(
        **TINY, leaf_curve="proportional", shrinkage=2.0, cause_weights=[1.0, 0.5]
    ).fit(X, (CAUSE, Y["time"]), WEIGHT),
    "CompetingRisksTree-thinned": lambda: bc.CompetingRisksTree(**TINY, n_causes=3).fit(
        X, (CAUSE, Y["time"])
    ),
    "OptimalSurvivalTree-likelihood": lambda: survival().fit(X, Y),
    "OptimalSurvivalTree-array": lambda: survival(min_samples_leaf=5).fit(NUMBERS.to_numpy(), Y),
    "OptimalSurvivalTree-entry": lambda: survival(prior=2).fit(X, ENTERED),
    "OptimalSurvivalTree-weighted": lambda: survival(
        encoder=bc.BinaryEncoder(missing="branch", n_thresholds=4), shrinkage=2.0
    ).fit(X, Y, sample_weight=WEIGHT),
    "OptimalSurvivalTree-brier": lambda: survival(
        objective="brier", shrinkage=0, time_grid=[5.0, 10.0, 20.0, 40.0]
    ).fit(X, Y),
    "OptimalSurvivalTree-brier-shrunk": lambda: survival(objective="brier").fit(X, Y),
    "OptimalSurvivalTree-brier-optimal": lambda: survival(
        objective="brier", leaf_curve="brier-optimal", shrinkage=3.0
    ).fit(X, Y, sample_weight=WEIGHT),
    "OptimalSurvivalTree-fair": lambda: survival(fairness=bc.RmstParity(5.0, tau=30.0)).fit(
        X, Y, sensitive_features=GROUP
    ),
    "OptimalSurvivalTree-thinned": lambda: survival().fit(X, Y),
    "GreedySurvivalTree-numbers": lambda: bc.GreedySurvivalTree(encoder=None, **TINY).fit(
        NUMBERS, Y
    ),
    "GreedySurvivalTree-auto": lambda: bc.GreedySurvivalTree(encoder="auto", **TINY).fit(X, Y),
    **{
        f"SoftSurvivalTree-{leaf}": lambda leaf=leaf: soft(leaf)
        for leaf in ("log-logistic", "exponential", "weibull", "spline-ph", "spline-po")
    },
    "SoftSurvivalTree-fair": lambda: soft("weibull", fairness=CurveParity(0.01)),
    "OptimalTreeClassifier-text": lambda: labelled(["no", "yes"]),
    "OptimalTreeClassifier-integers": lambda: labelled([3, 7], class_weight={3: 1.0, 7: 2.5}),
    "OptimalTreeClassifier-booleans": lambda: labelled([False, True], objective="gini"),
    "OptimalTreeClassifier-objects": lambda: labelled(np.array(["a", "bc"], dtype=object)),
    "OptimalTreeClassifier-dates": lambda: labelled(
        np.array(["2020-02-29T12:00", "2021-01-01"], dtype="datetime64[s]")
    ),
    "OptimalTreeClassifier-durations": lambda: labelled(np.array([-5, 7], dtype="timedelta64[h]")),
    "OptimalTreeClassifier-balanced": lambda: labelled(
        [0.0, 2.0], objective="balanced-accuracy", shrinkage=2.0
    ),
    "CostSensitiveTreeClassifier-prices": lambda: bc.CostSensitiveTreeClassifier(
        cost_matrix=[[0.0, 1.0], [4.0, 0.0]],
        feature_costs={
            "Alter": {"cost": 0.01, "group": "form", "discounted_cost": 0.005},
            "stage": {"cost": 0.02, "group": "form", "discounted_cost": 0.01},
        },
        **TINY,
    ).fit(X, CODE),
    "FairTreeClassifier-parity": lambda: bc.FairTreeClassifier(
        fairness=bc.DemographicParity(0.2), **TINY
    ).fit(X, CODE, sensitive_features=GROUP),
    "FairTreeClassifier-demographic": lambda: bc.FairTreeClassifier(
        fairness=bc.DemographicParity(0.2, sensitive_feature="smoker"), **TINY
    ).fit(X, CODE),
    "FairTreeClassifier-opportunity": lambda: bc.FairTreeClassifier(
        fairness=bc.EqualityOfOpportunity(0.2), **TINY
    ).fit(X, CODE, sensitive_features=GROUP),
    "FairTreeClassifier-odds": lambda: bc.FairTreeClassifier(
        fairness=bc.EqualizedOdds(0.3), class_weight="balanced", **TINY
    ).fit(X, CODE, WEIGHT, sensitive_features=np.resize(["ash", "elm", "oak"], N)),
    "PolicyTree-capacities": lambda: bc.PolicyTree(
        reward="inverse-propensity", capacities={"new": 0.6}, **TINY
    ).fit(
        X,
        AMOUNT,
        treatment=np.where(rng.random(N) < 0.5, "new", "old"),
        propensity=np.full(N, 0.5),
    ),
    "PolicyTree-horizon": lambda: bc.PolicyTree(horizon=12.0, **TINY).fit(X, Y, treatment=GROUP),
    "OptimalSurvivalTree-taught": lambda: survival(teacher="auto").fit(X, Y),
    "GreedySurvivalTree-taught": lambda: bc.GreedySurvivalTree(
        teacher=PoissonRegressor(), teacher_weight=1.0, **TINY
    ).fit(NUMBERS, Y),
    "OptimalTreeClassifier-taught": lambda: labelled(["no", "yes"], teacher="auto"),
    "CostSensitiveTreeClassifier-taught": lambda: bc.CostSensitiveTreeClassifier(
        teacher="auto", random_state=7, **TINY
    ).fit(X, CODE),
    "OptimalTreeRegressor-taught": lambda: bc.OptimalTreeRegressor(
        teacher=Ridge(), leaf_penalty=0.01, **TINY
    ).fit(NUMBERS, AMOUNT),
    "OptimalTreeRegressor-categories": lambda: bc.OptimalTreeRegressor(
        **TINY, encoder=bc.BinaryEncoder(max_categories=2)
    ).fit(X, AMOUNT + 5 * (X["stage"] == "II")),
    "OptimalTreeRegressor-means": lambda: bc.OptimalTreeRegressor(**TINY).fit(X, AMOUNT),
    "OptimalTreeRegressor-rates": lambda: bc.OptimalTreeRegressor(
        objective="poisson", shrinkage=2.0, **TINY
    ).fit(X, np.arange(N) % 4, exposure=1.0 + np.arange(N) % 3),
    "OptimalTreeRegressor-shrunk": lambda: bc.OptimalTreeRegressor(shrinkage=4.0, **TINY).fit(
        X, AMOUNT
    ),
}


def numbers(model, table):
    """All predictions of a model for the rows of a table, as plain JSON types."""
    reported = {"apply": model.apply(table).tolist(), "predict": plain(model.predict(table))}
    if hasattr(model, "predict_survival_function"):
        times = [0.0, 3.0, 10.0, 25.0, 70.0]
        reported["survival"] = model.predict_survival_function(table, times=times).tolist()
        if hasattr(model, "predict_cumulative_incidence"):
            incidence = model.predict_cumulative_incidence(table, 2, times=times)
            reported["incidence"] = incidence.tolist()
    if hasattr(model, "predict_cumulative_hazard_function"):
        hazard = model.predict_cumulative_hazard_function(table, times=times)
        reported["cumulative_hazard"] = hazard.tolist()
        reported["rmst"] = model.predict_rmst(table, 30.0).tolist()
        reported["quartile"] = plain(model.predict_quantile(table, 0.25))
    if hasattr(model, "predict_proba"):
        reported["proba"] = model.predict_proba(table).tolist()
    reported["objective_value"] = model.objective_value_
    reported["n_node_samples"] = model.tree_.n_node_samples.tolist()
    return reported


def plain(values):
    """Finite numbers unchanged; inf, which JSON lacks, and other values as text."""
    if values.dtype.kind != "f":
        return values.astype(str).tolist()
    return [value if np.isfinite(value) else None for value in values.tolist()]


def write_golden():
    """Write the variants that do not exist yet."""
    folder = GOLDEN / f"v{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in VARIANTS.items():
        path = folder / f"{name}.json"
        if path.exists():
            continue
        model = make()
        points = 5 if name.endswith("thinned") else None
        bc.save_model(model, path, curve_points=points)
        table = NUMBERS if hasattr(model, "encoder") and model.n_features_in_ == 2 else X
        rows = table.iloc[:ROWS].astype(object)
        beside = {
            "named": hasattr(model, "feature_names_in_"),
            "rows": json.loads(rows.where(rows.notna(), None).to_json(orient="split", index=False)),
            "numbers": numbers(bc.load_model(path), table_of(table.iloc[:ROWS], model)),
        }
        text = json.dumps(beside, ensure_ascii=False) + "\n"
        path.with_suffix(".numbers").write_text(text, encoding="utf-8")
        print(path.name, path.stat().st_size)


def table_of(table, model):
    """The table with or without names, as for the fit of the model."""
    return table if hasattr(model, "feature_names_in_") else table.to_numpy()


if __name__ == "__main__":
    if sys.argv[1:] == ["schema"]:
        SCHEMA.write_bytes(schema())
    elif sys.argv[1:] == ["golden"]:
        write_golden()
    else:
        sys.exit(__doc__)
