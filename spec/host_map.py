"""What the host finds where behind the core's control port: registers of 32 bits, read and written whole.

Hardware, the host's software, its C header and docs/isa.md read these records. Offsets are in bytes, multiples of 4.
An access is refused with an error, and nothing is written, if there is no register, if it is of a part of a word, or
if the register is only read or cannot hold the value: bits of no field are 0.

Of a number of more than 32 bits the lower half is read first: that keeps the upper half for the next read of it.
"""

import enum
from dataclasses import dataclass
from functools import cached_property

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.cause import CAUSE_BITS

__all__ = [
    "BOOT_HIGH", "BOOT_LOW", "COUNTER_WORDS", "CYCLES_HIGH", "CYCLES_LOW", "EXIT_CODE", "HOST_ADDRESS_BITS",
    "HOST_CONTROL", "HOST_ERROR_CAUSE", "HOST_ERROR_DETAIL", "HOST_ERROR_HIGH", "HOST_ERROR_LOW", "HOST_ERROR_QUEUE",
    "HOST_INTERRUPT_ENABLE", "HOST_MAGIC", "HOST_REGISTERS", "HOST_VERSION", "IDENTITY", "INTERRUPT_STATUS", "OUTPUT",
    "PARAMETER_COUNT", "PARAMETER_WORDS", "SOURCES", "STATUS", "VERSION", "Effect", "HostField", "HostRegister",
    "counter_offset", "parameter_values",
]  # fmt: skip

HOST_ADDRESS_BITS = 14
"""Bits of an offset: the block has 16 KiB."""

HOST_MAGIC = 0x4843_4E52
"""What IDENTITY reads: "RNCH" in memory order."""

HOST_VERSION = 0x0001_0001
"""What VERSION reads: of this map. Another lower half has more registers, another upper half moves or changes some."""


class Effect(enum.Enum):
    """What an access to a register does."""

    READ = "read"
    """It is only read."""
    KEEP = "read, write"
    """It keeps what is written."""
    DO = "write 1 to do, read 0"
    """A bit that is written 1 does something once."""
    CLEAR = "read, write 1 to clear"
    """A bit that is written 1 becomes 0."""
    TAKE = "read takes"
    """Reading takes what was read away."""


@dataclass(frozen=True)
class HostField:
    """Bits of a register.

    Arguments:
        name: in capitals.
        low, width: where it is.
        meaning: what it says, or does.
    """

    name: str
    low: int
    width: int
    meaning: str

    @property
    def mask(self) -> int:
        """Its bits."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class HostRegister:
    """A register.

    Arguments:
        name: in capitals.
        offset: in bytes.
        effect: what an access does.
        meaning: what it is.
        fields: its bits; none if it is one number.
        width: bits of the number.
    """

    name: str
    offset: int
    effect: Effect
    meaning: str
    fields: tuple[HostField, ...] = ()
    width: int = 32

    @cached_property
    def mask(self) -> int:
        """The bits that it has."""
        return sum(field.mask for field in self.fields) if self.fields else (1 << self.width) - 1

    def bit(self, name: str) -> int:
        """Return the mask of a field.

        Raises:
            KeyError: if there is none of that name.
        """
        return {field.name: field for field in self.fields}[name].mask


def _bits(*named: tuple[str, str]) -> tuple[HostField, ...]:
    """Return fields of a bit each, from bit 0 on."""
    return tuple(HostField(name, place, 1, meaning) for place, (name, meaning) in enumerate(named))


SOURCES = (
    ("DONE", "the program has ended"),
    ("ERROR", "the core has reported an error"),
    ("OUTPUT", "the program has printed a byte"),
)
"""What asks for the host's attention: bits of INTERRUPT_ENABLE and INTERRUPT_STATUS, with their meaning."""

