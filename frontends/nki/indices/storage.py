"""Where the elements of a kernel's tensors are: tensors of the machine, one for each block.

A tensor on chip may have *block dimensions* before that of its partitions: a tile for each of their indices, which are
allocated one by one, so that each has a place only while it is in use. PSUM holds words of 32 bits whatever the type.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from neuroncore_rtl.frontends.nki.indices.dtypes import DType
from neuroncore_rtl.kernels.program import HbmTensor, Tensor
from neuroncore_rtl.spec.formats import FP32, INT32, UINT32, Format

__all__ = ["Allocation", "Memory", "format_in"]


class Memory(Enum):
    """Memories, by the names of `nki.language`."""

    sbuf = "sbuf"
    psum = "psum"
    shared_hbm = "shared_hbm"
    private_hbm = "private_hbm"

    @property
    def on_chip(self) -> bool:
        """Whether it is SBUF or PSUM."""
        return self in (Memory.sbuf, Memory.psum)


def format_in(memory: Memory, dtype: DType) -> Format:
    """Return the format that elements of a type have in a memory."""
    if memory is Memory.psum:
        return FP32 if dtype.is_float else UINT32 if dtype.known is UINT32 else INT32
    return dtype.known


@dataclass(eq=False)
class Allocation:
    """The elements of one tensor.

    Arguments:
        name: for messages.
        dtype: of an element.
        memory: where they are.
        shape: all dimensions.
        lanes: on chip, which of them is that of the partitions; those before it are blocks.
        make: returns the machine's tensor of a block, when it is first touched.
    """

    name: str
    dtype: DType
    memory: Memory
    shape: tuple[int, ...]
    lanes: int | None
    make: Callable[[int], Tensor | HbmTensor]
    zeros: set[int] = field(default_factory=set)
    """Blocks that are zero, though nothing has been written to them yet."""
    version: int = 0
    """How often it was written."""

    def __post_init__(self):
        self._tensors: dict[int, Tensor | HbmTensor] = {}
        self._written: dict[int, np.ndarray] = {}

    @property
    def format(self) -> Format:
        """Of an element where it is."""
        return format_in(self.memory, self.dtype)

    @property
    def width(self) -> int:
        """Elements of a partition of a block, on chip; else of the whole tensor."""
        return int(np.prod(self.shape[0 if self.lanes is None else self.lanes + 1 :], dtype=np.int64))

    @property
    def partitions(self) -> int:
        """Partitions of a block, on chip."""
        assert self.lanes is not None
        return self.shape[self.lanes]

    def tensor(self, block: int) -> Tensor | HbmTensor:
        """Return the machine's tensor of a block."""
        if block not in self._tensors:
            self._tensors[block] = self.make(block)
        return self._tensors[block]

    def tile(self, block: int) -> Tensor:
        """Return the machine's tensor of a block on chip."""
        tensor = self.tensor(block)
        assert isinstance(tensor, Tensor)
        return tensor

    @property
    def in_hbm(self) -> HbmTensor:
        """The machine's tensor in HBM."""
        tensor = self.tensor(0)
        assert isinstance(tensor, HbmTensor)
        return tensor

    @property
    def tiles(self) -> list[Tensor]:
        """The machine's tensors of the blocks that have been touched, on chip."""
        return [self.tile(block) for block in self._tensors]

    def is_new(self, block: int) -> bool:
        """Return whether nothing has touched a block."""
        return block not in self._tensors

    def written(self, block: int) -> np.ndarray:
        """Return for each element, bool [partitions, elements], whether anything has been written to it."""
        return self._written.setdefault(block, np.zeros((self.partitions, self.width), bool))
