"""Pages in a browser that prefers the dark or the light, on a laptop and on a telephone: all text
can be read, and no page is wider than the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w
from selenium import webdriver

import browsers
from experiment_entries import claims, entry_of
from fullpipe.engines.runner import run_scenario
from fullpipe.experiments import Store as ExperimentStore
from fullpipe.experiments import judge, run_entries
from fullpipe.experiments.verdicts_page import verdicts_page
from fullpipe.plots.plotly_renderer import write_page
from fullpipe.report.page import write_report
from fullpipe.scenario.model import make_scenario
from fullpipe.scorecard.card import run_card
from fullpipe.scorecard.card_page import card_page, overview_place
from fullpipe.scorecard.items import items
from fullpipe.sweep.chart import Request, make_chart
from fullpipe.sweep.store import Store
from sweep_files import filled, sweep

#: Three links: the widest table of a report.
NETWORK = {
    "name": "row", "duration": "3s",
    "link": [{"name": name, "rate": "10mbit", "delay": "5ms"} for name in ("one", "two", "three")],
    "flow": [{"cc": "bbr3"}, {"cc": "cubic"}],
}  # fmt: skip
#: Contrast of text (WCAG 2.2, success criterion 1.4.3) outside of figures, whose colours CSS turns
#: over: what is below 4.5, and what a page says of its width.
MEASURE = """
const channel = v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const rgba = text => text.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
const ground = element => {
  for (let one = element; one; one = one.parentElement) {
    const colour = rgba(getComputedStyle(one).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const faint = new Set();
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  if (!own || element.closest(".drawn, svg, script, style")) continue;
  const pair = [luminance(rgba(getComputedStyle(element).color)), luminance(ground(element))];
  const contrast = (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
  if (contrast < 4.5) faint.add(`${element.tagName}.${element.className}: ${contrast.toFixed(1)}`);
}
return [[...faint], document.documentElement.scrollWidth];
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("colours")
    toml = tomli_w.dumps(NETWORK)
    recordings = run_scenario(make_scenario(NETWORK), toml, [folder / "run"]).recordings
    store, _ = filled(folder / "store", sweep())
    found = {"report": write_report(recordings, folder / "report.html", light=True)}
    found["chart"] = folder / "chart.html"
    write_page(make_chart(store, Request("share", "rtt", "cc", "buffer")), found["chart"])
    found["heat"] = folder / "heat.html"
    heat = Request("share", "buffer", "rtt", kind="heat")
    write_page(make_chart(store, heat), found["heat"])
    entry = entry_of(folder, claims("all(goodput > 0.5)", "all(goodput > 100)"))
    runs = ExperimentStore(folder / "runs")
    run_entries([entry], runs, repetitions=1, jobs=1)
    found["verdicts"] = folder / "verdicts.html"
    found["verdicts"].write_text(verdicts_page([judge(entry, runs)]), encoding="utf-8")
    chosen = [item for item in items() if item.id in ("rfc9743-5.1.2", "rfc9743-6.2")]
    cards = Store(folder / "cards", create=True)
    card = run_card("cubic", ["reno"], chosen, cards, quick=True, jobs=1)
    found["card"] = folder / "card.html"
    found["card"].write_text(card_page(card), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with browsers.browser("--hide-scrollbars") as made:
        yield made


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "chart", "heat", "verdicts", "card"])
def test_all_text_can_be_read_and_no_page_is_wider_than_the_screen(
    pages: dict[str, Path], browser: webdriver.Chrome, name: str, scheme: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for width in (1280, 390):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(pages[name].as_uri())
        faint, scroll_width = browser.execute_script(MEASURE)
        assert faint == []
        assert scroll_width <= width
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.browser
@pytest.mark.slow
def test_the_table_of_links_fits_a_report_of_1100_pixels(
    pages: dict[str, Path], browser: webdriver.Chrome
) -> None:
    size = {"width": 1100, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(pages["report"].as_uri())
    widths = browser.execute_script(
        "return [...document.querySelectorAll('.wide')].map(one =>"
        " [one.scrollWidth, one.clientWidth])"
    )
    assert len(widths) >= 3 and all(content <= box for content, box in widths), widths


def test_the_overview_of_a_scorecard_is_scaled_by_tolerance() -> None:
    """Of a tenth of the median to a tolerance, and ten of them to an end."""
    values = {"a": 4.57, "b": 4.61, "c": 4.59}
    assert overview_place(values, "a", "less") == pytest.approx(0.02 / 4.59, rel=1e-6)
    assert overview_place(values, "b", "less") == pytest.approx(-0.02 / 4.59, rel=1e-6)
    shares = {"a": 0.5, "b": 0.6, "c": 0.9, "d": float("nan"), "e": float("inf")}
    assert overview_place(shares, "b", "more") == 0
    assert overview_place(shares, "c", "more") == pytest.approx(0.5)
    assert overview_place(shares, "d", "more") is None
    assert overview_place(shares, "e", "more") == -1  # never
    assert overview_place({"a": 1.0, "b": 1.0, "c": 30.0}, "c", "less") == -1
    assert overview_place({"a": 0.0, "b": 0.0}, "a", "less") == 0
