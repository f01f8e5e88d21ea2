"""Cells in lanes against Yosys' simulator, at every instruction set level of this processor."""

import ctypes
import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pytest

from neuroncore_rtl.run.lanes import extraction, netlist, wrapper
from neuroncore_rtl.run.lanes.block_code import BlockCode
from neuroncore_rtl.run.sim import vectors
from tests.hdl.simulation import slow
from tests.run.lanes.cxxrtl import Oracle
from tests.run.lanes.random_cells import LANE, RandomCells
from tests.run.lanes.rtlil_text import cell_lines, read_modules

SEED = 20260717

BLOCK = "random_block"

INSTANCES = 20  # more than one group, with a partial last group

CYCLES = 400
LEVELS = list(vectors.LEVELS)
HIGHER = LEVELS[LEVELS.index(vectors.level()) + 1 :]


@dataclass
class Case:
    cells: RandomCells
    given: dict[str, np.ndarray]
    expected: np.ndarray


def split(array: np.ndarray, widths: Iterable[int]) -> list[np.ndarray]:
    """Return the parts of the last axis with these widths; what follows them is dropped."""
    return np.split(array, np.cumsum([*widths]), axis=-1)[:-1]


def bits_of(words: np.ndarray) -> np.ndarray:
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")


def words_of(bits: np.ndarray) -> np.ndarray:
    padded = np.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, -bits.shape[-1] % 32)])
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint32)


def random_bits(rng: np.random.Generator, count: int, width: int) -> np.ndarray:
    bits = rng.integers(0, 2, (count, width), np.uint8)
    kinds = rng.integers(0, 9, count)
    bits[kinds == 0] = 0
    bits[kinds == 1] = 1
    sparse = (rng.random((count, width)) < 0.1).astype(np.uint8)
    bits[kinds == 2] = sparse[kinds == 2]
    bits[kinds == 3] = 1 - sparse[kinds == 3]
    bits[kinds == 4, min(6, width) :] = 0  # small numbers, also as the amount of a shift
    bits[kinds == 5, min(6, width) :] = 1
    bits[kinds == 6] = np.arange(width) == width - 1
    return bits


def block(cells: RandomCells) -> str:
    lines, instances, place, common = [], [{"clk": "\\clk"} for _ in range(INSTANCES)], 0, 0
    for port, width in cells.inputs.items():
        if port.startswith("common"):
            for instance in instances:
                instance[port] = f"\\common [{common + width - 1}:{common}]"
            common += width
            continue
        for number, instance in enumerate(instances):
            value = f"\\own [{place + width - 1}:{place}]"
            if port in cells.late:
                held = f"\\{port}_{number}"
                lines.append(f"wire width {width} {held}")
                ends = {"CLK": "\\clk", "D": value, "Q": held}
                lines += cell_lines("$dff", f"\\ff_{port}_{number}", {"WIDTH": width, "CLK_POLARITY": 1}, ends)
                value = held
            instance[port] = value
            place += width
    shown = 0
    for port, width in cells.outputs.items():
        for instance in instances:
            instance[port] = f"\\y [{shown + width - 1}:{shown}]"
            shown += width
    for number, connections in enumerate(instances):
        # Names and ports differ in order; two rows suffice, because each row of each port is compiled code.
        lines += cell_lines(f"\\{LANE}", f"\\lane_{(number + 7) % INSTANCES:02}", {}, connections)
    wires = ["wire input 1 \\clk", f"wire width {place} input 2 \\own", f"wire width {common} input 3 \\common"]
    return "\n".join([f"module \\{BLOCK}", *wires, f"wire width {shown} output 4 \\y", *lines, "end", ""])


