// The points: on WebGL by regl-scatterplot, or on a plain canvas where there is no WebGL.
//
// Both draw the same: `draw({points, index, level})`, with the colour of every point by its number in `colours`, and its
// level: 0 plain, 1 faded, 2 strong. The camera, the pointer and the lasso are not theirs.
import createScatterplot, { createRenderer } from "regl-scatterplot";
import { calm } from "./dom.js";

const NO_INDEX = () => {
  // regl-scatterplot needs an index of the points to find them under the pointer; the page finds them itself.
  const empty = new ArrayBuffer(8);
  new Uint8Array(empty).set([0xdb, 0x10 + 8]);
  new Uint16Array(empty, 2, 1)[0] = 64;
  return empty;
};

// The diameter of a point in CSS pixels, and its opacity: crowded maps have small, clear points.
export function look(n, seen, camera) {
  const base = Math.min(9, Math.max(1.8, 44 / n ** 0.25 - 0.7));
  const grown = base * (camera.zoom > 1 ? Math.min(2.6, Math.asinh(camera.zoom) / Math.asinh(1)) : 1);
  const size = Math.min(grown, Math.max(base, 11));
  const covered = (seen * size * size * 0.785) / (camera.width * camera.height);
  return { size, opacity: Math.min(0.9, Math.max(0.22, 0.42 / Math.sqrt(Math.max(covered, 1e-9)))) };
}

const FADED = 0.17;

class WebGLPoints {
  static create(canvas) {
    // With a canvas of its own the renderer leaves its size to the page; else it is that of the window, at most the screen's.
    const renderer = createRenderer({ canvas: document.createElement("canvas") });
    if (!renderer.isSupported) throw new Error("WebGL cannot draw on textures of floats");
    return new WebGLPoints(canvas, renderer);
  }

  constructor(canvas, renderer) {
    this.name = "WebGL";
    this.renderer = renderer;
    this.canvas = canvas;
    this.lost = new Promise((resolve) => renderer.canvas.addEventListener("webglcontextlost", resolve));
    this.plot = createScatterplot({
      renderer,
      canvas,
      cameraIsFixed: true,
      deselectOnEscape: false,
      deselectOnDblClick: false,
      actionKeyMap: {},
      colorBy: "valueA",
      opacityBy: "valueB",
      sizeBy: "valueB",
      pointScaleMode: "constant",
      antiAliasing: 0.8,
    });
    this.waiting = null;
    this.busy = false;
  }

  setColours(colours, paper) {
    this.plot.set({ pointColor: colours, backgroundColor: paper });
  }

  setLook({ size, opacity }) {
    const key = `${size.toFixed(2)} ${opacity.toFixed(2)}`;
    if (key === this.key) return;
    this.key = key;
    const small = Math.max(1, size * 0.8);
    this.plot.set({ pointSize: [size, small, size * 1.35], opacity: [opacity, opacity * FADED, Math.max(opacity, 0.95)] });
  }

  view(camera) {
    const ratio = window.devicePixelRatio || 1;
    const size = `${camera.width} ${camera.height} ${ratio}`;
    if (size !== this.sized) {
      this.sized = size;
      this.renderer.resize(camera.width, camera.height);
      this.plot.set({ width: camera.width, height: camera.height });
    }
    this.plot.view(camera.matrix, { preventEvent: true });
  }

  // Draws that arrive while one is under way wait for it; only the last of them is drawn.
  draw(state, { transition = false } = {}) {
    this.waiting = { state, transition };
    this.done ??= this.work();
    return this.done;
  }

  async work() {
    while (this.waiting) {
      const { state, transition } = this.waiting;
      this.waiting = null;
      const { points, index, level } = state;
      const n = points.length / 2;
      const rows = new Array(n);
      for (let i = 0; i < n; i++) rows[i] = [points[2 * i], points[2 * i + 1], index ? index[i] : 2, level[i]];
      await this.plot.draw(rows, {
        spatialIndex: NO_INDEX(),
        zDataType: "categorical",
        wDataType: "categorical",
        transition: transition && !calm() && !document.hidden,
        transitionDuration: 700,
      });
    }
    this.done = null;
  }

  destroy() {
    this.plot.destroy();
  }
}

class CanvasPoints {
  constructor(canvas) {
    this.name = "canvas";
    this.canvas = canvas;
    this.lost = new Promise(() => {});
    this.context = canvas.getContext("2d");
    this.frame = 0;
  }

  setColours(colours) {
    this.colours = colours;
    this.later();
  }

  setLook(values) {
    this.size = values;
    this.later();
  }

  view(camera) {
    this.camera = camera;
    this.later();
  }

  async draw(state) {
    this.state = state;
    this.later();
  }

  later() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    const { canvas, context, camera, state, size } = this;
    if (!camera || !state || !size) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(camera.width * ratio);
    canvas.height = Math.round(camera.height * ratio);
    context.scale(ratio, ratio);
    const { points, index, level } = state;
    const [x0, y0, x1, y1] = camera.bounds;
    // By level and colour, so that the style changes rarely: faded points first, strong ones last.
    const groups = new Map();
    for (let i = 0; i < level.length; i++) {
      const [x, y] = [points[2 * i], points[2 * i + 1]];
      if (x < x0 || x > x1 || y < y0 || y > y1) continue;
      const key = [1, 0, 2].indexOf(level[i]) * 1000 + (index ? index[i] : 2);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(i);
    }
    for (const key of [...groups.keys()].sort((a, b) => a - b)) {
      const strength = [1, 0, 2][Math.floor(key / 1000)];
      const d = size.size * [1, 0.8, 1.35][strength];
      context.globalAlpha = [size.opacity, size.opacity * FADED, Math.max(size.opacity, 0.95)][strength];
      context.fillStyle = this.colours[key % 1000];
      for (const i of groups.get(key)) {
        const [px, py] = camera.toScreen(points[2 * i], points[2 * i + 1]);
        if (d < 3) context.fillRect(px - d / 2, py - d / 2, d, d);
        else {
          context.beginPath();
          context.arc(px, py, d / 2, 0, 7);
          context.fill();
        }
      }
    }
    context.globalAlpha = 1;
  }

  destroy() {
    cancelAnimationFrame(this.frame);
  }
}

// The points on a canvas that stands in for `canvas`, which may have had another kind of context.
export function createPoints(canvas, { plain = false } = {}) {
  const fresh = canvas.cloneNode();
  canvas.replaceWith(fresh);
  if (!plain) {
    try {
      return WebGLPoints.create(fresh);
    } catch (error) {
      console.info(`no WebGL (${error.message}); the points are drawn on a plain canvas`);
    }
  }
  const again = fresh.cloneNode();
  fresh.replaceWith(again);
  return new CanvasPoints(again);
}
