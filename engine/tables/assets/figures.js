"use strict";
// Draws the figures of the leaderboard when they come into sight, and again when what is shown changes.
(() => {
  const { sections, shown, number, state, keep } = leaderboard;
  const FONT = { fontFamily: "system-ui, sans-serif", fontSize: "12px", background: "transparent", color: "inherit" };
  const PAPER = { fill: "var(--paper)" };
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `${FONT.fontSize} ${FONT.fontFamily}`;
  const wide = (text) => ruler.measureText(text).width;
  const widest = (texts) => Math.ceil(Math.max(20, ...texts.map(wide)));
  const cut = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
  const few = d3.format(",.4~g");
  function fitting(text, room) {
    let letters = text.length;
    while (letters > 1 && wide(cut(text, letters)) > room) letters -= 1;
    return cut(text, letters);
  }
  // How many values an axis names, each with room enough.
  const ticks = (plot, inset) => Math.max(3, Math.min(5, Math.floor((plot.clientWidth - 96 - 2 * inset) / 70)));

  // Names as they fit beside a figure; `labels` of the page hold no two that look equal.
  function naming(plot, data) {
    const at = plot.clientWidth < 480 ? 1 : 0;
    const label = new Map(data.systems.map(([name], place) => [name, data.labels[place][at]]));
    return (name) => label.get(name) ?? name;
  }

  function base(plot, data, names, options) {
    const label = naming(plot, data);
    const { least, y, ...rest } = options;
    return {
      width: Math.max(plot.clientWidth, least ?? 0),
      marginLeft: 12 + widest(names.map(label)),
      marginRight: 24,
      marginTop: 8,
      marginBottom: 44,
      style: FONT,
      y: { domain: names, label: null, tickFormat: label, tickSize: 0, ...y },
      ...rest,
    };
  }

  const figures = {
    ranks(plot, data) {
      const rows = data.ranks.map(([system, rank, share]) => ({ name: data.systems[system][0], rank, share })).filter(({ name }) => shown(name));
      const names = [...new Set(rows.map(({ name }) => name))];
      return Plot.plot(base(plot, data, names, {
        height: 60 + 22 * names.length,
        ariaLabel: `Share of resamples in which each of ${plural(names.length, "system")} has each rank`,
        x: { label: "rank →", domain: [0.5, Math.max(1, data.systems.length) + 0.5], ticks: Math.min(10, data.systems.length), tickFormat: "d" },
        marks: [
          Plot.rect(rows, {
            y: "name", x1: (row) => row.rank - 0.5, x2: (row) => row.rank + 0.5,
            fill: "var(--accent)", fillOpacity: (row) => 0.06 + 0.94 * Math.sqrt(row.share), inset: 1,
            title: (row) => `${row.name}: rank ${row.rank} in ${(100 * row.share).toFixed(1)} %`, tip: PAPER,
          }),
        ],
        opacity: { type: "identity" },
      }));
    },

    pairs(plot, data) {
      const names = data.systems.map(([name]) => name).filter((name) => shown(name) && data.pairs.some(([a, b]) => data.systems[a][0] === name || data.systems[b][0] === name));
      const rows = data.pairs.flatMap(([a, b, difference, low, high, p, holm]) => {
        const [first, second] = [data.systems[a][0], data.systems[b][0]];
        const told = holm !== null && holm <= 0.05;
        const cell = (name, minus, sign) => ({
          name, minus, told: !told ? "cannot be told apart" : (sign * difference > 0) !== data.lower ? "better" : "worse",
          text: `${name} minus ${minus}: ${number(difference === null ? null : sign * difference, data.scale)}` +
            (holm === null ? "" : `, Holm p ${holm.toPrecision(3)}`),
        });
        return [cell(first, second, 1), cell(second, first, -1)];
      }).filter(({ name, minus }) => shown(name) && shown(minus));
      const label = naming(plot, data);
      const left = 12 + widest(names.map(label));
      const long = widest(names.map(label));
      const right = Math.max(24, 0.62 * long);
      const side = Math.min(28, Math.max(15, (plot.clientWidth - left - right) / Math.max(1, names.length)));
      const marks = [Plot.cell(rows, { x: "minus", y: "name", fill: "told", inset: 0.5, title: "text", tip: PAPER })];
      if (side >= 18) {
        marks.push(Plot.text(rows, {
          x: "minus", y: "name", fontWeight: 700, fill: (row) => (row.told === "cannot be told apart" ? "var(--quiet)" : "var(--paper)"),
          text: (row) => ({ better: "+", worse: "−" })[row.told] ?? "·", pointerEvents: "none",
        }));
      }
      const above = 10 + 0.85 * long;
      return Plot.plot({
        ...base(plot, data, names, {}),
        width: left + side * names.length + right, height: above + 8 + side * names.length,
        marginTop: above, marginBottom: 8, marginRight: right, marginLeft: left,
        ariaLabel: `Which differences of ${data.metric} between ${plural(names.length, "system")} are significant`,
        x: { axis: "top", domain: names, label: null, tickRotate: -55, tickFormat: label, tickSize: 0 },
        color: {
          legend: true, domain: ["better", "worse", "cannot be told apart"],
          range: ["var(--accent)", "var(--second)", "var(--plain-soft)"],
        },
        marks,
      });
    },

    group(plot, data) {
      const kind = plot.dataset.of;
      const rows = data.groups
        .filter(([of, , system, value]) => of === kind && value !== null && shown(data.systems[system][0]))
        .map(([, group, system, value, n]) => ({ group, name: data.systems[system][0], value: value * data.scale, n }));
      const names = data.systems.map(([name]) => name).filter((name) => rows.some((row) => row.name === name));
      const groups = [...new Set(rows.map(({ group }) => group))];
      const [low, high] = d3.extent(rows, ({ value }) => value);
      const left = 12 + widest(names.map(naming(plot, data)));
      const long = widest(groups.map((name) => cut(name, 24)));
      const digits = high - low < 10 ? 2 : 1;
      const slanted = long + 6 > (plot.clientWidth - left) / Math.max(1, groups.length);
      const above = slanted ? 12 + 0.65 * long : 24;
      const after = slanted ? 0.77 * long : 24;
      return Plot.plot(base(plot, data, names, {
        least: left + after + 42 * groups.length, height: 6 + above + 24 * names.length,
        marginTop: above, marginBottom: 6, marginRight: after,
        ariaLabel: `${data.metric} of ${plural(names.length, "system")} by ${kind}`,
        x: { axis: "top", domain: groups, label: null, tickRotate: slanted ? -40 : 0, tickFormat: (name) => cut(name, 24), tickSize: 0 },
        opacity: { type: "identity" },
        marks: [
          Plot.cell(rows, {
            x: "group", y: "name", inset: 0.5, fill: "var(--accent)",
            fillOpacity: ({ value }) => 0.04 + 0.41 * (high > low ? (value - low) / (high - low) : 0.5),
            title: (row) => `${row.name}, ${row.group}: ${row.value.toFixed(2)} over ${plural(row.n, "score")}`, tip: PAPER,
          }),
          Plot.text(rows, { x: "group", y: "name", text: ({ value }) => value.toFixed(digits), fill: "currentColor", pointerEvents: "none" }),
        ],
      }));
    },

    spent(plot, data, axis) {
      const unit = axis.replace("_", " ");
      const label = naming(plot, data);
      const rows = (data.frontiers[axis] ?? [])
        .map(([system, spent, score, on]) => ({ name: data.systems[system][0], spent, score: score * data.scale, on }))
        .filter(({ name }) => shown(name));
      const line = rows.filter(({ on }) => on).sort((a, b) => a.spent - b.spent);
      const positive = rows.every(({ spent }) => spent > 0);
      const log = positive && d3.max(rows, ({ spent }) => spent) > 20 * d3.min(rows, ({ spent }) => spent);
      return Plot.plot({
        width: plot.clientWidth, height: 340, marginLeft: 56, marginRight: 40, marginBottom: 44, style: FONT,
        ariaLabel: `${data.metric} against ${unit} per report; ${plural(line.length, "system")} on the frontier`,
        x: {
          label: `${unit} per report${log ? " (log)" : ""} →`, type: log ? "log" : "linear", grid: true, nice: true, inset: 36,
          ticks: log ? undefined : ticks(plot, 36), tickFormat: { cost: ".3~g", tokens: "~s", tokens_written: "~s", words: ",.4~g" }[axis] ?? ",.4~g",
        },
        y: { label: `↑ ${data.metric}`, grid: true, nice: true, inset: 14 },
        marks: [
          Plot.line(line, { x: "spent", y: "score", stroke: "var(--second)", strokeDasharray: "5 4", curve: "step-after" }),
          Plot.dot(rows, { className: "dots", x: "spent", y: "score", r: 5, symbol: (row) => (row.on ? "diamond" : "circle"), fill: (row) => (row.on ? "var(--second)" : "var(--accent)") }),
          Plot.text(rows, {
            className: "named", x: "spent", y: "score", text: ({ name }) => label(name), fill: "currentColor", stroke: "var(--paper)", strokeWidth: 3,
          }),
          Plot.tip(rows, Plot.pointer({
            x: "spent", y: "score", ...PAPER,
            title: (row) => `${row.name}: ${row.score.toFixed(2)} for ${few(row.spent)} ${unit}${row.on ? ", on the frontier" : ""}`,
          })),
        ],
        symbol: { type: "identity" }, color: { type: "identity" },
      });
    },

    dates(plot, data) {
      const label = naming(plot, data);
      const rows = data.dates
        .map(([system, date]) => {
          const [name, value, low, high] = data.systems[system];
          return { name, date: new Date(date), day: date, value: value * data.scale, low: (low ?? value) * data.scale, high: (high ?? value) * data.scale };
        })
        .filter(({ name }) => shown(name));
      return Plot.plot({
        width: plot.clientWidth, height: 340, marginLeft: 56, marginRight: 40, marginBottom: 44, style: FONT,
        ariaLabel: `${data.metric} of ${plural(rows.length, "system")} by date`,
        x: { type: "utc", label: "date →", grid: true, nice: true, inset: 24, ticks: ticks(plot, 24) },
        y: { label: `↑ ${data.metric}`, grid: true, nice: true, inset: 14 },
        marks: [
          Plot.ruleX(rows, { className: "spans", x: "date", y1: "low", y2: "high", stroke: "var(--accent)", strokeOpacity: 0.45, strokeWidth: 4 }),
          Plot.dot(rows, { className: "dots", x: "date", y: "value", r: 5, fill: "var(--accent)" }),
          Plot.text(rows, { className: "named", x: "date", y: "value", text: ({ name }) => label(name), fill: "currentColor", stroke: "var(--paper)", strokeWidth: 3 }),
          Plot.tip(rows, Plot.pointer({ x: "date", y: "value", ...PAPER, title: (row) => `${row.name}, ${row.day}: ${row.value.toFixed(2)}` })),
        ],
      });
    },

    agreement(plot, data, kind) {
      const label = naming(plot, data);
      const rows = data.agreement[kind]
        .map(([system, here, there, low, high]) => ({
          name: data.systems[system][0], here: here * data.scale, there: there * data.scale,
          low: (low ?? there) * data.scale, high: (high ?? there) * data.scale,
        }))
        .filter(({ name }) => shown(name));
      const ends = d3.extent(rows.flatMap(({ here, low, high }) => [here, low, high]));
      return Plot.plot({
        width: plot.clientWidth, height: 340, marginLeft: 56, marginRight: 40, marginBottom: 44, style: FONT,
        ariaLabel: `${data.metric} of ${plural(rows.length, "system")} by the judge and by ${kind}`,
        x: { label: `${data.metric} here →`, grid: true, nice: true, inset: 24, ticks: ticks(plot, 24) },
        y: { label: `↑ ${kind}`, grid: true, nice: true, inset: 14 },
        marks: [
          Plot.line([ends, ends].map((_, at) => [ends[at], ends[at]]), { stroke: "var(--edge)", strokeDasharray: "5 4" }),
          Plot.ruleX(rows, { className: "spans", x: "here", y1: "low", y2: "high", stroke: "var(--accent)", strokeOpacity: 0.5, strokeWidth: 2 }),
          Plot.dot(rows, { className: "dots", x: "here", y: "there", r: 5, fill: "var(--accent)" }),
          Plot.text(rows, { className: "named", x: "here", y: "there", text: ({ name }) => label(name), fill: "currentColor", stroke: "var(--paper)", strokeWidth: 3 }),
          Plot.tip(rows, Plot.pointer({
            x: "here", y: "there", ...PAPER, title: (row) => `${row.name}: ${row.here.toFixed(2)} here, ${row.there.toFixed(2)} ${kind}`,
          })),
        ],
      });
    },

    tasks(plot, data, order) {
      return heat(plot, data, order);
    },
  };

  // Where a name may stand beside its dot: x, y, and which end of it is there.
  const PLACES = [[0, -11, "middle"], [9, 0, "start"], [-9, 0, "end"], [0, 16, "middle"], [0, -11, "start"], [0, -11, "end"]];

  // A name stands where it covers no other name, dot or interval; one that has no such place goes, and is named by
  // pointing at its dot.
  function apart(plot) {
    const svg = plot.querySelector("svg[role=img]");
    if (!svg) return;
    const frame = svg.getBoundingClientRect();
    const boxes = (kind) => [...svg.querySelectorAll(`g.${kind} > *`)].map((one) => one.getBoundingClientRect());
    const [dots, taken] = [boxes("dots"), boxes("spans")];
    const clear = (box, others) =>
      others.every((one) => box.left >= one.right + 2 || one.left >= box.right + 2 || box.top >= one.bottom || one.top >= box.bottom);
    svg.querySelectorAll("g.named text").forEach((text, own) => {
      const others = [...taken, ...dots.filter((_, at) => at !== own)];
      const free = PLACES.some(([x, y, end]) => {
        for (const [name, value] of [["x", x], ["y", y], ["text-anchor", end]]) text.setAttribute(name, value);
        const box = text.getBoundingClientRect();
        return box.left > frame.left + 58 && box.right <= frame.right && box.top >= frame.top && clear(box, others);
      });
      if (free) taken.push(text.getBoundingClientRect());
      else text.remove();
    });
  }

  // Systems x tasks: too many cells for elements, so they are painted; arrow keys move, Enter opens the evidence.
  function heat(plot, data, order) {
    const systems = d3.range(data.systems.length).filter((place) => shown(data.systems[place][0]));
    const collator = new Intl.Collator(undefined, { numeric: true });
    const tasks = d3.range(data.tasks.length).sort((a, b) => collator.compare(data.tasks[a], data.tasks[b]));
    const attribute = order.startsWith("by.") ? data.attributes[order.slice(3)] : null;
    const mean = (task) => d3.mean(data.values, (row) => row[task]) ?? Infinity;
    if (attribute) tasks.sort((a, b) => collator.compare(attribute[a], attribute[b]));
    else if (order === "mean") {
      const means = new Map(tasks.map((task) => [task, mean(task)]));
      tasks.sort((a, b) => (data.lower ? means.get(b) - means.get(a) : means.get(a) - means.get(b)) || 0);
    }
    const label = naming(plot, data);
    const left = 12 + widest(systems.map((place) => label(data.systems[place][0])));
    const top = 22;
    const bottom = 26;
    const across = Math.max(3, Math.min(96, (plot.clientWidth - left - 8) / Math.max(1, tasks.length)));
    const down = 20;
    const size = [Math.max(left + across * tasks.length + 8, Math.min(left + 230, plot.clientWidth)), top + down * systems.length + bottom];
    const box = document.createElement("div");
    box.className = "heat";
    const canvas = document.createElement("canvas");
    const said = document.createElement("p");
    said.className = "quiet";
    said.setAttribute("role", "status");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "heat map");
    canvas.setAttribute("aria-label", `${data.metric} of ${plural(systems.length, "system")} on ${plural(tasks.length, "task")}; arrow keys read it out`);
    box.append(canvas, said);
    const paint = canvas.getContext("2d");
    const flat = systems.flatMap((place) => tasks.map((task) => data.values[place][task])).filter((value) => value !== null && value !== undefined);
    const [low, high] = d3.extent(flat);
    let at = null;

    function draw() {
      const ratio = Math.max(2, devicePixelRatio || 1);
      [canvas.width, canvas.height] = size.map((one) => Math.round(one * ratio));
      [canvas.style.width, canvas.style.height] = size.map((one) => `${one}px`);
      const colour = (name) => resolved(plot, name);
      const [ink, quiet, accent, line, paper] = ["--ink", "--quiet", "--accent", "--line", "--paper"].map(colour);
      const ramp = d3.scaleLinear().domain([low, low === high ? low + 1 : high]).range([d3.interpolateRgb(paper, accent)(0.06), accent]).interpolate(d3.interpolateLab);
      paint.setTransform(ratio, 0, 0, ratio, 0, 0);
      paint.clearRect(0, 0, ...size);
      paint.font = ruler.font;
      paint.textBaseline = "middle";
      const gap = across > 8 ? 1 : across > 4 ? 0.5 : 0;
      systems.forEach((place, row) => {
        paint.fillStyle = ink;
        paint.textAlign = "right";
        paint.fillText(label(data.systems[place][0]), left - 8, top + down * (row + 0.5));
        tasks.forEach((task, column) => {
          const value = data.values[place][task] ?? null;
          const [x, y] = [left + across * column, top + down * row];
          paint.fillStyle = value === null ? paper : ramp(value);
          paint.fillRect(x, y, across - gap, down - 1);
          if (value !== null) return;
          paint.strokeStyle = quiet;
          paint.lineWidth = 1;
          paint.strokeRect(x + 0.5, y + 0.5, Math.max(1, across - gap - 1), down - 2);
          paint.beginPath();
          paint.moveTo(x + 1, y + down - 2);
          paint.lineTo(x + across - gap - 1, y + 1);
          paint.stroke();
        });
      });
      heads(quiet, line, ink);
      legend(ramp, quiet);
      if (at === null) return;
      paint.strokeStyle = ink;
      paint.lineWidth = 2;
      paint.strokeRect(left + across * at[1] - 1, top + down * at[0] - 1, across - gap + 2, down + 1);
    }

    function heads(quiet, line, ink) {
      paint.textAlign = "left";
      paint.fillStyle = quiet;
      if (attribute) {
        let from = 0;
        let free = left;
        tasks.forEach((task, column) => {
          if (column + 1 < tasks.length && attribute[tasks[column + 1]] === attribute[task]) return;
          const [x, room] = [left + across * from, across * (column + 1 - from)];
          const text = attribute[task] || "none";
          if (x >= free && room > 24) paint.fillText(fitting(text, room - 4), x + 2, top / 2);
          free = x + room;
          paint.fillStyle = ink;
          if (from) paint.fillRect(x - 1, top - 4, 1.5, down * systems.length + 4);
          paint.fillStyle = quiet;
          from = column + 1;
        });
        return;
      }
      const each = Math.max(1, Math.ceil(48 / across));
      paint.textAlign = "center";
      tasks.forEach((task, column) => {
        if (column % each || across * (tasks.length - column) < 20) return;
        const text = fitting(data.tasks[task], across * each - 4);
        paint.fillText(text, Math.min(left + across * (column + 0.5), size[0] - wide(text) / 2), top / 2);
      });
    }

    function legend(ramp, quiet) {
      if (low === undefined) return;
      const y = top + down * systems.length + 12;
      const width = Math.min(120, size[0] - left - 110);
      if (width < 30) return;
      for (let step = 0; step < width; step += 1) {
        paint.fillStyle = ramp(low + ((high - low) * step) / width);
        paint.fillRect(left + 44 + step, y - 2, 1.5, 8);
      }
      paint.fillStyle = quiet;
      paint.textAlign = "right";
      paint.fillText(number(low, data.scale), left + 38, y + 3);
      paint.textAlign = "left";
      paint.fillText(number(high, data.scale), left + 50 + width, y + 3);
    }

    const link = () => at && data.links[systems[at[0]]]?.[tasks[at[1]]];
    const open = () => link() && location.assign(link());

    function move(row, column) {
      at = [Math.max(0, Math.min(systems.length - 1, row)), Math.max(0, Math.min(tasks.length - 1, column))];
      const [place, task] = [systems[at[0]], tasks[at[1]]];
      const value = data.values[place][task] ?? null;
      const group = attribute ? `, ${attribute[task] || "none"}` : "";
      said.textContent = `${data.systems[place][0]}, task ${data.tasks[task]}${group}: ${value === null ? "not scored" : number(value, data.scale)}`;
      canvas.style.cursor = link() ? "pointer" : "crosshair";
      draw();
    }

    const under = (event) => [Math.floor((event.offsetY - top) / down), Math.floor((event.offsetX - left) / across)];
    const inside = ([row, column]) => row >= 0 && column >= 0 && row < systems.length && column < tasks.length;
    canvas.addEventListener("pointermove", (event) => inside(under(event)) && move(...under(event)));
    canvas.addEventListener("click", (event) => {
      if (!inside(under(event))) return;
      move(...under(event));
      open();
    });
    canvas.addEventListener("focus", () => at === null && canvas.matches(":focus-visible") && move(0, 0));
    canvas.addEventListener("keydown", (event) => {
      const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -tasks.length], End: [0, tasks.length] };
      if (event.key === "Enter") open();
      else if (steps[event.key]) move((at?.[0] ?? 0) + steps[event.key][0], (at?.[1] ?? 0) + steps[event.key][1]);
      else return;
      event.preventDefault();
    });
    if (systems.length && tasks.length) draw();
    return box;
  }

  // A colour of the theme as rgb(), which scales can mix.
  function resolved(inside, name) {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    inside.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
  }

  function draw(plot) {
    const data = sections[Number(plot.dataset.section)];
    plot.dataset.drawn = "";
    if (!plot.clientWidth) return;
    const made = figures[plot.dataset.figure](plot, data, plot.dataset.chosen);
    for (const svg of [made, ...made.querySelectorAll("svg")]) {
      if (svg.tagName !== "svg") continue;
      if (svg.hasAttribute("aria-label")) {
        svg.setAttribute("role", "img");
        // What a narrow page shrinks keeps its shape.
        svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
      } else svg.setAttribute("aria-hidden", "true");
      for (const part of svg.querySelectorAll("g[aria-label]")) part.removeAttribute("aria-label");
    }
    plot.replaceChildren(made);
    apart(plot);
    // What scrolls can be scrolled by keyboard.
    const scrolls = plot.scrollWidth > plot.clientWidth;
    const title = plot.closest("figure").querySelector("figcaption").textContent;
    for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", title]]) {
      if (scrolls) plot.setAttribute(name, value);
      else plot.removeAttribute(name);
    }
  }

  // Choices of a figure, which the address keeps

  const keyOf = (plot) => `figure.${plot.dataset.section}.${plot.dataset.figure}`;

  function choose(figure, wanted) {
    const plot = figure.querySelector(".plot");
    const chips = [...figure.querySelectorAll("[data-choose]")];
    const chip = chips.find((one) => one.dataset.choose === wanted);
    if (!chip) return;
    for (const one of chips) one.setAttribute("aria-pressed", String(one === chip));
    plot.dataset.chosen = wanted;
    keep(keyOf(plot), chip === chips[0] ? null : wanted);
    if (plot.dataset.drawn !== undefined) draw(plot);
  }

  const plots = [...document.querySelectorAll(".plot")];
  const again = () => plots.filter(({ dataset }) => dataset.drawn !== undefined).forEach(draw);
  for (const plot of plots) {
    const asked = state.get(keyOf(plot));
    if (asked) choose(plot.closest("figure"), asked);
  }
  document.addEventListener("click", ({ target }) => {
    const chip = target.closest("[data-choose]");
    if (chip) choose(chip.closest("figure"), chip.dataset.choose);
    if (target.closest("#theme")) again();
  });
  document.addEventListener("view", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);

  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      draw(target);
    }
  }, { rootMargin: "400px" });
  plots.forEach((plot) => seen.observe(plot));
  // Paper is white: what is painted takes the colours of the light scheme before the page is printed.
  const root = document.documentElement;
  let theme = "";
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme ?? "";
    root.dataset.theme = "light";
    plots.forEach(draw);
  });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    again();
  });
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(again, 150);
  });
})();
