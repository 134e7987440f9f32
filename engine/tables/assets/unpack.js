"use strict";
// Files of an exported folder: one holds several pages, packed, and the fields of its address say which of them is shown.
(() => {
  let own = null;

  function held(page) {
    const packed = page.getElementById("packed");
    if (!packed) return null;
    const bytes = Uint8Array.from(atob(packed.textContent), (character) => character.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(fzstd.decompress(bytes)));
  }

  // The page with the fields of the address; one that an address leaves out may have any value, the first page's first.
  function chosen(book, address) {
    const asked = new URL(address).searchParams;
    const wanted = book.names.map((name) => asked.get(name) ?? "");
    const same = (page, value, at) => page.key[at] === value;
    return (
      book.pages.find((page) => wanted.every((value, at) => same(page, value, at))) ??
      book.pages.find((page) => wanted.every((value, at) => !value || same(page, value, at)))
    );
  }

  function fill(page, book, address) {
    const found = chosen(book, address);
    const main = page.getElementById("main");
    if (found) {
      page.title = found.title;
      main.innerHTML = found.main;
    } else {
      main.textContent = "This page is not part of the exported folder.";
    }
    return page;
  }

  // What a file at `address` shows, once it was read; of this file without reading it.
  window.unpacked = (page, address) => {
    const book = held(page);
    return book ? fill(page, book, address) : page;
  };
  window.ownPage = (address) => {
    const here = new URL(location.href);
    const there = new URL(address, here);
    if (!own || here.origin !== there.origin || here.pathname !== there.pathname) return null;
    const page = document.implementation.createHTMLDocument("");
    page.body.innerHTML = '<main id="main"></main>';
    return fill(page, own, there.href);
  };

  own = held(document);
  if (own) fill(document, own, location.href);
})();
