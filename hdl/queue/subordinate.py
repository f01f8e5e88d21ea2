"""Subordinate side of the controller's bus: holds a request until it is answered."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data

__all__ = ["BusRequest", "hold_request"]


class BusRequest(data.Struct):
    """Request of `hdl.controller.bus.Bus`.

    valid: set until the request is answered.
    """

    valid: unsigned(1)
    address: unsigned(32)
    write: unsigned(1)
    mask: unsigned(4)
    data: unsigned(32)


def hold_request(m: Module, bus, answered: Signal) -> BusRequest:
    """Return a register with the bus's request, from the cycle after its acceptance until its response.

    Arguments:
        m: the subordinate's module.
        bus: bus port of the subordinate.
        answered: set in the cycle of the response; the next request is accepted in that cycle.
    """
    request = Signal(BusRequest)
    m.d.comb += [bus.ready.eq(~request.valid | answered), bus.response.eq(answered)]
    with m.If(bus.ready):
        m.d.sync += request.valid.eq(bus.valid)
        m.d.sync += [request[name].eq(getattr(bus, name)) for name in ("address", "write", "mask", "data")]
    return request
