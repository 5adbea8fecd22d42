// Points by the cells of a grid: which one is under the pointer, which ones are in a lasso, how many are seen.

const CELLS = 256;

const cellOf = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(((value + 1) / 2) * CELLS)));

export class Grid {
  constructor(points) {
    this.points = points;
    const n = points.length / 2;
    const cells = new Uint32Array(n);
    const starts = new Uint32Array(CELLS * CELLS + 1);
    for (let i = 0; i < n; i++) {
      cells[i] = cellOf(points[2 * i + 1]) * CELLS + cellOf(points[2 * i]);
      starts[cells[i] + 1]++;
    }
    for (let c = 0; c < CELLS * CELLS; c++) starts[c + 1] += starts[c];
    const fill = starts.slice(0, -1);
    this.order = new Uint32Array(n);
    for (let i = 0; i < n; i++) this.order[fill[cells[i]]++] = i;
    this.starts = starts;
  }

  *within(x0, y0, x1, y1) {
    const [c0, c1] = [cellOf(x0), cellOf(x1)];
    for (let row = cellOf(y0); row <= cellOf(y1); row++) {
      const [from, to] = [this.starts[row * CELLS + c0], this.starts[row * CELLS + c1 + 1]];
      for (let k = from; k < to; k++) yield this.order[k];
    }
  }

  // About how many points are in a part of the map: whole cells are counted.
  count([x0, y0, x1, y1]) {
    if (x1 < -1 || x0 > 1 || y1 < -1 || y0 > 1) return 0;
    let total = 0;
    const [c0, c1] = [cellOf(x0), cellOf(x1)];
    for (let row = cellOf(y0); row <= cellOf(y1); row++) {
      total += this.starts[row * CELLS + c1 + 1] - this.starts[row * CELLS + c0];
    }
    return total;
  }

  // The nearest point within a radius, of those that `allowed` admits; -1 if there is none.
  nearest(x, y, radius, allowed = () => true) {
    let [best, least] = [-1, radius * radius];
    for (const i of this.within(x - radius, y - radius, x + radius, y + radius)) {
      const distance = (this.points[2 * i] - x) ** 2 + (this.points[2 * i + 1] - y) ** 2;
      if (distance <= least && allowed(i)) [best, least] = [i, distance];
    }
    return best;
  }

  // The points in a polygon [[x, y], …], by the rule of even crossings.
  inside(polygon) {
    const xs = polygon.map(([x]) => x);
    const ys = polygon.map(([, y]) => y);
    const found = [];
    for (const i of this.within(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys))) {
      const [x, y] = [this.points[2 * i], this.points[2 * i + 1]];
      let odd = false;
      for (let a = 0, b = xs.length - 1; a < xs.length; b = a++) {
        if (ys[a] > y !== ys[b] > y && x < ((xs[b] - xs[a]) * (y - ys[a])) / (ys[b] - ys[a]) + xs[a]) odd = !odd;
      }
      if (odd) found.push(i);
    }
    return Uint32Array.from(found).sort();
  }
}
