// Draws a grid of plots so that it fits its page: panels side by side, or in one column. A page
// includes this before its own script.
"use strict";

// Where there is no room beside a plot, its legend stands below.
const NARROW_PX = 700, ENTRY_PX = 48, LETTER_PX = 7, ROW_PX = 20, MOST_ROWS = 8;

// Plotly writes a legend in one row if it fits, and otherwise in columns as wide as the longest entry.
function legendRows(traces, width) {
  const named = traces.filter((trace) => trace.showlegend !== false && trace.name);
  const widths = named.map((trace) => ENTRY_PX + LETTER_PX * trace.name.length);
  if (widths.reduce((sum, one) => sum + one, 0) <= width) return 1;
  return Math.min(Math.ceil(widths.length / Math.max(1, Math.floor(width / Math.max(...widths)))), MOST_ROWS);
}

function fitted(figure, width) {
  if (width >= NARROW_PX) return figure.layout;
  const layout = figure.narrow, below = layout.showlegend ? ROW_PX * legendRows(figure.data, width) : 0;
  return {
    ...layout, height: layout.height + below, margin: { ...layout.margin, b: layout.margin.b + below },
    legend: { orientation: "h", xref: "container", x: 0, yref: "container", y: 0, yanchor: "bottom", maxheight: below + 8 },
  };
}

// `figure`: data, layout, and the layout of one column (`narrow`).
function drawGrid(box, figure) {
  box.figure = figure;
  const layout = fitted(figure, box.clientWidth);
  // The colours of a heat map stay, all others are turned over on a dark page.
  const isHeat = figure.data.some((trace) => trace.type === "heatmap");
  box.classList.toggle("drawn", !isHeat);
  const ink = isHeat ? getComputedStyle(document.body).color : layout.font.color;
  const config = { displaylogo: false, responsive: true, displayModeBar: box.clientWidth < NARROW_PX ? false : "hover" };
  const font = { ...layout.font, color: ink };
  return Plotly.react(box, figure.data, { ...layout, font, modebar: { ...layout.modebar, color: ink } }, config);
}

function drawGridsAgain() {
  for (const box of document.querySelectorAll(".js-plotly-plot")) if (box.figure && box.clientWidth) drawGrid(box, box.figure);
}

let widthDrawn = innerWidth;
addEventListener("resize", () => { if (innerWidth !== widthDrawn) { widthDrawn = innerWidth; drawGridsAgain(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawGridsAgain);
