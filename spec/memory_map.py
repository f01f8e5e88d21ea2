"""Memory map of the controller.

Addresses are in bytes; registers are 32-bit words, accessed as whole words.
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
"""Local memory, for program and data."""
LOCAL_BYTES = 64 * 1024
"""Maximum and default size of the local memory."""

TIMER_NOW = 0x0200_BFF8
"""Cycles since reset, 64 bits (mtime of the RISC-V CLINT)."""
TIMER_COMPARE = 0x0200_4000
"""mtimecmp, 64 bits: the timer interrupt is pending while mtime >= mtimecmp; all ones after reset."""

SBUF_WINDOW = 0x1000_0000
"""Byte a of partition p of SBUF is at SBUF_WINDOW + (p << SBUF_PITCH_BITS) + a; words only."""
SBUF_PITCH_BITS = 18
"""Width of a byte address within a partition."""
PSUM_WINDOW = 0x2000_0000
"""Byte a of partition p of PSUM is at PSUM_WINDOW + (p << PSUM_PITCH_BITS) + a; words only."""
PSUM_PITCH_BITS = 14
"""Width of a byte address within a partition."""

REGISTERS = 0x4000_0000
"""Core's registers."""

QUEUES = REGISTERS
"""Queues' registers: QUEUES + number * QUEUE_STRIDE + one of the offsets."""
QUEUE_STRIDE = 0x20
"""Bytes from one queue to the next."""
QUEUE_LOW = 0x00
"""Lower half of the HBM address of a block of records."""
QUEUE_HIGH = 0x04
"""Upper half."""
QUEUE_START = 0x08
"""Write: doorbell; the queue executes that many records (1 to 65535) of the block. The write stalls until the queue has
a free entry.
"""
QUEUE_PLACES = 0x0C
"""Read: number of blocks that the doorbell accepts without a stall."""
QUEUE_RETIRED = 0x10
"""Read: records retired since reset, modulo 2**32."""
QUEUE_COUNT = 0x14
"""Read: records in blocks accepted since reset, modulo 2**32."""

SEMAPHORES = REGISTERS + 0x1000
"""Semaphore s is at SEMAPHORES + 4 * s; a write sets it."""
SEMAPHORE_ADD = REGISTERS + 0x1400
"""A write to SEMAPHORE_ADD + 4 * s adds to semaphore s."""
SEMAPHORE_SUBTRACT = REGISTERS + 0x1800
"""A write to SEMAPHORE_SUBTRACT + 4 * s subtracts from it."""

EXIT = REGISTERS + 0x2000
"""Write: end the program with this exit code."""
CONSOLE = REGISTERS + 0x2004
"""Write: a byte for the host to print."""
INTERRUPT_PENDING = REGISTERS + 0x2008
"""Read: pending sources of the external interrupt. Writing 1 to INTERRUPT_HOST clears that source."""
INTERRUPT_ENABLE = REGISTERS + 0x200C
"""Enabled sources of the external interrupt; 0 after reset."""
WATCH_SEMAPHORE = REGISTERS + 0x2010
"""Semaphore of INTERRUPT_SEMAPHORE."""
WATCH_VALUE = REGISTERS + 0x2014
"""Value of INTERRUPT_SEMAPHORE, 16 bits; 0xFFFF after reset."""
WATCHDOG_LIMIT = REGISTERS + 0x2018
"""Cycles without progress after which the watchdog reports an error; 100,000 after reset."""
ERROR_CAUSE = REGISTERS + 0x2020
"""Read: cause of the first error since reset, 0 without an error."""
ERROR_QUEUE = REGISTERS + 0x2024
"""Read: its queue."""
ERROR_LOW = REGISTERS + 0x2028
"""Read: HBM address of its record, lower half."""
ERROR_HIGH = REGISTERS + 0x202C
"""Read: upper half."""
ERROR_DETAIL = REGISTERS + 0x2030
"""Read: detail, defined by its cause."""
CORE_NUMBER = REGISTERS + 0x2034
"""Read: number of this core in its instance."""
CORE_COUNT = REGISTERS + 0x2038
"""Read: cores in the instance."""

INTERRUPT_ERROR = 1 << 0
"""The core has reported an error."""
INTERRUPT_HOST = 1 << 1
"""The host has requested an interrupt."""
INTERRUPT_SEMAPHORE = 1 << 2
"""The watched semaphore is at least its value."""

COUNTERS = REGISTERS + 0x4000
"""Counters of queue q, lower 32 bits, at COUNTERS + q * COUNTER_STRIDE + 4 * number."""
COUNTER_STRIDE = 0x40
"""Bytes from one queue to the next."""

IMAGE_MAGIC = 0x3243_4E52
"""First word of an image: "RNC2" in memory order."""
BOOT_WORDS = 8
"""Words of an image's header, at the boot address: magic; bytes of the controller's program (a multiple of 4, at most
the size of local memory); HBM address of the program relative to the header (a multiple of 128); rows; columns; DMA
engines; cores of the instance; 0. The program is copied to LOCAL_BASE, where the controller starts.
"""
