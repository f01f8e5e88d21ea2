"""Figures in documents: values of records, and output of commands."""

import json
import subprocess

import pytest

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.cli import figures
from neuroncore_rtl.tb.cli.registry import COMMANDS

PAGE = """# Page

<!-- output: make sim TEST=mac SEED=2 -->
old
<!-- /output -->
It took <!-- figure: mac-1 cycles -->1<!-- /figure --> cycles, <!-- figure: mac-1 rows.1.share .1% -->2<!-- /figure -->,
<!-- figure: gone cycles -->3<!-- /figure -->.
"""

RECORD = {"cycles": 12345, "rows": [{}, {"share": 0.985}], "text": "9 a second"}

[COMMAND] = [command for command in COMMANDS if command.name == "figures"]


@pytest.fixture
def page(monkeypatch, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    (tmp_path / "mac-1.json").write_text(json.dumps(RECORD))
    monkeypatch.setattr(figures, "documents", lambda: [path])
    monkeypatch.setattr(figures.fill_figures, "__defaults__", (tmp_path,))
    return path


@pytest.fixture
def commands(monkeypatch):
    lines = []

    def run(command, **options):
        lines.append(command[3:])
        return subprocess.CompletedProcess(command, int("SEED=9" in command), stdout="new   \nline\n")

    monkeypatch.setattr(figures.subprocess, "run", run)
    return lines


def test_marks_are_found():
    assert figures.blocks(PAGE) == [figures.Block(("sim", "TEST=mac", "SEED=2"), "old\n")]
    assert [figure.key for figure in figures.figures(PAGE)] == ["cycles", "rows.1.share", "cycles"]


def test_commands_are_run_and_figures_read(page, commands):
    assert figures.check_figures(COMMAND.settings()) == 0
    assert commands == [["sim", "mac", "SEED=2"]]
    text = page.read_text()
    assert figures.blocks(text)[0].text == "```\n$ make sim TEST=mac SEED=2\nnew\nline\n```\n"
    assert [figure.text for figure in figures.figures(text)] == ["12,345", "98.5%", "3"]
    assert figures.check_figures(COMMAND.settings()) == 0
    assert page.read_text() == text


def test_nothing_is_run_that_was_not_asked_for(page, commands):
    assert figures.check_figures(COMMAND.settings(["RUN=0"])) == 0
    assert commands == []
    assert "old" in page.read_text() and "12,345" in page.read_text()


def test_a_part_of_no_command_is_refused(page, commands):
    with pytest.raises(UsageError, match="ONLY must be a part of a command in the documents, not 'allreduce'"):
        figures.check_figures(COMMAND.settings(["ONLY=allreduce"]))
    assert commands == []


def test_a_command_that_fails_leaves_its_block(page, commands, capsys):
    page.write_text(PAGE.replace("SEED=2", "SEED=9"))
    assert figures.check_figures(COMMAND.settings()) == 1
    assert "old" in page.read_text()
    assert "make sim TEST=mac SEED=9 ended with status 1" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["gone", "rows.2", "rows.first", "cycles.more"])
def test_a_key_that_is_not_there_is_refused(key):
    with pytest.raises(UsageError, match=f"must be in its record, not '{key}'"):
        figures.value(RECORD, key)
