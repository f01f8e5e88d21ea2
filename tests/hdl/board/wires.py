__all__ = ["Wire"]


class Wire:
    """Both wires of a UART: `to` the unit and `back`, with `bit` clock cycles per bit."""

    def __init__(self, ctx, to, back, bit: int):
        self.ctx, self.to, self.back, self.bit = ctx, to, back, bit

    async def send(self, data: bytes, gap: int = 0) -> None:
        for byte in data:
            for level in (0, *(byte >> n & 1 for n in range(8)), 1):
                self.ctx.set(self.to, level)
                await self.ctx.tick().repeat(self.bit)
            if gap:
                await self.ctx.tick().repeat(gap)

    async def receive(self, quiet: int, first: int = 100_000) -> bytes:
        """Return all bytes until the line is quiet for `quiet` cycles; the first one is awaited for `first` cycles."""
        found, limit = bytearray(), first
        while True:
            for _ in range(limit):
                if not self.ctx.get(self.back):
                    break
                await self.ctx.tick()
            else:
                return bytes(found)
            await self.ctx.tick().repeat(self.bit + self.bit // 2)
            value = 0
            for n in range(8):
                value |= self.ctx.get(self.back) << n
                await self.ctx.tick().repeat(self.bit)
            assert self.ctx.get(self.back), "the stop bit is low"
            found.append(value)
            limit = quiet
