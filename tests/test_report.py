"""The HTML report is complete, self-contained and escaped, and agrees with the fitted tree."""

import dataclasses
import json
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from html_page import Page
from papers import PAPERS
from scipy.stats import binomtest, t
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import OneHotEncoder

from bristlecone import (
    EqualizedOdds,
    FairTreeClassifier,
    GreedySurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    SoftSurvivalTree,
    Task,
    datasets,
)
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.rules import leaf_rules, list_questions, questions, rule_text
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._view import ruler
from bristlecone.curves import kaplan_meier
from bristlecone.exceptions import InfeasibleError, InfeasibleWarning, InvalidParameterError
from bristlecone.report import certificate, html_report
from bristlecone.tune import TreeSizeCV


def part(page, begin, end):
    return page.partition(begin)[2].partition(end)[0]


def heights(path):
    """Points of a path with relative steps, as pairs (x, y)."""
    x, y = map(float, re.match(r"M([\d.]+) ([\d.]+)", path).groups())
    found = [(x, y)]
    for move, amount in re.findall(r"([hv])(-?[\d.]+)", path):
        x, y = (x + float(amount), y) if move == "h" else (x, y + float(amount))
        found.append((x, y))
    return found


def axes(chart):
    """Left, top, bottom and right ends of the axes of a chart."""
    corners = re.search(r'class="axis" d="M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)"', chart)
    return [float(corner) for corner in corners.groups()]


@pytest.fixture(scope="module")
def veterans():
    return datasets.load("veterans")


@pytest.fixture(scope="module")
def tree(veterans):
    model = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder())
    return model.fit(veterans.X, veterans.y)


def test_report_shows_every_leaf_question_and_number_of_the_proof(tree):
    page = Page(html_report(tree, title="Study", about="137 rows", time_label="days"))
    for expected in ("Study", "137 rows", "days", f"{tree.objective_value_:.10g}"):
        assert expected in page.words
    assert "Optimal among trees over these 30 binary features." in page.words
    for leaf in tree.leaf_statistics_:
        lower, upper = leaf.curve.median_interval()
        assert f"{leaf.theta:.4g}" in page.text
        assert f"{leaf.n_samples} rows, {leaf.n_events} events" in page.text
        assert f"median {leaf.curve.median:g}" in page.text
        assert f"{leaf.curve.median:g} ({lower:.3g} to {upper:.3g})" in page.text
    for question in tree.splits_.values():
        assert question in page.text
    for rule in leaf_rules(tree):
        assert rule_text(rule) in page.text
    for line in list_questions(questions(tree.encoder_)):
        assert line in page.text
    assert {"yes", "no", "max_depth", "min_events_leaf"} <= set(page.text)


