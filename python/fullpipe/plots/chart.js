// Draws a grid of plots so that it fits its page: panels side by side, or in one column. A page
// includes this before its own script.
"use strict";

// Where there is no room beside a plot, its legend stands below.
const NARROW_PX = 700, ENTRY_PX = 48, LETTER_PX = 7, ROW_PX = 20, MOST_ROWS = 8;

function legendRows(traces, width) {
  let rows = 1, used = 0;
  for (const trace of traces) {
    if (trace.showlegend === false || !trace.name) continue;
    const entry = ENTRY_PX + LETTER_PX * trace.name.length;
    if (used && used + entry > width) { rows += 1; used = 0; }
    used += entry;
  }
  return Math.min(rows, MOST_ROWS);
}

function fitted(figure, width) {
  if (width >= NARROW_PX) return figure.layout;
  const layout = figure.narrow, below = layout.showlegend ? ROW_PX * legendRows(figure.data, width) : 0;
  return {
    ...layout, height: layout.height + below, margin: { ...layout.margin, b: layout.margin.b + below },
    legend: { orientation: "h", xref: "container", x: 0, yref: "container", y: 0, yanchor: "bottom", maxheight: below + 4 },
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
