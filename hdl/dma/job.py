"""Data types between the units of a DMA engine.

    instruction -> Checker -> Job -> AddressGenerator -> Run -> Chunker -> Chunk
    Chunk -> Reader -> Piece -> Caster -> Bytes -> Writer

A run is a part of a tensor at adjacent addresses. A chunk is the part of a run that one line access or burst transfers.
A piece is the part of a chunk in one beat.
"""

from amaranth import signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS, PARTITION_BITS, Storage
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.isa import DMA_DIMENSIONS, HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.dma import DMA_WIDTHS

__all__ = [
    "BURST_BEATS", "WORD_BYTES", "DmaJobLayout", "Formats", "JobRow", "JobRows", "Run", "Side", "Start",
    "bytes_layout", "chunk_layout", "piece_layout",
]  # fmt: skip

BURST_BEATS = timing.BURST_BEATS
"""Longest burst in beats, and the alignment that no burst crosses; so no burst crosses an AXI page.

It is shorter than AXI allows because buffer space is reserved per burst and a write burst is held until it is complete.
"""

WORD_BYTES = timing.PSUM_WORD_BYTES
"""Bytes that one PSUM access moves."""


class Side(data.Struct):
    """One tensor of a copy, as the parameters of a walk over its runs.

    Fields:
        size: log2 of the bytes per element.
        address: byte address of the first element.
        partition: partition of the first element.
        axis: dimension in which a step counts partitions.
        bytes: bytes per run.
        last: index of the last run per dimension; 0 where the run covers the dimension.
        step: distance of neighbours per dimension: in elements, or along `axis` in partitions.
    """

    storage: Storage
    size: unsigned(2)
    address: unsigned(HBM_ADDRESS_BITS)
    partition: unsigned(PARTITION_BITS)
    axis: unsigned(DMA_WIDTHS["src_axis"])
    bytes: unsigned(HBM_ADDRESS_BITS + 1)
    last: data.ArrayLayout(unsigned(DMA_WIDTHS["count0"]), DMA_DIMENSIONS)
    step: data.ArrayLayout(signed(DMA_WIDTHS["src_step0"]), DMA_DIMENSIONS)


class Start(data.Struct):
    """Start command of an address generator.

    Fields:
        valid: a walk over the runs of `side` begins.
        indexed: each row waits for its `JobRow`.
    """

    valid: unsigned(1)
    side: Side
    indexed: unsigned(1)


class Formats(data.Struct):
    """Element formats of a copy: `src` of the source tensor, `dst` of the destination tensor."""

    src: FormatCode
    dst: FormatCode


class JobRows(data.Struct):
    """Row numbers of a gather or scatter.

    Fields:
        on: the copy has row numbers in SBUF, which select rows of a tensor (gather or scatter).
        scatter: the numbers select rows of the destination, else of the source.
        address: byte address in SBUF, the same for all numbers.
        partition: partition of the first number; each further number is one partition higher.
        last: number of rows minus one.
        limit: row numbers below `limit` are legal.
        skip: rows with illegal numbers are skipped; else the copy fails.
        step: distance between rows, in elements.
        size: log2 of the bytes per element.
    """

    on: unsigned(1)
    scatter: unsigned(1)
    address: unsigned(ADDRESS_BITS)
    partition: unsigned(PARTITION_BITS)
    last: unsigned(DMA_WIDTHS["count0"])
    limit: unsigned(DMA_WIDTHS["index_limit"])
    skip: unsigned(1)
    step: signed(DMA_WIDTHS["src_step0"])
    size: unsigned(2)


class DmaJobLayout(data.Struct):
    """A legal copy instruction in the form that the address generators, reader and writer use."""

    src: Side
    dst: Side
    formats: Formats
    rows: JobRows


class JobRow(data.Struct):
    """Verdict on one row of a gather or scatter, sent to both tensors.

    Fields:
        bad: the row number is not below its limit, and the copy ends with an error.
        skip: the row number is not below its limit, and the copy continues with the next row.
        offset: distance in bytes from row 0 to this row; 0 for the tensor without row numbers.
    """

    bad: unsigned(1)
    skip: unsigned(1)
    offset: unsigned(HBM_ADDRESS_BITS)


class Run(data.Struct):
    """Adjacent bytes of a tensor, in HBM or in one partition of an on-chip memory."""

    storage: Storage
    partition: unsigned(PARTITION_BITS)
    address: unsigned(HBM_ADDRESS_BITS)
    bytes: unsigned(HBM_ADDRESS_BITS + 1)


def chunk_layout(size: int) -> data.StructLayout:
    """Return the layout of a chunk, a part of a run, for beats of `size` bytes."""
    return data.StructLayout(
        {
            "storage": Storage,
            "partition": unsigned(PARTITION_BITS),
            "address": unsigned(HBM_ADDRESS_BITS),
            "bytes": range(BURST_BEATS * size + 1),
        }
    )


def bytes_layout(size: int) -> data.StructLayout:
    """Return the layout of part of a beat of `size` bytes: `count` bytes that start at byte `offset`."""
    return data.StructLayout({"data": 8 * size, "offset": range(size), "count": range(size + 1)})


def piece_layout(size: int) -> data.StructLayout:
    """Return the layout of a piece: the bytes of a chunk in one beat. `bad` marks a beat with an HBM error response."""
    return data.StructLayout({"bytes": bytes_layout(size), "formats": Formats, "bad": 1})
