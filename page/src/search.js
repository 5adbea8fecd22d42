// The search field: ids first, then texts and categories; a list of hits, and all of them strong on the map.
import { $, count, h, replace } from "./dom.js";

const MOST_SHOWN = 12;
const MOST_FOUND = 20000;

// Rows whose id, else whose text, holds the words: equal ids first, then ids that begin with them.
export function find(data, query) {
  const words = query.trim().toLowerCase();
  if (!words) return [];
  const ranks = [[], [], [], []];
  const texts = data.columns.filter((column) => column.kind === "text" || column.kind === "category");
  // Categories are compared once, not once per node.
  const admitted = texts.map((column) =>
    column.kind === "category" ? column.categories.map((name) => name.toLowerCase().includes(words)) : null,
  );
  for (let i = 0; i < data.n; i++) {
    const id = data.ids.get(i).toLowerCase();
    if (id === words) ranks[0].push({ node: i });
    else if (id.startsWith(words)) ranks[1].push({ node: i });
    else if (id.includes(words)) ranks[2].push({ node: i });
    else {
      for (let c = 0; c < texts.length; c++) {
        const column = texts[c];
        const hit = admitted[c]
          ? column.codeOf(i) >= 0 && admitted[c][column.codeOf(i)]
          : column.text(i)?.toLowerCase().includes(words);
        if (hit) {
          ranks[3].push({ node: i, column });
          break;
        }
      }
    }
    if (ranks[0].length + ranks[1].length + ranks[2].length + ranks[3].length >= MOST_FOUND) break;
  }
  return ranks.flat();
}

export class Search {
  constructor(data, { chosen, found }) {
    this.data = data;
    this.chosen = chosen;
    this.found = found;
    this.hits = [];
    this.at = -1;
    this.input = $("search");
    this.list = $("hits");
    this.input.addEventListener("input", () => this.look());
    this.input.addEventListener("focus", () => this.look());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
  }

  look({ quiet = false } = {}) {
    this.hits = find(this.data, this.input.value);
    this.at = -1;
    this.found(this.hits.map(({ node }) => node));
    if (quiet) return;
    const rows = this.hits.slice(0, MOST_SHOWN).map(({ node, column }, k) =>
      h(
        "li",
        { role: "option", id: `hit-${k}`, "aria-selected": "false", onmousedown: (event) => this.pick(event, k) },
        h("span", { class: "hit-id" }, this.data.ids.get(node)),
        column && h("span", { class: "hit-text" }, `${column.name}: ${column.text(node)}`),
      ),
    );
    const more = this.hits.length - rows.length;
    const all = this.hits.length >= MOST_FOUND ? `${count(MOST_FOUND)} or more` : count(this.hits.length);
    if (more > 0) rows.push(h("li", { class: "note", role: "presentation" }, `${all} matches, strong on the map`));
    if (this.input.value.trim() && !rows.length) rows.push(h("li", { class: "note", role: "presentation" }, this.nothing()));
    replace(this.list, rows);
    const open = rows.length > 0 && document.activeElement === this.input;
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
  }

  nothing() {
    const { about } = this.data;
    const part = about.total > about.n ? `; the page shows ${count(about.n)} of ${count(about.total)} nodes` : "";
    return `No node matches “${this.input.value.trim()}”${part}.`;
  }

  pick(event, k) {
    event.preventDefault();
    this.close();
    this.input.blur();
    this.chosen(this.hits[k].node);
  }

  key(event) {
    const shown = Math.min(this.hits.length, MOST_SHOWN);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!shown) return;
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : shown - 1) + (this.at < 0 && event.key === "ArrowUp" ? 1 : 0)) % shown;
      [...this.list.children].forEach((row, k) => row.setAttribute("aria-selected", String(k === this.at)));
      this.input.setAttribute("aria-activedescendant", `hit-${this.at}`);
      event.preventDefault();
    } else if (event.key === "Enter" && this.hits.length) {
      this.pick(event, Math.max(this.at, 0));
    }
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  clear() {
    this.input.value = "";
    this.look();
    this.close();
  }
}
