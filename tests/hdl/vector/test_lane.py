import re
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest
from amaranth import Module

from neuroncore_rtl.golden import arith, elementwise
from neuroncore_rtl.golden.vector import alu, chain, dropped, negative, reciprocal, reduce_words, scan
from neuroncore_rtl.hdl.arith import divide, power
from neuroncore_rtl.hdl.elementwise.step import Phase
from neuroncore_rtl.hdl.elementwise.turns import Turns
from neuroncore_rtl.hdl.vector.block import VectorBlock
from neuroncore_rtl.hdl.vector.lane import VectorLane
from neuroncore_rtl.hdl.verilog.text import convert
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import LONE_UNITS, VECTOR_UNITS
from neuroncore_rtl.spec.formats import BF16, FP16, FP32, INT8, INT32, UINT8, UINT16, UINT32, Format
from neuroncore_rtl.spec.isa import AluOp, Index, Opcode
from neuroncore_rtl.spec.isa.alu import Arithmetic
from tests.hdl.simulation import assign, drive, simulated, slow
from tests.hdl.vector.units import flags, random_words

SEED = 20260406
LANES = 2
ELEMENTS = 10
SCALARS = np.array([0x3FC00000, 0xBF400000], np.uint32)  # 1.5 and -0.75
INDEX = Index(base=(1 << 40) - 3, partition=-7, steps=(1 << 31 | 5,))
KEY = (0x12345678, 0x9ABCDEF0)
REMAINDER = divide.Fp32Divider.REMAINDER_LATENCY, divide.Fp32Divider.REMAINDER_INTERVAL
UNITS = {
    AluOp.DIVIDE: (divide.Fp32Divider.LATENCY, divide.Fp32Divider.INTERVAL),
    AluOp.POWER: (power.Fp32Power.LATENCY, power.Fp32Power.INTERVAL),
    AluOp.MOD: REMAINDER,
    AluOp.FMOD: REMAINDER,
}
"""Latency and interval of the units of slow operations."""


@dataclass
class Case:
    """Steps and their expected results; `interval`: least number of cycles between steps with one-cycle ALUs."""

    steps: list[dict]
    expected: np.ndarray
    a: np.ndarray
    b: np.ndarray
    slow: tuple[int, ...] = ()
    interval: int = 1
    enable: np.ndarray | None = None
    name: str = ""

    def latency(self, alu_latency: int) -> int:
        return timing.vector_lanes_latency(alu_latency) + sum(self.slow) - alu_latency * len(self.slow)

    def least_interval(self, alu_latency: int) -> int:
        opcode = Opcode(self.steps[0]["opcode"]).name
        return max(self.interval, timing.vector_intervals(alu_latency).get(opcode, 1))


class OneLane(VectorBlock):
    def elaborate(self, platform):
        m = Module()
        m.submodules.turns = turns = Turns(self.lanes, self.lanes)
        units = frozenset(VECTOR_UNITS) - frozenset(LONE_UNITS)
        m.submodules.block = block = VectorBlock(1, self.alu_latency, units, self.lanes)
        for name in ("valid", "step", "a", "b", "moved"):
            assign(m, turns, **{name: getattr(self, name)})
            assign(m, block, **{name: getattr(turns, f"lanes_{name}")})
        for name in ("result_valid", "word", "enable"):
            assign(m, turns, **{f"lanes_{name}": getattr(block, name)})
            assign(m, self, **{name: getattr(turns, name)})
        return m


