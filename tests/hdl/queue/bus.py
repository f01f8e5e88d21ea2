from functools import partial

from tests.hdl.simulation import drive, simulated

__all__ = ["BusManager", "on_bus"]


class BusManager:
    """Accesses the subordinate at a bus port, one access after the other."""

    def __init__(self, ctx, bus):
        self.ctx, self.bus = ctx, bus
        self.cycles = 0
        """Cycles from request to response of the last access."""

    async def access(self, address, data=None, mask=0xF, each=lambda: None):
        """Return the word that was read, "error", or None after a write; call `each` in every cycle before."""
        ctx, bus = self.ctx, self.bus
        idle = 0x9E37_79B1 * (address + 1) & 0xFFFF_FFFF  # the data of a read are ignored
        request = {"address": address, "write": data is not None, "mask": mask, "data": idle if data is None else data}
        assert not ctx.get(bus.response), "a response without a request"
        drive(ctx, bus, valid=1, **request)
        assert ctx.get(bus.ready), "a request is refused though none is outstanding"
        await ctx.tick()
        drive(ctx, bus, valid=0, **dict.fromkeys(request, 0))
        for self.cycles in range(1, 1000):
            each()
            *_, response, error, result = await ctx.tick().sample(bus.response, bus.error, bus.result)
            if response:
                return "error" if error else result if data is None else None
        raise AssertionError(f"no response from {address:#x}")


on_bus = partial(simulated, helpers={"manager": lambda ctx, dut: BusManager(ctx, dut.bus)})
"""Like `simulated`; the testbench has a parameter `manager`, a manager of the unit's bus."""
