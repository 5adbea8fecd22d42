// Nodes as CSV (RFC 4180): ids and columns as the page shows them, missing values as empty cells.

function cell(text) {
  if (text === null) return "";
  // An empty text is quoted, so that it differs from a missing value.
  return text === "" || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(data, nodes) {
  const { columns } = data;
  // In the order of the embedding's rows.
  const sorted = Array.from(nodes).sort((a, b) => data.rows[a] - data.rows[b]);
  const lines = [["id", ...columns.map(({ name }) => name)].map(cell).join(",")];
  for (const i of sorted) lines.push([data.ids.get(i), ...columns.map((column) => column.text(i))].map(cell).join(","));
  return `${lines.join("\r\n")}\r\n`;
}
