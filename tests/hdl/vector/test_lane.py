# amaranth: UnusedElaboratable=no

"""Two lanes of a block, step by step, against golden: every path to a result, its latency, and the least intervals."""

from dataclasses import dataclass

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical
from neuroncore_rtl.golden.elementwise import element_index, element_words, store
from neuroncore_rtl.golden.vector.alu import alu
from neuroncore_rtl.golden.vector.operations import chain, reciprocal
from neuroncore_rtl.golden.vector.position import dropped
from neuroncore_rtl.golden.vector.reduction import negative, reduce_words, scan
from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.elementwise.step import Phase
from neuroncore_rtl.hdl.vector.block import VectorBlock
from neuroncore_rtl.spec.formats import BF16, FP16, FP32, INT8, INT32, Format
from neuroncore_rtl.spec.isa import AluOp, Index, Opcode
from tests.hdl.simulation import simulate
from tests.hdl.vector.units import random_words

SEED = 20260406
LANES = 2
ELEMENTS = 14
SCALARS = np.array([0x3FC00000, 0xBF400000], np.uint32)
"""1.5 and -0.75."""

INDEX = Index(base=(1 << 40) - 3, partition=-7, steps=(1 << 31 | 5,))
KEY = (0x12345678, 0x9ABCDEF0)


@dataclass
class Case:
    """Steps and the words that their results must be: `expected` is [results, lanes].

    latency: extra cycles that slow operations take. interval: least cycles from a step to the next.
    """

    steps: list[dict]
    expected: np.ndarray
    a: np.ndarray
    b: np.ndarray
    latency: int = 0
    interval: int = 1
    enable: np.ndarray | None = None
    name: str = ""


def played(cases, rng, *, hurry=0):
    """Play cases one after the other, slow ones alone; return [results] of (cycles, words, enables) for each.

    Arguments:
        rng: decides on the cycles between steps.
        hurry: cycles by which intervals are cut short.
    """
    unit = VectorBlock(LANES)
    results = []

    async def bench(ctx):
        cycle = 0
        issued: list[int] = []
        found: list = []

        async def pass_cycle():
            nonlocal cycle
            await ctx.tick()
            cycle += 1
            if ctx.get(unit.result_valid):
                words, enable = [ctx.get(unit.word[lane]) for lane in range(LANES)], ctx.get(unit.enable)
                found.append((cycle - issued[len(found)] if len(found) < len(issued) else None, words, enable))

        for case in cases:
            alone = case.latency > 0 or hurry
            if alone:
                for _ in range(VectorBlock.LATENCY + 2):
                    await pass_cycle()
            for number, step in enumerate(case.steps):
                ctx.set(unit.valid, 1)
                ctx.set(unit.step, step)
                ctx.set(unit.a, case.a[number].tolist())
                ctx.set(unit.b, case.b[number].tolist())
                if step.get("writes"):
                    issued.append(cycle)
                await pass_cycle()
                ctx.set(unit.valid, 0)
                ctx.set(unit.step.as_value(), int(rng.integers(1 << 62)))
                ctx.set(unit.a.as_value(), int(rng.integers(1 << 62)))
                for _ in range(case.interval - 1 - hurry * (case.interval > 1) + int(rng.choice([0, 0, 1, 4]))):
                    await pass_cycle()
            if alone:
                for _ in range(VectorBlock.LATENCY + case.latency + 2):
                    await pass_cycle()
        for _ in range(VectorBlock.LATENCY + 2):
            await pass_cycle()
        for case in cases:
            results.append(found[: len(case.expected)])
            del found[: len(case.expected)]
        assert not found

    simulate(unit, bench)
    return results


def elements(opcode, count=ELEMENTS, dst=FP32, sources=FP32, integer=False, writes=None, **fields):
    """Return ELEMENT steps; `writes` tells which write, by default all."""
    steps = []
    for position in range(count):
        steps.append(
            {
                "phase": Phase.ELEMENT,
                "opcode": opcode.value,
                "first": position == 0,
                "last": position == count - 1,
                "position": position,
                "integer": integer,
                "a_dtype": sources.code,
                "b_dtype": sources.code,
                "dst_dtype": dst.code,
                "scalar0": int(SCALARS[0]),
                "scalar1": int(SCALARS[1]),
                "seed": KEY[0],
                "stream": KEY[1],
                "index": (INDEX.base + position * INDEX.steps[0]) % (1 << 64),
                "index_partition": INDEX.partition,
                "writes": 1 if writes is None else int(position in writes),
            }
            | fields
        )
    return steps


