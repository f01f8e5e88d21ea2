"""The controller's end of its bus, in tests."""

from tests.hdl.simulation import drive

__all__ = ["Asker"]


class Asker:
    """Asks a subordinate, one access after the other.

    Arguments:
        ctx, bus: simulator, port of the subordinate.
    """

    def __init__(self, ctx, bus):
        self.ctx, self.bus = ctx, bus
        self.cycles = 0
        """From the request that was taken to the response, of the last access."""

    async def access(self, address, data=None, mask=0xF, each=lambda: None):
        """Write data, or read if it is None; return the word that was read, "error", or None after a write.

        Arguments:
            address, data, mask: of the request.
            each: called in every cycle until the response is there.
        """
        ctx, bus = self.ctx, self.bus
        idle = 0x9E37_79B1 * (address + 1) & 0xFFFF_FFFF  # nobody looks at what a read brings
        request = {"address": address, "write": data is not None, "mask": mask, "data": idle if data is None else data}
        assert not ctx.get(bus.response), "an answer to nobody"
        drive(ctx, bus, valid=1, **request)
        assert ctx.get(bus.ready), "a request was not taken though all before it were answered"
        await ctx.tick()
        drive(ctx, bus, valid=0, **dict.fromkeys(request, 0))  # the subordinate has kept what it needs
        for self.cycles in range(1, 1000):
            each()
            *_, response, error, result = await ctx.tick().sample(bus.response, bus.error, bus.result)
            if response:
                return "error" if error else result if data is None else None
        raise AssertionError(f"no answer from {address:#x}")
