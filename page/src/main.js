// The page: reads its data, draws the map, and answers to the pointer, the keys and the address.
import { Camera } from "./camera.js";
import { Colouring, fewValues } from "./colour.js";
import { Data } from "./data.js";
import { Density } from "./density.js";
import { $, calm, count, h, plural, replace, say } from "./dom.js";
import { listen, listenToKeys } from "./gestures.js";
import { Grid } from "./grid.js";
import { Legend } from "./legend.js";
import { parseLink, writeLink } from "./link.js";
import { labelsOf, Overlay } from "./overlay.js";
import { Panel } from "./panel.js";
import { createPoints, look } from "./points.js";
import { Search } from "./search.js";
import { Theme } from "./theme.js";

const PAIR = 6; // the largest zoom of a link to two nodes

class Explorer {
  constructor(about) {
    this.data = new Data(about);
    this.about = about;
    this.level = new Uint8Array(about.n);
    Object.assign(this, { mapNumber: 0, colourNumber: about.colour, scale: null, whole: false, only: null });
    Object.assign(this, { focus: -1, why: null, chosen: null, hits: null, lasso: false, view: "about", frame: 0, ready: false });
    this.stage = $("stage");
    this.camera = new Camera(() => this.later());
    this.overlay = new Overlay($("overlay"), this.camera);
    this.density = new Density($("density"));
    this.theme = new Theme(() => this.recolour());
    this.title();
  }

  // --- the beginning -------------------------------------------------------------------------------------

  async start() {
    const link = parseLink(location.hash);
    this.theme.set(link.theme ?? "auto", { keep: false });
    this.link = link;
    this.controls();
    this.attach(createPoints($("points"), { plain: link.renderer === "canvas" }));
    new ResizeObserver(() => this.resize()).observe(this.stage);
    this.resize();
    this.mapNumber = Math.max(0, this.about.maps.findIndex(({ name }) => name === link.map));
    const wanted = this.about.columns.findIndex(({ name, kind }) => name === link.colour && kind !== "text");
    if (wanted >= 0) this.colourNumber = wanted;
    else if (link.colour === "nothing") this.colourNumber = -1;
    this.scale = ["log", "linear"].includes(link.scale) ? link.scale : null;
    this.whole = link.scale === "categories";
    await this.placePoints({ first: true });
    await this.colour(this.colourNumber, { keepScale: true });
    this.camera.set({ ...this.camera.home, ...cameraOf(link) });
    await this.drawPoints();
    performance.mark("drawn");
    await this.data.load();
    await this.loaded();
  }

  title() {
    const { about } = this;
    document.title = about.title;
    $("title").textContent = about.title;
    const shown = about.total > about.n ? `${count(about.n)} of ${plural(about.total, "node")}` : plural(about.n, "node");
    $("facts").textContent = [shown, about.edges && plural(about.edges.total, "edge")].filter(Boolean).join(" · ");
  }

  controls() {
    const panelOn = {
      close: () => this.close(),
      go: (node) => this.go(node, { fly: "near" }),
      hover: (node) => this.hoverNode(node, false),
      centre: (node) => this.centre(node),
      zoomTo: (nodes) => this.camera.fly(this.camera.around(this.points, nodes)),
      why: (entry) => this.setWhy(entry),
    };
    this.panel = new Panel(this.data, panelOn);
    this.legend = new Legend(this.data, {
      colour: (number) => this.colour(number),
      scale: (name) => this.rescale({ scale: name }),
      whole: (whole) => this.rescale({ whole }),
      only: (codes) => this.keepOnly(codes),
      redraw: () => this.showLegend(),
    });
    this.search = new Search(this.data, {
      chosen: (node) => {
        this.hits = null;
        this.go(node, { fly: "to" });
      },
      found: (nodes) => this.showHits(nodes),
    });
    replace(
      $("maps"),
      this.about.maps.map(({ name, note }, number) =>
        h("button", { role: "radio", title: note, "aria-checked": String(number === 0), onclick: () => this.switchMap(number) }, name),
      ),
    );
    $("maps").hidden = this.about.maps.length < 2;
    const clicks = {
      "zoom-in": () => this.zoom(1.6),
      "zoom-out": () => this.zoom(1 / 1.6),
      "zoom-fit": () => this.camera.fly(this.camera.home),
      "lasso-mode": () => this.setLasso(!this.lasso),
      "labels-mode": () => this.setLabels(!this.overlay.showLabels),
      theme: () => this.theme.toggle(),
      share: () => this.share(),
      help: () => this.showAbout(),
    };
    for (const [id, act] of Object.entries(clicks)) $(id).addEventListener("click", act);
    listen(this.stage, this.camera, {
      mode: () => (this.lasso ? "lasso" : "pan"),
      hover: (px, py) => this.hover(px, py),
      leave: () => this.hoverNode(-1),
      click: (px, py, reach, event) => this.click(px, py, reach, event),
      lassoDraw: (path) => {
        this.overlay.lasso = path;
        this.later();
      },
      lassoEnd: (path, event) => this.lassoEnd(path, event),
    });
    listenToKeys(this.keys(), this.stage, this.camera);
    window.addEventListener("hashchange", () => this.follow(parseLink(location.hash)));
    matchMedia("(max-width: 760px)").addEventListener("change", () => this.layout());
    this.layout();
  }

