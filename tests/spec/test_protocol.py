"""Protocol of instructions: every type implements it, and other code does not dispatch on instruction types."""

import ast
import inspect

import numpy as np
import pytest

from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import INSTRUCTIONS, MNEMONICS, Access, AluOp, DmaCopy, Elementwise, Engine, Opcode
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, Group
from neuroncore_rtl.spec.isa.engine import LANES
from neuroncore_rtl.spec.isa.fields import width_of
from tests.house.tree import FOLDERS, ROOT, modules_in

CONFIG = PRESETS["tiny"].with_overrides(cores=4)
CONTEXT = isa.Context(CONFIG, core=2, loaded=(range(4), False))

PLACES_ALLOWED = 10
"""Permitted number of branches on the type of an instruction or engine outside spec/. Half of them are in the oracle of
touched bytes, which must be independent of the instructions' methods."""


def elementwise(opcode: Opcode) -> Elementwise:
    fmt = INT32 if opcode in (Opcode.FIND_INDEX8, Opcode.IOTA) else FP32
    op0 = AluOp.IS_GT if opcode == Opcode.AFFINE_SELECT else AluOp.MAX
    return Elementwise(
        opcode=opcode, partitions=4, shape=(1, 3, 4), op0=op0, op1=AluOp.ADD, axes=1,
        dst=Access(format=fmt, address=1024, steps=(0, 4, 1)), a=Access(format=FP32, address=0, steps=(0, 4, 1)),
        b=Access(format=FP32, address=512, steps=(0, 0, 1)), s0=isa.Pointer(format=FP32, address=256),
        index=isa.Index(base=3, steps=(0, 1, 2)),
    )  # fmt: skip


TABLE = isa.DmaTensor(format=BF16, address=1 << 20, storage=isa.Storage.HBM, steps=(64, 0, 1))
NEAR = isa.DmaTensor(format=FP32, address=64, storage=isa.Storage.SBUF, steps=(1, 0, 1), axis=0)
EXAMPLES: list[isa.Instruction] = [
    isa.LoadStationary(format=FP32, half=1, k=2, m=4, address=32, row=2),
    isa.MultiplyMoving(format=BF16, k=1, m=3, n=5, address=2, stride=6, psum=512, row=3, accumulate=True),
    DmaCopy(shape=(3, 1, 5), src=TABLE, dst=NEAR, gather=isa.DmaIndex(address=4, limit=9)),
    DmaCopy(shape=(3, 1, 5), src=NEAR, dst=TABLE, scatter=isa.DmaIndex(address=4, limit=9, skip=True)),
    DmaCopy(shape=(1, 3, 5), src=TABLE, dst=NEAR),
    *map(elementwise, Opcode),
    *(
        Collective(kind=kind, group=Group(0, 1, 4), rank=2, root=1, count=64, src=0, dst=4096, pitch=256)
        for kind in CollectiveKind
    ),
    isa.Nop(),
]


def label(instruction: isa.Instruction) -> str:
    return instruction.name.lower()


def test_every_engine_and_every_name_has_an_instruction():
    assert set(INSTRUCTIONS) == set(LANES) == set(Engine)
    assert {type(example) for example in EXAMPLES} == set(MNEMONICS.values())
    assert {label(example) for example in EXAMPLES} == set(MNEMONICS)
    assert {example.engine for example in EXAMPLES} == set(Engine)


@pytest.mark.parametrize("kind", sorted(set(MNEMONICS.values()), key=lambda kind: kind.__name__))
def test_every_type_has_all_parts_and_any_word_as_fields(kind, py_rng):
    assert not inspect.isabstract(kind) and kind.__doc__ and inspect.getmodule(kind).__doc__
    names = [name for name, _ in kind.layout]
    assert len(set(names)) == len(names) and kind.signed <= set(names)
    for name in ("reads", "writes", "violation", "unused", "decode", "fields"):
        assert any(name in vars(base) for base in kind.__mro__ if base is not isa.Instruction), name
    for _ in range(500):
        word = py_rng.getrandbits(width_of(kind.layout))
        assert kind.pack(kind.unpack(word)) == word


