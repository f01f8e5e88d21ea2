"""One step of the AdamW optimiser (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019)."""

from dataclasses import dataclass
from math import sqrt

from neuroncore_rtl.kernels.program import Program, Rows, scratch, tiles_of
from neuroncore_rtl.kernels.program.instructions import activation, scalar_tensor_tensor, tensor_scalar, tensor_tensor
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["AdamW", "adamw"]

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.DIVIDE


@dataclass(frozen=True, kw_only=True)
class AdamW:
    """Hyperparameters; the defaults are PyTorch's.

    Arguments:
        rate: the learning rate.
        beta1, beta2: decay of the moments.
        epsilon: added to the root of the second moment.
        decay: weight decay.
    """

    rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 1e-2


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
    """Append step number `step` (from 1): the parameters and the moments are updated in place.

    m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g**2;
    p = (1 - rate decay) p - rate / (1 - beta1**step) m / (sqrt(v / (1 - beta2**step)) + epsilon)

    Arguments:
        seed: of the stochastic rounding of the parameters, each step a stream of its own; None for nearest even.
    """
    o = options
    pace = o.rate / (1 - o.beta1**step)
    others = [scratch(program.space, name, parameters) for name in "abc"]
    tiles = tiles_of(parameters, first, second, gradients, *others)
    for (p, m, v, g, a, b, c), draw in zip(tiles, parameters.draws(seed, step), strict=True):
        program.append(activation(b, g, "square", scale=sqrt(1 - o.beta2)))
        program.append(tensor_scalar(a, g, 1 - o.beta1, _MULTIPLY))
        program.append(scalar_tensor_tensor(m, m, o.beta1, _MULTIPLY, a, _ADD))
        program.append(scalar_tensor_tensor(v, v, o.beta2, _MULTIPLY, b, _ADD))
        program.append(activation(b, v, "sqrt", scale=1 / (1 - o.beta2**step)))
        program.append(tensor_scalar(c, p, 1 - o.rate * o.decay, _MULTIPLY))
        program.append(tensor_scalar(b, b, o.epsilon, _ADD))
        program.append(tensor_tensor(a, m, b, _DIVIDE))
        program.append(scalar_tensor_tensor(p, a, pace, _MULTIPLY, c, _SUBTRACT, reverse1=True, stochastic=draw))