@simulated(lambda kind, alu_latency: kind(LANES, alu_latency))
async def played(ctx, unit, cases, rng, *, alu_latency=1, kind=VectorBlock):
    least = LANES if kind is OneLane else 1
    cycle, issued, found = 0, [], []

    async def wait(cycles):
        nonlocal cycle
        for _ in range(cycles):
            await ctx.tick()
            cycle += 1
            if ctx.get(unit.result_valid):
                words, enable = [ctx.get(unit.word[lane]) for lane in range(LANES)], ctx.get(unit.enable)
                found.append((cycle - issued[len(found)] if len(found) < len(issued) else None, words, enable))

    for case in cases:
        alone = bool(case.slow)
        interval = max(case.least_interval(alu_latency), least)
        await wait((case.latency(alu_latency) + 2) * alone)
        for step, a, b in zip(case.steps, case.a.tolist(), case.b.tolist(), strict=True):
            drive(ctx, unit, valid=1, step=step, a=a, b=b)
            if step.get("writes"):
                issued.append(cycle)
            await wait(1)
            drive(ctx, unit, valid=0, step=int(rng.integers(1 << 62)), a=int(rng.integers(1 << 62)))
            await wait(interval - 1 + int(rng.choice([0, 0, 1, 4])))
        await wait((case.latency(alu_latency) + 2) * alone)
    await wait(timing.vector_lanes_latency(alu_latency) + 2 + least)
    found = iter(found)
    results = [list(islice(found, len(case.expected))) for case in cases]
    assert next(found, None) is None
    return results


def elements(opcode, count=ELEMENTS, dst=FP32, sources=FP32, arithmetic=Arithmetic.FP32, writes=None, **fields):
    common = {
        "phase": Phase.ELEMENT, "opcode": opcode.value, "a_dtype": sources.code, "b_dtype": sources.code,
        "dst_dtype": dst.code, "scalar0": int(SCALARS[0]), "scalar1": int(SCALARS[1]),
        "seed": KEY[0], "stream": KEY[1], "index_partition": INDEX.partition, **flags(arithmetic),
    }  # fmt: skip
    return [
        common
        | {"position": position, "first": position == 0, "last": position == count - 1}
        | {"index": (INDEX.base + position * INDEX.steps[0]) % (1 << 64)}
        | {"writes": 1 if writes is None else int(position in writes)}
        | fields
        for position in range(count)
    ]


def operands(rng, count=ELEMENTS):
    return tuple(random_words(rng, count * LANES, special=0.1).reshape(count, LANES) for _ in range(2))


def numbers(count=ELEMENTS):
    return elementwise.element_index(INDEX, LANES, (count,)).T


def rounded(words, dst: Format = FP32, stochastic=False, arithmetic=Arithmetic.FP32):
    random = elementwise.element_words(*KEY, numbers(len(words)))[0] if stochastic else None
    return elementwise.store_words(words, dst, arithmetic, random).astype(np.uint32)


def cost(*operations):
    units = [UNITS[op] for op in operations]
    return tuple(latency for latency, _ in units), units[-1][1] + sum(latency for latency, _ in units[:-1])


def case(
    name, opcode, words, a, b, cost=((), 1), dst=FP32, stochastic=0, arithmetic=Arithmetic.FP32, enable=None, **fields
):
    steps = elements(opcode, dst=dst, stochastic=stochastic, arithmetic=arithmetic, **fields)
    return Case(steps, rounded(words, dst, stochastic, arithmetic), a, b, *cost, enable=enable, name=name)


def reduction(name, words, a, b, cost=((), 1), dst=FP32, **fields):
    steps = elements(Opcode.TENSOR_SCALAR_REDUCE, dst=dst, op1=AluOp.ADD.value, **fields)
    steps.append(steps[-1] | {"phase": Phase.RESULT, "dst_dtype": FP32.code, "number": 0, "writes": 1, "stochastic": 0})
    total = reduce_words(AluOp.ADD, np.ascontiguousarray(words.T))
    expected = np.concatenate([rounded(words, dst), arith.canonical(total)[np.newaxis]])
    return Case(steps, expected, np.concatenate([a, a[:1]]), np.concatenate([b, b[:1]]), *cost, name=name)


