"""What the controller finds where: its local memory, timer, windows to the on-chip memories, and the core's registers.

Hardware, golden model and the header of control programs read these numbers. Addresses are in bytes; registers are
words of 32 bits, read and written whole.
"""

__all__ = [
    "BOOT_WORDS", "CONSOLE", "CORE_COUNT", "CORE_NUMBER", "COUNTERS", "COUNTER_STRIDE", "ERROR_CAUSE",
    "ERROR_DETAIL", "ERROR_HIGH", "ERROR_LOW", "ERROR_QUEUE", "EXIT", "IMAGE_MAGIC", "INTERRUPT_ENABLE",
    "INTERRUPT_ERROR", "INTERRUPT_HOST", "INTERRUPT_PENDING", "INTERRUPT_SEMAPHORE", "LOCAL_BASE", "LOCAL_BYTES",
    "PSUM_PITCH_BITS", "PSUM_WINDOW", "QUEUES", "QUEUE_COUNT", "QUEUE_HIGH", "QUEUE_LOW", "QUEUE_PLACES",
    "QUEUE_RETIRED", "QUEUE_START", "QUEUE_STRIDE", "REGISTERS", "SBUF_PITCH_BITS", "SBUF_WINDOW", "SEMAPHORES",
    "SEMAPHORE_ADD", "SEMAPHORE_SUBTRACT", "TIMER_COMPARE", "TIMER_NOW", "WATCHDOG_LIMIT", "WATCH_SEMAPHORE",
    "WATCH_VALUE",
]  # fmt: skip

LOCAL_BASE = 0x8000_0000
"""Local memory: program and data; where published test programs are linked to."""
LOCAL_BYTES = 64 * 1024
"""Size of the local memory at most, and unless the configuration says otherwise."""

TIMER_NOW = 0x0200_BFF8
"""Cycles since reset, 64 bits (mtime of the RISC-V CLINT, at its customary address)."""
TIMER_COMPARE = 0x0200_4000
"""The timer interrupt is pending while mtime >= this, 64 bits (mtimecmp); all ones after reset."""

SBUF_WINDOW = 0x1000_0000
"""SBUF: byte a of partition p is at SBUF_WINDOW + (p << SBUF_PITCH_BITS) + a; words only."""
SBUF_PITCH_BITS = 18
"""Bits of a byte address within a partition's window."""
PSUM_WINDOW = 0x2000_0000
"""PSUM likewise."""
PSUM_PITCH_BITS = 14
"""Likewise."""

REGISTERS = 0x4000_0000
"""The core's registers; the numbers below are absolute addresses."""

QUEUES = REGISTERS
"""A queue's registers are at QUEUES + number * QUEUE_STRIDE + one of the offsets."""
QUEUE_STRIDE = 0x20
"""Bytes from a queue's registers to the next one's."""
QUEUE_LOW = 0x00
"""Lower half of the HBM address of a block of records."""
QUEUE_HIGH = 0x04
"""Upper half."""
QUEUE_START = 0x08
"""Written: the doorbell; the queue takes as many records (1 to 65535) from the block. The write waits for a place."""
QUEUE_PLACES = 0x0C
"""Read: blocks that can be rung now without waiting."""
QUEUE_RETIRED = 0x10
"""Read: records that have retired since reset, modulo 2**32."""
QUEUE_COUNT = 0x14
"""Read: records that were rung since reset, modulo 2**32."""

SEMAPHORES = REGISTERS + 0x1000
"""Semaphore s is at SEMAPHORES + 4 * s: read, or set by writing."""
SEMAPHORE_ADD = REGISTERS + 0x1400
"""Writing at SEMAPHORE_ADD + 4 * s adds."""
SEMAPHORE_SUBTRACT = REGISTERS + 0x1800
"""Writing at SEMAPHORE_SUBTRACT + 4 * s subtracts."""

EXIT = REGISTERS + 0x2000
"""Written: the program has ended with this code; the core says so to the host."""
CONSOLE = REGISTERS + 0x2004
"""Written: a byte for the host to print."""
INTERRUPT_PENDING = REGISTERS + 0x2008
"""Read: which sources ask for the external interrupt. Writing a 1 to INTERRUPT_HOST takes that one back."""
INTERRUPT_ENABLE = REGISTERS + 0x200C
"""Which sources may; 0 after reset."""
WATCH_SEMAPHORE = REGISTERS + 0x2010
"""The semaphore of INTERRUPT_SEMAPHORE."""
WATCH_VALUE = REGISTERS + 0x2014
"""Its source is pending while the semaphore is at least this (16 bits); 0xFFFF after reset."""
WATCHDOG_LIMIT = REGISTERS + 0x2018
"""Cycles without any progress while a queue has work, after which the watchdog reports it; 100,000 after reset."""
ERROR_CAUSE = REGISTERS + 0x2020
"""Read: cause of the first error since reset (`spec.isa.Cause`), 0 if there was none."""
ERROR_QUEUE = REGISTERS + 0x2024
"""Read: its queue."""
ERROR_LOW = REGISTERS + 0x2028
"""Read: HBM address of its record, lower half."""
ERROR_HIGH = REGISTERS + 0x202C
"""Upper half."""
ERROR_DETAIL = REGISTERS + 0x2030
"""Read: what the cause says of it."""
CORE_NUMBER = REGISTERS + 0x2034
"""Read: which core of its instance this is; 0 of one that is alone."""
CORE_COUNT = REGISTERS + 0x2038
"""Read: cores of the instance."""

INTERRUPT_ERROR = 1 << 0
"""Source: the core has reported an error."""
INTERRUPT_HOST = 1 << 1
"""Source: the host has asked for it."""
INTERRUPT_SEMAPHORE = 1 << 2
"""Source: the watched semaphore has reached its value."""

COUNTERS = REGISTERS + 0x4000
"""Counters of queue q, lower 32 bits, at COUNTERS + q * COUNTER_STRIDE + 4 * number, in the order of
`spec.isa.QUEUE_COUNTERS`."""
COUNTER_STRIDE = 0x40
"""Bytes from a queue's counters to the next one's."""

IMAGE_MAGIC = 0x3243_4E52
"""First word of an image: "RNC2" in memory order."""
BOOT_WORDS = 8
"""Words of an image's header at the boot address: magic, bytes of the controller's program (a multiple of 4, at most
those of local memory), its HBM address relative to the header (a multiple of 128), rows, columns, DMA engines, cores of
the instance, 0. The program is copied to LOCAL_BASE, where the controller then starts; sizes that are not those of the
core are an error."""
