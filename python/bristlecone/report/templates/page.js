"use strict";
(function () {
  const root = document.documentElement;
  const all = (selector, within) => [...(within || document).querySelectorAll(selector)];
  const one = (selector, within) => (within || document).querySelector(selector);
  const made = (name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  const data = JSON.parse(one("#data").textContent);
  const svg = one("svg.diagram");
  const shape = JSON.parse(svg.dataset.shape);
  root.classList.add("js");
  one(".tools").hidden = false;

  // ---- Nodes: their place in the tree, from the drawing itself.
  const nodes = new Map();
  for (const element of all(".node", svg)) {
    const id = Number(element.dataset.node);
    nodes.set(id, { id, element, parent: null, children: [], folded: false, edge: null });
  }
  for (const edge of all(".edge", svg)) {
    const child = nodes.get(Number(edge.dataset.child));
    const parent = nodes.get(Number(edge.dataset.parent));
    Object.assign(child, { edge, parent });
    parent.children.push(child);
  }
  const leavesOf = (node) => (node.children.length ? node.children.flatMap(leavesOf) : [node.id]);

  // ---- Light: what is pointed at, everywhere.
  const marked = (leaf) => all(`[data-leaf="${leaf}"]`);
  function light(leaves) {
    all(".lit").forEach((element) => element.classList.remove("lit"));
    const overview = one(".overview");
    if (overview) overview.classList.toggle("dim", leaves.length > 0);
    leaves.forEach((leaf) => marked(leaf).forEach((element) => element.classList.add("lit")));
  }
  let chosen = null;
  const detail = one("#detail");
  function show(leaf) {
    const card = one(`.view-outline details.leaf[data-leaf="${leaf}"] .card`);
    if (!card || detail.dataset.shown === String(leaf)) return;
    const copy = card.cloneNode(true);
    const hide = made("button", "Hide", "hide");
    hide.type = "button";
    hide.addEventListener("click", () => detail.classList.remove("live"));
    const head = made("h3", `Leaf ${leaf}`);
    head.append(hide);
    detail.replaceChildren(head, ...copy.childNodes);
    detail.dataset.shown = leaf;
    detail.hidden = false;
  }
  function choose(leaf) {
    all(".chosen").forEach((element) => element.classList.remove("chosen"));
    chosen = leaf;
    if (leaf === null) return;
    marked(leaf).forEach((element) => element.classList.add("chosen"));
    detail.classList.add("live");
    show(leaf);
  }
  function point(leaves) {
    light(leaves);
    if (leaves.length === 1) show(leaves[0]);
    else if (chosen !== null) show(chosen);
  }
  show(leavesOf(nodes.get(0))[0]);
  const rest = () => point(chosen === null ? [] : [chosen]);
  for (const element of all("[data-leaf]")) {
    const leaf = Number(element.dataset.leaf);
    element.addEventListener("pointerenter", () => {
      detail.classList.toggle("live", chosen !== null || Boolean(element.closest(".diagram")));
      point([leaf]);
    });
    element.addEventListener("pointerleave", rest);
    if (element.matches("tr, li, .curve")) {
      element.addEventListener("click", () => { choose(leaf); light([leaf]); });
    }
    if (element.matches("details")) {
      element.addEventListener("toggle", () => element.open && choose(leaf));
    }
  }

  // ---- Folding: leaves side by side, a split above the middle of its children.
  function arrange() {
    let count = 0;
    let deepest = 0;
    const visible = [];
    (function measure(node, depth, shown) {
      node.shown = shown;
      node.depth = depth;
      if (shown) {
        visible.push(node);
        deepest = Math.max(deepest, depth);
      }
      const open = shown && !node.folded;
      node.children.forEach((child) => measure(child, depth + 1, open));
      if (node.children.length && open) {
        node.across = (node.children[0].across + node.children[1].across) / 2;
      } else if (shown) {
        node.across = shape.margin + (count + 0.5) * shape.slot;
        count += 1;
      }
    })(nodes.get(0), 0, true);
    const end = shape.margin + deepest * shape.level;
    for (const node of nodes.values()) {
      node.element.style.display = node.shown ? "" : "none";
      if (node.edge) node.edge.style.display = node.shown ? "" : "none";
      if (!node.shown) continue;
      const leaf = !node.children.length;
      const width = leaf ? shape.leaf_width : shape.split_width;
      const height = leaf ? shape.leaf_height : shape.split_height;
      node.along = leaf ? end : shape.margin + node.depth * shape.level;
      const [x, y] = shape.down
        ? [node.across - width / 2, node.along]
        : [node.along, node.across - height / 2];
      node.element.setAttribute("transform", `translate(${x} ${y})`);
      const folded = one(".folded", node.element);
      if (folded) folded.textContent = node.folded ? ` · ${leavesOf(node).length} leaves folded` : "";
      if (!leaf) node.element.setAttribute("aria-expanded", String(!node.folded));
      if (!node.edge) continue;
      const path = one("path", node.edge);
      const text = one("text", node.edge);
      if (shape.down) {
        const start = node.parent.along + shape.split_height;
        const turn = start + 10;
        path.setAttribute("d", `M${node.parent.across} ${start}V${turn}H${node.across}V${node.along}`);
        text.setAttribute("x", node.across + (text.textContent === "yes" ? -5 : 5));
        text.setAttribute("y", turn + 14);
      } else {
        const start = node.parent.along + shape.split_width;
        const turn = start + 12;
        path.setAttribute("d", `M${start} ${node.parent.across}H${turn}V${node.across}H${node.along}`);
        text.setAttribute("x", turn + 4);
        text.setAttribute("y", node.across - 4);
      }
    }
    const wide = count * shape.slot + 2 * shape.margin;
    const last = visible.some((node) => !node.children.length);
    const box = shape.down
      ? (last ? shape.leaf_height : shape.split_height)
      : (last ? shape.leaf_width : shape.split_width);
    const deep = end + shape.margin + box;
    const [width, height] = shape.down ? [Math.max(wide, 220), deep] : [deep, wide];
    const left = shape.down ? Math.min(0, (wide - width) / 2) : 0;
    svg.setAttribute("viewBox", `${left} 0 ${width} ${height}`);
    size = [width, height];
    zoomed();
  }
  function fold(node, folded) {
    if (!node.children.length) return;
    node.folded = folded;
    arrange();
  }

  // ---- Size.
  let size = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  let scale = 1;
  const frame = one(".view-diagram");
  function zoomed() {
    frame.classList.toggle("zoomed", scale !== 1);
    svg.setAttribute("width", size[0] * scale);
    svg.setAttribute("height", size[1] * scale);
  }
  all("[data-zoom]").forEach((button) => button.addEventListener("click", () => {
    const now = svg.getBoundingClientRect().width / size[0];
    const factor = { in: 1.25, out: 0.8 }[button.dataset.zoom];
    scale = factor ? Math.min(4, Math.max(0.2, now * factor)) : 1;
    zoomed();
  }));
  all("[data-view]").forEach((button) => button.addEventListener("click", () => {
    root.classList.toggle("as-outline", button.dataset.view === "outline");
    all("[data-view]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
  }));
  all("[data-fold]").forEach((button) => button.addEventListener("click", () => {
    const folded = button.dataset.fold === "all";
    // What is left of a folded tree are its root and the questions below it.
    for (const node of nodes.values()) node.folded = folded && node.children.length > 0 && node !== nodes.get(0);
    all(".view-outline details.split").forEach((element) => {
      element.open = !folded || element.dataset.node === "0";
    });
    arrange();
  }));

  // ---- The diagram as a tree of the keyboard: one stop, arrows within.
  svg.setAttribute("role", "tree");
  svg.setAttribute("aria-label", "The tree");
  all(".edge", svg).forEach((edge) => edge.setAttribute("aria-hidden", "true"));
  let current = nodes.get(0);
  for (const node of nodes.values()) {
    const { element } = node;
    const leaf = !node.children.length;
    element.setAttribute("role", "treeitem");
    let level = 1;
    for (let above = node.parent; above; above = above.parent) level += 1;
    element.setAttribute("aria-level", String(level));
    const answer = node.edge ? `${one("text", node.edge).textContent}: ` : "";
    element.setAttribute("aria-label", answer + one("title", element).textContent);
    element.setAttribute("tabindex", node === current ? "0" : "-1");
    if (!leaf) {
      element.setAttribute("aria-expanded", "true");
      element.addEventListener("pointerenter", () => point(leavesOf(node)));
      element.addEventListener("pointerleave", rest);
    }
    element.addEventListener("focus", () => {
      current.element.setAttribute("tabindex", "-1");
      current = node;
      element.setAttribute("tabindex", "0");
      point(leavesOf(node));
    });
    element.addEventListener("blur", rest);
    element.addEventListener("click", () => act(node));
  }
  function act(node) {
    if (node.children.length) fold(node, !node.folded);
    else choose(node.id === chosen ? null : node.id);
    light(leavesOf(node));
  }
  svg.addEventListener("keydown", (event) => {
    const shown = [...nodes.values()].filter((node) => node.shown !== false);
    const at = shown.indexOf(current);
    let to = null;
    if (event.key === "ArrowDown") to = shown[at + 1];
    else if (event.key === "ArrowUp") to = shown[at - 1];
    else if (event.key === "Home") to = shown[0];
    else if (event.key === "End") to = shown[shown.length - 1];
    else if (event.key === "ArrowRight") {
      if (current.folded) fold(current, false);
      else to = current.children[0];
    } else if (event.key === "ArrowLeft") {
      if (current.children.length && !current.folded) fold(current, true);
      else to = current.parent;
    } else if (event.key === "Enter" || event.key === " ") act(current);
    else if (event.key === "Escape") {
      choose(null);
      detail.classList.remove("live");
    }
    else return;
    event.preventDefault();
    if (to) to.element.focus();
  });

  // ---- Sorting of the leaf table.
  const body = one("table.leaves tbody");
  all("table.leaves thead th").forEach((head, place) => {
    const button = made("button", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      all("table.leaves th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const numeric = head.dataset.kind === "number";
      const key = (row) => row.children[place].dataset.key;
      const rows = [...body.rows].sort((first, second) => {
        const [a, b] = [key(first), key(second)];
        // What has no value is last, whichever way.
        if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
        const order = numeric ? Number(a) - Number(b) : a < b ? -1 : a > b ? 1 : 0;
        return up ? order : -order;
      });
      body.append(...rows);
    });
  });

  // ---- Where a case falls.
  const form = one("#case form");
  if (form) {
    const fields = all(".field", form);
    const output = one("output", form);
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());

    // What a field holds: undefined while nothing is filled in.
    function value(field) {
      if (field.dataset.kind === "flag") {
        const checked = one("input:checked", field);
        if (!checked) return undefined;
        return checked.value === "missing" ? { missing: true } : { flag: checked.value === "yes" };
      }
      if (field.dataset.kind === "category") {
        const picked = one("select", field).value;
        if (picked === "") return undefined;
        if (picked === "missing") return { missing: true };
        return { level: picked === "unknown" ? -1 : Number(picked) };
      }
      const absent = one("[type=checkbox]", field);
      if (absent && absent.checked) return { missing: true };
      const text = one("[type=number]", field).value;
      return text === "" ? undefined : { number: Number(text) };
    }
    function answered(split, held) {
      if (split.kind === "missing") return held.missing === true;
      if (held.missing) return split.missing;
      if (split.kind === "at most") return held.number <= split.bound;
      if (split.kind === "flag") return held.flag;
      return split.levels.includes(held.level);
    }

    // By yes-no questions: the path as far as the fields go.
    function walked(values) {
      const path = [];
      let node = 0;
      for (;;) {
        const split = data.case.splits[node];
        if (!split) return { path, leaf: node };
        const held = values[split.field];
        if (held === undefined) return { path, next: node, field: split.field };
        const yes = answered(split, held);
        path.push({ node, yes });
        node = yes ? split.yes : split.no;
      }
    }

    // By weights: x·2^shift as the encoder scales, without overflow on the way.
    function scaled(x, shift) {
      const half = Math.trunc(shift / 2);
      return x * 2 ** half * 2 ** (shift - half);
    }
    function designed(part, held) {
      if (part.kind === "missing") return held.missing ? 1 : 0;
      if (part.levels) return !held.missing && part.levels.includes(held.level) ? 1 : 0;
      const x = held.missing ? part.fill : held.flag === undefined ? held.number : Number(held.flag);
      const found = (scaled(x, part.shift) - part.low) / part.span;
      return Math.min(1e100, Math.max(-1e100, found));
    }
    function weighed(values) {
      const empty = values.findIndex((held) => held === undefined);
      if (empty >= 0) return { path: [], field: empty };
      const { design, weights, intercepts, nodes: numbers } = data.case;
      const row = design.map((part) => designed(part, values[part.field]));
      const logits = weights.map((w, k) => row.reduce((sum, x, j) => sum + w[j] * x, intercepts[k]));
      const reach = [1];
      logits.forEach((logit, k) => {
        const e = Math.exp(-Math.abs(logit));
        const large = 1 / (1 + e);
        const left = logit >= 0 ? large : e * large;
        const right = logit >= 0 ? e * large : large;
        reach[2 * k + 1] = reach[k] * left;
        reach[2 * k + 2] = reach[k] * right;
      });
      const path = [];
      let at = 0;
      while (at < logits.length) {
        const yes = logits[at] >= 0;
        path.push({ node: numbers[at], yes });
        at = 2 * at + (yes ? 1 : 2);
      }
      const chances = [];
      for (let k = logits.length; k < reach.length; k += 1) chances.push([numbers[k], reach[k]]);
      return { path, leaf: numbers[at], chances };
    }

    function update() {
      const values = fields.map(value);
      const found = (data.case.splits ? walked : weighed)(values);
      const asked = new Set(found.path.map(({ node }) => data.case.splits && data.case.splits[node].field));
      fields.forEach((field, k) => {
        field.classList.toggle("asked", asked.has(k));
        field.classList.toggle("next", k === found.field);
        const entry = one("[type=number]", field);
        const warning = one(".warning", field);
        const held = values[k];
        warning.hidden = !(entry && entry.dataset.low && held && held.number !== undefined &&
          (held.number < Number(entry.dataset.low) || held.number > Number(entry.dataset.high)));
      });
      all(".path").forEach((element) => element.classList.remove("path"));
      const passed = found.path.map(({ node }) => node);
      if (found.leaf !== undefined) passed.push(found.leaf);
      if (found.next !== undefined && found.path.length) passed.push(found.next);
      for (const id of passed) {
        const node = nodes.get(id);
        node.element.classList.add("path");
        if (node.edge) node.edge.classList.add("path");
        const line = one(`.view-outline [data-node="${id}"] > summary, .view-outline [data-leaf="${id}"] > summary`);
        if (line) line.classList.add("path");
      }
      answer(found);
      if (found.leaf === undefined) delete root.dataset.case;
      else root.dataset.case = found.leaf;
    }
    function answer(found) {
      const shown = [];
      if (found.path.length) {
        const list = made("ol");
        for (const { node, yes } of found.path) {
          list.append(made("li", `${data.questions[node]}: ${yes ? "yes" : "no"}`));
        }
        shown.push(list);
      }
      if (found.leaf === undefined) {
        const name = one("label, legend", fields[found.field]).firstChild.textContent.trim();
        const begin = data.case.design ? "All columns are needed; next:" : "Begin with";
        shown.push(made("p", found.path.length ? `Next: ${name}` : `${begin} ${name}.`));
        output.replaceChildren(...shown);
        return;
      }
      const card = one(`.view-outline [data-leaf="${found.leaf}"]`);
      const head = made("h3", found.chances ? `Most probable path: leaf ${found.leaf}` : `Leaf ${found.leaf}`);
      const line = made("p", one("summary b", card).textContent.replace(/^leaf \d+: /, ""));
      line.append(" ", made("span", one("summary .faint", card).textContent, "faint"));
      shown.unshift(head, line);
      (found.chances || []).forEach(([leaf, chance]) => {
        const row = made("div", undefined, "chance");
        const bar = made("i");
        bar.style.width = `${100 * chance}%`;
        bar.style.background = one(".swatch", one(`.legend [data-leaf="${leaf}"], tr[data-leaf="${leaf}"]`)).style.background;
        row.append(made("span", `leaf ${leaf}`), bar, made("span", `${(100 * chance).toPrecision(3)}%`));
        row.dataset.chance = chance;
        shown.push(row);
      });
      shown.push(one(".card .sides", card).cloneNode(true));
      output.replaceChildren(...shown);
      choose(found.leaf);
      light([found.leaf]);
    }
    form.addEventListener("input", (event) => {
      const field = event.target.closest(".field");
      const entry = one("[type=number]", field);
      if (entry) {
        const slider = one("[type=range]", field);
        const absent = one("[type=checkbox]", field);
        if (event.target === slider) entry.value = String(Number(Number(slider.value).toPrecision(6)));
        else if (slider && event.target === entry && entry.value !== "") slider.value = entry.value;
        if (absent && event.target !== absent) absent.checked = false;
      }
      update();
    });
    form.addEventListener("reset", () => setTimeout(() => { choose(null); light([]); update(); }));
    update();
  }

  // ---- On paper nothing of the outline is folded.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = all(".view-outline details:not([open])");
    closed.forEach((element) => { element.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((element) => { element.open = false; }));
})();
