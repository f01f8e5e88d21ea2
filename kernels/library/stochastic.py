"""Two programs that show the use of stochastic rounding in a narrow format: a long sum, and gradient descent.

Both keep every intermediate result for inspection. Elements are numbered in the whole tensor, with a stream of random
words per step, so results do not depend on the tiling.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat

from neuroncore_rtl.kernels.program import Draw, Program, Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["Problem", "accumulate", "descend_stochastic"]


def _steps(history: Rows, columns: int, seed: int | None) -> Iterator[tuple[int, Tensor, Tensor, Draw | None]]:
    """Yield, for each step, from 1, and tile: the step, values before it, destination of new values, random words."""
    parts = [history.columns(first, first + columns) for first in range(0, history.shape[1], columns)]
    for step, (before, after) in enumerate(pairwise(parts), start=1):
        yield from zip(repeat(step), before.tiles, after.tiles, after.draws(seed, step))


@located
def accumulate(program: Program, history: Rows, addends: Sequence[float], seed: int | None) -> None:
    """Append sums[t + 1] = sums[t] + addends[t], rounded to the tensor's format after every addition.

    Arguments:
        program: the program.
        history: sums of all steps, [rows, steps + 1] or several columns per step; the first step is given.
        addends: one per step, each rounded to FP32.
        seed: seed of stochastic rounding; None: to nearest even.
    """
    columns = history.shape[1] // (len(addends) + 1)
    for step, before, after, draw in _steps(history, columns, seed):
        program.append(isa.tensor_scalar(after, before, addends[step - 1], AluOp.ADD, stochastic=draw))


@dataclass(frozen=True)
class Problem:
    """Least-squares problem, solved in every partition: FP32 inputs [samples, features], targets [samples], rate."""

    inputs: Tensor
    targets: Tensor
    rate: float


@located
def descend_stochastic(program: Program, history: Rows, problem: Problem, seed: int | None) -> None:
    """Append weights[t + 1] = weights[t] - rate / samples * inputs^T (inputs weights[t] - targets).

    Products and sums are FP32; only the weights are rounded to the format of `history`. The first step is given. `seed`
    is as in `accumulate`.
    """
    samples, features = problem.inputs.shape
    products = program.space.sbuf("products", FP32, (samples, features))
    residues = program.space.sbuf("residues", FP32, (samples,))
    gradient = program.space.sbuf("gradient", FP32, (features,))
    whole = problem.inputs, problem.targets, products, residues, gradient
    scale = -problem.rate / samples
    for _, before, after, draw in _steps(history, features, seed):
        x, y, p, r, g = (tensor[: after.partitions] for tensor in whole)
        program.append(isa.tensor_tensor(p, x, before, AluOp.MULTIPLY))
        program.append(isa.tensor_reduce(r, p, AluOp.ADD))
        program.append(isa.tensor_tensor(r, r, y, AluOp.SUBTRACT))
        program.append(isa.tensor_tensor(p, x, r.reshape(samples, 1), AluOp.MULTIPLY))
        program.append(isa.tensor_reduce(g, p.permute(1, 0), AluOp.ADD))
        update = isa.scalar_tensor_tensor(after, g, scale, AluOp.MULTIPLY, before, AluOp.ADD, stochastic=draw)
        program.append(update)
