"""Tile: the processing elements of one row that share a moving register, with their stationary weights.

A tile has as many columns as one load step fills. Weights and moving data thus advance at the same speed, one tile per
cycle, and events reach each tile in the order in which they entered the array. A swap makes the loaded (shadow) weights
active. A load may begin in the cycle after a swap, before the swap has crossed the array.
"""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.hdl.arith.operand import SIGNIFICAND_BITS, Operand
from neuroncore_rtl.spec.config import LOAD_COLUMNS

__all__ = ["RowEvents", "Tile"]


class RowEvents(data.StructLayout):
    """Events that pass along a row, one tile per cycle.

    Arguments:
        tiles: number of tiles of the row.
        significand_bits: significand width of an operand.

    Fields:
        moving: the moving operand.
        swap: from this moving operand on, the shadow weights are the active weights.
        load: a load step passes; the tile at which its `distance` is 0 stores its weights.
        distance: number of tiles that the load step still has to pass.
        weights: the load step's operands, one per column of the tile.
    """

    def __init__(self, tiles: int, significand_bits: int = SIGNIFICAND_BITS):
        operand = Operand(significand_bits)
        super().__init__(
            {
                "moving": operand,
                "swap": unsigned(1),
                "load": unsigned(1),
                "distance": unsigned(max(1, (tiles - 1).bit_length())),
                "weights": data.ArrayLayout(operand, LOAD_COLUMNS),
            }
        )


class Tile(wiring.Component):
    """One to `LOAD_COLUMNS` processing elements of a row: each a multiply-accumulate, an active and a shadow weight.

    One moving operand and one load step per cycle. A swap in the same cycle as a load step activates the old shadow
    weights.

    Arguments:
        width: number of columns of this tile.
        tiles: number of tiles of the row.
        mac_latency: pipeline stages of a multiply-accumulate.
        significand_bits: significand width of an operand.

    Ports:
        moving, swap, load, distance, weights: fields of `RowEvents`, separate for simulation speed.
        *_out: the same fields for the next tile, one cycle later.
        acc: FP32 partial sums from the row above, one per column, in the cycle of their moving operand.
        out: partial sums to the row below, `mac_latency` cycles later.
    """

    def __init__(self, width: int, tiles: int, mac_latency: int, significand_bits: int = SIGNIFICAND_BITS):
        self.width = width
        self.mac_latency = mac_latency
        self.significand_bits = significand_bits
        events = RowEvents(tiles, significand_bits)
        inputs = {name: In(events[name].shape) for name in ("moving", "swap", "load", "distance")}
        inputs["weights"] = In(events["moving"].shape).array(LOAD_COLUMNS)
        outputs = {f"{name}_out": member.flip() for name, member in inputs.items()}
        super().__init__(inputs | outputs | {"acc": In(32).array(width), "out": Out(32).array(width)})

    def elaborate(self, platform):
        m = Module()
        operand = Operand(self.significand_bits)
        moving = Signal(operand, reset_less=True)
        distance = Signal.like(self.distance, reset_less=True)
        here = Signal()
        m.d.comb += [
            here.eq(self.load & (self.distance == 0)),
            self.moving_out.eq(moving),
            self.distance_out.eq(distance),
        ]
        m.d.sync += [
            moving.eq(self.moving),
            self.swap_out.eq(self.swap),
            self.load_out.eq(self.load & (self.distance != 0)),
        ]
        with m.If(self.load):
            m.d.sync += distance.eq(self.distance - 1)

        for column in range(LOAD_COLUMNS):
            passing = Signal(operand, name=f"passing{column}", reset_less=True)
            m.d.comb += self.weights_out[column].eq(passing)
            with m.If(self.load):
                m.d.sync += passing.eq(self.weights[column])

        for column in range(self.width):
            shadow = Signal(operand, name=f"shadow{column}", reset_less=True)
            active = Signal(operand, name=f"active{column}", reset_less=True)
            with m.If(here):
                m.d.sync += shadow.eq(self.weights[column])
            with m.If(self.swap):
                m.d.sync += active.eq(shadow)
            m.submodules[f"mac{column}"] = mac = Mac(self.mac_latency, self.significand_bits)
            m.d.comb += [
                mac.x.eq(moving),
                mac.w.eq(active),
                mac.acc.eq(self.acc[column]),
                self.out[column].eq(mac.out),
            ]
        return m
