"""Pacer: the cycles in which steps are offered, against rational arithmetic."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from amaranth.hdl import Const

from neuroncore_rtl.hdl.elementwise.issue import ElementwiseIssue
from neuroncore_rtl.hdl.elementwise.pacer import Pacer
from neuroncore_rtl.hdl.elementwise.step import Phase
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import AluOp, Engine, Opcode, Storage
from neuroncore_rtl.spec.pacing import pace_of
from tests.hdl.streams import play

SPEEDS = {"vector_speed": 37, "gpsimd_speed": 41, "gpsimd_start": 11, "least_interval": 9, "access_cycles": 6}
MACHINE = Config(rows=4, columns=4, **SPEEDS)

CASES = {
    Opcode.TENSOR_COPY: (1, True),
    Opcode.TENSOR_TENSOR: (2, True),
    Opcode.TENSOR_SCALAR_REDUCE: (1, True),
    Opcode.TENSOR_REDUCE: (Fraction(1, 2), False),
    Opcode.IOTA: (1, True),
    Opcode.MAX8: (1, False),
}
"""Opcodes with the cycles of their own clock per element, and whether the minimum applies."""


def packed(opcode: Opcode, final: int, **step) -> int:
    fmt, place = BF16 if opcode == Opcode.TENSOR_REDUCE else FP32, {"storage": int(Storage.SBUF)}
    step |= {"opcode": int(opcode), "op0": AluOp.ADD.value}
    step |= dict.fromkeys(("a_dtype", "b_dtype", "dst_dtype"), fmt.code)
    return Const.cast(ElementwiseIssue.const({"step": step, "write": {"last": final}, "a": place, "b": place})).value


def instruction(opcode: Opcode, elements: int) -> list[dict]:
    results = {Opcode.TENSOR_SCALAR_REDUCE: 1, Opcode.MAX8: 8}.get(opcode, 0)
    phases = [(Phase.ELEMENT, number == elements - 1) for number in range(elements)]
    phases += [(Phase.RESULT, number == results - 1) for number in range(results)]
    return [
        {"opcode": opcode, "phase": phase, "last": int(last), "final": int(number == len(phases) - 1)}
        for number, (phase, last) in enumerate(phases)
    ]


def offered_cycles(steps: list[dict], accepted: list[int], begin: int) -> list[int]:
    """Return the cycles of the offers; each step arrives the cycle after the previous one was accepted."""
    clock, gpsimd = Fraction(100, SPEEDS["vector_speed"]), Fraction(100, SPEEDS["gpsimd_speed"])
    due = next_first = Fraction(0)
    found, fresh = [], True
    for step, before in zip(steps, [begin - 1, *accepted], strict=False):
        opcode = step["opcode"]
        own, is_element = gpsimd if opcode == Opcode.IOTA else clock, step["phase"] == Phase.ELEMENT
        each, limited = CASES[opcode]
        due = max(due, next_first) if fresh else due
        cycle = max(before + 1, int(due))
        found.append(cycle)
        due = max(due, Fraction(cycle))
        if fresh:
            next_first = due + SPEEDS["least_interval"] * clock * limited
            due += SPEEDS["gpsimd_start"] * gpsimd * (opcode == Opcode.IOTA)
        due += each * own * is_element
        if opcode == Opcode.TENSOR_SCALAR_REDUCE and is_element and step["last"]:
            readout = SPEEDS["least_interval"] * clock
            due, next_first = due + readout, max(next_first, Fraction(cycle)) + readout
        fresh = bool(step["final"])
        due += SPEEDS["access_cycles"] * clock * (fresh and opcode != Opcode.IOTA)
    return found


@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_steps_are_offered_at_the_rate_of_the_engines_clock(stall):
    rng = np.random.default_rng(7)
    steps = [
        step for _ in range(40) for step in instruction(Opcode(rng.choice([*CASES])), int(rng.choice([1, 2, 5, 20])))
    ]
    dut = Pacer(pace_of(Engine.VECTOR, MACHINE))
    words = [packed(**step) for step in steps]
    played = play(
        dut, {"i": words}, {"o": len(words)}, stall={"i": 0.0, "o": stall}, watch=[dut.o.valid, dut.busy], seed=3
    )
    assert played.payloads["o"] == words
    accepted = played.cycles["o"]
    waits = (range(before + 1, cycle + 1) for before, cycle in pairwise([-1, *accepted]))
    offers = [next(cycle for cycle in wait if played.watched[cycle][0]) for wait in waits]
    assert offers == offered_cycles(steps, accepted, offers[0])
    assert not played.watched[-1][1] and any(busy for _, busy in played.watched)


def test_an_engine_at_the_machines_clock_has_no_pacer():
    assert pace_of(Engine.VECTOR, Config(rows=4, columns=4)) is None
    assert pace_of(Engine.SCALAR, Config(rows=4, columns=4, vector_speed=40, gpsimd_start=9)) is None
