"""Records of running processes: one line a period in neuron-monitor's format, which end with the activity."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from neuroncore_rtl.run import monitor
from neuroncore_rtl.run.monitor import Ongoing, live_records, watched
from tests.house.tree import ROOT

WORK = """
import time
from neuroncore_rtl.run import monitor
from neuroncore_rtl.run.report import progress
monitor.PERIOD = 0.05
with progress("training", done=lambda: 0.25):
    time.sleep(600)
"""


class Machine:
    cycles, cycles_per_second, host_bytes, core_bytes = 1000, 250.0, 1 << 40, {0: 4096, 1: 8192}
    looks = 0

    def look(self):
        self.looks += 1

    def utilisation(self):
        return {0: (0.75, {"tensor": 0.5, "dma0": 0.125}), 1: (0.0, {"tensor": 0.0, "dma0": 0.0})}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(monitor, "FOLDER", tmp_path / "monitor")
    monkeypatch.setattr(monitor, "PERIOD", 0.01)
    return tmp_path / "monitor"


def wait_for(found):
    end = time.monotonic() + 60
    while not (result := found()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return result


def lines(folder):
    return [json.loads(line) for path in folder.glob("*") for line in path.read_text().splitlines()]


def test_a_report_has_the_format_of_neuron_monitor(folder):
    machine = Machine()
    with watched(Ongoing("sweep", runs=lambda: (7, 2))), watched(Ongoing("a run", done=lambda: 0.3, machine=machine)):
        wait_for(lambda: machine.looks > 2 and live_records())
        (record,) = live_records()
    (process,) = record["neuron_runtime_data"]
    assert (
        process["pid"] == os.getpid()
        and process["error"] == ""
        and os.path.basename(sys.argv[0]) in process["neuron_runtime_tag"]
    )
    report = process["report"]
    assert all(group["period"] > 0 and group["error"] == "" for group in report.values())
    assert report["neuroncore_counters"]["neuroncores_in_use"] == {
        "0": {"neuroncore_utilization": 75.0, "engines": {"tensor": 50.0, "dma0": 12.5}},
        "1": {"neuroncore_utilization": 0.0, "engines": {"tensor": 0.0, "dma0": 0.0}},
    }
    memory = report["memory_used"]["neuron_runtime_used_bytes"]
    assert 1 << 20 < memory["host"] - (1 << 40) < 1 << 36 and memory["neuron_device"] == 4096 + 8192
    of_cores = memory["usage_breakdown"]["neuroncore_memory_usage"]
    assert {core: sum(parts.values()) for core, parts in of_cores.items()} == {"0": 4096, "1": 8192}
    assert report["execution_stats"]["execution_summary"] == {"completed": 7, "completed_with_err": 2}
    told = report["progress"]
    assert (told["activities"], told["part"]) == (["sweep", "a run"], 0.3)
    assert (told["cycles"], told["cycles_per_second"]) == (1000, 250.0)
    assert not lines(folder) and threading.active_count() == 1


def test_there_is_a_line_a_period_and_a_file_has_a_most_size(folder, monkeypatch):
    with watched(Ongoing("work")):
        wait_for(lambda: len(lines(folder)) > 3)
        monkeypatch.setattr(monitor, "MOST_BYTES", 1)
        wait_for(lambda: len(lines(folder)) == 1)


def test_a_short_activity_writes_nothing(folder, monkeypatch):
    monkeypatch.setattr(monitor, "PERIOD", 60)
    with watched(Ongoing("short")):
        pass
    assert not folder.exists()


def test_a_period_that_ends_as_the_last_activity_does_writes_nothing(folder):
    writer = monitor._Writer()
    writer._thread.join(60)
    writer.end()
    assert not folder.exists()


def test_a_full_disk_ends_no_run(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(monitor, "FOLDER", tmp_path / "file" / "monitor")
    machine = Machine()
    with watched(Ongoing("work", machine=machine)):
        wait_for(lambda: machine.looks > 3)


def test_the_record_of_a_dead_process_is_not_live(tmp_path):
    environment = os.environ | {"NEURONCORE_RTL_FILES": str(tmp_path), "PYTHONPATH": str(ROOT)}
    work = subprocess.Popen([sys.executable, "-c", WORK], env=environment, stderr=subprocess.DEVNULL)
    monitor.FOLDER = tmp_path / "sim_build" / "monitor"
    try:
        (record,) = wait_for(live_records)
    finally:
        work.kill()
        work.wait()
    assert record["neuron_runtime_data"][0]["pid"] == work.pid
    assert record["neuron_runtime_data"][0]["report"]["progress"]["activities"] == ["training"]
    file = monitor.FOLDER / f"{work.pid}.jsonl"
    assert file.exists() and live_records() == []
    with watched(Ongoing("the next")):
        wait_for(live_records)
        assert not file.exists()
