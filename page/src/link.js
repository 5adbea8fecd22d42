// The view as a link: map, colour, camera, chosen node, search and theme in the part of the address behind #.

const KEYS = ["map", "colour", "scale", "x", "y", "zoom", "node", "with", "search", "only", "labels", "theme", "renderer"];

export function parseLink(hash) {
  const values = new URLSearchParams(hash.replace(/^#/, ""));
  const found = {};
  for (const key of KEYS) if (values.has(key)) found[key] = values.get(key);
  for (const key of ["x", "y", "zoom"]) {
    if (key in found) found[key] = Number.parseFloat(found[key]);
    if (Number.isNaN(found[key])) delete found[key];
  }
  if (values.has("only")) found.only = values.getAll("only");
  return found;
}

export function formatLink(view) {
  const values = new URLSearchParams();
  for (const key of KEYS) {
    const value = view[key];
    if (value === undefined || value === null || value === "") continue;
    if (Array.isArray(value)) for (const one of value) values.append(key, one);
    else values.set(key, typeof value === "number" ? String(Number(value.toPrecision(6))) : value);
  }
  return `#${values}`;
}

// Put the view into the address; documents without one of their own, as in a notebook, keep theirs.
export function writeLink(view) {
  const hash = formatLink(view);
  if (hash === location.hash) return;
  try {
    history.replaceState(null, "", hash);
  } catch {
    // srcdoc frames and some viewers refuse
  }
}
