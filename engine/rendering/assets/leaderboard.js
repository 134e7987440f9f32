"use strict";
// Sorts and filters the tables, draws the figures, and turns values into links where a viewer serves the page.
(() => {
  const sections = JSON.parse(document.getElementById("data").textContent);
  const served = location.protocol.startsWith("http");
  let wanted = "";

  const shown = (name) => name.toLowerCase().includes(wanted);
  const number = (value, scale = 1) => (value === null ? "-" : (value * scale).toFixed(2));
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  // Tables

  function sort(button) {
    const head = button.closest("th");
    const table = head.closest("table");
    const at = [...head.parentNode.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row, place) => {
      const cell = row.cells[at];
      return { row, place, value: cell.dataset.v === undefined ? null : Number(cell.dataset.v), text: cell.textContent };
    });
    const sign = down ? -1 : 1;
    const numeric = rows.some(({ value }) => value !== null);
    rows.sort((a, b) => {
      if (!numeric) return sign * a.text.localeCompare(b.text) || a.place - b.place;
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
      return sign * (a.value - b.value) || a.place - b.place;
    });
    table.tBodies[0].append(...rows.map(({ row }) => row));
  }

  function filter() {
    wanted = document.getElementById("filter").value.trim().toLowerCase();
    for (const row of document.querySelectorAll("tr[data-system]")) row.hidden = !shown(row.dataset.system);
    const names = new Set(sections.flatMap(({ systems }) => systems.map(([name]) => name)));
    const found = [...names].filter(shown).length;
    document.getElementById("found").textContent = wanted ? `${found} of ${names.size} systems` : "";
    for (const plot of document.querySelectorAll(".plot[data-drawn]")) draw(plot);
    for (const details of document.querySelectorAll("details[data-table][open]")) fill(details);
  }

  function link(cell) {
    const section = sections[Number(cell.closest("section").id.slice(1))];
    const system = cell.closest("tr").dataset.system;
    const query = new URLSearchParams({ system, protocol: section.protocol, metric: cell.dataset.metric });
    const text = cell.textContent;
    cell.replaceChildren(
      element("a", text, { href: `system?${query}`, "aria-label": `${text}, evidence for ${cell.dataset.metric} of ${system}` })
    );
  }

  function fill(details) {
    const { systems, ranks, pairs, scale } = sections[Number(details.dataset.section)];
    const name = (place) => systems[place][0];
    const few = (value) => (value === null ? "-" : value.toPrecision(3));
    const [columns, rows] =
      details.dataset.table === "ranks"
        ? [
            ["system", "rank", "share"],
            ranks.map(([system, rank, share]) => [name(system), [rank, rank], [share, `${(100 * share).toFixed(1)}%`]]),
          ]
        : [
            ["system", "minus", "difference", "low", "high", "p", "Holm p", "tasks"],
            pairs.map(([a, b, difference, low, high, p, holm, n]) => [
              name(a),
              name(b),
              ...[difference, low, high].map((value) => [value, number(value, scale)]),
              [p, few(p)],
              [holm, few(holm)],
              [n, n],
            ]),
          ];
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
        if (at === 0) line.append(element("th", cell, { scope: "row" }));
        else if (!Array.isArray(cell)) line.append(element("td", cell));
        else line.append(element("td", cell[1], { class: "n", ...(cell[0] === null ? {} : { "data-v": cell[0] }) }));
      });
      body.append(line);
    }
    const label = details.querySelector("summary").textContent;
    const table = element("table", null);
    const thead = element("thead", null);
    thead.append(head);
    table.append(thead, body);
    const region = element("div", null, { class: "scroll", role: "region", tabindex: 0, "aria-label": label });
    region.append(table);
    details.querySelector(".scroll")?.remove();
    details.append(region);
  }

  // Figures

  const FONT = { fontFamily: "system-ui, sans-serif", fontSize: "12px", background: "transparent", color: "inherit" };
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `${FONT.fontSize} ${FONT.fontFamily}`;
  const short = (name, letters) => (name.length > letters ? `${name.slice(0, letters - 1)}…` : name);
  const widest = (names, letters) => Math.ceil(Math.max(20, ...names.map((name) => ruler.measureText(short(name, letters)).width)));

  const letters = (plot) => (plot.clientWidth < 480 ? 14 : 24);

  function base(plot, names, options) {
    const width = Math.max(plot.clientWidth, options.least ?? 0);
    const { least, ...rest } = options;
    return {
      width,
      marginLeft: 10 + widest(names, letters(plot)),
      marginRight: 24,
      style: FONT,
      ...rest,
      y: { domain: names, label: null, tickFormat: (name) => short(name, letters(plot)), tickSize: 0, ...rest.y },
    };
  }

  const figures = {
    scores(plot, data) {
      const rows = data.systems
        .filter(([name, value]) => shown(name) && value !== null)
        .map(([name, value, low, high, tier, least, most]) => ({
          name, tier: String(tier ?? "-"), value: value * data.scale,
          low: (low ?? value) * data.scale, high: (high ?? value) * data.scale,
          least: (least ?? value) * data.scale, most: (most ?? value) * data.scale, open: least !== undefined,
          endless: most === null,
        }));
      const title = (row) =>
        `${row.name}: ${row.value.toFixed(2)} [${row.low.toFixed(2)}, ${row.high.toFixed(2)}], tier ${row.tier}` +
        (row.open ? `, could become ${row.least.toFixed(2)} ${row.endless ? "or more" : `to ${row.most.toFixed(2)}`}` : "");
      return Plot.plot(base(plot, rows.map(({ name }) => name), {
        height: 60 + 20 * rows.length, marginTop: 8, marginBottom: 44,
        ariaLabel: `${data.metric} of ${rows.length} systems with intervals and bounds`,
        x: { label: `${data.metric} →`, grid: true, nice: true },
        marks: [
          Plot.ruleY(rows.filter(({ open }) => open), { y: "name", x1: "least", x2: "most", stroke: "var(--second)", strokeWidth: 1, dy: 5 }),
          Plot.ruleY(rows, { y: "name", x1: "low", x2: "high", stroke: "var(--accent)", strokeWidth: 2 }),
          Plot.dot(rows, { y: "name", x: "value", fill: "var(--accent)", r: 4 }),
          Plot.tip(rows, Plot.pointerY({ y: "name", x: "value", title, fill: "var(--paper)" })),
        ],
      }));
    },

    ranks(plot, data) {
      const rows = data.ranks
        .map(([system, rank, share]) => ({ name: data.systems[system][0], rank, share }))
        .filter(({ name }) => shown(name));
      const names = [...new Set(rows.map(({ name }) => name))];
      return Plot.plot(base(plot, names, {
        height: 60 + 20 * names.length, marginTop: 8, marginBottom: 44,
        ariaLabel: `Share of resamples in which each of ${names.length} systems has each rank`,
        x: { label: "rank →", domain: [0.5, Math.max(1, data.systems.length) + 0.5], ticks: Math.min(10, data.systems.length), tickFormat: "d" },
        marks: [
          Plot.rect(rows, {
            y: "name", x1: (row) => row.rank - 0.5, x2: (row) => row.rank + 0.5,
            fill: "var(--accent)", fillOpacity: (row) => 0.08 + 0.92 * row.share, insetTop: 1, insetBottom: 1,
            title: (row) => `${row.name}: rank ${row.rank} in ${(100 * row.share).toFixed(1)}%`, tip: { fill: "var(--paper)" },
          }),
        ],
        opacity: { type: "identity" },
      }));
    },

    pairs(plot, data) {
      const names = data.systems.map(([name]) => name).filter(shown);
      const rows = data.pairs.flatMap(([a, b, difference, low, high, p, holm]) => {
        const [first, second] = [data.systems[a][0], data.systems[b][0]];
        const told = holm === null ? low !== null && low * high > 0 : holm < 0.05;
        const cell = (name, minus, sign) => ({
          name, minus, told: !told ? "cannot be told apart" : (sign * difference > 0) !== data.lower ? "better" : "worse",
          text: `${name} minus ${minus}: ${number(difference === null ? null : sign * difference, data.scale)}` +
            (holm === null ? "" : `, Holm p ${holm.toPrecision(3)}`),
        });
        return [cell(first, second, 1), cell(second, first, -1)];
      }).filter(({ name, minus }) => shown(name) && shown(minus));
      const room = plot.clientWidth - widest(names, letters(plot)) - 40;
      const label = widest(names, 24);
      const side = Math.min(Math.max(26, label + 12 <= 72 ? label + 12 : 0), Math.max(16, room / Math.max(1, names.length)));
      const level = label + 6 <= side;
      const marks = [
        Plot.cell(rows, { x: "minus", y: "name", fill: "told", inset: 0.5, title: "text", tip: { fill: "var(--paper)" } }),
      ];
      if (names.length <= 25) {
        marks.push(Plot.text(rows, {
          x: "minus", y: "name", fontWeight: 700, fill: (row) => (row.told === "cannot be told apart" ? "var(--quiet)" : "var(--paper)"),
          text: (row) => ({ better: "+", worse: "−" })[row.told] ?? "·", pointerEvents: "none",
        }));
      }
      return Plot.plot(base(plot, names, {
        least: 0, width: 10 + widest(names, letters(plot)) + 24 + side * names.length,
        height: 24 + Math.min(side, 26) * names.length + (level ? 24 : label),
        marginTop: 4, marginBottom: level ? 24 : 12 + label,
        ariaLabel: `Which of ${names.length} systems can be told apart, by Holm-corrected paired t tests at 5%`,
        x: { domain: names, label: null, tickRotate: level ? 0 : -90, tickFormat: (name) => short(name, 24), tickSize: 0 },
        color: {
          domain: ["better", "worse", "cannot be told apart"], range: ["var(--accent)", "var(--second)", "var(--line)"],
          legend: true,
        },
        marks,
      }));
    },

    groups(plot, data, kind) {
      const rows = data.groups
        .filter(([of, , system, value]) => of === kind && value !== null && shown(data.systems[system][0]))
        .map(([, group, system, value, n]) => ({ group, name: data.systems[system][0], value: value * data.scale, n }));
      const names = data.systems.map(([name]) => name).filter((name) => rows.some((row) => row.name === name));
      const groups = [...new Set(rows.map(({ group }) => group))];
      const [low, high] = d3.extent(rows, ({ value }) => value);
      const beside = 34 + widest(names, letters(plot));
      const label = widest(groups, 24);
      const slanted = label + 6 > (plot.clientWidth - beside) / Math.max(1, groups.length);
      const above = slanted ? 12 + 0.65 * label : 24;
      const after = slanted ? 0.77 * label : 24;
      return Plot.plot(base(plot, names, {
        least: beside + after + 44 * groups.length, height: 6 + above + 22 * names.length,
        marginTop: above, marginBottom: 6, marginRight: after,
        ariaLabel: `${data.metric} of ${names.length} systems by ${kind}`,
        x: { axis: "top", domain: groups, label: null, tickRotate: slanted ? -40 : 0, tickFormat: (name) => short(name, 24), tickSize: 0 },
        opacity: { type: "identity" },
        marks: [
          Plot.cell(rows, {
            x: "group", y: "name", inset: 0.5, fill: "var(--accent)",
            fillOpacity: ({ value }) => 0.04 + 0.41 * (high > low ? (value - low) / (high - low) : 0.5),
            title: (row) => `${row.name}, ${row.group}: ${row.value.toFixed(2)} over ${row.n} tasks`, tip: { fill: "var(--paper)" },
          }),
          Plot.text(rows, { x: "group", y: "name", text: ({ value }) => value.toFixed(1), fill: "currentColor", pointerEvents: "none" }),
        ],
      }));
    },

    spent(plot, data, axis) {
      const unit = axis.replace("_", " ");
      const rows = data.frontiers[axis]
        .map(([system, spent, score, on]) => ({ name: data.systems[system][0], spent, score: score * data.scale, on }))
        .filter(({ name }) => shown(name));
      const line = rows.filter(({ on }) => on).sort((a, b) => a.spent - b.spent);
      const positive = rows.every(({ spent }) => spent > 0);
      const wide = positive && d3.max(rows, ({ spent }) => spent) > 20 * d3.min(rows, ({ spent }) => spent);
      return Plot.plot({
        width: plot.clientWidth, height: 340, marginLeft: 56, marginRight: 40, marginBottom: 44,
        style: FONT,
        ariaLabel: `${data.metric} against ${unit} per report; ${line.length} systems on the frontier`,
        x: { label: `${unit} per report${wide ? " (log)" : ""} →`, type: wide ? "log" : "linear", grid: true, nice: true, inset: 36, tickFormat: { cost: ".3~g", tokens: "~s", tokens_written: "~s" }[axis] ?? ",.4~g" },
        y: { label: `↑ ${data.metric}`, grid: true, nice: true, inset: 12 },
        marks: [
          Plot.line(line, { x: "spent", y: "score", stroke: "var(--second)", strokeDasharray: "5 4", curve: "step-after" }),
          Plot.dot(rows, { x: "spent", y: "score", r: 5, symbol: (row) => (row.on ? "diamond" : "circle"), fill: (row) => (row.on ? "var(--second)" : "var(--accent)") }),
          Plot.text(rows.length > 20 ? line : rows, {
            x: "spent", y: "score", text: ({ name }) => short(name, 18), dy: -11, fill: "currentColor",
            stroke: "var(--paper)", strokeWidth: 3,
          }),
          Plot.tip(rows, Plot.pointer({
            x: "spent", y: "score", fill: "var(--paper)",
            title: (row) => `${row.name}: ${row.score.toFixed(2)} for ${d3.format(",.4~g")(row.spent)} ${unit}${row.on ? ", on the frontier" : ""}`,
          })),
        ],
        symbol: { type: "identity" }, color: { type: "identity" },
      });
    },
  };

  function draw(plot) {
    const data = sections[Number(plot.dataset.section)];
    const { figure, by } = plot.dataset;
    plot.dataset.drawn = "";
    if (!plot.clientWidth) return;
    const made = by === undefined ? (figures[figure] ?? figures.spent)(plot, data, figure) : figures.groups(plot, data, by);
    for (const svg of [made, ...made.querySelectorAll("svg")]) {
      if (svg.tagName !== "svg") continue;
      if (svg.hasAttribute("aria-label")) svg.setAttribute("role", "img");
      else svg.setAttribute("aria-hidden", "true");
      for (const part of svg.querySelectorAll("g[aria-label]")) part.removeAttribute("aria-label");
    }
    plot.replaceChildren(made);
    // What scrolls can be scrolled by keyboard.
    const scrolls = plot.scrollWidth > plot.clientWidth;
    for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", plot.previousElementSibling.textContent]]) {
      if (scrolls) plot.setAttribute(name, value);
      else plot.removeAttribute(name);
    }
  }

  // Wiring

  document.addEventListener("click", (event) => {
    const button = event.target.closest("thead button");
    if (button) sort(button);
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.open && event.target.dataset?.table && !event.target.querySelector("table")) fill(event.target);
  }, true);
  document.getElementById("filter").addEventListener("input", filter);
  if (served) {
    document.querySelectorAll("td[data-metric]").forEach(link);
    document.getElementById("from-disk").hidden = true;
  }

  const plots = [...document.querySelectorAll(".plot")];
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      draw(target);
    }
  }, { rootMargin: "400px" });
  plots.forEach((plot) => seen.observe(plot));
  addEventListener("beforeprint", () => plots.forEach(draw));
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => document.querySelectorAll(".plot[data-drawn]").forEach(draw), 150);
  });
})();
