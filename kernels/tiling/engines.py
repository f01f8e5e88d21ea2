"""Distribution of a kernel's copies to DMA engines."""

from collections.abc import Sequence
from math import ceil, prod

from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.spec.config import Config

__all__ = ["LONG", "TilingEngines", "beats"]

LONG = 256
"""Beats of a copy that hide the HBM latency of the next copy."""


def beats(config: Config, rows: int, size: int) -> int:
    """Return the number of HBM beats of a copy of `rows` rows of `size` bytes."""
    return rows * ceil(size / config.hbm_bytes)


class TilingEngines:
    """DMA engines for the copies of a kernel; each copy is assigned to the engine with the fewest beats so far.

    An engine has two copies in flight, which suffices if they are long. More engines per port would only conflict in
    SBUF and delay an urgent copy behind a later one, so they serve short copies only.

    The first `hbm_ports` of the queues use one port each. `shortest` is the beats of the shortest copy. `are_alone`
    tells whether no two engines in use share a port.
    """

    def __init__(self, program: Program, queues: Sequence[int], shortest: int):
        ports = program.config.hbm_ports
        self._program = program
        self._given = dict.fromkeys(queues[:ports] if shortest >= LONG else queues, 0)
        self.are_alone = len(self._given) <= ports

    def copy(self, target: Tensor | HbmTensor, source: Tensor | HbmTensor) -> None:
        """Append a copy on the engine with the fewest assigned beats."""
        shape, _ = source.dma_operand()
        queue = min(self._given, key=self._given.__getitem__)
        self._given[queue] += beats(self._program.config, prod(shape[:-1]), shape[-1] * source.format.bits // 8)
        self._program.append(dma_copy(target, source), queue)