  layout() {
    this.small = matchMedia("(max-width: 760px)").matches;
    this.legend.fold(this.small);
    this.togglePanel(!this.small);
  }

  keys() {
    return {
      "/": () => $("search").focus(),
      "+": () => this.zoom(1.6),
      "=": () => this.zoom(1.6),
      "-": () => this.zoom(1 / 1.6),
      0: () => this.camera.fly(this.camera.home),
      n: () => this.step(1),
      p: () => this.step(-1),
      w: () => this.askWhy(),
      s: () => this.setLasso(!this.lasso),
      l: () => this.setLabels(!this.overlay.showLabels),
      c: () => this.nextColour(),
      m: () => this.switchMap((this.mapNumber + 1) % this.about.maps.length),
      d: () => this.theme.toggle(),
      "?": () => this.showAbout(),
      Escape: () => this.escape(),
    };
  }

  attach(points) {
    this.dots = points;
    points.lost.then(() => {
      if (this.dots !== points) return;
      points.destroy();
      this.attach(createPoints($("points"), { plain: true }));
      this.recolour();
      say("WebGL was lost; the points are drawn on a plain canvas now");
    });
  }

  async loaded() {
    this.ready = true;
    $("search").disabled = false;
    $("search").placeholder = `Search ${plural(this.data.n, "node")}`;
    this.makeLabels();
    this.follow(this.link, { first: true });
    document.documentElement.dataset.ready = "true";
    performance.mark("ready");
  }

  // --- drawing -------------------------------------------------------------------------------------------

  resize() {
    const { clientWidth, clientHeight } = this.stage;
    const covered = this.small ? 0 : $("legend").offsetWidth + 28;
    if (clientWidth && clientHeight) this.camera.resize(clientWidth, clientHeight, covered);
  }

