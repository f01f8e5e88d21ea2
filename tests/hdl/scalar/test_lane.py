# amaranth: UnusedElaboratable=no

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from amaranth import Cat, Module
from amaranth.lib import data

from neuroncore_rtl.golden import arith, scalar
from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep, Phase
from neuroncore_rtl.hdl.scalar.block import ActivationBlock
from neuroncore_rtl.run.harness.player import Playable
from neuroncore_rtl.run.sim.simulation import SIMULATORS
from neuroncore_rtl.spec.config import SCALAR_UNITS
from neuroncore_rtl.spec.formats import FORMATS, FP32, Format
from neuroncore_rtl.spec.functions import FUNCTIONS, TRIGONOMETRIC
from neuroncore_rtl.tb.stimulus import operands as stimulus
from tests.hdl.arith.units import play
from tests.hdl.scalar.activations import ALPHAS
from tests.hdl.simulation import assign, slow_if

SEED = 20260404
INSTRUCTIONS = {"verilator": 700, "icarus": 100}
FORMAT_LIST = list(FORMATS.values())

LANES, FIRST, OBSERVED = 3, 5, 2
"""Lanes (datapaths) of a block, index of its first lane in the engine, and index in the block of the compared lane."""

LANE = FIRST + OBSERVED

FIELDS = ("phase", "first", "function", "alpha", "sum_continue", "stochastic", "pointer0", "scalar0", "pointer1",
          "scalar1", "a_dtype", "dst_dtype", "seed", "stream", "index_partition", "partitions")  # fmt: skip
"""Fields of a step that the lanes use, except for the index."""


class PlayedLane(Playable):
    """One lane of a block; its input word has a step and an element. The block's other lanes get other elements."""

    LAYOUT = data.StructLayout(
        {name: ElementwiseStep.as_shape()[name].width for name in FIELDS} | {"index_low": 32, "index_high": 32, "a": 32}
    )

    def __init__(self, depth: int = 1, units=SCALAR_UNITS):
        self.parameters = depth, units
        super().__init__(self.LAYOUT, ActivationBlock(LANES, *self.parameters).latency)

    def elaborate(self, platform):
        m = Module()
        m.submodules.block = block = ActivationBlock(LANES, *self.parameters)
        step = block.step
        assign(
            m, step, index=Cat(self.word.index_low, self.word.index_high), **{name: self.word[name] for name in FIELDS}
        )
        assign(m, block, valid=self.valid, first_lane=FIRST)
        m.d.comb += [block.a[i].eq(self.word.a ^ (i ^ OBSERVED)) for i in range(LANES)]
        m.d.comb += self.result.eq(block.words[OBSERVED])
        self.delay_valid(m)
        return m


UNITS = {"shallow": PlayedLane(), "deep": PlayedLane(2), "bare": PlayedLane(2, ())}


def element(rng: np.random.Generator, fmt: Format) -> tuple[int, int]:
    """Return a code, and a word with any bits above it."""
    codes = stimulus.ordinary_codes if rng.random() < 0.9 else stimulus.random_codes
    code = int(codes(rng, fmt, 1)[0])
    return code, (code | int(rng.integers(0, 1 << 32)) << fmt.bits) & 0xFFFFFFFF


def program(
    rng: np.random.Generator, count: int, units: tuple[str, ...]
) -> Iterator[tuple[dict[str, int], int | None]]:
    """Yield the steps of random instructions, and golden's output words: None for a step that loads a scalar."""
    functions = [name for name in FUNCTIONS if "trigonometry" in units or name not in TRIGONOMETRIC]
    total = np.float32(0)
    for _ in range(count):
        name = rng.choice(functions)
        a_format, dst_format, result_format = rng.choice(FORMAT_LIST, 3)
        scalars = [element(rng, FP32)[0], element(rng, FP32)[0]]
        loads = rng.integers(0, 2, 2)
        word, index = (int(rng.integers(0, 1 << bits, dtype=np.uint64)) for bits in (32, 63))
        common = {
            "function": FUNCTIONS[name].code, "alpha": int(rng.choice(ALPHAS)), "sum_continue": int(rng.integers(2)),
            "stochastic": 0, "first": 0, "pointer0": int(loads[0]), "pointer1": int(loads[1]), "scalar0": scalars[0],
            "scalar1": scalars[1], "seed": word, "stream": word ^ 1, "index_partition": word, "index_high": index >> 32,
            "index_low": index % (1 << 32), "partitions": int(rng.choice([LANE, LANE + 1, 1024])), "a": word,
            "a_dtype": a_format.code, "dst_dtype": dst_format.code,
        }  # fmt: skip
        for number, phase in enumerate((Phase.LOAD_S0, Phase.LOAD_S1)):
            if loads[number]:
                fmt = rng.choice(FORMAT_LIST)
                code, a = element(rng, fmt)
                scalars[number] = int(arith.widen(np.array(code), fmt))
                yield common | {"phase": phase.value, "a_dtype": fmt.code, "a": a}, None

        stochastic = int(rng.integers(2)) & ("random" in units)
        for position in range(int(rng.integers(1, 6))):
            code, a = element(rng, a_format)
            y = scalar.activation(name, arith.widen(np.array(code), a_format), *scalars, common["alpha"])
            if common["partitions"] > LANE:
                if position == 0 and not common["sum_continue"]:
                    total = np.float32(0)
                total = arith.add_fp32(total, y.view(np.float32))
            number = (index + LANE * (word - (word >> 31 << 32))) % (1 << 64)
            random = arith.random_words(word, word ^ 1, np.uint64(number)) if stochastic else None
            result = arith.round_fp32(y, dst_format, "sr" if stochastic else "rne", random)
            fields = {"phase": Phase.ELEMENT.value, "first": int(position == 0), "stochastic": stochastic}
            yield common | fields | {"index_high": index >> 32, "a": a}, int(result)
            index += 1 << 40
        fields = {"phase": Phase.RESULT.value, "first": 1, "dst_dtype": result_format.code}
        yield common | fields, int(arith.round_fp32(total.view(np.uint32), result_format))


@pytest.mark.parametrize(
    ("sim", "unit"),
    slow_if(lambda *case: case != ("verilator", "shallow"), product(SIMULATORS, UNITS)),
    indirect=["sim"],
)
def test_every_step_is_that_of_golden(rng, sim, unit):
    steps, expected = zip(*program(rng, INSTRUCTIONS[sim], UNITS[unit].parameters[1]), strict=True)
    assert [step["phase"] for step in steps].count(Phase.RESULT.value) == INSTRUCTIONS[sim]
    assert len({step["function"] for step in steps}) > 25
    cases = {name: np.array([step[name] for step in steps], np.uint32) for name, _ in PlayedLane.LAYOUT}
    words, unknown = play(UNITS[unit], cases, sim)
    assert len(words) == len(expected) and all(expected[step] is None for step in unknown)
    wrong = [step for step, word in enumerate(expected) if word is not None and word != words[step]]
    assert not wrong, f"{len(wrong)} of {len(expected)} differ, first {steps[wrong[0]]}"