def test_a_page_asks_for_nothing_outside(tree):
    page = html_report(tree)
    parsed = Page(page)
    assert not {"img", "iframe", "object", "base"} & {tag for tag, _ in parsed.tags}
    assert {a["href"] for _, a in parsed.tags if "href" in a} == {"data:,"}
    assert not [attrs for _, attrs in parsed.tags if "src" in attrs]
    for outside in ("http:", "https:", "//www", "url(", "@import", "fetch(", "XMLHttp"):
        assert outside not in page
    (policy,) = (a["content"] for _, a in parsed.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none';")


def test_without_script_the_page_is_complete(tree):
    page = html_report(tree)
    still = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    parsed = Page(still)
    # Elements that need a script are hidden; other parts fold without one.
    (tools,) = parsed.having("tools")
    (form,) = (attrs for tag, attrs in parsed.tags if tag == "form")
    assert "hidden" in tools and "hidden" in form
    leaves = [a for tag, a in parsed.tags if tag == "details" and a.get("class") == "leaf"]
    assert [int(a["data-leaf"]) for a in leaves] == tree.tree_.leaves.tolist()
    splits = [a for tag, a in parsed.tags if tag == "details" and a.get("class") == "split"]
    assert len(splits) == tree.n_leaves_ - 1 and all("open" in a for a in splits)
    # In the outline, each leaf has its curve with a band, its rule, its facts and numbers at risk.
    for leaf, rule in zip(tree.leaf_statistics_, leaf_rules(tree), strict=True):
        card = part(still, f'<details class="leaf" data-leaf="{leaf.node}">', "</details>")
        assert rule_text(rule).replace("<", "&lt;").replace(">", "&gt;") in card
        assert card.count('class="band"') == 2  # once in the summary and once in full
        assert f">{leaf.n_samples}</text>" in card  # at risk at 0


def test_ids_are_unique_and_labels_have_their_fields(tree):
    page = Page(html_report(tree))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    labels = {attrs["for"] for tag, attrs in page.tags if tag == "label" and "for" in attrs}
    assert labels and labels <= set(ids)


def test_equal_trees_give_equal_pages(tree):
    assert html_report(tree) == html_report(OptimalSurvivalTree.from_json(tree.to_json()))


def test_curves_are_those_of_the_estimator(tree):
    chart = part(html_report(tree), '<svg class="overview"', "</svg>")
    lines = re.findall(r'<path class="line" d="([^"]*)"', chart)
    assert len(lines) == tree.n_leaves_
    left, top, bottom, right = axes(chart)
    for leaf, line in zip(tree.leaf_statistics_, lines, strict=True):
        x, y = heights(line)[-1]
        survival = np.exp(-leaf.theta * tree.baseline_.cumulative_hazard[-1])
        # Coordinates are rounded to a tenth.
        assert y == pytest.approx(bottom - (bottom - top) * survival, abs=0.051)
        assert x == pytest.approx(right, abs=0.051) and x > left


def test_bands_marks_and_numbers_at_risk_are_those_of_the_leaf(veterans):
    tree = OptimalSurvivalTree(objective="brier", max_depth=1).fit(veterans.X, veterans.y)
    page = html_report(tree)
    last = float(tree.unique_times_[-1])
    for node in tree.tree_.leaves.tolist():
        own = tree.apply(veterans.X) == node
        curve = kaplan_meier(veterans.y[own])
        limits = [limit[-1] for limit in curve.confidence_interval()]
        card = part(page, f'<details class="leaf" data-leaf="{node}">', "</details>")
        card = card.partition('class="card"')[2]
        left, top, bottom, right = axes(card)
        end = left + (right - left) * curve.x[-1] / last
        corners = heights(re.search(r'class="band" d="([^"]*)"', card)[1])
        at_end = [y for x, y in corners if x == pytest.approx(end, abs=0.3)]
        drawn = [(bottom - y) / (bottom - top) for y in (max(at_end), min(at_end))]
        assert drawn == pytest.approx(limits, abs=0.001)
        counts = [int(n) for n in re.findall(r'class="count"[^>]*>(\d+)<', card)]
        times = np.arange(len(counts)) * 200.0
        time = veterans.y["time"][own]
        assert counts == [int((time >= t).sum()) for t in times]
        assert ('class="marks"' in card) == bool((~veterans.y["event"][own]).any())


def test_legend_names_two_curves_only_where_two_are_drawn(veterans):
    both = html_report(OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y))
    model = OptimalSurvivalTree(max_depth=1, objective="brier", leaf_curve="kaplan-meier", **PAPERS)
    one = html_report(model.fit(veterans.X, veterans.y))
    assert "Dashed:" in both and 'class="model"' in both
    assert "Dashed:" not in one and 'class="model"' not in one


def test_a_tree_by_brier_score_is_drawn_with_its_fitted_curves(veterans):
    model = OptimalSurvivalTree(
        objective="brier", leaf_curve="brier-optimal", max_depth=2, encoder=BinaryEncoder()
    )
    model.fit(veterans.X, veterans.y)
    page = Page(html_report(model))
    assert "integrated Brier score" in page.words
    drawn = [a["d"] for a in page.having("estimate")]
    dashed = [a["d"] for a in page.having("model")]
    # In the diagram, in the outline and in its own chart; the estimate also behind all curves.
    assert (len(drawn), len(dashed)) == (4 * model.n_leaves_, 3 * model.n_leaves_)
    assert not set(drawn) & set(dashed)


HOSTILE = ("<b>&\"'", "</script><script>x", "<!-- y", "{{ z }}", "]]>&amp;", "ü 年 \u202e")


