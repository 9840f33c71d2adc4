"""The page: who may ask, what a browser sees."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from matplotlib.image import imread
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from starlette.testclient import TestClient

import browsers
from experiment_entries import entry_of
from fullpipe.experiments import Store as ExperimentStore
from fullpipe.experiments import run_entries
from fullpipe.serve import cells
from fullpipe.serve.app import make_app
from fullpipe.sweep.merging import merge
from sweep_files import filled, sweep

HOST = "127.0.0.1:8000"
BASE = f"http://{HOST}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "store"
    filled(place, sweep())
    return place


@pytest.fixture
def client(folder: Path) -> TestClient:
    made = TestClient(make_app(folder, "secret", frozenset({HOST})), base_url=BASE)
    assert made.get("/?token=secret").status_code == 200
    return made


def test_only_the_link_with_its_token_opens_the_page(folder: Path) -> None:
    client = TestClient(make_app(folder, "secret", frozenset({HOST})), base_url=BASE)
    for path in ("/", "/api/sweep", "/files/page.js", "/events"):
        assert client.get(path).status_code == 403
    assert client.get("/?token=wrong").status_code == 403
    assert client.get("/?token=secret").status_code == 200
    assert client.get("/api/sweep").status_code == 200


def test_another_host_header_is_refused_even_with_the_token(client: TestClient) -> None:
    answer = client.get("/api/sweep", headers={"host": "evil.example"})
    assert answer.status_code == 421


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "nothing.js"])
def test_no_file_but_the_pages_own_is_sent(client: TestClient, name: str) -> None:
    assert client.get(f"/files/{name}").status_code == 404


def test_nothing_is_loaded_from_elsewhere(client: TestClient) -> None:
    answer = client.get("/")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    for path in ("/", "/files/page.css", "/files/page.js"):
        assert "http" not in client.get(path).text


def test_the_bench_gives_the_figures_of_a_run_and_its_scenario(client: TestClient) -> None:
    bench = {"rate_mbps": 10, "rtt_ms": 20, "buffer_bdp": 1, "duration_s": 5,
             "flows": ["bbr3", "cubic"]}  # fmt: skip
    answer = client.post("/api/run", json={"bench": bench}).json()
    assert {"throughput", "queue"} <= {figure["key"] for figure in answer["figures"]}
    assert 'rate = "10000kbit"' in answer["toml"]
    rates = [flow["goodput_bps"] for flow in answer["summary"]["flows"]]
    assert 8e6 < sum(rates) < 10e6


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"bench": {"rate_mbps": 0}}, "rate_mbps"),
        ({"bench": {"flows": ["./mine.h"]}}, "is not one of"),
        ({"bench": {"flows": ["bbr3"] * 9}}, "flows"),
        ({"bench": {"colour": 1}}, "colour"),
        ({"bench": {"rate_mbps": 1000, "duration_s": 120}}, "at most 36 s"),
        ({"cell": {"nothing": "1"}}, "is no axis"),
        ({"cell": {"rtt": "'; drop"}}, "no cell"),
        ([], "the body must be"),
        ({"bench": {"flows": ["x" * 70000]}}, "the body must be"),
    ],
)
def test_what_a_page_must_not_send_is_refused(client: TestClient, body: Any, message: str) -> None:
    answer = client.post("/api/run", json=body)
    assert answer.status_code == 400 and message in answer.json()["error"]


def test_a_chart_and_a_cell_of_the_store(client: TestClient) -> None:
    figure = client.get("/api/chart?y=share&x=rtt&by=buffer&kind=heat&is.cc=bbr3").json()
    assert figure["data"][0]["type"] == "heatmap"
    cell = client.get("/api/cell?rtt=40ms&buffer=4.0").json()
    assert len(cell["rows"]) == 4 and cell["document"]["path"]["rtt"] == "40ms"
    assert cell["axes"] == {"rtt": "40ms", "buffer": "4.0", "cc": "bbr3"} and cell["alike"] == 1
    assert client.get(f"/api/cell?cell={cell['id']}").json() == cell
    assert client.get("/api/cell?rtt=40ms").json()["alike"] == 3
    drawn = client.post("/api/run", json={"cell": {"rtt": "40ms", "buffer": "4.0"}}).json()
    assert drawn["summary"]["flows"][0]["cc"] == "bbr3"
    for shown in ("rtt=40ms&buffer=4", "rtt=0.04&buffer=4.0"):
        assert client.get(f"/api/cell?{shown}").json()["cell"] == cell["cell"]
    assert client.get("/api/chart?y=share&x=nothing").status_code == 400


def test_ten_streams_and_pages_cost_one_computation_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the progress and of a chart; and all are told of the change."""
    store = tmp_path / "store"
    few = {"rtt": ["20ms"], "buffer": [1], "cc": ["bbr3"]}
    filled(store, sweep(axis=few))
    counted: Counter[str] = Counter()

    def counting(name: str) -> None:
        work = getattr(cells, name)

        def counted_work(*given: Any) -> Any:
            counted[name] += 1
            return work(*given)

        monkeypatch.setattr(cells, name, counted_work)

    counting("state")
    counting("chart")
    app = make_app(store, "secret", frozenset({HOST}))
    told = anyio.run(
        _streams, app, 10, lambda: filled(store, sweep(axis={**few, "buffer": [1, 4]}))
    )
    first = [json.loads(events[0]) for events in told]
    last = [json.loads(events[-1]) for events in told]
    assert {state["done"] for state in first} == {2} and {state["done"] for state in last} == {4}
    # The change comes in steps: what the sweep asks for, its rows, and those settled.
    assert counted["state"] <= 4
    client = TestClient(app, base_url=BASE)
    client.get("/?token=secret")
    charts = {client.get("/api/chart?y=share&x=rtt&by=buffer").text for _ in range(3)}
    assert len(charts) == 1 and counted["chart"] == 1


