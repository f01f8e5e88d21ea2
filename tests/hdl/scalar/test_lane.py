# amaranth: UnusedElaboratable=no

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
from neuroncore_rtl.spec.formats import FORMATS, FP32
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


class Program:
    """Random instructions, and the output words of golden: None for a step that loads a scalar."""

    def __init__(self, rng, count, units=SCALAR_UNITS):
        self.rng = rng
        self.functions = [name for name in FUNCTIONS if "trigonometry" in units or name not in TRIGONOMETRIC]
        self.random = "random" in units
        self.steps, self.words = [], []
        self._sum = np.float32(0)
        for _ in range(count):
            self._instruction()

    def _instruction(self):
        rng = self.rng
        name = rng.choice(self.functions)
        a_format, dst_format, result_format = rng.choice(FORMAT_LIST, 3)
        scalars = [self._element(FP32)[0], self._element(FP32)[0]]
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
                code, a = self._element(fmt)
                scalars[number] = int(arith.widen(np.array(code), fmt))
                self._step(common, None, phase=phase.value, a_dtype=fmt.code, a=a)

        stochastic = int(rng.integers(2)) & self.random
        for position in range(int(rng.integers(1, 6))):
            code, a = self._element(a_format)
            y = scalar.activation(name, arith.widen(np.array(code), a_format), *scalars, common["alpha"])
            if common["partitions"] > LANE:
                if position == 0 and not common["sum_continue"]:
                    self._sum = np.float32(0)
                self._sum = arith.add_fp32(self._sum, y.view(np.float32))
            number = (index + LANE * (word - (word >> 31 << 32))) % (1 << 64)
            random = arith.random_words(word, word ^ 1, np.uint64(number)) if stochastic else None
            result = arith.round_fp32(y, dst_format, "sr" if stochastic else "rne", random)
            fields = {"first": int(position == 0), "stochastic": stochastic, "index_high": index >> 32, "a": a}
            self._step(common, result, phase=Phase.ELEMENT.value, **fields)
            index += 1 << 40
        result = arith.round_fp32(self._sum.view(np.uint32), result_format)
        self._step(common, result, phase=Phase.RESULT.value, first=1, dst_dtype=result_format.code)

    def _step(self, common, word, **fields):
        self.steps.append(common | fields)
        self.words.append(None if word is None else int(word))

    def _element(self, fmt):
        codes = stimulus.ordinary_codes if self.rng.random() < 0.9 else stimulus.random_codes
        code = int(codes(self.rng, fmt, 1)[0])
        return code, (code | int(self.rng.integers(0, 1 << 32)) << fmt.bits) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("sim", "unit"),
    slow_if(lambda *case: case != ("verilator", "shallow"), product(SIMULATORS, UNITS)),
    indirect=["sim"],
)
def test_every_step_is_that_of_golden(rng, sim, unit):
    program = Program(rng, INSTRUCTIONS[sim], UNITS[unit].parameters[1])
    results = [step for step in program.steps if step["phase"] == Phase.RESULT.value]
    assert len(results) == INSTRUCTIONS[sim] and len({step["function"] for step in program.steps}) > 25
    cases = {name: np.array([step[name] for step in program.steps], np.uint32) for name, _ in PlayedLane.LAYOUT}
    words, unknown = play(UNITS[unit], cases, sim)
    assert len(words) == len(program.words) and all(program.words[step] is None for step in unknown)
    wrong = [step for step, word in enumerate(program.words) if word is not None and word != words[step]]
    assert not wrong, f"{len(wrong)} of {len(program.words)} differ, first {program.steps[wrong[0]]}"
