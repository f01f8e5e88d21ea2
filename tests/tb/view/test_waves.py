"""The waveform: what is recomputed from its signals equals what the hardware's counters say, and what is shown exists.

The engine alone is recorded by both simulators. A core that records takes Verilator minutes to build, so that is slow.
"""

import os
import re
from pathlib import Path

import pytest
from vcdvcd import VCDVCD

from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import format_named
from neuroncore_rtl.spec.isa import Cause, queue_count, queue_name
from neuroncore_rtl.tb.benches.matmul import BENCH, ideal_cycles
from neuroncore_rtl.tb.cli.registry import bench_named
from neuroncore_rtl.tb.sim.doctor import MissingTool
from neuroncore_rtl.tb.sim.settings import UsageError
from neuroncore_rtl.tb.sim.simulation import SIMULATORS
from neuroncore_rtl.tb.view import waves as waves_module
from neuroncore_rtl.tb.view.core_waves import OPEN, core_groups
from neuroncore_rtl.tb.view.engine_waves import TENSOR_GROUPS
from neuroncore_rtl.tb.view.waves import latest, open_waves, signals, write_save_file

SIZES = {"M": 7, "K": 9, "N": 11}


class Waveform:
    """A recorded run, sampled at every rising edge of the clock: the values that the registers saw."""

    def __init__(self, vcd: Path, top: str = "tensor"):
        self.top = top
        self.names = signals(vcd)
        self.recorded = VCDVCD(str(vcd))
        self.edges = [time for time, value in self["clk"].tv if value == "1"]

    def __getitem__(self, name: str):
        shown = re.sub(r"\[(\d+)\]$", r"[\1:\1]", self.names[f"{self.top}.{name}"])
        try:
            return self.recorded[shown]
        except KeyError:  # GTKWave escapes names that this simulator does not
            return self.recorded[shown.replace("\\", "")]

    def high(self, name: str) -> list[bool]:
        """Return for every clock edge whether a one-bit signal was 1 just before it."""
        changes, value, values = iter([*self[name].tv, (float("inf"), "x")]), "x", []
        time, following = next(changes)
        for edge in self.edges:
            while time < edge:
                value = following
                time, following = next(changes)
            values.append(value == "1")
        return values

    def last(self, name: str) -> int:
        return int(self[name].tv[-1][1], 2)

    def largest(self, name: str) -> int:
        return max(int(value, 2) for _, value in self[name].tv if "x" not in value)


@pytest.fixture(scope="module", params=SIMULATORS)
def recorded(request, tmp_path_factory):
    """A report with its waveform, recorded where these tests alone write."""
    directory = tmp_path_factory.mktemp("waves")
    assignments = ["TARGET=engine", "PRESET=tiny", "WAVES=1", "STALL=64", f"SIM={request.param}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neuroncore_rtl.tb.benches.matmul.waveform", lambda test: directory / f"{test}.vcd")
        report = BENCH.run(BENCH.settings([*assignments, *(f"{name}={size}" for name, size in SIZES.items())]))
    assert report.bit_exact
    return report, directory / "matmul.vcd"


def test_signals_agree_with_counters(recorded):
    report, vcd = recorded
    counters = report.extra["counters"]
    wave = Waveform(vcd)
    valid = wave.high("engine.mover.column_valid")
    assert sum(valid) == counters["columns"] > 0
    assert sum(wave.high("engine.loader.step_valid")) == counters["loads"] > 0
    assert sum(wave.high("engine.busy")) == counters["busy"]
    for cause in ("weights", "operand", "psum"):
        assert sum(wave.high(f"engine.mover.wait_{cause}")) == counters[f"wait_{cause}"]
    assert counters["wait_operand"] > 0, "without a stall this compares nothing"

    # The clock of the result starts with the first instruction offered and stops with the last PSUM word written.
    offered, busy = wave.high("valid"), wave.high("engine_busy")
    first, last = offered.index(True), len(busy) - 1 - busy[::-1].index(True)
    cycles = last - first + 1
    assert cycles == report.cycles == counters["cycles"]
    config = preset_named("tiny")
    ideal = ideal_cycles(SIZES["M"], SIZES["K"], SIZES["N"], format_named("bf16"), config)
    assert ideal / cycles == report.utilisation
    assert wave.last("engine.counters.macs") == counters["macs"] == SIZES["M"] * SIZES["K"] * SIZES["N"]


