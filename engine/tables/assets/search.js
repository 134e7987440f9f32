"use strict";
// The search of an exported folder: words are looked up in files that were made with it; nothing else is asked.
(() => {
  const SHARDS = 128, BLOCK = 256, MAX_WORD = 24, AT_MOST = 50, AROUND = 160;
  const WORD = /[\u3040-\u30ff\u3400-\u9fff]|(?:(?![\u3040-\u30ff\u3400-\u9fff])[\p{L}\p{N}])+/gu;
  const kept = new Map();

  function load(name) {
    if (!kept.has(name)) {
      kept.set(name, fetch(name, { credentials: "omit" }).then(async (reply) => {
        if (!reply.ok) throw new Error(reply.statusText);
        return JSON.parse(new TextDecoder().decode(fzstd.decompress(new Uint8Array(await reply.arrayBuffer()))));
      }));
    }
    return kept.get(name);
  }

  // The documents with a word that begins so, in order.
  async function having(folder, start) {
    const shard = (31 * start.charCodeAt(0) + (start.charCodeAt(1) || 0)) % SHARDS;
    const words = await load(`${folder}/words-${shard}.bin`);
    const found = new Set();
    for (const [word, steps] of Object.entries(words)) {
      if (!word.startsWith(start)) continue;
      let at = 0;
      for (const step of steps) found.add((at += step));
    }
    return found;
  }

  async function* finds(where, asked) {
    const folder = `search/${where}`;
    const words = [...new Set(asked.toLowerCase().match(WORD) ?? [])].map((word) => word.slice(0, MAX_WORD));
    const usable = words.filter((word) => word.length > 1 || word > "\u3040");
    if (!usable.length) return;
    const sets = await Promise.all(usable.map((word) => having(folder, word)));
    const every = [...sets[0]].filter((one) => sets.every((set) => set.has(one))).sort((a, b) => a - b);
    const phrase = asked.trim().toLowerCase();
    for (const one of every) {
      const [title, link, text] = (await load(`${folder}/docs-${Math.floor(one / BLOCK)}.bin`))[one % BLOCK];
      const at = text.toLowerCase().indexOf(phrase);
      if (at >= 0) yield { title, link, before: text.slice(Math.max(0, at - AROUND), at), words: text.slice(at, at + phrase.length), after: text.slice(at + phrase.length, at + phrase.length + AROUND) };
      else if (where === "reports") yield { title, link, before: text, words: "", after: "" };
    }
  }

  function line(find) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = find.link;
    link.textContent = find.title;
    const text = document.createElement("p");
    text.dir = "auto";
    const mark = document.createElement("mark");
    mark.textContent = find.words;
    text.append(find.before, mark, find.after);
    item.append(link, text);
    return item;
  }

  async function show(where, asked) {
    const said = document.getElementById("found");
    const list = document.getElementById("finds");
    const more = document.getElementById("more");
    if (!asked.trim()) return;
    said.textContent = "Searching…";
    const found = finds(where, asked);
    const next = async () => {
      let count = 0;
      let done = false;
      while (count < AT_MOST && !done) {
        const one = await found.next();
        done = Boolean(one.done);
        if (!done) {
          list.append(line(one.value));
          count += 1;
        }
      }
      more.hidden = done;
      said.textContent = `${list.children.length.toLocaleString("en")} found${done ? "" : " so far"}.`;
    };
    more.addEventListener("click", next);
    try {
      await next();
    } catch {
      said.textContent = "The search reads files, which browsers forbid to pages from disk: put the folder on a web host, or run python -m http.server in it.";
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    const asked = new URLSearchParams(location.search);
    const words = asked.get("q") ?? "";
    const where = document.getElementById("f-where");
    if ([...where.options].some((option) => option.value === asked.get("where"))) where.value = asked.get("where");
    for (const field of document.querySelectorAll("input[name=q]")) field.value = words;
    show(where.value, words);
  });
})();
