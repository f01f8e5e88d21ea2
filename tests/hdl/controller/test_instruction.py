import random
import struct
from itertools import islice

from neuroncore_rtl.hdl.controller.instruction import InstructionDecoder, Kind
from tests.hdl.controller.programs import assemble
from tests.hdl.simulation import simulated

ENCODINGS = (
    (0x7F, 0x37, Kind.ALU), (0x7F, 0x17, Kind.ALU), (0x7F, 0x6F, Kind.JUMP), (0x707F, 0x67, Kind.JUMP),
    *((0x707F, funct3 << 12 | 0x63, Kind.BRANCH) for funct3 in (0, 1, 4, 5, 6, 7)),
    *((0x707F, funct3 << 12 | 0x03, Kind.LOAD) for funct3 in (0, 1, 2, 4, 5)),
    *((0x707F, funct3 << 12 | 0x23, Kind.STORE) for funct3 in (0, 1, 2)),
    *((0x707F, funct3 << 12 | 0x13, Kind.ALU) for funct3 in (0, 2, 3, 4, 6, 7)),
    *((0xFE00707F, code, Kind.ALU) for code in (0x1013, 0x5013, 0x40005013)),
    *((0xFE00707F, funct3 << 12 | 0x33, Kind.ALU) for funct3 in range(8)),
    (0xFE00707F, 0x40000033, Kind.ALU), (0xFE00707F, 0x40005033, Kind.ALU),
    *((0xFE00707F, 0x02000033 | funct3 << 12, Kind.MULTIPLY) for funct3 in range(4)),
    *((0xFE00707F, 0x02000033 | funct3 << 12, Kind.DIVIDE) for funct3 in range(4, 8)),
    (0x707F, 0x0F, Kind.ALU), (0x707F, 0x100F, Kind.JUMP),
    *((0x707F, funct3 << 12 | 0x73, Kind.CSR) for funct3 in (1, 2, 3, 5, 6, 7)),
    (0xFFFFFFFF, 0x73, Kind.ECALL), (0xFFFFFFFF, 0x100073, Kind.EBREAK),
    (0xFFFFFFFF, 0x30200073, Kind.MRET), (0xFFFFFFFF, 0x10500073, Kind.WFI),
)  # fmt: skip


def words() -> list[int]:
    rng = random.Random(4)
    found = [rng.getrandbits(32) for _ in range(500)]
    for mask, match, _ in ENCODINGS:
        for _ in range(4):
            word = rng.getrandbits(32) & ~mask | match
            found += [word, *(word ^ 1 << bit for bit in range(32))]
    return found


@simulated(InstructionDecoder)
async def decode(ctx, decoder, instructions, name):
    results = []
    for word in instructions:
        ctx.set(decoder.instruction, word)
        results.append(ctx.get(getattr(decoder, name)))
    return results


def test_kinds_of_encodings_and_illegal_words():
    found = words()
    for word, kind in zip(found, decode(found, "kind"), strict=True):
        kinds = [name for mask, match, name in ENCODINGS if word & mask == match] or [Kind.ILLEGAL]
        assert [kind] == kinds, hex(word)


def test_immediates():
    expected = {
        "addi x1, x2, -2048": -2048,
        "addi x1, x2, 2047": 2047,
        "sw x1, -2048(x2)": -2048,
        "sw x1, 2047(x2)": 2047,
        "beq x1, x2, . - 4096": -4096,
        "beq x1, x2, . + 4094": 4094,
        "lui x1, 0xFEDCB": 0xFEDCB000,
        "jal x1, . - 0x100000": -0x100000,
        "jal x1, . + 0xFFFFE": 0xFFFFE,
        "fence.i": 4,
    }
    program = struct.iter_unpack("<I", assemble("\n".join(expected)).bytes)
    found = decode([word for (word,) in islice(program, len(expected))], "immediate")
    assert found == [value & 0xFFFF_FFFF for value in expected.values()]
