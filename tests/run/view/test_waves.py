"""Waveforms: values recomputed from signals equal the hardware's counters.

Verilator takes minutes to build a recording core, so that test is slow.
"""

import os
import re
from pathlib import Path

import pytest
from vcdvcd import VCDVCD

from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.view.core_waves import CORE_OPEN, core_groups
from neuroncore_rtl.run.view.engine_waves import ARRAY, TENSOR_GROUPS
from neuroncore_rtl.run.view.wave_groups import CAUSE, Trace, traces
from neuroncore_rtl.run.view.wave_numbers import NUMBERS, WIDTHS
from neuroncore_rtl.run.view.waves import latest, signals, write_save_file
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.isa import Cause, queue_count, queue_name
from neuroncore_rtl.tb.tests.kernels.products import ideal_cycles
from tests.run.view.recordings import SaveFile, Waveform
from tests.tb.reports import passed

TINY = PRESETS["tiny"]

M, K, N = SIZES = 7, 9, 11


def product(directory: Path, sim: str, words: str):
    with recording_in(directory):
        report = passed("matmul", f"PRESET=tiny WAVES=1 SIM={sim} {words}")
    save = Path(report.rows["waveform"])
    return report, save.with_suffix(".vcd"), SaveFile(save)


@pytest.fixture(scope="module", params=["icarus", pytest.param("verilator", marks=pytest.mark.slow)])
def recorded(request, tmp_path_factory):
    return product(tmp_path_factory.mktemp("waves"), request.param, f"TARGET=engine STALL=64 M={M} K={K} N={N}")


def test_signals_agree_with_counters(recorded):
    report, vcd, _ = recorded
    counters = report.rows["counters"]
    wave = Waveform(vcd, "tensor")
    assert sum(wave.high("engine.mover.column_valid")) == counters["columns"] > 0
    assert sum(wave.high("engine.loader.step_valid")) == counters["loads"] > 0
    assert sum(wave.high("engine.busy")) == counters["busy"]
    for cause in ("weights", "operand", "psum"):
        assert sum(wave.high(f"engine.mover.wait_{cause}")) == counters[f"wait_{cause}"]
    assert counters["wait_operand"] > 0, "without a stall this compares nothing"

    # The result's cycles count from the first instruction offered to the last PSUM word written.
    offered, busy = wave.high("valid"), wave.high("engine_busy")
    cycles = len(busy) - busy[::-1].index(True) - offered.index(True)
    assert cycles == report.cycles == counters["cycles"]
    assert ideal_cycles(*SIZES, BF16, TINY) / cycles == report.utilisation
    assert wave.last("engine.counters.macs") == counters["macs"] == M * K * N


def test_save_file_names_signals_of_the_waveform_and_words_of_enumerations(recorded):
    report, vcd, save = recorded
    array = [ARRAY] * (report.settings["SIM"] == "verilator")  # Icarus records no tiles
    tiles = 3 * TINY.rows * len(array)
    assert len(save.shown) == 2 + tiles + sum(map(len, TENSOR_GROUPS.values()))
    recorded_names = {name.replace("\\", "") for name in VCDVCD(str(vcd), only_sigs=True).signals}
    assert {name.replace("\\", "") for name in save.shown} <= recorded_names
    assert any(".tile_" in name for name in recorded_names) == bool(array)
    assert save.groups == [*array, *TENSOR_GROUPS]
    numbers = {f"{vcd.stem}.{form}" for form in ("operand", "fp32") if array}
    enumerations = {"tensor.instruction.Opcode", "arith.formats.FormatCode", "view.wave_groups.Cause"}
    assert set(save.words) == enumerations | numbers
    assert save.words["tensor.instruction.Opcode"] == ["0", "NONE", "1", "LOAD_STATIONARY", "2", "MULTIPLY_MOVING"]
    assert {"BF16", "INT8"} < set(save.words["arith.formats.FormatCode"])


@pytest.fixture(scope="module", params=["icarus", pytest.param("verilator", marks=pytest.mark.slow)])
def recorded_core(request, tmp_path_factory):
    return product(tmp_path_factory.mktemp("core_waves"), request.param, "M=4 K=8 N=4 LATENCY=8")


def test_save_file_of_the_core_names_signals_of_the_waveform(recorded_core):
    _, vcd, save = recorded_core
    known = signals(vcd)
    groups = core_groups(known)
    assert {f"machine.{trace.signal}" for lines in groups.values() for trace in lines} <= set(known)
    assert set(CORE_OPEN) < set(groups)
    queues = {f"queue {queue_name(queue, TINY)}" for queue in range(queue_count(TINY))}
    assert queues | {"dma0", "dma1", "vector: steps"} <= set(groups)

    assert len(save.shown) == 2 + sum(map(len, groups.values()))
    assert set(save.shown) <= set(known.values())
    assert {"tensor.instruction.Opcode", "elementwise.instruction.Opcode", "queue.semaphores.UpdateOp"} < set(
        save.words
    )
    assert save.words["isa.access.Storage"] == ["0", "SBUF", "1", "PSUM", "2", "HBM"]
    assert save.words["view.wave_groups.Cause"][-2:] == [f"{max(Cause):x}", max(Cause).name]


