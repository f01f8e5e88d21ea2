"""`make waves` records the quick way; its first screen shows the array at work, with every value known."""

import re

import numpy as np
import pytest

from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.run.view.engine_waves import TENSOR_OPEN, tensor_groups
from neuroncore_rtl.run.view.wave_numbers import NUMBERS, sample_cycles
from neuroncore_rtl.run.view.waves import signals
from neuroncore_rtl.tb.cli import waves as module
from neuroncore_rtl.tb.cli.array_picture import A, B
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.cli.waves import _quick, open_waves, record_waves
from tests.run.view.recordings import SaveFile


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    with recording_in(tmp_path_factory.mktemp("waves")):
        return record_waves(command_named("matmul"), [])


def test_the_first_screen_shows_the_array(recorded):
    """Its group is the first one and open, the window begins with the product and ends after it."""
    save = SaveFile(recorded.with_suffix(".gtkw"))
    text = recorded.with_suffix(".gtkw").read_text()
    assert save.groups[0] == "systolic array"
    closed = re.findall(r"^@c00200\n-(.*)$", text, re.MULTILINE)
    assert set(closed) == set(save.groups) - set(TENSOR_OPEN) == {"stationary", "counters"}
    known = signals(recorded)
    lines = [trace for traces in tensor_groups(known).values() for trace in traces]
    assert save.shown[2:] == [known[f"tensor.{trace.signal}"] for trace in lines]
    assert re.search(r"^\[timestart\] 0$", text, re.MULTILINE)
    zoom = float(re.search(r"^\*(\S+) ", text, re.MULTILINE)[1])
    nanoseconds = 2**-zoom / 200 * 1190
    assert 2 * 15 <= nanoseconds <= 2 * 40


def test_no_value_of_the_waveform_is_unknown(recorded):
    changes = recorded.read_text().partition("$enddefinitions $end")[2].split("\n")
    values = {
        line[1:].split()[0] if line.startswith("b") else line[0] for line in changes if line and line[0] not in "#$"
    }
    assert len(values) > 100 and {digit for value in values for digit in value} == {"0", "1"}


def test_the_waveform_is_that_of_the_product(recorded):
    """Each row has the operands of B one cycle after the row above; row 3 sends the product's first row of A."""
    tiles = [f"tensor.engine.datapath.array.block_0_0.tile_{row}_0" for row in range(4)]
    names = [*(f"{tile}.moving_out" for tile in tiles), sums := f"{tiles[3]}.out__0"]
    values = sample_cycles(recorded, "tensor.clk", [*names, "tensor.cycles"])
    for row, tile in enumerate(tiles):
        words = values[f"{tile}.moving_out"][5 + row : 9 + row]
        assert [float(NUMBERS["operand"](word)) for word in words] == B[row].tolist()
    assert np.array(values[sums][8:12], np.uint32).view(np.float32).tolist() == (A @ B)[0].tolist()
    assert values["tensor.cycles"][-1] == 15


def test_quick_values_are_the_users_choice():
    matmul = command_named("matmul")
    quick = _quick(matmul, {"TARGET": "core", "M": "3"})
    assert {"PRESET=tiny", "K=8", "N=8", "WAVES=1"} <= set(quick) and not [one for one in quick if "TARGET" in one]
    assert "DEPTH=0" not in quick and "DEPTH=0" in _quick(matmul, {"STALL": "1"})
    assert [one for one in _quick(command_named("train"), {}) if not one.startswith("SIM=")] == [
        "WAVES=1",
        "PRESET=tiny",
    ]


def test_other_variables_run_the_test_in_a_simulator(monkeypatch):
    """A larger array, pauses and a core are recorded by the TEST's own run."""
    matmul, given = command_named("matmul"), []

    class Recorded(Exception):
        pass

    def settings(self, words=(), **values):
        given.append(list(words))
        raise Recorded

    monkeypatch.setattr(type(matmul), "settings", settings)
    for words in (["TARGET=core"], ["STALL=9"], ["SIM=verilator"]):
        with pytest.raises(Recorded):
            record_waves(matmul, words)
    assert [words[0] for words in given] == ["TARGET=core", "STALL=9", "SIM=verilator"]
    assert all("WAVES=1" in words and "PRESET=tiny" in words for words in given)
    assert "SIM=icarus" not in given[2]


def test_test_without_waveforms_is_refused():
    with pytest.raises(UsageError, match="^TEST must be one with a variable WAVES, such as matmul, not 'mac'$"):
        open_waves(command_named("mac"))


def test_missing_gtkwave_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="^gtkwave is missing .*apt install gtkwave$"):
        open_waves(command_named("matmul"))


def test_missing_display_is_said(monkeypatch):
    monkeypatch.setattr(module, "require", lambda name: None)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(MissingTool, match="^a display is missing .* make picture TEST=matmul draws"):
        open_waves(command_named("matmul"))
