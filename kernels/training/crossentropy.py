"""Cross entropy of classes, and its gradient: the loss of a classifier or a language model."""

from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    iota,
    scalar_tensor_tensor,
    select,
    tensor_reduce,
    tensor_scalar,
    tensor_tensor,
)
from neuroncore_rtl.kernels.tiling.inverse import inverse
from neuroncore_rtl.kernels.tiling.rows import Rows, scratch, tiles_of
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["crossentropy"]


def crossentropy(program: Program, loss: Rows, dlogits: Rows, logits: Rows, labels: Rows, scale: float = 1.0) -> None:
    """Append loss = ln(sum(exp(logits))) - logits[label] and dlogits = (softmax(logits) - onehot(label)) * scale.

    Logits are [tokens, classes], labels INT32 [tokens, 1]. For a label that is not a class, logits[label] and
    onehot(label) are 0. A scale of 1 / tokens gives the gradient of the mean loss; 0 raises ValueError.
    """
    if not scale:
        raise ValueError(f"crossentropy: scale must not be zero, not {scale!r}")
    classes = program.space.sbuf("classes", INT32, logits.shape[1:])
    program.append(iota(classes, Index(steps=(1,))))
    powers, onehots = (scratch(program.space, name, logits) for name in ("powers", "onehot"))
    picks = scratch(program.space, "picked", logits, fmt=logits.format)
    peaks, totals, chosen = (scratch(program.space, name, logits, 1) for name in ("peak", "total", "chosen"))
    tiles = tiles_of(loss, dlogits, logits, labels, powers, onehots, picks, peaks, totals, chosen)
    for lost, slopes, tile, label, power, onehot, pick, peak, total, one in tiles:
        program.append(tensor_reduce(peak, tile, AluOp.MAX, negate=True))
        program.append(activation(power, tile, "exp", bias=peak, sum_into=total))
        numbers = classes[: tile.partitions]
        program.append(tensor_scalar(onehot, numbers, label, AluOp.IS_EQUAL, scale, AluOp.MULTIPLY))
        # `select` rather than a product: 0 * -inf of a masked logit would be NaN.
        program.append(select(pick, onehot, tile, 0.0))
        program.append(activation(pick, pick, "identity", sum_into=one))
        program.append(activation(lost, total, "ln"))
        program.append(tensor_tensor(lost, lost, peak, AluOp.SUBTRACT))
        program.append(tensor_tensor(lost, lost, one, AluOp.SUBTRACT))
        inverse(program, total, total)
        program.append(tensor_scalar(total, total, scale, AluOp.MULTIPLY))
        program.append(scalar_tensor_tensor(slopes, power, total, AluOp.MULTIPLY, onehot, AluOp.SUBTRACT))
