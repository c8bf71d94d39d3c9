"""The HTML report: complete, self-contained, escaped, and true to the fitted tree."""

import dataclasses
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from papers import PAPERS
from sklearn.linear_model import LinearRegression

from bristlecone import (
    GreedySurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    SoftSurvivalTree,
    Task,
    datasets,
)
from bristlecone.cli import main
from bristlecone.encoder import BinaryEncoder
from bristlecone.encoder.rules import leaf_rules, list_questions, questions, rule_text
from bristlecone.estimators.survival import OptimalSurvivalTree
from bristlecone.export import export_text
from bristlecone.report import certificate, html_report

VOID = {"meta", "rect", "path"}


class Page(HTMLParser):
    """Text and tags of a page; complains about tags that are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


@pytest.fixture(scope="module")
def tree():
    veterans = datasets.load("veterans", as_frame="plain")
    return OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder()).fit(veterans.X, veterans.y)


def test_report_shows_every_leaf_question_and_number_of_the_proof(tree):
    page = Page(html_report(tree, title="Study", about="137 rows", time_label="days"))
    text = " ".join(page.text)
    for expected in ("Study", "137 rows", "days", f"{tree.objective_value_:.10g}"):
        assert expected in text
    assert "Optimal among trees over these 30 binary features." in text
    for leaf in tree.leaf_statistics_:
        assert f"leaf {leaf.node}: θ = {leaf.theta:.4g}" in text
        assert f"{leaf.n_samples} rows, {leaf.n_events} events" in text
        lower, upper = leaf.curve.median_interval()
        assert f"median {leaf.curve.median:g}" in page.text
        assert f"95 % CI {lower:g} to {upper:g}" in page.text
        assert f"{leaf.curve.median:g} ({lower:g} to {upper:g})" in page.text
    for question in tree.questions_.values():
        assert question in page.text
    for rule in leaf_rules(tree):
        assert rule_text(rule) in page.text
    # Every question is listed.
    for line in list_questions(questions(tree.encoder_)):
        assert line in " ".join(text.split())
    assert {"yes", "no", "max_depth", "min_samples_leaf"} <= set(page.text)


def test_report_needs_no_script_and_no_network(tree):
    page = html_report(tree)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in Page(page).tags}
    assert re.findall(r"https?://[^\"]+", page) == ["http://www.w3.org/2000/svg"] * 2
    assert "url(" not in page
    assert "@import" not in page


def test_curves_are_those_of_the_estimator(tree):
    # The solid curve of a leaf in the large plot: heights at the steps are survival values.
    plot = html_report(tree).rpartition('aria-label="Survival by leaf"')[2].partition("</svg>")[0]
    solid = re.findall(r'<path d="(M[^"]*)" fill="none" stroke="[^"]*" stroke-width', plot)
    assert len(solid) == tree.n_leaves_
    for leaf, path in zip(tree.leaf_statistics_, solid, strict=True):
        drawn_end = float(re.findall(r"V([\d.]+)", path)[-1])
        survival = np.exp(-leaf.theta * tree.baseline_.cumulative_hazard[-1])
        # The plot is 258 units high, 14 below the top, and rounds to a tenth of a unit.
        assert drawn_end == pytest.approx(14 + 258 * (1 - survival), abs=0.051)
        assert path.endswith(f"H{48 + 658:.1f}")


def test_text_from_outside_is_escaped():
    frame = pd.DataFrame({"<b>&\"'": [0, 0, 1, 1]})
    tree = OptimalSurvivalTree(max_depth=1, **PAPERS)
    tree.fit(frame, ([1, 1, 1, 0], [1.0, 2.0, 5.0, 6.0]))
    page = html_report(tree, title="<i>", about="</p>", time_label="<u>", settings={"<s>": "<q>"})
    parsed = Page(page)
    assert not {"b", "i", "u", "s", "q"} & {tag for tag, _ in parsed.tags}
    for text in ("<b>&\"'", "<i>", "</p>", "<u>", "<s>", "<q>"):
        assert text in "".join(parsed.text)


def test_a_single_leaf_and_one_time_can_be_drawn():
    X = np.array([[0], [1]], dtype=bool)
    tree = OptimalSurvivalTree(max_depth=0, **PAPERS).fit(X, ([True, True], [0.0, 0.0]))
    assert "every row" in Page(html_report(tree)).text


def test_boxes_of_a_full_tree_do_not_touch():
    frame = datasets.load("churn", as_frame="plain")
    tree = OptimalSurvivalTree(max_depth=4).fit(frame.X, frame.y)
    svg = html_report(tree).partition('aria-label="The tree"')[2].partition("</svg>")[0]
    width = float(re.search(r'viewBox="0 0 (\d+)', svg)[1])
    levels = {}
    for x, y, across in re.findall(r'<rect x="([-\d.]+)" y="(\d+)" width="([\d.]+)"', svg):
        levels.setdefault(y, []).append((float(x), float(x) + float(across)))
    assert sum(map(len, levels.values())) == tree.tree_.node_count
    for boxes in levels.values():
        boxes.sort()
        assert boxes[0][0] >= 0
        assert boxes[-1][1] <= width
        for (_, right), (left, _) in pairwise(boxes):
            assert left > right


def test_an_unproven_tree_is_not_called_optimal(tree):
    tree = OptimalSurvivalTree.from_json(tree.to_json())
    open_one = {"status": "time_limit", "lower_bound": tree.objective_value_ - 0.25}
    tree.certificate_ = dataclasses.replace(tree.certificate_, **open_one)
    sentence, numbers = certificate(tree)
    assert sentence.startswith("time_limit: the best tree found, not proven optimal")
    assert dict(numbers)["gap"].startswith("0.25 (")
    assert 'class="proof open"' in html_report(tree)


class SquaredError(Task):
    def statistics(self, X, y):
        return np.stack([np.ones(len(y)), y, y**2], axis=1)

    def leaf_cost(self, sums):
        return sums[:, 2] - sums[:, 1] ** 2 / sums[:, 0]


def test_trees_without_survival_are_shown_as_text():
    X, y = np.array([[0], [0], [1], [1]], dtype=bool), np.array([1.0, 2.0, 7.0, 8.0])
    known = {"treatment": [0, 1, 0, 1], "predicted_outcomes": np.eye(4)[:, :2]}
    for model in (
        OptimalTreeClassifier(max_depth=1).fit(X, y > 3),
        OptimalTreeRegressor(max_depth=1).fit(X, y),
        PolicyTree(teacher="direct", max_depth=1).fit(X, y, **known),
        OptimalTree(task=SquaredError(), max_depth=1).fit(X, y),
    ):
        text = "".join(Page(html_report(model)).text)
        assert type(model).__name__ in text
        assert export_text(model) in text
        assert "Optimal among trees over these 1 binary features." in text
        assert model.describe() in text


@pytest.mark.parametrize("encoder", ["auto", None])
def test_a_greedy_tree_is_drawn_and_nothing_proven_of_it(encoder):
    rows, y = np.arange(40.0)[:, None], (np.ones(40, bool), np.arange(40.0) % 7 + 1)
    model = GreedySurvivalTree(encoder=encoder, max_depth=2).fit(rows, y)
    page = Page(html_report(model))
    text = " ".join(page.text)
    assert "What was proved" not in page.text
    assert "Nothing is proven of it" in " ".join(text.split())
    assert all(f"leaf {leaf.node}: θ" in text for leaf in model.leaf_statistics_)


def test_a_soft_tree_is_shown_as_text():
    rows, y = np.arange(40.0)[:, None], (np.ones(40, bool), np.arange(40.0) % 7 + 1)
    model = SoftSurvivalTree(depth=1, n_restarts=1, split_l2=0.0, random_state=0).fit(rows, y)
    text = "".join(Page(html_report(model)).text)
    assert export_text(model) in text
    assert "SoftSurvivalTree" in text


def test_anything_else_is_refused_by_the_name_of_its_class():
    with pytest.raises(TypeError, match="fitted trees of bristlecone; got a LinearRegression"):
        html_report(LinearRegression())


def test_weights_are_shown_beside_the_counts():
    veterans = datasets.load("veterans", as_frame="plain")
    weight = np.linspace(0.5, 1.5, len(veterans.y))
    tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y, sample_weight=weight)
    page = Page(html_report(tree))
    for leaf in tree.leaf_statistics_:
        assert f"weight {leaf.weight:.6g}, events {leaf.events:.6g}" in page.text
        assert f"{leaf.events:.6g}" in page.text


def test_the_command_line_writes_the_report(tmp_path, capsys):
    path = tmp_path / "r.html"
    assert main(["fit", "veterans", "--max-depth", "2", "--report", str(path)]) == 0
    text = " ".join(Page(path.read_text(encoding="utf-8")).text)
    assert "Survival tree of veterans" in text
    assert "137 rows, 128 events, 6 columns" in text
    capsys.readouterr()


def test_a_tree_by_brier_score_is_drawn_with_its_fitted_curves():
    veterans = datasets.load("veterans", as_frame="plain")
    tree = OptimalSurvivalTree(
        objective="brier", leaf_curve="brier-optimal", max_depth=2, encoder=BinaryEncoder()
    )
    tree.fit(veterans.X, veterans.y)
    page = Page(html_report(tree))
    text = " ".join(page.text)
    assert "integrated Brier score" in text
    assert "Optimal among trees over these 30 binary features." in text
    # Predicted and Kaplan–Meier curve of every leaf, in the tree and in the plot; they differ.
    drawn = [attrs["d"] for tag, attrs in page.tags if tag == "path" and "stroke-width" in attrs]
    dashed = [a["d"] for tag, a in page.tags if tag == "path" and "stroke-dasharray" in a]
    assert len(drawn) == len(dashed) == 2 * tree.n_leaves_
    assert not set(drawn) & set(dashed)
