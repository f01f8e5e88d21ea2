"""Arithmetic of a reduction: the blocks of all ranks become one."""

import numpy as np

from neuroncore_rtl.golden.arith import round_fp32, round_stochastic, widen
from neuroncore_rtl.golden.collective.order import last_rank, orders
from neuroncore_rtl.golden.vector.alu import alu
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.isa.alu import AluOp, Arithmetic
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveType, ReduceOp

__all__ = ["reduce_blocks"]

_OPS = {ReduceOp.SUM: AluOp.ADD, ReduceOp.MAX: AluOp.MAX, ReduceOp.MIN: AluOp.MIN}


def reduce_blocks(parts: np.ndarray, instructions: list[Collective], block: int = 0) -> np.ndarray:
    """Return the reduction of one block over all ranks, codes [count]; a NaN in FP32 or BF16 is canonical.

    `parts` are codes [ranks, count] in memory: uint16 for BF16, else uint32. `block` is the block's index, for
    REDUCE_SCATTER.
    """
    first = instructions[0]
    bf16 = first.dtype == CollectiveType.BF16
    arithmetic = Arithmetic.INT32 if first.dtype == CollectiveType.INT32 else Arithmetic.FP32
    last = last_rank(first.kind, first.count, first.group.ranks, first.chunk, block)
    words = widen(parts, BF16) if bf16 else parts

    total = None
    for ranks in orders(last, first.group.ranks):
        word = words[ranks, np.arange(first.count)]
        if total is None:
            total = word
            continue
        if first.narrow:
            total = widen(round_fp32(total, BF16), BF16)
        total = alu(_OPS[first.op], total, word, arithmetic)
    assert total is not None, "a group has ranks"
    return _rounded(total, last, instructions) if bf16 else total


def _rounded(total: np.ndarray, last: np.ndarray, instructions: list[Collective]) -> np.ndarray:
    if not instructions[0].stochastic:
        return round_fp32(total, BF16)
    codes = np.empty(len(total), np.uint16)
    for rank in np.unique(last):
        (own,) = np.nonzero(last == rank)
        codes[own] = round_stochastic(total[own], BF16, instructions[rank].seed, instructions[rank].stream, own)
    return codes
