# amaranth: UnusedElaboratable=no

"""Random instruction programs on the engine: every word of PSUM is what the golden interpreter leaves there."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical, decode
from neuroncore_rtl.golden.tensor import matrix_product
from neuroncore_rtl.spec.config import PRESETS, PSUM_WORDS, Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving
from neuroncore_rtl.tb.harness.run import run
from neuroncore_rtl.tb.harness.tensor import TensorDevice, TensorWork
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.tensor_programs import random_program
from tests.hdl.tensor.engines import assert_same_words, golden_words, memory_of, program_of

INSTRUCTIONS = {"verilator": 1000, "icarus": 40}
LONGEST = {"verilator": PSUM_WORDS, "icarus": 12}
"""Moving columns of an instruction at most; Icarus runs a few hundred cycles a second."""

CONFIGS = {
    "verilator": (
        PRESETS["tiny"],
        Config(rows=2, columns=2, mac_latency=1, add_latency=1),
        Config(rows=3, columns=5, mac_latency=3, add_latency=4),
        Config(rows=9, columns=3, mac_latency=5, add_latency=3),
        Config(rows=2, columns=33, mac_latency=2, add_latency=2),
    ),
    "icarus": (
        Config(rows=2, columns=2, mac_latency=4, add_latency=1),
        Config(rows=3, columns=5, mac_latency=1, add_latency=3),
    ),
}
"""Arrays of one and of several blocks, tiles and PSUM blocks, the last of them narrower than the others; every depth of
the pipelines. Each costs Verilator a build, hence so few."""

MACHINES = [
    pytest.param(
        sim, config, id=f"{sim}-{config.rows}x{config.columns}-mac{config.mac_latency}-add{config.add_latency}"
    )
    for sim, configs in CONFIGS.items()
    for config in configs
]


@pytest.mark.parametrize(("sim", "config"), MACHINES, indirect=["sim"])
def test_random_programs_leave_in_psum_what_golden_does(sim, config):
    compared = 0
    for seed, stall in enumerate((0, 60, 200), start=1):
        program, expected = random_program(np.random.default_rng(seed), config, INSTRUCTIONS[sim], LONGEST[sim])
        outcome = run(TensorDevice(config=config), TensorWork(program=program, stall=stall, seed=seed), sim=sim)
        nans = int(((expected & 0x7FFFFFFF) > 0x7F800000).sum())
        written = int((expected != 0).sum())
        print(f"seed {seed}, stall {stall}: {written} of {expected.size} words are not zero, {nans} are NaN")
        print(outcome.counters)
        assert_same_words(outcome.memories["psum"], expected)
        # Else the program would show little: words that were written, are no NaN, and waited for each other.
        assert nans < written / 2
        assert written > expected.size / 4
        assert outcome.counters["wait_psum"] > 0
        assert (outcome.counters["wait_operand"] > 0) == (stall > 0)
        compared += expected.size
    print(f"{compared} words compared")
    assert compared > 0


TINY = PRESETS["tiny"]


def run_tiny(instructions, stationary, moving, words, *, stall=0):
    """Run instructions on the tiny engine and return the PSUM words that were asked for, and those of golden."""
    program = program_of(instructions, stationary, moving, words)
    outcome = run(TensorDevice(config=TINY), TensorWork(program=program, stall=stall))
    return outcome.memories["psum"], golden_words(TINY, program)


@pytest.mark.parametrize("stall", (0, 200))
def test_loads_that_replace_each_other_behind_a_waiting_multiplication(stall):
    """The weights of the multiplication that waits behind a long one are neither of the two that were loaded later."""
    rng = np.random.default_rng(11)
    stationary = memory_of(stimulus.ordinary_codes(rng, BF16, 4 * 16).reshape(4, 16), BF16)
    moving = memory_of(stimulus.ordinary_codes(rng, BF16, 4 * 60).reshape(4, 60), BF16)

    def load(index):
        return LoadStationary(format=BF16, k=4, m=4, address=index * 8)

    def move(n, psum):
        return MultiplyMoving(format=BF16, k=4, m=4, n=n, address=0, stride=2, psum=psum)

    instructions = [load(0), move(60, 0), load(1), move(5, 100), load(2), load(3), move(5, 200), move(5, 300)]
    words, expected = run_tiny(instructions, stationary, moving, [(0, 60), (100, 5), (200, 5), (300, 5)], stall=stall)
    assert_same_words(words, expected)
    assert len({row.tobytes() for row in (expected[:5], expected[60:65], expected[65:70])}) == 3


@pytest.mark.parametrize("fmt", MATMUL_FORMATS, ids=lambda fmt: fmt.name)
def test_transpose_passes_every_special_value_bit_for_bit(fmt):
    rng = np.random.default_rng(12)
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
    words, golden = run_tiny(instructions, memory_of(elements, fmt), memory_of(identity, fmt), [(0, 48)])
    assert_same_words(words, golden)
    # Word n of partition m is element n of column m: for every tile the transpose.
    with np.errstate(invalid="ignore"):
        values = decode(elements, fmt).astype(np.int32 if fmt is INT8 else np.float32).view(np.uint32)
    values = values if fmt is INT8 else canonical(values)
    expected = np.concatenate([values[:, first : first + 4] for first in range(0, 48, 4)])
    assert_same_words(words, expected)


def test_eight_accumulation_groups_interleave():
    """One in each bank, FP32 beside INT32, each a step along K at a time."""
    rng = np.random.default_rng(13)
    steps, n, banks = 9, 3, 8
    formats = [INT8 if bank % 2 else BF16 for bank in range(banks)]
    a = [stimulus.ordinary_codes(rng, fmt, 4 * 4 * steps).reshape(4, 4 * steps) for fmt in formats]
    b = [stimulus.ordinary_codes(rng, fmt, 4 * steps * n).reshape(4 * steps, n) for fmt in formats]
    instructions, stationary, moving = [], [], []
    weights_at = data_at = 0
    for step in range(steps):
        rows = slice(4 * step, 4 * step + 4)
        for bank, fmt in enumerate(formats):
            element = fmt.bits // 8
            # Every operand has 16 bytes of memory, a load step of the widest format.
            for parts, codes in ((stationary, a[bank][:, rows].T), (moving, b[bank][rows])):
                part = np.zeros((4, 16), np.uint8)
                part[:, : codes.shape[1] * element] = memory_of(codes, fmt)
                parts.append(part)
            move = {"n": n, "stride": element, "psum": bank * PSUM_WORDS, "accumulate": step > 0}
            instructions += [
                LoadStationary(format=fmt, k=4, m=4, address=weights_at),
                MultiplyMoving(format=fmt, k=4, m=4, address=data_at, **move),
            ]
            weights_at, data_at = weights_at + 16, data_at + 16
    read = [(bank * PSUM_WORDS, n) for bank in range(banks)]
    words, _ = run_tiny(instructions, np.hstack(stationary), np.hstack(moving), read)
    expected = [matrix_product(a[bank], b[bank], fmt, rows=4).T for bank, fmt in enumerate(formats)]
    assert_same_words(words, np.concatenate(expected))


def test_random_program_is_the_same_for_the_same_seed():
    config = PRESETS["tiny"]
    (first, words), (second, again) = (random_program(np.random.default_rng(7), config, 200) for _ in range(2))
    assert first.steps == second.steps
    np.testing.assert_array_equal(first.moving, second.moving)
    np.testing.assert_array_equal(words, again)


def test_random_programs_contain_what_they_promise():
    config = Config(rows=3, columns=5)
    program, _ = random_program(np.random.default_rng(1), config, INSTRUCTIONS["verilator"])
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
    same_word = [
        (a, b)
        for a, b in pairs
        if isinstance(a, MultiplyMoving) and isinstance(b, MultiplyMoving) and a.psum == b.psum and a.n == b.n == 1
    ]
    assert any(b.accumulate for _, b in same_word)
