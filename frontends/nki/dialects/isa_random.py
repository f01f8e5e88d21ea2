"""Calls that draw random numbers: bits by stochastic rounding, whose words are this machine's (docs/numbers.md).

A half that is rounded stochastically to an integer is a random bit, and 2 n + a half another one behind those of n.
"""

from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, instruction
from neuroncore_rtl.frontends.nki.lowering.operands import common, scalar
from neuroncore_rtl.frontends.nki.lowering.running import column
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Draw, Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, INT32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["CALLS", "uniform"]

CALLS: dict[str, Call] = {}
"""The calls of this module."""

MOST = 16
"""Bits that are drawn into one integer: FP32 holds twice it, and a half, exactly."""

FRACTION = 24
"""Bits of a uniform number: those of FP32 from a half on."""

NOTE = "the random numbers are this machine's, the same in every run; an instruction for each bit"


@instruction(CALLS, "differs", NOTE, result=None, like="dst")
def rng(r: Recording, dst: View) -> None:
    """Dst = random bits, an integer's."""
    (target,) = common(r, dst.shape, dst)
    bits = dst.dtype.known.bits
    if dst.dtype.is_float:
        raise ValueError(f"{dst.name}: dst must be of an integer type, not {dst.dtype}")
    low = drawn(r, target, min(bits, MOST))
    if bits > MOST:
        high = drawn(r, target, bits - MOST)
        word = target.bitcast(INT32)
        joined = isa.scalar_tensor_tensor(word, high, MOST, AluOp.LOGICAL_SHIFT_LEFT, low, AluOp.BITWISE_OR)
        r.program.append(joined)
        return
    if not dst.dtype.signed:
        r.program.append(isa.tensor_copy(target, low))
        return
    sign = 1 << bits - 1
    r.program.append(isa.tensor_scalar(target, low, sign, AluOp.BITWISE_XOR, sign, AluOp.SUBTRACT))


@instruction(CALLS, "differs", f"what NeuronCore-v4 has; {NOTE}", result=None, like="dst")
def rand2(r: Recording, dst: View, min, max) -> None:
    """Dst = random numbers between two, all as probable."""
    (target,) = common(r, dst.shape, dst)
    lanes = target.partitions
    least, most = scalar(r, min, lanes), scalar(r, max, lanes)
    if isinstance(most, Tensor):
        span = column(r, "span", lanes)
        r.program.append(isa.tensor_scalar(span, most, least, AluOp.SUBTRACT))
    elif isinstance(least, Tensor):
        span = column(r, "span", lanes)
        r.program.append(isa.tensor_scalar(span, least, most, AluOp.SUBTRACT, reverse0=True))
    else:
        span = most - least
    r.program.append(isa.tensor_scalar(target, uniform(r, target), span, AluOp.MULTIPLY, least, AluOp.ADD))


def uniform(r: Recording, like: Tensor) -> Tensor:
    """Return a new tensor of FP32 numbers from 0 to below 1, all multiples of 2**-24 as probable."""
    high, low = drawn(r, like, MOST), drawn(r, like, FRACTION - MOST)
    numbers = r.program.space.sbuf("uniform", FP32, like.shape, like.partitions)
    shift = float(1 << FRACTION - MOST)
    r.program.append(isa.scalar_tensor_tensor(numbers, high, shift, AluOp.MULTIPLY, low, AluOp.ADD))
    r.program.append(isa.tensor_scalar(numbers, numbers, 2.0**-FRACTION, AluOp.MULTIPLY))
    return numbers


def drawn(r: Recording, like: Tensor, bits: int) -> Tensor:
    """Return a new tensor of INT32 numbers below 2**bits, all as probable."""
    numbers = r.program.space.sbuf("drawn", INT32, like.shape, like.partitions)

    def make() -> Tensor:
        half = column(r, "half", like.partitions)
        r.program.append(isa.memset(half, 0.5))
        return half

    half = r.once(("half", like.partitions), make)
    half = half.reshape(*(1,) * len(like.shape)).broadcast_to(*like.shape)
    r.program.append(isa.tensor_copy(numbers, half, stochastic=_draw(r)))
    for _ in range(1, bits):
        twice = isa.scalar_tensor_tensor(
            numbers, numbers, 2.0, AluOp.MULTIPLY, half, AluOp.ADD, stochastic=_draw(r)
        )  # fmt: skip
        r.program.append(twice)
    return numbers


def _draw(r: Recording) -> Draw:
    return Draw(seed=0, stream=next(r.streams))
