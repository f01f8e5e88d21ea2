import numpy as np
import pytest

from neuroncore_rtl.golden import arith, tensor
from neuroncore_rtl.run.harness.engines.tensor import Drain, TensorDevice, TensorProgram, TensorStep, TensorWork
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.tensor_programs import random_tensor_program
from tests.hdl.simulation import slow_if

SEED = 11
INSTRUCTIONS = {"verilator": 600, "icarus": 30}
LONGEST = {"verilator": None, "icarus": 12}
"""Maximum number of moving columns; Icarus runs a few hundred cycles per second."""

TINY = PRESETS["tiny"]

CONFIGS = {
    "verilator": (
        TINY,
        Config(rows=2, columns=3, mac_latency=5, add_latency=7, edge_latency=3, port_latency=1),
        Config(rows=2, columns=2, mac_latency=1, add_latency=1),
        Config(rows=3, columns=5, mac_latency=3, add_latency=4, edge_latency=2),
        Config(rows=9, columns=3, mac_latency=5, add_latency=3, psum_words=32),
        Config(rows=2, columns=33, mac_latency=2, add_latency=2),
        Config(rows=12, columns=16, mac_latency=4, add_latency=2),
        Config(rows=3, columns=5, mac_latency=5, significand_bits=8),
    ),
    "icarus": (
        Config(rows=2, columns=2, mac_latency=4, add_latency=1),
        Config(rows=3, columns=5, mac_latency=1, add_latency=3),
    ),
}
"""Configurations by simulator: every pipeline depth, and arrays with narrower last blocks; each needs a build."""

QUICK = {"verilator": 2, "icarus": 1}
"""Number of configurations outside the slow set."""

MACHINES = [(sim, config) for sim, configs in CONFIGS.items() for config in configs]
SHAPE = "{0.rows}x{0.columns}-mac{0.mac_latency}-add{0.add_latency}-bits{0.significand_bits}"


def assert_same_words(words: np.ndarray, expected: np.ndarray) -> None:
    assert words.shape == expected.shape
    assert expected.size > 0
    differs = np.argwhere(words != expected)
    reports = [f"word {w}, partition {p}: {words[w, p]:08x}, not {expected[w, p]:08x}" for w, p in differs[:5]]
    assert not reports, f"{len(differs)} of {expected.size} words differ from golden: {'; '.join(reports)}"


@pytest.mark.parametrize(
    ("sim", "config"),
    slow_if(lambda sim, config: config not in CONFIGS[sim][: QUICK[sim]], MACHINES),
    indirect=["sim"],
    ids=lambda value: value if isinstance(value, str) else SHAPE.format(value),
)
def test_random_programs_have_the_results_of_golden(sim, config):
    compared = stalled = 0
    for seed, stall in enumerate((0, 60, 200), start=1):
        program, expected = random_tensor_program(np.random.default_rng(seed), config, INSTRUCTIONS[sim], LONGEST[sim])
        outcome = run_device(TensorDevice(config=config), TensorWork(program=program, stall=stall, seed=seed), sim=sim)
        nans, written = ((expected & 0x7FFFFFFF) > 0x7F800000).sum(), (expected != 0).sum()
        print(f"seed {seed}, stall {stall}: {written} of {expected.size} words are not zero, {nans} are NaN")
        assert_same_words(outcome.memories["psum"], expected)
        assert nans < written / 2
        assert written > expected.size / 4
        assert (outcome.counters["wait_operand"] > 0) == (stall > 0)
        compared += expected.size
        stalled += outcome.counters["wait_psum"]
    assert compared > 0 and stalled > 0


def memory_of(codes, fmt):
    return np.ascontiguousarray(codes).astype(arith.storage_dtype(fmt).newbyteorder("<")).view(np.uint8)


def run_tiny(instructions, stationary, moving, words, *, stall=0):
    engine = tensor.TensorEngine(TINY)
    for instruction in instructions:
        engine.execute(instruction, stationary, moving)
    moves = sum(isinstance(instruction, MultiplyMoving) for instruction in instructions)
    drains = [Drain(moves, psum, count) for psum, count in words]
    program = TensorProgram([TensorStep(instruction, 0) for instruction in instructions], drains, stationary, moving)
    found = run_device(TensorDevice(config=TINY), TensorWork(program=program, stall=stall)).memories["psum"]
    assert_same_words(found, np.concatenate([engine.psum[:, psum : psum + count].T for psum, count in words]))
    return found


@pytest.mark.parametrize("stall", (0, 200))
def test_loads_during_a_stalled_multiplication(stall, rng):
    stationary = memory_of(stimulus.ordinary_codes(rng, BF16, 4 * 16).reshape(4, 16), BF16)
    moving = memory_of(stimulus.ordinary_codes(rng, BF16, 4 * 60).reshape(4, 60), BF16)

    def load(index):
        return LoadStationary(format=BF16, k=4, m=4, address=index * 8)

    def move(n, psum):
        return MultiplyMoving(format=BF16, k=4, m=4, n=n, address=0, stride=2, psum=psum)

    instructions = [load(0), move(60, 0), load(1), move(5, 100), load(2), load(3), move(5, 200), move(5, 300)]
    words = run_tiny(instructions, stationary, moving, [(0, 60), (100, 5), (200, 5), (300, 5)], stall=stall)
    assert len({row.tobytes() for row in (words[:5], words[60:65], words[65:70])}) == 3


