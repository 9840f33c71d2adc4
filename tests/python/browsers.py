"""Browsers for tests. None has a limit of time: on a busy machine a page is slow, not wrong."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

#: The longest that WebDriver takes as a limit, 2^31 ms.
_EVER_MS = 2**31 - 1


@contextmanager
def browser(*words: str) -> Iterator[webdriver.Chrome]:
    """Chromium with these options, driven by a test; it keeps what pages log."""
    driver = shutil.which("chromedriver")
    assert driver, "scripts/system-packages.sh test installs it"
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 *words):  # fmt: skip
        options.add_argument(word)
    options.timeouts = {"script": _EVER_MS, "pageLoad": _EVER_MS}
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as made:
        yield made


def until(
    driver: webdriver.Chrome,
    condition: Callable[[webdriver.Chrome], Any],
    passing: tuple[type[Exception], ...] = (),
) -> Any:
    """Waits for a condition; returns its value. `passing`: exceptions that a page raises while it
    changes."""
    return WebDriverWait(driver, math.inf, ignored_exceptions=passing).until(condition)


def dumped(page: Path, profile: Path, *words: str) -> tuple[str, str]:
    """A page's document after 20 s of the browser's own time, and what the browser said."""
    program = shutil.which("chromium")
    assert program, "scripts/system-packages.sh test installs it"
    command = [
        program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
        "--virtual-time-budget=20000", "--dump-dom", *words, page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr
