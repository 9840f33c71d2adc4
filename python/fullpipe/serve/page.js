// The page: sliders to a run, a store to a chart. It computes nothing; the server does.
"use strict";

const $ = (id) => document.getElementById(id);
const FLOWS_AT_FIRST = ["bbr3", "cubic"];
const PARETO_X = "queue_delay_p95_rttmin";

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

// A run's figures stand in boxes of their own, with the legend below.
function drawFigure(box, figure) {
  const below = ROW_PX * legendRows(figure.data, box.clientWidth), right = figure.layout.yaxis2 ? 62 : 12;
  const layout = {
    ...figure.layout, height: 300 + below, margin: { l: 60, r: right, t: 12, b: 54 + below },
    legend: { orientation: "h", xref: "container", x: 0, yref: "container", y: 0, yanchor: "bottom", maxheight: below + 8 },
  };
  return Plotly.react(box, figure.data, layout, { displaylogo: false, responsive: true, displayModeBar: false });
}

function table(place, titles, rows) {
  const head = element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title)));
  const body = rows.map((row) => element("tr", {}, ...row.map((value) => element("td", {}, value))));
  place.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
}

const shown = (value, scale, digits) => value === null ? "-" : (value / scale).toFixed(digits);

// ---- bench ------------------------------------------------------------------------------------

// What a slider was set to is exact until it is moved itself; then it has two digits.
function sliderValue(slider) {
  const exact = $(slider.key).dataset.exact;
  if (exact !== undefined) return Number(exact);
  const position = Number($(slider.key).value) / 1000;
  const value = slider.least === 0
    ? slider.most * position
    : slider.least * Math.pow(slider.most / slider.least, position);
  return Number(value.toPrecision(2));
}

function setSlider(slider, value) {
  const kept = Math.max(slider.least, Math.min(slider.most, value));
  const position = slider.least === 0
    ? kept / slider.most
    : Math.log(kept / slider.least) / Math.log(slider.most / slider.least);
  $(slider.key).value = Math.round(1000 * position);
  $(slider.key).dataset.exact = Number(kept.toPrecision(6));
  tellSlider(slider);
}

function tellSlider(slider) {
  const told = `${sliderValue(slider)} ${slider.unit}`;
  $(`${slider.key}-value`).textContent = `${slider.label} ${told}`;
  $(slider.key).setAttribute("aria-valuetext", told);
}

function makeSliders(about) {
  const form = $("sliders");
  for (const slider of SLIDERS) {
    const input = element("input", {
      type: "range", id: slider.key, min: 0, max: 1000, "aria-label": `${slider.label} in ${slider.unit}`,
    });
    const output = element("output", { for: slider.key, id: `${slider.key}-value` });
    input.addEventListener("input", () => { delete input.dataset.exact; tellSlider(slider); });
    input.addEventListener("change", run);
    form.append(element("label", {}, output, input));
    setSlider(slider, slider.value);
  }
  form.append(choice("qdisc", "Queue", about.qdiscs, "fifo", run));
  for (let index = 0; index < about.max_flows; index++) {
    const names = index === 0 ? about.ccs : ["", ...about.ccs];
    const changed = () => { showFlows(); run(); };
    form.append(choice(`flow-${index}`, `Flow ${index + 1}`, names, FLOWS_AT_FIRST[index] || "", changed));
  }
  showFlows();
  form.addEventListener("submit", (event) => event.preventDefault());
}

const flowChoices = () => [...document.querySelectorAll("select[id^=flow-]")];

// The flows there are, and a place for one more.
function showFlows() {
  let places = 1;
  for (const select of flowChoices()) {
    select.parentElement.hidden = !select.value && places-- < 1;
  }
}

function setSliders(values) {
  for (const slider of SLIDERS) if (slider.key in values) setSlider(slider, values[slider.key]);
  $("qdisc").value = values.qdisc;
  flowChoices().forEach((select, index) => { select.value = values.flows[index] || ""; });
  showFlows();
}

// `names`: values, or [value, what is shown] pairs.
function choice(id, label, names, chosen, changed) {
  const select = element("select", { id, "aria-label": label }, ...options(names));
  select.value = chosen;
  select.addEventListener("change", changed);
  return element("label", {}, label, select);
}

