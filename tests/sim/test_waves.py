"""The waveform: cycles, columns and utilisation recomputed from its signals equal what the hardware's counters say."""

from pathlib import Path

import pytest
from vcdvcd import VCDVCD

from spec.config import preset_named
from spec.formats import format_named
from tb import waves as waves_module
from tb.bench import UsageError
from tb.doctor import MissingTool
from tb.matmul import BENCH, ideal_cycles
from tb.simulation import SIMULATORS
from tb.waves import GROUPS, open_waves, signals
from tests.conftest import require_icarus

SIZES = {"M": 7, "K": 9, "N": 11}


class Waveform:
    """A recorded run, sampled at every rising edge of the clock: the values that the registers saw."""

    def __init__(self, vcd: Path):
        self.names = signals(vcd)
        self.recorded = VCDVCD(str(vcd))
        self.edges = [time for time, value in self["clk"].tv if value == "1"]

    def __getitem__(self, name: str):
        shown = self.names[f"tensor.{name}"]
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


@pytest.fixture(scope="module", params=SIMULATORS)
def recorded(request, tmp_path_factory):
    """A report with its waveform, recorded where these tests alone write."""
    if request.param == "icarus":
        require_icarus()
    directory = tmp_path_factory.mktemp("waves")
    assignments = ["PRESET=tiny", "WAVES=1", "STALL=64", f"SIM={request.param}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tb.matmul.waveform", lambda test: directory / f"{test}.vcd")
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
    assert wave.last("macs") == counters["macs"] == SIZES["M"] * SIZES["K"] * SIZES["N"]


def test_save_file_names_signals_of_the_waveform(recorded):
    report, vcd = recorded
    save = vcd.with_suffix(".gtkw")
    assert report.extra["waveform"] == str(save)
    text = save.read_text()
    shown = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("+{")]
    assert len(shown) == 2 + sum(len(traces) for traces in GROUPS.values())
    recorded_names = {name.replace("\\", "") for name in VCDVCD(str(vcd), only_sigs=True).signals}
    assert {name.replace("\\", "") for name in shown} <= recorded_names
    for group in GROUPS:
        assert f"-{group}\n" in text


def test_enumerations_are_words(recorded):
    _, vcd = recorded
    filters = [line for line in vcd.with_suffix(".gtkw").read_text().splitlines() if line.startswith("^")]
    assert [line.split()[1] for line in filters] == [str(vcd.parent / f"{e}.words") for e in ("Opcode", "FormatCode")]
    opcodes = (vcd.parent / "Opcode.words").read_text().split()
    assert opcodes == ["0", "NONE", "1", "LOAD_STATIONARY", "2", "MULTIPLY_MOVING"]
    assert "2 BF16" in (vcd.parent / "FormatCode.words").read_text()


def test_processing_elements_are_recorded_only_on_request(recorded):
    _, vcd = recorded
    assert not [name for name in signals(vcd) if ".tile_" in name]


def test_test_without_waveforms_is_refused(tmp_path):
    with pytest.raises(UsageError, match="^TEST must be one with a variable WAVES, such as matmul, not 'mac'$"):
        open_waves("mac", tmp_path)


def test_missing_gtkwave_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="^gtkwave is missing .*apt install gtkwave$"):
        open_waves("matmul", tmp_path)


def test_missing_display_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(waves_module, "require", lambda name: None)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(MissingTool, match="^a display is missing"):
        open_waves("matmul", tmp_path)
