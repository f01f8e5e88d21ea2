"""What subordinates of the controller's bus have in common: they hold a request until they have answered it."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data

__all__ = ["BusRequest", "hold_request"]


class BusRequest(data.Struct):
    """A request as :class:`hdl.controller.bus.Bus` brings it. valid: until it is answered."""

    valid: unsigned(1)
    address: unsigned(32)
    write: unsigned(1)
    mask: unsigned(4)
    data: unsigned(32)


def hold_request(m: Module, bus, answered: Signal) -> BusRequest:
    """Return the request that the bus brought, from the next cycle on.

    Arguments:
        m: the subordinate's module.
        bus: its port.
        answered: high in the cycle of the response; the next request is taken in that cycle.
    """
    request = Signal(BusRequest)
    m.d.comb += [bus.ready.eq(~request.valid | answered), bus.response.eq(answered)]
    with m.If(bus.ready):
        m.d.sync += request.valid.eq(bus.valid)
        m.d.sync += [request[name].eq(getattr(bus, name)) for name in ("address", "write", "mask", "data")]
    return request
