// The page: sliders to a run, a store to a chart. It computes nothing; the server does.
"use strict";

const $ = (id) => document.getElementById(id);
const NARROW = 700;
const config = () => ({ displaylogo: false, responsive: true,
  ...(innerWidth < NARROW ? { displayModeBar: false } : {}) });
const FLOWS_AT_FIRST = ["bbr3", "cubic"];

// Sliders: value = least * (most / least) ^ position, or linear where `least` is 0.
const SLIDERS = [
  { key: "rate_mbps", label: "Rate", unit: "Mbit/s", least: 1, most: 1000, value: 50 },
  { key: "rtt_ms", label: "RTT", unit: "ms", least: 1, most: 500, value: 40 },
  { key: "buffer_bdp", label: "Buffer", unit: "BDP", least: 0.1, most: 64, value: 1 },
  { key: "loss_percent", label: "Random loss", unit: "%", least: 0, most: 5, value: 0 },
];

let toml = "";
let running = 0;

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  const text = await answer.text();
  let found;
  try { found = JSON.parse(text); } catch { found = { error: text }; }
  if (!answer.ok) throw new Error(found.error || text);
  return found;
}

// `by`: who says it; an error stays until the one who said it has better news.
let failed = "";

function say(text, by, isError = false) {
  if (failed && failed !== by) return;
  failed = isError ? by : "";
  $("status").textContent = text;
  $("status").className = isError ? "error" : "";
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function colours(layout) {
  const style = getComputedStyle(document.body);
  const ink = style.getPropertyValue("--ink");
  const narrow = innerWidth < NARROW;
  const top = layout.title && layout.title.text ? 72 : 30;
  return {
    ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { ...layout.font, color: ink }, autosize: true, width: undefined,
    legend: { orientation: "h", y: -0.25 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: ink },
    margin: narrow ? { l: 48, r: 8, t: top, b: 40 } : { l: 64, r: 16, t: top, b: 48 },
  };
}

function table(place, titles, rows) {
  const head = element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title)));
  const body = rows.map((row) => element("tr", {}, ...row.map((value) => element("td", {}, value))));
  place.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
}

const shown = (value, scale, digits) => value === null ? "-" : (value / scale).toFixed(digits);

// ---- bench ------------------------------------------------------------------------------------

function sliderValue(slider) {
  const position = Number($(slider.key).value) / 1000;
  const value = slider.least === 0
    ? slider.most * position
    : slider.least * Math.pow(slider.most / slider.least, position);
  return Number(value.toPrecision(2));
}

function makeSliders(about) {
  const form = $("sliders");
  for (const slider of SLIDERS) {
    const position = slider.least === 0
      ? slider.value / slider.most
      : Math.log(slider.value / slider.least) / Math.log(slider.most / slider.least);
    const input = element("input", {
      type: "range", id: slider.key, min: 0, max: 1000, value: Math.round(1000 * position),
      "aria-label": `${slider.label} in ${slider.unit}`,
    });
    const output = element("output", { for: slider.key });
    const tell = () => {
      output.textContent = `${slider.label} ${sliderValue(slider)} ${slider.unit}`;
      input.setAttribute("aria-valuetext", `${sliderValue(slider)} ${slider.unit}`);
    };
    input.addEventListener("input", tell);
    input.addEventListener("change", run);
    form.append(element("label", {}, output, input));
    tell();
  }
  form.append(choice("qdisc", "Queue", about.qdiscs, "fifo", run));
  for (let index = 0; index < about.max_flows; index++) {
    const names = index === 0 ? about.ccs : ["", ...about.ccs];
    form.append(choice(`flow-${index}`, `Flow ${index + 1}`, names, FLOWS_AT_FIRST[index] || "", run));
  }
  form.addEventListener("submit", (event) => event.preventDefault());
}

function choice(id, label, names, chosen, changed) {
  const select = element("select", { id, "aria-label": label },
    ...names.map((name) => element("option", { value: name }, name || "none")));
  select.value = chosen;
  select.addEventListener("change", changed);
  return element("label", {}, label, select);
}

async function run() {
  const mine = ++running;
  const bench = { qdisc: $("qdisc").value, flows: [] };
  for (const slider of SLIDERS) bench[slider.key] = sliderValue(slider);
  for (const select of document.querySelectorAll("select[id^=flow-]")) {
    if (select.value) bench.flows.push(select.value);
  }
  // What fits in about a second of one core.
  bench.duration_s = Math.max(1, Math.min(30, Math.floor(30000 / bench.rate_mbps)));
  say("running", "bench");
  try {
    const found = await ask("/api/run", { bench });
    if (mine !== running) return; // a later run took its place
    draw($("plots"), found);
    say(`${bench.duration_s} s simulated`, "bench");
  } catch (error) {
    if (mine === running) say(error.message, "bench", true);
  }
}

