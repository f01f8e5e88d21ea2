from itertools import product

import pytest
from amaranth import Const

from neuroncore_rtl.hdl.elementwise.checker import ElementwiseChecker
from neuroncore_rtl.spec import formats, isa
from neuroncore_rtl.spec.config import SCALAR_UNITS, VECTOR_UNITS
from neuroncore_rtl.spec.isa import alu, fields
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_RULES, Elementwise, arithmetic_of, elementwise_violation
from tests.hdl.elementwise.instructions import CONFIGS, OPCODES, SIZES, copy, legal_fields, near_word, random_word
from tests.hdl.simulation import slow, slow_if
from tests.hdl.verdicts import assert_verdicts, pass_on

SEED = 1993


def checker(config, opcodes):
    return ElementwiseChecker(config, opcodes, lambda instruction: Const(0), lambda instruction: Const(1))


def violations_of(config, opcodes, words):
    return [elementwise_violation(Elementwise.unpack(word), config, opcodes) for word in words]


def words_of(rng, config, opcodes, legal, near, wild):
    words = [Elementwise.pack(legal_fields(rng, config, opcodes)) for _ in range(legal)]
    words += [near_word(rng, config, opcodes) for _ in range(near)]
    return words + [random_word(rng, opcodes) for _ in range(wild)]


def job_fields(values, config):
    opcode, used = isa.Opcode(values["opcode"]), isa.elementwise.uses(values)
    codes = {name: values[f"{name}_dtype"] for name in ("dst", "a", "b")}
    codes |= {f"s{n}": fields.unpack(isa.POINTER_FIELDS, values[f"scalar{n}"])["dtype"] for n in (0, 1)}
    few = opcode in (isa.Opcode.FIND_INDEX8, isa.Opcode.MATCH_REPLACE8)
    outputs = isa.elementwise.transpose_block(config) if opcode == isa.Opcode.TRANSPOSE else int("result" in used)
    reduces, moves = opcode == isa.Opcode.TENSOR_REDUCE, opcode == isa.Opcode.TRANSPOSE
    return {f"size_{name}": LOG_SIZES[code] for name, code in codes.items() if code in LOG_SIZES} | {
        "loads0": int(values["pointer0"] and "s0" in used), "loads1": int(values["pointer1"] and "s1" in used),
        "values": int(few), "reads_a": int("a" in used), "reads_b": int("b" in used and not few),
        "group": values["axes"] if reduces else 1 if moves else isa.DIMENSIONS,
        "writes": int(opcode not in isa.elementwise.OUTPUTS), "reduces": int(reduces), "delayed": int(moves),
        "results": isa.elementwise.OUTPUTS.get(opcode, outputs), "at_b": int("result" in used), "slow": 0,
        "interval": 1,
    }  # fmt: skip