def result_step(like, dst, number=0):
    return like | {"phase": Phase.RESULT, "dst_dtype": dst.code, "number": number, "writes": 1, "stochastic": 0}


def operands(rng, count=ELEMENTS):
    return tuple(random_words(rng, count * LANES, special=0.1).reshape(count, LANES) for _ in range(2))


def numbers(count=ELEMENTS):
    """Return the elements' numbers, [count, lanes]."""
    return element_index(INDEX, LANES, (count,)).T


def rounded(words, dst: Format = FP32, stochastic=False, integer=False):
    random = element_words(*KEY, numbers(len(words)))[0] if stochastic else None
    return store(words, dst, integer, random).astype(np.uint32)


def cost(*operations):
    """Return the extra latency of slow operations, and the interval."""
    units = [{AluOp.DIVIDE: Fp32Divider, AluOp.POWER: Fp32Power}[op] for op in operations]
    latency = sum(unit.LATENCY - 1 for unit in units)
    return latency, units[-1].INTERVAL + sum(unit.LATENCY for unit in units[:-1])


def ordinary_cases(rng):
    op = {"op0": AluOp.SUBTRACT.value, "op1": AluOp.MULTIPLY.value}
    a, b = operands(rng)
    s0, s1 = SCALARS
    copied = elements(Opcode.TENSOR_COPY, dst=BF16, stochastic=1)
    yield Case(copied, rounded(a, BF16, True), a, b, name="copy, stochastic")
    steps = elements(Opcode.TENSOR_SCALAR, dst=FP16, reverse0=1, reverse1=1, **op)
    words = chain(a, s0, s1, AluOp.SUBTRACT, AluOp.MULTIPLY, True, True)
    yield Case(steps, rounded(words, FP16), a, b, name="tensor_scalar, reversed")
    steps = elements(Opcode.SCALAR_TENSOR_TENSOR, **op)
    yield Case(steps, rounded(chain(a, s0, b, AluOp.SUBTRACT, AluOp.MULTIPLY)), a, b, name="scalar_tensor_tensor")
    integers = rng.integers(0, 1 << 32, (2, ELEMENTS, LANES), np.uint32)
    steps = elements(Opcode.TENSOR_TENSOR, dst=INT8, sources=INT32, integer=True, op0=AluOp.MULTIPLY.value)
    small = integers % np.uint32(40)
    words = rounded(alu(AluOp.MULTIPLY, *small, True), INT8, integer=True)
    yield Case(steps, words, *small, name="tensor_tensor in INT32")

    # Scalars that are loaded, right behind an instruction with others.
    loads = [elements(Opcode.TENSOR_SCALAR, 1)[0] | {"phase": phase, "writes": 0, "pointer0": 1, "pointer1": 1}
             for phase in (Phase.LOAD_S0, Phase.LOAD_S1)]  # fmt: skip
    steps = elements(Opcode.TENSOR_SCALAR, pointer0=1, pointer1=1, **op)
    words = chain(a, b[:1], b[1:2], AluOp.SUBTRACT, AluOp.MULTIPLY)
    yield Case(
        [*loads, *steps], rounded(words), np.concatenate([b[:2], a]), np.concatenate([b[:2], b]), name="pointers"
    )

    steps = elements(Opcode.TENSOR_SCALAR_REDUCE, dst=BF16, op0=AluOp.MULTIPLY.value, op1=AluOp.ADD.value)
    steps.append(result_step(steps[-1], FP32))
    words = alu(AluOp.MULTIPLY, a, s0)
    total = reduce_words(AluOp.ADD, np.ascontiguousarray(words.T))
    expected = np.concatenate([rounded(words, BF16), canonical(total)[np.newaxis]])
    longer = np.concatenate([a, a[:1]]), np.concatenate([b, b[:1]])
    yield Case(steps, expected, *longer, name="tensor_scalar_reduce")
    steps = elements(Opcode.TENSOR_REDUCE, op0=AluOp.MAX.value, negate=1, writes={ELEMENTS - 1})
    words = negative(reduce_words(AluOp.MAX, np.ascontiguousarray(a.T)), False)
    yield Case(steps, rounded(words[np.newaxis]), a, b, name="tensor_reduce")

    steps = elements(Opcode.TENSOR_TENSOR_SCAN, op0=AluOp.MULTIPLY.value, op1=AluOp.ADD.value, reverse0=1)
    start = np.full(LANES, s0)
    words = scan(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), start, AluOp.MULTIPLY, AluOp.ADD, True, False)
    yield Case(steps, rounded(words.T), a, b, interval=2, name="scan")

    steps = elements(Opcode.SELECT, keep=1)
    predicate = a * (rng.random(a.shape) < 0.5).astype(np.uint32)
    chosen = predicate << np.uint32(1) != 0
    enable = (chosen * (1 << np.arange(LANES))).sum(1)
    yield Case(steps, rounded(np.where(chosen, b, s0)), predicate, b, enable=enable, name="select")

    for p in (0.0, 0.3, 0.5, 1.0, 2.0**-40, np.nan):
        word = np.float32(p).view(np.uint32)
        steps = elements(Opcode.DROPOUT, scalar0=int(word))
        gone = dropped(element_words(*KEY, numbers())[1], word)
        yield Case(steps, rounded(np.where(gone, np.uint32(0), a)), a, b, name=f"dropout {p}")


