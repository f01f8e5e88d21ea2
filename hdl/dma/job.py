"""What passes between the units of a DMA engine.

    instruction -> Checker -> Job -> AddressGenerator -> Run -> Chunker -> Chunk
    Chunk -> Reader -> Piece -> Caster -> Bytes -> Writer

Either tensor of a copy is a row of bytes. A run is a part of it that lies at adjacent addresses; a chunk is a part of a
run that one access or one burst moves; a piece is what one beat holds of it.
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
"""Longest burst, and the grid that bursts keep to: so none crosses a page of AXI. Shorter than AXI allows, as room is
asked for by whole bursts, and as a burst that is written waits until it is complete."""

WORD_BYTES = timing.PSUM_WORD_BYTES
"""What an access to PSUM moves."""


class Side(data.Struct):
    """One tensor of a copy, as a walk over runs.

    storage: where it is. size: log2 of an element's bytes. address, partition: of the first element. axis: the
    dimension that goes from partition to partition. bytes: of a run. last: of each dimension, the index of the last
    run; 0 where the run covers the dimension. step: of each dimension, in elements or partitions.
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
    """valid: a walk over the runs of `side` begins; indexed: by rows, each of which waits for its number."""

    valid: unsigned(1)
    side: Side
    indexed: unsigned(1)


class Formats(data.Struct):
    """The formats of a copy's tensors."""

    src: FormatCode
    dst: FormatCode


class JobRows(data.Struct):
    """The row numbers of a gather or scatter.

    on: there are some. scatter: they are those of the destination, else of the source. address, partition: of the first
    one in SBUF. last: how many there are, less one. limit: what they are below. skip: rows of other ones are left out.
    step: from row to row, in elements of log2 `size` bytes.
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
    """A legal copy."""

    src: Side
    dst: Side
    formats: Formats
    rows: JobRows


class JobRow(data.Struct):
    """A tensor may go on to its next row. bad: it may not, the row number is beyond its limit. skip: it is, and the
    tensor goes on to the row behind it. offset: of the row's bytes from those of row 0; 0 for the tensor that has no
    row numbers."""

    bad: unsigned(1)
    skip: unsigned(1)
    offset: unsigned(HBM_ADDRESS_BITS)


class Run(data.Struct):
    """Adjacent bytes: of HBM, or of one partition."""

    storage: Storage
    partition: unsigned(PARTITION_BITS)
    address: unsigned(HBM_ADDRESS_BITS)
    bytes: unsigned(HBM_ADDRESS_BITS + 1)


def chunk_layout(size: int) -> data.StructLayout:
    """Return the layout of a part of a run for beats of `size` bytes."""
    return data.StructLayout(
        {
            "storage": Storage,
            "partition": unsigned(PARTITION_BITS),
            "address": unsigned(HBM_ADDRESS_BITS),
            "bytes": range(BURST_BEATS * size + 1),
        }
    )


def bytes_layout(size: int) -> data.StructLayout:
    """Return the layout of `count` bytes that start `offset` bytes into a beat of `size` bytes."""
    return data.StructLayout({"data": 8 * size, "offset": range(size), "count": range(size + 1)})


def piece_layout(size: int) -> data.StructLayout:
    """Return the layout of what a beat holds of a chunk; `bad` if HBM answered it with an error."""
    return data.StructLayout({"bytes": bytes_layout(size), "formats": Formats, "bad": 1})
