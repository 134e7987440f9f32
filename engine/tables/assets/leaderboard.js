"use strict";
// Sorts, filters, and shows and hides columns, and keeps in the page's address what was chosen, so that a copied address
// brings the view back: filter=WORDS, sort.TABLE=COLUMN (descending after a hyphen), columns.TABLE=SHOWN,COLUMNS,
// figure.SECTION.KIND=CHOICE. Figures are drawn by figures.js, which hears of changes by the event "view".
const leaderboard = (() => {
  const sections = JSON.parse(document.getElementById("data").textContent);
  const state = new URLSearchParams(location.search);
  const field = document.getElementById("filter");
  let wanted = "";

  const words = new Map([...document.querySelectorAll("tr[data-words]")].map(({ dataset }) => [dataset.system, dataset.words.toLowerCase()]));
  const shown = (name) => name.toLowerCase().includes(wanted) || (words.get(name) ?? "").includes(wanted);
  const number = (value, scale = 1) => (value === null ? "-" : (value * scale).toFixed(2));
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  function keep(key, value) {
    const address = new URL(location.href);
    if (value === null || value === "") address.searchParams.delete(key);
    else address.searchParams.set(key, value);
    history.replaceState(history.state, "", address);
  }

  // Sorting: best first, then the other way round.

  function sort(head, direction) {
    const at = [...head.parentNode.children].indexOf(head);
    const body = head.closest("table").tBodies[0];
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction);
    const rows = [...body.rows].map((row, place) => {
      row.dataset.place ??= place;
      const cell = row.cells[at];
      const value = cell.dataset.v === undefined || cell.dataset.v === "" ? null : Number(cell.dataset.v);
      return { row, place: Number(row.dataset.place), value, text: row.cells[at].textContent.trim() };
    });
    const sign = direction === "descending" ? -1 : 1;
    const numeric = rows.some(({ value }) => value !== null);
    const texts = new Intl.Collator(undefined, { numeric: true });
    rows.sort((a, b) => {
      if (!numeric) return sign * texts.compare(a.text, b.text) || a.place - b.place;
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
      return sign * (a.value - b.value) || a.place - b.place;
    });
    body.append(...rows.map(({ row }) => row));
    part(head.closest("table"));
  }

  // A line parts the blocks of rows, as long as the rows are in their order: tiers in standings are sorted by rank.
  function part(table) {
    const sorted = table.querySelector("th[aria-sort]");
    const ranked = table.dataset.table && sorted?.dataset.key === "rank" && sorted.getAttribute("aria-sort") === "ascending";
    const whole = !sorted || ranked;
    let last = null;
    for (const row of table.tBodies[0].rows) {
      row.classList.toggle("parted", whole && !row.hidden && last !== null && row.dataset.block !== last);
      if (!row.hidden) last = row.dataset.block;
    }
  }

  const other = { ascending: "descending", descending: "ascending" };

  function turn(head) {
    const direction = other[head.getAttribute("aria-sort")] ?? head.dataset.best ?? best(head);
    sort(head, direction);
    const table = head.closest("table").dataset.table;
    if (table) keep(`sort.${table}`, `${direction === "descending" ? "-" : ""}${head.dataset.key}`);
  }

  // Of other tables it is not known what is best: large numbers first, texts from A.
  const best = (head) => (head.classList.contains("n") && head.textContent.trim() !== "rank" ? "descending" : "ascending");

  const headOf = (table, key) => [...document.querySelector(`table[data-table="${CSS.escape(table)}"]`)?.tHead.rows[0].cells ?? []].find((cell) => cell.dataset.key === key);

  // Columns

  function choose(fieldset) {
    const boxes = [...fieldset.querySelectorAll("input")];
    const table = document.querySelector(`table[data-table="${fieldset.dataset.columns}"]`);
    const heads = [...table.tHead.rows[0].cells];
    for (const box of boxes) {
      const at = heads.findIndex((cell) => cell.dataset.key === box.value);
      for (const row of [table.tHead.rows[0], ...table.tBodies[0].rows]) row.cells[at].hidden = !box.checked;
    }
    const chosen = boxes.filter(({ checked }) => checked).map(({ value }) => value);
    const usual = boxes.every((box) => box.checked === box.defaultChecked);
    keep(`columns.${fieldset.dataset.columns}`, usual ? null : chosen.join(",") || "-");
  }

  // The filter

  function filter() {
    wanted = field.value.trim().toLowerCase();
    const names = new Set([...document.querySelectorAll(".headline tr[data-system]")].map((row) => row.dataset.system));
    const found = [...names].filter(shown).length;
    for (const row of document.querySelectorAll("tr[data-system]")) row.hidden = !shown(row.dataset.system);
    document.querySelectorAll("table[id]").forEach(part);
    document.getElementById("found").textContent = wanted && found ? `${found} of ${plural(names.size, "system")}` : "";
    const none = document.getElementById("none");
    none.hidden = found > 0 || !names.size;
    none.querySelector("span").textContent = none.hidden ? "" : `No system matches '${field.value.trim()}'.`;
    for (const part of document.querySelectorAll("main .scroll, main .figures")) part.hidden = !none.hidden;
    keep("filter", field.value.trim());
    document.dispatchEvent(new Event("view"));
  }

  function clear() {
    field.value = "";
    filter();
    field.focus();
  }

  // Tables made from a figure's numbers when they are opened

  const few = (value) => (value === null ? "-" : value.toPrecision(3));
  const filled = {
    ranks: ({ ranks, systems }) => [
      ["system", "rank", "share"],
      ranks.map(([system, rank, share]) => [systems[system][0], [rank, rank], [share, `${(100 * share).toFixed(1)} %`]]),
    ],
    pairs: ({ pairs, systems, scale }) => [
      ["system", "minus", "difference", "interval", "p", "Holm p", "tasks"],
      pairs.map(([a, b, difference, low, high, p, holm, n]) => [
        systems[a][0],
        systems[b][0],
        [difference, number(difference, scale)],
        [low, low === null ? "-" : `${number(low, scale)} to ${number(high, scale)}`],
        [p, few(p)],
        [holm, few(holm)],
        [n, n.toLocaleString("en")],
      ]),
    ],
  };

  function fill(details) {
    const [columns, rows] = filled[details.dataset.table](sections[Number(details.dataset.section)]);
    const head = element("tr", null);
    columns.forEach((column, at) => {
      const cell = element("th", null, { scope: "col", class: at === 0 ? "who" : Array.isArray(rows[0]?.[at]) ? "n" : "" });
      cell.append(element("button", column, { type: "button" }));
      head.append(cell);
    });
    const body = element("tbody", null);
    for (const row of rows.filter((row) => shown(row[0]) || (row.length > 3 && shown(row[1])))) {
      const line = element("tr", null);
      row.forEach((cell, at) => {
        if (at === 0) line.append(element("th", cell, { scope: "row", dir: "auto" }));
        else if (!Array.isArray(cell)) line.append(element("td", cell, { dir: "auto" }));
        else line.append(element("td", cell[1], { class: "n", ...(cell[0] === null ? {} : { "data-v": cell[0] }) }));
      });
      body.append(line);
    }
    const table = element("table", null);
    const thead = element("thead", null);
    thead.append(head);
    table.append(thead, body);
    const label = details.querySelector("summary").textContent;
    const region = element("div", null, { class: "scroll", role: "region", tabindex: 0, "aria-label": label });
    region.append(table);
    details.querySelector(".scroll")?.remove();
    details.append(region);
  }

  // Wiring

  document.addEventListener("click", (event) => {
    const button = event.target.closest("thead button");
    if (button) turn(button.closest("th"));
    if (event.target.closest("#none button")) clear();
    for (const open of document.querySelectorAll(".picker[open]")) if (!open.contains(event.target)) open.open = false;
  });
  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && event.target.closest?.(".picker[open]");
    if (!open) return;
    open.open = false;
    open.querySelector("summary").focus();
  });
  document.addEventListener("change", ({ target }) => {
    const fieldset = target.closest("fieldset[data-columns]");
    if (fieldset) choose(fieldset);
  });
  document.addEventListener("toggle", ({ target }) => {
    if (target.open && target.dataset?.table && !target.querySelector("table")) fill(target);
  }, true);
  document.addEventListener("view", () => document.querySelectorAll("details[data-table][open]").forEach(fill));
  field.addEventListener("input", filter);
  addEventListener("beforeprint", () => {
    for (const notes of document.querySelectorAll("#notes")) notes.open = true;
  });

  // The view that the address asks for

  for (const fieldset of document.querySelectorAll("fieldset[data-columns]")) {
    const asked = state.get(`columns.${fieldset.dataset.columns}`)?.split(",");
    if (!asked) continue;
    for (const box of fieldset.querySelectorAll("input")) box.checked = asked.includes(box.value);
    choose(fieldset);
  }
  for (const [key, value] of state) {
    if (!key.startsWith("sort.")) continue;
    const head = headOf(key.slice(5), value.replace(/^-/, ""));
    if (head) sort(head, value.startsWith("-") ? "descending" : "ascending");
  }
  if (state.get("filter")) {
    field.value = state.get("filter");
    filter();
  }
  return { sections, shown, number, element, state, keep };
})();
