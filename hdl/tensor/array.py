"""The systolic array: rows of tiles, cut into blocks that are converted, and compiled for simulation, only once.

Moving operands enter each row from the left and pass a tile a cycle; partial sums enter at the top and pass a row in
`mac_latency` cycles. The caller skews the rows (`row_skew`) and aligns the columns again (`column_skew`).
"""

from functools import partial

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.hierarchy import shared
from hdl.tensor.tile import Tile, row_inputs
from spec.config import LOAD_COLUMNS, Config

__all__ = ["Array", "Block", "row_skew", "tile_count"]

BLOCK_ROWS = 8
BLOCK_TILES = 8
"""Shape of a block. 8 x 32 elements: as large as still compiles in seconds, as the ports of a block cost time too."""

NEGATIVE_ZERO = 0x80000000


def tile_count(columns: int) -> int:
    """Return the tiles of a row; the last one may be narrower than the others."""
    return -(-columns // LOAD_COLUMNS)


def row_skew(config: Config, row: int) -> int:
    """Return the cycles by which the operands of `row` must follow those of row 0."""
    return row * config.mac_latency


def _widths(columns: int) -> list[int]:
    return [min(LOAD_COLUMNS, columns - first) for first in range(0, columns, LOAD_COLUMNS)]


class Block(wiring.Component):
    """A rectangle of tiles.

    Arguments:
        rows: rows.
        widths: columns of each of its tiles, from left to right.
        tiles: tiles of the array's whole row.
        mac_latency: pipeline stages of a multiply-accumulate.

    Ports:
        <input>0.. and <input>_out0..: for each row, the ports of :func:`row_inputs`.
        acc, out: partial sums at the top and at the bottom, FP32 for each column.
    """

    def __init__(self, rows: int, widths: list[int], tiles: int, mac_latency: int):
        self.rows = rows
        self.widths = widths
        self.tiles = tiles
        self.mac_latency = mac_latency
        inputs = row_inputs(tiles)
        ports = {"acc": In(32).array(sum(widths)), "out": Out(32).array(sum(widths))}
        for name, member in inputs.items():
            ports[name] = member.array(rows)
            ports[f"{name}_out"] = member.flip().array(rows)
        self.row_ports = tuple(inputs)
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        sums = list(self.acc)
        for row in range(self.rows):
            inputs = {name: getattr(self, name)[row] for name in self.row_ports}
            first = 0
            for index, width in enumerate(self.widths):
                module = f"tile_{width}_of_{self.tiles}_latency{self.mac_latency}"
                build = partial(Tile, width, self.tiles, self.mac_latency)
                tile = shared(m, f"tile_{row}_{index}", module, build, platform)
                columns = slice(first, first + width)
                for port_name, value in inputs.items():
                    m.d.comb += [p.eq(v) for p, v in _pairs(getattr(tile, port_name), value)]
                m.d.comb += [p.eq(v) for p, v in zip(tile.acc, sums[columns], strict=True)]
                sums[columns] = tile.out
                inputs = {name: getattr(tile, f"{name}_out") for name in self.row_ports}
                first += width
            for port_name, value in inputs.items():
                m.d.comb += [p.eq(v) for p, v in _pairs(getattr(self, f"{port_name}_out")[row], value)]
        m.d.comb += [port.eq(value) for port, value in zip(self.out, sums, strict=True)]
        return m


def _pairs(port, value):
    """Yield the signals of two ports of the same shape, arrays opened."""
    if isinstance(port, (list, tuple)):
        for p, v in zip(port, value, strict=True):
            yield from _pairs(p, v)
    else:
        yield port, value


class Array(wiring.Component):
    """`rows x columns` processing elements.

    Arguments:
        config: the machine's parameters.

    Ports:
        moving, swap, load, distance, weights: for each row, the inputs of its first tile (:func:`row_inputs`), row r
            `row_skew(config, r)` cycles behind row 0.
        identity: with a moving operand at row 0, starts its column sums at -0, the neutral element of addition, in
            place of +0; a transpose needs it to keep the sign of zeros.
        sums: FP32 for each column; those of tile g follow the operand at row 0 after
            rows * mac_latency + g cycles.
    """

    def __init__(self, config: Config):
        self.config = config
        inputs = row_inputs(tile_count(config.columns))
        self.row_ports = tuple(inputs)
        ports = {name: member.array(config.rows) for name, member in inputs.items()}
        super().__init__(ports | {"identity": In(1), "sums": Out(32).array(config.columns)})

    def elaborate(self, platform):
        m = Module()
        config = self.config
        widths = _widths(config.columns)

        identity = self.identity
        sums = []
        for index, width in enumerate(widths):
            sums += [Mux(identity, NEGATIVE_ZERO, 0)] * width
            if index + 1 < len(widths):
                delayed = Signal(name=f"identity{index + 1}", reset_less=True)
                m.d.sync += delayed.eq(identity)
                identity = delayed

        for top in range(0, config.rows, BLOCK_ROWS):
            rows = min(BLOCK_ROWS, config.rows - top)
            inputs = {name: getattr(self, name)[top : top + rows] for name in self.row_ports}
            first = 0
            for left in range(0, len(widths), BLOCK_TILES):
                block_widths = widths[left : left + BLOCK_TILES]
                columns = slice(first, first + sum(block_widths))
                module = f"block_{rows}x{sum(block_widths)}_of_{len(widths)}_latency{config.mac_latency}"
                build = partial(Block, rows, block_widths, len(widths), config.mac_latency)
                block = shared(m, f"block_{top}_{first}", module, build, platform)
                for name, values in inputs.items():
                    m.d.comb += [p.eq(v) for p, v in _pairs(getattr(block, name), values)]
                m.d.comb += [p.eq(v) for p, v in zip(block.acc, sums[columns], strict=True)]
                sums[columns] = block.out
                inputs = {name: getattr(block, f"{name}_out") for name in self.row_ports}
                first = columns.stop
        m.d.comb += [p.eq(v) for p, v in zip(self.sums, sums, strict=True)]
        return m
