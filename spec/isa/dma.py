"""The instruction of the DMA engines: copy a tensor of up to five dimensions between HBM, SBUF and PSUM.

The two tensors share a shape; each steps through it in its own way. In HBM all steps are of elements along one line of
addresses. On chip one dimension, the `axis`, may step from partition to partition instead, whichever dimension that is;
so a transposition is a copy whose tensors have different axes. Elements are taken in row-major order. Where the formats
differ an element is cast as TENSOR_COPY of the vector engine casts it, to nearest even; where they are the same its
bits are copied.
"""

from dataclasses import dataclass
from typing import ClassVar

from neuroncore_rtl.spec.config import SBUF_BYTES, Config
from neuroncore_rtl.spec.formats import FORMATS, Format, format_of
from neuroncore_rtl.spec.isa.access import Storage, storage_bytes, storage_partitions
from neuroncore_rtl.spec.isa.fields import Layout, pack, unpack, width_of
from neuroncore_rtl.spec.isa.legality import Rule

__all__ = [
    "DMA_BITS", "DMA_COPY", "DMA_DIMENSIONS", "DMA_FIELDS", "HBM_ADDRESS_BITS", "NO_AXIS", "DmaCopy", "DmaIndex",
    "DmaTensor", "check_dma", "dma_fields", "dma_of", "dma_violation",
]  # fmt: skip

DMA_COPY = 48
"""Opcode, apart from those of the other engines."""

DMA_DIMENSIONS = 5
"""Dimensions of a copy: the partition and four free ones, as published."""

HBM_ADDRESS_BITS = 40
"""Bits of a byte address in HBM."""

NO_AXIS = 7
"""Code of an axis that is none of the dimensions: everything is in one partition, or in HBM."""

_TENSOR: Layout = (
    ("storage", 2),
    ("dtype", 4),
    ("address", HBM_ADDRESS_BITS),
    ("partition", 11),
    ("axis", 3),
    *((f"step{dimension}", 32) for dimension in range(DMA_DIMENSIONS)),
)

DMA_FIELDS: Layout = (
    ("opcode", 6),
    ("gather", 1),
    ("scatter", 1),
    *((f"count{dimension}", 16) for dimension in range(DMA_DIMENSIONS)),
    *((f"src_{name}", width) for name, width in _TENSOR),
    *((f"dst_{name}", width) for name, width in _TENSOR),
    ("index_address", 18),
    ("index_partition", 11),
    ("index_limit", 32),
)
"""Name and width of each field, from the least significant bit up. Dimension 0 is the innermost; steps are two's
complement, in elements, or in partitions in the dimension that is the axis."""

DMA_BITS = width_of(DMA_FIELDS)
"""Width of an instruction in bits."""

_SIGNED = frozenset(f"{tensor}_step{d}" for tensor in ("src", "dst") for d in range(DMA_DIMENSIONS))
_OUTERMOST = DMA_DIMENSIONS - 1
_CODES = frozenset(fmt.code for fmt in FORMATS.values())


@dataclass(frozen=True, kw_only=True)
class DmaTensor:
    """Where a copy reads or writes.

    Arguments:
        format: of an element.
        address: of the element of index (0, ..., 0): in HBM, or in every partition; in bytes.
        storage: HBM, SBUF or PSUM.
        steps: for each dimension of the shape, outermost first: elements, or partitions for the axis.
        partition: on chip, the partition of index 0.
        axis: which dimension of the shape, outermost first, goes from partition to partition; None for none of them.
    """

    format: Format
    address: int
    storage: Storage
    steps: tuple[int, ...]
    partition: int = 0
    axis: int | None = None


@dataclass(frozen=True, kw_only=True)
class DmaIndex:
    """Row numbers of a gather or scatter: INT32 words in SBUF, one in each of as many partitions as there are rows.

    The outermost dimension of the tensor in HBM then steps by row numbers instead of 0, 1, 2, ...

    Arguments:
        address: of the word, in every partition.
        partition: the one of row 0.
        limit: row numbers are unsigned and below this; another one is an error (`Cause.INDEX`), and neither its row nor
            those after it are written.
    """

    address: int
    partition: int = 0
    limit: int


