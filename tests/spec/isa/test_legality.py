"""Legality rules of elementwise instructions."""

import re
from functools import partial

import pytest

from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP16, FP32, INT8, INT16, INT32
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.spec.isa import VECTOR_OPCODES, AluOp, Elementwise, Pointer, Rule
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_RULES, elementwise_violation, rules

SEED = 3141
CONFIG = Config(rows=128, columns=64)
EVERY = frozenset(isa.Opcode)


def access(fmt=FP32, address=0, steps=(1,), **options):
    return isa.Access(format=fmt, address=address, steps=steps, **options)


psum = partial(access, storage=isa.Storage.PSUM)


def instruction(opcode, dst=FP32, a=FP32, b=FP32, **options):
    fields = {"partitions": 32, "shape": (16,)} | options
    steps = (0,) * (len(fields["shape"]) - 1) + (1,)
    for name, tensor, address in (("dst", dst, 0), ("a", a, 1024), ("b", b, 2048)):
        fields[name] = tensor if isinstance(tensor, isa.Access) else access(tensor, address, steps)
    return Elementwise(opcode=opcode, **fields)


O = isa.Opcode  # noqa: E741 (short for the tables)
copy, activate = (partial(instruction, opcode) for opcode in (O.TENSOR_COPY, O.ACTIVATE))
_REFUSED = {
    Rule.OPERATION: {
        "op0 must be one of ADD, .* not SUBTRACT": instruction(O.TENSOR_REDUCE, op0=AluOp.SUBTRACT, axes=1),
        "op0 must be one of ADD, .* not BYPASS": instruction(O.TENSOR_REDUCE, op0=AluOp.BYPASS, axes=1),
        "op1 must be one of ADD, .* not IS_GT": instruction(O.TENSOR_SCALAR_REDUCE, op1=AluOp.IS_GT),
        "op0 must be one of BYPASS, .* not DIVIDE": instruction(O.TENSOR_TENSOR_SCAN, op0=AluOp.DIVIDE),
        "op0 must be one of IS_EQUAL, .* not ADD": instruction(O.AFFINE_SELECT, op0=AluOp.ADD),
        "op0 must be one of BYPASS, .* not 30": instruction(O.TENSOR_TENSOR, op0=30),
        "function must be from 0 to 32, not 33": instruction(O.ACTIVATE, function=33),
    },
    Rule.ARITHMETIC: {
        "op0 must be an integer operation if every format is an integer, not DIVIDE": instruction(
            O.TENSOR_TENSOR, INT32, INT32, INT8, op0=AluOp.DIVIDE
        ),
        "op0 must be a float operation unless every format is an integer, not BITWISE_AND": instruction(
            O.TENSOR_TENSOR, INT32, INT32, BF16, op0=AluOp.BITWISE_AND
        ),
    },
    Rule.DESTINATION: {
        "dst's format must be an integer, not 'bf16'": instruction(O.FIND_INDEX8, BF16),
        "dst's format must be the same as a's, fp16, not 'bf16'": instruction(O.TRANSPOSE, BF16, FP16, shape=(32,)),
    },
    Rule.ROUNDING: {
        "rounding must be to nearest even for IOTA, not stochastic": instruction(O.IOTA, stochastic=True),
        "rounding must be to nearest even for integer arithmetic, not stochastic": instruction(
            O.TENSOR_COPY, INT8, INT16, stochastic=True
        ),
    },
    Rule.SHAPE: {
        r"counts must be at least 1, not \(1, 4, 0, 2\)": instruction(O.TENSOR_COPY, shape=(4, 0, 2)),
        "axes must be from 1 to 4, not 0": instruction(O.TENSOR_REDUCE, op0=AluOp.ADD),
        "the innermost count must be 32, not 16": instruction(O.TRANSPOSE),
        "elements must be at most 512, not 513": instruction(O.BN_STATS, shape=(3, 171)),
        "the innermost count must be a multiple of 3, not 16": instruction(O.BN_AGGR),
        "elements must be from 8 to 16384, not 7": instruction(O.MAX8, shape=(7,)),
        "elements must be from 8 to 16384, not 20480": instruction(O.FIND_INDEX8, INT32, shape=(5, 4096)),
    },
    Rule.PARTITIONS: {
        "partitions must be at least 1, not 0": instruction(O.TENSOR_COPY, partitions=0),
        "must be a multiple of 32, not 48": instruction(O.TRANSPOSE, shape=(32,), partitions=48),
        "dst's partitions must end at 128, not 129": instruction(O.TENSOR_COPY, partitions=129),
        "dst's partitions must end at 64, not 96": instruction(O.TENSOR_COPY, a=FP32, dst=psum(partition=64)),
        "a.partition must be 0 for more than 64 partitions, not 32": copy(partitions=96, a=access(partition=32)),
        "s0.partition must be 0 or 64 for more than 32 partitions, not 32": instruction(
            O.MEMSET, partitions=33, s0=Pointer(format=FP32, address=0, partition=32)
        ),
    },
    Rule.PORTS: {
        "a and b must be in different storages, or both in SBUF, not both in PSUM": instruction(
            O.TENSOR_TENSOR, a=psum(), b=psum()
        )
    },
    Rule.ALIGNMENT: {
        "a.address must be a multiple of 4 for fp32, not 6": instruction(O.TENSOR_COPY, a=access(FP32, 6)),
        "s1.address must be a multiple of 2 for bf16, not 3": activate(s1=Pointer(format=BF16, address=3)),
    },
    Rule.RANGE: {
        "a's bytes must lie from 0 to 196608, not from 196548 to 196612": copy(a=access(address=196548)),
        "dst's bytes must lie from 0 to 16384, not from 16380 to 16444": copy(dst=psum(address=16380)),
        "a's bytes must lie from 0 to .* not from -60 to 4": copy(a=access(steps=(-1,))),
        "b's bytes must lie from 0 to 16384, not from 16384 to 16388": activate(sum_store=True, b=psum(address=16384)),
    },
}
"""By rule and expected message: an instruction that breaks only this rule."""

