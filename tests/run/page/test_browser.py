"""Page of a run in a real browser: it draws without an error, in any width, and shows the wrong elements."""

import pytest

from neuroncore_rtl import run
from neuroncore_rtl.run.page.page import write_page
from neuroncore_rtl.run.page.parts import collect_parts
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.tb.cli.registry import command_named
from tests.chromium import console_errors, open_chromium
from tests.run.page.pages import INPUTS, data_of, product, wrong_page

LARGEST = 3 << 20
"""Bytes of the page of TEST=encoder."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def show(browser):
    """Open a page from the file system, and check that it has drawn its charts without an error."""

    def opened(page, charts: int):
        browser.get(page.as_uri())
        assert console_errors(browser) == []
        assert browser.execute_script("return document.documentElement.dataset.drawn") == str(charts)
        assert len(browser.find_elements("css selector", ".uplot canvas")) == charts
        loaded = browser.execute_script("return performance.getEntriesByType('resource').map(one => one.name)")
        assert [name for name in loaded if not name.startswith("data:")] == []
        return browser

    return opened


def pixels(browser) -> str:
    """Return the picture of the instructions."""
    return browser.execute_script("return document.querySelectorAll('.uplot canvas')[2].toDataURL()")


def test_encoder(show, tmp_path):
    bench = command_named("encoder")
    with recording_in(tmp_path), collect_parts() as parts:
        assert parts is not None
        page = write_page(bench.run(bench.settings(["TARGET=model"])), parts)
    assert 100_000 < page.stat().st_size <= LARGEST
    browser = show(page, 7)
    data = data_of(page)
    assert data["parts"][0]["cycles"] == data["record"]["cycles"] > 10_000
    assert browser.find_element("css selector", "h1").text == "encoder"
    assert f"{data['record']['cycles']:,}" in browser.find_element("css selector", ".cards").text
    width = "return document.documentElement.scrollWidth <= innerWidth"
    for size in (1280, 500):
        browser.set_window_size(size, 900)
        assert browser.execute_script(width), f"{size} pixels"
    browser.set_window_size(1300, 1000)


def test_timeline_zooms_and_tells_instructions(show, tmp_path):
    from selenium.webdriver import ActionChains

    with recording_in(tmp_path):
        result = run(product, INPUTS, on="model", preset="tiny")
    browser = show(result.report, 7)
    whole = pixels(browser)
    instructions = browser.find_elements("css selector", ".uplot")[2].find_element("css selector", ".u-over")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", instructions)
    detail = browser.find_element("css selector", ".detail")
    size, seen = instructions.size, set()
    for step in range(-9, 10):
        ActionChains(browser, duration=0).move_to_element_with_offset(
            instructions, int(size["width"] * step / 20), int(12 - size["height"] / 2)
        ).perform()
        seen.add(detail.text)
    (told,) = [text for text in seen if text.startswith("multiply_moving 4 x 4 x 20 · cycles")][:1]
    assert "pages.py:" in told and told.endswith("psum=sums moving=moving")
    browser.find_element("css selector", "button[title=enlarge]").click()
    assert pixels(browser) != whole
    browser.find_element("css selector", "button[title='all cycles']").click()
    assert pixels(browser) == whole
    assert console_errors(browser) == []


def test_run_without_cycles_and_a_wrong_one(show, tmp_path):
    with recording_in(tmp_path):
        golden = run(product, INPUTS, on="golden", preset="tiny")
        assert "no RTL has run" in show(golden.report, 0).find_element("css selector", "header").text
        browser = show(wrong_page(golden), 0)
    text = browser.find_element("css selector", "section.bad").text
    assert "5 of 1000 results differ from the golden model" in text and "c[rows 0:4, columns 4:8]" in text
    wrong = browser.find_elements("css selector", "td.wrong")
    expected = float((INPUTS["a"].T @ INPUTS["b"])[3, 6])
    assert [cell.text for cell in wrong] == ["0.0", f"{expected:.1f}"]
    assert browser.find_element("css selector", ".badge").text == "failed"
