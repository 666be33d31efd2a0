// Sort a table by a click on a heading, and filter the rows of a long one. Without this script all tables stay readable.
"use strict";
const LONG = 12;
const number = (cell) => {
  const text = (cell.textContent.match(/[-+]?[\d,]*\.?\d+/) || [""])[0].replaceAll(",", "");
  return text === "" ? null : Number(text);
};
const compare = (a, b) => {
  const [x, y] = [number(a), number(b)];
  if (x !== null && y !== null) return x - y;
  if (x === null && y === null) return a.textContent.localeCompare(b.textContent, "en");
  return x === null ? 1 : -1;
};
for (const table of document.querySelectorAll("main .table table")) {
  const bodies = [...table.tBodies];
  const rowsOf = (body) => [...body.rows].filter((row) => row.cells.length > 1);
  const total = bodies.reduce((sum, body) => sum + rowsOf(body).length, 0);
  const name = table.caption ? table.caption.textContent : table.parentElement.getAttribute("aria-label");
  if (table.tHead && bodies.some((body) => rowsOf(body).length > 2)) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.textContent) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        for (const body of bodies) {
          const rows = rowsOf(body).sort((a, b) => compare(a.cells[column], b.cells[column]));
          body.append(...(down ? rows.reverse() : rows));
        }
      });
    });
  }
  if (total > LONG) {
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = `Filter ${total} rows`;
    input.setAttribute("aria-label", `Filter rows of ${name}`);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const body of bodies)
        for (const row of rowsOf(body)) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.parentElement.before(input);
  }
}
// Print folded parts, too.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const part of folded) part.open = true;
});
addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
