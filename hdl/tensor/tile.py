"""A tile: the processing elements of one row that share a moving register, with their stationary weights.

Grouping as many columns as one load step fills lets the fast weight load and the moving data travel at one speed, a
tile a cycle, so every event reaches a tile in the order in which it entered the array: a load may begin the cycle
after a swap, with no wait for the swap to cross the array. It also makes the array's skew along a row a quarter of its
columns.
"""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.hdl.arith.operand import SIGNIFICAND_BITS, Operand
from neuroncore_rtl.spec.config import LOAD_COLUMNS

__all__ = ["RowEvents", "Tile"]


class RowEvents(data.StructLayout):
    """What passes along a row, a tile a cycle.

    Arguments:
        tiles: tiles of the row.
        significand_bits: of an operand.

    Fields:
        moving: the moving operand.
        swap: from this operand on, the shadow weights are the active ones.
        load: a step of the stationary load, which the tile captures at `distance` 0.
        distance: tiles that a load step has yet to cross.
        weights: the load step's operands, one for each column of the tile.
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
    """One to `LOAD_COLUMNS` processing elements of a row: multiply-accumulate, active and shadow weight each.

    Arguments:
        width: columns in this tile.
        tiles: tiles of its row.
        mac_latency: pipeline stages of a multiply-accumulate.
        significand_bits: of an operand.

    Ports:
        moving, swap, load, distance, weights: the fields of :class:`RowEvents`, each a port of its own because
            simulators handle words of up to 32 bits best. `*_out` are their copies a cycle later.
        acc: partial sums from the row above, FP32 for each column, in the cycle of the moving operand they belong to.
        out: partial sums to the row below, `mac_latency` cycles later.

    One moving operand, and one load step, per cycle. A load step and a swap in the same cycle: the swap takes the old
    shadow weights.
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
