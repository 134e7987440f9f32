"use strict";
// The theme, kept in the address (?theme=dark) and in this browser, and tooltips: data-tip="text". Load it in the head.
// For the other scripts, a count with its noun: "1 task", "2 tasks".
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

(() => {
  const root = document.documentElement;
  const named = (theme) => theme === "light" || theme === "dark";

  function kept() {
    const asked = new URLSearchParams(location.search).get("theme");
    if (named(asked)) return asked;
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // Storage may be forbidden; the system's choice holds then.
    }
  }

  function turn() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    const address = new URL(location.href);
    address.searchParams.set("theme", root.dataset.theme);
    history.replaceState(history.state, "", address);
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // As above.
    }
  }

  const first = kept();
  if (named(first)) root.dataset.theme = first;

  let tip = null;
  let owner = null;

  function show(on) {
    if (on === owner) return;
    hide();
    if (!on.dataset.tip) return;
    owner = on;
    tip ??= Object.assign(document.createElement("div"), { id: "tip" });
    tip.setAttribute("role", "tooltip");
    tip.textContent = on.dataset.tip;
    (on.closest("dialog") ?? document.body).append(tip);
    on.setAttribute("aria-describedby", "tip");
    place();
  }

  function place() {
    const [box, own] = [owner.getBoundingClientRect(), tip.getBoundingClientRect()];
    const below = box.bottom + 6 + own.height <= innerHeight;
    tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - own.width - 8))}px`;
    tip.style.top = `${below ? box.bottom + 6 : Math.max(8, box.top - own.height - 6)}px`;
  }

  function hide() {
    owner?.removeAttribute("aria-describedby");
    owner = null;
    tip?.remove();
  }

  for (const [event, act] of [["pointerover", show], ["focusin", show]]) {
    document.addEventListener(event, ({ target }) => {
      const on = target.closest?.("[data-tip]");
      if (on) act(on);
      else if (event === "pointerover" && owner !== document.activeElement) hide();
    });
  }
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  addEventListener("scroll", () => owner && (owner === document.activeElement ? place() : hide()), { capture: true, passive: true });
  document.addEventListener("DOMContentLoaded", () => document.getElementById("theme")?.addEventListener("click", turn));
})();