def ordinary_cases(rng):
    op = {"op0": AluOp.SUBTRACT.value, "op1": AluOp.MULTIPLY.value}
    a, b = operands(rng)
    s0, s1 = SCALARS
    yield case("copy, stochastic", Opcode.TENSOR_COPY, a, a, b, dst=BF16, stochastic=1)
    words = chain(a, s0, s1, AluOp.SUBTRACT, AluOp.MULTIPLY, True, True)
    yield case("tensor_scalar, reversed", Opcode.TENSOR_SCALAR, words, a, b, dst=FP16, reverse0=1, reverse1=1, **op)
    words = chain(a, s0, b, AluOp.SUBTRACT, AluOp.MULTIPLY)
    yield case("scalar_tensor_tensor", Opcode.SCALAR_TENSOR_TENSOR, words, a, b, **op)
    small = rng.integers(0, 1 << 32, (2, ELEMENTS, LANES), np.uint32) % np.uint32(40)
    words = alu(AluOp.MULTIPLY, *small, Arithmetic.INT32)
    options = {"dst": INT8, "sources": INT32, "arithmetic": Arithmetic.INT32, "op0": AluOp.MULTIPLY.value}
    yield case("tensor_tensor in INT32", Opcode.TENSOR_TENSOR, words, *small, **options)
    large = rng.integers(0, 1 << 32, (2, ELEMENTS, LANES), np.uint32)
    for dst in (UINT32, INT32, UINT8):
        words = alu(AluOp.MAX, *large, Arithmetic.UINT32)
        options = {"dst": dst, "sources": UINT32, "arithmetic": Arithmetic.UINT32, "op0": AluOp.MAX.value}
        yield case(f"tensor_tensor in UINT32 to {dst.name}", Opcode.TENSOR_TENSOR, words, *large, **options)
    words = chain(large[0], large[1][:1] * 0, large[1], AluOp.ADD, AluOp.IS_GT, arithmetic=Arithmetic.UINT32)
    options = {"sources": UINT32, "arithmetic": Arithmetic.UINT32, "op0": AluOp.ADD.value, "op1": AluOp.IS_GT.value}
    yield case("compared in UINT32", Opcode.SCALAR_TENSOR_TENSOR, words, *large, dst=UINT16, scalar0=0, **options)
    words = chain(a, s0, b, AluOp.FLOOR, AluOp.LARGER_MAGNITUDE)
    options = {"op0": AluOp.FLOOR.value, "op1": AluOp.LARGER_MAGNITUDE.value}
    yield case("floor, larger magnitude", Opcode.SCALAR_TENSOR_TENSOR, words, a, b, **options)

    loads = [elements(Opcode.TENSOR_SCALAR, 1)[0] | {"phase": phase, "writes": 0, "pointer0": 1, "pointer1": 1}
             for phase in (Phase.LOAD_S0, Phase.LOAD_S1)]  # fmt: skip
    steps = elements(Opcode.TENSOR_SCALAR, pointer0=1, pointer1=1, **op)
    words = chain(a, b[:1], b[1:2], AluOp.SUBTRACT, AluOp.MULTIPLY)
    longer = np.concatenate([b[:2], a]), np.concatenate([b[:2], b])
    yield Case([*loads, *steps], rounded(words), *longer, name="pointers")

    yield reduction("tensor_scalar_reduce", alu(AluOp.MULTIPLY, a, s0), a, b, dst=BF16, op0=AluOp.MULTIPLY.value)
    steps = elements(Opcode.TENSOR_REDUCE, op0=AluOp.MAX.value, negate=1, writes={ELEMENTS - 1})
    words = negative(reduce_words(AluOp.MAX, np.ascontiguousarray(a.T)), False)
    yield Case(steps, rounded(words[np.newaxis]), a, b, name="tensor_reduce")

    a_rows, b_rows, start = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), np.full(LANES, s0)
    words = scan(a_rows, b_rows, start, AluOp.MULTIPLY, AluOp.ADD, True, False).T
    options = {"cost": ((), 2), "op0": AluOp.MULTIPLY.value, "op1": AluOp.ADD.value, "reverse0": 1}
    yield case("scan", Opcode.TENSOR_TENSOR_SCAN, words, a, b, **options)

    predicate = a * (rng.random(a.shape) < 0.5).astype(np.uint32)
    chosen = predicate << np.uint32(1) != 0
    enable = (chosen * (1 << np.arange(LANES))).sum(1)
    yield case("select", Opcode.SELECT, np.where(chosen, b, s0), predicate, b, enable=enable, keep=1)

    for p in (0.0, 0.3, 0.5, 1.0, 2.0**-40, np.nan):
        word = np.float32(p).view(np.uint32)
        is_dropped = dropped(elementwise.element_words(*KEY, numbers())[1], word)
        yield case(f"dropout {p}", Opcode.DROPOUT, np.where(is_dropped, np.uint32(0), a), a, b, scalar0=int(word))


