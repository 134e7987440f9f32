"use strict";
// Keys, and evidence beside the text that it is about. Every link works without this script.
(() => {
  let panel = null;
  let asked = 0;

  function dialog() {
    if (panel) return panel;
    panel = document.createElement("dialog");
    panel.setAttribute("aria-label", "Evidence");
    document.body.append(panel);
    return panel;
  }

  async function open(address) {
    const turn = ++asked;
    let found;
    try {
      const reply = await fetch(address, { credentials: "omit" });
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      found = page.getElementById("main");
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

  function step(by) {
    const chips = [...document.querySelectorAll(".report a.chip")];
    if (!chips.length) return;
    const at = chips.indexOf(document.activeElement);
    const next = chips[at < 0 ? (by > 0 ? 0 : chips.length - 1) : (at + by + chips.length) % chips.length];
    next.focus();
    next.scrollIntoView({ block: "center" });
  }

  document.addEventListener("click", (event) => {
    const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    const link = event.target.closest?.("a[data-panel]");
    if (!link || !plain || (!link.closest("dialog") && link.closest(".pager"))) return;
    event.preventDefault();
    open(link.href);
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, dialog")) return;
    if (event.key === "/") document.getElementById("q").focus();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else return;
    event.preventDefault();
  });

  document.addEventListener("DOMContentLoaded", () => {
    if (!location.hash) document.querySelector("mark.window")?.scrollIntoView({ block: "center" });
  });
})();
