"""Untimed interpreter of the vector engine's instructions."""

import numpy as np

from neuroncore_rtl.golden.elementwise.operands import Operands
from neuroncore_rtl.golden.vector.operations import apply, chain, nonzero, reciprocal
from neuroncore_rtl.golden.vector.position import affine_mask, dropped, iota, transpose
from neuroncore_rtl.golden.vector.reduction import negative, reduce_words, scan
from neuroncore_rtl.golden.vector.search import find_index8, match_replace8, max8
from neuroncore_rtl.golden.vector.statistics import bn_aggr, bn_stats
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import VECTOR_OPCODES, Context, Elementwise, Opcode
from neuroncore_rtl.spec.isa.alu import Arithmetic
from neuroncore_rtl.spec.isa.elementwise import transpose_block

__all__ = ["VectorEngine"]


class VectorEngine:
    """Functional model of the vector engine: executes vector instructions in order.

    An instruction reads all sources before it writes; of two writes to one address the later one remains.
    """

    def __init__(self, config: Config):
        self.config = config

    def execute(self, instruction: Elementwise, sbuf: np.ndarray, psum: np.ndarray) -> None:
        """Execute one of `spec.isa.VECTOR_OPCODES`; raise ValueError if it is illegal, or reaches beyond a memory.

        The memories `sbuf` and `psum` are uint8 [partitions, bytes], elements little-endian.
        """
        if instruction.opcode not in VECTOR_OPCODES:
            raise ValueError(f"opcode must be one of the vector engine's, not {instruction.opcode!r}")
        instruction.check(Context(self.config))
        self.perform(instruction, sbuf, psum)

    def perform(self, instruction: Elementwise, sbuf: np.ndarray, psum: np.ndarray) -> None:
        """Execute one legal instruction without checks, see `execute`."""
        operands = Operands(instruction, self.config, sbuf, psum)
        if instruction.opcode == Opcode.TRANSPOSE:
            operands.write_codes(transpose(operands.codes("a"), transpose_block(self.config)))
        else:
            _EXECUTE[instruction.opcode](instruction, operands)


def _tensor_copy(i: Elementwise, on: Operands) -> None:
    on.write(on.words("a"))


def _memset(i: Elementwise, on: Operands) -> None:
    on.write(np.broadcast_to(on.scalar("s0"), (on.partitions, *on.shape)))


def _tensor_tensor(i: Elementwise, on: Operands) -> None:
    on.write(apply(i.op0, on.words("a"), on.words("b"), arithmetic=on.arithmetic))


def _tensor_scalar(i: Elementwise, on: Operands) -> None:
    operations = i.op0, i.op1, i.reverse0, i.reverse1, on.arithmetic
    on.write(chain(on.words("a"), on.scalar("s0"), on.scalar("s1"), *operations))


def _scalar_tensor_tensor(i: Elementwise, on: Operands) -> None:
    operations = i.op0, i.op1, i.reverse0, i.reverse1, on.arithmetic
    on.write(chain(on.words("a"), on.scalar("s0"), on.words("b"), *operations))


def _tensor_scalar_reduce(i: Elementwise, on: Operands) -> None:
    words = apply(i.op0, on.words("a"), on.scalar("s0"), i.reverse0, on.arithmetic)
    on.write(words)
    on.write_result(reduce_words(i.op1, on.flat(words), on.arithmetic))


def _tensor_reduce(i: Elementwise, on: Operands) -> None:
    words = on.words("a")
    kept = words.shape[: words.ndim - i.axes]
    result = reduce_words(i.op0, words.reshape(*kept, -1), on.arithmetic)
    on.write(negative(result, on.arithmetic) if i.negate else result, axes=i.axes)


def _tensor_tensor_scan(i: Elementwise, on: Operands) -> None:
    a, b = on.flat(on.words("a")), on.flat(on.words("b"))
    start = np.broadcast_to(on.scalar("s0").reshape(-1), on.partitions)
    on.write(scan(a, b, start, i.op0, i.op1, i.reverse0, i.reverse1, on.arithmetic))


def _bn_stats(i: Elementwise, on: Operands) -> None:
    on.write(bn_stats(on.flat(on.words("a"))))


def _bn_aggr(i: Elementwise, on: Operands) -> None:
    on.write(bn_aggr(on.flat(on.words("a"))))


def _reciprocal(i: Elementwise, on: Operands) -> None:
    on.write(reciprocal(on.words("a")))


def _select(i: Elementwise, on: Operands) -> None:
    chosen = nonzero(on.fp32("a"))
    on.write(np.where(chosen, on.words("b"), on.scalar("s0")), where=chosen if i.keep else None)


def _affine_select(i: Elementwise, on: Operands) -> None:
    on.write(np.where(affine_mask(on.index(), i.op0), on.words("a"), on.scalar("s0")))


def _iota(i: Elementwise, on: Operands) -> None:
    on.write(on.loaded(iota(on.index()), INT32))


def _max8(i: Elementwise, on: Operands) -> None:
    on.write(max8(on.flat(on.words("a")), on.arithmetic))


def _find_index8(i: Elementwise, on: Operands) -> None:
    positions = find_index8(on.flat(on.words("a")), on.flat(on.words("b")), on.arithmetic)
    on.write_positions(positions.view(np.uint32))


def _match_replace8(i: Elementwise, on: Operands) -> None:
    replacement = on.scalar("s0").reshape(-1, 1)
    on.write(match_replace8(on.flat(on.words("a")), on.flat(on.words("b")), replacement, on.arithmetic))


def _dropout(i: Elementwise, on: Operands) -> None:
    gone = dropped(on.random()[1], on.scalar("s0", Arithmetic.FP32))
    on.write(np.where(gone, np.uint32(0), on.words("a")))


_EXECUTE = {
    Opcode.TENSOR_COPY: _tensor_copy,
    Opcode.MEMSET: _memset,
    Opcode.TENSOR_TENSOR: _tensor_tensor,
    Opcode.TENSOR_SCALAR: _tensor_scalar,
    Opcode.SCALAR_TENSOR_TENSOR: _scalar_tensor_tensor,
    Opcode.TENSOR_SCALAR_REDUCE: _tensor_scalar_reduce,
    Opcode.TENSOR_REDUCE: _tensor_reduce,
    Opcode.TENSOR_TENSOR_SCAN: _tensor_tensor_scan,
    Opcode.BN_STATS: _bn_stats,
    Opcode.BN_AGGR: _bn_aggr,
    Opcode.RECIPROCAL: _reciprocal,
    Opcode.SELECT: _select,
    Opcode.AFFINE_SELECT: _affine_select,
    Opcode.IOTA: _iota,
    Opcode.MAX8: _max8,
    Opcode.FIND_INDEX8: _find_index8,
    Opcode.MATCH_REPLACE8: _match_replace8,
    Opcode.DROPOUT: _dropout,
}
"""Function of each opcode, except TRANSPOSE, which moves codes instead of words."""
