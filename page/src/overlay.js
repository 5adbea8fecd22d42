// What is drawn over the points: the chosen node and its neighbours, names on the map, the lasso.

const FONT = '"Inter", system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

function ring(context, x, y, radius, stroke, width, halo) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.lineWidth = width + 3;
  context.strokeStyle = halo;
  context.stroke();
  context.lineWidth = width;
  context.strokeStyle = stroke;
  context.stroke();
}

export class Overlay {
  constructor(canvas, camera) {
    this.canvas = canvas;
    this.camera = camera;
    this.labels = [];
    Object.assign(this, { focus: -1, other: -1, hover: -1, linked: [], near: [], lasso: null, showLabels: true });
  }

  paint(points, theme, size) {
    const { canvas, camera } = this;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(camera.width * ratio);
    canvas.height = Math.round(camera.height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.globalAlpha = this.focus >= 0 ? 0.35 : 1;
    if (this.showLabels) this.drawLabels(context, theme);
    context.globalAlpha = 1;
    if (this.focus >= 0) this.drawFocus(context, points, theme, size);
    if (this.hover >= 0 && this.hover !== this.focus) {
      const [x, y] = camera.toScreen(points[2 * this.hover], points[2 * this.hover + 1]);
      ring(context, x, y, size / 2 + 2.5, theme.ink, 1.5, theme.halo);
    }
    if (this.lasso) this.drawLasso(context, theme);
  }

  drawFocus(context, points, theme, size) {
    const at = (i) => this.camera.toScreen(points[2 * i], points[2 * i + 1]);
    const [fx, fy] = at(this.focus);
    const lines = (nodes, colour, dash, alpha) => {
      context.setLineDash(dash);
      context.strokeStyle = colour;
      context.globalAlpha = alpha;
      context.lineWidth = 1.25;
      context.beginPath();
      for (const i of nodes) {
        const [x, y] = at(i);
        context.moveTo(fx, fy);
        context.lineTo(x, y);
      }
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
    };
    lines(this.near, theme.accent, [3, 3], 0.75);
    lines(this.linked, theme.ink, [], Math.max(0.12, Math.min(0.55, 3 / Math.sqrt(this.linked.length))));
    for (const i of this.near) ring(context, ...at(i), size / 2 + 1.5, theme.accent, 1.5, theme.halo);
    if (this.linked.length <= 500) {
      for (const i of this.linked) ring(context, ...at(i), size / 2 + 1.5, theme.ink, 1.5, theme.halo);
    }
    if (this.other >= 0) ring(context, ...at(this.other), size / 2 + 4, theme.accent, 3, theme.halo);
    ring(context, fx, fy, size / 2 + 5, theme.focus, 3.5, theme.halo);
  }

  // The largest names first; one that would cover another is left out until there is room.
  drawLabels(context, theme) {
    const taken = [];
    this.shown = [];
    const [x0, y0, x1, y1] = this.camera.bounds;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const narrow = this.camera.width < 560;
    for (const { text, x, y, size: asked } of this.labels) {
      if (x < x0 || x > x1 || y < y0 || y > y1) continue;
      const size = narrow ? Math.min(asked, 13) : asked;
      const lines = wrapped(text, narrow ? 14 : 20);
      context.font = `600 ${size}px ${FONT}`;
      const width = Math.max(...lines.map((line) => context.measureText(line).width)) + 10;
      const height = lines.length * size * 1.2 + 6;
      const [ax, ay] = this.camera.toScreen(x, y);
      const px = Math.max(width / 2, Math.min(this.camera.width - width / 2, ax));
      const py = Math.max(height / 2, Math.min(this.camera.height - height / 2, ay));
      const box = [px - width / 2, py - height / 2, px + width / 2, py + height / 2];
      if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
      taken.push(box);
      this.shown.push(text);
      lines.forEach((line, k) => {
        const ly = py + (k - (lines.length - 1) / 2) * size * 1.2;
        context.lineWidth = 4;
        context.strokeStyle = theme.halo;
        context.strokeText(line, px, ly);
        context.fillStyle = theme.ink;
        context.fillText(line, px, ly);
      });
    }
  }

  drawLasso(context, theme) {
    context.beginPath();
    this.lasso.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.globalAlpha = 0.12;
    context.fillStyle = theme.accent;
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.strokeStyle = theme.accent;
    context.stroke();
  }
}

// At most two lines of some characters, cut between words.
function wrapped(text, most) {
  if (text.length <= most) return [text];
  const words = text.split(" ");
  const lines = [""];
  for (const word of words) {
    const last = lines.length - 1;
    if (lines[last] && lines[last].length + word.length > most) lines.push(word);
    else lines[last] = lines[last] ? `${lines[last]} ${word}` : word;
  }
  const kept = lines.slice(0, 2).map((line) => (line.length > 26 ? `${line.slice(0, 25)}…` : line));
  if (lines.length > 2) kept[1] = `${kept[1].replace(/…$/, "")}…`;
  return kept;
}

// Where the members of each group are densest, as labels: the largest groups first.
export function labelsOf(groups, points, codes, most = 40) {
  const cells = 24;
  const counts = groups.map(() => new Map());
  const sizes = groups.map(() => 0);
  for (let i = 0; i < codes.length; i++) {
    const k = codes[i];
    if (k < 0 || !counts[k]) continue;
    const column = Math.floor(((points[2 * i] + 1) / 2) * (cells - 1e-6));
    const row = Math.floor(((points[2 * i + 1] + 1) / 2) * (cells - 1e-6));
    const cell = row * cells + column;
    const entry = counts[k].get(cell) ?? [0, 0, 0];
    entry[0]++;
    entry[1] += points[2 * i];
    entry[2] += points[2 * i + 1];
    counts[k].set(cell, entry);
    sizes[k]++;
  }
  const total = sizes.reduce((a, b) => a + b, 0) || 1;
  const labels = groups.map((text, k) => {
    // The cell with its neighbours, so that a group on a border between cells keeps together.
    let best = null;
    for (const [cell] of counts[k]) {
      const sum = [0, 0, 0];
      for (const dr of [-1, 0, 1]) {
        for (const dc of [-1, 0, 1]) {
          if (cell % cells + dc < 0 || cell % cells + dc >= cells) continue;
          const near = counts[k].get(cell + dr * cells + dc);
          if (near) for (let c = 0; c < 3; c++) sum[c] += near[c];
        }
      }
      if (!best || sum[0] > best[0]) best = sum;
    }
    return best && { text, x: best[1] / best[0], y: best[2] / best[0], n: sizes[k] };
  });
  return labels
    .filter(Boolean)
    .sort((a, b) => b.n - a.n)
    .slice(0, most)
    .map((label) => ({ ...label, size: Math.round(Math.min(16, Math.max(11, 9 + 22 * Math.sqrt(label.n / total)))) }));
}
