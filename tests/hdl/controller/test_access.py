import pytest

from neuroncore_rtl.run.harness.riscv import MEMORY_BYTES
from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from tests.hdl.controller.programs import run

BEFORE = bytes(range(0x71, 0x91, 2))
"""Initial bytes, with signs of both kinds."""
OFFSETS = range(8)
LOADS = {"lb": 1, "lbu": 1, "lh": 2, "lhu": 2, "lw": 4}
STORES = {"sb": 1, "sh": 2, "sw": 4}


def run_accesses(instructions: list[str], copies: int, **options):
    words = [int.from_bytes(BEFORE[position : position + 4], "little") for position in range(0, len(BEFORE), 4)]
    fill = [f"li x{20 + position}, {word}" for position, word in enumerate(words)]
    fill += [f"sw x{20 + position // 4 % 4}, {position}(x30)" for position in range(0, copies * len(BEFORE), 4)]
    return run("\n".join(["li x30, LOCAL_BASE + 0x1000", *fill, *instructions]), **options)


@pytest.mark.parametrize("stall", [0, 128])
def test_loads(stall):
    result = run_accesses([f"{load} x2, {offset}(x30)" for load in LOADS for offset in OFFSETS], 1, stall=stall)
    expected = [
        int.from_bytes(BEFORE[offset : offset + size], "little", signed=not load.endswith("u")) & 0xFFFF_FFFF
        for load, size in LOADS.items()
        for offset in OFFSETS
    ]
    assert result.written(2) == expected


@pytest.mark.parametrize("store", STORES)
def test_store(store):
    value = 0xD4C3_B2A1
    expected = bytearray(BEFORE * len(OFFSETS))
    for offset in OFFSETS:
        expected[17 * offset : 17 * offset + STORES[store]] = value.to_bytes(4, "little")[: STORES[store]]
    stores = [f"{store} x2, {17 * offset}(x30)" for offset in OFFSETS]
    loads = [f"lw x3, {position}(x30)" for position in range(0, len(expected), 4)]
    result = run_accesses([f"li x2, {value}", *stores, *loads], len(OFFSETS))
    assert b"".join(word.to_bytes(4, "little") for word in result.written(3)) == expected


@pytest.mark.parametrize("access", ["lw x2, 0(x28)", "sw x2, 0(x28)", "lw x2, 2(x28)", "sh x2, 3(x28)"])
def test_mtval_has_all_bits_of_an_address_without_memory(access):
    addresses = [LOCAL_BASE | 1 << bit for bit in range(MEMORY_BYTES.bit_length() - 1, 31)] + [LOCAL_BASE | 0x7FF0_0000]
    begin = "j begin\nhandler: csrrs x21, mtval, x0; csrrw x0, mepc, x29; mret\nbegin:"
    tries = [f"la x29, behind{n}; li x28, {position}; {access}\nbehind{n}:" for n, position in enumerate(addresses)]
    offset = int(access[access.index(",") + 1 : access.index("(")])
    assert run("\n".join([begin, *tries])).written(21) == [position + offset for position in addresses]
