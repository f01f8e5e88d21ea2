"""Loads and stores of every size at every offset, against Python's bytes."""

import pytest

from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from tests.hdl.controller.machine import run

PLACE = LOCAL_BASE + 0x1000
BEFORE = bytes(range(0x71, 0x91, 2))
"""What is there: signs of both kinds."""
OFFSETS = range(8)


def accessed(instructions: list[str], count: int, **options):
    """Run loads or stores at x30, where BEFORE is, over and over, in `count` bytes."""
    words = [int.from_bytes(BEFORE[place : place + 4], "little") for place in range(0, len(BEFORE), 4)]
    fill = [f"li x30, {PLACE}"] + [f"li x{20 + place}, {word}" for place, word in enumerate(words)]
    fill += [f"sw x{20 + place // 4 % 4}, {place}(x30)" for place in range(0, count, 4)]
    return run("\n".join(fill + instructions), **options)


@pytest.mark.parametrize("stall", [0, 0.5])
@pytest.mark.parametrize("load, size", [("lb", 1), ("lbu", 1), ("lh", 2), ("lhu", 2), ("lw", 4)])
def test_load(load, size, stall):
    result = accessed([f"{load} x{2 + offset}, {offset}(x30)" for offset in OFFSETS], len(BEFORE), stall=stall)
    signed = not load.endswith("u")
    expected = [int.from_bytes(BEFORE[offset : offset + size], "little", signed=signed) for offset in OFFSETS]
    assert result.registers[2:10] == [value & 0xFFFF_FFFF for value in expected]


@pytest.mark.parametrize("store, size", [("sb", 1), ("sh", 2), ("sw", 4)])
def test_store(store, size):
    """Each offset in 16 bytes of its own, which hold BEFORE."""
    value = 0xD4C3_B2A1
    stores = [f"{store} x2, {16 * offset + offset}(x30)" for offset in OFFSETS]
    result = accessed([f"li x2, {value}", *stores], 16 * len(OFFSETS))
    for offset in OFFSETS:
        expected = bytearray(BEFORE)
        expected[offset : offset + size] = value.to_bytes(4, "little")[:size]
        words = (result.memory[PLACE + 16 * offset + place] for place in range(0, 16, 4))
        assert b"".join(word.to_bytes(4, "little") for word in words) == expected
