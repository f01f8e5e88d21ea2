"""AdamW optimiser (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019).

Only two scalars and the random words of stochastic rounding change from step to step. The scalars are constants in an
unrolled program (`adamw`), and in memory if a step is run repeatedly (`next_correction`).
"""

from dataclasses import dataclass
from math import sqrt

from neuroncore_rtl.kernels.program import Draw, Program, Tensor
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    memset,
    reciprocal,
    scalar_tensor_tensor,
    tensor_scalar,
    tensor_tensor,
)
from neuroncore_rtl.kernels.program.operands import ScalarOperand
from neuroncore_rtl.kernels.tiling.rows import Rows, tiles_of
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["AdamW", "Correction", "adamw", "descend", "first_powers", "next_correction", "update"]

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.DIVIDE


@dataclass(frozen=True, kw_only=True)
class AdamW:
    """Hyperparameters of AdamW, with PyTorch's defaults; `epsilon` is added to the root of the second moment."""

    rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 1e-2


@dataclass(frozen=True)
class Correction:
    """Bias correction of AdamW's moments, which start at zero; each factor is a number or one element per partition.

    `pace` is the corrected learning rate, rate / (1 - beta1**step); `scale` the factor of the second moment,
    1 / (1 - beta2**step).
    """

    pace: ScalarOperand
    scale: ScalarOperand


def adamw(
    program: Program,
    parameters: Rows,
    first: Rows,
    second: Rows,
    gradients: Rows,
    step: int,
    options: AdamW,
    seed: int | None = None,
) -> None:
    """Append a step, which updates the parameters p and the moments m and v in place.

    m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g**2;
    p = (1 - rate decay) p - rate / (1 - beta1**step) m / (sqrt(v / (1 - beta2**step)) + epsilon)

    Steps are numbered from 1; ValueError otherwise. `seed` selects stochastic rounding of p, with a stream per step;
    None rounds to nearest even.
    """
    if step < 1:
        raise ValueError(f"step must be at least 1, not {step!r}")
    o = options
    correction = Correction(o.rate / (1 - o.beta1**step), 1 / (1 - o.beta2**step))
    tiles = tiles_of(parameters, first, second, gradients)
    for (p, m, v, g), draw in zip(tiles, parameters.draws(seed, step), strict=True):
        direction, decayed = update(program, p, m, v, g, correction, options)
        descend(program, p, direction, decayed, correction, draw)


def update(
    program: Program, p: Tensor, m: Tensor, v: Tensor, g: Tensor, correction: Correction, options: AdamW
) -> tuple[Tensor, Tensor]:
    """Append the first part of a step, which updates the moments m and v but not the parameters p.

    Return m / (sqrt(v / (1 - beta2**step)) + epsilon) and (1 - rate decay) p, in FP32.
    """
    o, space = options, program.space
    a, b, c = (space.sbuf(f"{name} of {p.name}", FP32, p.shape, p.partitions) for name in ("direction", "b", "decayed"))
    program.append(activation(b, g, "square", scale=sqrt(1 - o.beta2)))
    program.append(tensor_scalar(a, g, 1 - o.beta1, _MULTIPLY))
    program.append(scalar_tensor_tensor(m, m, o.beta1, _MULTIPLY, a, _ADD))
    program.append(scalar_tensor_tensor(v, v, o.beta2, _MULTIPLY, b, _ADD))
    program.append(activation(b, v, "sqrt", scale=correction.scale))
    program.append(tensor_scalar(c, p, 1 - o.rate * o.decay, _MULTIPLY))
    program.append(tensor_scalar(b, b, o.epsilon, _ADD))
    program.append(tensor_tensor(a, m, b, _DIVIDE))
    return a, c


def descend(
    program: Program, p: Tensor, direction: Tensor, decayed: Tensor, correction: Correction, draw: Draw | None
) -> None:
    """Append the second part of a step: p = decayed - pace direction.

    Direction and decayed parameters are the results of `update`. `draw` selects stochastic rounding of p, in any
    format; None rounds to nearest even.
    """
    options = {"reverse1": True, "stochastic": draw}
    program.append(scalar_tensor_tensor(p, direction, correction.pace, _MULTIPLY, decayed, _SUBTRACT, **options))


def first_powers(program: Program, partitions: int) -> Tensor:
    """Append and return beta1**step and beta2**step for step 0, which are ones: FP32 [2] in every partition."""
    powers = program.space.sbuf("powers", FP32, (2,), partitions)
    program.append(memset(powers, 1.0))
    return powers


def next_correction(program: Program, powers: Tensor, options: AdamW) -> Correction:
    """Append and return the bias correction of the next step; `powers` is multiplied in place by both betas."""
    sizes = {"scales": 2, "pace": 1}
    scales, pace = (program.space.sbuf(name, FP32, (size,), powers.partitions) for name, size in sizes.items())
    for place, beta in enumerate((options.beta1, options.beta2)):
        power = powers[:, place : place + 1]
        program.append(tensor_scalar(power, power, beta, _MULTIPLY))
    program.append(tensor_scalar(scales, powers, 1.0, _SUBTRACT, reverse0=True))
    program.append(reciprocal(scales, scales))
    program.append(tensor_scalar(pace, scales[:, :1], options.rate, _MULTIPLY))
    return Correction(pace, scales[:, 1:])
