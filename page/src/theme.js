// Light or dark: what the system says, unless the reader chose one.
import { $ } from "./dom.js";

const KEY = "fishergraph-theme";

export class Theme {
  constructor(changed) {
    this.changed = changed;
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.system.addEventListener("change", () => this.asked === "auto" && this.apply());
    this.asked = "auto";
  }

  set(asked, { keep = true } = {}) {
    let wanted = ["light", "dark"].includes(asked) ? asked : "auto";
    // Documents without storage, such as frames of notebooks, forget the choice.
    try {
      if (keep) localStorage.setItem(KEY, wanted);
      else if (wanted === "auto") wanted = localStorage.getItem(KEY) ?? "auto";
    } catch {
      wanted = ["light", "dark"].includes(asked) ? asked : "auto";
    }
    this.asked = wanted;
    this.apply();
  }

  toggle() {
    const next = this.name === "dark" ? "light" : "dark";
    this.set((next === "dark") === this.system.matches ? "auto" : next);
  }

  apply() {
    this.name = this.asked === "auto" ? (this.system.matches ? "dark" : "light") : this.asked;
    document.documentElement.dataset.theme = this.name;
    const value = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    this.colours = {
      paper: value("--paper"),
      ink: value("--ink"),
      accent: value("--accent"),
      focus: value("--focus"),
      halo: value("--halo"),
    };
    this.inkRgb = [1, 3, 5].map((k) => parseInt(value("--density").slice(k, k + 2), 16));
    $("theme").setAttribute("aria-label", this.name === "dark" ? "light colours" : "dark colours");
    this.changed();
  }
}
