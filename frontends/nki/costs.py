"""Published cycles of instructions on NeuronCore-v2, for comparison with this RTL.

The formulas are from the `nki.isa` pages of AWS's SDK 2.26; later editions contain no formulas. N is the number of
elements per partition, S the number of stationary columns. The unit is the engine's clock; copies to and from HBM are
not covered.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.source import Line
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.isa import Access, AluOp, Elementwise, Instruction, MultiplyMoving, Storage
from neuroncore_rtl.spec.pacing import own_clock

__all__ = ["PublishedCost", "published_by_line", "published_cost"]

LEAST = 64
"""Approximate minimum cycles of an instruction."""


@dataclass(frozen=True)
class PublishedCost:
    """Published formula for the cycles of an instruction, and its value."""

    formula: str
    cycles: float


def _elements(instruction: Elementwise) -> int:
    return prod(instruction.shape)


def _sources(instruction: Elementwise) -> list[Access]:
    return [source for source in (instruction.a, instruction.b) if source is not None]


def _each(instruction: Elementwise) -> PublishedCost:
    return PublishedCost("max(64, N)", max(LEAST, _elements(instruction)))


def _twice(instruction: Elementwise) -> PublishedCost:
    return PublishedCost("max(64, 2N)", max(LEAST, 2 * _elements(instruction)))


def _and_a_read(instruction: Elementwise) -> PublishedCost:
    return PublishedCost("max(64, N) + 64", max(LEAST, _elements(instruction)) + LEAST)


def _two_operands(instruction: Elementwise) -> PublishedCost:
    operands = _sources(instruction)
    simple = {instruction.op0} <= {AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY}
    halves = simple and {operand.format for operand in (*operands, instruction.dst)} == {BF16}
    one_in_psum = [operand.storage for operand in operands].count(Storage.PSUM) == 1
    return _each(instruction) if one_in_psum or halves else _twice(instruction)


def _fused(instruction: Elementwise) -> PublishedCost:
    halves = {operand.format for operand in (*_sources(instruction), instruction.dst)} == {BF16}
    quick = (instruction.op0, instruction.op1) == (AluOp.SUBTRACT, AluOp.MULTIPLY) and _elements(instruction) % 2 == 0
    if halves and quick:
        return PublishedCost("N", _elements(instruction))
    return PublishedCost("2N", 2 * _elements(instruction))


def _select(instruction: Elementwise) -> PublishedCost:
    split = len({source.storage for source in _sources(instruction)}) > 1
    return _each(instruction) if split else _twice(instruction)


def _reduce(instruction: Elementwise) -> PublishedCost:
    halved = _sources(instruction)[0].format is BF16 and instruction.op0 in (AluOp.ADD, AluOp.MAX)
    return PublishedCost("N / 2" if halved else "N", _elements(instruction) / (2 if halved else 1))


def _memset(instruction: Elementwise) -> PublishedCost:
    halved = instruction.dst.format.bits == 16 and instruction.s0 == 0
    count = _elements(instruction) / (2 if halved else 1)
    return PublishedCost("max(64, N / 2)" if halved else "max(64, N)", max(LEAST, count))


def _product(instruction: MultiplyMoving) -> PublishedCost:
    columns = max(min(LEAST, instruction.m), instruction.n)
    return PublishedCost("max(min(64, S), N)", columns)


_COSTS: dict[str, Callable[[Any], PublishedCost]] = {
    "MULTIPLY_MOVING": _product,
    "ACTIVATE": lambda one: _and_a_read(one) if one.sum_store else _each(one),
    "TENSOR_SCALAR_REDUCE": _and_a_read,
    "TENSOR_TENSOR": _two_operands,
    "SCALAR_TENSOR_TENSOR": _fused,
    "TENSOR_TENSOR_SCAN": _twice,
    "TENSOR_REDUCE": _reduce,
    "SELECT": _select,
    "MEMSET": _memset,
    "RECIPROCAL": lambda one: PublishedCost("max(64, 8N)", max(LEAST, 8 * _elements(one))),
    "BN_AGGR": lambda one: PublishedCost("max(64, 13N / 3)", max(LEAST, 13 * _elements(one) / 3)),
    **dict.fromkeys(("MAX8", "FIND_INDEX8"), lambda one: PublishedCost("N", _elements(one))),
    **dict.fromkeys(("IOTA", "AFFINE_SELECT"), lambda one: PublishedCost("150 + N", 150 + _elements(one))),
    **dict.fromkeys(("TENSOR_COPY", "TENSOR_SCALAR", "BN_STATS", "DROPOUT", "TRANSPOSE"), _each),
}


def published_cost(instruction: Instruction) -> PublishedCost | None:
    """Return the published cost of an instruction; None if there is no formula."""
    found = _COSTS.get(instruction.name)
    return found and found(instruction)


def published_by_line(entries: Iterable[Entry], config: Config) -> dict[Line, PublishedCost]:
    """Return the published cost per kernel line: the cycles of its instructions, and all formulas used.

    The cycles are those of the machine's clock, of which the engine's own clock is a fraction.
    """
    formulas: dict[Line, dict[str, None]] = {}
    cycles: dict[Line, float] = {}
    for entry in entries:
        cost = published_cost(entry.instruction)
        if cost is not None:
            line = entry.source.user
            formulas.setdefault(line, {})[cost.formula] = None
            cycles[line] = cycles.get(line, 0) + cost.cycles * 100 / own_clock(entry.instruction, config)
    return {line: PublishedCost("; ".join(found), cycles[line]) for line, found in formulas.items()}
