// The card with the colours: which column, what each colour means, and which categories are kept apart.
import { $, count, h, replace } from "./dom.js";
import { fewValues } from "./colour.js";

const SHOWN = 10;

export class Legend {
  // `on` has: colour(number), scale(name), whole(flag), only(codes or null)
  constructor(data, on) {
    this.on = on;
    this.open = false;
    this.select = $("colour");
    const groups = { "": [], "columns of the nodes": [] };
    data.columns.forEach((column, number) => {
      if (!column.colours) return;
      const group = column.role === "field" ? "columns of the nodes" : "";
      groups[group].push(h("option", { value: number }, column.name));
    });
    const fields = groups["columns of the nodes"];
    replace(
      this.select,
      groups[""],
      fields.length && groups[""].length ? h("optgroup", { label: "columns of the nodes" }, fields) : fields,
      h("option", { value: -1 }, "nothing"),
    );
    this.select.addEventListener("change", () => on.colour(Number(this.select.value)));
    $("legend-toggle").addEventListener("click", () => this.fold(!$("legend").classList.contains("folded")));
  }

  fold(folded) {
    $("legend").classList.toggle("folded", folded);
    $("legend-toggle").setAttribute("aria-expanded", String(!folded));
  }

  show(number, colouring, table, only, whole) {
    this.select.value = String(number);
    const body = $("legend-body");
    if (number < 0) return replace(body, h("p", { class: "note" }, "All nodes have one colour."));
    const { column } = colouring;
    const parts = [];
    if (colouring.continuous) parts.push(this.scale(colouring, table));
    parts.push(this.list(colouring, table, only));
    const whose = column.kind === "number" && fewValues(column);
    const switches = [];
    if (colouring.continuous && colouring.canLog) {
      const other = colouring.scale === "log" ? "linear" : "log";
      switches.push(h("button", { class: "link", onclick: () => this.on.scale(other) }, `${other} scale`));
    }
    if (whose) switches.push(h("button", { class: "link", onclick: () => this.on.whole(!whole) }, whole ? "as numbers" : "as categories"));
    if (only) switches.push(h("button", { class: "link", onclick: () => this.on.only(null) }, "show all"));
    if (switches.length) parts.push(h("p", { class: "switches" }, switches));
    if (column.note) parts.push(h("p", { class: "note" }, column.note));
    replace(body, parts);
  }

  // A bar of the colours under the distribution of the values.
  scale(colouring, table) {
    const { column, bins, low, high, clipped } = colouring;
    const most = Math.max(...bins, 1);
    const bars = Array.from(bins, (bin, k) =>
      h("span", { style: { height: `${bin ? 8 + 92 * Math.sqrt(bin / most) : 0}%`, background: table[2 + k] } }),
    );
    const middle = colouring.valueAt(0.5);
    const shown = (value) => column.kind === "date" ? column.show(Math.round(value)) : short(value, column.integer);
    return h(
      "div",
      { class: "scale" },
      h("div", { class: "histogram", role: "img", "aria-label": `distribution of ${column.name}` }, bars),
      h("div", { class: "ramp", style: { background: `linear-gradient(to right, ${table.slice(2).join(",")})` } }),
      h(
        "div",
        { class: "ticks" },
        h("span", {}, (clipped ? "≤ " : "") + shown(low)),
        column.kind !== "date" && high > low && h("span", {}, shown(middle)),
        h("span", {}, (clipped ? "≥ " : "") + shown(high)),
      ),
      colouring.scale === "log" && h("p", { class: "note" }, "log scale"),
    );
  }

  list(colouring, table, only) {
    const entries = colouring.entries;
    const rows = entries.map((entry) => this.row(entry, table, only));
    const other = entries.find((entry) => entry.other);
    if (other && this.open) {
      rows.splice(entries.indexOf(other) + 1, 0, ...colouring.rest.slice(0, 200).map((entry) => this.row(entry, table, only, "within")));
    }
    const list = h("ul", { class: rows.length > SHOWN ? "entries long" : "entries", "data-scrolls": true }, rows);
    if (!other) return list;
    const toggle = () => {
      this.open = !this.open;
      this.on.redraw();
    };
    return [list, h("p", { class: "switches" }, h("button", { class: "link", onclick: toggle }, this.open ? "fewer values" : "all values"))];
  }

  row(entry, table, only, kind = "") {
    const chosen = only !== null && entry.codes?.some((code) => only.has(code));
    const toggle = (event) => {
      if (!entry.codes) return;
      const next = new Set(event.shiftKey && only ? only : []);
      if (chosen && (event.shiftKey || only.size === entry.codes.length)) for (const code of entry.codes) next.delete(code);
      else for (const code of entry.codes) next.add(code);
      this.on.only(next.size ? next : null);
    };
    const look = entry.missing ? "swatch missing" : "swatch";
    return h(
      "li",
      { class: kind },
      h(
        "button",
        {
          class: only && !chosen ? "entry faded" : "entry",
          "aria-pressed": String(chosen),
          disabled: !entry.codes,
          title: entry.codes ? "click: only these; shift-click: these too" : null,
          onclick: toggle,
        },
        h("span", { class: look, style: { background: table[entry.colour] } }),
        h("span", { class: "entry-name" }, entry.name === "" ? "(empty)" : entry.name),
        h("span", { class: "entry-count" }, count(entry.count)),
      ),
    );
  }
}

// A number of a scale with about three digits.
export function short(value, integer = false) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (integer && size < 1e6) return String(Math.round(value));
  if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
  return String(Number(value.toPrecision(3)));
}