@pytest.mark.parametrize("fmt", MATMUL_FORMATS)
def test_transpose_passes_every_special_value_bit_for_bit(fmt, rng):
    elements = np.resize(stimulus.special_codes(fmt), 4 * 48)
    elements[96:] = stimulus.random_codes(rng, fmt, 96)
    elements = elements.reshape(4, 48)
    identity = np.zeros((4, 4), elements.dtype)
    np.fill_diagonal(identity, 1 if fmt is INT8 else fmt.bias << fmt.mantissa_bits + fmt.padding_bits)
    instructions = []
    for first in range(0, elements.shape[1], 4):
        for half in (0, 1) if fmt is FP32 else (0,):
            address = first * fmt.bits // 8
            instructions += [
                LoadStationary(format=fmt, half=half, k=4, m=4, address=address),
                MultiplyMoving(
                    format=fmt, k=4, m=4, n=4, address=0, stride=fmt.bits // 8, psum=first, accumulate=half > 0,
                    transpose=True,
                ),
            ]  # fmt: skip
    words = run_tiny(instructions, memory_of(elements, fmt), memory_of(identity, fmt), [(0, 48)])
    # Word n of partition m must be element n of column m, the transpose of each tile.
    values = arith.integers(elements, fmt).view(np.uint32) if fmt is INT8 else arith.widen(elements, fmt)
    expected = np.concatenate([values[:, first : first + 4] for first in range(0, 48, 4)])
    assert_same_words(words, expected)


def test_eight_accumulation_groups_interleave(rng):  # one per bank, FP32 and INT32, a step of K at a time
    steps, n, banks = 9, 3, 8
    formats = [INT8 if bank % 2 else BF16 for bank in range(banks)]
    a = [stimulus.ordinary_codes(rng, fmt, 4 * 4 * steps).reshape(4, 4 * steps) for fmt in formats]
    b = [stimulus.ordinary_codes(rng, fmt, 4 * steps * n).reshape(4 * steps, n) for fmt in formats]
    instructions, stationary, moving = [], [], []
    for step in range(steps):
        rows = slice(4 * step, 4 * step + 4)
        for bank, fmt in enumerate(formats):
            common = {"format": fmt, "k": 4, "m": 4, "address": 16 * len(stationary)}
            for parts, codes in ((stationary, a[bank][:, rows].T), (moving, b[bank][rows])):
                octets = memory_of(codes, fmt)
                parts.append(np.pad(octets, ((0, 0), (0, 16 - octets.shape[1]))))
            move = {"n": n, "stride": fmt.bits // 8, "psum": bank * TINY.psum_words, "accumulate": step > 0}
            instructions += [LoadStationary(**common), MultiplyMoving(**common, **move)]
    read = [(bank * TINY.psum_words, n) for bank in range(banks)]
    words = run_tiny(instructions, np.hstack(stationary), np.hstack(moving), read)
    expected = [tensor.matrix_product(a[bank], b[bank], fmt, rows=4).T for bank, fmt in enumerate(formats)]
    assert_same_words(words, np.concatenate(expected))


def test_random_program_is_the_same_for_the_same_seed():
    (first, words), (second, again) = (random_tensor_program(np.random.default_rng(7), TINY, 200) for _ in range(2))
    assert first.steps == second.steps
    np.testing.assert_array_equal(first.moving, second.moving)
    np.testing.assert_array_equal(words, again)


def test_random_programs_lie_anywhere_in_the_array():
    program, _ = random_tensor_program(np.random.default_rng(1), Config(rows=12, columns=16), 300)
    instructions = [step.instruction for step in program.steps]
    for kind in (LoadStationary, MultiplyMoving):
        of = [i for i in instructions if isinstance(i, kind)]
        assert {i.row for i in of} == {0, 4, 8} and {i.column for i in of} == {0, 4, 8, 12}
        assert {i.k for i in of if i.row} == {1, 2, 3, 4} and max(i.m for i in of if i.column) == 8
    loaded, apart = None, {"rows": 0, "columns": 0}
    for one in instructions:
        loaded = one if isinstance(one, LoadStationary) else loaded
        apart["rows"] += one.row != loaded.row
        apart["columns"] += one.column != loaded.column
    assert min(apart.values()) > 5


def test_random_programs_cover_all_fields():
    program, _ = random_tensor_program(np.random.default_rng(1), Config(rows=3, columns=5), INSTRUCTIONS["verilator"])
    instructions = [step.instruction for step in program.steps]
    loads = [i for i in instructions if isinstance(i, LoadStationary)]
    moves = [i for i in instructions if isinstance(i, MultiplyMoving)]
    pairs = list(zip(instructions, instructions[1:], strict=False))
    assert {i.format for i in loads} == {i.format for i in moves} == set(MATMUL_FORMATS)
    assert {i.half for i in loads if i.format is FP32} == {i.half for i in moves if i.format is FP32} == {0, 1}
    assert {i.k for i in loads} == {i.k for i in moves} == {1, 2, 3}
    assert {i.m for i in loads} == {i.m for i in moves} == {1, 2, 3, 4, 5}
    assert {i.psum // 512 for i in moves} == set(range(8))
    assert {i.accumulate for i in moves} == {i.transpose for i in moves} == {False, True}
    assert min(i.n for i in moves) == 1 and max(i.n for i in moves) > 100
    assert min(i.stride for i in moves) == 0
    assert any(isinstance(a, LoadStationary) and isinstance(b, LoadStationary) for a, b in pairs)
    moved = [(a, b) for a, b in pairs if isinstance(a, MultiplyMoving) and isinstance(b, MultiplyMoving)]
    assert any(b.accumulate for a, b in moved if a.psum == b.psum and a.n == b.n == 1)
