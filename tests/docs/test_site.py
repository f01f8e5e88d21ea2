"""The documentation site: it builds with strict links, and a real browser loads pages without an error."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from neuroncore_rtl import ROOT
from tests.chromium import console_errors, open_chromium

pytest.importorskip("mkdocs", reason="the packages of the documentation site are missing: `make docs` installs them")


def build(folder: Path, root: Path = ROOT) -> subprocess.CompletedProcess:
    code = "import gc, mkdocs.__main__ as mkdocs; gc.disable(); mkdocs.cli()"  # an eighth of the time
    command = [sys.executable, "-c", code, "build", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "SIGNATURE_LENGTH": "10000"}  # no process of ruff
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    finished = build(folder)
    assert finished.returncode == 0, finished.stderr
    return folder


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("localhost", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


LOAD = """
    const [pages, done] = arguments, loaded = page => new Promise(resolve => {
        const frame = document.createElement("iframe")
        frame.style.display = "none" // layout takes half of the time
        frame.onload = () => resolve(frame)
        frame.src = page
        document.body.append(frame)
    })
    Promise.all(pages.map(loaded)).then(frames => {
        const images = frames.flatMap(frame => Array.from(frame.contentDocument.images))
        const broken = images.filter(image => !image.complete || !image.naturalWidth).map(image => image.src)
        document.body.replaceChildren()
        done([images.length, broken])
    })
"""
"""Loads pages in frames, in a third of the time that one page after another takes; returns images, and broken ones."""


def problems(browser, pages: list[str]) -> tuple[int, list[str]]:
    shown, broken = browser.execute_async_script(LOAD, pages)
    return shown, console_errors(browser) + broken


def test_pages_load_without_an_error_and_show_their_pictures(browser, address, site):
    pages = sorted(site.rglob("*.html"))
    plain = [page for page in pages if page.parent.name == "api"]
    assert len(pages) > 60 < len(plain)
    # Pages of the API have the same scripts and no pictures, so a tenth of them is enough.
    assert not [page for page in plain if "<img" in page.read_text()]
    pages = [f"/{page.relative_to(site)}" for page in pages if page not in plain or page in plain[::10]]
    (site / "frames.html").write_text("<html><head><link rel=icon href=data:,></head><body></body></html>")
    browser.get(f"{address}/frames.html")
    browser.set_script_timeout(300)
    batches = [pages[first : first + 20] for first in range(0, len(pages), 20)]
    found = {batch[0]: problems(browser, batch) for batch in batches}
    assert sum(shown for shown, _ in found.values()) > 20
    assert {first: said for first, (_, said) in found.items() if said} == {}


def test_a_script_that_fails_is_noticed(browser, address, site):
    (site / "broken.html").write_text("<html><script>missing()</script><img src='nothing.png'></html>")
    browser.get(f"{address}/index.html")
    shown, said = problems(browser, ["/broken.html"])
    assert shown == 1 and f"{address}/nothing.png" in said
    assert any("missing is not defined" in message for message in said)
    (site / "broken.html").unlink()


def test_search_finds_a_page(browser, address):
    from selenium.webdriver.support.wait import WebDriverWait

    browser.get(f"{address}/index.html")
    browser.find_element("css selector", ".md-search__input").click()
    browser.find_element("css selector", ".md-search__input").send_keys("PSUM")
    wait, item = WebDriverWait(browser, 60), ".md-search-result__item"
    results = wait.until(lambda page: page.find_elements("css selector", item))
    assert len(results) > 3 and "psum" in results[0].text.lower()


def test_every_user_has_a_door():
    navigation = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["nav"]
    doors = [value[0] for entry in navigation for value in entry.values() if str(value[0]).startswith("users/")]
    assert sorted(doors) == sorted(f"users/{path.name}" for path in (ROOT / "docs" / "users").glob("*.md"))
    assert len(doors) == 5


@pytest.mark.slow
def test_links_to_nothing_fail_the_build(tmp_path):
    copy = tmp_path / "tree"
    ignored = shutil.ignore_patterns(".git", ".venv", "sim_build", "__pycache__")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    page = copy / "docs" / "glossary.md"
    page.write_text(f"{page.read_text()}\n[a](nowhere.md) [b](index.md#no-heading) ![c](nowhere.png)\n")
    finished = build(tmp_path / "site", copy)
    assert finished.returncode
    found = set(re.findall(r"nowhere\.\w+|#no-heading", finished.stderr))
    assert found == {"nowhere.md", "nowhere.png", "#no-heading"}