async def _streams(app: Any, count: int, change: Callable[[], Any]) -> list[list[str]]:
    """What so many streams of events are told until every one has seen the end of the change."""
    headers = [(b"host", HOST.encode()), (b"cookie", b"fullpipe=secret")]
    scope = {"type": "http", "method": "GET", "path": "/events", "raw_path": b"/events",
             "query_string": b"", "headers": headers, "http_version": "1.1"}  # fmt: skip
    told: list[list[str]] = [[] for _ in range(count)]
    all_began, ended = anyio.Event(), anyio.Event()

    async def stream(events: list[str]) -> None:
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await ended.wait()
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            if text := message.get("body", b"").decode():
                events.append(text.removeprefix("data: "))
            if all(told):
                all_began.set()
            if all(many and json.loads(many[-1]).get("done") == 4 for many in told):
                ended.set()

        await app(dict(scope), receive, send)

    async with anyio.create_task_group() as group:
        for events in told:
            group.start_soon(stream, events)
        await all_began.wait()
        await anyio.to_thread.run_sync(change)
    return told


def test_a_cell_of_an_experiment_has_its_scenario_and_is_run(tmp_path: Path) -> None:
    entry, store = entry_of(tmp_path), ExperimentStore(tmp_path / "store")
    run_entries([entry], store, repetitions=1, jobs=1)
    for path in (store.folder, _merged(store.folder, tmp_path / "copy")):
        client = TestClient(make_app(path, "secret", frozenset({HOST})), base_url=BASE)
        client.get("/?token=secret")
        cell = client.get("/api/cell?rate=4&rtt=20").json()
        assert cell["document"]["path"] == {"rate": "4mbit", "rtt": "20ms", "buffer": "1bdp"}
        drawn = client.post("/api/run", json={"cell": {"rate": "4", "rtt": "20"}}).json()
        assert [flow["flow"] for flow in drawn["summary"]["flows"]] == ["one", "two"]


def _merged(source: Path, target: Path) -> Path:
    assert merge(target, [source]).missing == 0
    return target


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-c", "from fullpipe.cli import main; main()", "serve", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        yield process.stderr.readline().strip()
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def link(folder: Path) -> Iterator[str]:
    """What `fullpipe serve` prints, and again for every browser."""
    with _served(folder) as found:
        yield found


