"""Two programs that show what stochastic rounding is for: a long sum, and gradient descent, in a narrow format.

Both keep every intermediate result, one after the other in memory, so that one can look at the way and not only at the
end. Element numbers are those of the whole tensor and each step has a stream of its own, so the same bits come out
however the tensor is cut into tiles.
"""

from dataclasses import dataclass

from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.kernels.program.operands import Draw
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.kernels.program.rows import Rows
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["Problem", "accumulate", "descend"]


def _draw(seed: int | None, step: int, first: int, columns: int) -> Draw | None:
    index = Index(base=first * columns, partition=columns, steps=(1,))
    return None if seed is None else Draw(seed=seed, stream=step, index=index)


def accumulate(program: Program, history: Rows, columns: int, addend: float, seed: int | None) -> None:
    """Append sums[t + 1] = sums[t] + addend, rounded to the tensor's format after every addition.

    Arguments:
        history: sums of all steps, `columns` for each; the first ones are there.
        columns: independent sums a row.
        seed: of stochastic rounding; None rounds to nearest even.
    """
    for step in range(1, history.shape[1] // columns):
        first = 0
        for tile in history.tiles:
            before, after = (tile[:, at * columns : (at + 1) * columns] for at in (step - 1, step))
            draw = _draw(seed, step, first, columns)
            program.append(isa.tensor_scalar(after, before, addend, AluOp.ADD, stochastic=draw))
            first += tile.partitions


@dataclass(frozen=True)
class Problem:
    """Least squares: every lane has the same samples and fits its own weights.

    Arguments:
        inputs: FP32 [samples, features], in each partition.
        targets: FP32 [samples].
        rate: of the descent.
    """

    inputs: Tensor
    targets: Tensor
    rate: float


def descend(program: Program, history: Rows, problem: Problem, seed: int | None) -> None:
    """Append weights[t + 1] = weights[t] - rate / samples * inputs^T (inputs weights[t] - targets).

    Products and sums are FP32; only the weights are rounded to the format of `history`.

    Arguments:
        history: weights of all steps, as many for each as there are features; the first ones are there.
        problem: the same in all tiles.
        seed: of stochastic rounding; None rounds to nearest even.
    """
    samples, features = problem.inputs.shape
    with program.space.scope():
        products = program.space.sbuf("products", FP32, (samples, features))
        residues = program.space.sbuf("residues", FP32, (samples,))
        gradient = program.space.sbuf("gradient", FP32, (features,))
        for step in range(1, history.shape[1] // features):
            first = 0
            for tile in history.tiles:
                lanes = slice(tile.partitions)
                x, y, p, r, g = (t[lanes] for t in (problem.inputs, problem.targets, products, residues, gradient))
                before, after = (tile[:, at * features : (at + 1) * features] for at in (step - 1, step))
                program.append(isa.tensor_tensor(p, x, before, AluOp.MULTIPLY))
                program.append(isa.tensor_reduce(r, p, AluOp.ADD))
                program.append(isa.tensor_tensor(r, r, y, AluOp.SUBTRACT))
                program.append(isa.tensor_tensor(p, x, r.reshape(samples, 1), AluOp.MULTIPLY))
                program.append(isa.tensor_reduce(g, p.permute(1, 0), AluOp.ADD))
                scale, draw = -problem.rate / samples, _draw(seed, step, first, features)
                update = isa.scalar_tensor_tensor(after, g, scale, AluOp.MULTIPLY, before, AluOp.ADD, stochastic=draw)
                program.append(update)
                first += tile.partitions
