// The panel beside the map: about the page, one node, a selection, or the keys.
import { $, append, count, h, icon, plural, replace, say } from "./dom.js";
import { whySection } from "./alike.js";
import { toCsv } from "./export.js";
import { short } from "./legend.js";

const FIRST_NEIGHBOURS = 10;
const MOST_NEIGHBOURS = 500;
const MOST_LISTED = 200;

export const KEYS = [
  ["/", "search"],
  ["← ↑ → ↓", "move the map"],
  ["+  −", "zoom"],
  ["0", "the whole map"],
  ["n  p", "next and previous nearest node"],
  ["w", "why the two are alike"],
  ["Alt click", "why this node and another are alike"],
  ["s", "lasso on or off; or drag with shift"],
  ["l", "names on the map"],
  ["c", "next column for the colour"],
  ["m", "next map"],
  ["d", "dark or light"],
  ["Esc", "leave the node or the selection"],
  ["?", "these keys"],
];

export class Panel {
  constructor(data, on) {
    this.data = data;
    this.on = on;
    this.element = $("panel");
  }

  show(...children) {
    replace(this.element, children);
    this.element.scrollTop = 0;
  }

  head(title, ...more) {
    return h(
      "header",
      { class: "panel-head" },
      h("h2", {}, title),
      more,
      h("button", { class: "plain", id: "panel-close", "aria-label": "close", onclick: this.on.close }, icon("close")),
    );
  }

  // --- about ---------------------------------------------------------------------------------------------