@pytest.fixture
def page(link: str) -> Iterator[webdriver.Chrome]:
    """A browser of a laptop's size with the chart of the sweep, which ends without an error."""
    with browsers.browser("--window-size=1280,900") as driver:
        driver.get(link)
        _seen(driver, "#chart .heatmaplayer image")
        yield driver
        errors = [line for line in driver.get_log("browser") if line["level"] == "SEVERE"]
        assert errors == []


def _seen(driver: webdriver.Chrome, selector: str) -> None:
    browsers.until(
        driver,
        lambda d: (
            d.find_elements(By.CSS_SELECTOR, selector)
            or d.find_elements(By.CSS_SELECTOR, "#status.error")
        ),
    )
    status = driver.find_element(By.ID, "status")
    assert "error" not in str(status.get_attribute("class")), status.text


def _choose(driver: webdriver.Chrome, **values: str) -> None:
    for name, value in values.items():
        Select(driver.find_element(By.ID, name)).select_by_value(value)


def _drawn(driver: webdriver.Chrome, **values: str) -> None:
    """Chooses, and waits until that is drawn."""
    _choose(driver, **values)
    wanted = [[name, value] for name, value in values.items()]
    browsers.until(
        driver,
        lambda d: d.execute_script(
            "return arguments[0].every(([name, value]) => figure.wanted.get(name) === value)"
            " && document.getElementById('chart').figure === figure", wanted,
        ),
    )  # fmt: skip


def _opened(driver: webdriver.Chrome) -> str:
    """What the page says of the cell that was opened, once its run is drawn."""
    _seen(driver, "#plot-queue .trace")
    return driver.find_element(By.CSS_SELECTOR, "#cell h2").get_attribute("textContent") or ""


@pytest.mark.browser
@pytest.mark.slow
def test_a_browser_moves_a_slider_and_sees_a_curve_change(page: webdriver.Chrome) -> None:
    assert "token" not in page.current_url
    assert page.find_element(By.ID, "count").text == "12 of 12 runs"
    page.find_element(By.ID, "tab-bench").click()
    _seen(page, "#plot-throughput .trace")

    def curve() -> str:
        lines = page.find_elements(By.CSS_SELECTOR, "#plot-throughput .trace .js-line")
        return "".join(str(line.get_attribute("d")) for line in lines)

    before = curve()
    page.find_element(By.ID, "rtt_ms").send_keys(Keys.PAGE_UP)
    browsers.until(page, lambda _: curve() not in ("", before))
    page.set_window_size(400, 800)
    for tab in ("tab-bench", "tab-sweep"):
        page.find_element(By.ID, tab).click()
        width = page.execute_script("return document.documentElement.scrollWidth")
        assert width <= page.execute_script("return window.innerWidth")
    unnamed = page.execute_script(
        "return [...document.querySelectorAll('input, select, button')]"
        ".filter(e => !e.getAttribute('aria-label') && !e.textContent.trim()).length"
    )
    assert unnamed == 0


@pytest.mark.browser
@pytest.mark.slow
def test_the_figures_of_the_first_run_fit_their_boxes_and_the_controls_one_row(
    page: webdriver.Chrome,
) -> None:
    page.find_element(By.ID, "tab-bench").click()
    _seen(page, "#plot-queue .trace")
    sizes = page.execute_script(
        "return [...document.querySelectorAll('#plots .plot')].map(box =>"
        " [box.clientWidth, box.querySelector('.main-svg').getBoundingClientRect().width])"
    )
    assert len(sizes) == 4 and all(drawn <= box for box, drawn in sizes), sizes
    tops = page.execute_script(
        "return [...document.querySelectorAll('#sliders label:not([hidden])')]"
        ".map(label => label.offsetTop)"
    )
    assert len(tops) == 8 and len(set(tops)) == 1, tops


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "x"), [("heat", "rtt"), ("line", "rtt"), ("box", "rtt")])
def test_a_click_opens_the_cell_that_it_names_and_moves_the_sliders(
    page: webdriver.Chrome, kind: str, x: str
) -> None:
    """The cell of the second facet, whose buffer is 1 BDP, at the first RTT of 10 ms."""
    _drawn(page, kind=kind, x=x, by="cc", facet="buffer")
    page.execute_script(
        "const box = document.getElementById('chart');"
        "const data = box._fullData.find(trace => trace.xaxis === 'x2');"
        "const point = {heat: {pointIndex: [0, 0]}, line: {customdata: '0.01'}, box: {x: 0}};"
        "box.emit('plotly_click', {points: [{data, ...point[arguments[0]]}]})", kind,
    )  # fmt: skip
    assert "rtt 10ms, buffer 1.0, cc bbr3" in _opened(page)
    told = {name: page.find_element(By.ID, f"{name}-value").text
            for name in ("rate_mbps", "rtt_ms", "buffer_bdp", "loss_percent")}  # fmt: skip
    assert told == {
        "rate_mbps": "Rate 10 Mbit/s", "rtt_ms": "RTT 10 ms", "buffer_bdp": "Buffer 1 BDP",
        "loss_percent": "Random loss 0.5 %",
    }  # fmt: skip
    flows = page.execute_script("return flowChoices().map(one => one.value).filter(Boolean)")
    assert flows == ["bbr3", "cubic"]


