// Why two nodes are alike: the parts of their similarity, the members that both attend to, the features both have.
import { h } from "./dom.js";

const MOST = 6;
const percent = (share) => (share >= 0.0995 ? `${Math.round(share * 100)} %` : `${(share * 100).toFixed(1)} %`);

// A bar to the right for what brings nodes together. If something keeps them apart, bars begin in the middle.
function bar(value, most, both = false) {
  const width = `${((both ? 50 : 100) * Math.min(1, Math.abs(value) / most)).toFixed(1)}%`;
  return h(
    "span",
    { class: both ? "bar" : "bar whole", role: "presentation" },
    h("span", { class: value < 0 ? "bar-fill apart" : "bar-fill", style: { width } }),
  );
}

function blocks(data, pair, edge, similarity) {
  const found = data.blocksOf(pair, edge);
  if (!found) return data.about.alike && h("p", { class: "note" }, "The parts of their similarity are not on the page: they are not among each other's nearest nodes.");
  const most = Math.max(...found.map(({ value }) => Math.abs(value)), 1e-9);
  const sum = found.reduce((total, { value }) => total + value, 0);
  const both = found.some(({ value }) => value < -0.005);
  const rows = found.map(({ name, value }, k) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", title: name }, data.about.blocks[k]?.words || name),
      h("td", {}, bar(value, most, both)),
      h("td", { class: "number" }, value.toFixed(2)),
    ),
  );
  rows.push(
    h("tr", { class: "sum" }, h("th", { scope: "row" }, "together"), h("td"), h("td", { class: "number" }, (similarity ?? sum).toFixed(2))),
  );
  return h(
    "section",
    {},
    h("h4", {}, "Parts of the embedding"),
    h("p", { class: "note" }, "What each part adds to the cosine similarity, rounded to 0.01."),
    h("table", { class: "bars" }, h("tbody", {}, rows)),
  );
}

// Members of both, by the product of what the two attend to them, added over the anchors.
function shared(data, v, w, go) {
  if (!data.edges) return null;
  const attention = data.attention;
  const rows = [];
  if (attention) {
    const [first, second] = [attention.of(v).shares, attention.of(w).shares];
    for (const [u, a] of first) {
      const b = second.get(u);
      if (!b) continue;
      const mean = (shares) => shares.reduce((sum, share) => sum + share, 0) / attention.anchors;
      rows.push({ u, a: mean(a), b: mean(b), weight: a.reduce((sum, share, j) => sum + share * b[j], 0) });
    }
  } else {
    const others = new Set(data.edges.of(w).map(({ node }) => node));
    for (const { node } of data.edges.of(v)) if (others.has(node)) rows.push({ u: node, a: null, weight: 0 });
  }
  rows.sort((x, y) => y.weight - x.weight);
  const listed = rows.slice(0, MOST).map(({ u, a, b }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("button", { class: "link node", onclick: () => go(u) }, data.ids.get(u))),
      h("td", { class: "number" }, a === null ? "" : percent(a)),
      h("td", { class: "number" }, a === null ? "" : percent(b)),
    ),
  );
  const what = attention ? "members that both attend to" : "neighbours of both";
  return h(
    "section",
    {},
    h("h4", {}, attention ? "Members of both" : "Neighbours of both"),
    rows.length
      ? h(
          "table",
          { class: "pairs" },
          attention &&
            h("thead", {}, h("tr", {}, h("th", {}), h("th", { class: "number" }, data.ids.get(v)), h("th", { class: "number" }, data.ids.get(w)))),
          h("tbody", {}, listed),
        )
      : h("p", { class: "note" }, `There are no ${what}${data.about.total > data.n ? " on this page" : ""}.`),
    rows.length > MOST && h("p", { class: "note" }, `${rows.length - MOST} more.`),
    attention && rows.length > 0 && h("p", { class: "note" }, "The share of attention each of the two gives them, averaged over the anchors."),
  );
}

