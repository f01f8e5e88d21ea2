"""Loads and stores of every size at every offset, against Python's bytes."""

import pytest

from tests.hdl.controller.programs import run

PLACE = 0x1000
BEFORE = bytes(range(0x71, 0x91, 2))
"""What is there: signs of both kinds."""
OFFSETS = range(8)
LOADS = {"lb": 1, "lbu": 1, "lh": 2, "lhu": 2, "lw": 4}
STORES = {"sb": 1, "sh": 2, "sw": 4}
"""Bytes of each."""


def accessed(instructions: list[str], copies: int, **options):
    """Run loads or stores at x30, where BEFORE is, so many times over."""
    words = [int.from_bytes(BEFORE[place : place + 4], "little") for place in range(0, len(BEFORE), 4)]
    fill = [f"li x{20 + place}, {word}" for place, word in enumerate(words)]
    fill += [f"sw x{20 + place // 4 % 4}, {place}(x30)" for place in range(0, copies * len(BEFORE), 4)]
    return run("\n".join([f"li x30, LOCAL_BASE + {PLACE}", *fill, *instructions]), **options)


@pytest.mark.parametrize("stall", [0, 128])
def test_loads(stall):
    result = accessed([f"{load} x2, {offset}(x30)" for load in LOADS for offset in OFFSETS], 1, stall=stall)
    expected = [
        int.from_bytes(BEFORE[offset : offset + size], "little", signed=not load.endswith("u")) & 0xFFFF_FFFF
        for load, size in LOADS.items()
        for offset in OFFSETS
    ]
    assert [entry.value for entry in result.trace if entry.rd == 2] == expected


@pytest.mark.parametrize("store", STORES)
def test_store(store):
    """Each offset in 16 bytes of its own, which hold BEFORE."""
    value = 0xD4C3_B2A1
    stores = [f"{store} x2, {17 * offset}(x30)" for offset in OFFSETS]
    result = accessed([f"li x2, {value}", *stores], len(OFFSETS), memory=True)
    expected = bytearray(BEFORE * len(OFFSETS))
    for offset in OFFSETS:
        expected[17 * offset : 17 * offset + STORES[store]] = value.to_bytes(4, "little")[: STORES[store]]
    assert result.memory[PLACE : PLACE + len(expected)].tobytes() == expected
