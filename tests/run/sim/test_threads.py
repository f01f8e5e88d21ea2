"""Threads that step the blocks of lanes: the same results and cycles for any number, without data races."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.verilog.conversion import below
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.run import lanes
from neuroncore_rtl.run.lanes import lane_code, wrapper
from neuroncore_rtl.run.lanes.block_code import BlockCode
from neuroncore_rtl.run.lanes.extraction import netlists
from neuroncore_rtl.run.sim import clang, simulation
from neuroncore_rtl.run.sim.vectors import THREADS_VARIABLE, WrongChoice, paying_threads, threads_choice, threads_of
from neuroncore_rtl.run.sim.verilator import SIDE_BY_SIDE
from tests.tb.reports import passed

HERE, FOLDER = Path(__file__).parent, Path(lanes.__file__).parent
PLAIN = ("-O2", f"-I{FOLDER}", "-DWIDTH=4", "-pthread", "-nostdlib++", "-Wno-everything")
CHECKED = (*PLAIN, "-g", "-fsanitize=thread")
SLOW = pytest.mark.slow
RACE = 66  # exit status of a program in which ThreadSanitizer found a data race


def _compiled(flags: Sequence[str], sources: Sequence[Path], program: Path) -> Path:
    clang.compile_with("c++", flags, sources, program)
    return program


def _run(program: Path, number: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {THREADS_VARIABLE: str(number)}
    return subprocess.run([program, *map(str, arguments)], env=environment, capture_output=True, text=True)


class RingLane(wiring.Component):
    """Adds its number, its neighbour's value times a count that all lanes have, and its neighbour's old value."""

    def __init__(self):
        super().__init__(
            {"number": In(8), "given": In(32), "before": In(32), "old": In(32), "own": Out(32), "kept": Out(32)}
        )

    def elaborate(self, platform):
        m = Module()
        count, own = Signal(32), Signal(32)
        m.submodules.values = values = Memory(shape=32, depth=4, init=[])
        read, write = values.read_port(), values.write_port()
        m.d.sync += [count.eq(count + self.given), own.eq(own + self.before * count + self.number + self.old)]
        m.d.comb += [
            self.own.eq(own),
            self.kept.eq(read.data),
            read.en.eq(self.given[1]),
            read.addr.eq(count),
            write.en.eq(self.given[2]),
            write.addr.eq(count),
            write.data.eq(own),
        ]
        return m


class Ring(wiring.Component):
    LANES = 128

    def __init__(self):
        super().__init__({"given": In(32), "shown": Out(data.ArrayLayout(32, self.LANES))})

    def elaborate(self, platform):
        m = Module()
        ring = [shared(m, f"lane{n:03}", "ring_lane", RingLane, platform) for n in range(self.LANES)]
        for number, lane in enumerate(ring):
            before = ring[number - 1]
            m.d.comb += [lane.number.eq(number), lane.given.eq(self.given)]
            m.d.comb += [lane.before.eq(before.own), lane.old.eq(before.kept)]
        m.d.comb += self.shown.eq(Cat(lane.own for lane in ring))
        return m


def _ring(monkeypatch, folder: Path) -> list[Path]:
    """Return the sources of a program that steps a ring of lanes, a block that is shared although it is small."""
    monkeypatch.setattr(lane_code, "GRANULE", 1)
    code = BlockCode(netlists("ring", ("ring_lane",), below("ring", Ring())), "ring")
    (lane,) = code.lanes.values()
    assert lane.granules == Ring.LANES // lane_code.GROUP and [*lane.passed] == ["before"]
    source = folder / "ring.cpp"
    source.write_text(wrapper.source(code))
    return [source, HERE / "block_trial.cpp"]


def _pool(flags: Sequence[str], program: Path) -> Path:
    return _compiled(flags, [HERE / "pool_trial.cpp"], program)


def _blocks(flags: Sequence[str], program: Path) -> Path:
    symbol = "_ZN6Vblock9eval_stepEv"
    block = f"-I{HERE / 'blocks'}", "-DCLOCK=clk", "-DBLOCK=Vblock", f"-DEVALUATION={symbol}", f"-Wl,--wrap={symbol}"
    return _compiled([*flags, *block], [*(HERE / "blocks").glob("*.cpp"), SIDE_BY_SIDE], program)


@pytest.mark.parametrize("flags", [pytest.param(PLAIN, id="plain"), pytest.param(CHECKED, id="races", marks=SLOW)])
@pytest.mark.parametrize("build", [_pool, _blocks])
def test_each_granule_and_each_block_is_stepped_once_and_has_no_data_race(build, flags, tmp_path):
    """Up to five threads share the five blocks; of eight, each block in turn uses all for its lanes."""
    trial, child = build(flags, tmp_path / "trial"), ["and in a child"] if flags is PLAIN else []
    for number in (1, 2, 3, 8):
        done = _run(trial, number, 2_000, *child)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), number


def _ring_of_numpy(steps: int) -> str:
    """Return what the program prints."""
    given, count, own, kept = np.uint32(1), np.uint32(0), *np.zeros((2, Ring.LANES), np.uint32)
    values = np.zeros((4, Ring.LANES), np.uint32)
    for step in range(steps, 0, -1):
        read, at = kept, count & 3
        kept = values[at].copy() if given >> 1 & 1 else kept
        if given >> 2 & 1:
            values[at] = own
        own = own + np.roll(own, 1) * count + np.arange(Ring.LANES, dtype=np.uint32) + np.roll(read, 1)
        count += given
        if step % 500 == 0:
            count, own = np.uint32(0), np.zeros_like(own)
        given = given * np.uint32(1664525) + np.uint32(1013904223) ^ own[step % 128]
    return "".join(f"{word:08x}\n" for word in own)


def test_lanes_pass_their_values_to_neighbours(tmp_path, monkeypatch):
    """A word that a memory reads is not stored in every step, so its lane does not pass it."""
    trial = _compiled(PLAIN, _ring(monkeypatch, tmp_path), tmp_path / "trial")
    with np.errstate(over="ignore"):
        assert [_run(trial, number, 2_000).stdout for number in (1, 2, 3)] == 3 * [_ring_of_numpy(2_000)]


@pytest.mark.slow
def test_generated_block_has_no_data_race(tmp_path, monkeypatch):
    trial = _compiled(CHECKED, _ring(monkeypatch, tmp_path), tmp_path / "trial")
    shown = []
    for number in (1, 2, 3, 8):
        done = _run(trial, number, 2_000)
        assert (done.returncode, done.stderr) == (0, ""), number
        shown.append(done.stdout)
    assert len(set(shown[0].split())) > Ring.LANES // 2 and len(set(shown)) == 1


@pytest.mark.slow
def test_data_race_of_a_generated_block_is_noticed(tmp_path, monkeypatch):
    source, main = _ring(monkeypatch, tmp_path)
    text, wait = source.read_text(), "s.loop_0.end();"
    assert text.count(wait) == 1
    source.write_text(text.replace(wait, ""))
    trial = _compiled(CHECKED, [source, main], tmp_path / "trial")
    assert _run(trial, 3, 2_000).returncode == RACE


def test_results_and_cycles_are_the_same_for_any_number_of_threads():
    reports = []
    for number in (1, 2, 3):
        with threads_choice(number) as used:
            reports.append(passed("matmul", "TARGET=engine PRESET=tiny ROWS=32 COLUMNS=32 M=64 K=64 N=48").as_json())
        assert used == [number]
    assert reports[0]["cycles"] and reports[0] == reports[1] == reports[2]


def test_icarus_has_one_thread(tmp_path):
    text = "module counts(input clk, output reg q); always @(posedge clk) q <= ~q; endmodule\n"
    design = simulation.Design("counts", text, clock="clk", side_by_side=("core", 4))
    assert simulation.build(design, "icarus", root=tmp_path).threads == 1


def test_number_is_chosen_by_the_design_and_the_processors(monkeypatch):
    monkeypatch.delenv(THREADS_VARIABLE)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(4)))
    assert threads_of(8) == 1
    with threads_choice(None) as used:
        assert [threads_of(paying) for paying in (1, 3, 8)] == used == [1, 3, 4]
    assert paying_threads("// threads: 2\nmodule a;\n// threads: 3\n") == 3 and paying_threads("module a;") == 1
    monkeypatch.setenv(THREADS_VARIABLE, "5")
    with threads_choice(None):
        assert threads_of(1) == 5


@pytest.mark.parametrize("wrong", ["0", "-1", "x", "65", "1.5"])
def test_wrong_number_is_refused(wrong, monkeypatch):
    monkeypatch.setenv(THREADS_VARIABLE, wrong)
    with pytest.raises(WrongChoice, match=f"THREADS must be paying or an integer from 1 to 64, not '{wrong}'"):
        threads_of(2)