// Features that both neighbourhoods have more of than the graph: products of the centred averages. A feature of two
// values tells by the rarer one alone: that both lack what few nodes have says nothing.
function features(data, v, w) {
  if (!data.features) return null;
  const averaged = (node) => {
    if (!data.attention) {
      const members = data.edges ? [node, ...data.edges.of(node).map((edge) => edge.node)] : [node];
      return data.features.average(new Map([...new Set(members)].map((u) => [u, 1 / new Set(members).size])));
    }
    const shares = data.attention.of(node).shares;
    const p = data.attention.anchors;
    return data.features.average(new Map([...shares].map(([u, row]) => [u, row.reduce((sum, share) => sum + share, 0) / p])));
  };
  const [first, second] = [averaged(v), averaged(w)];
  const rows = [];
  let total = 0;
  for (let d = 0; d < first.length; d++) {
    const [a, b] = [first[d] - data.features.means[d], second[d] - data.features.means[d]];
    total += Math.abs(a * b);
    const told = data.features.tells[d];
    if (told === 0 ? a * b > 0 : told * a > 0 && told * b > 0) rows.push({ name: data.features.names[d] + (told > 0 ? "" : a > 0 ? " high" : " low"), value: a * b });
  }
  rows.sort((x, y) => y.value - x.value);
  const top = rows.slice(0, MOST);
  if (!top.length) return h("section", {}, h("h4", {}, "Features of both"), h("p", { class: "note" }, "Their neighbourhoods have nothing in common that the graph does not have."));
  return h(
    "section",
    {},
    h("h4", {}, "Features of both"),
    h(
      "table",
      { class: "bars" },
      h("tbody", {}, top.map(({ name, value }) =>
        h("tr", {}, h("th", { scope: "row", title: name }, name), h("td", {}, bar(value, top[0].value)), h("td", { class: "number" }, percent(value / total))),
      )),
    ),
    h("p", { class: "note" }, data.features.dense
      ? "Features in which both neighbourhoods differ from the mean of the graph in the same direction. An outline, not a part of the similarity."
      : "Features of which both neighbourhoods have more than the graph has on average. An outline, not a part of the similarity."),
  );
}

// Values of columns that both nodes have.
function fields(data, v, w) {
  const same = data.columns.filter((column) => column.kind === "category" && column.text(v) !== null && column.text(v) === column.text(w));
  if (!same.length) return null;
  const shown = same.slice(0, MOST).map((column) => h("span", { class: "chip" }, h("span", {}, column.name), ` ${column.text(v)}`));
  return h("section", {}, h("h4", {}, "Same values"), h("p", { class: "chips" }, shown));
}

// The page holds no sum over all members and columns; this call gives it.
function exact(data, v, w) {
  if (!data.about.model) return null;
  const names = [v, w].map((node) => (data.about.ids.strings ? JSON.stringify(data.ids.get(node)) : data.ids.get(node)));
  return h("p", { class: "note exact" }, "Exactly, over anchors, members and columns: ", h("code", {}, `explainer.explain(${names.join(", ")}, cosine=True)`), " of an Explainer of this model.");
}

export function whySection(data, v, { node: w, pair, edge, similarity }, { go, close }) {
  const parts = [blocks(data, pair, edge, similarity), shared(data, v, w, go), features(data, v, w), fields(data, v, w)].filter(Boolean);
  return h(
    "section",
    { class: "why-card", id: "why" },
    h(
      "header",
      {},
      h("h3", {}, "Why are they alike?"),
      h("button", { class: "plain", "aria-label": "close", onclick: close }, "×"),
    ),
    h(
      "p",
      { class: "pair" },
      h("strong", {}, data.ids.get(v)),
      " and ",
      h("button", { class: "link node", onclick: () => go(w) }, data.ids.get(w)),
      similarity !== undefined && h("span", { class: "number" }, `similarity ${similarity.toFixed(2)}`),
    ),
    parts.length ? [...parts, exact(data, v, w)] : h("p", { class: "note" }, "The page holds nothing about this pair: it was made without a model and without a graph."),
  );
}