function draw(place, found) {
  toml = found.toml;
  table($("summary"), ["flow", "Mbit/s", "share", "retransmitted", "RTT p50 ms"],
    found.summary.flows.map((flow) => [
      flow.flow, shown(flow.goodput_bps, 1e6, 2), shown(flow.share, 1, 3),
      shown(flow.retransmit_ratio, 0.01, 2) + " %", shown(flow.rtt_us.p50, 1e3, 1),
    ]));
  for (const figure of found.figures) {
    let box = document.getElementById(`plot-${figure.key}`);
    if (!box) {
      box = element("div", { id: `plot-${figure.key}`, class: "plot", role: "img" });
      place.append(element("div", {}, element("h2", {}, figure.title), box));
    }
    box.setAttribute("aria-label", `${figure.title} over time`);
    Plotly.react(box, figure.data, colours(figure.layout), config());
  }
}

async function copy() {
  try {
    await navigator.clipboard.writeText(toml);
    $("copied").textContent = "copied; fullpipe run takes it";
  } catch {
    const area = element("textarea", { rows: 12, cols: 60, "aria-label": "The scenario" });
    area.value = toml;
    $("copied").replaceChildren(area);
    area.select();
  }
}

// ---- sweep ------------------------------------------------------------------------------------

let axes = [];

function makeChoice(state) {
  axes = state.axes;
  const names = ["", ...state.axes];
  $("choice").replaceChildren(
    choice("y", "Metric", state.metrics, "goodput_bps", chart),
    choice("x", "To the right", state.axes, state.axes[0], chart),
    choice("by", "Upwards, or a line each", ["", "cc", ...state.axes.filter((a) => a !== "cc")],
      state.axes[1] || "", chart),
    choice("facet", "A plot each", names, "", chart),
    choice("kind", "Kind", state.kinds.filter((kind) => kind !== "pareto"),
      state.axes.length > 1 ? "heat" : "line", chart),
    choice("filter", "Only where", names, "", chart),
    element("label", {}, "is", element("input", { id: "filter-value", "aria-label": "value" })),
  );
  $("filter-value").addEventListener("change", chart);
}

async function chart() {
  const wanted = new URLSearchParams();
  for (const name of ["y", "x", "by", "facet", "kind"]) wanted.set(name, $(name).value);
  if ($("filter").value && $("filter-value").value) {
    wanted.set(`is.${$("filter").value}`, $("filter-value").value);
  }
  try {
    const figure = await ask(`/api/chart?${wanted}`);
    const box = $("chart");
    await Plotly.react(box, figure.data, colours(figure.layout), config());
    box.removeAllListeners && box.removeAllListeners("plotly_click");
    box.on("plotly_click", (event) => openCell(event.points[0]));
    say("", "chart");
  } catch (error) {
    say(error.message, "chart", true);
  }
}

async function openCell(point) {
  const cell = { [$("x").value]: String(point.x) };
  if ($("kind").value === "heat" && $("by").value) cell[$("by").value] = String(point.y);
  if ($("filter").value) cell[$("filter").value] = $("filter-value").value;
  say("running the cell", "bench");
  try {
    const rows = await ask(`/api/cell?${new URLSearchParams(cell)}`);
    const title = Object.entries(cell).map(([name, value]) => `${name} ${value}`).join(", ");
    const numbers = element("table");
    table(numbers, ["seed", "flow", "Mbit/s", "share"], rows.rows.map((row) => [
      String(row.seed), row.flow, shown(row.goodput_bps, 1e6, 2), shown(row.share, 1, 3),
    ]));
    $("cell").replaceChildren(element("h2", {}, `Cell ${rows.cell}: ${title}`), numbers);
    if (!rows.document) {
      say(`${rows.refused}; what was measured is below`, "bench");
      return;
    }
    const drawn = await ask("/api/run", { cell });
    show("bench");
    draw($("plots"), drawn);
    say(`cell ${rows.cell}: ${title}`, "bench");
  } catch (error) {
    say(error.message, "bench", true);
  }
}

function follow() {
  let first = true;
  let done = -1;
  const events = new EventSource("/events");
  events.onmessage = (event) => {
    const state = JSON.parse(event.data);
    if (state.error) { say(state.error, "store", true); return; }
    if (failed === "store") say("", "store");
    $("done").max = Math.max(1, state.asked);
    $("done").value = state.done;
    $("count").textContent = `${state.done} of ${state.asked} runs`;
    if (first) makeChoice(state);
    if (state.done !== done && state.done > 0) chart();
    first = false;
    done = state.done;
  };
}

function show(name) {
  for (const other of ["sweep", "bench"]) {
    $(other).hidden = other !== name;
    $(`tab-${other}`).setAttribute("aria-selected", String(other === name));
  }
  for (const box of document.querySelectorAll(`#${name} .js-plotly-plot`)) Plotly.Plots.resize(box);
}

async function begin() {
  const about = await ask("/api/about");
  $("tab-sweep").addEventListener("click", () => { show("sweep"); say("", "bench"); });
  $("tab-bench").addEventListener("click", () => { show("bench"); if (!toml) run(); });
  $("copy").addEventListener("click", copy);
  makeSliders(about);
  // Who came to watch a sweep has not asked for a run.
  if (about.sweep) { show("sweep"); follow(); return; }
  $("tab-sweep").disabled = true;
  await run();
}

addEventListener("DOMContentLoaded", () => begin().catch((error) => say(error.message, "page", true)));
