"""A headless Chromium for the tests, and the errors of its console."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuroncore_rtl.run.sim.doctor import MissingTool, require

__all__ = ["console_errors", "open_chromium"]

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --window-size=1300,1000""".split()
"""Options of Chromium: no screen, and no network requests except for the page's."""


@contextmanager
def open_chromium(profile: Path) -> Iterator:
    """Yield a browser with its files in `profile`; without Chromium the test is skipped, or fails if it is required."""
    try:
        require("chromium")
    except MissingTool as missing:
        if os.environ.get("REQUIRE_CHROMIUM"):
            raise
        pytest.skip(str(missing))
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    yield opened
    opened.quit()


def console_errors(browser) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
