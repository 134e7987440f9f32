"use strict";
// Follows a run: the figures of each event are written over those on the page. Hidden pages follow nothing.
(() => {
  const AGAIN = 5000;
  const SVG = "http://www.w3.org/2000/svg";
  let source = null;
  let ended = false;
  let drawn = null; // how much was scored when this page was made

  function follow() {
    if (source || ended || document.hidden) return;
    source = new EventSource("events");
    source.addEventListener("message", ({ data }) => show(JSON.parse(data)));
    source.addEventListener("end", () => {
      ended = true;
      leave();
      for (const one of document.querySelectorAll("[data-ended]")) one.hidden = false;
    });
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return; // The browser tries again by itself.
      leave();
      setTimeout(follow, AGAIN);
    });
  }

  function leave() {
    source?.close();
    source = null;
  }

  function write(element, text) {
    if (element && element.textContent !== text) element.textContent = text;
  }

  function show(view) {
    for (const one of document.querySelectorAll("[data-fig]")) {
      write(one, view.figures[one.dataset.fig] ?? "");
      if (one.dataset.state !== undefined) one.dataset.state = view.state;
    }
    drawn ??= view.figures.done;
    for (const one of document.querySelectorAll("[data-more]")) {
      one.hidden = one.hidden && view.figures.done === drawn;
      one.href = location.href;
    }
    document.querySelector("[data-share]")?.setAttribute("width", view.share);
    const tables = new Map([...document.querySelectorAll("[data-table]")].map((one) => [one.dataset.table, one]));
    for (const table of view.tables) {
      const section = tables.get(table.key);
      if (section) fill(section, table);
    }
  }

  function fill(section, table) {
    const [note, empty] = [section.querySelector("h2 + p"), section.querySelector("table + p")];
    write(section.querySelector("h2"), table.title);
    write(note, table.note);
    note.hidden = !table.note;
    write(empty, table.empty);
    empty.hidden = table.rows.length > 0 || !table.empty;
    const body = section.querySelector("tbody");
    const rows = new Map([...body.rows].map((row) => [row.cells[0].firstElementChild.textContent, row]));
    table.rows.forEach((cells, place) => {
      const row = rows.get(cells[0].text) ?? made(cells.length);
      rows.delete(cells[0].text);
      cells.forEach((cell, column) => draw(row.cells[column], cell));
      if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] ?? null);
    });
    for (const row of rows.values()) row.remove();
  }

  function made(columns) {
    const row = document.createElement("tr");
    for (let column = 0; column < columns; column += 1) {
      const cell = document.createElement(column ? "td" : "th");
      if (!column) {
        cell.scope = "row";
        cell.className = "who";
        cell.dir = "auto";
      }
      row.append(cell);
    }
    return row;
  }

  function draw(cell, { text, href = "", share = null, bar = null }) {
    let words = cell.firstElementChild;
    if (words?.tagName !== (href ? "A" : "SPAN")) {
      words = document.createElement(href ? "a" : "span");
      cell.replaceChildren(words);
    }
    if (href && words.getAttribute("href") !== href) words.setAttribute("href", href);
    write(words, text);
    const rects =
      share !== null
        ? [["track", 0, 0, 100, 10], ["done", 0, 0, share, 10]]
        : bar !== null
          ? [["track", 0, 4, 100, 2], ["range", bar[0], 2, bar[2] - bar[0], 6], ["point", bar[1] - 0.6, 0, 1.2, 10]]
          : [];
    picture(cell, rects);
  }

  function picture(cell, rects) {
    let svg = cell.querySelector("svg");
    if (!rects.length) {
      svg?.remove();
      return;
    }
    if (!svg) {
      svg = document.createElementNS(SVG, "svg");
      const fixed = { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" };
      for (const [name, value] of Object.entries(fixed)) svg.setAttribute(name, value);
      cell.append(svg);
    }
    while (svg.children.length > rects.length) svg.lastElementChild.remove();
    rects.forEach(([kind, x, y, width, height], place) => {
      const rect = svg.children[place] ?? svg.appendChild(document.createElementNS(SVG, "rect"));
      for (const [name, value] of Object.entries({ class: kind, x, y, width, height })) rect.setAttribute(name, value);
    });
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : follow()));
  addEventListener("pagehide", leave);
  addEventListener("pageshow", follow);
  document.addEventListener("DOMContentLoaded", follow);
})();
