"""Copies, products and sums with a scalar, which the vector and the scalar engine can both execute.

If the kernel names no engine, the program selects one (`kernels.program.engine_selection`). Long copies are distributed
piece by piece, so that dependent instructions can start after the first piece, unless an instruction takes time besides
its elements.
"""

from enum import Enum

from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program.instructions import activation, tensor_copy, tensor_scalar
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.alu import AluOp

__all__ = ["LoweredEngine", "append_copy", "append_scaled"]

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

    The scalar engine computes in floats, so it copies only floats, and nothing between the parts of a running sum,
    because each of its instructions resets the sums. An `engine` other than `unknown` and `scalar` means the vector
    engine.
    """
    named = (engine or LoweredEngine.unknown).name
    if named == "unknown" and len(dst.shape) == 1 and not r.program.config.access_cycles:
        for part in cut(0, dst.size, PIECE):
            _append_piece(r, dst[:, part], src[:, part], named)
    else:
        _append_piece(r, dst, src, named)


def append_scaled(
    r: Recording, dst: Tensor, src: Tensor, op: AluOp, operand: float | Tensor, engine: LoweredEngine | None
) -> bool:
    """Append dst = op(src, operand) for the scalar engine and return True, or False if the vector engine must do it.

    The scalar engine multiplies or adds floats with the same bits. It does so if the kernel names it. On a machine at
    the silicon's rates the program also selects the engine if the kernel names none and the operation is long.
    """
    named = (engine or LoweredEngine.unknown).name
    fits = op in (AluOp.MULTIPLY, AluOp.ADD) and not (isinstance(operand, Tensor) and operand.format is not FP32)
    able = fits and dst.format.is_float and src.format.is_float
    free = named == "unknown" and r.program.config.rates and dst.size >= PIECE
    if not able or not (free or (named == "scalar" and not r.lanes_summing)):
        return False
    # x * 1 is x, and x + -0 is x.
    factor, shift = (operand, -0.0) if op is AluOp.MULTIPLY else (1.0, operand)
    scaled = activation(dst, src, "identity", factor, shift)
    if free:
        r.program.append(tensor_scalar(dst, src, operand, op), other=scaled)
    else:
        r.program.append(scaled)
    return True


def _append_piece(r: Recording, dst: Tensor, src: Tensor, engine: str) -> None:
    able = dst.format.is_float and src.format.is_float
    # x + -0 is x, also for zeros of both signs.
    if able and engine == "unknown":
        r.program.append(tensor_copy(dst, src), other=activation(dst, src, "identity"))
    elif able and engine == "scalar" and not r.lanes_summing:
        r.program.append(activation(dst, src, "identity"))
    else:
        r.program.append(tensor_copy(dst, src))