def slow_cases(rng):
    a, b = operands(rng)
    latency, interval = cost(AluOp.DIVIDE)
    steps = elements(Opcode.RECIPROCAL, dst=BF16, stochastic=1)
    yield Case(steps, rounded(reciprocal(a), BF16, True), a, b, latency, interval, name="reciprocal, stochastic")
    for op0, op1 in (
        (AluOp.POWER, AluOp.ADD),
        (AluOp.ADD, AluOp.DIVIDE),
        (AluOp.DIVIDE, AluOp.DIVIDE),
        (AluOp.POWER, AluOp.DIVIDE),
        (AluOp.MULTIPLY, AluOp.POWER),
    ):
        latency, interval = cost(*(op for op in (op0, op1) if op in (AluOp.DIVIDE, AluOp.POWER)))
        steps = elements(Opcode.SCALAR_TENSOR_TENSOR, dst=FP16, op0=op0.value, op1=op1.value, reverse1=1, stochastic=1)
        words = chain(a, SCALARS[0], b, op0, op1, False, True)
        name = f"{op0.name}, {op1.name}"
        yield Case(steps, rounded(words, FP16, True), a, b, latency, interval, name=name)
    latency, interval = cost(AluOp.DIVIDE)
    steps = elements(Opcode.TENSOR_SCALAR_REDUCE, op0=AluOp.DIVIDE.value, op1=AluOp.ADD.value, reverse0=1)
    steps.append(result_step(steps[-1], FP32))
    words = alu(AluOp.DIVIDE, SCALARS[0], a)
    total = reduce_words(AluOp.ADD, np.ascontiguousarray(words.T))
    expected = np.concatenate([rounded(words), canonical(total)[np.newaxis]])
    longer = np.concatenate([a, a[:1]]), np.concatenate([b, b[:1]])
    yield Case(steps, expected, *longer, latency, interval, name="reduce quotients")


def wrong_cases(cases, results):
    """Return the names of cases whose results are not the expected words, in the expected cycle."""
    wrong = []
    for case, found in zip(cases, results, strict=True):
        latencies, words, enables = zip(*found, strict=True)
        enable = [3] * len(words) if case.enable is None else case.enable.tolist()
        late = {VectorBlock.LATENCY + case.latency}
        if list(words) != case.expected.tolist() or list(enables) != enable or set(latencies) != late:
            wrong.append(case.name)
    return wrong


@pytest.mark.parametrize("make", [ordinary_cases, slow_cases])
def test_results_are_those_of_golden_after_the_stated_latency(make, rng):
    cases = list(make(rng))
    assert wrong_cases(cases, played(cases, rng)) == []


def test_steps_that_come_too_fast_are_noticed(rng):
    cases = [case for case in ordinary_cases(rng) if case.name == "scan"] + list(slow_cases(rng))[:1]
    assert wrong_cases(cases, played(cases, rng, hurry=1)) == [case.name for case in cases]
