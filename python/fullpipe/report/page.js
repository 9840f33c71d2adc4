// The plots over time of one run zoom together.
for (const section of document.querySelectorAll(".course")) {
  const plots = [...section.querySelectorAll(".over-time .plotly-graph-div")];
  let moving = false;
  for (const plot of plots) {
    plot.on("plotly_relayout", async (change) => {
      const given = "xaxis.range[0]" in change;
      if (moving || !(given || change["xaxis.autorange"])) return;
      moving = true;
      const update = given
        ? { "xaxis.range": [change["xaxis.range[0]"], change["xaxis.range[1]"]] }
        : { "xaxis.autorange": true };
      await Promise.all(plots.filter((other) => other !== plot).map((other) => Plotly.relayout(other, update)));
      moving = false;
    });
  }
}

// Where there is no room beside a plot, its legend stands below and the plot keeps its size.
const NARROW_PX = 700, ENTRY_PX = 48, LETTER_PX = 7, ROW_PX = 20, MOST_ROWS = 8;

function legendRows(plot, width) {
  let rows = 1, used = 0;
  for (const trace of plot.data) {
    if (trace.showlegend === false || !trace.name) continue;
    const entry = ENTRY_PX + LETTER_PX * trace.name.length;
    if (used && used + entry > width) { rows += 1; used = 0; }
    used += entry;
  }
  return Math.min(rows, MOST_ROWS);
}

function fit(plot) {
  plot.wide ??= { height: plot.layout.height, margin: { ...plot.layout.margin }, legend: { ...plot.layout.legend } };
  const narrow = plot.parentElement.clientWidth < NARROW_PX;
  if (plot.narrow === narrow && !narrow) return;
  plot.narrow = narrow;
  if (!narrow) { Plotly.relayout(plot, plot.wide).then(Plotly.Plots.resize); return; }
  const below = plot.layout.showlegend ? ROW_PX * legendRows(plot, plot.parentElement.clientWidth) : 0;
  const body = Math.min(plot.wide.height, plot.layout.yaxis.tickvals ? plot.wide.height : 300);
  Plotly.relayout(plot, {
    height: body + below,
    margin: { ...plot.wide.margin, l: 56, r: plot.layout.yaxis2 ? 62 : 14, b: 54 + below },
    legend: { orientation: "h", xref: "container", x: 0, yref: "container", y: 0, yanchor: "bottom", maxheight: below + 4, font: { size: 11 } },
  }).then(Plotly.Plots.resize);
}

const drawn = [...document.querySelectorAll(".plotly-graph-div")];
const fitAll = () => drawn.forEach(fit);
fitAll();
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth !== width) { width = window.innerWidth; fitAll(); }
});
