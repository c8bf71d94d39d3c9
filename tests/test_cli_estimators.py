"""The command line fits, saves, shows and applies every estimator as Python does."""

import csv
import warnings

import numpy as np
import pandas as pd
import pytest
from command_line import refused, run, table_of

import bristlecone
from bristlecone import BinaryEncoder, EqualityOfOpportunity, EqualizedOdds, RmstParity
from bristlecone._cli.kinds import KINDS
from bristlecone._objectives.parity import CurveParity
from bristlecone.exceptions import BristleconeWarning
from bristlecone.export import export_text

N = 60
K = np.arange(N)
AGE = 40 + (K * 7) % 31
DRUG = np.array(["a", "b", "c"])[K % 3]
SICK = (AGE > 52) ^ (K % 7 == 0)
TABLE = pd.DataFrame(
    {
        "age": AGE,
        "drug": DRUG,
        "smokes": K % 2 == 0,
        "days": 1 + (K * 11) % 17 + 8 * (AGE < 50),
        "status": (K % 5 > 0).astype(int),
        "cause": np.where(K % 5 > 0, 1 + (AGE + K) % 2, 0),
        "stage": np.where(SICK, np.where(AGE > 62, "III", "II"), "I"),
        "ill": SICK,
        "code": np.where(SICK, 2, 10),
        "price": AGE * 1.5 + (DRUG == "b") * 20 + K % 3,
        "sex": np.array(["f", "m", "m", "f"])[K % 4],
        "arm": np.array([1, 2])[(K // 2) % 2],
        "gain": (AGE > 55) * ((K // 2) % 2) * 2.0 + K % 3,
        "p": np.where(K % 3 == 0, 0.4, 0.6),
        "q1": 0.25 + 0.5 * (K % 2),
        "q2": 0.75 - 0.5 * (K % 2),
        "v1": AGE / 30.0,
        "v2": AGE / 20.0,
        "w": 1 + K % 3,
        "never": 0,
        "below": -1,
    }
)
FEATURES = ["age", "drug", "smokes"]
TIMES = ("--time", "days", "--event", "status")


class Case:
    """Arguments of ``fit`` on the command line, and the same in Python."""

    def __init__(self, kind, arguments, parameters, y, fit=None):
        self.kind, self.arguments, self.parameters = kind, arguments, parameters
        self.y = (TABLE["status"] == 1, TABLE["days"]) if y is None else y
        if isinstance(y, str):
            self.y = TABLE[y]
        self.more = {
            name: TABLE[columns].to_numpy()
            for name, columns in {"sample_weight": "w", **(fit or {})}.items()
        }
        roles = [*TIMES, *arguments, "w"]
        self.features = [name for name in FEATURES if name not in roles]

    @property
    def predicts_survival(self):
        return KINDS[self.kind].predicts_survival and self.kind != "policy"

    @property
    def command(self):
        others = [c for c in TABLE.columns if c not in (*FEATURES, *map(str, self.arguments), "w")]
        return ("fit", "t.csv", "--estimator", self.kind, *self.arguments, "--weight", "w",
                "--drop", *others)  # fmt: skip

    def fitted(self):
        cls = getattr(bristlecone, KINDS[self.kind].cls)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BristleconeWarning)
            return cls(**self.parameters).fit(TABLE[self.features], self.y, **self.more)


CASES = {
    "survival": Case("survival", (*TIMES, "--max-depth", 2), {"max_depth": 2}, None),
    "survival, fair": Case(
        "survival",
        (*TIMES, "--sensitive", "sex", "--fairness-limit", 0.5, "--fairness-tau", 10,
         "--max-depth", 2, "--n-thresholds", 3),
        {"max_depth": 2, "fairness": RmstParity(0.5, tau=10.0),
         "encoder": BinaryEncoder(n_thresholds=3)},
        None,
        {"sensitive_features": "sex"},
    ),
    "greedy": Case(
        "greedy",
        (*TIMES, "--criterion", "logrank", "--min-events-leaf", "none", "--drop", "drug",
         "--encoder", "none"),
        {"criterion": "logrank", "min_events_leaf": None, "encoder": None},
        None,
    ),
    "competing-risks": Case(
        "competing-risks",
        ("--time", "days", "--event", "cause", "--max-depth", 2, "--cause-weights", 1, 0.5),
        {"max_depth": 2, "cause_weights": [1.0, 0.5]},
        (TABLE["cause"], TABLE["days"]),
    ),
    "soft": Case(
        "soft",
        (*TIMES, "--depth", 1, "--n-restarts", 1, "--random-state", 0, "--pooling", "none",
         "--l2", 0.5, "--sensitive", "sex", "--fairness-penalty", 0.01),
        {"depth": 1, "n_restarts": 1, "random_state": 0, "pooling": None, "l2": 0.5,
         "fairness": CurveParity(0.01)},
        None,
        {"sensitive_features": "sex"},
    ),
    "classifier": Case(
        "classifier",
        ("--target", "stage", "--objective", "gini", "--class-weight", "I=2", "III=3",
         "--shrinkage", 2, "--max-depth", 2),
        {"objective": "gini", "class_weight": {"I": 2.0, "III": 3.0}, "shrinkage": 2.0,
         "max_depth": 2},
        "stage",
    ),
    "classifier, numbers": Case(
        "classifier", ("--target", "code", "--class-weight", "10=5", "--max-depth", 1),
        {"class_weight": {10: 5.0}, "max_depth": 1}, "code",
    ),
    "cost-sensitive": Case(
        "cost-sensitive",
        ("--target", "ill", "--cost-matrix", "0,3", "1.5,0", "--feature-costs", "age=0.1",
         "drug=0.2", "--feature-groups", "age=visit", "drug=visit", "--feature-discounts",
         "drug=0.05", "--max-depth", 2),
        {"cost_matrix": [[0, 3], [1.5, 0]], "feature_costs": {
            "age": {"cost": 0.1, "group": "visit"},
            "drug": {"cost": 0.2, "group": "visit", "discounted_cost": 0.05}}, "max_depth": 2},
        "ill",
    ),
    "fair": Case(
        "fair",
        ("--target", "ill", "--sensitive", "sex", "--fairness-limit", 0.1, "--max-depth", 2,
         "--fairness", "equality-of-opportunity"),
        {"fairness": EqualityOfOpportunity(0.1), "max_depth": 2},
        "ill",
        {"sensitive_features": "sex"},
    ),
    "equalized odds": Case(
        "fair",
        ("--target", "ill", "--sensitive", "sex", "--fairness-limit", 0.2, "--max-depth", 2,
         "--fairness", "equalized-odds", "--class-weight", "balanced", "--min-samples-leaf", 3),
        {"fairness": EqualizedOdds(0.2), "class_weight": "balanced", "max_depth": 2,
         "min_samples_leaf": 3},
        "ill",
        {"sensitive_features": "sex"},
    ),
    "regressor": Case("regressor", ("--target", "price", "--max-depth", 2, "--n-jobs", 2),
                      {"max_depth": 2}, "price"),
    "policy": Case(
        "policy",
        ("--target", "gain", "--treatment", "arm", "--propensity", "q1", "q2",
         "--predicted-outcomes", "v1", "v2", "--capacity", "2=0.4", "--max-depth", 2),
        {"capacities": {2: 0.4}, "max_depth": 2},
        "gain",
        {"treatment": "arm", "propensity": ["q1", "q2"], "predicted_outcomes": ["v1", "v2"]},
    ),
    "policy, estimated": Case(
        "policy",
        ("--target", "gain", "--treatment", "arm", "--max-depth", 2, "--random-state", 3,
         "--min-propensity", 0.02),
        {"max_depth": 2, "random_state": 3, "min_propensity": 0.02},
        "gain",
        {"treatment": "arm"},
    ),
    "policy, censored": Case(
        "policy",
        (*TIMES, "--treatment", "sex", "--horizon", 12, "--estimand", "survival", "--max-depth", 2),
        {"horizon": 12.0, "estimand": "survival", "max_depth": 2},
        None,
        {"treatment": "sex"},
    ),
    "policy, one probability": Case(
        "policy",
        ("--target", "gain", "--treatment", "sex", "--propensity", "p", "--reward",
         "inverse-propensity", "--max-depth", 1),
        {"reward": "inverse-propensity", "max_depth": 1},
        "gain",
        {"treatment": "sex", "propensity": "p"},
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("t.csv", index=False)
    return tmp_path


def predictions(tree, X):
    """The columns that ``predict`` should write, from predictions in Python."""
    columns = {"leaf": tree.apply(X)}
    if hasattr(tree, "predict_cumulative_incidence"):
        found = {"risk": tree.predict(X)}
        found["incidence_5"] = tree.predict_cumulative_incidence(X, times=[5])[:, 0]
        return columns | found | {"survival_5": tree.predict_survival_function(X, times=[5])[:, 0]}
    if hasattr(tree, "predict_survival_function"):
        survival = tree.predict_survival_function(X, times=[5])
        found = {"risk": tree.predict(X), "model_median": tree.predict_median(X)}
        return {**columns, **found, "survival_5": survival[:, 0]}
    columns["prediction"] = tree.predict(X)
    if hasattr(tree, "predict_proba"):
        for label, values in zip(tree.classes_, tree.predict_proba(X).T, strict=True):
            columns[f"probability_{str(label).lower() if label in (True, False) else label}"] = (
                values
            )
    if hasattr(tree, "predict_outcomes"):
        for label, values in zip(tree.treatments_, tree.predict_outcomes(X).T, strict=True):
            columns[f"outcome_{label}"] = values
    return columns


def test_every_estimator_has_a_case():
    assert {case.kind for case in CASES.values()} == set(KINDS)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_tree_is_fitted_saved_shown_and_applied_as_in_python(capsys, folder, case):
    status, fitted, _ = run(capsys, *case.command, "--model", "m.json", "--report", "r.html")
    assert status == 0
    tree = case.fitted()
    assert tree.n_leaves_ > 1
    events = f", {(TABLE['status'] == 1).sum()} events" if case.predicts_survival else ""
    head = f"t.csv: {N} rows{events}, {len(case.features)} columns\n\n"
    assert fitted.startswith(head + export_text(tree))
    reported = table_of(fitted)
    assert reported["objective"] == f"{tree.objective_value_:.10g}"
    if KINDS[case.kind].is_searched:
        assert reported["lower bound"] == f"{tree.lower_bound_:.10g}"
        assert reported["status"].startswith("optimal among trees over these ")
    else:
        assert reported["status"].endswith(": nothing is proven about other trees")
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert f"{KINDS[case.kind].headline} of t.csv" in page

    status, shown, err = run(capsys, "show", "m.json")
    assert (status, err) == (0, "")
    assert shown == fitted.replace("t.csv:", "m.json:")

    times = ("--times", 5) if case.predicts_survival else ()
    status, out, err = run(capsys, "predict", "m.json", "t.csv", *times)
    assert (status, err) == (0, "")
    rows = list(csv.DictReader(out.splitlines()))
    expected = predictions(tree, TABLE[case.features])
    assert list(rows[0]) == list(expected)
    for name, values in expected.items():
        written = [row[name] for row in rows]
        if values.dtype.kind in "fi":
            np.testing.assert_array_equal(np.array(written, dtype=float), values)
        else:
            assert written == [str(value).lower() if value in (True, False) else value
                               for value in values.tolist()]  # fmt: skip


@pytest.mark.parametrize("name", ["survival, fair", "fair"])
def test_what_differs_between_two_groups_is_reported(capsys, folder, name):
    _, out, _ = run(capsys, *CASES[name].command)
    tree = CASES[name].fitted()
    what, values = "rates", getattr(tree, "group_rates_", None)
    if name.startswith("survival"):
        what, values = "RMST", tree.group_rmst_
    assert table_of(out)[f"{what} by group"] == f"f: {values[0]:.6g}, m: {values[1]:.6g}"
    if name == "fair":
        women, men = tree.group_confusion_[:, 1, 0]
        assert table_of(out)["false negatives"] == f"f: {women:.6g}, m: {men:.6g}"


def test_costs_of_errors_may_stand_in_a_file(capsys, folder):
    (folder / "costs.csv").write_text("0,3\n1.5, 0\n\n")
    case = CASES["cost-sensitive"]
    _, inline, _ = run(capsys, *case.command)
    command = [word for word in case.command if word != "1.5,0"]
    command[command.index("0,3")] = "costs.csv"
    status, from_file, _ = run(capsys, *command)
    assert status == 0
    assert table_of(from_file)["objective"] == table_of(inline)["objective"]


def test_columns_called_after_the_treatments_may_be_in_any_order(capsys, folder):
    TABLE[["age", "drug", "gain", "arm", "q1", "q2"]].rename(columns={"q1": "1", "q2": "2"}).to_csv(
        "named.csv", index=False
    )
    objectives = []
    for names in (("1", "2"), ("2", "1")):
        status, out, _ = run(
            capsys, "fit", "named.csv", "--estimator", "policy", "--reward", "inverse-propensity",
            "--target", "gain", "--treatment", "arm", "--propensity", *names, "--max-depth", 1,
        )  # fmt: skip
        assert status == 0
        objectives.append(table_of(out)["objective"])
    assert objectives[0] == objectives[1]


def test_columns_called_after_their_roles_need_not_be_named(capsys, folder):
    TABLE[["age", "drug", "gain", "arm"]].rename(
        columns={"gain": "target", "arm": "treatment"}
    ).assign(p=0.5).to_csv("named.csv", index=False)
    status, out, _ = run(
        capsys, "fit", "named.csv", "--estimator", "policy", "--reward", "inverse-propensity",
        "--propensity", "p", "--max-depth", 1,
    )  # fmt: skip
    assert status == 0
    assert out.startswith("named.csv: 60 rows, 2 columns\n")


@pytest.mark.parametrize("name", ["classifier", "fair"])
def test_a_forecast_is_given_for_every_search(capsys, folder, name):
    status, out, _ = run(capsys, *CASES[name].command, "--estimate")
    assert (status, out.split()[:2]) == (0, ["binary", "features"])


def test_searches_of_every_kind_show_their_progress(capsys, folder):
    _, _, err = run(capsys, *CASES["regressor"].command, "--progress")
    assert "lower bound" in err


def test_no_tree_within_the_constraints_is_an_error(capsys, folder):
    command = (*CASES["policy"].command, "--capacity", "1=0.1")
    status, out, err = run(capsys, *command, "--model", "m.json")
    assert (status, out) == (2, "")
    assert "error: this PolicyTree cannot predict: no tree satisfies its constraints" in err
    assert not (folder / "m.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("soft", *TIMES, "--prior", 3),
         "--estimator soft has no option --prior; it is an option of survival, greedy"),
        (("soft", *TIMES, "--estimate"), "--estimator soft has no option --estimate; it is an "
        "option of"),
        (("classifier", "--target", "ill", "--time", "days"),
         "--estimator classifier has no option --time; it is an option of survival, greedy, "
         "competing-risks, soft"),
        (("regressor", "--target=price", "--fairness=x"),
         "--estimator regressor has no option --fairness; it is an option of fair"),
        (("survival", *TIMES, "--target", "ill"), "--estimator survival has no option --target"),
        (("forest",), "invalid choice: 'forest'"),
        (("survival", *TIMES, "--sensitive", "sex"), "--sensitive needs --fairness-limit"),
        (("survival", *TIMES, "--fairness-limit", 1), "--fairness-limit needs --sensitive"),
        (("survival", *TIMES, "--fairness-tau", 1), "--fairness-tau needs --fairness-limit"),
        (("soft", *TIMES, "--fairness-penalty", 1), "--fairness-penalty needs --sensitive"),
        (("greedy", *TIMES, "--encoder", "none", "--missing", "branch"),
         "--encoder cannot be used with --missing"),
        (("soft", *TIMES, "--leaf", "gompertz"), "leaf must be"),
        (("soft", *TIMES, "--l2", "much"), "argument --l2: invalid number value: 'much'"),
        (("soft", *TIMES, "--depth", 99), "depth must be at most 10"),
        (("classifier",), "--target is needed: which column holds the labels? The columns are"),
        (("fair", "--target", "ill", "--fairness-limit", 0.1),
         "--sensitive is needed: which column holds the groups?"),
        (("fair", "--target", "ill", "--sensitive", "sex"), "--fairness-limit is needed"),
        (("fair", "--target", "ill", "--sensitive", "sex", "--fairness-limit", 2),
         "fairness.limit must be at most 1"),
        (("fair", "--target", "ill", "--fairness", "odds", "--fairness-limit", 1),
         "--fairness must be one of demographic-parity, equality-of-opportunity, "
         "equalized-odds; got 'odds'"),
        (("fair", "--target", "ill", "--sensitive", "ill",
          "--fairness-limit", 0.1),
         "--target and --sensitive are the same column 'ill'"),
        (("fair", "--target", "ill", "--sensitive", "sexx", "--fairness-limit", 0.1),
         "did you mean 'sex'?"),
        (("regressor", "--target", "price", "--weight", "ww"), "--weight: the data have no"),
        (("regressor", "--target", "price", "--drop", "price"),
         "--drop: 'price' is the column of --target"),
        (("cost-sensitive", "--target", "ill", "--feature-costs", "agee=1"),
         "--feature-costs: the data have no column 'agee'; did you mean 'age'?"),
        (("cost-sensitive", "--target", "ill", "--feature-costs", "ill=1"),
         "--feature-costs: the data have no column 'ill'"),
        (("cost-sensitive", "--target", "ill", "--feature-costs", "age"),
         "--feature-costs: invalid NAME=NUMBER value: 'age'"),
        (("cost-sensitive", "--target", "ill", "--feature-costs", "age=1", "age=2"),
         "--feature-costs: 'age' is given twice"),
        (("cost-sensitive", "--target", "ill", "--feature-groups", "age=1"),
         "--feature-groups: 'age' needs --feature-costs, too"),
        (("cost-sensitive", "--target", "ill", "--cost-matrix", "0,1", "1"),
         "--cost-matrix: 2 rows of 2, 1 numbers are not a square matrix"),
        (("cost-sensitive", "--target", "ill", "--cost-matrix", "costs.csv"),
         "'costs.csv' is neither a row of numbers nor a readable file (No such file"),
        (("classifier", "--target", "ill", "--class-weight", "balanced", "true=2"),
         "--class-weight: balanced cannot be combined with weights of labels"),
        (("policy", "--treatment", "arm", "--time", "gain"), "--time needs --horizon"),
        (("policy", "--target", "gain", "--treatment", "arm", "--capacity", "1=1.5"),
         "capacities['1'] must be a share of the rows"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused_before_the_rows_are_read(
    capsys, folder, arguments, message
):
    # The rows are not read first.
    with open("t.csv", "a") as file:
        file.write("1,2\n")
    assert message in refused(capsys, folder, "fit", "t.csv", "--estimator", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("classifier", "--target", "stage", "--objective", "f1"),
         "--objective f1 needs two classes; --target has 3"),
        (("regressor", "--target", "below", "--objective", "poisson"),
         "t.csv, line 2: --target has the negative count -1"),
        (("competing-risks", "--time", "days", "--event", "never"), "--event has no event: every"),
    ],
)  # fmt: skip
def test_outcomes_are_named_by_their_option(capsys, folder, arguments, message):
    assert message in refused(capsys, folder, "fit", "t.csv", "--estimator", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("policy", "--target", "gain", "--treatment", "arm", "--capacity", "3=0.5"),
         "--capacity: 3 does not occur in column 'arm', which holds 1, 2"),
        (("classifier", "--target", "stage", "--class-weight", "IV=2"),
         "--class-weight: IV does not occur in column 'stage', which holds"),
        (("policy", "--target", "gain", "--treatment", "arm", "--outcome-model", "none"),
         "--reward doubly-robust needs --predicted-outcomes, or --outcome-model"),
        (("policy", "--target", "gain", "--treatment", "arm", "--horizon", 2),
         "--target cannot be used with --horizon; pass --time and --event"),
        (("policy", "--treatment", "arm", "--horizon", 1e9, "--time", "gain", "--event", "ill"),
         "is beyond the last event of y"),
        (("regressor", "--target", "drug"), "t.csv, line 2, column 'drug': 'a' is not a number"),
        (("classifier", "--target", "hole"), "t.csv, line 5: column 'hole' has no value"),
        (("regressor", "--target", "price", "--weight", "hole"),
         "t.csv, line 5: column 'hole' has no value"),
    ],
)  # fmt: skip
def test_values_that_do_not_serve_are_refused(capsys, folder, arguments, message):
    TABLE.assign(hole=np.where(K == 3, np.nan, K)).to_csv("t.csv", index=False)
    assert message in refused(capsys, folder, "fit", "t.csv", "--estimator", *arguments)