function options(names) {
  return names.map((name) => {
    const [value, shown] = Array.isArray(name) ? name : [name, name || "none"];
    return element("option", { value }, shown);
  });
}

async function run() {
  const mine = ++running;
  const bench = { qdisc: $("qdisc").value, flows: [] };
  for (const slider of SLIDERS) bench[slider.key] = sliderValue(slider);
  for (const select of flowChoices()) if (select.value) bench.flows.push(select.value);
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
    if ($(`plot-${figure.key}`)) continue;
    const box = element("div", {
      id: `plot-${figure.key}`, class: "plot drawn", role: "img", "aria-label": `${figure.title} over time`,
    });
    place.append(element("div", {}, element("h2", {}, figure.title), box));
  }
  // Once all boxes are there: their number decides how wide each is.
  for (const figure of found.figures) drawFigure($(`plot-${figure.key}`), figure);
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

let axes = {};
let metrics = [];
let figure = null;
let charting = 0;

const names = () => Object.keys(axes);

// What is chosen stays chosen when a sweep brings more axes.
function makeChoice(state) {
  const isFirst = !$("y");
  if (!isFirst && JSON.stringify([axes, metrics]) === JSON.stringify([state.axes, state.metrics])) return;
  ({ axes, metrics } = state);
  if (isFirst) {
    $("choice").append(
      choice("y", "Metric", metrics, "goodput_bps", chart),
      choice("kind", "Kind", state.kinds, names().length > 1 ? "heat" : "line", () => { offer(); chart(); }),
      choice("x", "x axis", [], "", chart), choice("by", "Group by", [], "", chart),
      choice("facet", "Facets", [], "", chart), choice("filter", "Only where", [], "", () => { offer(); chart(); }),
      element("label", {}, "is", element("input", { id: "filter-value", list: "filter-values", "aria-label": "value" })),
      element("datalist", { id: "filter-values" }),
    );
    $("filter-value").addEventListener("change", chart);
    $("choice").addEventListener("submit", (event) => event.preventDefault());
  }
  offer();
}

function offer() {
  const kind = $("kind").value, none = ["", ...names()];
  reoffer("x", kind === "pareto" ? metrics : names(), kind === "pareto" ? PARETO_X : names()[0]);
  reoffer("by", kind === "heat" ? names() : ["", ...new Set(["cc", ...names()])], names()[1] || "");
  $("by").previousSibling.textContent = kind === "heat" ? "y axis" : "Group by";
  reoffer("facet", none, "");
  reoffer("filter", none, "");
  $("x").disabled = kind === "cdf";
  $("filter-value").disabled = !$("filter").value;
  $("filter-values").replaceChildren(...options(axes[$("filter").value] || []));
}

function reoffer(id, values, otherwise) {
  const select = $(id), chosen = select.value;
  const known = values.map((value) => Array.isArray(value) ? value[0] : value);
  select.replaceChildren(...options(values));
  select.value = known.includes(chosen) && select.dataset.offered ? chosen : otherwise;
  select.dataset.offered = "yes";
}

// The front of a Pareto plot is a line through cells, and no cell: a click on it is one on the cell below.
function passClicks(figure) {
  for (const trace of figure.data) if (!trace.customdata) trace.hoverinfo = "skip";
}

async function chart() {
  const mine = ++charting;
  const wanted = new URLSearchParams();
  for (const name of ["y", "x", "by", "facet", "kind"]) wanted.set(name, $(name).value);
  if ($("filter").value && $("filter-value").value) {
    wanted.set(`is.${$("filter").value}`, $("filter-value").value);
  }
  try {
    const found = await ask(`/api/chart?${wanted}`);
    if (mine !== charting) return; // something else was chosen meanwhile
    figure = { ...found, wanted };
    $("chart-title").textContent = figure.title;
    $("chart-note").textContent = figure.note;
    const box = $("chart");
    if (wanted.get("kind") === "pareto") passClicks(figure);
    await drawGrid(box, figure);
    box.removeAllListeners("plotly_click");
    box.on("plotly_click", (event) => openCell(event.points[0]));
    say("", "chart");
  } catch (error) {
    if (mine === charting) say(error.message, "chart", true);
  }
}

