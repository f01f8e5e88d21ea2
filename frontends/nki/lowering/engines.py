"""Which engine does what several of them can: copies on chip, by the vector or by the scalar engine.

The interface lets a kernel name one, or leaves the choice open: then the one that has had less to do so far takes it,
and of a long copy piece by piece, so that what follows begins with the first piece.
"""

from enum import Enum

from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program.instructions import activation, tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.spec import isa

__all__ = ["LoweredEngine", "append_copy"]

PIECE = 128
"""Elements of a partition that are copied at once if the kernel names no engine: as many as the largest array turns."""


class LoweredEngine(Enum):
    """`nisa.engine`: engines."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


def append_copy(r: Recording, dst: Tensor, src: Tensor, *, engine: LoweredEngine | None = None) -> None:
    """Append dst = src, cast, the same bits by either engine.

    The scalar engine takes copies of floating-point numbers, as it calculates with those, and none while its lanes hold
    running sums, as every instruction of its own starts them anew.

    Arguments:
        dst, src: on chip.
        engine: that the kernel names; the vector engine stands for all that are neither `unknown` nor the scalar one.
    """
    named = (engine or LoweredEngine.unknown).name
    if named == "unknown" and len(dst.shape) == 1:
        for part in cut(0, dst.size, PIECE):
            _append_piece(r, dst[:, part], src[:, part], named)
    else:
        _append_piece(r, dst, src, named)


def _append_piece(r: Recording, dst: Tensor, src: Tensor, engine: str) -> None:
    able = dst.format.is_float and src.format.is_float and not r.lanes_summing
    if able and (engine == "scalar" or (engine == "unknown" and _scalar_has_less(r))):
        # x + -0 is x for zeros of both signs.
        r.program.append(activation(dst, src, "identity", bias=-0.0))
    else:
        r.program.append(tensor_copy(dst, src))


def _scalar_has_less(r: Recording) -> bool:
    scalar, vector = r.busy(isa.Engine.SCALAR), r.busy(isa.Engine.VECTOR)
    return scalar < vector