def test_text_from_outside_is_escaped():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.choice([*HOSTILE], 120) for name in HOSTILE})
    risk = (frame[HOSTILE[1]] == HOSTILE[2]) * 2 + (frame[HOSTILE[0]] == HOSTILE[1]) * 2.0
    y = np.ones(120, bool), rng.exponential(np.exp(-risk)) + 0.01
    tree = OptimalSurvivalTree(max_depth=2, **PAPERS).fit(frame, y)
    page = html_report(tree, title="<i>", about="</p>", time_label="<u>", command="<q>")
    parsed = Page(page)
    assert not {"i", "u", "q"} & {tag for tag, _ in parsed.tags}
    assert page.count("<script") == page.count("</script>") == 2
    assert "<!--" not in page.replace("<!-- y", "", 0).partition("<body")[2]
    for text in ("<i>", "</p>", "<u>", "<q>", *tree.splits_.values()):
        assert text in "".join(parsed.text)
    (data,) = (text for text in parsed.raw if text.startswith("{"))
    assert list(json.loads(data)["questions"].values()) == list(tree.splits_.values())


def test_a_single_leaf_and_one_time_can_be_drawn():
    X = np.array([[0], [1]], dtype=bool)
    tree = OptimalSurvivalTree(max_depth=0, **PAPERS).fit(X, ([True, True], [0.0, 0.0]))
    page = Page(html_report(tree))
    assert "every row" in page.text
    assert "The tree has a single leaf, so every case falls into it." in page.text


def boxes(page):
    """Boxes of the diagram: left, top, width and height of every node."""
    svg = part(page, '<svg class="diagram"', "</svg>")
    pattern = (
        r'data-node="(\d+)"[^>]*transform="translate\(([-\d.]+) ([-\d.]+)\)">\s*<title>.*?</title>'
        r'\s*<rect class="box" width="([\d.]+)" height="([\d.]+)"'
    )
    found = re.findall(pattern, svg)
    size = [float(x) for x in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()]
    return size, {int(node): tuple(map(float, box)) for node, *box in found}


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_boxes_of_a_full_tree_do_not_touch(depth):
    churn = datasets.load("churn")
    tree = GreedySurvivalTree(max_depth=depth).fit(churn.X, churn.y)
    (width, height), found = boxes(html_report(tree))
    assert len(found) == tree.tree_.node_count
    for left, top, across, down in found.values():
        assert left >= 0 and top >= 0 and left + across <= width and top + down <= height
    for one, other in pairwise(sorted(found.values())):
        beside = one[0] + one[2] < other[0]
        below = one[1] + one[3] < other[1] or other[1] + other[3] < one[1]
        assert beside or below


def test_long_names_are_broken_into_lines_and_reported_in_full():
    name = "a_column_with_a_very_long_name_" * 4
    frame = pd.DataFrame({name: np.arange(40.0)})
    tree = OptimalTreeRegressor(max_depth=1).fit(frame, np.arange(40.0) > 20)
    page = html_report(tree)
    (question,) = tree.splits_.values()
    title = question.replace("<", "&lt;")
    assert f"<title>{title}</title>" in page
    split = part(page, '<g class="node split"', "</g>")
    lines = re.findall(r'<text class="title"[^>]*>([^<]*)</text>', split)
    reported = "".join(lines)
    # The omitted text is in the middle, and the condition is shown.
    assert len(lines) == 4 and all(len(line) < 30 for line in lines)
    assert reported.startswith("a_column_with_") and "…" in reported
    assert reported.replace(" ", "").endswith(
        question.partition("<")[2].replace(" ", "").lstrip("=")
    )


def reopened(tree, **changes):
    other = type(tree).from_json(tree.to_json())
    other.certificate_ = dataclasses.replace(other.certificate_, **changes)
    return other