// The values of axes, or the cell, that a point of the chart stands for.
function standsFor(point) {
  const { wanted, panels, places, rows } = figure, kind = wanted.get("kind"), cell = {};
  if (kind === "pareto" && point.customdata) return { cell: point.customdata };
  if (wanted.get("facet")) {
    cell[wanted.get("facet")] = panels[Number((point.data.xaxis || "x").slice(1) || 1) - 1];
  }
  const by = kind === "heat" ? rows[point.pointIndex[0]] : point.data.name;
  if (wanted.get("by") && by) cell[wanted.get("by")] = String(by);
  if (kind !== "cdf") cell[wanted.get("x")] = kind === "heat" ? places[point.pointIndex[1]] : String(point.customdata ?? places[Math.round(point.x)]);
  for (const [name, value] of wanted) if (name.startsWith("is.")) cell[name.slice(3)] = value;
  return cell;
}

async function openCell(point) {
  say("running the cell", "bench");
  const mine = ++running;
  try {
    const rows = await ask(`/api/cell?${new URLSearchParams(standsFor(point))}`);
    if (mine !== running) return;
    const place = Object.entries(rows.axes).map(([name, value]) => `${name} ${value}`).join(", ");
    const first = rows.alike > 1 ? `, the first of ${rows.alike} cells that the point stands for` : "";
    const title = `Cell ${rows.cell}: ${place}${first}`;
    const numbers = element("table");
    table(numbers, ["seed", "flow", "Mbit/s", "share"], rows.rows.map((row) => [
      String(row.seed), row.flow, shown(row.goodput_bps, 1e6, 2), shown(row.share, 1, 3),
    ]));
    $("cell").replaceChildren(element("h2", {}, title), numbers);
    if (!rows.document) {
      say(`${rows.refused}; what was measured is below`, "bench");
      return;
    }
    const drawn = await ask("/api/run", { cell: { cell: rows.id } });
    if (mine !== running) return;
    show("bench");
    const fits = Object.keys(drawn.sliders).length > 0;
    if (fits) setSliders(drawn.sliders);
    draw($("plots"), drawn);
    say(fits ? title : `${title}; sliders cannot express its scenario`, "bench");
  } catch (error) {
    if (mine === running) say(error.message, "bench", true);
  }
}

function follow() {
  let done = -1;
  const events = new EventSource("/events");
  events.onmessage = (event) => {
    const state = JSON.parse(event.data);
    if (state.error) { say(state.error, "store", true); return; }
    if (failed === "store") say("", "store");
    $("done").max = Math.max(1, state.asked);
    $("done").value = state.done;
    $("count").textContent = `${state.done} of ${state.asked} runs`;
    if (Object.keys(state.axes).length) makeChoice(state);
    if (state.done !== done && state.done > 0) chart();
    done = state.done;
  };
}

function show(name) {
  for (const other of ["sweep", "bench"]) {
    $(other).hidden = other !== name;
    $(`tab-${other}`).setAttribute("aria-selected", String(other === name));
  }
  for (const box of document.querySelectorAll(`#${name} .js-plotly-plot`)) Plotly.Plots.resize(box);
  if (name === "sweep" && figure) drawGrid($("chart"), figure);
}

async function begin() {
  let about = null, chosen = "";
  const open = (name) => {
    show(name);
    if (name === "sweep") say("", "bench");
    if (name === "bench" && about && !toml) run();
  };
  for (const name of ["sweep", "bench"]) {
    $(`tab-${name}`).addEventListener("click", () => { chosen = name; open(name); });
  }
  $("copy").addEventListener("click", copy);
  about = await ask("/api/about");
  makeSliders(about);
  $("tab-sweep").disabled = !about.sweep;
  // Who came to watch a sweep has not asked for a run.
  open(about.sweep ? chosen || "sweep" : "bench");
  if (about.sweep) follow();
}

addEventListener("DOMContentLoaded", () => begin().catch((error) => say(error.message, "page", true)));
