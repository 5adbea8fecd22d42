// Where the map is looked at: its centre (x, y) and its zoom. The square [-1, 1]² fills the shorter side at zoom 1.
import { calm } from "./dom.js";

const HOME = { x: 0, y: 0, zoom: 0.92 };
const [LEAST, MOST] = [0.3, 4000];

export class Camera {
  constructor(changed) {
    Object.assign(this, HOME, { width: 1, height: 1, covered: 0, changed, moving: 0 });
  }

  // The whole map, in the middle of what the legend on the left leaves of a wide screen.
  get home() {
    const [free, map] = [this.width - this.covered, Math.min(this.width, this.height) * HOME.zoom];
    if (free < map * 0.9) return HOME;
    const shift = Math.min(this.covered / 2, Math.max(0, this.covered - (this.width - map) / 2));
    return { ...HOME, x: (-2 * shift) / map };
  }

  // Pixels of one unit of the map.
  get scale() {
    return (Math.min(this.width, this.height) / 2) * this.zoom;
  }

  // A map at home stays at home.
  resize(width, height, covered) {
    const home = this.home;
    const athome = ["x", "y", "zoom"].every((key) => Math.abs(this[key] - home[key]) < 1e-6);
    Object.assign(this, { width, height, covered });
    if (athome) Object.assign(this, this.home);
    this.changed();
  }

  get moved() {
    const home = this.home;
    return ["x", "y", "zoom"].some((key) => Math.abs(this[key] - home[key]) > 1e-6);
  }

  toScreen(x, y) {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  toMap(px, py) {
    return [this.x + (px - this.width / 2) / this.scale, this.y - (py - this.height / 2) / this.scale];
  }

  // The part of the map that is seen: [x0, y0, x1, y1].
  get bounds() {
    const [x0, y1] = this.toMap(0, 0);
    const [x1, y0] = this.toMap(this.width, this.height);
    return [x0, y0, x1, y1];
  }

  // The column-major matrix that regl-scatterplot takes; it puts [-1, 1] on the height.
  get matrix() {
    const k = this.scale / (this.height / 2);
    return [k, 0, 0, 0, 0, k, 0, 0, 0, 0, 1, 0, -this.x * k, -this.y * k, 0, 1];
  }

  set(view) {
    cancelAnimationFrame(this.moving);
    this.place(view);
  }

  place({ x = this.x, y = this.y, zoom = this.zoom }) {
    this.zoom = Math.min(MOST, Math.max(LEAST, zoom));
    this.x = Math.min(1.5, Math.max(-1.5, x));
    this.y = Math.min(1.5, Math.max(-1.5, y));
    this.changed();
  }

  pan(dx, dy) {
    this.set({ x: this.x - dx / this.scale, y: this.y + dy / this.scale });
  }

  // Zoom about a point of the screen, which stays where it is.
  zoomAt(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.toMap(px, py);
    this.set({ zoom: this.zoom * factor });
    const [nx, ny] = this.toMap(px, py);
    this.place({ x: this.x + x - nx, y: this.y + y - ny });
  }

  // Move there in a moment; zooms run evenly on a log scale.
  fly({ x = this.x, y = this.y, zoom = this.zoom }, duration = 450) {
    cancelAnimationFrame(this.moving);
    if (calm() || document.hidden) return this.place({ x, y, zoom });
    const from = { x: this.x, y: this.y, zoom: this.zoom };
    const began = performance.now();
    const step = (now) => {
      const t = Math.min(1, Math.max(0, (now - began) / duration));
      const s = t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2;
      this.place({
        x: from.x + (x - from.x) * s,
        y: from.y + (y - from.y) * s,
        zoom: from.zoom * (zoom / from.zoom) ** s,
      });
      if (t < 1) this.moving = requestAnimationFrame(step);
    };
    this.moving = requestAnimationFrame(step);
  }

  // The view that shows these points, with room around them, beside what the legend covers.
  around(points, nodes, most = 40) {
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const i of nodes) {
      x0 = Math.min(x0, points[2 * i]);
      x1 = Math.max(x1, points[2 * i]);
      y0 = Math.min(y0, points[2 * i + 1]);
      y1 = Math.max(y1, points[2 * i + 1]);
    }
    if (x0 > x1) return this.home;
    const unit = Math.min(this.width, this.height) / 2;
    const covered = this.covered < this.width / 2 ? this.covered : 0;
    const [wide, high] = [(0.8 * (this.width - covered)) / unit, (0.8 * this.height) / unit];
    const zoom = Math.min(wide / Math.max(x1 - x0, 1e-9), high / Math.max(y1 - y0, 1e-9), most);
    return { x: (x0 + x1) / 2 - covered / 2 / (unit * zoom), y: (y0 + y1) / 2, zoom };
  }
}