IDENTITY = HostRegister("IDENTITY", 0x00, Effect.READ, 'HOST_MAGIC, "RNCH" in memory order')
VERSION = HostRegister(
    "VERSION",
    0x04,
    Effect.READ,
    "HOST_VERSION, that of this map",
    (
        HostField("MINOR", 0, 16, "higher where there are more registers"),
        HostField("MAJOR", 16, 16, "another where registers have changed"),
    ),
)
HOST_CONTROL = HostRegister(
    "CONTROL",
    0x08,
    Effect.DO,
    "what the host wants; START is refused while STATUS has STARTED or RESET, and together with RESET",
    _bits(
        ("START", "boots the image at BOOT"),
        (
            "RESET",
            "resets the core, at any time: what it has asked HBM for is waited for; BOOT and INTERRUPT_ENABLE stay",
        ),
        ("INTERRUPT", "interrupts the controller (INTERRUPT_HOST of its registers)"),
    ),
)
STATUS = HostRegister(
    "STATUS",
    0x0C,
    Effect.READ,
    "what the core does",
    _bits(
        ("STARTED", "it was started since its reset"),
        ("DONE", "its program has ended, with EXIT_CODE"),
        ("ERROR", "it has reported an error, and begins nothing more"),
        ("QUIET", "nothing moves, and it waits for nothing of HBM"),
        ("RESET", "its reset is under way"),
    ),
)
BOOT_LOW = HostRegister(
    "BOOT_LOW", 0x10, Effect.KEEP, "HBM address of the image, lower half; a multiple of 128, lower bits count as 0"
)
BOOT_HIGH = HostRegister("BOOT_HIGH", 0x14, Effect.KEEP, "upper half", width=HBM_ADDRESS_BITS - 32)
EXIT_CODE = HostRegister("EXIT_CODE", 0x18, Effect.READ, "of the program that has ended")
HOST_ERROR_CAUSE = HostRegister(
    "ERROR_CAUSE", 0x1C, Effect.READ, "cause of the first error (Errors), 0 if there is none", width=CAUSE_BITS
)
HOST_ERROR_QUEUE = HostRegister("ERROR_QUEUE", 0x20, Effect.READ, "its queue", width=8)
HOST_ERROR_LOW = HostRegister("ERROR_LOW", 0x24, Effect.READ, "HBM address of its record, lower half")
HOST_ERROR_HIGH = HostRegister("ERROR_HIGH", 0x28, Effect.READ, "upper half", width=HBM_ADDRESS_BITS - 32)
HOST_ERROR_DETAIL = HostRegister("ERROR_DETAIL", 0x2C, Effect.READ, "what the cause says of it")
HOST_INTERRUPT_ENABLE = HostRegister(
    "INTERRUPT_ENABLE", 0x30, Effect.KEEP, "what raises the interrupt line; 0 after reset", _bits(*SOURCES)
)
INTERRUPT_STATUS = HostRegister(
    "INTERRUPT_STATUS", 0x34, Effect.CLEAR, "what has happened; the line is high while it is enabled", _bits(*SOURCES)
)
CYCLES_LOW = HostRegister("CYCLES_LOW", 0x38, Effect.READ, "cycles from START to DONE or ERROR, lower half")
CYCLES_HIGH = HostRegister("CYCLES_HIGH", 0x3C, Effect.READ, "upper half, as CYCLES_LOW was read")
OUTPUT = HostRegister(
    "OUTPUT",
    0x40,
    Effect.TAKE,
    "what the program prints, in order",
    (
        HostField("BYTE", 0, 8, "the next byte"),
        HostField("VALID", 8, 1, "there is one"),
        HostField("LOST", 9, 1, "some of those behind it found no room, since this was last read"),
    ),
)
PARAMETER_COUNT = HostRegister("PARAMETER_COUNT", 0x44, Effect.READ, "words from PARAMETER_WORDS on", width=8)

HOST_REGISTERS = tuple(value for value in [*globals().values()] if isinstance(value, HostRegister))
"""All registers that there are once, by their offsets."""

PARAMETER_WORDS = 0x80
"""From here on a word for each parameter, in the order of `spec.config.Config.RANGES`."""

COUNTER_WORDS = 0x2000
"""From here on two words for each counter of the core, lower half first, in the order of its layout."""


def parameter_values(config: Config) -> dict[str, int]:
    """Return the values of the words from PARAMETER_WORDS on, by the parameters' names."""
    return {name: int(getattr(config, name)) for name in Config.RANGES}


def counter_offset(number: int) -> int:
    """Return the offset of the lower half of a counter; the upper half is 4 bytes behind."""
    return COUNTER_WORDS + 8 * number