  later() {
    if (!this.points || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    const seen = this.grid.count(this.camera.bounds);
    this.look = look(this.data.n, seen, this.camera);
    this.dots.setLook(this.look);
    this.dots.view(this.camera);
    this.density.draw(this.camera);
    this.overlay.paint(this.points, this.theme.colours, this.look.size);
    this.placeTip();
    if (this.ready) this.keepLink();
  }

  async placePoints({ first = false } = {}) {
    const points = await this.data.map(this.mapNumber);
    this.points = points;
    this.grid = new Grid(points);
    [...$("maps").children].forEach((button, k) => button.setAttribute("aria-checked", String(k === this.mapNumber)));
    await this.setDensity();
    if (!first) await this.drawPoints({ transition: true });
  }

  async setDensity() {
    const raster = await this.data.raster(this.mapNumber);
    this.density.set(this.points, raster, this.theme.inkRgb, this.about.total);
  }

  // What is drawn follows from these; a click that changes none of them draws no point again.
  drawPoints(options) {
    const asked = [this.dots, this.points, this.colouring, this.hits, this.chosen, this.only];
    this.later();
    if (this.drawn?.every((value, k) => value === asked[k])) return Promise.resolve();
    this.drawn = asked;
    this.setLevels();
    return this.dots.draw({ points: this.points, index: this.colouring.index, level: this.level }, options);
  }

  // Faded: what the legend, the search or the selection leaves out. Strong: what they ask for.
  setLevels() {
    const { level, only, hits, chosen, colouring } = this;
    const few = hits ?? chosen;
    level.fill(few ? 1 : 0);
    if (few) for (const i of few) level[i] = 2;
    if (only && colouring.codes) {
      for (let i = 0; i < level.length; i++) if (!only.has(colouring.codes[i])) level[i] = 1;
    }
  }

  recolour() {
    if (!this.colouring) return;
    this.table = this.colouring.table(this.theme.name, this.theme.colours.accent);
    this.dots.setColours(this.table, this.theme.colours.paper);
    this.setDensity().then(() => this.later());
    this.showLegend();
    this.drawPoints();
    this.refreshPanel();
  }

  async colour(number, { keepScale = false } = {}) {
    if (!keepScale) [this.scale, this.whole] = [null, false];
    this.colourNumber = number;
    this.only = null;
    const column = number < 0 ? null : await this.data.columns[number].load();
    this.colouring = new Colouring(column, this.about.palette, { scale: this.scale, whole: this.whole });
    this.recolour();
    if (this.ready) this.makeLabels();
  }

  rescale({ scale = this.scale, whole = this.whole }) {
    Object.assign(this, { scale, whole });
    return this.colour(this.colourNumber, { keepScale: true });
  }

  nextColour() {
    const able = this.data.columns.flatMap((column, number) => (column.colours ? [number] : []));
    if (able.length) this.colour(able[(able.indexOf(this.colourNumber) + 1) % able.length]);
  }

  showLegend() {
    this.legend.show(this.colourNumber, this.colouring, this.table, this.only, this.whole);
  }

  keepOnly(codes) {
    this.only = codes;
    this.showLegend();
    this.drawPoints();
  }

  // Names of clusters, else of the categories that have a colour.
  makeLabels() {
    const clusters = this.data.columns.find(({ role }) => role === "cluster");
    const coloured = this.colouring.continuous ? null : this.colouring.column;
    const column = coloured?.kind === "category" && coloured.categories.length <= 40 ? coloured : clusters;
    if (!column?.codeOf) this.overlay.labels = [];
    else this.overlay.labels = labelsOf(column.categories, this.points, Int32Array.from({ length: this.data.n }, (_, i) => column.codeOf(i)));
    $("labels-mode").hidden = !this.overlay.labels.length;
    this.later();
  }

  setLabels(shown) {
    this.overlay.showLabels = shown;
    $("labels-mode").setAttribute("aria-pressed", String(shown));
    this.later();
  }

  async switchMap(number) {
    if (number === this.mapNumber) return;
    this.mapNumber = number;
    const [from, to] = [this.points, await this.data.map(number)];
    if (from === to) return;
    await this.placePoints();
    this.makeLabels();
    if (this.focus >= 0) this.centre(this.focus);
  }

  // --- pointing ------------------------------------------------------------------------------------------

  pointAt(px, py, reach) {
    const [x, y] = this.camera.toMap(px, py);
    const radius = (this.look.size / 2 + reach) / this.camera.scale;
    const strong = this.hits || this.chosen || this.only;
    const best = strong ? this.grid.nearest(x, y, radius, (i) => this.level[i] !== 1) : -1;
    return best >= 0 ? best : this.grid.nearest(x, y, radius);
  }

  hover(px, py) {
    this.hoverNode(this.pointAt(px, py, 3));
  }

  hoverNode(node, tip = true) {
    if (node === this.overlay.hover && tip === this.tipped) return;
    this.overlay.hover = node;
    this.tipped = tip;
    this.stage.classList.toggle("pointing", node >= 0 && tip);
    const element = $("tip");
    element.hidden = node < 0 || !tip || !this.ready;
    if (!element.hidden) {
      const { column } = this.colouring;
      const text = column?.brief(node);
      replace(
        element,
        h("strong", {}, this.data.ids.get(node)),
        column && h("span", {}, h("span", { class: "dot", style: { background: this.table[this.colouring.colourOf(node)] } }), `${column.name}: ${text ?? "missing"}`),
      );
    }
    this.later();
  }

  placeTip() {
    const element = $("tip");
    const node = this.overlay.hover;
    if (element.hidden || node < 0) return;
    const [x, y] = this.camera.toScreen(this.points[2 * node], this.points[2 * node + 1]);
    const left = Math.min(Math.max(8, x + 14), this.camera.width - element.offsetWidth - 8);
    const top = y + 14 + element.offsetHeight > this.camera.height ? y - element.offsetHeight - 12 : y + 14;
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  click(px, py, reach, event) {
    if (!this.ready) return;
    const node = this.pointAt(px, py, reach);
    if (node >= 0 && event.altKey && this.focus >= 0 && node !== this.focus) this.panel.explain(this.focus, this.pair(node), true);
    else if (node >= 0) this.go(node);
    else if (this.focus >= 0 || this.chosen) this.close();
  }

  lassoEnd(path) {
    this.overlay.lasso = null;
    if (!this.ready) return;
    let inside = this.grid.inside(path.map(([x, y]) => this.camera.toMap(x, y)));
    if (this.only && this.colouring.codes) inside = inside.filter((i) => this.only.has(this.colouring.codes[i]));
    if (this.hits) {
      const hits = new Set(this.hits);
      inside = inside.filter((i) => hits.has(i));
    }
    this.setLasso(false);
    this.select(inside);
  }

  setLasso(on) {
    this.lasso = on;
    this.stage.classList.toggle("lassoing", on);
    $("lasso-mode").setAttribute("aria-pressed", String(on));
    if (on) say("Draw around the nodes you want", { stays: 2500 });
  }

  zoom(factor) {
    this.camera.fly({ zoom: this.camera.zoom * factor }, 200);
  }

  // --- what the panel shows ------------------------------------------------------------------------------

  go(node, { fly = "", why = null } = {}) {
    const began = performance.now();
    this.focus = node;
    this.chosen = null;
    this.view = "node";
    this.why = why;
    const { data, overlay } = this;
    Object.assign(overlay, { focus: node, other: why?.node ?? -1, hover: -1 });
    overlay.linked = data.edges ? data.edges.of(node).map((one) => one.node).filter((other) => other !== node) : [];
    overlay.near = data.nearest ? data.nearest.of(node).map((one) => one.node) : [];
    this.togglePanel(true);
    this.panel.node(node, this.colouring, this.table, why);
    $("tip").hidden = true;
    this.drawPoints();
    if (fly) this.centre(node, fly);
    performance.measure("answer", { start: began, end: performance.now() });
  }

  // What is known of two nodes: their place among the nearest, and their edge.
  pair(other, node = this.focus) {
    return { node: other, ...this.panel.pairOf(node, { node: other }), ...this.panel.edgeOf(node, other) };
  }

  centre(node, how = "to") {
    const [x, y] = [this.points[2 * node], this.points[2 * node + 1]];
    const [px, py] = this.camera.toScreen(x, y);
    const inside = px > 60 && py > 60 && px < this.camera.width - 60 && py < this.camera.height - 60;
    if (how === "near" && inside) return;
    this.camera.fly({ x, y, zoom: how === "near" ? this.camera.zoom : Math.max(this.camera.zoom, 4) });
  }

  setWhy(entry) {
    this.why = entry;
    this.overlay.other = entry?.node ?? -1;
    this.later();
  }

  // Through the nearest nodes of the node where the walk began.
  step(direction) {
    if (this.focus < 0 || !this.data.nearest) return;
    if (!this.walk || this.walk.nodes[this.walk.at] !== this.focus) {
      this.walk = { nodes: [this.focus, ...this.data.nearest.of(this.focus).map(({ node }) => node)], at: 0 };
    }
    const { nodes } = this.walk;
    this.walk.at = (this.walk.at + direction + nodes.length) % nodes.length;
    this.go(nodes[this.walk.at], { fly: "near" });
  }

  askWhy() {
    if (this.focus < 0) return;
    const near = this.data.nearest?.of(this.focus)[0];
    const entry = this.why ?? near;
    if (entry) this.panel.explain(this.focus, entry, true);
  }

  select(nodes) {
    this.clearFocus();
    this.togglePanel(true);
    this.view = "selection";
    this.chosen = nodes.length ? nodes : null;
    if (nodes.length) this.panel.selection(nodes, this.colouring, this.table);
    else this.panel.empty();
    this.drawPoints();
  }

  showHits(nodes) {
    this.hits = nodes.length ? nodes : null;
    if (this.colouring) this.drawPoints();
  }

  showAbout() {
    this.clearFocus();
    this.chosen = null;
    this.view = "about";
    this.togglePanel(true);
    this.panel.about(this.dots.name === "WebGL" ? "WebGL" : "a plain canvas");
    this.drawPoints();
  }

  refreshPanel() {
    if (!this.ready && this.view !== "about") return;
    if (this.view === "node" && this.focus >= 0) this.panel.node(this.focus, this.colouring, this.table, this.why);
    else if (this.view === "selection" && this.chosen) this.panel.selection(this.chosen, this.colouring, this.table);
    else if (this.view === "about") this.panel.about(this.dots.name === "WebGL" ? "WebGL" : "a plain canvas");
  }

  clearFocus() {
    Object.assign(this, { focus: -1, why: null });
    Object.assign(this.overlay, { focus: -1, other: -1, linked: [], near: [] });
  }

  close() {
    const was = this.view;
    this.clearFocus();
    this.chosen = null;
    this.drawPoints();
    if (was === "about" || this.small) this.togglePanel(false);
    this.view = "about";
    this.refreshPanel();
  }

  togglePanel(open) {
    document.body.classList.toggle("with-panel", open);
    this.resize();
  }

  escape() {
    if (document.activeElement === $("search") && $("search").value) return this.search.clear();
    document.activeElement?.blur();
    if (this.overlay.lasso || this.lasso) {
      this.overlay.lasso = null;
      this.setLasso(false);
    } else if (this.focus >= 0 || this.chosen) this.close();
    else if (this.hits) this.search.clear();
    else if (this.only) this.keepOnly(null);
    this.stage.focus({ preventScroll: true });
  }

  // --- the link ------------------------------------------------------------------------------------------

  viewNow() {
    const { camera, colouring } = this;
    const { moved } = camera;
    const named = this.only && colouring.entries && [...colouring.entries, ...(colouring.rest ?? [])];
    return {
      map: this.about.maps.length > 1 ? this.about.maps[this.mapNumber].name : null,
      colour: this.colourNumber < 0 ? "nothing" : this.data.columns[this.colourNumber].name,
      scale: this.whole ? "categories" : this.scale,
      x: moved ? camera.x : null,
      y: moved ? camera.y : null,
      zoom: moved ? camera.zoom : null,
      node: this.focus >= 0 ? this.data.ids.get(this.focus) : null,
      with: this.focus >= 0 && this.why ? this.data.ids.get(this.why.node) : null,
      search: $("search").value.trim(),
      only: named ? named.filter((entry) => !entry.other && entry.codes?.every((code) => this.only.has(code))).map(({ name }) => name) : null,
      labels: this.overlay.showLabels ? null : "no",
      theme: this.theme.asked === "auto" ? null : this.theme.asked,
      renderer: this.dots.name === "canvas" && this.link.renderer === "canvas" ? "canvas" : null,
    };
  }

  keepLink() {
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => writeLink(this.viewNow()), 150);
  }

  async follow(link, { first = false } = {}) {
    if (!this.ready) return;
    if (!first) {
      clearTimeout(this.keeping);
      const map = this.about.maps.findIndex(({ name }) => name === link.map);
      if (map >= 0) await this.switchMap(map);
      const colour = this.about.columns.findIndex(({ name, kind }) => name === link.colour && kind !== "text");
      if (colour >= 0 && colour !== this.colourNumber) await this.colour(colour);
      this.camera.set({ ...this.camera.home, ...cameraOf(link) });
    }
    this.setLabels(link.labels !== "no");
    if (link.only) this.followOnly(link.only);
    if (link.search) {
      $("search").value = link.search;
      this.search.look({ quiet: true });
    }
    if (link.node !== undefined) this.followNode(link);
    else if (!first && this.focus >= 0) this.close();
  }

  followOnly(names) {
    const { entries, rest = [], codes } = this.colouring;
    if (!codes) return;
    const found = [...entries, ...rest].filter((entry) => !entry.other && names.includes(entry.name));
    if (found.length) this.keepOnly(new Set(found.flatMap((entry) => entry.codes)));
  }

  followNode(link) {
    const node = this.data.ids.find(link.node);
    if (node < 0) {
      const part = this.about.total > this.about.n ? ` It shows ${count(this.about.n)} of ${count(this.about.total)} nodes.` : "";
      say(`This page has no node “${link.node}”.${part}`, { stays: 8000 });
      return;
    }
    const other = link.with === undefined ? -1 : this.data.ids.find(link.with);
    const entry = other < 0 || other === node ? null : this.pair(other, node);
    const places = link.zoom === undefined;
    this.go(node, { why: entry, fly: places && !entry ? "to" : "" });
    if (places && entry) this.camera.fly(this.camera.around(this.points, [node, other], PAIR));
    $("why")?.scrollIntoView({ block: "nearest" });
  }

  async share() {
    writeLink(this.viewNow());
    const where = location.protocol === "file:" ? "It opens this view where the file has the same path." : "It opens this view.";
    try {
      await navigator.clipboard.writeText(location.href);
      say(`Link copied. ${where}`);
    } catch {
      say("The address of the page is the link to this view.");
    }
  }
}

function cameraOf({ x, y, zoom }) {
  return Object.fromEntries(Object.entries({ x, y, zoom }).filter(([, value]) => value !== undefined));
}

function tooOld() {
  return typeof DecompressionStream === "undefined" ? "This page needs a browser of 2023 or later." : "";
}

async function begin() {
  const about = JSON.parse($("about").textContent);
  const reason = tooOld();
  if (reason) {
    say(reason, { stays: 1e9 });
    return;
  }
  const explorer = new Explorer(about);
  try {
    await explorer.start();
  } catch (error) {
    console.error(error);
    say(`The page cannot be shown: ${error.message}`, { stays: 1e9 });
  }
}

begin();
