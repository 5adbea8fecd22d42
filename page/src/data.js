// The data of the page: ids, columns, graph, nearest neighbours, attention, and what makes nodes alike.
import { readArray, readNumbers, readStrings, shortest } from "./codec.js";

const DAY = 86400000;

function dateText(value, days) {
  const text = new Date(days ? value * DAY : value).toISOString();
  if (days) return text.slice(0, 10);
  return text.slice(0, 19).replace("T", " ") + (value % 1000 ? text.slice(19, 23) : "");
}

// A column once it is read: `text(i)` is the value of a node as it was given, null if it is missing.
class Column {
  constructor(about) {
    Object.assign(this, about);
    this.loaded = null;
  }

  get colours() {
    return this.kind !== "text";
  }

  load() {
    this.loaded ??= this.read().then(() => this);
    return this.loaded;
  }

  async read() {
    if (this.kind === "category") {
      const codes = await readArray(this.codes);
      this.codeOf = (i) => codes[i] - 1;
      this.text = (i) => (codes[i] ? this.categories[codes[i] - 1] : null);
    } else if (this.kind === "text") {
      const strings = await readStrings(this.strings);
      const gone = this.missing ? await readArray(this.missing) : null;
      this.text = (i) => (gone?.[i] ? null : strings.get(i));
    } else {
      this.values = await readNumbers(this.numbers);
      this.text = (i) => (Number.isNaN(this.values[i]) ? null : this.show(this.values[i]));
    }
  }

  // The value of a node for people: a number that no few decimals write has six digits.
  brief(i) {
    const long = this.kind === "number" && this.numbers.decimals === null && !Number.isNaN(this.values[i]);
    return long ? String(Number(this.values[i].toPrecision(6))) : this.text(i);
  }

  // A number of this column as text.
  show(value) {
    if (this.kind === "date") return dateText(value, this.days);
    return this.numbers.decimals === null && this.numbers.array.type === "f4" ? shortest(value) : String(value);
  }

  range() {
    let low = Infinity;
    let high = -Infinity;
    for (const value of this.values) {
      if (value < low && value > -Infinity) low = value;
      if (value > high && value < Infinity) high = value;
    }
    return low <= high ? [low, high] : [0, 0];
  }
}

// Ids by row and rows by id.
class Ids {
  constructor(about) {
    this.about = about;
    this.rows = null;
  }

  async load() {
    if (this.about.strings) {
      const strings = await readStrings(this.about.strings);
      this.get = strings.get;
    } else {
      const numbers = await readNumbers(this.about.numbers);
      this.get = (i) => String(numbers[i]);
    }
  }

  find(id) {
    if (!this.rows) {
      this.rows = new Map();
      for (let i = 0; i < this.about.n; i++) this.rows.set(this.get(i), i);
    }
    return this.rows.get(id) ?? -1;
  }
}

const unzigzag = (code) => (code >>> 1) ^ -(code & 1);

// The edges of the page, by node: `of(v)` lists {node, weight, out, in, edge}. See explore/edges.py.
class Edges {
  constructor(about) {
    Object.assign(this, about);
  }

  async load(n) {
    const counts = await readArray(this.counts);
    const steps = await readArray(this.steps);
    this.weights = this.weight ? await readNumbers(this.weight) : null;
    this.wordsOf = this.kinds ? await readArray(this.kinds) : null;
    const m = steps.length;
    const [from, to] = [new Uint32Array(m), new Uint32Array(m)];
    for (let v = 0, e = 0; v < n; v++) {
      let last = this.directed ? -1 : v - 1;
      for (let k = 0; k < counts[v]; k++, e++) {
        last += steps[e] + 1;
        from[e] = v;
        to[e] = last;
      }
    }
    const starts = new Uint32Array(n + 1);
    for (let e = 0; e < m; e++) {
      starts[from[e] + 1]++;
      if (to[e] !== from[e]) starts[to[e] + 1]++;
    }
    for (let v = 0; v < n; v++) starts[v + 1] += starts[v];
    const fill = starts.slice(0, n);
    const ends = new Uint32Array(starts[n]);
    for (let e = 0; e < m; e++) {
      ends[fill[from[e]]++] = e;
      if (to[e] !== from[e]) ends[fill[to[e]]++] = e;
    }
    Object.assign(this, { from, to, starts, ends, m });
  }

