"""Wire of a link, in one direction, with injected faults."""

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.flit import frame_layout

__all__ = ["DISTURBANCE", "FLIP_BITS", "Wire"]

FLIP_BITS = 10
"""Width of the index of a bit in a frame."""

DISTURBANCE = data.StructLayout({"flip": 1, "flip_bit": FLIP_BITS, "drop": 1, "repeat": 1, "cut": 1})
"""Fault of the frame delivered in this cycle.

Fields:
    flip: bit `flip_bit` is inverted, if the frame has that many bits.
    drop: no frame is delivered.
    repeat: the previous frame is delivered instead.
    cut: no frame is delivered as long as it is set.
"""


class Wire(wiring.Component):
    """Delivers every frame `latency` cycles later.

    Arguments:
        link_bytes: data bytes per flit.
        latency: cycles, at least 1.

    Ports:
        o: the frame delivered, if `present`.
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
        for stage in range(self.latency + 1):  # The last stage holds the previous frame.
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
