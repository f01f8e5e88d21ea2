"""Instruction of the DMA engines."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Self

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format, format_of
from neuroncore_rtl.spec.isa.access import Addressed, Storage, drop_step
from neuroncore_rtl.spec.isa.dma.layout import DMA_COPY, DMA_DIMENSIONS, DMA_FIELDS, DMA_SIGNED, NO_AXIS, OUTERMOST
from neuroncore_rtl.spec.isa.dma.rules import dma_violation
from neuroncore_rtl.spec.isa.engine import Engine
from neuroncore_rtl.spec.isa.instruction import Context, Instruction, Move
from neuroncore_rtl.spec.isa.region import Region
from neuroncore_rtl.spec.isa.rule import Broken

__all__ = ["DmaCopy", "DmaIndex", "DmaTensor"]

_INDEX = ("address", "partition", "limit", "skip")


@dataclass(frozen=True, kw_only=True)
class DmaTensor(Addressed):
    """Source or destination of a copy.

    Arguments:
        format: format of an element.
        address: byte address of the element of index (0, ..., 0), in HBM or in every partition.
        storage: HBM, SBUF or PSUM.
        steps: step of each dimension of the shape, outermost first, in elements; in partitions for the axis.
        partition: on chip, the partition of index 0.
        axis: dimension of the shape, counted from the outermost, that steps from partition to partition, or None.
    """

    format: Format
    address: int
    storage: Storage
    steps: tuple[int, ...]
    partition: int = 0
    axis: int | None = None

    def without(self, d: int) -> "DmaTensor | None":
        """Return a copy without dimension `d`; None if that dimension has a nonzero step or is the axis."""
        left = drop_step(self.steps, d)
        if left is None or self.axis == d:
            return None
        return replace(self, steps=left, axis=self.axis if self.axis is None or self.axis < d else self.axis - 1)


@dataclass(frozen=True, kw_only=True)
class DmaIndex(Addressed):
    """Row numbers of a gather or scatter: INT32 words in SBUF, one per row, in consecutive partitions.

    The outermost dimension of the tensor in HBM steps by these row numbers.

    Arguments:
        address: byte address of the word in every partition.
        partition: partition of row 0.
        limit: bound that row numbers, which are unsigned, must be below.
        skip: skip a row with a number out of range. Without it such a number is an error (`Cause.INDEX`), and neither
            its row nor later rows are written.
    """

    address: int
    partition: int = 0
    limit: int
    skip: bool = False


@dataclass(frozen=True, kw_only=True)
class DmaCopy(Instruction):
    """Copy src to dst.

    Arguments:
        shape: counts, outermost first; 1 to 5 dimensions.
        src, dst: tensors with one step per dimension.
        gather: row numbers of src, which must then be in HBM.
        scatter: row numbers of dst, like `gather`; not both.
    """

    shape: tuple[int, ...]
    src: DmaTensor
    dst: DmaTensor
    gather: DmaIndex | None = None
    scatter: DmaIndex | None = None

    layout = DMA_FIELDS
    signed = DMA_SIGNED
    engine: ClassVar[Engine] = Engine.DMA
    name: ClassVar[str] = "DMA_COPY"
    in_turn: ClassVar[bool] = True

    opcode: ClassVar[int] = DMA_COPY

    @property
    def sizes(self) -> tuple[int, ...]:
        """Shape of the copy."""
        return self.shape

    @property
    def transfers(self) -> tuple[tuple[str, Storage, int], ...]:
        """Direction ("read" or "write"), storage and bytes of src, then of dst, including skipped rows."""
        sides = ("read", self.src), ("write", self.dst)
        return tuple((way, one.storage, prod(self.shape) * one.format.bits // 8) for way, one in sides)

    @property
    def summary(self) -> str:
        """Storages of source and destination."""
        return f"dma {self.src.storage.name} to {self.dst.storage.name}".lower()

    def moved(self, place: Move) -> Self:
        """Return a copy with other addresses on chip."""

        def tensor(of: DmaTensor) -> DmaTensor:
            return of if of.storage == Storage.HBM else of.at(place(of.storage, of.address))

        def index(of: DmaIndex | None) -> DmaIndex | None:
            return of and of.at(place(Storage.SBUF, of.address))

        parts = {"src": tensor(self.src), "dst": tensor(self.dst)}
        return self._moved(place, **parts, gather=index(self.gather), scatter=index(self.scatter))

    def fields(self, config: Config | None = None) -> dict[str, int]:
        """Return the value of every field.

        The shape fills the fields of the innermost dimensions, but the first dimension of a gather or scatter fills the
        field of the outermost dimension.
        """
        rank = len(self.shape)
        if not 1 <= rank <= DMA_DIMENSIONS:
            raise ValueError(f"shape must have 1 to {DMA_DIMENSIONS} dimensions, not {self.shape!r}")
        if self.gather and self.scatter:
            raise ValueError("a copy must gather or scatter, not both")
        index = self.gather or self.scatter
        places = [rank - 1 - i for i in range(rank)]
        if index:
            places[0] = OUTERMOST
        values = {name: 0 for name, _ in DMA_FIELDS}
        values |= {
            "opcode": self.opcode,
            "gather": int(self.gather is not None),
            "scatter": int(self.scatter is not None),
        }
        values |= {f"count{d}": 1 for d in range(DMA_DIMENSIONS)}
        values |= {f"count{d}": count for d, count in zip(places, self.shape, strict=True)}
        for name, tensor in (("src", self.src), ("dst", self.dst)):
            if len(tensor.steps) != rank:
                raise ValueError(
                    f"{name}.steps must have one entry for each of {rank} dimensions, not {tensor.steps!r}"
                )
            if tensor.axis is not None and not 0 <= tensor.axis < rank:
                raise ValueError(f"{name}.axis must be from 0 to {rank - 1}, not {tensor.axis!r}")
            values |= {
                f"{name}_storage": int(tensor.storage),
                f"{name}_dtype": tensor.format.code,
                f"{name}_address": tensor.address,
                f"{name}_partition": tensor.partition,
                f"{name}_axis": NO_AXIS if tensor.axis is None else places[tensor.axis],
            }
            values |= {f"{name}_step{d}": step for d, step in zip(places, tensor.steps, strict=True)}
        if index:
            values |= {f"index_{name}": int(getattr(index, name)) for name in _INDEX}
        return values

    @classmethod
    def decode(cls, values: dict[str, int], config: Config | None = None) -> Self:
        """Return the instruction, with five dimensions."""
        if values["opcode"] != DMA_COPY:
            raise ValueError(f"opcode must be {DMA_COPY}, not {values['opcode']}")
        dimensions = tuple(reversed(range(DMA_DIMENSIONS)))

        def tensor(name: str) -> DmaTensor:
            axis = values[f"{name}_axis"]
            if axis != NO_AXIS and axis >= DMA_DIMENSIONS:
                raise ValueError(f"{name}.axis must be from 0 to {DMA_DIMENSIONS - 1} or {NO_AXIS} (none), not {axis}")
            return DmaTensor(
                format=format_of(values[f"{name}_dtype"]),
                address=values[f"{name}_address"],
                storage=Storage(values[f"{name}_storage"]),
                steps=tuple(values[f"{name}_step{d}"] for d in dimensions),
                partition=values[f"{name}_partition"],
                axis=None if axis == NO_AXIS else OUTERMOST - axis,
            )

        rows: dict[str, Any] = {name: values[f"index_{name}"] for name in _INDEX}
        index = DmaIndex(**rows | {"skip": bool(values["index_skip"])})
        return cls(
            shape=tuple(values[f"count{d}"] for d in dimensions),
            src=tensor("src"),
            dst=tensor("dst"),
            gather=index if values["gather"] else None,
            scatter=index if values["scatter"] else None,
        )

    @classmethod
    def violation(cls, engine: Engine, values: dict[str, int], context: Context) -> Broken | None:
        """Return the lowest broken rule with a message, or None."""
        return dma_violation(values, context.config)

    @classmethod
    def unused(cls, values: dict[str, int]) -> frozenset[str]:
        """Return the unused fields."""
        unused = set() if values["gather"] or values["scatter"] else {f"index_{name}" for name in _INDEX}
        for name, indexed in (("src", values["gather"]), ("dst", values["scatter"])):
            if values[f"{name}_storage"] == Storage.HBM:
                unused.add(f"{name}_partition")
            # A row's number is multiplied by the outermost step even if there is only one row.
            dimensions = range(OUTERMOST if indexed else DMA_DIMENSIONS)
            unused |= {f"{name}_step{d}" for d in dimensions if values[f"count{d}"] == 1}
        return frozenset(unused)

    def shortened(self) -> Self:
        """Return the instruction without outer dimensions (in a gather or scatter: after the rows) of one element."""
        short, d = self, int(bool(self.gather or self.scatter))
        while len(short.shape) > 1 and short.shape[d] == 1:
            src, dst = short.src.without(d), short.dst.without(d)
            if src is None or dst is None:
                break
            short = replace(short, shape=short.shape[:d] + short.shape[d + 1 :], src=src, dst=dst)
        return short

    @cached_property
    def reads(self) -> tuple[Region, ...]:
        """Regions of src and of the row numbers."""
        src = self._region("src", self.src, self.gather)
        index = self.gather or self.scatter
        if index is None:
            return (src,)
        return src, Region("index", Storage.SBUF, index.partition, self.shape[0], index.address, 4, ())

    @cached_property
    def writes(self) -> tuple[Region, ...]:
        """Region of dst."""
        return (self._region("dst", self.dst, self.scatter),)

    def _region(self, name: str, tensor: DmaTensor, index: DmaIndex | None) -> Region:
        size = tensor.format.bits // 8
        counts = (max(index.limit, 1), *self.shape[1:]) if index else self.shape
        dimensions = tuple(
            (count, step * size)
            for d, (count, step) in enumerate(zip(counts, tensor.steps, strict=True))
            if count > 1 and d != tensor.axis
        )
        first, rows, step = tensor.partition, 1, 1
        if tensor.axis is not None and tensor.steps[tensor.axis]:
            rows, step = self.shape[tensor.axis], tensor.steps[tensor.axis]
            first += min(0, (rows - 1) * step)
        if tensor.storage == Storage.HBM:
            first = 0
        return Region(name, tensor.storage, first, rows, tensor.address, size, dimensions, abs(step))