@dataclass(frozen=True, kw_only=True)
class DmaCopy:
    """Copy src to dst.

    Arguments:
        shape: counts, outermost first; 1 to 5 dimensions.
        src, dst: tensors with as many steps.
        gather: row numbers of src, which is in HBM then.
        scatter: row numbers of dst, which is in HBM then; not together with `gather`.
    """

    shape: tuple[int, ...]
    src: DmaTensor
    dst: DmaTensor
    gather: DmaIndex | None = None
    scatter: DmaIndex | None = None

    opcode: ClassVar[int] = DMA_COPY

    def fields(self) -> dict[str, int]:
        """Return the value of every field, as :func:`dma_fields` returns it.

        The last dimensions of the shape are the innermost; of a gather or scatter the first is the outermost field.

        Raises:
            ValueError: if there are more than five dimensions, or steps are not one for each of them.
        """
        rank = len(self.shape)
        if not 1 <= rank <= DMA_DIMENSIONS:
            raise ValueError(f"shape must have 1 to {DMA_DIMENSIONS} dimensions, not {self.shape!r}")
        if self.gather and self.scatter:
            raise ValueError("a copy must gather or scatter, not both")
        index = self.gather or self.scatter
        places = [rank - 1 - i for i in range(rank)]
        if index:
            places[0] = _OUTERMOST
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
                raise ValueError(f"{name}.steps must be one for each of {rank} dimensions, not {tensor.steps!r}")
            if tensor.axis is not None and not 0 <= tensor.axis < rank:
                raise ValueError(f"{name}.axis must be one of {rank} dimensions, not {tensor.axis!r}")
            values |= {
                f"{name}_storage": int(tensor.storage),
                f"{name}_dtype": tensor.format.code,
                f"{name}_address": tensor.address,
                f"{name}_partition": tensor.partition,
                f"{name}_axis": NO_AXIS if tensor.axis is None else places[tensor.axis],
            }
            values |= {f"{name}_step{d}": step for d, step in zip(places, tensor.steps, strict=True)}
        if index:
            values |= {"index_address": index.address, "index_partition": index.partition, "index_limit": index.limit}
        return values

    def encode(self) -> int:
        """Return the instruction word.

        Raises:
            ValueError: as :meth:`fields`; or if a value does not fit its field.
        """
        return pack(DMA_FIELDS, self.fields(), "dma_copy", _SIGNED)


def dma_fields(word: int) -> dict[str, int]:
    """Return the value of every field of an instruction word."""
    return unpack(DMA_FIELDS, word, _SIGNED)


def dma_of(values: dict[str, int]) -> DmaCopy:
    """Return the instruction of its fields, in its full form of five dimensions.

    Raises:
        ValueError: if a field holds the code of nothing.
    """
    if values["opcode"] != DMA_COPY:
        raise ValueError(f"opcode must be {DMA_COPY}, not {values['opcode']}")
    dimensions = tuple(reversed(range(DMA_DIMENSIONS)))

    def tensor(name: str) -> DmaTensor:
        axis = values[f"{name}_axis"]
        if axis != NO_AXIS and axis >= DMA_DIMENSIONS:
            raise ValueError(f"{name}.axis must be below {DMA_DIMENSIONS} or {NO_AXIS}, not {axis}")
        return DmaTensor(
            format=format_of(values[f"{name}_dtype"]),
            address=values[f"{name}_address"],
            storage=Storage(values[f"{name}_storage"]),
            steps=tuple(values[f"{name}_step{d}"] for d in dimensions),
            partition=values[f"{name}_partition"],
            axis=None if axis == NO_AXIS else _OUTERMOST - axis,
        )

    index = DmaIndex(address=values["index_address"], partition=values["index_partition"], limit=values["index_limit"])
    return DmaCopy(
        shape=tuple(values[f"count{d}"] for d in dimensions),
        src=tensor("src"),
        dst=tensor("dst"),
        gather=index if values["gather"] else None,
        scatter=index if values["scatter"] else None,
    )


def dma_violation(values: dict[str, int], config: Config) -> tuple[Rule, str] | None:
    """Return the lowest rule that an instruction breaks, and a message; None if it is legal.

    Arguments:
        values: of every field (:func:`dma_fields`).
        config: the machine's parameters.
    """
    broken = sorted(_violations(values, config), key=lambda found: found[0])
    return broken[0] if broken else None