@pytest.mark.parametrize("example", EXAMPLES, ids=label)
def test_every_instruction_keeps_the_protocol(example):
    assert issubclass(type(example), INSTRUCTIONS[example.engine]) and MNEMONICS[label(example)] is type(example)
    assert (example.lane is None and not LANES[example.engine]) or example.lane in range(LANES[example.engine])
    assert example.summary and isinstance(example.details, dict)
    assert example.overlap in (None, False, True) and example.in_turn in (False, True)
    regions = [*example.reads, *example.writes]
    assert regions or label(example) in ("barrier", "nop")
    assert all(isinstance(region, isa.Region) and region.span[0] < region.span[1] for region in regions)
    assert isinstance(example.after(CONTEXT), isa.Context)


@pytest.mark.parametrize("example", EXAMPLES, ids=label)
def test_bits_and_fields_and_instructions_are_each_other_s_inverse(example):
    values, word = example.fields(CONFIG), example.encode(CONFIG)
    assert 0 <= word < 1 << width_of(example.layout)
    assert type(example).unpack(word) == values and type(example).pack(values) == word
    full = isa.decode_instruction(example.engine, word | 1 << width_of(example.layout), CONFIG)
    assert (full.reads, full.writes) == (example.reads, example.writes)
    unused = full.unused(values)
    used = values.keys() - unused
    assert {name: full.fields(CONFIG)[name] for name in used} == {name: values[name] for name in used}
    short = full.shortened()
    assert short.encode(CONFIG) == full.encode(CONFIG)
    assert (short.reads, short.writes) == (example.reads, example.writes)
    assert isa.Record.decode(isa.Record(instruction=example).encode(CONFIG), CONFIG).instruction == full


@pytest.mark.parametrize("example", EXAMPLES, ids=label)
def test_rules_judge_only_what_means_something(example):
    values = example.fields(CONFIG)
    verdict = example.violation(example.engine, values, CONTEXT)
    if verdict is None:
        example.check(CONTEXT)
    else:
        with pytest.raises(ValueError, match=rf"^{example.name}: .* \(rule {verdict[0].name}\)$"):
            example.check(CONTEXT)
    rng = np.random.default_rng(2718)
    unused = example.unused(values) if verdict is None else frozenset()
    for _ in range(20):
        anything = type(example).unpack(int.from_bytes(rng.bytes(128), "little"))
        changed = values | {name: anything[name] for name in unused}
        assert example.violation(example.engine, changed, CONTEXT) == verdict
        assert example.unused(changed) == unused or verdict is not None
    if "opcode" in values:
        opcode = 0 if example.engine == Engine.TENSOR else 63
        assert example.violation(example.engine, values | {"opcode": opcode}, CONTEXT)[0] is isa.Rule.OPCODE


def test_most_examples_are_legal():
    legal = [e for e in EXAMPLES if e.violation(e.engine, e.fields(CONFIG), CONTEXT) is None]
    assert len(legal) > len(EXAMPLES) * 3 // 4


def test_codes_of_no_engine_are_refused():
    with pytest.raises(ValueError, match=r"engine must be one of TENSOR \(1\), .*, not 7"):
        isa.decode_instruction(7, 0, CONFIG)


KINDS = {kind.__name__ for kind in MNEMONICS.values()} | {kind.__name__ for kind in INSTRUCTIONS.values()}


def names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def dispatches(source: str) -> int:
    count = 0
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                count += bool(names_in(kinds) & KINDS)
            case ast.MatchClass(cls=kind):
                count += bool(names_in(kind) & KINDS)
            case ast.MatchValue(value=ast.Attribute(value=ast.Name(id="Engine"))):
                count += 1
            case ast.Compare():
                members = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
                count += any(isinstance(n.value, ast.Name) and n.value.id == "Engine" for n in members)
    return count


def test_nobody_else_tells_instructions_apart():
    files = modules_in(*(folder for folder in FOLDERS if folder != "spec"), "examples")
    found = {str(file.relative_to(ROOT)): count for file in files if (count := dispatches(file.read_text()))}
    assert len(files) > 100 and sum(found.values()) <= PLACES_ALLOWED, found


def test_the_count_sees_every_form():
    source = (
        "isinstance(x, Elementwise | DmaCopy)\nengine == Engine.DMA\nengine in (Engine.DMA, Engine.TENSOR)\n"
        "match x:\n    case Collective():\n        pass\n    case Engine.SCALAR:\n        pass\n"
    )
    assert dispatches(source) == 5
    assert dispatches("isinstance(x, Access)\nEngine.DMA\nQUEUES.index(Engine.DMA)\n") == 0
