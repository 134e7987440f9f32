"use strict";
// Keys, tables that are sorted and filtered in place, reports in parallel, and evidence beside the text that it is about.
// Every link and form works without this script; it only takes over tables that hold all of their rows.
(() => {
  let panel = null;
  let asked = 0;

  async function read(address) {
    if (location.protocol === "file:") throw new Error("browsers forbid pages from disk to read files");
    const reply = await fetch(address, { credentials: "omit" });
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    return window.unpacked?.(page, address) ?? page;
  }

  // Pages shown inside another: their links keep leading where they led.
  async function load(address) {
    const base = new URL(address, location.href).href;
    const page = window.ownPage?.(base) ?? (await read(base));
    for (const link of page.querySelectorAll("a[href]")) {
      const to = link.getAttribute("href");
      if (!to.startsWith("#")) link.setAttribute("href", new URL(to, base).href);
    }
    return page.getElementById("main");
  }

  function dialog() {
    if (panel) return panel;
    panel = document.createElement("dialog");
    panel.className = "panel";
    panel.setAttribute("aria-label", "Evidence");
    document.body.append(panel);
    return panel;
  }

  async function open(address) {
    const turn = ++asked;
    let found;
    try {
      found = await load(address);
    } catch {
      found = null;
    }
    if (turn !== asked) return;
    if (!found) {
      location.assign(address);
      return;
    }
    found.querySelector(".crumbs")?.remove();
    const close = document.createElement("form");
    close.method = "dialog";
    const whole = document.createElement("a");
    whole.href = address;
    whole.textContent = "Open as a page";
    whole.className = "open";
    const button = document.createElement("button");
    button.textContent = "Close";
    button.autofocus = true;
    close.append(whole, button);
    const shown = dialog();
    shown.replaceChildren(close, ...[...found.childNodes].map((node) => document.importNode(node, true)));
    if (!shown.open) shown.showModal();
    button.focus();
    shown.querySelector("mark.window")?.scrollIntoView({ block: "center" });
  }

  // The first of these that a page has is what j and k step through.
  const LISTS = [".report a.chip:not(.held *)", ".finds a", "#rows tbody tr:not([hidden]) th a", "tbody tr:not([hidden]) th a"];

  function step(by) {
    const near = document.activeElement?.closest?.(".held, .apart");
    const found = near ? [...near.querySelectorAll("a.chip, tbody th a")] : [];
    const stops = found.length ? found : LISTS.map((list) => [...document.querySelectorAll(list)]).find((list) => list.length);
    if (!stops) return;
    const at = stops.indexOf(document.activeElement);
    const next = stops[at < 0 ? (by > 0 ? 0 : stops.length - 1) : (at + by + stops.length) % stops.length];
    next.focus();
    next.scrollIntoView({ block: "center" });
  }

  function keys() {
    document.getElementById("keys")?.showModal();
  }

  // Tables: the address says how each view is sorted and filtered, so that a copied one brings it back.
  const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  function remember(name, value) {
    const address = new URL(location.href);
    if (value) address.searchParams.set(name, value);
    else address.searchParams.delete(name);
    address.searchParams.delete("page");
    history.replaceState(history.state, "", address);
    for (const field of document.querySelectorAll(`main input[type=hidden][name="${name}"]`)) field.value = value;
  }

  function sort(table, wanted) {
    const key = wanted.replace(/^-/, "");
    const heads = [...table.tHead.rows[0].cells];
    const at = heads.findIndex((head) => head.querySelector("a")?.dataset.key === key);
    if (at < 0) return;
    const down = wanted.startsWith("-");
    const value = (row) => {
      const cell = row.cells[at];
      const text = cell.dataset.v ?? cell.textContent.trim();
      if (!heads[at].classList.contains("n")) return text;
      return /^[-+]?[\d.,]+(e[-+]?\d+)?$/i.test(text) ? Number(text.replaceAll(",", "")) : null;
    };
    const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
    const present = rows.filter(([found]) => found !== null && found !== "-");
    present.sort(([a], [b]) => (typeof a === "number" ? a - b : order.compare(a, b)) * (down ? -1 : 1));
    table.tBodies[0].append(...present.map(([, row]) => row), ...rows.filter(([found]) => found === null || found === "-").map(([, row]) => row));
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  function filter(table, words) {
    const wanted = words.toLocaleLowerCase();
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !searched(row).includes(wanted);
    const shown = rows.filter((row) => !row.hidden).length;
    const count = document.querySelector(`[data-count="${table.id}"]`);
    const total = plural(rows.length, count.dataset.noun);
    count.textContent = shown < rows.length ? `${shown.toLocaleString("en")} of ${total}` : total;
    const nothing = document.querySelector(`[data-nothing="${table.id}"]`);
    nothing.hidden = shown > 0;
    const said = nothing.querySelector("[data-words]");
    if (said) said.textContent = words;
  }

  function searched(row) {
    return [...row.cells].filter((cell) => !cell.classList.contains("n")).map((cell) => cell.textContent).join(" ").toLocaleLowerCase();
  }

  function tables() {
    const whole = [...document.querySelectorAll("table[data-whole]")];
    const field = document.getElementById("f-filter");
    if (whole.length && field && !document.querySelector("main table[id]:not([data-whole])")) {
      const apply = (words) => {
        for (const table of whole) filter(table, words);
        remember("filter", words);
      };
      field.addEventListener("input", () => apply(field.value));
      for (const clear of document.querySelectorAll("[data-clear]")) {
        clear.addEventListener("click", (event) => {
          event.preventDefault();
          field.value = "";
          apply("");
          field.focus();
        });
      }
    }
    const address = new URLSearchParams(location.search);
    for (const table of whole) {
      table.tHead.addEventListener("click", (event) => {
        const link = event.target.closest("a[data-key]");
        if (!link || !plain(event)) return;
        event.preventDefault();
        const now = link.closest("th").getAttribute("aria-sort");
        const key = link.dataset.key;
        const wanted = now === "ascending" ? `-${key}` : now === "descending" ? key : link.dataset.first;
        sort(table, wanted);
        remember("sort", wanted);
      });
      if (address.get("sort")) sort(table, address.get("sort"));
      if (address.get("filter") && field) {
        field.value = address.get("filter");
        filter(table, field.value);
      }
    }
  }

  // Two reports in parallel, picked from those that the page's table leads to.
  function parallel() {
    const section = document.getElementById("compare");
    const reports = new Map([...document.querySelectorAll("a[data-report]")].map((link) => [link.dataset.report, link.href]));
    if (!section || reports.size < 2) return;
    section.hidden = false;
    const names = [...reports.keys()];
    const address = new URLSearchParams(location.search);
    [...section.querySelectorAll(".side")].forEach((side, place) => {
      const pick = side.querySelector("select");
      pick.replaceChildren(...names.map((name) => new Option(name, name)));
      const asked = address.get(side.dataset.side);
      pick.value = reports.has(asked) ? asked : names[place];
      pick.addEventListener("change", () => {
        remember(side.dataset.side, pick.value);
        show(side, pick.value, reports.get(pick.value));
      });
      show(side, pick.value, reports.get(pick.value));
    });
  }

  async function show(side, name, address) {
    const held = side.querySelector(".held");
    const whole = side.querySelector(".open");
    whole.href = address;
    whole.textContent = name; // in full: a select cuts long names at the end, where they differ
    held.setAttribute("aria-busy", "true");
    held.setAttribute("aria-label", name);
    let found = null;
    try {
      found = await load(address);
    } catch {
      // Said below.
    }
    if (side.querySelector("select").value !== name) return;
    held.removeAttribute("aria-busy");
    const text = found?.querySelector(".report") ?? found?.querySelector(".note");
    if (!text) {
      held.textContent = "This report cannot be shown here; open its page.";
      return;
    }
    for (const node of text.querySelectorAll("[id]")) node.removeAttribute("id");
    held.replaceChildren(document.importNode(text, true));
    held.scrollTop = 0;
  }

  // A search that ran out of time goes on by itself, until it has a page full or is at the end.
  async function searchOn() {
    const finds = document.getElementById("finds");
    let link;
    while ((link = document.querySelector("a[data-search-on]")) && finds.children.length < 50) {
      let page;
      try {
        page = await read(link.href);
      } catch {
        return; // the link stays
      }
      const more = page.getElementById("finds");
      if (!more) return;
      finds.append(...[...more.children].map((node) => document.importNode(node, true)));
      finds.hidden = finds.children.length === 0;
      const next = page.querySelector("a[data-search-on]");
      if (next) link.href = next.getAttribute("href");
      else link.parentNode.remove();
      const count = finds.children.length.toLocaleString("en");
      document.getElementById("found").textContent = `${count} found on this page${next ? " so far" : ""}.`;
    }
  }

  function plain(event) {
    return event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-panel]");
    if (!link || !plain(event) || (!link.closest("dialog") && link.closest(".pager"))) return;
    event.preventDefault();
    open(link.href);
  });

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select, textarea, dialog")) return;
    if (event.key === "/") document.getElementById("q").focus();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "?") keys();
    else return;
    event.preventDefault();
  });

  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("show-keys")?.addEventListener("click", keys);
    tables();
    parallel();
    searchOn();
    if (!location.hash) document.querySelector("mark.window")?.scrollIntoView({ block: "center" });
  });
})();
