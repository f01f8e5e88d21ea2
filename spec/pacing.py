"""Paces of the vector and the scalar engine: cycles of the engines' own clocks that NeuronCore-v2's instructions take.

The cycles are published in the `nki.isa` pages of AWS's SDK 2.26. All clocks here are fractions of the machine's one
clock (`Config.vector_speed` and others), so times are counted in ticks, of which each cycle has `Pace.ticks`.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import lcm

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP16
from neuroncore_rtl.spec.isa import AluOp, Elementwise, Engine, Instruction, Opcode, Pointer, Storage

__all__ = [
    "ALWAYS_TWO", "GPSIMD", "HALVES", "QUICK_FUSED", "QUICK_REDUCTIONS", "QUICK_SUMS", "UNLIMITED", "ZERO_FORMATS",
    "Pace", "PacedInstruction", "own_clock", "pace_of", "paced",
]  # fmt: skip

GPSIMD = Opcode.IOTA, Opcode.AFFINE_SELECT
"""Opcodes that GpSimd executes on NeuronCore-v2; here the vector engine executes them, at `Config.gpsimd_speed`."""

UNLIMITED = Opcode.MAX8, Opcode.FIND_INDEX8, Opcode.TENSOR_REDUCE, Opcode.SCALAR_TENSOR_TENSOR
"""Opcodes with a published cost without a minimum; `Config.least_interval` does not apply."""

HALVES = {Opcode.RECIPROCAL: 5, Opcode.BN_AGGR: 8}
"""Half cycles per element, if other than 2, and other than 4 for two operands in SBUF. BN_AGGR's 13 / 3 cycles are
rounded to 4, the lanes' own interval. RECIPROCAL's 2.5 are not the published 8, but what a kernel measured on the
silicon takes, 2.42, rounded (docs/rates.md).
"""

ALWAYS_TWO = Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_TENSOR_SCAN
"""Opcodes that take two cycles per element wherever their operands are."""

QUICK_SUMS = AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY
"""A TENSOR_TENSOR of BF16 tensors with these operations takes one cycle per element."""

QUICK_FUSED = AluOp.SUBTRACT, AluOp.MULTIPLY
"""A SCALAR_TENSOR_TENSOR of BF16 tensors with these two operations takes one cycle per element."""

QUICK_REDUCTIONS = AluOp.ADD, AluOp.MAX
"""A TENSOR_REDUCE of a BF16 tensor with these operations takes half a cycle per element."""

ZERO_FORMATS = BF16, FP16
"""A MEMSET of zeros in these formats takes half a cycle per element."""


@dataclass(frozen=True)
class Pace:
    """Ticks of an engine.

    Arguments:
        ticks: in a cycle of the machine.
        half: in half a cycle of the engine's own clock.
        gpsimd_half: in half a cycle of the clock of the opcodes in `GPSIMD`.
        start: that the first step of these opcodes takes besides its element.
        least: minimum from the first step of an instruction to the first step of the next one; reading a running result
            takes as many more.
        access: after the last step of an instruction, except those in `GPSIMD`.
    """

    ticks: int
    half: int
    gpsimd_half: int
    start: int
    least: int
    access: int


@dataclass(frozen=True)
class PacedInstruction:
    """Ticks of an instruction.

    Arguments:
        ticks: in a cycle of the machine.
        start: that the first step takes besides its element.
        element: of an element.
        readout: after the last element, for reading a running result.
        least: minimum from the first step to the next instruction's, besides `readout`.
        access: after the last step.
    """

    ticks: int
    start: int
    element: int
    readout: int
    least: int
    access: int


@cache
def pace_of(engine: Engine, config: Config) -> Pace | None:
    """Return the pace of the vector or the scalar engine; None if each step takes one cycle of the machine."""
    vector = engine == Engine.VECTOR
    speeds = (config.vector_speed, config.gpsimd_speed) if vector else (config.scalar_speed,) * 2
    start = config.gpsimd_start if vector else 0
    if speeds == (100, 100) and not start and not config.least_interval and not config.access_cycles:
        return None
    half, gpsimd_half = (Fraction(50, speed) for speed in speeds)
    ticks = lcm(half.denominator, gpsimd_half.denominator)
    half, gpsimd_half = int(half * ticks), int(gpsimd_half * ticks)
    least, access = config.least_interval * 2 * half, config.access_cycles * 2 * half
    return Pace(ticks, half, gpsimd_half, start * 2 * gpsimd_half, least, access)


def paced(instruction: Elementwise, config: Config) -> PacedInstruction | None:
    """Return the ticks of an instruction; None if its engine is not paced."""
    pace = pace_of(instruction.engine, config)
    if pace is None:
        return None
    opcode = instruction.opcode
    if opcode in GPSIMD:
        return PacedInstruction(pace.ticks, pace.start, 2 * pace.gpsimd_half, 0, pace.least, 0)
    reads_out = opcode == Opcode.TENSOR_SCALAR_REDUCE or (opcode == Opcode.ACTIVATE and instruction.sum_store)
    least = 0 if opcode in UNLIMITED else pace.least
    readout = pace.least if reads_out else 0
    return PacedInstruction(pace.ticks, 0, _halves(instruction) * pace.half, readout, least, pace.access)


def own_clock(instruction: Instruction, config: Config) -> int:
    """Return the clock of an instruction's engine, in percent of the machine's one clock."""
    if getattr(instruction, "opcode", None) in GPSIMD:
        return config.gpsimd_speed
    return {Engine.VECTOR: config.vector_speed, Engine.SCALAR: config.scalar_speed}.get(instruction.engine, 100)


def _halves(one: Elementwise) -> int:
    """Return the published half cycles per element of an instruction."""
    opcode = one.opcode
    used = [access for access in (one.a, one.b) if access is not None]
    narrow = all(access.format is BF16 for access in (*used, one.dst))
    if opcode == Opcode.TENSOR_REDUCE:
        return 1 if used[0].format is BF16 and one.op0 in QUICK_REDUCTIONS else 2
    if opcode == Opcode.MEMSET:
        zero = not isinstance(one.s0, Pointer) and one.s0 == 0
        return 1 if zero and one.dst.format in ZERO_FORMATS else 2
    if opcode == Opcode.TENSOR_TENSOR and narrow and one.op0 in QUICK_SUMS:
        return 2
    if opcode == Opcode.SCALAR_TENSOR_TENSOR and narrow and (one.op0, one.op1) == QUICK_FUSED:
        return 2
    if opcode in ALWAYS_TWO:
        return 4
    if opcode in (Opcode.TENSOR_TENSOR, Opcode.SELECT) and all(access.storage == Storage.SBUF for access in used):
        return 4
    return HALVES.get(opcode, 2)