@pytest.fixture(scope="module")
def case(tmp_path_factory) -> Case:
    print(f"seed {SEED}")
    cells = RandomCells(random.Random(SEED), repeats=1)
    rng = np.random.default_rng(SEED)
    given = {}
    for port, width in cells.inputs.items():
        own = 1 if port.startswith("common") else INSTANCES
        bits = random_bits(rng, CYCLES * own, width).reshape(CYCLES, own, width)
        given[port] = np.broadcast_to(bits, (CYCLES, INSTANCES, width))
    # At an edge a late input has the value that the block's register took at the preceding edge.
    at_edge = given | {port: np.concatenate([given[port][:1] * 0, given[port][:-1]]) for port in cells.late}
    inputs, late = (
        np.ascontiguousarray(np.concatenate([words_of(of[port]) for port in ports], axis=-1))
        for of, ports in ((at_edge, cells.inputs), (given, cells.late))
    )
    oracle = Oracle(LANE, cells.text(), cells.inputs, cells.outputs, cells.late, tmp_path_factory.mktemp("cxxrtl"))
    ports = split(oracle.simulate(inputs, late), [-(-width // 32) for width in cells.outputs.values()])
    bits = [bits_of(port)[..., :width] for port, width in zip(ports, cells.outputs.values(), strict=True)]
    return Case(cells, given, np.concatenate(bits, axis=-1))


def load_library(code: BlockCode, level: str) -> ctypes.CDLL:
    text = wrapper.source(code)
    label = f"{BLOCK}-{hashlib.sha256((text + vectors.compiler_sources()).encode()).hexdigest()[:16]}"
    (vectors.SIM_BUILD / "lanes").mkdir(parents=True, exist_ok=True)
    (vectors.SIM_BUILD / "lanes" / f"{label}.cpp").write_text(text)
    return ctypes.CDLL(str(vectors.compile_library(label, level)))


def simulate_lanes(case: Case, library: ctypes.CDLL) -> np.ndarray:
    cells = case.cells
    own = [case.given[port].reshape(CYCLES, -1) for port in cells.inputs if not port.startswith("common")]
    common = [case.given[port][:, 0] for port in cells.inputs if port.startswith("common")]
    own, common = (words_of(np.concatenate(bits, axis=-1)) for bits in (own, common))
    shown = np.zeros((CYCLES, -(-sum(cells.outputs.values()) * INSTANCES // 32)), np.uint32)
    new, begin, end = (getattr(library, f"{BLOCK}_{name}") for name in ("new", "begin", "end"))
    new.restype = ctypes.c_void_p
    state = ctypes.c_void_p(new())
    for cycle in range(CYCLES):
        given = (ctypes.c_void_p(array.ctypes.data) for array in (own[cycle], common[cycle]))
        end(state, begin(state, *given), ctypes.c_void_p(shown[cycle].ctypes.data))
    ports = split(bits_of(shown), [INSTANCES * width for width in cells.outputs.values()])
    return np.concatenate([port.reshape(CYCLES, INSTANCES, -1) for port in ports], axis=-1)


def complaints(case: Case, found: np.ndarray) -> list[str]:
    result, widths = [], case.cells.outputs.values()
    for port, ours, theirs in zip(case.cells.outputs, split(found, widths), split(case.expected, widths), strict=True):
        for cycle, instance in np.argwhere((ours != theirs).any(axis=-1))[:1]:
            got, want = (int("".join(map(str, bits[cycle, instance][::-1])), 2) for bits in (ours, theirs))
            where = f"{port} ({case.cells.kinds[port]}): cycle {cycle}, instance {instance}"
            result.append(f"{where}: {got:#x}, not {want:#x}")
    return result


@pytest.fixture(scope="module")
def codes(case) -> dict[str, BlockCode]:
    texts = {BLOCK: block(case.cells), LANE: case.cells.text()}
    forms = {"drawn": read_modules(BLOCK, *texts.values()), "optimised": extraction.netlists(BLOCK, (LANE,), texts)}
    return {form: BlockCode(modules, BLOCK) for form, modules in forms.items()}


def test_cells_are_of_every_kind(case):
    drawn = {line.split()[1].removeprefix("$") for line in case.cells.cells if line.startswith("cell $")}
    assert drawn == {*netlist.CELLS, *netlist.FLIP_FLOPS, "mem_v2"}


@pytest.mark.parametrize(
    ("form", "level"),
    [("drawn", vectors.level()), *slow(("optimised", vectors.level()), *(("drawn", level) for level in HIGHER))],
)
def test_results_are_the_oracles(case, codes, form, level):
    found = simulate_lanes(case, load_library(codes[form], level))
    assert complaints(case, found) == []
    # Most output bits take both values; bits above a one-bit result are always zero.
    assert (case.expected.any(axis=(0, 1)) & ~case.expected.all(axis=(0, 1))).mean() > 0.7
    print(f"{level}: {CYCLES * INSTANCES * len(case.cells.outputs):,} values of {found.size:,} bits are alike")