  // Row v of a directed graph lists the nodes that point to v. `kinds` are the relations of the edges between two nodes.
  of(v) {
    const found = new Map();
    for (let k = this.starts[v]; k < this.starts[v + 1]; k++) {
      const e = this.ends[k];
      const own = this.from[e] === v;
      const node = own ? this.to[e] : this.from[e];
      const entry = found.get(node) ?? { node, weight: null, out: false, in: false, edge: e, kinds: new Set() };
      if (this.wordsOf) for (const word of this.words[this.wordsOf[e]]) entry.kinds.add(word);
      const weight = this.weights ? this.weights[e] : 1;
      if (!this.directed || own) Object.assign(entry, { in: true, weight, edge: e });
      if (!this.directed || !own) entry.out = true;
      entry.weight ??= weight;
      found.set(node, entry);
    }
    return [...found.values()];
  }
}

class Nearest {
  constructor(about) {
    Object.assign(this, about);
  }

  async load() {
    const steps = await readArray(this.steps);
    this.similarities = await readArray(this.similarity);
    this.rows = new Int32Array(steps.length);
    for (let i = 0; i < steps.length; i++) this.rows[i] = Math.floor(i / this.k) + unzigzag(steps[i]);
  }

  // Where the parts of a pair are if those of the first `most` nearest nodes are stored; −1 if they are not.
  place(pair, most) {
    const rank = pair % this.k;
    return rank < most ? Math.floor(pair / this.k) * most + rank : -1;
  }

  // {node, similarity, pair} of the nearest nodes, the most similar first.
  of(v) {
    const found = [];
    for (let pair = v * this.k; pair < (v + 1) * this.k; pair++) {
      if (this.rows[pair] === v) continue; // fewer than k: the list is filled with the node itself
      found.push({ node: this.rows[pair], similarity: this.similarities[pair] * this.scale, pair });
    }
    return found;
  }
}

// What a node attends to, anchor by anchor: c_vuj = a_vu α_uj / D_vj. See explore/attention.py.
class Attention {
  constructor(about, edges) {
    Object.assign(this, about);
    this.edges = about.members ? new Edges(about.members) : edges;
    this.apart = Boolean(about.members);
  }

  async load(n) {
    if (this.apart) await this.edges.load(n);
    this.alpha = await readArray(this.responsibilities);
    this.weights = this.weight && (await readNumbers(this.weight));
    this.own = this.self && (await readNumbers(this.self));
    this.total = this.mass && (await readNumbers(this.mass));
  }

  // The members of a node that are on the page: {node, weight}.
  membersOf(v) {
    const found = [];
    for (const { node, weight, edge, in: member } of this.edges?.of(v) ?? []) {
      if (!member || (node === v && !this.apart)) continue;
      found.push({ node, weight: this.apart ? weight : this.weights ? this.weights[edge] : 1 });
    }
    if (!this.apart && (!this.own || this.own[v] > 0)) found.push({ node: v, weight: this.own ? this.own[v] : 1 });
    return found;
  }

  // By member its share for each anchor; `seen` is how much of the attention goes to nodes of the page.
  of(v) {
    const { alpha, total, anchors: p } = this;
    const sums = new Float64Array(p);
    const shares = new Map();
    for (const { node, weight } of this.membersOf(v)) {
      const row = new Float64Array(p);
      for (let j = 0; j < p; j++) sums[j] += row[j] = (weight * alpha[node * p + j]) / 255;
      shares.set(node, row);
    }
    const seen = new Float64Array(p);
    for (let j = 0; j < p; j++) {
      const all = total ? Math.max(total[v * p + j], sums[j]) : sums[j];
      for (const row of shares.values()) row[j] = all > 0 ? row[j] / all : 0;
      seen[j] = all > 0 ? sums[j] / all : 0;
    }
    return { shares, seen };
  }
}