REFUSED = [(rule, broken, message) for rule, cases in _REFUSED.items() for message, broken in cases.items()]


@pytest.mark.parametrize(("rule", "refused", "message"), REFUSED)
def test_rule_is_broken_alone_and_named(rule, refused, message):
    values = refused.fields(CONFIG)
    assert [broken for broken, judge in rules.JUDGES if next(judge(values, CONFIG), None)] == [rule]
    named, words = elementwise_violation(values, CONFIG, EVERY)
    assert named is rule and re.search(r" must (be|end|lie) ", words)
    with pytest.raises(ValueError, match=f"^{refused.opcode.name}: .*{message}.* \\(rule {rule.name}\\)$"):
        refused.check(isa.Context(CONFIG))


def test_every_rule_is_broken_by_some_instruction():
    # A record cannot have an unknown opcode or format; tests below break these rules with fields.
    assert {rule for rule, _, _ in REFUSED} == ELEMENTWISE_RULES - {Rule.OPCODE, Rule.FORMAT}


def test_opcode_of_another_engine_or_of_none():
    values = instruction(O.TENSOR_COPY).fields(CONFIG)
    assert elementwise_violation(values, CONFIG, VECTOR_OPCODES) is None
    rule, message = elementwise_violation(values, CONFIG, isa.SCALAR_OPCODES)
    assert rule is Rule.OPCODE and message == "opcode must be one of ACTIVATE, not 1"
    rule, message = elementwise_violation(values | {"opcode": 63}, CONFIG, VECTOR_OPCODES)
    assert rule is Rule.OPCODE and message.endswith("DROPOUT, not 63")