def test_save_file_names_signals_of_the_waveform(recorded):
    report, vcd = recorded
    save = vcd.with_suffix(".gtkw")
    assert report.extra["waveform"] == str(save)
    text = save.read_text()
    shown = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("+{")]
    assert len(shown) == 2 + sum(len(traces) for traces in TENSOR_GROUPS.values())
    recorded_names = {name.replace("\\", "") for name in VCDVCD(str(vcd), only_sigs=True).signals}
    assert {name.replace("\\", "") for name in shown} <= recorded_names
    for group in TENSOR_GROUPS:
        assert f"-{group}\n" in text


def words(vcd: Path) -> dict[str, list[str]]:
    """Return the words of each enumeration that a save file refers to, by its name in hdl/."""
    lines = vcd.with_suffix(".gtkw").read_text().splitlines()
    paths = {Path(line.split()[1]) for line in lines if line.startswith("^")}
    assert {path.parent for path in paths} == {vcd.parent}
    return {path.name.removesuffix(".words"): path.read_text().split() for path in paths}


def test_enumerations_are_words(recorded):
    _, vcd = recorded
    found = words(vcd)
    assert set(found) == {"tensor.instruction.Opcode", "arith.formats.FormatCode", "view.wave_groups.Cause"}
    assert found["tensor.instruction.Opcode"] == ["0", "NONE", "1", "LOAD_STATIONARY", "2", "MULTIPLY_MOVING"]
    assert {"BF16", "INT8"} < set(found["arith.formats.FormatCode"])


def test_processing_elements_are_recorded_only_on_request(recorded):
    _, vcd = recorded
    assert not [name for name in signals(vcd) if ".tile_" in name]


