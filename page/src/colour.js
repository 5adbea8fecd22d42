// What colours mean: categories with "other", continuous scales, grey for missing values.

const MISSING = { light: "#d3d4d0", dark: "#3d4348" };
const OTHER = { light: "#9aa1a8", dark: "#767f88" };
const STEPS = 64;

// Perceptually even from few to much; the end that fades into the paper is left out.
const RAMPS = {
  light: ["#cfe1b9", "#8fc79a", "#4fa893", "#2a8590", "#235f86", "#26386e", "#231a45"],
  dark: ["#2c3a63", "#2f5f8a", "#32858f", "#4cab8b", "#8ccb7e", "#cbe07f", "#fbf3a6"],
};

function rgb(hex) {
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
}

function ramp(theme) {
  const stops = RAMPS[theme].map(rgb);
  return Array.from({ length: STEPS }, (_, k) => {
    const at = (k / (STEPS - 1)) * (stops.length - 1);
    const [low, rest] = [Math.min(Math.floor(at), stops.length - 2), at - Math.min(Math.floor(at), stops.length - 2)];
    const mixed = stops[low].map((value, c) => Math.round(value + (stops[low + 1][c] - value) * rest));
    return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
  });
}

// The colours of categories: those of the palette, with its black turned where the paper is dark.
export function paletteOf(palette, theme) {
  return palette.map((colour) => (colour === "#000000" ? (theme === "dark" ? "#f2f2f2" : "#2b2b2b") : colour));
}

// How one column colours the nodes. `index[i]` is the colour of node i: 0 missing, 1 other, then the others.
export class Colouring {
  constructor(column, palette, { scale = null, whole = false } = {}) {
    this.column = column;
    this.palette = palette;
    this.continuous = column !== null && (column.kind === "number" || column.kind === "date") && !whole;
    if (column === null) this.plain();
    else if (this.continuous) this.numbers(scale);
    else this.categories();
  }

  plain() {
    this.index = null;
    this.entries = [];
  }

  categories() {
    const { column } = this;
    const names = column.kind === "category" ? column.categories : distinct(column);
    const code = column.kind === "category" ? column.codeOf : coder(column, names);
    const n = column.kind === "category" ? column.codes.n : column.values.length;
    const counts = new Uint32Array(names.length);
    let missing = 0;
    const codes = new Int32Array(n);
    for (let i = 0; i < n; i++) {
      codes[i] = code(i);
      if (codes[i] < 0) missing++;
      else counts[codes[i]]++;
    }
    const present = names.map((_, k) => k).filter((k) => counts[k]);
    const most = this.palette.length;
    const ranked = [...present].sort((a, b) => counts[b] - counts[a] || a - b);
    // A few categories keep their order; of many the largest come first.
    const shown = present.length <= most ? present : ranked.slice(0, most);
    const own = new Set(shown);
    const colourOf = new Uint8Array(names.length).fill(1);
    this.entries = shown.map((k, place) => {
      colourOf[k] = 2 + place;
      return { name: names[k], count: counts[k], colour: 2 + place, codes: [k] };
    });
    const rest = ranked.filter((k) => !own.has(k));
    this.rest = rest.map((k) => ({ name: names[k], count: counts[k], colour: 1, codes: [k] }));
    if (rest.length) {
      const total = rest.reduce((sum, k) => sum + counts[k], 0);
      this.entries.push({ name: `other (${rest.length} values)`, count: total, colour: 1, codes: rest, other: true });
    }
    if (missing) this.entries.push({ name: "missing", count: missing, colour: 0, codes: [-1], missing: true });
    this.codes = codes;
    this.index = Uint8Array.from(codes, (k) => (k < 0 ? 0 : colourOf[k]));
  }

  numbers(scale) {
    const { values } = this.column;
    const sorted = values.filter((value) => Number.isFinite(value)).sort();
    const at = (q) => sorted[Math.min(sorted.length - 1, Math.round(q * (sorted.length - 1)))] ?? 0;
    const [low, high] = [at(0), at(1)];
    const skewed = low >= 0 && at(0.98) > 20 * Math.max(at(0.5), 1e-12) && this.column.kind === "number";
    this.canLog = low >= 0 && high > 0 && this.column.kind === "number";
    this.scale = this.canLog ? (scale ?? (skewed ? "log" : "linear")) : "linear";
    // A few extremes would leave one colour for all others.
    [this.low, this.high] = [low, high];
    if (this.scale === "linear" && sorted.length > 100 && high - low > 1.5 * (at(0.99) - at(0.01))) {
      [this.low, this.high] = [at(0.01), at(0.99)];
    }
    this.clipped = this.low > low || this.high < high;
    // On a log scale zero has a place of its own, one step below the least number above it.
    const least = this.scale === "log" ? (sorted.find((value) => value > 0) ?? 1) : 0;
    const shift = this.scale === "log" && low === 0 ? least : 0;
    const place = this.scale === "log" ? (value) => Math.log(value + shift) : (value) => value;
    const [from, to] = [place(this.low), place(this.high)];
    this.fraction = (value) => (to > from ? Math.min(1, Math.max(0, (place(value) - from) / (to - from))) : 0.5);
    this.valueAt = (fraction) => {
      const value = from + (to - from) * fraction;
      return this.scale === "log" ? Math.exp(value) - shift : value;
    };
    this.bins = new Uint32Array(STEPS);
    this.missing = 0;
    this.index = new Uint8Array(values.length);
    for (let i = 0; i < values.length; i++) {
      if (Number.isNaN(values[i])) {
        this.missing++;
        continue;
      }
      const step = Math.min(STEPS - 1, Math.floor(this.fraction(values[i]) * STEPS));
      this.bins[step]++;
      this.index[i] = 2 + step;
    }
    this.entries = this.missing ? [{ name: "missing", count: this.missing, colour: 0, missing: true }] : [];
  }

  // Hex colours by index.
  table(theme, accent) {
    if (!this.index) return [MISSING[theme], OTHER[theme], accent];
    const own = this.continuous ? ramp(theme) : paletteOf(this.palette, theme);
    return [MISSING[theme], OTHER[theme], ...own];
  }

  colourOf(i) {
    return this.index ? this.index[i] : 2;
  }
}

// The distinct values of a column of numbers, as its texts, in their order.
function distinct(column) {
  const found = new Set();
  for (const value of column.values) if (!Number.isNaN(value)) found.add(value);
  return [...found].sort((a, b) => a - b).map((value) => column.show(value));
}

function coder(column, names) {
  const codes = new Map(names.map((name, k) => [name, k]));
  return (i) => (Number.isNaN(column.values[i]) ? -1 : codes.get(column.show(column.values[i])));
}

// Whether whole numbers are few enough to be shown as categories.
export function fewValues(column, most = 60) {
  if (column.kind !== "number" || !column.integer) return false;
  const found = new Set();
  for (const value of column.values) {
    if (!Number.isNaN(value)) found.add(value);
    if (found.size > most) return false;
  }
  return found.size > 1;
}
