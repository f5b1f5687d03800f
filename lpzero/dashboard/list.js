"use strict";
// Keeps the list of runs up to date; sorts, filters, and opens runs beside each other.
(() => {
  const { base } = document.body.dataset;
  const SHOWN = 2000;
  const HIDDEN = 10000;
  const table = document.getElementById("runs");
  const body = table.tBodies[0];
  const filter = document.getElementById("filter");
  const compare = document.getElementById("compare");
  const said = document.getElementById("connection");
  const box = document.getElementById("remarks");
  let lines = [];
  let order = { column: "changed", direction: -1 };
  const chosen = new Set();

  const age = (moment) => {
    const seconds = Math.max(0, Date.now() / 1000 - moment);
    for (const [name, unit] of [["d", 86400], ["h", 3600], ["min", 60]]) {
      if (seconds >= unit) return `${Math.round(seconds / unit)} ${name}`;
    }
    return `${Math.round(seconds)} s`;
  };

  const size = (bytes) => {
    let amount = bytes;
    for (const unit of ["B", "kB", "MB"]) {
      if (amount < 1000) return `${Math.round(amount)} ${unit}`;
      amount /= 1000;
    }
    return `${amount.toFixed(1)} GB`;
  };

  const texts = (line) => [
    line.kind, line.table, null, line.remark || line.progress, line.best,
    age(line.started), age(line.changed), size(line.size),
  ];

  const make = (line) => {
    const row = document.createElement("tr");
    row.dataset.run = line.id;
    const tick = document.createElement("input");
    tick.type = "checkbox";
    tick.value = line.id;
    tick.setAttribute("aria-label", `${line.name} beside others`);
    row.insertCell().append(tick);
    const name = document.createElement("th");
    name.scope = "row";
    const link = document.createElement("a");
    link.href = `${base}run/${line.id}`;
    link.textContent = line.name;
    name.append(link);
    row.append(name);
    for (let column = 0; column < 8; column += 1) row.insertCell();
    row.cells[4].append(document.createElement("span"));
    row.cells[9].className = "number";
    return row;
  };

  const fill = (row, line) => {
    texts(line).forEach((text, index) => {
      const cell = row.cells[index + 2];
      if (text !== null && cell.textContent !== text) cell.textContent = text;
    });
    const state = row.cells[4].firstElementChild;
    if (state.textContent !== line.state) state.textContent = line.state;
    state.className = `state ${line.state.split(" ")[0]}`;
    row.cells[0].firstElementChild.checked = chosen.has(line.id);
  };

  const key = (line) => (order.column === "run" ? line.name : line[order.column]);
  const compareLines = (a, b) => {
    const [x, y] = [key(a), key(b)];
    const found = typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en");
    return order.direction * found || a.name.localeCompare(b.name, "en");
  };

  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    const before = new Map([...body.rows].map((row) => [row.dataset.run, row]));
    const sorted = [...lines].sort(compareLines);
    const rows = sorted.map((line) => {
      const row = before.get(line.id) ?? make(line);
      fill(row, line);
      const text = [line.name, line.kind, line.table, line.state, line.best].join(" ");
      row.hidden = !text.toLowerCase().includes(wanted);
      return row;
    });
    // Rows that stay in their place are not moved, so that focus stays, too.
    rows.forEach((row, index) => {
      if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] ?? null);
    });
    while (body.rows.length > rows.length) body.deleteRow(-1);
    const left = rows.filter((row) => !row.hidden).length;
    const count = left === lines.length ? `${left}` : `${left} of ${lines.length}`;
    table.caption.textContent = `${count} runs`;
    document.getElementById("nothing").hidden = lines.length > 0;
    compare.disabled = chosen.size < 2;
  };

  const sortable = [...table.tHead.rows[0].cells].filter((cell) => cell.dataset.column);
  for (const cell of sortable) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => {
      const { column } = cell.dataset;
      const isNumber = ["started", "changed", "size"].includes(column);
      const first = isNumber ? -1 : 1;
      order = { column, direction: order.column === column ? -order.direction : first };
      for (const other of sortable) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", order.direction > 0 ? "ascending" : "descending");
      show();
    });
  }

  body.addEventListener("change", (event) => {
    if (event.target.checked) chosen.add(event.target.value);
    else chosen.delete(event.target.value);
    show();
  });
  filter.addEventListener("input", show);
  compare.addEventListener("click", () => {
    const runs = [...chosen].map((id) => `run=${id}`).join("&");
    location.href = `${base}compare?${runs}`;
  });

  let timer = 0;
  const ask = async () => {
    clearTimeout(timer);
    let isOver = false;
    try {
      const answer = await fetch(`${base}api/runs`, { cache: "no-store" });
      isOver = answer.status === 403;
      if (!answer.ok) throw new Error();
      const found = await answer.json();
      lines = found.runs;
      const items = found.remarks.map((remark) => {
        const item = document.createElement("li");
        item.textContent = remark;
        return item;
      });
      box.querySelector("ul").replaceChildren(...items);
      box.hidden = !items.length;
      said.hidden = true;
      show();
    } catch {
      said.textContent = isOver
        ? "The dashboard was started again: open the address that it printed."
        : "The dashboard does not answer. The page goes on when it does.";
      said.hidden = false;
    }
    if (!isOver) timer = setTimeout(ask, document.hidden ? HIDDEN : SHOWN);
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  document.getElementById("controls").hidden = false;
  ask();
})();
