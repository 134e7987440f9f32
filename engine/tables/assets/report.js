"use strict";
// The report page: j and k move through the text and the evidence together, the evidence follows the text that is read,
// and lines can be shown by verdict, source and criterion. The address keeps what is shown. Loaded in the head.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const wide = matchMedia("(min-width: 60.01rem)");
  let lines = [];
  let marks = new Map();
  let chips = new Map();
  let aside = null;
  let current = null;

  function read() {
    lines = all(".evidence li[data-n]");
    aside = document.querySelector(".aside");
    for (const mark of all(".report mark[data-n]")) {
      for (const n of mark.dataset.n.split(" ")) marks.set(n, [...(marks.get(n) ?? []), mark]);
    }
    for (const chip of all(".report a.chip[id]")) chips.set(chip.id.slice(1), chip);
  }

  // What the reader is at: one line of evidence, and its passage.
  function choose(line) {
    if (current === line) return;
    for (const node of all(".now")) node.classList.remove("now");
    current = line;
    line?.classList.add("now");
    for (const mark of marks.get(line?.dataset.n) ?? []) mark.classList.add("now");
  }

  let led = false; // the next scroll of the evidence is ours, not the reader's
  function beside(line, place) {
    if (!aside || !line || !wide.matches || aside.scrollHeight <= aside.clientHeight) return;
    const wanted = Math.max(48, Math.min(place - aside.getBoundingClientRect().top, aside.clientHeight * 0.6));
    const before = aside.scrollTop;
    aside.scrollTop += line.getBoundingClientRect().top - aside.getBoundingClientRect().top - wanted;
    led = aside.scrollTop !== before;
  }

  function go(line) {
    const chip = chips.get(line.dataset.n);
    const target = chip ?? line.querySelector("a.chip");
    target.focus({ preventScroll: true });
    choose(line);
    if (!chip) line.scrollIntoView({ block: "center" });
    else {
      const first = marks.get(line.dataset.n)?.[0] ?? chip;
      first.scrollIntoView({ block: "center" });
      beside(line, first.getBoundingClientRect().top);
    }
  }

  function step(by) {
    const shown = lines.filter((line) => !line.hidden);
    if (!shown.length) return;
    const focused = document.activeElement?.closest?.("a.chip");
    const own = focused && lines.find((line) => line.contains(focused) || chips.get(line.dataset.n) === focused);
    const at = shown.indexOf(own ?? (document.activeElement === document.body ? null : current));
    const next = shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : (at + by + shown.length) % shown.length];
    go(next);
    const panel = document.querySelector("dialog.panel[open]");
    if (panel) next.querySelector("a.chip").click();
  }

  // The evidence follows the text: the first passage below the top of the window is the one that is read.
  let waiting = false;
  function follow() {
    waiting = false;
    if (!wide.matches || aside?.matches(":hover") || aside?.contains(document.activeElement)) return;
    const edge = innerHeight * 0.18;
    for (const line of lines) {
      if (line.hidden) continue;
      const place = chips.get(line.dataset.n)?.getBoundingClientRect();
      if (place && place.bottom > edge) {
        beside(line, place.top);
        return;
      }
    }
  }

  // The text follows the evidence that the reader scrolls: the first line below the heading has its passage beside it.
  function lead() {
    if (led || !wide.matches || !aside.matches(":hover, :focus-within")) {
      led = false;
      return;
    }
    const top = aside.getBoundingClientRect().top;
    for (const line of lines) {
      const place = line.hidden ? null : line.getBoundingClientRect();
      const chip = chips.get(line.dataset.n);
      if (place && chip && place.bottom > top + 48) {
        scrollBy({ top: chip.getBoundingClientRect().top - place.top, behavior: "instant" });
        return;
      }
    }
  }

  // What is shown.
  const asked = () => {
    const address = new URLSearchParams(location.search);
    return {
      show: new Set((address.get("show") ?? "").split(",").filter(Boolean)),
      source: address.get("source") ?? "",
      criterion: address.get("criterion") ?? "",
      people: address.get("people") ?? "",
    };
  };

  function apply(wanted) {
    const fits = (line) =>
      (!wanted.show.size || wanted.show.has(line.dataset.kind)) &&
      (!wanted.source || line.dataset.source === wanted.source) &&
      (!wanted.criterion || line.dataset.criterion === wanted.criterion) &&
      (!wanted.people || line.dataset.people === wanted.people);
    for (const line of lines) line.hidden = !fits(line);
    const shown = new Set(lines.filter((line) => !line.hidden).map((line) => line.dataset.n));
    const filtered = shown.size < lines.length;
    for (const [n, chip] of chips) chip.classList.toggle("off", filtered && !shown.has(n));
    for (const mark of all(".report mark[data-n]")) {
      mark.classList.toggle("off", filtered && !mark.dataset.n.split(" ").some((n) => shown.has(n)));
    }
    for (const button of all("button[data-show]")) {
      button.setAttribute("aria-pressed", String(wanted.show.has(button.dataset.show)));
    }
    for (const select of all("select[data-by]")) select.value = wanted[select.dataset.by];
    const active = Boolean(wanted.show.size || wanted.source || wanted.criterion || wanted.people);
    const said = document.getElementById("shown");
    if (said) said.textContent = active ? `${shown.size} of ${lines.length} shown` : "";
    const clear = document.getElementById("show-all");
    if (clear) clear.hidden = !active;
    const nothing = document.getElementById("nothing");
    if (nothing) nothing.hidden = shown.size > 0 || !lines.length;
    if (current?.hidden) choose(null);
  }

  function change(wanted) {
    const address = new URL(location.href);
    const { source, criterion, people } = wanted;
    const said = { show: [...wanted.show].join(","), source, criterion, people };
    for (const [name, value] of Object.entries(said)) {
      if (value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    }
    history.replaceState(history.state, "", address);
    apply(wanted);
  }

  const nothing = () => ({ show: new Set(), source: "", criterion: "", people: "" });

  function filters() {
    for (const button of all("button[data-show]")) {
      button.addEventListener("click", () => {
        const wanted = asked();
        if (!wanted.show.delete(button.dataset.show)) wanted.show.add(button.dataset.show);
        change(wanted);
      });
    }
    for (const select of all("select[data-by]")) {
      select.addEventListener("change", () => change({ ...asked(), [select.dataset.by]: select.value }));
    }
    document.getElementById("show-all")?.addEventListener("click", () => change(nothing()));
    document.querySelector("#nothing button")?.addEventListener("click", () => change(nothing()));
    apply(asked());
  }

  // The raw text and back keep what is shown.
  function raw(event) {
    const link = document.getElementById("raw");
    if (!link) return false;
    const to = new URL(link.href);
    for (const name of ["show", "source", "criterion", "theme"]) {
      const value = new URLSearchParams(location.search).get(name);
      if (value) to.searchParams.set(name, value);
    }
    event.preventDefault();
    location.assign(to);
    return true;
  }

  const plain = (event) => !event.ctrlKey && !event.metaKey && !event.altKey;

  document.addEventListener("keydown", (event) => {
    if (!plain(event) || !lines.length || event.target.closest?.("input, select, textarea, dialog:not(.panel)")) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }, true);

  document.addEventListener("keydown", (event) => {
    if (event.key !== "r" || !plain(event) || event.target.closest?.("input, select, textarea, dialog")) return;
    raw(event);
  });

  document.addEventListener("DOMContentLoaded", () => {
    read();
    filters();
    document.getElementById("raw")?.addEventListener("click", (event) => {
      if (event.button === 0 && plain(event) && !event.shiftKey) raw(event);
    });
    document.addEventListener("focusin", ({ target }) => {
      const chip = target.closest?.("a.chip");
      const line = chip && lines.find((one) => one.contains(chip) || chips.get(one.dataset.n) === chip);
      if (line) choose(line);
    });
    document.addEventListener("click", (event) => {
      const mark = event.target.closest?.(".report mark[data-n]");
      const line = mark && lines.find((one) => one.dataset.n === mark.dataset.n.split(" ")[0]);
      if (line) {
        choose(line);
        beside(line, mark.getBoundingClientRect().top);
      }
      const held = event.target.closest?.(".evidence li[data-n]");
      if (held && !event.target.closest("a, button")) go(held);
    });
    addEventListener("scroll", () => {
      if (!waiting) requestAnimationFrame(follow);
      waiting = true;
    }, { passive: true });
    aside?.addEventListener("scroll", lead, { passive: true });
  });
})();