@pytest.mark.parametrize(
    ("unit", "rule", "refused", "message"),
    [
        ("vector_division", Rule.OPCODE, instruction(O.RECIPROCAL), "opcode must be one that .* not RECIPROCAL"),
        ("vector_division", Rule.OPERATION, instruction(O.TENSOR_TENSOR, op0=AluOp.FMOD), "op0 must be .* not FMOD"),
        ("vector_power", Rule.OPERATION, instruction(O.TENSOR_SCALAR, op1=AluOp.POWER), "op1 must be .* not POWER"),
        ("vector_search", Rule.OPCODE, instruction(O.MAX8), "opcode must be one that .* not MAX8"),
        ("vector_statistics", Rule.OPCODE, instruction(O.BN_STATS), "opcode must be one that .* not BN_STATS"),
        ("vector_random", Rule.OPCODE, instruction(O.DROPOUT), "opcode must be one that .* not DROPOUT"),
        ("vector_random", Rule.ROUNDING, copy(stochastic=True), "rounding must be to nearest even, not"),
        ("scalar_trigonometry", Rule.OPERATION, activate(function=FUNCTIONS["cos"].code), "function must .* not cos"),
        ("scalar_random", Rule.ROUNDING, activate(stochastic=True), "rounding must be to nearest even, not"),
    ],
)
def test_an_instruction_for_a_missing_unit_is_refused_with_the_parameter(unit, rule, refused, message):
    refused.check(isa.Context(CONFIG))
    said = rf"{message}.*: this machine has no \w+ unit \({unit}=0\) \(rule {rule.name}\)$"
    with pytest.raises(ValueError, match=said):
        refused.check(isa.Context(CONFIG.with_overrides(**{unit: 0})))


@pytest.mark.parametrize(("field", "place"), [("dst_dtype", "dst"), ("a_dtype", "a"), ("scalar0", "s0")])
def test_unknown_format(field, place):
    legal = instruction(O.TENSOR_SCALAR, s0=Pointer(format=FP32, address=0))
    values = legal.fields(CONFIG) | {field: 13 << 20 if field == "scalar0" else 13}
    message = f"{place}'s format must be the code of one of {', '.join(FORMATS)}, not 13"
    assert elementwise_violation(values, CONFIG, EVERY) == (Rule.FORMAT, message)


def test_of_several_rules_the_lowest_is_named():
    broken = instruction(O.TENSOR_REDUCE, op0=AluOp.SUBTRACT, a=access(FP32, 6), partitions=0)
    assert elementwise_violation(broken.fields(CONFIG), CONFIG, EVERY)[0] is Rule.OPERATION


@pytest.mark.parametrize(
    "legal",
    [
        copy(b=access(address=3), op0=30, s0=Pointer(format=FP32, address=3)),
        instruction(O.IOTA, a=access(address=3)),
        activate(b=access(address=3)),
        instruction(O.SELECT, INT32, FP32, INT32),
        instruction(O.TENSOR_REDUCE, op0=AluOp.ADD, axes=4, dst=access(address=196604, steps=(1,))),
    ],
    ids=lambda legal: legal.opcode.name,
)
def test_wrong_fields_that_an_opcode_does_not_use_are_legal(legal):
    legal.check(isa.Context(CONFIG))


@pytest.mark.parametrize(
    ("lanes", "starts"),
    [(1, [0, 32, 64, 96]), (32, [0, 32, 64, 96]), (33, [0, 64]), (64, [0, 64]), (65, [0]), (128, [0])],
)
def test_where_lanes_may_start(lanes, starts):
    allowed = []
    for start in (0, 32, 64, 96):
        memset = instruction(O.MEMSET, partitions=lanes, dst=access(partition=start))
        broken = elementwise_violation(memset.fields(CONFIG), CONFIG, EVERY)
        assert broken is None or broken[0] is Rule.PARTITIONS
        allowed += [start] if broken is None else []
    assert allowed == starts


