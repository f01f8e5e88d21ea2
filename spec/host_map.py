"""Host registers: the map of a core's control port. All registers are 32 bits wide and accessed as whole words.

An access is refused with an error, and nothing is written, if the register does not exist, is read-only, or cannot hold
the value (bits outside of fields must be 0), or if the access is of a part of a word.

A number of more than 32 bits is read lower half first; that read also latches the upper half for the next read.
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
"""Width of an offset: the block has 16 KiB."""

HOST_MAGIC = 0x4843_4E52
"""Value of IDENTITY."""

HOST_VERSION = 0x0001_0001
"""Value of VERSION."""


class Effect(enum.Enum):
    """Effect of a host's access to a register."""

    READ = "read"
    KEEP = "read, write"
    DO = "write 1 to do, read 0"
    CLEAR = "read, write 1 to clear"
    TAKE = "read takes"
    """Reading removes the value that was read."""


@dataclass(frozen=True)
class HostField:
    """Bit field of a host register, from bit `low` on."""

    name: str
    low: int
    width: int
    meaning: str

    @property
    def mask(self) -> int:
        """Mask of the field's bits."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class HostRegister:
    """Register at a byte offset; one number of `width` bits if it has no fields."""

    name: str
    offset: int
    effect: Effect
    meaning: str
    fields: tuple[HostField, ...] = ()
    width: int = 32

    @cached_property
    def mask(self) -> int:
        """Mask of the register's bits."""
        return sum(field.mask for field in self.fields) if self.fields else (1 << self.width) - 1

    def bit(self, name: str) -> int:
        """Return the mask of a field."""
        return {field.name: field for field in self.fields}[name].mask


def _bits(*named: tuple[str, str]) -> tuple[HostField, ...]:
    return tuple(HostField(name, place, 1, meaning) for place, (name, meaning) in enumerate(named))


SOURCES = (
    ("DONE", "the program has ended"),
    ("ERROR", "the core has reported an error"),
    ("OUTPUT", "the program has printed a byte"),
)
"""Interrupt sources: bits of INTERRUPT_ENABLE and INTERRUPT_STATUS, with their meaning."""

IDENTITY = HostRegister("IDENTITY", 0x00, Effect.READ, 'HOST_MAGIC, "RNCH" in memory order')
VERSION = HostRegister(
    "VERSION",
    0x04,
    Effect.READ,
    "HOST_VERSION, the version of this map",
    (
        HostField("MINOR", 0, 16, "larger if there are more registers"),
        HostField("MAJOR", 16, 16, "another value if registers have changed"),
    ),
)
HOST_CONTROL = HostRegister(
    "CONTROL",
    0x08,
    Effect.DO,
    "commands of the host; START is refused while STATUS has STARTED or RESET, and together with RESET",
    _bits(
        ("START", "boots the image at BOOT"),
        (
            "RESET",
            "resets the core at any time, until its outstanding HBM transactions end; keeps BOOT and INTERRUPT_ENABLE",
        ),
        ("INTERRUPT", "interrupts the controller (INTERRUPT_HOST of its registers)"),
    ),
)
STATUS = HostRegister(
    "STATUS",
    0x0C,
    Effect.READ,
    "state of the core",
    _bits(
        ("STARTED", "started since its reset"),
        ("DONE", "its program has ended; EXIT_CODE is valid"),
        ("ERROR", "it has reported an error and begins no further records"),
        ("QUIET", "nothing moves, and no HBM transaction is outstanding"),
        ("RESET", "its reset is active"),
    ),
)
BOOT_LOW = HostRegister(
    "BOOT_LOW", 0x10, Effect.KEEP, "HBM address of the image, lower half; a multiple of 128 (lower bits are ignored)"
)
BOOT_HIGH = HostRegister("BOOT_HIGH", 0x14, Effect.KEEP, "upper half", width=HBM_ADDRESS_BITS - 32)
EXIT_CODE = HostRegister("EXIT_CODE", 0x18, Effect.READ, "exit code of the program")
HOST_ERROR_CAUSE = HostRegister(
    "ERROR_CAUSE", 0x1C, Effect.READ, "cause of the first error (Errors), 0 without an error", width=CAUSE_BITS
)
HOST_ERROR_QUEUE = HostRegister("ERROR_QUEUE", 0x20, Effect.READ, "its queue", width=8)
HOST_ERROR_LOW = HostRegister("ERROR_LOW", 0x24, Effect.READ, "HBM address of its record, lower half")
HOST_ERROR_HIGH = HostRegister("ERROR_HIGH", 0x28, Effect.READ, "upper half", width=HBM_ADDRESS_BITS - 32)
HOST_ERROR_DETAIL = HostRegister("ERROR_DETAIL", 0x2C, Effect.READ, "detail of the error, defined by its cause")
HOST_INTERRUPT_ENABLE = HostRegister(
    "INTERRUPT_ENABLE", 0x30, Effect.KEEP, "sources that raise the interrupt line; 0 after reset", _bits(*SOURCES)
)
INTERRUPT_STATUS = HostRegister(
    "INTERRUPT_STATUS",
    0x34,
    Effect.CLEAR,
    "pending sources; the line is high while one of them is enabled",
    _bits(*SOURCES),
)
CYCLES_LOW = HostRegister("CYCLES_LOW", 0x38, Effect.READ, "cycles from START to DONE or ERROR, lower half")
CYCLES_HIGH = HostRegister("CYCLES_HIGH", 0x3C, Effect.READ, "upper half, latched when CYCLES_LOW was read")
OUTPUT = HostRegister(
    "OUTPUT",
    0x40,
    Effect.TAKE,
    "output of the program, in order",
    (
        HostField("BYTE", 0, 8, "the next byte"),
        HostField("VALID", 8, 1, "BYTE is valid"),
        HostField("LOST", 9, 1, "bytes after this one were lost since the last read"),
    ),
)
PARAMETER_COUNT = HostRegister("PARAMETER_COUNT", 0x44, Effect.READ, "words from PARAMETER_WORDS on", width=8)

HOST_REGISTERS = tuple(value for value in [*globals().values()] if isinstance(value, HostRegister))
"""All registers, by offset."""

PARAMETER_WORDS = 0x80
"""Offset of the parameters: one word each, in the order of `spec.config.Config.RANGES`. Those in `Config.RATES` have
words only if one of them differs from its default.
"""

COUNTER_WORDS = 0x2000
"""Offset of the core's counters: two words each, lower half first, in the order of the counters' layout."""


def parameter_values(config: Config) -> dict[str, int]:
    """Return the content of each parameter's word, by parameter name."""
    names = [name for name in Config.RANGES if config.rates or name not in Config.RATES]
    return {name: int(getattr(config, name)) for name in names}


def counter_offset(number: int) -> int:
    """Return the byte offset of a counter's lower 32 bits."""
    return COUNTER_WORDS + 8 * number
