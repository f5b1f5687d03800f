"use strict";
// Without this script the page shows everything, with static pictures of its figures. With it
// figures are interactive, tables sort and filter, long tables start short, and rows can be copied.
(() => {
  const FIRST_ROWS = 10;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const block = (name) => {
    const found = document.getElementById(name);
    return found === null ? null : found.textContent;
  };
  let given = JSON.parse(block("figures") ?? '{"figures": {}, "palettes": {}}');

  // ---- tables: sort, filter, ten rows first, copy

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

  const headersOf = (table) => [...table.tHead.rows[table.tHead.rows.length - 1].cells];

  // In the direction that is asked for; without one as a click does, which turns the order round.
  const sort = (table, column, asked) => {
    const headers = headersOf(table);
    const before = headers[column].getAttribute("aria-sort");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, key: value(row, column) }));
    // Numbers begin with the largest, which means the best; text begins with A.
    const first = rows.some(({ key }) => typeof key === "number") ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    const direction = asked ?? (before === first ? second : first);
    for (const other of headers) other.removeAttribute("aria-sort");
    headers[column].setAttribute("aria-sort", direction);
    const turn = direction === "ascending" ? 1 : -1;
    rows.sort((a, b) => {
      if (isEmpty(a.key) || isEmpty(b.key)) return isEmpty(a.key) - isEmpty(b.key);
      return turn * compare(a.key, b.key);
    });
    body.append(...rows.map(({ row }) => row));
    show(table);
  };

  // Rows that the filter leaves; only the first of them until all are asked for.
  const show = (table) => {
    const wanted = (table.dataset.wanted ?? "").trim().toLowerCase();
    const isLong = "long" in table.dataset && table.dataset.all !== "yes" && !wanted;
    const rows = [...table.tBodies[0].rows];
    let count = 0;
    for (const row of rows) {
      const shown = "long" in table.dataset ? row.querySelector("code") ?? row : row;
      const text = shown.textContent.toLowerCase();
      const fits = text.includes(wanted);
      row.hidden = !fits || (isLong && count >= FIRST_ROWS);
      count += fits ? 1 : 0;
    }
    return [count, rows.length];
  };

  const makeSortable = (table) => {
    headersOf(table).forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(table, column));
      header.append(button);
    });
  };

  const copyText = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };

  const FORMS = {
    text: (rows) => rows.map((row) => row.formula).join("\n"),
    latex: (rows) => rows.map((row) => row.latex).join("\n"),
    json: (rows) => JSON.stringify(rows, null, 2),
  };

  const makeControls = (box) => {
    const table = document.getElementById(box.dataset.controls);
    const input = box.querySelector("input[type=search]");
    const all = box.querySelector("button[data-all]");
    const said = box.querySelector("output");
    const update = () => {
      const [count, total] = show(table);
      if (input.value.trim()) said.textContent = `${count} of ${total}`;
      else said.textContent = "";
      if (all === null) return;
      all.hidden = total <= FIRST_ROWS;
      all.textContent = table.dataset.all === "yes" ? `Show ${FIRST_ROWS}` : `Show all ${total}`;
    };
    input.addEventListener("input", () => { table.dataset.wanted = input.value; update(); });
    all?.addEventListener("click", () => {
      table.dataset.all = table.dataset.all === "yes" ? "no" : "yes";
      update();
    });
    for (const button of box.querySelectorAll("button[data-wanted]")) {
      button.addEventListener("click", () => {
        input.value = button.dataset.wanted;
        input.dispatchEvent(new Event("input"));
      });
    }
    for (const button of box.querySelectorAll("button[data-copy]")) {
      button.addEventListener("click", async () => {
        const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
        const found = rows.map((row) => JSON.parse(row.dataset.row));
        await copyText(FORMS[button.dataset.copy](found));
        said.textContent = `${found.length} copied`;
      });
    }
    update();
    box.hidden = false;
  };

  const makeCopies = (box) => {
    const row = JSON.parse(box.dataset.copied);
    const said = box.querySelector("output");
    for (const button of box.querySelectorAll("button[data-copy]")) {
      button.addEventListener("click", async () => {
        await copyText(FORMS[button.dataset.copy]([row]));
        said.textContent = "copied";
      });
    }
    box.hidden = false;
  };

  // ---- figures

  const inColour = (entry, palette) => {
    if (typeof entry === "string") {
      return entry.startsWith("@") ? palette[entry.slice(1)] ?? entry : entry;
    }
    if (Array.isArray(entry)) return entry.map((part) => inColour(part, palette));
    if (entry === null || typeof entry !== "object") return entry;
    return Object.fromEntries(
      Object.entries(entry).map(([key, part]) => [key, inColour(part, palette)]),
    );
  };

  let loading = null;
  const loadPlotly = () => {
    loading ??= (async () => {
      if (window.Plotly) return window.Plotly;
      const packed = block("plotly");
      if (packed === null || !window.DecompressionStream) return null;
      const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const script = document.createElement("script");
      script.text = await new Response(stream).text();
      document.head.append(script);
      return window.Plotly ?? null;
    })();
    return loading;
  };

  // A title that a narrow figure would cut is broken at the space nearest its middle.
  const inTwo = (title) => {
    if (title.length < 30 || title.includes("<")) return title;
    const middle = title.length / 2;
    const places = [...title.matchAll(/ /g)].map((match) => match.index);
    const at = places.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle))[0];
    return at === undefined ? title : `${title.slice(0, at)}<br>${title.slice(at + 1)}`;
  };

  // Panels that stand beside each other have no room for their numbers: they go below each other.
  const stack = (made) => {
    const { grid } = made.layout;
    const before = grid.rows;
    const panels = Object.keys(made.layout).filter((key) => key.startsWith("xaxis"));
    Object.assign(grid, { rows: panels.length, columns: 1, ygap: 0.35 });
    made.layout.height *= grid.rows / before;
    for (const trace of made.data) if (trace.textfont) trace.textfont.size = 9;
  };

  const isNarrow = (plot) => plot.clientWidth < 520;

  const draw = async (figure) => {
    const spec = given.figures[figure.dataset.figure];
    const plotly = spec === undefined ? null : await loadPlotly();
    if (plotly === null) return;
    const made = inColour(spec, given.palettes[dark.matches ? "dark" : "light"]);
    const plot = figure.querySelector(".plot");
    plot.hidden = false;
    figure.classList.add("live");
    plot.dataset.narrow = isNarrow(plot);
    if (isNarrow(plot)) {
      made.layout.font.size = 11;
      made.layout.hoverlabel.font.size = 11;
      for (const [key, axis] of Object.entries(made.layout)) {
        if (key.startsWith("xaxis")) axis.title.text = inTwo(axis.title.text);
      }
      if (made.layout.grid) stack(made);
    }
    const isTouched = matchMedia("(pointer: coarse)").matches;
    made.layout.dragmode = isTouched ? false : "zoom";
    const options = { responsive: true, displayModeBar: false, displaylogo: false };
    plotly.setPlotConfig({ logging: 0 }); // a reader can do nothing about its remarks on margins
    await plotly.react(plot, made.data, made.layout, options);
    plot.dataset.drawn = "yes";
    if (plot.tabIndex === 0) return;
    plot.tabIndex = 0;
    plot.addEventListener("keydown", (event) => step(plotly, plot, event));
  };

  // Arrow keys go from point to point, for those who have no mouse.
  const step = (plotly, plot, event) => {
    const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key === "Escape") plotly.Fx.unhover(plot);
    if (!(event.key in moves)) return;
    event.preventDefault();
    const places = [];
    plot.data.forEach((trace, curveNumber) => {
      if (trace.hoverinfo === "skip" || !Array.isArray(trace.x)) return;
      if (Array.isArray(trace.z)) return;
      trace.x.forEach((_, pointNumber) => places.push({ curveNumber, pointNumber }));
    });
    if (!places.length) return;
    const before = plot.dataset.at === undefined ? -1 : Number(plot.dataset.at);
    const at = (before + moves[event.key] + places.length) % places.length;
    plot.dataset.at = at;
    const subplot = plot.data[places[at].curveNumber];
    const name = `${subplot.xaxis ?? "x"}${subplot.yaxis ?? "y"}`;
    plotly.Fx.hover(plot, [places[at]], [name]);
  };

  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        near.unobserve(entry.target);
        draw(entry.target);
      }
    },
    { rootMargin: "600px" },
  );

  const redraw = () => {
    for (const figure of document.querySelectorAll("figure.live")) draw(figure);
  };
  dark.addEventListener("change", redraw);
  // Plotly keeps the width; titles and panels are arranged for a narrow or a wide figure.
  addEventListener("resize", () => {
    for (const figure of document.querySelectorAll("figure.live")) {
      const plot = figure.querySelector(".plot");
      if (plot.dataset.narrow === String(isNarrow(plot))) continue;
      plot.dataset.drawn = "no";
      draw(figure);
    }
  });

  // ---- contents: the section that is being read is marked

  const follow = () => {
    const links = [...document.querySelectorAll(".contents a")];
    if (!links.length) return;
    const mark = () => {
      const line = innerHeight / 3;
      const last = links.findLast((link) => {
        const section = document.getElementById(link.hash.slice(1));
        return section !== null && section.getBoundingClientRect().top <= line;
      });
      const isAtEnd = scrollY > 0 && scrollY + innerHeight >= document.body.scrollHeight - 2;
      const current = isAtEnd ? links[links.length - 1] : last ?? links[0];
      for (const link of links) {
        if (link === current) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
      const list = current.closest("ul");
      if (list.scrollWidth > list.clientWidth) {
        const left = current.offsetLeft - list.clientWidth / 3;
        list.scrollTo({ left, behavior: still.matches ? "auto" : "smooth" });
      }
    };
    let isWaiting = false;
    addEventListener("scroll", () => {
      if (isWaiting) return;
      isWaiting = true;
      requestAnimationFrame(() => { isWaiting = false; mark(); });
    }, { passive: true });
    mark();
  };

  const enhance = (root) => {
    for (const table of root.querySelectorAll("table[data-sortable]")) makeSortable(table);
    for (const box of root.querySelectorAll("[data-controls]")) makeControls(box);
    for (const box of root.querySelectorAll("[data-copied]")) makeCopies(box);
    for (const figure of root.querySelectorAll("figure[data-figure]")) near.observe(figure);
  };

  // ---- a newer state of the same page

  // What the reader chose in a part of the page: the order of its tables, all rows, what is typed
  // in, how far tables are scrolled, and where the keyboard is. Tables keep their id or place.
  const sortedIn = (body) =>
    [...body.querySelectorAll("table[data-sortable]")].map((table, place) =>
      [table.id || place, table]);

  const chosen = (body) => {
    const tables = new Map();
    for (const [name, table] of sortedIn(body)) {
      const headers = headersOf(table);
      const column = headers.findIndex((header) => header.hasAttribute("aria-sort"));
      tables.set(name, {
        column,
        header: headers[column]?.textContent,
        direction: headers[column]?.getAttribute("aria-sort"),
        all: table.dataset.all,
        left: table.parentElement.scrollLeft,
        focused: headers.findIndex((header) => header.contains(document.activeElement)),
      });
    }
    const typed = [...body.querySelectorAll("input[id]")].map((input) => ({
      id: input.id,
      text: input.value,
      place: input === document.activeElement ? [input.selectionStart, input.selectionEnd] : null,
    }));
    return { tables, typed };
  };

  // Before the controls are made, which show as many rows as a table says.
  const restoreRows = (body, { tables }) => {
    for (const [name, table] of sortedIn(body)) {
      const all = tables.get(name)?.all;
      if (all !== undefined) table.dataset.all = all;
    }
  };

  const restore = (body, { tables, typed }) => {
    for (const [name, table] of sortedIn(body)) {
      const was = tables.get(name);
      if (was === undefined) continue;
      const headers = headersOf(table);
      const isThere = was.column >= 0 && headers[was.column]?.textContent === was.header;
      if (isThere) sort(table, was.column, was.direction);
      table.parentElement.scrollLeft = was.left;
      headers[was.focused]?.querySelector("button").focus({ preventScroll: true });
    }
    for (const { id, text, place } of typed) {
      const input = document.getElementById(id);
      if (input === null) continue;
      input.value = text;
      input.dispatchEvent(new Event("input"));
      if (place === null) continue;
      input.focus({ preventScroll: true });
      input.setSelectionRange(...place);
    }
  };

  // As Content.to_json gives it: only what differs is replaced.
  const before = new Map();
  const update = (content) => {
    given = { figures: content.figures, palettes: content.palettes };
    document.title = content.title;
    const box = document.getElementById("remarks");
    box.querySelector("ul").replaceChildren(...content.remarks.map((remark) => {
      const line = document.createElement("li");
      line.textContent = remark;
      return line;
    }));
    box.hidden = !content.remarks.length;
    for (const [name, markup] of Object.entries(content.sections)) {
      const body = document.getElementById(name)?.querySelector(".body");
      if (!body || before.get(name) === markup) continue;
      before.set(name, markup);
      const plots = new Map([...body.querySelectorAll("figure.live")].map((figure) =>
        [figure.dataset.figure, figure.querySelector(".plot")]));
      const was = chosen(body);
      body.innerHTML = markup;
      restoreRows(body, was);
      for (const figure of body.querySelectorAll("figure[data-figure]")) {
        const plot = plots.get(figure.dataset.figure);
        if (plot === undefined) continue;
        figure.querySelector(".plot").replaceWith(plot);
        figure.classList.add("live");
      }
      enhance(body);
      restore(body, was);
    }
    redraw();
  };

  // Paper cannot be opened: what is folded is shown while printing.
  const unfolded = [];
  addEventListener("beforeprint", () => {
    for (const box of document.querySelectorAll("details:not([open])")) {
      box.open = true;
      unfolded.push(box);
    }
  });
  addEventListener("afterprint", () => {
    for (const box of unfolded.splice(0)) box.open = false;
  });

  enhance(document);
  follow();
  window.lpzero = { update };
})();
