"""The controller's end of its bus, in tests."""

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

    async def access(self, address, data=None, mask=0xF, each=None):
        """Write data, or read if it is None; return the word that was read, "error", or None after a write.

        Arguments:
            address, data, mask: of the request.
            each: called in every cycle until the response is there.
        """
        ctx, bus = self.ctx, self.bus
        request = {"address": address, "write": data is not None, "mask": mask, "data": data or 0}
        for name, value in request.items():
            ctx.set(getattr(bus, name), value)
        ctx.set(bus.valid, 1)
        assert ctx.get(bus.ready), "a request was not taken though all before it were answered"
        await ctx.tick()
        ctx.set(bus.valid, 0)
        for name in request:
            ctx.set(getattr(bus, name), 0)  # the subordinate has kept what it needs
        self.cycles = 1
        while True:
            if each:
                each()
            if ctx.get(bus.response):
                break
            await ctx.tick()
            self.cycles += 1
            assert self.cycles < 1000, f"no answer from {address:#x}"
        error, result = ctx.get(bus.error), ctx.get(bus.result)
        await ctx.tick()
        if error:
            return "error"
        return result if data is None else None