// Sparse features of the nodes, for what two neighbourhoods share.
class Features {
  constructor(about) {
    Object.assign(this, about);
  }

  async load() {
    const counts = await readArray(this.counts);
    this.columns = await readArray(this.index);
    const values = await readArray(this.value);
    this.values = Float32Array.from(values, (value) => value * this.scale);
    this.means = await readArray(this.mean);
    this.tells = await readArray(this.tells);
    this.starts = new Uint32Array(counts.length + 1);
    for (let v = 0; v < counts.length; v++) this.starts[v + 1] = this.starts[v] + counts[v];
  }

  // Σ_u share_u x_u as a dense row.
  average(shares) {
    const row = new Float64Array(this.names.length);
    for (const [u, share] of shares) {
      for (let e = this.starts[u]; e < this.starts[u + 1]; e++) row[this.columns[e]] += share * this.values[e];
    }
    return row;
  }
}

export class Data {
  constructor(about) {
    this.about = about;
    this.n = about.n;
    this.ids = new Ids(about.ids);
    this.columns = about.columns.map((column) => new Column(column));
    this.edges = about.edges && new Edges(about.edges);
    this.nearest = about.nearest && new Nearest(about.nearest);
    this.attention = about.attention && new Attention(about.attention, this.edges);
    this.features = about.features && new Features(about.features);
    this.maps = about.maps.map((map) => ({ ...map, points: null }));
  }

  // The coordinates of a map, in [-1, 1]: x and y of node i at 2 i.
  async map(number) {
    const map = this.maps[number];
    if (!map.points) {
      const [x, y] = await Promise.all([readArray(map.x), readArray(map.y)]);
      const points = new Float32Array(2 * this.n);
      for (let i = 0; i < this.n; i++) {
        points[2 * i] = (x[i] / 65535) * 2 - 1;
        points[2 * i + 1] = (y[i] / 65535) * 2 - 1;
      }
      map.points = points;
    }
    return map.points;
  }

  // How many nodes there are in every cell of a map, also of those that are not on the page; null if all are.
  async raster(number) {
    const { raster } = this.maps[number];
    return raster ? readArray(raster) : null;
  }

  // Everything that is not needed for the first picture, in the order in which people need it.
  async load() {
    const tasks = [
      () => this.ids.load(),
      () => this.order(),
      () => this.nearest?.load(),
      () => this.edges?.load(this.n),
      ...this.columns.map((column) => () => column.load()),
      () => this.attention?.load(this.n),
      () => this.alike(),
      () => this.features?.load(),
      ...this.maps.map((_, number) => () => this.map(number)),
    ];
    for (const task of tasks) {
      await task();
      await new Promise((resolve) => setTimeout(resolve)); // let the map answer in between
    }
  }

  // The row of every node in the embedding, by which files are sorted.
  async order() {
    // Without ids of their own, nodes have row numbers.
    this.rows = this.about.rows ? await readArray(this.about.rows) : Array.from({ length: this.n }, (_, i) => Number(this.ids.get(i)));
  }

  async alike() {
    const about = this.about.alike;
    if (!about) return;
    this.parts = await readArray(about.nearest);
    this.edgeParts = about.edges ? await readArray(about.edges) : null;
  }

  // The contributions of the blocks to the similarity of a pair, if the page holds them.
  blocksOf(pair, edge) {
    const about = this.about.alike;
    if (!about) return null;
    const place = pair === undefined ? -1 : this.nearest.place(pair, about.k);
    const [stored, index] = place >= 0 ? [this.parts, place] : [this.edgeParts, edge];
    if (!stored || index === undefined) return null;
    return about.blocks.map((name, b) => ({ name, value: stored[index * about.blocks.length + b] * about.scale }));
  }
}