def test_the_work_for_a_long_label_is_bounded(monkeypatch):
    advance, measured = ruler._advance, []
    monkeypatch.setattr(ruler, "_advance", lambda sign: measured.append(sign) or advance(sign))

    def work(length):
        site = "site " + "n" * length
        labels = ["x" * length, "some words " * (length // 11) + "b", "c_" * (length // 2)]
        X = pd.DataFrame({site: labels * 20})
        y = np.tile([0.0, 1.0, 5.0], 20)
        measured.clear()
        model = OptimalTreeClassifier(max_depth=2).fit(X, X[site])
        page = html_report(model) + html_report(OptimalTreeRegressor(max_depth=2).fit(X, y))
        assert f"<title>{site} " in page and labels[2] in page
        return len(measured)

    assert work(5000) <= 1.1 * work(500)


@pytest.mark.parametrize("most", [1, 3])
def test_lines_hold_as_much_as_fits(most):
    rng = np.random.default_rng(0)
    for alphabet in ("il. ", "ab_ ", "wM ab__ é身", "i", "x_"):
        text = " ".join("".join(rng.choice(list(alphabet), 60)).split())
        lines = ruler.Ruler().wrap(text, 60.0, 10.0, most=most)
        assert len(lines) <= most
        assert all(ruler.Ruler().width(line, 10.0) <= 60 for line in lines)
        # With one more character it is too long.
        kept = sum(map(len, lines))
        assert ruler.Ruler().width("".join(lines), 10.0) > 60 * most / 2 or kept == len(text)


def test_an_unproven_tree_is_not_called_optimal(tree):
    found = reopened(tree, status="time_limit", lower_bound=tree.objective_value_ - 0.25)
    sentence, numbers = certificate(found)
    assert sentence.startswith("stopped at the time limit: the best tree found so far")
    assert dict(numbers)["gap"].startswith("0.25 (")
    page = Page(html_report(found))
    assert page.having("open") and not page.having("proven")
    reported = "the best tree found so far, not proven optimal among trees over these 30 binary"
    assert f"Stopped at the time limit: {reported} features." in page.words
    assert "ime_limit" not in page.words.partition("Text for a methods section")[0].replace(
        "time_limit None", ""
    )
    for status, words in (("memory_limit", "Stopped at the memory limit"), ("interrupted",) * 2):
        assert words.capitalize() in Page(html_report(reopened(tree, status=status))).words


class SquaredError(Task):
    def statistics(self, X, y):
        return np.stack([np.ones(len(y)), y, y**2], axis=1)

    def leaf_cost(self, sums):
        return sums[:, 2] - sums[:, 1] ** 2 / sums[:, 0]


def test_every_kind_of_leaf_has_its_panel():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"dose": rng.integers(0, 30, 90), "sex": rng.choice(["f", "m"], 90)})
    y = X["dose"] * 0.5 + rng.normal(size=90)
    kind = np.array(["mild", "fair", "severe"])[np.digitize(y, [4, 9])]
    known = {"treatment": np.arange(90) % 2, "predicted_outcomes": np.stack([y, 7 - y], axis=1)}
    classes = OptimalTreeClassifier(max_depth=2).fit(X, kind)
    numbers = OptimalTreeRegressor(max_depth=2).fit(X, y)
    policy = PolicyTree(reward="direct", max_depth=1).fit(X, y, **known)
    own = OptimalTree(task=SquaredError(), max_depth=1).fit(X, y)
    for model, headline in (
        (classes, "Classification tree"),
        (numbers, "Regression tree"),
        (policy, "Policy tree"),
        (own, "Decision tree"),
    ):
        page = Page(html_report(model))
        assert headline in page.text
        assert type(model).__name__ in page.words  # in the methods section
        assert "rows" in page.text and "n_samples" not in page.text
        assert "Optimal among trees over these" in page.words
        assert not page.having("overview")
    page = Page(html_report(classes))
    for shares in classes.leaves_.shares:
        assert all(f"{share:.2f}" in page.text for share in shares)
    page = Page(html_report(numbers))
    assert len(page.having("diamond")) == 3 * numbers.n_leaves_
    assert all(f"{mean:.4g}" in page.text for mean in numbers.leaves_.predicted)
    assert {"class", "share of mild", "weight of mild"} <= set(Page(html_report(classes)).text)
    page = Page(html_report(policy))
    assert {"treatment", "value of 1 ± standard error"} <= set(page.text)
    assert all(f"{value:.3g}" in page.text for value in policy.leaves_.values.ravel())
    page = Page(html_report(own))
    for fact in own.leaves_.facts():
        assert f"cost {fact['cost']:.6g}" in page.text


