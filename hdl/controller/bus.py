"""Controller bus: requests, and later their responses, in order."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Bus"]


class Bus(wiring.Signature):
    """Controller bus, 32 bits wide, seen from the manager.

    Members:
        valid, address, write, mask, data: a request, held until accepted. The address is in bytes, a multiple of 4; the
            mask has one bit per byte that is written or read.
        ready: the request is accepted at the end of this cycle.
        response: answers the oldest accepted request, exactly once, in the next cycle at the earliest.
        result: the word that was read, valid with `response`.
        error: valid with `response`: the address does not exist or refuses the access; nothing was written.
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
