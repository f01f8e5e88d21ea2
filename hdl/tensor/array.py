"""Systolic array: rows of tiles, partitioned into blocks that are converted and compiled for simulation only once.

Moving operands enter each row at the left and pass one tile per cycle. Partial sums enter at the top and pass one row
per `mac_latency` cycles. The caller delays the rows (`row_skew`) and realigns the columns (`column_skew`).
"""

from functools import partial

from amaranth import Cat, Const, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.tensor.tile import RowEvents, Tile
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config

__all__ = ["ArrayBlock", "SystolicArray", "row_skew", "tile_count"]

BLOCK_ROWS = 8
BLOCK_TILES = 8
"""Block shape: larger blocks compile slowly; smaller ones have more ports, which slow simulation."""

NEGATIVE_ZERO = 0x80000000


def tile_count(columns: int) -> int:
    """Return the number of tiles in a row of the array; the last may be narrower."""
    return -(-columns // LOAD_COLUMNS)


def row_skew(config: Config, row: int) -> int:
    """Return the delay of the operands of `row` relative to row 0, in cycles."""
    return row * config.mac_latency


def _widths(columns: int) -> list[int]:
    return [min(LOAD_COLUMNS, columns - first) for first in range(0, columns, LOAD_COLUMNS)]


_SCALARS = ("moving", "swap", "load", "distance")


def _entering(tile: Tile, events, suffix: str = ""):
    yield from ((getattr(tile, name + suffix), getattr(events, name)) for name in _SCALARS)
    yield from ((port, events.weights[index]) for index, port in enumerate(getattr(tile, "weights" + suffix)))


def _between(left: Tile, right: Tile):
    yield from ((getattr(right, name), getattr(left, f"{name}_out")) for name in _SCALARS)
    yield from zip(right.weights, left.weights_out, strict=True)


class ArrayBlock(wiring.Component):
    """Rectangle of tiles.

    Arguments:
        rows: number of rows of the block.
        widths: number of columns of each tile in a row.
        tiles: number of tiles in a complete row of the array.
        mac_latency: pipeline stages of a multiply-accumulate.
        significand_bits: significand width of an operand.

    Ports (few and wide, as each costs simulation time):
        events: inputs of each row's first tile (`RowEvents`).
        events_out: outputs of each row's last tile (`RowEvents`).
        acc: FP32 partial sums that enter the first row, one per column.
        out: FP32 partial sums after the last row, one per column.
    """

    def __init__(self, rows: int, widths: list[int], tiles: int, mac_latency: int, significand_bits: int):
        self.rows = rows
        self.widths = widths
        self.tiles = tiles
        self.mac_latency = mac_latency
        self.significand_bits = significand_bits
        events = data.ArrayLayout(RowEvents(tiles, significand_bits), rows)
        sums = data.ArrayLayout(32, sum(widths))
        super().__init__({"events": In(events), "events_out": Out(events), "acc": In(sums), "out": Out(sums)})

    def elaborate(self, platform):
        m = Module()
        sums = [self.acc[column] for column in range(sum(self.widths))]
        for row in range(self.rows):
            left = None
            first = 0
            for index, width in enumerate(self.widths):
                module = f"tile_{width}_of_{self.tiles}_latency{self.mac_latency}_bits{self.significand_bits}"
                build = partial(Tile, width, self.tiles, self.mac_latency, self.significand_bits)
                tile = shared(m, f"tile_{row}_{index}", module, build, platform)
                pairs = _entering(tile, self.events[row]) if left is None else _between(left, tile)
                m.d.comb += [port.eq(value) for port, value in pairs]
                columns = slice(first, first + width)
                m.d.comb += [port.eq(value) for port, value in zip(tile.acc, sums[columns], strict=True)]
                sums[columns] = tile.out
                left = tile
                first += width
            m.d.comb += [value.eq(port) for port, value in _entering(left, self.events_out[row], "_out")]
        m.d.comb += self.out.eq(Cat(*sums))
        return m


class SystolicArray(wiring.Component):
    """Array of `rows x columns` processing elements.

    Ports:
        events: input of the first tile of each row r (`RowEvents`), delayed by `row_skew(config, r)` cycles.
        sums: FP32, one per column; they start at -0, the neutral element of addition. The columns of tile g are valid
            rows * mac_latency + g cycles after the operand at row 0.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(
            {
                "events": In(RowEvents(tile_count(config.columns), config.significand_bits)).array(config.rows),
                "sums": Out(32 * config.columns),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        widths = _widths(config.columns)

        sums: list[Value] = [Const(NEGATIVE_ZERO, 32)] * config.columns
        for top in range(0, config.rows, BLOCK_ROWS):
            rows = min(BLOCK_ROWS, config.rows - top)
            events = Cat(self.events[row] for row in range(top, top + rows))
            first = 0
            for left in range(0, len(widths), BLOCK_TILES):
                block_widths = widths[left : left + BLOCK_TILES]
                columns = slice(first, first + sum(block_widths))
                shape = f"{rows}x{sum(block_widths)}_of_{len(widths)}"
                module = f"block_{shape}_latency{config.mac_latency}_bits{config.significand_bits}"
                build = partial(
                    ArrayBlock, rows, block_widths, len(widths), config.mac_latency, config.significand_bits
                )
                block = shared(m, f"block_{top}_{first}", module, build, platform)
                m.d.comb += [
                    block.events.eq(events),
                    block.acc.eq(Cat(*sums[columns])),
                ]
                sums[columns] = [block.out[column] for column in range(sum(block_widths))]
                events = block.events_out
                first = columns.stop
        m.d.comb += self.sums.eq(Cat(*sums))
        return m
