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
  const body = Math.min(plot.wide.height, plot.layout.yaxis.tickvals ? plot.wide.height : 300);
  box.style.height = `${body + below}px`;
  Plotly.relayout(plot, {
    height: body + below,
    margin: { ...plot.wide.margin, l: 56, r: plot.layout.yaxis2 ? 62 : 14, b: 54 + below },
    legend: { orientation: "h", xref: "container", x: 0, yref: "container", y: 0, yanchor: "bottom", maxheight: below + 8, font: { size: 11 } },
  }).then(Plotly.Plots.resize);
}

const drawn = [...document.querySelectorAll(".plotly-graph-div")];
const fitAll = () => drawn.forEach(fit);
fitAll();
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth !== width) { width = window.innerWidth; fitAll(); }
});
