"""Pages of `make sim`: they hold the record, OPEN=1 opens them, and a small product moves."""

import json
import webbrowser
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from neuroncore_rtl.__main__ import app
from neuroncore_rtl.run.report import Report, recording_in
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.tb.cli import page as pages
from neuroncore_rtl.tb.cli.array_picture import A, B
from neuroncore_rtl.tb.cli.matrices import encode_matrix
from neuroncore_rtl.tb.cli.page import array_motion, open_page, opened, split_open
from neuroncore_rtl.tb.cli.registry import command_named
from tests.run.page.pages import data_of

PRODUCT = Report(product=(encode_matrix(A, BF16), encode_matrix(B, BF16), BF16, PRESETS["tiny"]))


@pytest.fixture
def simulate(monkeypatch, tmp_path):
    monkeypatch.setattr(Report.write, "__defaults__", (tmp_path,))
    with recording_in(tmp_path):
        yield lambda *words: CliRunner().invoke(app, ("sim", *words))


def test_page_has_the_record_and_the_command(simulate, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    finished = simulate("encoder", "TARGET=model", "SEQ=16", "OPEN=1")
    assert finished.exit_code == 0, finished.output
    page, record = tmp_path / "reports" / "encoder-seq16-targetmodel.html", tmp_path / "encoder-seq16-targetmodel.json"
    *_, report_line, record_line, opened_line = finished.stdout.splitlines()
    assert (report_line, record_line) == (f"report: {page}", f"record: {record}")
    assert opened_line == f"no web browser here; open {page} in one"
    data = data_of(page)
    assert data["record"] == json.loads(record.read_text())
    assert data["command"] == "make sim TEST=encoder SEQ=16 TARGET=model"
    assert data["files"] == {"record": "../encoder-seq16-targetmodel.json"} and data["motion"] == ""
    assert [part["name"] for part in data["parts"]] == ["encoder-seq16-targetmodel"]


def test_open_is_a_variable_of_the_command_line_only():
    bench = opened(command_named)("mac")
    settings, opens = split_open(bench.settings(["COUNT=7", "OPEN=1"]))
    assert opens and "OPEN" not in settings.values and settings.label == "count7"
    assert not split_open(bench.settings([]))[1]
    assert "OPEN" not in command_named("mac").settings([]).values
    assert "OPEN=" in CliRunner().invoke(app, ("help", "mac")).stdout


def test_open_page_calls_the_browser(monkeypatch, capsys):
    calls = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda address: calls.append(address) or len(calls) == 1)
    open_page(Path("/tmp/a.html"))
    assert calls == ["file:///tmp/a.html"] and capsys.readouterr().out == ""
    open_page(Path("/tmp/a.html"))
    assert capsys.readouterr().out == "no web browser here; open /tmp/a.html in one\n"


def test_small_product_is_drawn_once(monkeypatch, tmp_path):
    with recording_in(tmp_path):
        drawn = array_motion(PRODUCT)
        assert drawn.startswith("<svg") and 'id="cycle7"' in drawn
        monkeypatch.setattr(pages, "draw_motion", None)
        assert array_motion(PRODUCT) == drawn
        with pytest.raises(TypeError):
            array_motion(replace(PRODUCT, product=(*PRODUCT.product[:2], BF16, PRESETS["nano"])))
        a, b, *_ = PRODUCT.product
        assert array_motion(replace(PRODUCT, product=(a, b, BF16, PRESETS["small"]))) == ""
        assert array_motion(Report()) == ""
