// Elements whose text comes from data: text is set as text, never as markup.

export const $ = (id) => document.getElementById(id);

// h("button", {class: "why", onclick: f}, "why") → the element; children are elements, texts or nothing.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function replace(element, ...children) {
  element.textContent = "";
  append(element, children);
}

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  close: "M5 5l10 10M15 5L5 15",
  copy: "M7 7V4h9v9h-3M4 7h9v9H4z",
  target: "M10 3v4M10 13v4M3 10h4M13 10h4M10 8.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z",
  download: "M10 3v9m-4-4l4 4 4-4M4 16h12",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

export const count = (n) => n.toLocaleString("en-US");

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

let hiding = 0;

// A short message over the map, which assistive technology reads out.
export function say(text, { stays = 4000 } = {}) {
  const element = $("status");
  element.textContent = text;
  element.classList.add("shown");
  clearTimeout(hiding);
  hiding = setTimeout(() => element.classList.remove("shown"), stays);
}

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