@pytest.mark.browser
@pytest.mark.slow
def test_a_point_of_a_pareto_plot_is_clicked_with_a_mouse(page: webdriver.Chrome) -> None:
    _drawn(page, kind="pareto", by="rtt")
    point = page.find_elements(By.CSS_SELECTOR, "#chart .scatterlayer .point")[0]
    ActionChains(page).move_to_element(point).click().perform()
    assert "Cell " in _opened(page)


@pytest.mark.browser
@pytest.mark.slow
def test_an_answer_that_comes_late_does_not_replace_what_was_chosen_since(
    page: webdriver.Chrome,
) -> None:
    title = page.execute_async_script(
        "const end = arguments[0], real = ask, answers = [], y = document.getElementById('y');"
        "ask = path => new Promise(done => answers.push(() => real(path).then(done)));"
        "(async () => {"
        " y.value = 'share'; const first = chart();"
        " y.value = 'rtt_p50_us'; const second = chart();"
        " answers[1](); await second; answers[0](); await first;"
        " end(document.getElementById('chart-title').textContent); })()"
    )
    assert title.startswith("Smoothed RTT, median")


@pytest.mark.browser
@pytest.mark.slow
def test_a_choice_outlives_news_of_the_sweep(page: webdriver.Chrome) -> None:
    _drawn(page, y="share", kind="line", x="buffer", facet="rtt")
    page.execute_script(
        "makeChoice({axes: {...axes, loss: ['0%']}, metrics, kinds: ['line', 'heat']})"
    )
    chosen = {name: Select(page.find_element(By.ID, name)).first_selected_option for name in
              ("y", "kind", "x", "facet")}  # fmt: skip
    values = {name: option.get_attribute("value") for name, option in chosen.items()}
    assert values == {"y": "share", "kind": "line", "x": "buffer", "facet": "rtt"}
    assert "loss" in page.find_element(By.ID, "facet").text


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_texts_of_figures_stand_out_from_the_page(
    page: webdriver.Chrome, scheme: str
) -> None:
    """In a screenshot: the queue, a black line on white; and the axes' texts of a heat map."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    shades = [_shades(page, "#chart .xtitle")]
    page.find_element(By.ID, "tab-bench").click()
    _seen(page, "#plot-queue .trace")
    shades.append(_shades(page, "#plot-queue .scatterlayer"))
    for dark, light, most in shades:
        assert light - dark > 0.5
        assert most == pytest.approx(dark if scheme == "dark" else light, abs=0.1)


def _shades(driver: webdriver.Chrome, selector: str) -> tuple[float, float, float]:
    """The darkest, the lightest and the median shade of an element, from 0 to 1."""
    # The page may draw its plots again between the two.
    picture = browsers.until(
        driver,
        lambda d: d.find_element(By.CSS_SELECTOR, selector).screenshot_as_png,
        (StaleElementReferenceException,),
    )
    grey = imread(io.BytesIO(picture), format="png")[..., :3].mean(axis=2)
    return float(grey.min()), float(grey.max()), float(np.median(grey))
