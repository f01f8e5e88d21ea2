"""Frames of the host link made in Python, independent of the host's software."""

import struct
import zlib

from neuroncore_rtl.spec.host_link import SYNC, Answer, LinkCommand
from tests.hdl.simulation import flash

__all__ = ["Line", "frame", "parsed", "write"]

QUIET = 20
"""Cycles without a byte after which an answer has ended."""


def frame(code: int, address: int = 0, length: int = 0, payload: bytes = b"", tag: int = 0) -> bytes:
    body = struct.pack("<BBBHI", SYNC, code, tag, length, address) + payload
    return body + zlib.crc32(body).to_bytes(4, "little")


def parsed(answer: bytes) -> tuple[Answer, int, bytes]:
    assert answer[0] == SYNC
    assert int.from_bytes(answer[-4:], "little") == zlib.crc32(answer[:-4])
    return Answer(answer[1]), answer[2], answer[9:-4]


def write(address: int, payload: bytes, tag: int = 0, command: LinkCommand = LinkCommand.WRITE_MEMORY) -> bytes:
    return frame(command, address, len(payload), payload, tag)


class Line:
    """Host's end of a byte line: the unit `link`."""

    def __init__(self, ctx, link):
        self.ctx, self.link = ctx, link
        ctx.set(link.o.ready, 1)

    async def send(self, data: bytes, gap: int = 4) -> None:
        """Send a byte every `gap` cycles."""
        for byte in data:
            await flash(self.ctx, self.link.i, byte)
            await self.ctx.tick().repeat(gap - 1)

    async def receive(self, patience: int = 5000) -> bytes:
        found, quiet, o = b"", 0, self.link.o
        while quiet < (QUIET if found else patience):
            *_, valid, byte = await self.ctx.tick().sample(o.valid, o.payload)
            quiet = 0 if valid else quiet + 1
            found += bytes([byte] * valid)
        return found

    async def ask(self, data: bytes) -> tuple[Answer, int, bytes]:
        await self.send(data)
        return parsed(await self.receive())
