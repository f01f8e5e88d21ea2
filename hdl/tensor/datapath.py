"""Datapath of the tensor engine, from memory words to sums in lockstep.

words -> edge -> row skew -> array -> column skew -> sums
"""

from functools import partial

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.operand import Operand
from neuroncore_rtl.hdl.primitives.delay_line import DelayLine
from neuroncore_rtl.hdl.tensor.array import SystolicArray, row_skew, tile_count
from neuroncore_rtl.hdl.tensor.edge import MOVING_BITS, STATIONARY_BITS, Edge, Element, edge_name
from neuroncore_rtl.hdl.tensor.tile import RowEvents
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config

__all__ = ["Datapath"]

EDGE_ROWS = 8
"""Rows of an edge module: as many as an array block has."""


class Datapath(wiring.Component):
    """Edge, systolic array, and the delay lines on both sides of it.

    Ports:
        moving, stationary, moving_words, stationary_words, moving_present, stationary_present: see `Edge`.
        fresh: see `moving_fresh` of `Edge`.
        swap, load, distance: see `hdl.tensor.tile.RowEvents`; `config.edge_latency` cycles after their words.
        moving_row0, weights_row0: operands entering the array at row 0, for waveforms.
        sums: FP32, one per column, rows * mac_latency + tiles - 1 cycles after the operand at row 0.
    """

    def __init__(self, config: Config):
        self.config = config
        operand = Operand(config.significand_bits)
        events = RowEvents(tile_count(config.columns), config.significand_bits)
        super().__init__(
            {
                "moving": In(Element),
                "fresh": In(1),
                "moving_present": In(config.rows),
                "moving_words": In(MOVING_BITS * config.rows),
                "stationary": In(Element),
                "stationary_present": In(config.rows),
                "stationary_words": In(STATIONARY_BITS * config.rows),
                **{name: In(events[name].shape) for name in ("swap", "load", "distance")},
                "sums": Out(32 * config.columns),
                "moving_row0": Out(operand),
                "weights_row0": Out(operand).array(LOAD_COLUMNS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, bits, columns = self.config, self.config.significand_bits, self.config.columns
        name = edge_name(bits, columns, config.edge_latency)
        m.submodules.array = array = SystolicArray(config)
        for first in range(0, config.rows, EDGE_ROWS):
            rows = range(first, min(first + EDGE_ROWS, config.rows))
            build = partial(Edge, len(rows), bits, columns, config.edge_latency)
            edge = shared(m, f"edge{first}", f"edge_{len(rows)}_{name}", build, platform)
            m.d.comb += [
                edge.moving.eq(self.moving),
                edge.moving_fresh.eq(self.fresh),
                edge.moving_present.eq(self.moving_present[first : rows.stop]),
                edge.stationary.eq(self.stationary),
                edge.stationary_present.eq(self.stationary_present[first : rows.stop]),
            ]
            if not first:
                m.d.comb += self.moving_row0.eq(edge.moving_out[0])
                m.d.comb += [to.eq(at) for to, at in zip(self.weights_row0, edge.weights_out[0], strict=True)]
            for index, row in enumerate(rows):
                m.d.comb += [
                    edge.moving_words[index].eq(self.moving_words.word_select(row, MOVING_BITS)),
                    edge.stationary_words[index].eq(self.stationary_words.word_select(row, STATIONARY_BITS)),
                ]
                control = (self.swap, self.load, self.distance)
                events = Cat(edge.moving_out[index], *control, *edge.weights_out[index])
                m.submodules[f"row_skew{row}"] = line = DelayLine(len(events), row_skew(config, row))
                m.d.comb += [line.i.eq(events), array.events[row].eq(line.o)]

        tiles = tile_count(config.columns)
        sums = []
        for tile in range(tiles):
            columns = array.sums[32 * LOAD_COLUMNS * tile : 32 * LOAD_COLUMNS * (tile + 1)]
            m.submodules[f"column_skew{tile}"] = line = DelayLine(len(columns), tiles - 1 - tile)
            m.d.comb += line.i.eq(columns)
            sums.append(line.o)
        m.d.comb += self.sums.eq(Cat(*sums))
        return m
