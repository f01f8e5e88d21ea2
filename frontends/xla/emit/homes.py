"""Places of values: tensors in HBM with copies in SBUF."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from neuroncore_rtl.frontends.xla.emit.residents import SbufCopy
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.tiling.transfer import SHARE

__all__ = ["Home", "copy_tile"]


@dataclass(eq=False)
class Home:
    """A tensor in HBM, in row-major order, with copies in SBUF.

    Arguments:
        tensor: the tensor; its place in HBM may remain unused.
        is_stored: whether HBM has the elements.
        residents: copies in SBUF.
        pending: the product that computes the elements when a reader asks for them.
    """

    tensor: HbmTensor
    is_stored: bool = True
    residents: list[SbufCopy] = field(default_factory=list)
    pending: Any = None

    def offset(self, view: HbmTensor) -> int:
        """Return the first element of a view."""
        return (view.address - self.tensor.address) * 8 // self.tensor.format.bits


def copy_tile(program: Program, to: Tensor | HbmTensor, of: Tensor | HbmTensor, queues: Iterator[int | None]) -> None:
    """Append a copy between HBM and SBUF, in parts of a row that several queues share, for all ports if it is long."""
    width, ports = to.shape[-1], program.config.hbm_ports
    count = -(-width * to.format.bits // (SHARE * 8))
    if 2 * count > ports:
        count = -(-count // ports) * ports
    step = -(-width // count)
    for first in range(0, width, step):
        part = ..., slice(first, first + step)
        program.append(dma_copy(to[part], of[part]), next(queues))