def test_any_word_is_judged(py_rng):
    legal = instruction(O.SCALAR_TENSOR_TENSOR).encode(CONFIG)
    verdicts = dict.fromkeys([None, *ELEMENTWISE_RULES], 0)
    for _ in range(20_000):
        word = py_rng.getrandbits(isa.ELEMENTWISE_BITS) if py_rng.random() < 0.2 else legal
        for _ in range(py_rng.randrange(4)):
            word ^= 1 << py_rng.randrange(isa.ELEMENTWISE_BITS)
        found = elementwise_violation(Elementwise.unpack(word), CONFIG, VECTOR_OPCODES)
        verdicts[found and found[0]] += 1
    print({rule and rule.name: count for rule, count in verdicts.items()})
    reachable = set(verdicts) - {Rule.DESTINATION, Rule.ROUNDING, Rule.PORTS}
    assert all(verdicts[rule] for rule in reachable)


def test_record_is_what_its_word_says():
    record = Elementwise(
        opcode=O.SCALAR_TENSOR_TENSOR, partitions=64, shape=(5, 6, 7), op0=AluOp.POWER, reverse1=True, overlap=True,
        dst=psum(BF16, 4, (-100, 3, 1)), a=access(FP32, 8, (1, 2, -3), partition=64), b=access(INT8, 5, (0, 1, 0)),
        s0=Pointer(format=FP16, address=10, partition=64), s1=-1, stochastic=True, seed=1, stream=0xFFFFFFFF,
        index=isa.Index(base=-5, partition=1 << 30, steps=(-(1 << 31), 0, 7)),
    )  # fmt: skip
    values = Elementwise.unpack(record.encode(CONFIG))
    expected = {
        "opcode": 5, "overlap": 1, "op0": 8, "op1": 0, "reverse0": 0, "reverse1": 1, "partitions": 64,
        "count0": 7, "count1": 6, "count2": 5, "count3": 1,
        "dst_address": 4, "dst_quadrant": 0, "dst_dtype": BF16.code, "dst_storage": 1,
        "dst_step0": 1, "dst_step1": 3, "dst_step2": -100, "dst_step3": 0,
        "a_quadrant": 2, "a_step0": -3, "b_dtype": INT8.code, "b_step1": 1,
        "pointer0": 1, "scalar0": FP16.code << 20 | 2 << 18 | 10, "pointer1": 0, "scalar1": 0xFFFFFFFF,
        "stochastic": 1, "seed": 1, "stream": 0xFFFFFFFF, "index": -5, "index_partition": 1 << 30,
        "index_step0": 7, "index_step1": 0, "index_step2": -(1 << 31), "index_step3": 0,
    }  # fmt: skip
    assert {name: values[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": access(steps=(1 << 15,))}, "a.*step0 must be from -32768 to 32767, not 32768"),
        ({"dst": access(address=1 << 18)}, "dst_address must be from 0 to 262143, not 262144"),
        ({"shape": (1 << 16,)}, "count0 must be from 0 to 65535, not 65536"),
        ({"shape": (1,) * 5}, r"shape must have 1 to 4 dimensions, not \(1, 1, 1, 1, 1\)"),
        ({"a": access(steps=(1, 1))}, r"a.steps must have one entry for each of 1 dimensions, not \(1, 1\)"),
        ({"a": access(partition=16)}, "a.partition must be one of 0, 32, 64, 96, not 16"),
        ({"s0": Pointer(format=FP32, address=-4)}, "s0.address must be from 0 to 262143, not -4"),
        ({"index": isa.Index(steps=(1, 2))}, r"index.steps must have one entry for each of 1 dimensions, not \(1, 2\)"),
        ({"seed": 1 << 32}, "seed must be from 0 to 4294967295, not 4294967296"),
    ],
)
def test_what_no_word_can_say(change, message):
    with pytest.raises(ValueError, match=message):
        instruction(O.TENSOR_SCALAR, **change).encode(CONFIG)
