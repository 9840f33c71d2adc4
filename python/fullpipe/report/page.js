// All plots over time zoom together.
const timed = [...document.querySelectorAll(".course .over-time .plotly-graph-div")];
let moving = false;
for (const plot of timed) {
  plot.on("plotly_relayout", async (change) => {
    const given = "xaxis.range[0]" in change;
    if (moving || !(given || change["xaxis.autorange"])) return;
    moving = true;
    const update = given
      ? { "xaxis.range": [change["xaxis.range[0]"], change["xaxis.range[1]"]] }
      : { "xaxis.autorange": true };
    await Promise.all(timed.filter((other) => other !== plot).map((other) => Plotly.relayout(other, update)));
    moving = false;
  });
}

// Runs that are overlaid in one panel, with a panel for each instead.
const PANEL_PX = 190;
function splitFigure({ data, layout }) {
  const runs = layout.meta.runs, count = runs.length, number = (run) => (run ? run + 1 : "");
  const placed = (trace, run, shown) => ({ ...trace, xaxis: `x${number(run)}`, yaxis: `y${number(run)}`, ...(shown ? {} : { showlegend: false }) });
  const traces = data.flatMap((trace) => (typeof trace.meta === "number"
    ? [placed(trace, trace.meta, true)]
    : runs.map((_, run) => placed(trace, run, run === 0))));
  const { xaxis, yaxis, yaxis2, annotations = [], ...rest } = layout;
  const panels = { ...rest, height: PANEL_PX * count + 90, annotations: [...annotations] };
  for (let run = 0; run < count; run++) {
    const domain = [1 - (run + 0.86) / count, 1 - run / count], isLast = run === count - 1;
    panels[`xaxis${number(run)}`] = { ...xaxis, title: isLast ? xaxis.title : undefined, showticklabels: isLast, anchor: `y${number(run)}`, ...(run ? { matches: "x" } : {}) };
    panels[`yaxis${number(run)}`] = { ...yaxis, domain, anchor: `x${number(run)}`, ...(run ? { matches: "y" } : {}) };
    panels.annotations.push({ text: runs[run], xref: "paper", x: 0, yref: "paper", y: domain[1], xanchor: "left", yanchor: "bottom", showarrow: false });
  }
  return { data: traces, layout: panels };
}

async function showSplit(isSplit) {
  for (const plot of timed.filter((one) => one.layout.meta?.runs)) {
    plot.whole ??= { data: plot.data, layout: plot.given };
    const { data, layout } = isSplit ? splitFigure(plot.whole) : plot.whole;
    plot.wide = undefined;
    await Plotly.react(plot, data, structuredClone(layout));
    fit(plot);
  }
}
document.getElementById("split")?.addEventListener("change", (event) => showSplit(event.target.checked));

// A plot keeps its size where its legend moves below it; its box grows by the legend.
function fit(plot) {
  const box = plot.parentElement;
  plot.wide ??= { height: plot.layout.height, margin: { ...plot.layout.margin }, legend: { ...plot.layout.legend } };
  const narrow = box.clientWidth < NARROW_PX;
  if (plot.narrow === narrow && !narrow) return;
  plot.narrow = narrow;
  if (!narrow) {
    box.style.height = `${plot.wide.height}px`;
    Plotly.relayout(plot, plot.wide).then(Plotly.Plots.resize);
    return;
  }
  const below = plot.layout.showlegend ? ROW_PX * legendRows(plot.data, box.clientWidth) : 0;
  const body = Math.min(plot.wide.height, plot.layout.yaxis.tickvals || plot.layout.yaxis2?.domain ? plot.wide.height : 300);
  box.style.height = `${body + below}px`;
  Plotly.relayout(plot, {
    height: body + below,
    margin: { ...plot.wide.margin, l: 56, r: plot.layout.yaxis2 ? 62 : 14, b: 54 + below },
    legend: { orientation: "h", xref: "container", x: 0, yref: "container", y: 0, yanchor: "bottom", maxheight: below + 8, font: { size: 11 } },
  }).then(Plotly.Plots.resize);
}

for (const plot of timed) plot.given = structuredClone(plot.layout);
const drawn = [...document.querySelectorAll(".plotly-graph-div")];
const fitAll = () => drawn.forEach(fit);
fitAll();
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth !== width) { width = window.innerWidth; fitAll(); }
});
