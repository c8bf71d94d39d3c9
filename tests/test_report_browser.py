"""The report in headless Chromium: the form finds the same leaf as ``apply``, and links work."""

import json
from html import escape

import numpy as np
import pandas as pd
import pytest
from chromium import needs_chromium, run
from pace import slow_but

from bristlecone import (
    BinaryEncoder,
    CompetingRisksTree,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    SoftSurvivalTree,
    datasets,
)
from bristlecone.report import html_report
from bristlecone.report._case import case

pytestmark = [needs_chromium, pytest.mark.slow]

# Fills in the form row by row, as a reader does, and collects its answers.
FILL = """
const fields = [...document.querySelectorAll("#case .field")];
const result = rows.map((row) => {
  document.querySelector("#case form").reset();
  row.forEach((value, k) => {
    const field = fields[k];
    const set = (selector, name, to) => {
      const input = field.querySelector(selector);
      input[name] = to;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    };
    if (field.dataset.kind === "flag") set(`[value="${value}"]`, "checked", true);
    else if (field.dataset.kind === "category") set("select", "value", value);
    else if (value === "missing") set("[type=checkbox]", "checked", true);
    else set("[type=number]", "value", value);
  });
  const chances = [...document.querySelectorAll("output [data-chance]")];
  return {
    leaf: Number(document.documentElement.dataset.case),
    lit: [...document.querySelectorAll(".diagram .path.leaf")].map((e) => Number(e.dataset.leaf)),
    chances: chances.map((one) => Number(one.dataset.chance)),
  };
});
"""


def entries(tree, frame):
    """Every row as texts for the fields of the form."""
    columns = {schema.name: schema for schema in getattr(tree.encoder_, "columns_", [])}
    rows = []
    for _, row in frame.iterrows():
        reported = []
        for field in case(tree).fields:
            value = row[field.name]
            if pd.isna(value):
                reported.append("missing")
            elif field.kind == "category":
                levels = columns[field.name].levels
                reported.append(str(levels.index(value)) if value in levels else "unknown")
            elif field.kind == "flag":
                reported.append("yes" if value else "no")
            else:
                reported.append(repr(float(value)))
        rows.append(reported)
    return rows


def filled(tree, frame, folder):
    rows = json.dumps(entries(tree, frame))
    return run(html_report(tree), f"const rows = {rows};{FILL}", folder)


