"""Engine selection for what the vector and the scalar engine can both execute: copies, products and sums with a scalar.

If the kernel names no engine, the one with fewer busy cycles is used. Long copies are distributed piece by piece, so
that dependent instructions can start after the first piece, unless an instruction takes time besides its elements.
"""

from enum import Enum

from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program.instructions import activation, tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.alu import AluOp

__all__ = ["LoweredEngine", "append_copy", "append_on_scalar"]

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
    if named == "unknown" and len(dst.shape) == 1 and not r.program.config.access_cycles:
        for part in cut(0, dst.size, PIECE):
            _append_piece(r, dst[:, part], src[:, part], named)
    else:
        _append_piece(r, dst, src, named)


def append_on_scalar(
    r: Recording, dst: Tensor, src: Tensor, op: AluOp, operand: float | Tensor, engine: LoweredEngine | None
) -> bool:
    """Append dst = op(src, operand) on the scalar engine and return True, or False if the vector engine must do it.

    The scalar engine multiplies or adds floats with the same bits. It does so if the kernel names it. On a machine at
    the silicon's rates it also does so if the kernel names no engine, the operation is long, and the scalar engine has
    less to do, as AWS's compiler does.
    """
    named = (engine or LoweredEngine.unknown).name
    fits = op in (AluOp.MULTIPLY, AluOp.ADD) and not (isinstance(operand, Tensor) and operand.format is not FP32)
    able = fits and dst.format.is_float and src.format.is_float and not r.lanes_summing
    chosen = named == "unknown" and r.program.config.rates and dst.size >= PIECE and _scalar_has_less(r)
    wanted = bool(named == "scalar" or chosen)
    if able and wanted:
        # x * 1 is x, and x + -0 is x.
        factor, shift = (operand, -0.0) if op is AluOp.MULTIPLY else (1.0, operand)
        r.program.append(activation(dst, src, "identity", factor, shift))
    return able and wanted


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
