"""Calls that draw random bits by stochastic rounding with this machine's random words (docs/numbers.md).

Rounding 1/2 stochastically to an integer gives a random bit; rounding 2 n + 1/2 appends one to n.
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

MOST = 16
"""Maximum bits drawn into one integer: FP32 holds 2 n + 1/2 exactly."""

FRACTION = 24
"""Bits of a uniform number: FP32's precision from 1/2 on."""

NOTE = "this machine's random numbers, the same in every run; one instruction per bit"


@instruction(CALLS, "differs", NOTE, result=None, like="dst")
def rng(r: Recording, dst: View) -> None:
    """Fill dst with random bits; integer types only."""
    (target,) = common(r, dst.shape, dst)
    bits = dst.dtype.machine_format.bits
    if dst.dtype.is_float:
        raise ValueError(f"{dst.name}: dst must have an integer type, not {dst.dtype}")
    low = random_integers(r, target, min(bits, MOST))
    if bits > MOST:
        high = random_integers(r, target, bits - MOST)
        word = target.bitcast(INT32)
        joined = isa.scalar_tensor_tensor(word, high, MOST, AluOp.LOGICAL_SHIFT_LEFT, low, AluOp.BITWISE_OR)
        r.program.append(joined)
        return
    if not dst.dtype.signed:
        r.program.append(isa.tensor_copy(target, low))
        return
    sign = 1 << bits - 1
    r.program.append(isa.tensor_scalar(target, low, sign, AluOp.BITWISE_XOR, sign, AluOp.SUBTRACT))


@instruction(CALLS, "differs", f"a NeuronCore-v4 call; {NOTE}", result=None, like="dst")
def rand2(r: Recording, dst: View, min, max) -> None:
    """Fill dst with uniform random numbers from min to max."""
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
    """Return a new FP32 tensor, uniform over the multiples of 2**-24 in [0, 1)."""
    high, low = random_integers(r, like, MOST), random_integers(r, like, FRACTION - MOST)
    numbers = r.program.space.sbuf("uniform", FP32, like.shape, like.partitions)
    shift = float(1 << FRACTION - MOST)
    r.program.append(isa.scalar_tensor_tensor(numbers, high, shift, AluOp.MULTIPLY, low, AluOp.ADD))
    r.program.append(isa.tensor_scalar(numbers, numbers, 2.0**-FRACTION, AluOp.MULTIPLY))
    return numbers


def random_integers(r: Recording, like: Tensor, bits: int) -> Tensor:
    """Return a new INT32 tensor, uniform over [0, 2**bits)."""
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
