"""Frames of the host link made in Python, independent of the host's software."""

import zlib

from neuroncore_rtl.spec.host_link import SYNC, Answer, LinkCommand
from tests.hdl.simulation import drive

__all__ = ["Line", "frame", "parsed", "write"]

QUIET = 20
"""Cycles without a byte after which an answer has ended."""


def frame(code: int, address: int = 0, length: int = 0, payload: bytes = b"", tag: int = 0) -> bytes:
    numbers = length.to_bytes(2, "little") + address.to_bytes(4, "little")
    body = bytes((SYNC, code, tag)) + numbers + payload
    return body + zlib.crc32(body).to_bytes(4, "little")


def parsed(answer: bytes) -> tuple[Answer, int, bytes]:
    assert answer[0] == SYNC
    assert int.from_bytes(answer[-4:], "little") == zlib.crc32(answer[:-4])
    return Answer(answer[1]), answer[2], answer[9:-4]


def write(address: int, payload: bytes, tag: int = 0, command: LinkCommand = LinkCommand.WRITE_MEMORY) -> bytes:
    return frame(command, address, len(payload), payload, tag)


class Line:
    """Host's end of a byte line: the unit `link`, with `gap` cycles between bytes."""

    def __init__(self, ctx, link, gap: int = 4):
        self.ctx, self.link, self.gap = ctx, link, gap
        ctx.set(link.o.ready, 1)

    async def send(self, data: bytes, gap: int | None = None) -> None:
        for byte in data:
            drive(self.ctx, self.link.i, payload=byte, valid=1)
            await self.ctx.tick()
            self.ctx.set(self.link.i.valid, 0)
            await self.ctx.tick().repeat((gap or self.gap) - 1)

    async def send_break(self) -> None:
        self.ctx.set(self.link.broken, 1)
        await self.ctx.tick()
        self.ctx.set(self.link.broken, 0)

    async def receive(self, patience: int = 5000) -> bytes:
        found, quiet, o = bytearray(), 0, self.link.o
        while quiet < (QUIET if found else patience):
            *_, valid, byte = await self.ctx.tick().sample(o.valid, o.payload)
            quiet = 0 if valid else quiet + 1
            if valid:
                found.append(byte)
        return bytes(found)

    async def ask(self, data: bytes) -> tuple[Answer, int, bytes]:
        await self.send(data)
        return parsed(await self.receive())
