// The timeline's lanes, its brush and its zoom.  The server bins and places; this draws, and keeps the address.
"use strict";
(() => {
  const view = document.getElementById("timeline");
  if (!view || !window.Plotly) return;
  const LANE = 58, TOP = 26, BOTTOM = 6; // as in the style sheet: label and lane stand side by side
  const COLOURS = {
    light: { ink: "#14181d", ink2: "#47515d", ink3: "#5d6875", accent: "#2354c7", suspect: "#b3261a", ambig: "#855000", edge: "#7c8693", pass: "#76818e", line: "#dde1e6", hatch: "#b6bec8", surface: "#ffffff" },
    dark: { ink: "#e8ebef", ink2: "#b4bdc8", ink3: "#95a0ad", accent: "#8fb0ff", suspect: "#ff8d80", ambig: "#edb54e", edge: "#6f7b8a", pass: "#727d8b", line: "#2a323c", hatch: "#4b5665", surface: "#151a20" },
  };
  const CONFIG = { showSendToCloud: false, plotlyServerURL: "", displayModeBar: false, modeBarButtonsToRemove: ["sendChartToCloud"], responsive: true, doubleClick: false, scrollZoom: false };
  const dark = () => {
    const theme = document.documentElement.dataset.theme;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const TICKS = [
    { dtickrange: [null, 59999], value: "%H:%M:%S\n%-d %b" },
    { dtickrange: [60000, 86399999], value: "%H:%M\n%-d %b" },
    { dtickrange: [86400000, "M1"], value: "%-d %b\n%Y" },
    { dtickrange: ["M1", null], value: "%b %Y" },
  ];
  const faded = (hex, share) => `rgba(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(",")},${share})`;
  // The chart library reads tags and entities in texts: none of ours may be one.
  const safe = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  // A bar too narrow for its name shows the beginning of it, or nothing; hovering shows all.
  const fitting = (text, pixels) => {
    const letters = Math.floor((pixels - 12) / 6.3);
    if (letters < 5) return "";
    return safe(text.length <= letters ? text : `${text.slice(0, letters - 1)}…`);
  };
  const hover = (text, ms, data) => [...text.split("\n").map(safe), data.clock(ms)].join("<br>");

  // --- times: the library draws what it takes for UTC, so it gets the viewer's wall clock
  const clockOf = (zone) => {
    const format = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" });
    const short = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
    const offsets = new Map();
    const offset = (ms) => {
      const quarter = Math.floor(ms / 900000);
      if (!offsets.has(quarter)) {
        const part = Object.fromEntries(format.formatToParts(quarter * 900000).map((one) => [one.type, Number(one.value)]));
        offsets.set(quarter, Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) - quarter * 900000);
      }
      return offsets.get(quarter);
    };
    return {
      wall: (ms) => ms + offset(ms),
      real: (wall) => wall - offset(wall - offset(wall)),
      clock: (ms) => safe(short.format(ms)),
    };
  };
  const wallOf = (text) => (typeof text === "number" ? text : Date.parse(`${String(text).replace(" ", "T")}Z`));

  // --- one trace for each kind of thing; y counts lanes from the top
  const rectangles = (rows, box, data) => {
    const x = [], y = [];
    for (const row of rows) {
      const [left, right, top, bottom] = box(row);
      x.push(data.wall(left), data.wall(right), data.wall(right), data.wall(left), data.wall(left), null);
      y.push(top, top, bottom, bottom, top, null);
    }
    return { type: "scatter", mode: "lines", x, y, fill: "toself", hoverinfo: "skip" };
  };
  const blocks = (rows, at, high, data, more) => ({
    type: "bar", orientation: "h", hoverinfo: "skip", width: high / LANE,
    y: rows.map((row) => row[0] + at / LANE),
    base: rows.map((row) => data.wall(row[1])),
    x: rows.map((row) => Math.max(row[2] - row[1], data.least)),
    ...more,
  });
  const points = (rows, at, marker, data) => ({
    type: "scatter", mode: "markers", hoverinfo: "text", marker, cliponaxis: false,
    x: rows.map((row) => data.wall(row[1])),
    y: rows.map((row) => row[0] + at / LANE),
    hovertext: rows.map((row) => hover(row[3], row[1], data)),
    customdata: rows.map((row) => row[4] || ""),
  });
  const SHAPES = (c) => ({
    ring: { symbol: "circle-open-dot", size: 13, color: c.suspect, line: { width: 2.4, color: c.suspect } },
    nonfinite: { symbol: "triangle-up", size: 12, color: c.suspect },
    weights: { symbol: "square", size: 11, color: c.suspect },
    "reduced gradient": { symbol: "x-thin", size: 12, color: c.ambig, line: { width: 2.6, color: c.ambig } },
    nobody: { symbol: "x-thin", size: 12, color: c.ambig, line: { width: 2.6, color: c.ambig } },
    unknown: { symbol: "hexagon-open", size: 12, color: c.ink, line: { width: 2, color: c.ink } },
  });
  const FLAGS = (c) => ({
    before: { symbol: "triangle-right-open", size: 9, color: c.edge, line: { width: 1.5, color: c.edge } },
    inside: { symbol: "triangle-right", size: 9, color: c.suspect },
    after: { symbol: "triangle-right", size: 9, color: c.edge },
  });
  const only = (rows, kind) => rows.filter((row) => row[2] === kind);
  const traces = (data, c) => {
    const whole = Array.from({ length: data.lanes }, (_, lane) => [lane, data.from, data.to]);
    const hatch = { marker: { color: c.surface, pattern: { shape: "/", fgcolor: c.hatch, bgcolor: c.surface, size: 5, solidity: 0.25 }, line: { color: c.edge, width: 0.6 } } };
    const bars = blocks(data.bars, 16, 18, data, {
      marker: { color: faded(c.pass, 0.26), line: { color: c.pass, width: 1 } },
      text: data.bars.map((row) => fitting(row[3], ((row[2] - row[1]) / (data.to - data.from)) * data.width)), textposition: "inside", insidetextanchor: "start",
      insidetextfont: { size: 11, color: c.ink2 }, hoverinfo: "text", hovertext: data.bars.map((row) => hover(row[4], row[1], data)), customdata: data.bars.map((row) => row[5]),
    });
    const counts = blocks(data.bins, 16, 20, data, {
      marker: { color: data.bins.map((row) => faded(c.suspect, 0.16 + 0.5 * Math.min(1, row[3] / data.fullest))), line: { color: c.suspect, width: 0.6 } },
      text: data.bins.map((row) => String(row[3])), textposition: "inside", insidetextanchor: "middle", insidetextfont: { size: 10, color: c.ink },
      hoverinfo: "text", hovertext: data.bins.map((row) => hover(row[4], row[1], data)),
    });
    const found = [
      blocks(whole, 54, 4, data, hatch),
      bars,
      blocks(data.silent, 32, 7, data, hatch),
      { ...rectangles(data.strips, (row) => [row[1], row[2], row[0] + (36 - 2 - 6 * row[3]) / LANE, row[0] + 36 / LANE], data), fillcolor: faded(c.pass, 0.8), line: { width: 0 } },
      { ...rectangles(data.windows, (row) => [row[1], Math.max(row[2], row[1] + data.least), row[0] + 3 / LANE, row[0] + 52 / LANE], data), fillcolor: faded(c.suspect, 0.12), line: { width: 1, color: c.suspect } },
      counts,
    ];
    for (const [kind, marker] of Object.entries(FLAGS(c))) {
      const rows = only(data.checkpoints, kind);
      if (!rows.length) continue;
      found.push({ ...points(rows, 46, { symbol: "line-ns-open", size: 7, color: marker.color, line: { width: 1.5 } }, data), hoverinfo: "skip" });
      found.push(points(rows, 44, marker, data));
    }
    for (const [kind, symbol] of [["down", "arrow-bar-down"], ["up", "arrow-bar-up"], ["other", "line-ew-open"]]) {
      const rows = only(data.elastic, kind);
      if (rows.length) found.push(points(rows, 46, { symbol, size: 11, color: c.ink, line: { width: 1.5, color: c.ink } }, data));
    }
    for (const [kind, marker] of Object.entries(SHAPES(c))) {
      const rows = only(data.marks, kind);
      if (rows.length) found.push(points(rows, 16, marker, data));
    }
    found.push(points(only(data.actions, "proposal"), 16, { symbol: "diamond-open", size: 12, color: c.accent, line: { width: 1.6, color: c.accent } }, data));
    found.push(points(only(data.actions, "action"), 16, { symbol: "diamond", size: 13, color: c.accent }, data));
    return found;
  };
  const layout = (data, c) => ({
    height: TOP + BOTTOM + LANE * data.lanes,
    margin: { l: data.left, r: 2, t: TOP, b: BOTTOM, pad: 0 },
    paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: c.ink3 },
    showlegend: false, barmode: "overlay", bargap: 0, hovermode: "closest", hoverdistance: 14,
    hoverlabel: { bgcolor: c.surface, bordercolor: c.edge, font: { color: c.ink, size: 12 }, align: "left", namelength: 0 },
    uniformtext: { minsize: 9, mode: "hide" },
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    xaxis: { type: "date", range: [data.wall(data.from), data.wall(data.to)], side: "top", gridcolor: c.line, zeroline: false, showline: false, ticks: "", fixedrange: false, nticks: innerWidth < 720 ? 4 : 10, tickformatstops: TICKS },
    yaxis: { range: [data.lanes, 0], visible: false, fixedrange: true },
    shapes: [
      ...Array.from({ length: data.lanes + 1 }, (_, lane) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: lane, y1: lane, layer: "below", line: { color: c.line, width: 1 } })),
      ...(data.now === null ? [] : [{ type: "line", yref: "paper", y0: 0, y1: 1, x0: data.wall(data.now), x1: data.wall(data.now), line: { color: c.accent, width: 1 } }]),
    ],
  });

  const edgeOf = (overview, narrow) => Number(narrow ? overview.dataset.leftNarrow : overview.dataset.left);
  let drawn = null;
  const draw = () => {
    const place = view.querySelector(".tl-chart");
    const source = document.getElementById("timeline-data");
    if (!place || !source) return;
    const given = JSON.parse(source.textContent);
    const data = { ...given, ...clockOf(given.zone) };
    const width = Math.max(place.clientWidth, 100);
    data.least = ((data.to - data.from) * 4) / width;
    data.width = width;
    data.left = Math.round(edgeOf(view.querySelector(".overview"), innerWidth <= 720) * width);
    data.fullest = Math.max(1, ...data.bins.map((row) => row[3]));
    const c = COLOURS[dark() ? "dark" : "light"];
    if (drawn !== place) place.replaceChildren();
    drawn = place;
    const ready = window.Plotly.react(place, traces(data, c), layout(data, c), CONFIG);
    if (place.dataset.wired) return;
    place.dataset.wired = "1";
    ready.then(() => {
      place.on("plotly_relayout", (event) => {
        const [from, to] = [event["xaxis.range[0]"], event["xaxis.range[1]"]];
        if (from !== undefined && to !== undefined) show(data.real(wallOf(from)), data.real(wallOf(to)));
      });
      place.on("plotly_click", (event) => {
        const to = event.points[0] && event.points[0].customdata;
        if (typeof to === "string" && to.startsWith("/")) location.assign(to);
      });
      place.dataset.ready = "1";
    });
  };

  // --- another range: the address changes first, the page follows it
  const show = (from, to) => {
    if (!(to - from >= 2000)) [from, to] = [(from + to) / 2 - 1000, (from + to) / 2 + 1000];
    const address = new URL(location.href);
    for (const name of ["range", "before", "live"]) address.searchParams.delete(name);
    address.searchParams.set("from", new Date(from).toISOString());
    address.searchParams.set("to", new Date(to).toISOString());
    history.pushState({}, "", address);
    load();
  };
  let asked = 0;
  const load = async () => {
    const mine = (asked += 1);
    view.setAttribute("aria-busy", "true");
    try {
      const address = `/timeline/view${location.search}`;
      const answer = await fetch(address, { credentials: "same-origin" });
      const text = await answer.text();
      if (mine !== asked) return;
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      view.innerHTML = text; // from our own server; scripts in it do not run
      view.dataset.stamp = answer.headers.get("X-Stamp") || "";
      if (view.dataset.live) view.dataset.live = address;
      follow();
      draw();
    } catch (error) {
      if (mine === asked) say(`Not shown: ${error.message}. The chart is that of before.`);
    } finally {
      if (mine === asked) view.removeAttribute("aria-busy");
    }
  };
  const say = (text) => {
    for (const place of document.querySelectorAll("[data-live-state]")) place.textContent = text;
  };
  const follow = () => {
    const query = new URLSearchParams(location.search);
    for (const input of document.querySelectorAll("[data-range]")) input.value = query.get(input.dataset.range) || "";
  };

  // --- the brush: drag over the histogram; a click follows the link under it
  let brush = null;
  const timeAt = (overview, svg, x) => {
    const box = svg.getBoundingClientRect();
    const left = edgeOf(overview, svg.closest(".only-s"));
    const share = Math.min(1, Math.max(0, ((x - box.left) / box.width - left) / (1 - left)));
    return Number(overview.dataset.from) + share * (Number(overview.dataset.to) - Number(overview.dataset.from));
  };
  view.addEventListener("pointerdown", (event) => {
    const overview = event.target.closest(".overview");
    const svg = event.target.closest("svg");
    if (!overview || !svg || event.button !== 0) return;
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    mark.setAttribute("class", "selection");
    brush = { overview, svg, mark, x: event.clientX, moved: false };
  });
  view.addEventListener("dragstart", (event) => {
    if (event.target.closest(".overview")) event.preventDefault();
  });
  addEventListener("pointermove", (event) => {
    if (!brush || Math.abs(event.clientX - brush.x) < 4) return;
    brush.moved = true;
    const box = brush.svg.getBoundingClientRect();
    const scale = brush.svg.viewBox.baseVal.width / box.width;
    const [left, right] = [Math.min(brush.x, event.clientX), Math.max(brush.x, event.clientX)];
    for (const [name, value] of [["x", (left - box.left) * scale], ["width", (right - left) * scale], ["y", 4], ["height", 68]]) brush.mark.setAttribute(name, value);
    brush.svg.append(brush.mark);
  });
  addEventListener("pointerup", (event) => {
    if (!brush) return;
    const { overview, svg, mark, x, moved } = brush;
    brush = null;
    mark.remove();
    if (!moved) return;
    // The end of a drag is no click on the link below it.
    const swallow = (click) => { click.preventDefault(); click.stopPropagation(); };
    addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
    show(timeAt(overview, svg, Math.min(x, event.clientX)), timeAt(overview, svg, Math.max(x, event.clientX)));
  });
  addEventListener("pointercancel", () => { if (brush) brush.mark.remove(); brush = null; });

  addEventListener("popstate", load);
  document.addEventListener("sw:live", draw);
  document.addEventListener("sw:theme", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
