"""Engine selection for on-chip copies, which the vector and the scalar engine can both execute.

If the kernel names no engine, the one with fewer busy cycles is used. Long copies are distributed piece by piece, so
that dependent instructions can start after the first piece.
"""

from enum import Enum

from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program.instructions import activation, tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.spec import isa

__all__ = ["LoweredEngine", "append_copy"]

PIECE = 128
"""Elements per partition of a piece if the kernel names no engine: the largest array's transposition width."""


class LoweredEngine(Enum):
    """Engine that a kernel selects for a call; the members have the names in `nisa.engine`."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


def append_copy(r: Recording, dst: Tensor, src: Tensor, *, engine: LoweredEngine | None = None) -> None:
    """Append dst = src with a cast, for tensors on chip; both engines give the same bits.

    The scalar engine computes in floats, so it copies only floats, and nothing while it holds running sums, because
    each of its instructions resets them. An `engine` other than `unknown` and `scalar` means the vector engine.
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
        # x + -0 is x, also for zeros of both signs.
        r.program.append(activation(dst, src, "identity"))
    else:
        r.program.append(tensor_copy(dst, src))


def _scalar_has_less(r: Recording) -> bool:
    scalar, vector = r.busy(isa.Engine.SCALAR), r.busy(isa.Engine.VECTOR)
    return scalar < vector
