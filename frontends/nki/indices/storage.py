"""Storage of a kernel's tensors: one machine tensor per block.

A tensor on chip may have *block dimensions* before the partition dimension. Each block is a tile with its own
allocation and live range. PSUM stores every type in 32-bit words.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.nki.indices.dtypes import DType
from neuroncore_rtl.kernels.program import HbmTensor, Tensor
from neuroncore_rtl.spec.formats import FP32, INT32, UINT32, Format

__all__ = ["Allocation", "Memory", "format_in"]


class Memory(Enum):
    """Memory of a tensor; the members have the names in `nki.language`."""

    sbuf = "sbuf"
    psum = "psum"
    shared_hbm = "shared_hbm"
    private_hbm = "private_hbm"

    @property
    def on_chip(self) -> bool:
        return self in (Memory.sbuf, Memory.psum)


def format_in(memory: Memory, dtype: DType) -> Format:
    """Return the format in which a memory stores a type."""
    if memory is Memory.psum:
        return FP32 if dtype.is_float else UINT32 if dtype.machine_format is UINT32 else INT32
    return dtype.machine_format


@dataclass(eq=False)
class Allocation:
    """Storage of one tensor.

    On chip, `lanes` is the index of the partition dimension, after those of blocks. `make` allocates the machine tensor
    of a block at its first access.
    """

    name: str
    dtype: DType
    memory: Memory
    shape: tuple[int, ...]
    lanes: int | None
    make: Callable[[int], Tensor | HbmTensor]
    zeros: set[int] = field(default_factory=set)
    """Blocks that count as zeros, although no instruction has written them."""
    version: int = 0
    """Number of writes to the tensor so far."""
    is_register: bool = False
    """Whether the controller writes the tensor, which `version` does not count."""

    def __post_init__(self):
        self._tensors: dict[int, Tensor | HbmTensor] = {}
        self._written: dict[int, np.ndarray] = {}
        self._times: dict[int, np.ndarray] = {}

    @property
    def format(self) -> Format:
        return format_in(self.memory, self.dtype)

    @property
    def width(self) -> int:
        """Elements per partition of a block; in HBM, of the whole tensor."""
        return int(np.prod(self.shape[0 if self.lanes is None else self.lanes + 1 :], dtype=np.int64))

    @property
    def partitions(self) -> int:
        assert self.lanes is not None
        return self.shape[self.lanes]

    def tensor(self, block: int) -> Tensor | HbmTensor:
        if block not in self._tensors:
            self._tensors[block] = self.make(block)
        return self._tensors[block]

    def tile(self, block: int) -> Tensor:
        tensor = self.tensor(block)
        assert isinstance(tensor, Tensor)
        return tensor

    @property
    def in_hbm(self) -> HbmTensor:
        tensor = self.tensor(0)
        assert isinstance(tensor, HbmTensor)
        return tensor

    @property
    def tiles(self) -> list[Tensor]:
        return [self.tile(block) for block in self._tensors]

    def is_new(self, block: int) -> bool:
        return block not in self._tensors

    def written_elements(self, block: int) -> np.ndarray:
        return self._written.setdefault(block, np.zeros((self.partitions, self.width), bool))

    def is_recorded(self, view: Any) -> bool:
        """Record the time of each later write to the block of a view; return whether its places are known."""
        if not self._knows(view):
            return False
        self._times.setdefault(view.block.start, np.zeros((self.partitions, self.width), np.int32))
        return True

    def is_unchanged(self, view: Any, since: int) -> bool:
        """Return whether all places of such a view are as at version `since`."""
        return bool((self._times[view.block.start][view.places()] <= since).all())

    def count_write(self, view: Any) -> None:
        """Count a write to a view."""
        self.version += 1
        if not self._times:
            return
        for block in self._times if view.spans_blocks() else {view.block.start} & self._times.keys():
            self._times[block][view.places() if self._knows(view) else ...] = self.version

    def _knows(self, view: Any) -> bool:
        """Return whether the places of a view are in one block, in elements of this tensor, and not up to an index."""
        near = self.memory.on_chip and view.numbers is None and not view.spans_blocks()
        return near and (self.memory is Memory.psum or view.dtype.itemsize == self.dtype.itemsize)