def study(n, seed):
    """Odd names, floats with all digits, flags, categories, missing values and rare levels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "</script><b>\"a\" & 'b'": rng.normal(size=n) / 3,
            "größe, 年 ≤ <!-- 3": rng.integers(0, 9, n) * 0.1,
            "count": rng.integers(0, 30, n),
            "flag": rng.random(n) < 0.4,
            "stage {{ 1 }}": rng.choice(["I", "</b>", " III ", "ü\"'", "r1", "r2", "r3"], n),
            "tiny": rng.normal(size=n) * 1e-8,
        }
    )
    risk = frame.iloc[:, 0] * 2 + (frame["count"] > 11) - frame["flag"] * 1.0
    risk += (frame["stage {{ 1 }}"] == "</b>") * 1.5 + frame["tiny"] * 5e7
    time = rng.exponential(np.exp(-np.asarray(risk, dtype=float)))
    y = np.array([(True, max(t, 1e-3)) for t in time], dtype=[("event", bool), ("time", float)])
    frame["flag"] = frame["flag"].astype(object)
    for column in frame:
        frame.loc[rng.random(n) < 0.08, column] = None if column != "count" else np.nan
    return frame, y


@pytest.mark.parametrize("missing", slow_but({"branch"}, ["impute", "branch"]))
def test_a_case_reaches_the_leaf_that_apply_says(missing, tmp_path):
    frame, y = study(400, 1)
    encoder = BinaryEncoder(missing=missing, max_categories=4, categories="levels")
    tree = GreedySurvivalTree(encoder=encoder, max_depth=5, min_events_leaf=5).fit(frame, y)
    other, _ = study(90, 2)
    other.loc[::7, "stage {{ 1 }}"] = "never seen"
    # On the thresholds, and one float next to them.
    cuts = tree.tree_.threshold[~tree.tree_.is_leaf]
    columns = tree.tree_.column[~tree.tree_.is_leaf]
    edges = other.iloc[np.arange(3 * len(cuts)) % len(other)].reset_index(drop=True)
    edges = edges.astype(object)
    for k, (cut, column) in enumerate(zip(cuts, columns, strict=True)):
        if np.isfinite(cut):
            for step, value in enumerate((cut, np.nextafter(cut, -9e9), np.nextafter(cut, 9e9))):
                edges.iloc[3 * k + step, column] = value
    for name in other:
        if other[name].dtype.kind == "f":
            edges[name] = edges[name].astype(float)
    rows = pd.concat([frame[:100], other], ignore_index=True)
    reported = filled(tree, rows, tmp_path) + filled(tree, edges, tmp_path)
    expected = [*tree.apply(rows).tolist(), *tree.apply(edges).tolist()]
    assert [one["leaf"] for one in reported] == expected
    assert [one["lit"] for one in reported] == [[leaf] for leaf in expected]
    assert len(set(expected)) == tree.n_leaves_


def test_a_tree_over_bare_numbers_decides_alike(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    y = rng.random(200) < 0.7, rng.exponential(np.exp(frame["a"] - frame["b"]))
    tree = GreedySurvivalTree(encoder=None, max_depth=3).fit(frame, y)
    assert [one["leaf"] for one in filled(tree, frame, tmp_path)] == tree.apply(frame).tolist()


def test_a_soft_tree_gives_the_probabilities_of_its_leaves(tmp_path):
    frame, y = study(200, 3)
    tree = SoftSurvivalTree(depth=2, n_restarts=1, random_state=0).fit(frame, y)
    other, _ = study(60, 4)
    other.loc[::7, "stage {{ 1 }}"] = "never seen"
    reported = filled(tree, other, tmp_path)
    assert [one["leaf"] for one in reported] == tree.apply(other).tolist()
    chances = np.array([one["chances"] for one in reported])
    np.testing.assert_allclose(chances, tree.predict_proba_leaf(other), rtol=1e-12, atol=1e-300)


@pytest.fixture(scope="module")
def page():
    gbsg2 = datasets.load("gbsg2")
    return html_report(OptimalSurvivalTree(max_depth=3).fit(gbsg2.X, gbsg2.y))


def test_a_form_half_filled_says_what_is_next(page, tmp_path):
    script = """
    const number = document.querySelector("#case [type=number]");
    const before = document.querySelector("output").textContent;
    number.value = "2";
    number.dispatchEvent(new Event("input", { bubbles: true }));
    const next = document.querySelector(".field.next").textContent;
    const between = document.querySelector("output").textContent;
    number.value = "99";
    number.dispatchEvent(new Event("input", { bubbles: true }));
    const warned = !document.querySelector(".field .warning").hidden;
    const { case: leaf } = document.documentElement.dataset;
    const result = { before, next: next.trim(), between, warned, leaf };
    """
    reported = run(page, script, tmp_path)
    assert "Begin with pnodes" in reported["before"]
    assert "pnodes <= 3: yes" in reported["between"]
    assert reported["next"].startswith("progrec")
    assert reported["warned"]
    assert "leaf" not in reported


def test_pointing_at_a_leaf_lights_it_everywhere(page, tmp_path):
    script = """
    const lit = () => [...document.querySelectorAll(".lit")].map((one) =>
      [one.tagName.toLowerCase(), one.dataset.leaf]);
    const at = (selector, kind) =>
      document.querySelector(selector).dispatchEvent(new PointerEvent(kind));
    at('tr[data-leaf="4"]', "pointerenter");
    const fromTable = lit(), detail = document.querySelector("#detail").textContent;
    at('tr[data-leaf="4"]', "pointerleave");
    const after = lit();
    at('.overview .curve[data-leaf="6"]', "pointerenter");
    const fromCurve = lit();
    const result = { fromTable, after, fromCurve, detail };
    """
    reported = run(page, script, tmp_path)
    kinds = {"details", "g", "li", "tr"}
    for lit, leaf in ((reported["fromTable"], "4"), (reported["fromCurve"], "6")):
        assert {kind for kind, _ in lit} == kinds
        assert {at for _, at in lit} == {leaf}
        assert len(lit) == 6  # diagram, outline, curve, numbers at risk, legend, table
    assert reported["after"] == []
    assert reported["detail"].strip().startswith("Leaf 4")


def test_the_keyboard_moves_folds_and_chooses(page, tmp_path):
    script = """
    const tree = document.querySelector("svg.diagram");
    const press = (key) => (document.activeElement || tree).dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    const now = () => Number(document.activeElement.dataset.node);
    const drawn = [...tree.querySelectorAll(".node")];
    const seen = () => drawn.filter((one) => one.style.display !== "none").length;
    const stops = tree.querySelectorAll('[tabindex="0"]').length;
    tree.querySelector('[tabindex="0"]').focus();
    const path = [now()];
    for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "End", "Home"]) {
      press(key);
      path.push(now());
    }
    const all = seen();
    press("ArrowLeft");
    const folded = seen();
    const expanded = document.activeElement.getAttribute("aria-expanded");
    press("ArrowRight");
    const unfolded = seen();
    press("End");
    press("Enter");
    const chosen = tree.querySelector(".chosen").dataset.leaf;
    const roles = [tree.getAttribute("role"), document.activeElement.getAttribute("role")];
    const press_ = (name) => document.querySelector(`[data-${name}]`).click();
    press_('fold="all"');
    const least = seen();
    press_('fold="none"');
    const most = seen(), width = Number(tree.getAttribute("width"));
    press_('zoom="in"');
    const zoomed = Number(tree.getAttribute("width")) / width;
    press_('zoom="fit"');
    const fits = Number(tree.getAttribute("width")) === width;
    const result = {
      stops, path, all, folded, expanded, unfolded, chosen, roles, least, most, zoomed, fits,
    };
    """
    reported = run(page, script, tmp_path)
    assert reported["stops"] == 1
    assert reported["path"] == [0, 1, 2, 3, 2, 14, 0]
    assert (reported["all"], reported["folded"], reported["unfolded"]) == (15, 1, 15)
    assert reported["expanded"] == "false"
    assert reported["chosen"] == "14"
    assert reported["roles"] == ["tree", "treeitem"]
    assert (reported["least"], reported["most"], reported["fits"]) == (3, 15, True)
    assert reported["zoomed"] > 1


def test_the_leaf_table_sorts_both_ways_with_unknown_values_last(page, tmp_path):
    script = """
    const heads = [...document.querySelectorAll("table.leaves thead button")];
    const at = heads.findIndex((one) => one.textContent.startsWith("median"));
    const order = () => [...document.querySelectorAll("table.leaves tbody tr")].map((row) =>
      row.children[at].dataset.key);
    heads[at].click();
    const up = order();
    heads[at].click();
    const down = order(), sorted = heads[at].parentElement.getAttribute("aria-sort");
    const result = { up, down, sorted };
    """
    reported = run(page, script, tmp_path)
    up = [float(key) for key in reported["up"]]
    assert up == sorted(up)
    assert [float(key) for key in reported["down"]] == sorted(up, reverse=True)
    assert reported["sorted"] == "descending"


def framed(page, width, script, folder):
    """Result of a script on ``page``, a document in a frame of its width.

    Windows are at least 500 pixels wide.
    """
    start = f"""
    const frame = document.createElement("iframe");
    frame.style = "width: {width}px; height: 800px; border: 0";
    document.body.prepend(frame);
    frame.contentDocument.write(document.querySelector("#copy").textContent);
    frame.contentDocument.close();
    const page = frame.contentDocument;
    """
    text = f'<pre id="copy" hidden>{escape(page)}</pre>'
    shell = f"<!DOCTYPE html><html><head></head><body>{text}</body></html>"
    return run(shell, start + script, folder, width=1400)


@pytest.mark.parametrize("width", [390, 1280])
def test_no_label_of_the_curves_is_cut_off_or_meets_another(width, page, tmp_path):
    script = """
    const chart = page.querySelector("svg.overview");
    const box = (one) => {
      const { left, top, right, bottom } = one.getBoundingClientRect();
      return [left, top, right, bottom];
    };
    const shown = [...chart.querySelectorAll("text")].filter((one) => one.getClientRects().length);
    const result = { chart: box(chart), labels: shown.map((one) => [one.textContent, box(one)]) };
    """
    reported = framed(page, width, script, tmp_path)
    left, top, right, bottom = reported["chart"]
    labels = [(text, box) for text, box in reported["labels"] if text != "survival"]
    assert {"0.25", "1", "time"} <= {text for text, _ in labels}
    for k, (text, box) in enumerate(labels):
        assert left <= box[0] and box[2] <= right and top - 1 <= box[1] and box[3] <= bottom, text
        for other, beside in labels[:k]:
            apart_x = box[0] >= beside[2] or beside[0] >= box[2]
            # Lines of text have space above and below their letters.
            apart_y = box[1] >= beside[3] - 4 or beside[1] >= box[3] - 4
            assert apart_x or apart_y, (text, other)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_scrolls_sideways(width, tmp_path):
    churn = datasets.load("churn")
    odd = pd.DataFrame(
        np.random.default_rng(0).normal(size=(90, 2)), columns=["a" * 60, "b b" * 30]
    )
    pages = [
        html_report(GreedySurvivalTree(max_depth=5).fit(churn.X, churn.y)),
        html_report(OptimalTreeClassifier(max_depth=2).fit(odd, ["x" * 50, "y", "z"] * 30)),
    ]
    for page in pages:
        script = """
        const { scrollWidth, clientWidth } = page.documentElement;
        const result = { scrollWidth, clientWidth };
        """
        reported = framed(page, width, script, tmp_path)
        assert reported["scrollWidth"] <= reported["clientWidth"]


def test_a_long_name_does_not_push_the_numbers_out_of_the_table(tmp_path):
    X = pd.DataFrame({"a" * 300: np.arange(60.0), "b": np.arange(60) % 7})
    y = {"event": np.arange(60) % 3, "time": np.arange(60.0) % 11 + 1}
    tree = CompetingRisksTree(max_depth=1, min_events_leaf=1).fit(X, pd.DataFrame(y))
    script = "const result = document.querySelector('td.rule').getBoundingClientRect().width;"
    assert "a" * 300 in html_report(tree)
    assert run(html_report(tree), script, tmp_path) < 300