def test_signals_of_the_core_agree_with_counters(recorded_core):
    report, vcd, _ = recorded_core
    wave = Waveform(vcd, "machine")
    counted = [("core.tensor.column_valid", "core.tensor.counters.columns")]
    counted += [("core.dma0.busy", "core.dma0.counters.busy")]
    waits = [f"core.queue{queue}.counters.wait_semaphore" for queue in range(queue_count(TINY))]
    for queue, wait in enumerate(waits):
        counted += [(f"core.queue{queue}.issued", f"core.queue{queue}.counters.records")]
        counted += [(f"core.queue{queue}.waiting", wait)]
    largest = {counter: max(wave.values(counter)) for _, counter in counted}
    assert {counter: sum(wave.high(signal)) for signal, counter in counted} == largest
    assert sum(largest[wait] for wait in waits) > 0, "without a wait this compares nothing"
    assert largest["core.tensor.counters.columns"] > 0 and largest["core.dma0.counters.busy"] > 0
    start, over = (wave.high(name).index(True) for name in ("start", "over"))
    assert over - start - 1 == report.cycles


def test_tables_of_lines():
    assert traces("error.cause Cause | read handshake AR\n  a__b_c dec", "core") == [
        Trace("core.error.cause", "cause", CAUSE),
        Trace("core.readvalid", "AR valid", "bin"),
        Trace("core.readready", "AR ready", "bin"),
        Trace("core.a__b_c", "b c", "dec"),
    ]
    with pytest.raises(ValueError, match=r"the format of core\.op must be one of hex, .*, Cause, .*, not 'Opcod'"):
        traces("op Opcod", "core")


def write_waveform(path: Path, scope: str, variables: dict[str, str], behind: str = "") -> Path:
    lines = "".join(f"$var wire 1 {code} {name} $end\n" for name, code in variables.items())
    path.write_text(f"$scope module {scope} $end\n{lines}$upscope $end\n$enddefinitions $end\n{behind}")
    return path


def test_what_was_not_recorded_is_left_out(tmp_path):
    variables = {"clk": "a", "rst": "b", "cycle": "c", "over": "d"}
    save = write_save_file(write_waveform(tmp_path / "shallow.vcd", "machine", variables, "#0\n0a\n#9\n1a\n"))
    names = {"clk": "clk", "rst": "rst", "cycle": "cycle", "program has ended": "over"}
    shown = [line for line in save.read_text().splitlines() if line.startswith("+{")]
    assert shown == [f"+{{{name}}} machine.{signal}" for name, signal in names.items()]
    assert SaveFile(save).groups == ["run"]


def test_names_are_those_of_gtkwave(tmp_path):
    variables = {"wide [7:0]": "a", "narrow [0:0]": "b", "bit": "c", "part.field [3:0]": "d", "list[2] [3:0]": "e"}
    assert signals(write_waveform(tmp_path / "names.vcd", "top", variables)) == {
        "top.wide": "top.wide[7:0]",
        "top.narrow": "top.narrow[0]",
        "top.bit": "top.bit",
        "top.part.field": "top.\\part.field[3:0]",
        "top.list[2]": "top.list[2][3:0]",
    }


def test_latest_waveform_is_of_the_core_or_of_the_engine(tmp_path):
    assert latest("matmul", tmp_path) is None
    (tmp_path / "waves").mkdir()
    for age, name in enumerate(("matmul-k8-waves1.vcd", "matmul.vcd", "matmul-m8-waves1.vcd", "digits-waves1-0.vcd")):
        path = tmp_path / "waves" / name
        path.touch()
        os.utime(path, (age, age))
    assert latest("matmul", tmp_path).name == "matmul-m8-waves1.vcd"
    assert latest("digits", tmp_path).name == "digits-waves1-0.vcd"
    (tmp_path / "waves" / "matmul-m8-waves1.vcd").unlink()
    assert latest("matmul", tmp_path).name == "matmul.vcd"


def test_the_array_shows_its_diagonal_in_decimal(tmp_path):
    """At full depth each row has its operands one cycle after the row above."""
    _, vcd, save = product(tmp_path, "icarus", "TARGET=engine DEPTH=0 M=4 K=4 N=6")
    rows = range(TINY.rows)
    wanted = [f"row {row}: {what}" for what in ("moving", "weight", "sum") for row in rows]
    assert "systolic array" in save.groups
    shown = re.findall(r"^\+\{(row \d+: (?:moving|weight|sum))\}", vcd.with_suffix(".gtkw").read_text(), re.MULTILINE)
    assert shown == wanted
    wave = Waveform(vcd, "tensor")
    tile = "engine.datapath.array.block_0_0.tile_{}_0.{}".format
    began = []
    for row in rows:
        changes = ((time, int(word, 2)) for time, word in wave[tile(row, "moving_out")].tv if set(word) <= set("01"))
        began.append(next(time for time, word in changes if word and NUMBERS["operand"](word) != "absent"))
    cycle = wave.edges[1] - wave.edges[0]
    assert [time - began[0] for time in began] == [row * cycle for row in rows]
    for form, signal in (("operand", "active0"), ("fp32", "out__0")):
        told = dict(line.split(maxsplit=1) for line in vcd.with_suffix(f".{form}.words").read_text().splitlines())
        for _, word in wave[tile(0, signal)].tv:
            if set(word) <= set("01"):
                assert told[f"{int(word, 2):0{-(-WIDTHS[form] // 4)}x}"] == NUMBERS[form](int(word, 2))


def test_words_as_numbers():
    operand = NUMBERS["operand"]
    one, half = 512 << 12 | 1 << 11, 511 << 12 | 1 << 11
    assert [operand(one), operand(half | 1 << 22), operand(0)] == ["1", "-0.5", "0"]
    assert [operand(1 << 23), operand(1 << 24), operand(3 << 23)] == ["inf", "nan", "absent"]
    assert [NUMBERS["fp32"](word) for word in (0x3FC00000, 0xC0000000, 0x7FC00000)] == ["1.5", "-2", "nan"]
