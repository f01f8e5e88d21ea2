"""`make top`: the page, one snapshot without a terminal, and a clean end."""

import os
import pty
import signal
import subprocess
import sys
import termios
import time

import pytest
from click.testing import CliRunner

from neuroncore_rtl.__main__ import app
from neuroncore_rtl.run import monitor
from neuroncore_rtl.run.monitor import Ongoing, watched
from tests.house.tree import ROOT
from tests.run.test_monitor import Machine, wait_for


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(monitor, "FOLDER", tmp_path / "monitor")
    monkeypatch.setattr(monitor, "PERIOD", 0.01)


def test_a_snapshot_shows_all_parts(folder):
    activity = Ongoing("encoder [8]", estimate=3700, done=lambda: 0.5, machine=Machine())
    with watched(Ongoing("sweep", runs=lambda: (1234, 5))), watched(activity):
        wait_for(monitor.live_records)
        shown = CliRunner().invoke(app, ["top", "ONCE=1"])
    assert shown.exit_code == 0, shown.output
    process, *rows, titles, core, second, _ = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert process.startswith(f"process {os.getpid()}: ")
    assert rows[0] == "activity sweep, encoder [8]"
    assert rows[1] == "time 0:00 of about 1:01:40"
    assert rows[2].startswith("done ━━━━━━━━") and rows[2].endswith(" 50.0%")
    assert rows[3:5] == ["runs 1,234 passed, 5 not", "cycles 1,000, 250 a second"]
    assert rows[5].startswith("memory 102") and rows[5].endswith(" GiB of this computer, 0.0 MiB of HBM")
    assert titles == "core any engine tensor dma"
    assert core.startswith("0 ━") and core.endswith(" 75.0% 50 % 12 %") and second.endswith(" 0.0% 0 % 0 %")


def test_what_is_not_known_is_not_shown(folder):
    with watched(Ongoing("float64")):
        wait_for(monitor.live_records)
        shown = CliRunner().invoke(app, ["top"])
    assert [line.split()[0] for line in shown.stdout.splitlines() if line.strip()] == [
        "process", "activity", "time", "memory",
    ]  # fmt: skip


def test_nothing_runs(folder):
    shown = CliRunner().invoke(app, ["top"])
    assert (shown.exit_code, shown.stdout.split(":")[0]) == (0, "nothing runs")


def read_until(file, text, shown=b""):
    end = time.monotonic() + 60
    while text not in shown:
        assert time.monotonic() < end, shown
        shown += os.read(file, 4096)
    return shown


@pytest.mark.parametrize("end", ["q", "ctrl-c"])
def test_the_page_ends_with_status_0_and_restores_the_terminal(end, tmp_path):
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    files = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    environment = os.environ | {"NEURONCORE_RTL_FILES": str(tmp_path), "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    words = [sys.executable, "-m", "neuroncore_rtl", "top"]
    top = subprocess.Popen(words, cwd=ROOT, env=environment, **files)
    try:
        shown = read_until(ours, b"nothing runs")
        assert termios.tcgetattr(theirs) != before
        if end == "q":
            os.write(ours, b"xq")
        else:
            top.send_signal(signal.SIGINT)
        assert b"Traceback" not in read_until(ours, b"\x1b[?1049l", shown)  # leaves the alternate screen
        assert top.wait(60) == 0 and termios.tcgetattr(theirs) == before
    finally:
        top.kill()
        top.wait()
        os.close(ours)
        os.close(theirs)