@pytest.fixture(scope="module", params=["icarus", pytest.param("verilator", marks=pytest.mark.slow)])
def recorded_core(request, tmp_path_factory):
    """A report of a product on the core with its waveform."""
    directory = tmp_path_factory.mktemp("core_waves")
    assignments = ["PRESET=tiny", "WAVES=1", f"SIM={request.param}", "M=4", "K=8", "N=4"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neuroncore_rtl.tb.benches.execution.waveform", lambda test: directory / "core.vcd")
        report = BENCH.run(BENCH.settings(assignments))
    assert report.exit_status == 0
    return report, directory / "core.vcd"


def test_save_file_of_the_core_names_signals_of_the_waveform(recorded_core):
    report, vcd = recorded_core
    assert report.extra["waveform"] == str(vcd.with_suffix(".gtkw"))
    known = signals(vcd)
    groups = core_groups(known)
    assert {f"machine.{trace.signal}" for traces in groups.values() for trace in traces} <= set(known)
    assert set(OPEN) < set(groups)
    queues = [queue_name(queue, preset_named("tiny")) for queue in range(queue_count(preset_named("tiny")))]
    assert {f"queue {name}" for name in queues} | {"dma0", "dma1", "vector: steps"} <= set(groups)

    lines = vcd.with_suffix(".gtkw").read_text().splitlines()
    shown = [line.rpartition(" ")[2] for line in lines if line.startswith("+{")]
    assert len(shown) == 2 + sum(map(len, groups.values()))
    assert set(shown) <= set(known.values())
    found = words(vcd)
    assert {"tensor.instruction.Opcode", "elementwise.instruction.Opcode", "queue.semaphores.UpdateOp"} < set(found)
    assert found["isa.access.Storage"] == ["0", "SBUF", "1", "PSUM", "2", "HBM"]
    assert found["view.wave_groups.Cause"][-2:] == [f"{max(Cause):x}", max(Cause).name]


def test_signals_of_the_core_agree_with_counters(recorded_core):
    report, vcd = recorded_core
    wave = Waveform(vcd, "machine")
    waited = 0
    for queue in range(queue_count(preset_named("tiny"))):
        at = f"core.queue{queue}"
        assert sum(wave.high(f"{at}.issued")) == wave.largest(f"{at}.counters.records")
        assert sum(wave.high(f"{at}.waiting")) == wave.largest(f"{at}.counters.wait_semaphore")
        waited += wave.largest(f"{at}.counters.wait_semaphore")
    assert waited > 0, "without a wait this compares nothing"
    assert sum(wave.high("core.tensor.column_valid")) == wave.largest("core.tensor.counters.columns") > 0
    assert sum(wave.high("core.dma0.busy")) == wave.largest("core.dma0.counters.busy") > 0
    start, over = (wave.high(name).index(True) for name in ("start", "over"))
    assert over - start - 1 == report.cycles


def test_what_was_not_recorded_is_left_out(tmp_path):
    vcd = tmp_path / "shallow.vcd"
    names = ("clk", "rst", "cycle", "over")
    variables = "".join(f"$var wire 1 {code} {name} $end\n" for code, name in zip("abcd", names, strict=True))
    vcd.write_text(f"$scope module machine $end\n{variables}$upscope $end\n$enddefinitions $end\n#0\n0a\n#9\n1a\n")
    lines = write_save_file(vcd).read_text().splitlines()
    assert [line for line in lines if line.startswith("+{")] == [
        "+{clk} machine.clk",
        "+{rst} machine.rst",
        "+{cycle} machine.cycle",
        "+{program has ended} machine.over",
    ]
    assert [line for line in lines if line.startswith("-")] == ["-run", "-run"]


def test_names_are_those_of_gtkwave(tmp_path):
    vcd = tmp_path / "names.vcd"
    variables = ("wide [7:0]", "narrow [0:0]", "bit", "part.field [3:0]", "list[2] [3:0]")
    lines = "".join(f"$var wire 1 {code} {name} $end\n" for code, name in zip("abcde", variables, strict=True))
    vcd.write_text(f"$scope module top $end\n{lines}$upscope $end\n$enddefinitions $end\n")
    assert signals(vcd) == {
        "top.wide": "top.wide[7:0]",
        "top.narrow": "top.narrow[0]",
        "top.bit": "top.bit",
        "top.part.field": "top.\\part.field[3:0]",
        "top.list[2]": "top.list[2][3:0]",
    }


def test_latest_waveform_is_of_the_core_or_of_the_engine(tmp_path):
    assert latest("matmul", tmp_path) is None
    (tmp_path / "waves").mkdir()
    for age, name in enumerate(("core-matmul-small.vcd", "matmul.vcd", "core-matmul-tiny.vcd", "core-digits-tiny.vcd")):
        path = tmp_path / "waves" / name
        path.touch()
        os.utime(path, (age, age))
    assert latest("matmul", tmp_path).name == "core-matmul-tiny.vcd"
    assert latest("digits", tmp_path).name == "core-digits-tiny.vcd"
    (tmp_path / "waves" / "core-matmul-tiny.vcd").unlink()
    assert latest("matmul", tmp_path).name == "matmul.vcd"


def test_test_without_waveforms_is_refused(tmp_path):
    with pytest.raises(UsageError, match="^TEST must be one with a variable WAVES, such as matmul, not 'mac'$"):
        open_waves(bench_named("mac"), tmp_path)


def test_missing_gtkwave_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="^gtkwave is missing .*apt install gtkwave$"):
        open_waves(bench_named("matmul"), tmp_path)


def test_missing_display_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(waves_module, "require", lambda name: None)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(MissingTool, match="^a display is missing"):
        open_waves(bench_named("matmul"), tmp_path)