def slow_cases(rng):
    a, b = operands(rng)
    quotient = cost(AluOp.DIVIDE)
    yield case("reciprocal, stochastic", Opcode.RECIPROCAL, reciprocal(a), a, b, quotient, BF16, 1)
    pairs = (
        "POWER ADD", "ADD DIVIDE", "DIVIDE DIVIDE", "POWER DIVIDE", "MULTIPLY POWER", "DIVIDE ADD", "MOD ADD",
        "ADD DIVIDE", "ADD FMOD", "FMOD MOD", "DIVIDE MOD", "MOD POWER",
    )  # fmt: skip
    for pair in pairs:
        op0, op1 = (AluOp[name] for name in pair.split())
        words = chain(a, SCALARS[0], b, op0, op1, False, True)
        slow = cost(*(op for op in (op0, op1) if op in UNITS))
        options = {"op0": op0.value, "op1": op1.value, "reverse1": 1}
        yield case(f"{op0.name}, {op1.name}", Opcode.SCALAR_TENSOR_TENSOR, words, a, b, slow, FP16, 1, **options)
    words = alu(AluOp.DIVIDE, SCALARS[0], a)
    yield reduction("reduce quotients", words, a, b, quotient, op0=AluOp.DIVIDE.value, reverse0=1)


def wrong_cases(cases, results, alu_latency=1, turns=1):
    wrong = []
    for case, found in zip(cases, results, strict=True):
        latencies, words, enables = zip(*found, strict=True)
        enable = [3] * len(words) if case.enable is None else case.enable.tolist()
        late = {case.latency(alu_latency) + timing.turns_latency(turns)}
        if list(words) != case.expected.tolist() or list(enables) != enable or set(latencies) != late:
            wrong.append(case.name)
    return wrong


@pytest.mark.parametrize("make", [ordinary_cases, slow_cases])
def test_results_are_those_of_golden_after_the_stated_latency(make, rng):
    cases = list(make(rng))
    assert wrong_cases(cases, played(cases, rng)) == []


@pytest.mark.parametrize("alu_latency", [2, *slow(6)])
def test_deep_alus_change_no_result(alu_latency, rng):
    cases = list(ordinary_cases(rng))[1 + alu_latency % 4 :: 3] + list(slow_cases(rng))[alu_latency % 4 :: 6]
    assert wrong_cases(cases, played(cases, rng, alu_latency=alu_latency), alu_latency) == []


@pytest.mark.parametrize("alu_latency", [*slow(1), 3])
def test_a_lane_that_serves_several_partitions_keeps_scalars_and_results_of_each(alu_latency, rng):
    cases = list(ordinary_cases(rng))
    results = played(cases, rng, alu_latency=alu_latency, kind=OneLane)
    assert wrong_cases(cases, results, alu_latency, LANES) == []


def test_no_case_of_a_bare_lane_is_unreachable():
    # Verilator refuses a case that can never be selected because it overlaps with others.
    text = convert(VectorLane(6, ()), "lane", None)
    assert "casez" in text and not re.search(r"casez \(\{[^}]*\d'h0", text)
