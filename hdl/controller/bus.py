"""The controller's bus: a request, and later its response, in order."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Bus"]


class Bus(wiring.Signature):
    """Seen from the side that asks, 32 bits wide.

    Members:
        valid, address, write, mask, data: a request, which must stay until it is taken; address in bytes, a multiple of
            4; mask has a bit for each byte of the word, of what is written or read.
        ready: the request is taken at the end of this cycle.
        response: a taken request is answered, exactly once, in order, at the earliest in the next cycle.
        result: the word that was read, with the response. error: with the response: there is nothing at the address, or
            it refuses the access; nothing was written.
    """

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),
                "address": Out(32),
                "write": Out(1),
                "mask": Out(4),
                "data": Out(32),
                "ready": In(1),
                "response": In(1),
                "result": In(32),
                "error": In(1),
            }
        )