@pytest.mark.parametrize("encoder", ["auto", None])
def test_a_greedy_tree_is_drawn_and_nothing_proven_of_it(encoder):
    rows, y = np.arange(40.0)[:, None], (np.ones(40, bool), np.arange(40.0) % 7 + 1)
    model = GreedySurvivalTree(encoder=encoder, max_depth=2).fit(rows, y)
    page = Page(html_report(model))
    assert "Grown greedily, one split at a time: nothing is proven about other trees." in page.words
    assert "lower bound" not in page.text
    for leaf in model.leaf_statistics_:
        assert f"{leaf.theta:.4g}" in page.text


def test_a_soft_tree_is_drawn_with_its_largest_weights(veterans):
    model = SoftSurvivalTree(depth=2, n_restarts=1, random_state=0).fit(veterans.X, veterans.y)
    page = Page(html_report(model))
    assert "Soft survival tree" in page.text
    for weights in model.tree_.weights:
        assert f"{weights[np.argmax(np.abs(weights))]:+.3g}" in page.text
    assert all(question in page.text for question in model.splits_.values())
    (data,) = (json.loads(text) for text in page.raw if text.startswith("{"))
    assert np.array(data["case"]["weights"]).shape[0] == 3


def test_an_encoder_of_ones_own_has_no_form_and_says_why():
    gbsg2 = datasets.load("gbsg2")
    X = gbsg2.X[["horTh", "menostat", "tgrade"]]
    model = OptimalSurvivalTree(max_depth=2, encoder=OneHotEncoder(sparse_output=False))
    page = Page(html_report(model.fit(X, gbsg2.y)))
    assert "custom encoder (OneHotEncoder)" in page.words
    assert not [tag for tag, _ in page.tags if tag == "form"]


def test_fields_of_the_form_are_made_from_the_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 90, 200),
            "smokes": rng.random(200) < 0.5,
            "site": rng.choice(["a", "b"], 200),
        }
    )
    risk = (X["age"] > 50) * 1.5 + X["smokes"] * 1.0 + (X["site"] == "a") * 0.7
    y = np.ones(200, bool), rng.exponential(np.exp(-risk))
    page = html_report(OptimalSurvivalTree(max_depth=3, **PAPERS).fit(X, y))
    form = part(page, "<form", "</form>")
    kinds = re.findall(r'data-kind="(\w+)"', form)
    assert sorted(kinds) == ["category", "flag", "number"]
    low, high = X["age"].min(), X["age"].max()
    slider = re.search(r'<input type="range" min="([\d.]+)" max="([\d.]+)" step="([\d.]+)"', form)
    assert [float(x) for x in slider.groups()] == [low, high, 1]
    assert ">another one, not in the training data</option>" in form
    strict = OptimalSurvivalTree(
        max_depth=3, encoder=BinaryEncoder(handle_unknown="error"), **PAPERS
    )
    assert "not seen in training</option>" not in html_report(strict.fit(X, y))


def test_anything_else_is_refused_by_the_name_of_its_class(tree):
    for other in (LinearRegression(), "a tree", OptimalSurvivalTree):
        with pytest.raises(TypeError, match="html_report takes the fitted trees of bristlecone"):
            html_report(other)
    with pytest.raises(NotFittedError):
        html_report(OptimalSurvivalTree())
    with pytest.raises(InvalidParameterError, match="confidence"):
        html_report(tree, confidence=95)


def test_where_no_tree_keeps_the_constraints_there_is_no_page():
    X, known = np.arange(8.0)[:, None], {"treatment": [0, 1] * 4, "propensity": np.full(8, 0.5)}
    model = PolicyTree(max_depth=1, capacities={0: 0.1, 1: 0.1}, reward="inverse-propensity")
    with pytest.warns(InfeasibleWarning):
        model.fit(X, np.arange(8.0), **known)
    with pytest.raises(InfeasibleError):
        html_report(model)
    assert "sk-top-container" in model._repr_html_()


def test_weights_are_shown_beside_the_counts(veterans):
    weight = np.linspace(0.5, 1.5, len(veterans.y))
    tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y, sample_weight=weight)
    page = Page(html_report(tree))
    assert "weight" in page.text
    for leaf in tree.leaf_statistics_:
        assert f"{leaf.weight:.4g}" in page.text
        assert f"{leaf.n_samples} rows, {leaf.n_events} events" in page.text