def powers_of_two():
    for opcode in (isa.Opcode.BN_STATS, isa.Opcode.MAX8):
        for first, second in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
            for large in range(16):
                for small in {0, large // 2, large}:
                    yield copy(1, opcode, **{f"count{first}": 1 << large}) | {f"count{second}": 1 << small}
    for pair, more in product((0, 2), range(1, 16)):
        half = isa.elementwise.SEARCH_ELEMENTS[1] // 2
        yield copy(1, isa.Opcode.MAX8) | {f"count{pair}": 2, f"count{2 - pair}": half ^ 1 << more}
    for many, far, sign in product(range(16), range(15), (1, -1)):
        access, dimension = ("dst", "a", "b")[(many + far) % 3], (many + far) % isa.DIMENSIONS
        steps = {f"count{dimension}": (1 << many) + 1, f"{access}_step{dimension}": sign << far}
        yield of_pair() | steps | {f"{access}_address": 4096}


def of_pair(code=formats.FP32.code, **changes):
    steps = {f"{name}_step{d}": 0 for name in ("dst", "a", "b") for d in range(isa.DIMENSIONS)}
    types = {f"{name}_dtype": code for name in ("dst", "a", "b")}
    return copy(1, isa.Opcode.TENSOR_TENSOR) | steps | types | changes


def borders(config):
    for code, size in ((formats.INT8.code, 1), (formats.FP32.code, 4)):
        for access, dimension, bit in product(("dst", "a", "b"), range(isa.DIMENSIONS), range(8)):
            elements = (1 << bit) + 1
            for beyond in (0, 1):
                down = {f"{access}_address": size * (elements - 1 - beyond), f"{access}_step{dimension}": -1}
                last = config.sbuf_bytes - size * (elements - beyond)
                for way in (down, {f"{access}_address": last, f"{access}_step{dimension}": 1}):
                    if min(way.values()) >= -1:
                        yield of_pair(code) | {f"count{dimension}": elements} | way
    for axes in range(8):
        yield copy(1, isa.Opcode.TENSOR_REDUCE, op0=alu.AluOp.ADD, axes=axes)
    for partitions in (0, 1, config.partitions, config.partitions + 1, *(1 << bit for bit in range(2, 8))):
        yield of_pair(partitions=partitions)
    for number, dtype in product((0, 1), (formats.INT8.code, formats.BF16.code, formats.FP32.code)):
        for beyond_end in (-1 << LOG_SIZES[dtype], 0, *(1 << bit for bit in range(16))):
            address = config.sbuf_bytes + beyond_end
            pointer = fields.pack(isa.POINTER_FIELDS, {"address": address, "quadrant": 0, "dtype": dtype})
            yield copy(1, isa.Opcode.TENSOR_SCALAR) | {f"pointer{number}": 1, f"scalar{number}": pointer}
    for beyond in (0, 1):
        yield copy(isa.elementwise.STATS_ELEMENTS + beyond, isa.Opcode.BN_STATS)
    for bit in range(16):
        yield copy(isa.elementwise.transpose_block(config) ^ 1 << bit, isa.Opcode.TRANSPOSE)
    for partitions in range(config.partitions + 2):
        yield copy(isa.elementwise.transpose_block(config), isa.Opcode.TRANSPOSE, partitions=partitions)
    for function in range(64):
        yield copy(1, isa.Opcode.ACTIVATE, function=function)


LOG_SIZES = {code: size.bit_length() - 1 for code, size in SIZES.items()}
"""Log2 of the bytes of a format's elements, by its code."""


def test_sizes_around_powers_of_two_and_borders():
    config = CONFIGS["8x4"]
    words = [Elementwise.pack(values) for values in (*powers_of_two(), *borders(config))]
    violations = violations_of(config, OPCODES, words)
    assert 200 < sum(violation is None for violation in violations) < len(words) - 500
    assert_verdicts(checker(config, OPCODES), words, violations)


EVERY = set(ELEMENTWISE_RULES)
NEVER_OF_ACTIVATE = {isa.Rule.ARITHMETIC, isa.Rule.DESTINATION, isa.Rule.ROUNDING, isa.Rule.PORTS}
"""An activation is always FP32 and has one source."""


@pytest.mark.parametrize(
    ("shape", "opcodes", "counts", "rules"),
    [
        *slow_if(
            lambda shape, *_: shape != "6x4",
            [(shape, isa.VECTOR_OPCODES, (100, 600, 100), EVERY) for shape in CONFIGS if shape != "8x4"],
        ),
        *slow(("8x4", OPCODES, (150, 900, 150), EVERY)),
        ("8x4", isa.SCALAR_OPCODES, (50, 300, 50), EVERY - NEVER_OF_ACTIVATE),
    ],
    ids=[*(shape for shape in CONFIGS if shape != "8x4"), "8x4", "scalar"],
)
def test_verdicts_are_those_of_the_specification(shape, opcodes, counts, rules, rng):
    config = CONFIGS[shape]
    words = words_of(rng, config, opcodes, *counts)
    jobs = assert_verdicts(checker(config, opcodes), words, violations_of(config, opcodes, words), rules)
    seen = set()
    for word, job in zip(words, jobs, strict=True):
        if job is not None:
            arithmetic = arithmetic_of(Elementwise.unpack(word))
            found = job.instruction.as_bits(), job.integer, job.uint32
            assert found == (word, arithmetic != alu.Arithmetic.FP32, arithmetic == alu.Arithmetic.UINT32)
            wanted = job_fields(Elementwise.unpack(word), config)
            assert {name: int(getattr(job, name)) for name in wanted} == wanted
            seen.add(arithmetic)
    assert seen == (set(alu.Arithmetic) if opcodes >= isa.VECTOR_OPCODES else {alu.Arithmetic.FP32})


ENGINES = {"vector": (isa.VECTOR_OPCODES, VECTOR_UNITS), "scalar": (isa.SCALAR_OPCODES, SCALAR_UNITS)}


@pytest.mark.parametrize("engine", ENGINES)
def test_instructions_without_a_unit_are_refused(engine, rng):
    opcodes, units = ENGINES[engine][0], [f"{engine}_{unit}" for unit in ENGINES[engine][1]]
    config = CONFIGS["4x4"].with_overrides(**dict.fromkeys(units, 0))
    words = words_of(rng, CONFIGS["4x4"], opcodes, 300, 0, 0)
    violations = violations_of(config, opcodes, words)
    missing = {message.split(": ")[-1] for _, message in filter(None, violations)}
    assert missing == {f"this machine has no {unit.partition('_')[2]} unit ({unit}=0)" for unit in units}
    assert_verdicts(checker(config, opcodes), words, violations)


def test_an_error_after_many_instructions():
    config = CONFIGS["8x4"]
    words = [Elementwise.pack(copy(1))] * 1023 + [63]
    assert_verdicts(checker(config, OPCODES), words, violations_of(config, OPCODES, words))


@pytest.mark.parametrize("stall", [0.0, 0.9])
def test_an_error_names_the_instruction_and_none_after_it_is_accepted(stall, rng):
    config = CONFIGS["4x4"]
    words = [Elementwise.pack(legal_fields(rng, config, isa.VECTOR_OPCODES)) for _ in range(20)]
    words[16] = 63
    dut = checker(config, isa.VECTOR_OPCODES)
    played, _, error = pass_on(dut, words, stall)
    jobs = map(dut.o.payload.shape().from_bits, played.payloads["o"])
    assert error == (isa.Rule.OPCODE, 16) and [job.instruction.as_bits() for job in jobs] == words[:16]
    if not stall:
        assert played.cycles["i"] == [ElementwiseChecker.INTERVAL * n for n in range(17)]
        assert played.cycles["o"] == [cycle + ElementwiseChecker.LATENCY for cycle in played.cycles["i"][:16]]
