"""Host link: the byte protocol between a host and a board.

Both sides send frames: a header, for some codes a payload, and the CRC-32 (IEEE 802.3) of both. Numbers are
little-endian. The host sends one frame and waits for its answer, which repeats tag, length and address.

An invalid frame has no effect; the board reports it in one answer once the line is idle, after a gap longer than any
gap in a frame. A host that receives no valid answer repeats its frame.
"""

import enum

__all__ = [
    "CHECK_BYTES", "CONSOLE_BYTES", "CONTROL_RESET", "CONTROL_START", "FRAME_HEADER_BYTES", "HEADER", "IDENTITY_WORD",
    "PAYLOAD_BYTES", "SYNC", "Answer", "BoardRegister", "BoardStatus", "LinkCommand",
]  # fmt: skip

SYNC = 0xA5
"""First byte of every frame."""

HEADER: tuple[tuple[str, int], ...] = (("sync", 1), ("code", 1), ("tag", 1), ("length", 2), ("address", 4))
"""Fields of the header, in the order of transmission, with their bytes.

code: a `LinkCommand` or an `Answer`. tag: any number; the answer repeats it. length: bytes to read or write.
address: of memory or of a register.
"""

FRAME_HEADER_BYTES = sum(size for _, size in HEADER)

CHECK_BYTES = 4
"""Bytes of the CRC, after the payload."""

PAYLOAD_BYTES = 512
"""Maximum payload of a frame; no access crosses a multiple of it."""


class LinkCommand(enum.IntEnum):
    """Command that a host sends to the board."""

    WRITE_MEMORY = 1
    """Write the payload to HBM. Address and length are multiples of the bytes of an HBM beat."""
    READ_MEMORY = 2
    """Read `length` bytes of HBM into the answer. Address and length are multiples of the bytes of an HBM beat."""
    WRITE_REGISTER = 3
    """Write the payload, 4 bytes, to a register."""
    READ_REGISTER = 4
    """Read the 4 bytes of a register into the answer."""


class Answer(enum.IntEnum):
    """Answer of the board to a command; only `DONE` can have a payload."""

    DONE = 0x80
    CORRUPTED = 0x81
    """Bytes outside a frame, or a wrong bit in a frame. Tag, length and address are undefined."""
    TRUNCATED = 0x82
    """The line was idle within a frame. Tag, length and address are undefined."""
    UNKNOWN = 0x83
    """The command does not exist."""
    REFUSED = 0x84
    """Address or length violates the command's rule, or the register does not exist."""
    FAILED = 0x85
    """Memory returned an error, or did not answer; in the second case it must be reset."""


class BoardRegister(enum.IntEnum):
    """Addresses of the board's registers, 32 bits each."""

    IDENTITY = 0x00
    """`IDENTITY_WORD`."""
    CONTROL = 0x04
    """Write: `CONTROL_START`, `CONTROL_RESET`."""
    STATUS = 0x08
    """Bits of `BoardStatus`."""
    BOOT_ADDRESS = 0x0C
    """HBM address of the image."""
    EXIT_CODE = 0x10
    """Exit code of the controller's program, valid when it is done."""
    ERROR = 0x14
    """Error of the core: cause in bits 0 to 7, queue in bits 8 to 15."""
    ERROR_ADDRESS = 0x18
    """HBM address of the record with that error."""
    ERROR_DETAIL = 0x1C
    CYCLES = 0x20
    """Cycles from the start to the end of the program, or until now."""
    MACHINE = 0x24
    """Bytes of an HBM beat in bits 0 to 7, rows in 8 to 19 and columns in 20 to 31; rows and columns are 0 without a
    core.
    """
    CONSOLE_COUNT = 0x28
    """Number of bytes that the program has printed."""
    CONSOLE = 0x1000
    """First printed byte, one per register; there are `CONSOLE_BYTES` of them, later bytes are lost."""


IDENTITY_WORD = 0x3142_434E
"""Identity of a board with this protocol: "NCB1"."""

CONSOLE_BYTES = 512

CONTROL_START = 1
"""Boot the core."""

CONTROL_RESET = 2
"""Reset the core and its memory port until another value is written; HBM keeps its contents."""


class BoardStatus(enum.IntFlag):
    """Bits of `BoardRegister.STATUS`."""

    READY = 1
    """Memory is initialised."""
    DONE = 2
    """The controller's program has ended."""
    ERROR = 4
    """The core has reported an error."""
    QUIET = 8
    """The core is idle."""
