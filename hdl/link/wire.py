"""The wire of a link, one way, and what can befall it."""

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.flit import frame_layout

__all__ = ["DISTURBANCE", "FLIP_BITS", "Wire"]

FLIP_BITS = 10
"""Bits of the number of a frame's bit."""

DISTURBANCE = data.StructLayout({"flip": 1, "flip_bit": FLIP_BITS, "drop": 1, "repeat": 1, "cut": 1})
"""What befalls the frame that is delivered in this cycle. flip: bit `flip_bit` is turned over, if the frame has one.
drop: nothing comes. repeat: the frame sent before it comes instead. cut: nothing comes, for as long as it is set."""


class Wire(wiring.Component):
    """Delivers every frame `latency` cycles later.

    Arguments:
        link_bytes: of a flit.
        latency: cycles, at least 1.

    Ports:
        i: a frame in every cycle.
        o: the frame delivered, if `present`.
        disturbance: :data:`DISTURBANCE`.
    """

    def __init__(self, link_bytes: int, latency: int):
        self.link_bytes = link_bytes
        self.latency = latency
        super().__init__(
            {
                "i": In(frame_layout(link_bytes)),
                "o": Out(frame_layout(link_bytes)),
                "present": Out(1),
                "disturbance": In(DISTURBANCE),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = frame_layout(self.link_bytes)
        frame, present = self.i, Const(1)
        for stage in range(self.latency + 1):  # The last is the frame sent before.
            before, before_present = frame, present
            frame = Signal(layout, name=f"frame{stage}", reset_less=True)
            present = Signal(name=f"present{stage}")
            m.d.sync += [frame.eq(before), present.eq(before_present)]

        chosen, turned = Signal(layout.size), Signal(layout.size)
        m.d.comb += [
            chosen.eq(Mux(self.disturbance.repeat, frame.as_value(), before.as_value())),
            turned.eq((self.disturbance.flip << self.disturbance.flip_bit)[: layout.size]),
            self.o.eq(chosen ^ turned),
            self.present.eq(
                Mux(self.disturbance.repeat, present, before_present) & ~self.disturbance.drop & ~self.disturbance.cut
            ),
        ]
        return m
