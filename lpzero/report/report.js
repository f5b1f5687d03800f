"use strict";
// Without this script the page shows everything; with it, tables sort and the hall filters.
(() => {
  const value = (row, column) => {
    const cell = row.cells[column];
    const key = cell.dataset.sort ?? cell.textContent.trim();
    const number = Number(key);
    return key !== "" && Number.isFinite(number) ? number : key;
  };

  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return String(a).localeCompare(String(b), "en");
  };

  const isEmpty = (key) => key === "" || key === "\u2013";

  const sort = (table, header, column) => {
    const headers = table.tHead.rows[table.tHead.rows.length - 1].cells;
    const before = header.getAttribute("aria-sort");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, key: value(row, column) }));
    // Numbers begin with the largest, which means the best; text begins with A.
    const first = rows.some(({ key }) => typeof key === "number") ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    const direction = before === first ? second : first;
    for (const other of headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", direction);
    const turn = direction === "ascending" ? 1 : -1;
    rows.sort((a, b) => {
      if (isEmpty(a.key) || isEmpty(b.key)) return isEmpty(a.key) - isEmpty(b.key);
      return turn * compare(a.key, b.key);
    });
    body.append(...rows.map(({ row }) => row));
  };

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const last = table.tHead.rows[table.tHead.rows.length - 1];
    [...last.cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(table, header, column));
      header.append(button);
    });
  }

  for (const input of document.querySelectorAll("input[data-filters]")) {
    const rows = [...document.getElementById(input.dataset.filters).tBodies[0].rows];
    const shown = document.getElementById("filtered");
    const filter = () => {
      const wanted = input.value.trim().toLowerCase();
      let count = 0;
      for (const row of rows) {
        const text = (row.querySelector("code") ?? row).textContent.toLowerCase();
        row.hidden = !text.includes(wanted);
        count += row.hidden ? 0 : 1;
      }
      shown.textContent = wanted ? `${count} of ${rows.length}` : "";
    };
    input.addEventListener("input", filter);
    input.closest(".control").hidden = false;
  }
})();