def _violations(values: dict[str, int], config: Config):
    if values["opcode"] != DMA_COPY:
        yield Rule.OPCODE, f"opcode must be DMA_COPY, {DMA_COPY}, not {values['opcode']}"
    counts = [values[f"count{d}"] for d in range(DMA_DIMENSIONS)]
    if 0 in counts:
        yield Rule.SHAPE, f"counts must be at least 1, not {tuple(reversed(counts))!r}"
        counts = [max(count, 1) for count in counts]
    if values["gather"] and values["scatter"]:
        yield Rule.STORAGE, "a copy must gather or scatter, not both"
    for name, indexed in (("src", values["gather"]), ("dst", values["scatter"])):
        yield from _tensor_violations(name, indexed, {f: values[f"{name}_{f}"] for f, _ in _TENSOR}, counts, config)
    if values["gather"] or values["scatter"]:
        address, first, rows = values["index_address"], values["index_partition"], counts[_OUTERMOST]
        if first + rows > config.partitions:
            yield Rule.PARTITIONS, f"the index's partitions must end at {config.partitions}, not {first + rows}"
        if address % 4:
            yield Rule.ALIGNMENT, f"the index's address must be a multiple of 4, not {address}"
        if address + 4 > SBUF_BYTES:
            yield Rule.RANGE, f"the index's bytes must lie from 0 to {SBUF_BYTES}, not from {address} to {address + 4}"


def _tensor_violations(name: str, indexed: int, tensor: dict[str, int], counts: list[int], config: Config):
    if tensor["dtype"] not in _CODES:
        yield Rule.FORMAT, f"{name}'s format must be the code of one of {', '.join(FORMATS)}, not {tensor['dtype']}"
        return
    if tensor["storage"] not in set(Storage):
        yield Rule.STORAGE, f"{name}'s storage must be SBUF, PSUM or HBM, not {tensor['storage']}"
        return
    storage, axis, size = Storage(tensor["storage"]), tensor["axis"], format_of(tensor["dtype"]).bits // 8
    if indexed and storage != Storage.HBM:
        yield Rule.STORAGE, f"{name} must be in HBM to be gathered or scattered, not in {storage.name}"
    if storage == Storage.HBM and axis != NO_AXIS:
        yield Rule.PARTITIONS, f"{name}'s axis must be none in HBM, not {axis}"
    elif axis != NO_AXIS and axis >= DMA_DIMENSIONS:
        yield Rule.PARTITIONS, f"{name}'s axis must be below {DMA_DIMENSIONS}, or {NO_AXIS} for none, not {axis}"
    elif storage != Storage.HBM:
        span = (counts[axis] - 1) * tensor[f"step{axis}"] if axis != NO_AXIS else 0
        low, high = tensor["partition"] + min(span, 0), tensor["partition"] + max(span, 0) + 1
        limit = storage_partitions(storage, config)
        if low < 0 or high > limit:
            yield Rule.PARTITIONS, f"{name}'s partitions must lie from 0 to {limit}, not from {low} to {high}"
    if tensor["address"] % size:
        yield Rule.ALIGNMENT, f"{name}.address must be a multiple of {size}, not {tensor['address']}"
    dimensions = [d for d in range(DMA_DIMENSIONS) if d != axis and not (indexed and d == _OUTERMOST)]
    spans = [(counts[d] - 1) * tensor[f"step{d}"] * size for d in dimensions]
    low = tensor["address"] + sum(min(span, 0) for span in spans)
    high = tensor["address"] + sum(max(span, 0) for span in spans) + size
    limit = 1 << HBM_ADDRESS_BITS if storage == Storage.HBM else storage_bytes(storage)
    if low < 0 or high > limit:
        yield Rule.RANGE, f"{name}'s bytes must lie from 0 to {limit}, not from {low} to {high}"


def check_dma(instruction: DmaCopy, config: Config) -> None:
    """Raise ValueError, with a message that names the rule, the value and the place, if a copy is not legal."""
    broken = dma_violation(instruction.fields(), config)
    if broken is not None:
        rule, message = broken
        raise ValueError(f"DMA_COPY: {message} (rule {rule.name})")