  about(drawn) {
    const { about } = this.data;
    const facts = [
      ["nodes", about.total > about.n ? `${count(about.n)} shown of ${count(about.total)}` : count(about.n)],
      about.edges && ["edges", about.edges.shown < about.edges.total ? `${count(about.edges.shown)} shown of ${count(about.edges.total)}` : count(about.edges.total)],
      ["dimensions", count(about.dim)],
      about.model && ["model", about.model],
    ].filter(Boolean);
    this.show(
      h("header", { class: "panel-head" }, h("h2", {}, "About this map"), h("button", { class: "plain", "aria-label": "close", onclick: this.on.close }, icon("close"))),
      h("p", { class: "lead" }, "Every point is a node. Nodes with similar embeddings are near each other. Click one to see its neighbours and why it is where it is; drag with shift to select many."),
      h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      about.blocks.length > 1 &&
        h(
          "section",
          {},
          h("h3", {}, "Parts of the embedding"),
          h("table", { class: "blocks" }, h("tbody", {}, about.blocks.map(({ name, width, words }) =>
            h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, words), h("td", { class: "number" }, count(width))),
          ))),
        ),
      about.notes.length > 0 && h("section", {}, h("h3", {}, "Good to know"), h("ul", { class: "notes" }, about.notes.map((note) => h("li", {}, note)))),
      h("section", {}, h("h3", {}, "Keys"), keyTable()),
      h("p", { class: "note made" }, `Made by fishergraph ${about.version}. The page works offline and sends nothing. Points are drawn on ${drawn}.`),
    );
  }

  // --- one node ------------------------------------------------------------------------------------------

  node(v, colouring, table, why) {
    const { data } = this;
    this.why = why;
    const dot = (i) => h("span", { class: "dot", style: { background: table[colouring.colourOf(i)] } });
    const linked = data.edges ? data.edges.of(v).filter(({ node }) => node !== v) : null;
    const near = data.nearest ? data.nearest.of(v) : null;
    const both = new Set((near ?? []).map(({ node }) => node).filter((node) => linked?.some((one) => one.node === node)));
    this.show(
      h(
        "header",
        { class: "panel-head node-head" },
        h("h2", {}, dot(v), h("span", { id: "node-id" }, data.ids.get(v))),
        h("button", { class: "plain", title: "show on the map", "aria-label": "show on the map", onclick: () => this.on.centre(v) }, icon("target")),
        h("button", { class: "plain", title: "copy the id", "aria-label": "copy the id", onclick: () => copy(data.ids.get(v), "id") }, icon("copy")),
        h("button", { class: "plain", id: "panel-close", "aria-label": "close", onclick: this.on.close }, icon("close")),
      ),
      this.fields(v),
      h("div", { class: "sides" }, linked && this.linked(v, linked, both, dot), near && this.near(v, near, both, dot)),
      linked === null && h("p", { class: "note" }, "The page was made without a graph, so there are no graph neighbours."),
      h("div", { id: "why-place" }),
      this.attentionNote(v, linked),
    );
    if (why) this.explain(v, why, false);
  }

  fields(v) {
    const rows = this.data.columns.map((column) => {
      const [text, exact] = [column.brief(v), column.text(v)];
      const shown = text === null ? h("span", { class: "missing-value", title: "missing" }, "—") : text === "" ? h("span", { class: "missing-value" }, "(empty)") : text;
      return [h("dt", { title: column.name }, column.name), h("dd", text === exact ? {} : { title: exact }, shown)];
    });
    return rows.length ? h("dl", { class: "fields", id: "fields" }, rows) : null;
  }

  linked(v, linked, both, dot) {
    const { data } = this;
    const shares = data.attention?.of(v).shares;
    const { directed } = data.edges;
    const strength = ({ node }) => (shares?.get(node) ?? []).reduce((sum, share) => sum + share, 0);
    const sorted = [...linked].sort((a, b) => strength(b) - strength(a) || (b.weight ?? 0) - (a.weight ?? 0));
    const p = shares ? data.attention.anchors : 0;
    const ways = { both: ["↔", "both point to each other"], in: ["→", "points to this node"], out: ["←", "this node points to it"] };
    const way = ({ in: into, out }) => ways[into && out ? "both" : into ? "in" : "out"];
    const few = sorted.length <= FIRST_NEIGHBOURS + 2 || this.unfolded === v;
    const listed = sorted.slice(0, few ? MOST_NEIGHBOURS : FIRST_NEIGHBOURS);
    const rows = listed.map((entry) =>
      this.row(v, { ...entry, ...this.pairOf(v, entry) }, dot, both, [
        entry.kinds.size > 0 && h("span", { class: "kind", title: `kind of edge: ${[...entry.kinds].join(", ")}` }, [...entry.kinds].join(", ")),
        directed && h("span", { class: "way", title: way(entry)[1] }, way(entry)[0]),
        shares && cells(shares.get(entry.node), p),
        !shares && data.edges.weights && h("span", { class: "number" }, String(Number(entry.weight.toPrecision(4)))),
      ]),
    );
    const own = shares?.get(v);
    if (own?.some((share) => share > 0)) {
      rows.unshift(h("li", { class: "neighbour itself" }, h("span", { class: "name" }, "itself"), cells(own, p)));
    }
    const unfold = () => {
      this.unfolded = v;
      $("linked").replaceWith(this.linked(v, linked, both, dot));
    };
    const rest = sorted.length - listed.length;
    const anchors =
      p > 1 &&
      p <= 6 &&
      h("span", { class: "anchors", title: "attention, anchor by anchor" }, Array.from({ length: p }, (_, j) => h("span", { title: this.anchorName(j) }, j + 1)));
    return h(
      "section",
      { class: "side", id: "linked" },
      sideHead("In the graph", linked.length, anchors),
      rows.length ? h("ul", {}, rows) : h("p", { class: "note" }, "No neighbours."),
      rest > 0 && !few && h("button", { class: "link more", onclick: unfold }, `all ${count(Math.min(sorted.length, MOST_NEIGHBOURS))}`),
      rest > 0 && few && h("p", { class: "note" }, `${count(rest)} more.`),
      this.others(v, linked, shares, dot, both),
    );
  }

  // Members that are not neighbours, of multisets that reach further.
  others(v, linked, shares, dot, both) {
    if (!this.data.attention?.apart) return null;
    const known = new Set(linked.map(({ node }) => node));
    const p = this.data.attention.anchors;
    const sum = (row) => row.reduce((total, share) => total + share, 0);
    const far = [...shares].filter(([node]) => node !== v && !known.has(node)).sort((a, b) => sum(b[1]) - sum(a[1]));
    if (!far.length) return null;
    const rows = far.slice(0, 20).map(([node, row]) => this.row(v, { node, ...this.pairOf(v, { node }) }, dot, both, [cells(row, p)]));
    return [h("h3", { class: "further" }, "Members further away ", h("span", { class: "badge" }, count(far.length))), h("ul", {}, rows)];
  }

  anchorName(j) {
    const words = this.data.attention.words?.[j];
    return words ? `anchor ${j + 1}: ${words}` : `anchor ${j + 1}`;
  }

  near(v, near, both, dot) {
    const rows = near.map((entry) =>
      this.row(v, { ...entry, ...this.edgeOf(v, entry.node) }, dot, both, [h("span", { class: "number" }, entry.similarity.toFixed(2))]),
    );
    return h(
      "section",
      { class: "side", id: "near" },
      sideHead("In the embedding", near.length),
      h("ul", {}, rows),
    );
  }

  // The nearest pair of a graph neighbour, and the edge of a nearest node, for what is known of both.
  pairOf(v, { node }) {
    const found = this.data.nearest?.of(v).find((one) => one.node === node);
    return found ? { pair: found.pair, similarity: found.similarity } : {};
  }

  edgeOf(v, node) {
    const found = this.data.edges?.of(v).find((one) => one.node === node);
    return found ? { edge: found.edge } : {};
  }

  row(v, entry, dot, both, more) {
    const { data } = this;
    const id = data.ids.get(entry.node);
    return h(
      "li",
      { class: both.has(entry.node) ? "neighbour both" : "neighbour", "data-node": entry.node, onmouseenter: () => this.on.hover(entry.node), onmouseleave: () => this.on.hover(-1) },
      h("button", { class: "name", title: both.has(entry.node) ? `${id}: a neighbour in the graph and in the embedding` : id, onclick: () => this.on.go(entry.node) }, dot(entry.node), h("span", {}, id)),
      more,
      h("button", { class: "why", "aria-label": `why are ${data.ids.get(v)} and ${id} alike`, onclick: () => this.explain(v, entry, true) }, "why"),
    );
  }

  explain(v, entry, scroll) {
    this.on.why(entry);
    const card = whySection(this.data, v, entry, { go: this.on.go, close: () => this.explainNothing() });
    replace($("why-place"), card);
    for (const row of this.element.querySelectorAll(".neighbour")) row.classList.toggle("asked", Number(row.dataset.node) === entry.node);
    if (scroll) card.scrollIntoView({ block: "nearest", behavior: "auto" });
  }

  explainNothing() {
    this.on.why(null);
    replace($("why-place"));
    for (const row of this.element.querySelectorAll(".asked")) row.classList.remove("asked");
  }

  attentionNote(v, linked) {
    const { attention } = this.data;
    if (!attention || !linked) return null;
    const { seen } = attention.of(v);
    const mean = seen.reduce((a, b) => a + b, 0) / seen.length;
    const part = mean > 0 && mean < 0.995 ? ` ${Math.round(100 * mean)} % of it goes to nodes on this page.` : "";
    const words = attention.words && h("ol", { class: "anchor-words" }, attention.words.map((text) => h("li", {}, text || "—")));
    return h(
      "details",
      { class: "attention-note" },
      h("summary", {}, attention.anchors > 1 ? `What the ${attention.anchors} columns of squares mean` : "What the squares mean"),
      h("p", { class: "note" }, `How much of its attention the node gives to each member, for every anchor of the first layer: the darker, the more. The shares of an anchor add up to 100 %, up to rounding.${part}`),
      words,
    );
  }

  // --- a selection ---------------------------------------------------------------------------------------

  selection(nodes, colouring, table) {
    const { data } = this;
    const counts = new Map();
    for (const i of nodes) counts.set(colouring.colourOf(i), (counts.get(colouring.colourOf(i)) ?? 0) + 1);
    const composition =
      colouring.index && !colouring.continuous
        ? colouring.entries.filter((entry) => counts.get(entry.colour)).map((entry) => ({ ...entry, here: counts.get(entry.colour) })).sort((a, b) => b.here - a.here)
        : [];
    const most = Math.max(...composition.map(({ here }) => here), 1);
    this.show(
      this.head(plural(nodes.length, "node"), null),
      h(
        "p",
        { class: "actions" },
        h("button", { class: "button", id: "export", onclick: () => this.save(nodes) }, icon("download"), "Export CSV"),
        h("button", { class: "button", onclick: () => copy(Array.from(nodes, (i) => data.ids.get(i)).join("\n"), plural(nodes.length, "id")) }, icon("copy"), "Copy ids"),
        h("button", { class: "button", onclick: () => this.on.zoomTo(nodes) }, icon("target"), "Zoom"),
      ),
      colouring.continuous && summary(colouring.column, nodes),
      composition.length > 0 &&
        h(
          "section",
          {},
          h("h3", {}, colouring.column.name),
          h(
            "table",
            { class: "bars composition" },
            h("tbody", {}, composition.map(({ name, here, colour }) =>
              h(
                "tr",
                {},
                h("th", { scope: "row", title: name }, name),
                h("td", {}, h("span", { class: "bar whole" }, h("span", { class: "bar-fill", style: { width: `${(100 * here) / most}%`, background: table[colour] } }))),
                h("td", { class: "number" }, count(here)),
              ),
            )),
          ),
        ),
      h(
        "section",
        {},
        h("h3", {}, "Nodes"),
        h("ul", { class: "listed" }, Array.from(nodes.slice(0, MOST_LISTED), (i) =>
          h("li", {}, h("button", { class: "name", onclick: () => this.on.go(i) }, h("span", { class: "dot", style: { background: table[colouring.colourOf(i)] } }), h("span", {}, data.ids.get(i)))),
        )),
        nodes.length > MOST_LISTED && h("p", { class: "note" }, `${count(nodes.length - MOST_LISTED)} more; the file has all.`),
      ),
    );
  }

  save(nodes) {
    const text = toCsv(this.data, nodes);
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    const link = h("a", { href: address, download: "selection.csv" });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    say(`selection.csv: ${plural(nodes.length, "node")}`);
  }

  empty() {
    this.show(this.head("Nothing selected"), h("p", { class: "note" }, "There are no nodes inside the lasso. Draw around some points."));
  }
}