def test_a_tree_of_thinned_curves_is_drawn(tree):
    thin = OptimalSurvivalTree.from_json(tree.to_json(curve_points=10))
    page = Page(html_report(thin))
    for leaf in tree.leaf_statistics_:
        assert f"{leaf.n_samples} rows, {leaf.n_events} events" in page.text


def test_settings_tell_what_auto_meant_and_how_columns_became_questions(tree, veterans):
    words = Page(html_report(tree)).words
    events = tree.certificate_.settings["min_events_leaf"]
    assert f"min_events_leaf auto: {events}" in words
    assert f"prior auto: {tree.leaves_.prior:g}" in words
    assert "Encoder: from columns to binary features" in words and "n_thresholds" in words
    assert "verbose" not in words.partition("Settings")[2].partition("Text for")[0]


def test_a_constraint_is_a_setting_that_meant_itself(veterans):
    group = np.arange(len(veterans.X)) % 2
    limit = EqualizedOdds(limit=0.5)
    tree = FairTreeClassifier(max_depth=1, fairness=limit)
    tree.fit(veterans.X, veterans.y["event"], sensitive_features=group)
    words = Page(html_report(tree)).words
    assert words.count("EqualizedOdds(limit=0.5)") == 1
    assert "true positives" in words


def test_the_size_path_is_a_section_of_its_own(veterans):
    model = OptimalSurvivalTree(max_depth=2)
    path = model.size_path(veterans.X, veterans.y)
    model.fit(veterans.X, veterans.y)
    page = Page(html_report(model, size_path=path))
    assert "Size path" in page.text
    for one in path:
        assert f"{one.objective_value_:.6g}" in page.text
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=2), cv=3).fit(veterans.X, veterans.y)
    page = Page(html_report(search, size_path=search))
    assert "Mean concordance index over the folds" in page.words
    for mean in search.cv_results_["mean_test_score"]:
        assert f"{mean:.4g}" in page.text
    own = [cell for cell in page.text if cell.strip()]
    row = own[own.index("chosen") - 3 : own.index("chosen")]
    assert row[:2] == [str(search.best_n_leaves_), f"{search.best_score_:.4g}"]
    with pytest.raises(ValueError, match="size path has no tree"):
        html_report(model, size_path=[])
    with pytest.raises(TypeError, match="size_path takes the fitted trees"):
        html_report(model, size_path=[LinearRegression()])


def test_a_search_over_sizes_is_compared_with_rows_held_out(veterans):
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=2).fit(veterans.X, veterans.y)
    page = Page(html_report(search, X=veterans.X, y=veterans.y, times=[60]))
    assert f"concordance index: {search.best_estimator_.score(veterans.X, veterans.y):.3f}" in (
        page.words
    )


def test_held_out_rows_without_a_score_are_compared_all_the_same(veterans):
    tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    y = np.zeros(30, dtype=bool), np.arange(1.0, 31.0)
    page = Page(html_report(tree, X=veterans.X[:30], y=y, times=[1]))
    assert "concordance index: not defined" in page.words
    numbers = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    assert "R²: not defined" in Page(html_report(numbers, X=[[1.0]], y=[2.0])).words


def test_survival_is_compared_at_every_time_and_without_limits_where_nothing_happened(veterans):
    model = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    page = html_report(model, X=veterans.X, y=veterans.y, times=[0.5, 60, 120])
    section = part(page, "Calibration on held-out rows", "</section>")
    assert section.count('<svg class="scatter"') == 3
    for time in ("0.5", "60", "120"):
        assert f">predicted survival at {time}</text>" in section
    # Nobody has died before day 1, so there is no interval.
    assert "1 (1 to 1)" not in page and ">1</td>" in section


