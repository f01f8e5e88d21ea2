"""DMA engines that share the copies of a kernel."""

from collections.abc import Sequence
from math import ceil, prod

from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.spec.config import Config

__all__ = ["LONG", "TilingEngines", "beats"]

LONG = 256
"""Beats of a copy that hides HBM's latency while the one behind it is on its way."""


def beats(config: Config, rows: int, size: int) -> int:
    """Return how many beats of HBM a copy of rows of `size` bytes has."""
    return rows * ceil(size / config.hbm_bytes)


class TilingEngines:
    """Gives every copy to the engine that has been given the fewest beats.

    An engine has two copies on their way, and that is enough if they are long. More engines on a port only get in each
    other's way in SBUF, and let a copy that is needed wait for one that comes later.

    Arguments:
        program: what copies are appended to.
        queues: of the engines, one for each port and more; the others are used only if copies are short.
        shortest: beats of the shortest copy.

    Attributes:
        are_alone: whether each has a port to itself.
    """

    def __init__(self, program: Program, queues: Sequence[int], shortest: int):
        ports = program.config.hbm_ports
        self._program = program
        self._given = dict.fromkeys(queues[:ports] if shortest >= LONG else queues, 0)
        self.are_alone = len(self._given) <= ports

    def copy(self, target: Tensor | HbmTensor, source: Tensor | HbmTensor) -> None:
        """Append a copy."""
        shape, _ = source.copied()
        queue = min(self._given, key=self._given.__getitem__)
        self._given[queue] += beats(self._program.config, prod(shape[:-1]), shape[-1] * source.format.bits // 8)
        self._program.append(dma_copy(target, source), queue)