function sideHead(title, n, ...more) {
  return h("div", { class: "side-head" }, h("h3", {}, title), h("span", { class: "badge" }, count(n)), more);
}

// The middle and the ends of a column among the selected nodes, beside those of all.
function summary(column, nodes) {
  const of = (values) => {
    const sorted = Float64Array.from(values).filter((value) => !Number.isNaN(value)).sort();
    return sorted.length ? [0, 0.5, 1].map((q) => sorted[Math.floor(q * (sorted.length - 1))]) : null;
  };
  const shown = (value) => (column.kind === "date" ? column.show(value) : short(value, column.integer));
  const row = (name, ends) => h("tr", {}, h("th", { scope: "row" }, name), (ends ?? []).map((value) => h("td", { class: "number" }, shown(value))));
  return h(
    "section",
    {},
    h("h3", {}, column.name),
    h(
      "table",
      { class: "summary" },
      h("thead", {}, h("tr", {}, h("th"), ["least", "median", "most"].map((word) => h("th", { class: "number" }, word)))),
      h("tbody", {}, row("selected", of(Array.from(nodes, (i) => column.values[i]))), row("all", of(column.values))),
    ),
  );
}

function keyTable() {
  return h("table", { class: "keys" }, h("tbody", {}, KEYS.map(([key, text]) => h("tr", {}, h("td", {}, key.split("  ").map((one) => h("kbd", {}, one))), h("td", {}, text)))));
}

// A square per anchor, the darker the more attention.
function cells(shares, p) {
  const values = shares ?? new Float64Array(p);
  const title = Array.from(values, (share, j) => `anchor ${j + 1}: ${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`).join("\n");
  const squares = Array.from(values, (share) => {
    const square = h("span", { class: "cell" });
    square.style.setProperty("--share", Math.sqrt(share).toFixed(3));
    return square;
  });
  // Many anchors share the room of six.
  const width = p <= 6 ? 11 : Math.max(2, Math.floor(76 / p) - 1);
  const element = h("span", { class: "cells", title, style: { "--width": `${width}px`, "--gap": p <= 6 ? "2px" : "1px" } });
  append(element, squares);
  if (p === 1) append(element, [h("span", { class: "number" }, `${Math.round(100 * values[0])} %`)]);
  return element;
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`copied ${what}`);
  } catch {
    const area = h("textarea", { class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    say(done ? `copied ${what}` : "this browser does not let the page copy");
  }
}