def test_rows_held_out_are_compared_with_the_predictions(veterans):
    X = pd.DataFrame({name: veterans.X[name] for name in veterans.X.columns})
    model = OptimalSurvivalTree(max_depth=1).fit(X[:90], veterans.y[:90])
    new, y = X[90:], veterans.y[90:]
    page = Page(html_report(model, X=new, y=y, times=[60]))
    assert f"{model.score(new, y):.3f}" in page.words
    predicted = model.predict_survival_function(new, times=[60])[:, 0]
    for node in model.tree_.leaves:
        own = model.apply(new) == node
        curve = kaplan_meier(y[own])
        lower, upper = (
            limit[np.searchsorted(curve.x, 60, side="right") - 1]
            for limit in curve.confidence_interval()
        )
        assert f"{predicted[own].mean():.3g}" in page.text
        assert f"{curve(60):.3g} ({lower:.3g} to {upper:.3g})" in page.text


def test_held_out_classes_and_numbers_are_compared_too():
    rng = np.random.default_rng(0)
    X = rng.random((90, 2))
    y = np.where(X[:, 0] + rng.normal(size=90) * 0.2 > 0.5, "up", "down")
    model = OptimalTreeClassifier(max_depth=1).fit(X[:60], y[:60])
    page = Page(html_report(model, X=X[60:], y=y[60:], confidence=0.5))
    assert "50% confidence limits" in page.words and "95%" not in page.words
    for node in model.tree_.leaves:
        own = model.apply(X[60:]) == node
        test = binomtest(int((y[60:][own] == "up").sum()), int(own.sum()))
        low, high = test.proportion_ci(0.5, method="wilson")
        assert f"{test.statistic:.3g} ({low:.3g} to {high:.3g})" in page.text
    numbers = OptimalTreeRegressor(max_depth=1).fit(X[:60], X[:60, 1] * 7)
    page = Page(html_report(numbers, X=X[60:], y=X[60:, 1] * 7))
    for node in numbers.tree_.leaves:
        own = (X[60:, 1] * 7)[numbers.apply(X[60:]) == node]
        limits = t.interval(0.95, len(own) - 1, own.mean(), own.std(ddof=1) / len(own) ** 0.5)
        assert f"{own.mean():.3g} ({limits[0]:.3g} to {limits[1]:.3g})" in page.text
    with pytest.raises(InvalidParameterError, match="X has 30 rows but y has 29"):
        html_report(model, X=X[60:], y=y[61:])
    with pytest.raises(InvalidParameterError, match="both X and y"):
        html_report(model, X=X)
    known = {"treatment": np.arange(90) % 2, "predicted_outcomes": rng.random((90, 2))}
    policy = PolicyTree(reward="direct", max_depth=1).fit(X, X[:, 0], **known)
    with pytest.raises(TypeError, match="got a PolicyTree"):
        html_report(policy, X=X, y=y)


def test_the_page_is_written_completely_or_not_at_all(tree, tmp_path):
    path = tmp_path / "r.html"
    page = html_report(tree, path)
    assert path.read_text(encoding="utf-8") == page
    with pytest.raises(UnicodeEncodeError):
        html_report(tree, path, title="\ud800")
    assert path.read_text(encoding="utf-8") == page
    assert [one.name for one in tmp_path.iterdir()] == ["r.html"]
    with pytest.raises(ValueError, match="there is no folder"):
        html_report(tree, tmp_path / "none" / "r.html")


@pytest.mark.slow
def test_many_rows_and_leaves_make_a_page_of_less_than_a_megabyte():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 5))
    # Times are spread evenly, so that every pixel of every curve has a step.
    time = rng.random(50_000) ** np.exp(-(X[:, 0] + np.abs(X[:, 1]) + X[:, 2] * (X[:, 3] > 0)))
    tree = GreedySurvivalTree(max_depth=4, encoder=None).fit(X, (rng.random(50_000) < 0.6, time))
    assert tree.n_leaves_ == 16
    assert len(html_report(tree).encode()) < 1_000_000


def test_a_cross_validation_is_reported_with_its_folds_metric_and_rule(veterans):
    tree = OptimalSurvivalTree(max_depth=2)
    search = TreeSizeCV(tree, cv=3, scoring="ibs", rule="one-standard-error")
    search.fit(veterans.X, veterans.y)
    page = Page(html_report(search, size_path=search))
    assert "cross-validation over 137 rows with 3 folds; metric: ibs; rule:" in page.words
    assert "within one standard error" in page.words
