"""The manual's pages as a browser shows them from files: no error, nothing that is cut off on a
telephone, a search that finds, a dark mode."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

import browsers

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manual, built as `make docs` builds it: a broken link is an error."""
    out = tmp_path_factory.mktemp("manual")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going",
         "-b", "html", str(ROOT / "docs"), str(out)],
        check=True,
    )  # fmt: skip
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with browsers.browser("--window-size=390,800") as made:
        made.set_window_size(390, 800)
        # Chrome's own windows are at least 500 pixels wide; this is what a page sees.
        made.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
        )
        yield made


@pytest.mark.browser
@pytest.mark.slow
def test_no_page_has_an_error_or_is_wider_than_a_telephone(
    manual: Path, browser: webdriver.Chrome
) -> None:
    pages = sorted(manual.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        browser.get(page.as_uri())
        width = browser.execute_script("return document.documentElement.scrollWidth")
        assert width <= 390, f"{page.relative_to(manual)}: {width} pixels"
        errors = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
        assert not errors, f"{page.relative_to(manual)}: {errors}"


@pytest.mark.browser
@pytest.mark.slow
def test_the_search_works_from_files(manual: Path, browser: webdriver.Chrome) -> None:
    browser.get((manual / "search.html").as_uri() + "?q=bufferbloat")
    browsers.until(
        browser,
        lambda page: any(
            "bufferbloat-at-home" in (link.get_attribute("href") or "")
            for link in page.find_elements(By.CSS_SELECTOR, "#search-results a")
        ),
    )


@pytest.mark.browser
@pytest.mark.slow
def test_the_manual_has_a_dark_mode(manual: Path, browser: webdriver.Chrome) -> None:
    shades = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        browser.get((manual / "index.html").as_uri())
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        shades.append(sum(int(part) for part in colour.strip("rgb()").split(",")))
    assert shades[0] > 600 and shades[1] < 200
