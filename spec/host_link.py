"""The host link: what a host and a board say to each other, byte by byte.

Either side sends frames: a header, for some codes a payload, and the CRC-32 (IEEE 802.3) of both. Numbers are
little-endian. The host sends one frame and waits for its answer, which repeats tag, length and address. A frame that is
not in order is refused: it does nothing, and when the line has been quiet for a while there is one answer that says so.
All commands may be repeated, so a host that gets no answer in order sends its frame again.
"""

import enum

__all__ = [
    "CHECK_BYTES", "CONSOLE_BYTES", "CONTROL_RESET", "CONTROL_START", "FRAME_HEADER_BYTES", "HEADER", "IDENTITY_WORD",
    "PAYLOAD_BYTES", "SYNC", "Answer", "BoardRegister", "BoardStatus", "LinkCommand",
]  # fmt: skip

SYNC = 0xA5
"""The first byte of every frame."""

HEADER: tuple[tuple[str, int], ...] = (("sync", 1), ("code", 1), ("tag", 1), ("length", 2), ("address", 4))
"""Fields of the header in the order in which they are sent, and the bytes of each. code: a `LinkCommand` or an
`Answer`.
tag: any number, by which the host knows the answer. length: bytes that are read or written. address: in memory, or of a
register."""

FRAME_HEADER_BYTES = sum(size for _, size in HEADER)

CHECK_BYTES = 4
"""Of the CRC, behind the payload."""

PAYLOAD_BYTES = 512
"""Of a frame at most; no access crosses a multiple of it."""


class LinkCommand(enum.IntEnum):
    """What a host asks for."""

    WRITE_MEMORY = 1
    """The payload is written to HBM. Address and length are multiples of the bytes of a beat of HBM's port."""
    READ_MEMORY = 2
    """The answer has `length` bytes of HBM; likewise."""
    WRITE_REGISTER = 3
    """The payload, 4 bytes, is written to a register."""
    READ_REGISTER = 4
    """The answer has the 4 bytes of a register."""


class Answer(enum.IntEnum):
    """What became of it; all but `DONE` have no payload."""

    DONE = 0x80
    CORRUPTED = 0x81
    """What came is no frame, or a bit of it is wrong. Tag, length and address mean nothing."""
    TRUNCATED = 0x82
    """The line was quiet within a frame. Tag, length and address mean nothing."""
    UNKNOWN = 0x83
    """There is no such command."""
    REFUSED = 0x84
    """Address or length break the rule of the command, or there is no such register."""
    FAILED = 0x85
    """Memory answered with an error, or not at all; in that case it has to be reset."""


class BoardRegister(enum.IntEnum):
    """Addresses of the registers, 32 bits each."""

    IDENTITY = 0x00
    """`IDENTITY_WORD`."""
    CONTROL = 0x04
    """Written: `CONTROL_START`, `CONTROL_RESET`."""
    STATUS = 0x08
    """Bits of `BoardStatus`."""
    BOOT_ADDRESS = 0x0C
    """Of the image in HBM."""
    EXIT_CODE = 0x10
    """Of the controller's program, once it is done."""
    ERROR = 0x14
    """Of the core: the cause in bits 0 to 7, the queue in 8 to 15."""
    ERROR_ADDRESS = 0x18
    """Of the record, in HBM."""
    ERROR_DETAIL = 0x1C
    CYCLES = 0x20
    """From the start to the end of the program, or until now."""
    MACHINE = 0x24
    """Bytes of a beat of HBM's port in bits 0 to 7, rows in 8 to 19 and columns in 20 to 31; both are 0 if there is no
    core."""
    CONSOLE_COUNT = 0x28
    """Bytes that the program has printed."""
    CONSOLE = 0x1000
    """The first of them, one a register, `CONSOLE_BYTES` in all; those behind them are lost."""


IDENTITY_WORD = 0x3142_434E
"""What a board answers that speaks this protocol: "NCB1"."""

CONSOLE_BYTES = 512

CONTROL_START = 1
"""The core boots."""

CONTROL_RESET = 2
"""The core and the way to memory are reset, for as long as this was the last to be written; what is in HBM stays."""


class BoardStatus(enum.IntFlag):
    """Bits of `BoardRegister.STATUS`."""

    READY = 1
    """Memory may be used."""
    DONE = 2
    """The controller's program has ended."""
    ERROR = 4
    """The core has reported an error."""
    QUIET = 8
    """Nothing moves in the core."""
