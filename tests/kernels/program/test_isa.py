"""Tensor views, instructions against their definition, and sufficiency of waits."""

import dataclasses

import numpy as np
import pytest

from neuroncore_rtl.golden import arith, memory, scalar, vector
from neuroncore_rtl.kernels.program import Allocator, Draw, Program, Tensor, row_major
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.kernels.program.footprint import overlap as meet
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.elementwise import expected_memories, record_of
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP16, FP32, INT8, INT16, INT32, UINT8, UINT32
from neuroncore_rtl.spec.isa import AluOp, Context, Index, Opcode, Storage
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from tests.oracles.instructions import random_instruction
from tests.oracles.touched import touched

SEED = 5772
CONFIG = Config(rows=8, columns=8)
ADD, SUBTRACT, MULTIPLY, MAX = AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX


class Machine:
    def __init__(self):
        self.space = Allocator(CONFIG)
        self.memories = {Storage.SBUF: np.zeros((8, 4096), np.uint8), Storage.PSUM: np.zeros((8, 1024), np.uint8)}

    def tensor(self, values, fmt=FP32, name="x"):
        values = np.asarray(values)
        tensor = self.space.sbuf(name, fmt, values.shape[1:], len(values), kept=True)
        memory.scatter(self.memories[Storage.SBUF], tensor.access(), encode(values, fmt))
        return tensor

    def values(self, tensor):
        codes = memory.gather(self.memories[Storage.SBUF], tensor.access(), tensor.partitions, tensor.shape)
        return arith.decode(codes, tensor.format)

    def run(self, *program):
        built = Program(CONFIG)
        for instruction in program:
            built.append(instruction)
        after = expected_memories([entry.instruction for entry in built.entries], *self.memories.values(), CONFIG)
        self.memories = dict(zip(self.memories, after, strict=True))

    def expect(self, tensor, values, *program):
        self.run(*program)
        assert np.array_equal(self.values(tensor), values), program[-1].name


@pytest.fixture
def machine():
    return Machine()


def x(*shape):
    return (np.arange(8 * int(np.prod(shape))) * 7 % 23 - 11.5).reshape(8, *shape)


def test_views_are_those_of_numpy(machine, rng):
    values = np.arange(8 * 4 * 6 * 5).reshape(8, 4, 6, 5)
    t = machine.tensor(values, INT16)
    cases = [
        (t[2:4], values[2:4]),
        (t[:, 1], values[:, 1]),
        (t[..., ::-2], values[..., ::-2]),
        (t[0:8, 1:3, ::2, -1], values[:, 1:3, ::2, -1]),
        (t[:, :, None, 3], values[:, :, None, 3]),
        (t.reshape(24, 5), values.reshape(8, 24, 5)),
        (t[:, ::2].reshape(2, -1), values[:, ::2].reshape(8, 2, -1)),
        (t.permute(2, 0, 1), values.transpose(0, 3, 1, 2)),
        (t[:, 0, :, :1].broadcast_to(3, 6, 5), np.broadcast_to(values[:, None, 0, :, :1], (8, 3, 6, 5))),
        (t.permute(1, 0, 2)[4:6, 5:0:-2, ..., 2], values.transpose(0, 2, 1, 3)[4:6, 5:0:-2, ..., 2]),
    ]
    for view, expected in cases:
        assert view.shape == expected.shape[1:] and view.partitions == len(expected)
        assert np.array_equal(machine.values(view), expected)
    assert np.array_equal(machine.values(t.bitcast(BF16)), arith.decode(values.astype(np.uint16), BF16))


def test_refusals_of_tensors(machine):
    t = machine.tensor(x(4, 6))
    for wrong, error, message in (
        (lambda: t[3], TypeError, "x: partitions must be a slice, not 3"),
        (lambda: t[::2], ValueError, "x: partitions must be consecutive and at least one, not slice"),
        (lambda: t[4:4], ValueError, "x: partitions must be consecutive and at least one"),
        (lambda: t[:, 4], IndexError, "out of bounds"),
        (lambda: t[:, [0, 1]], TypeError, r"x: an index must be an integer, a slice, None or ..., not \[0, 1\]"),
        (lambda: t.permute(1, 0).reshape(24), ValueError, r"x: a view of shape \(24,\) is not possible for"),
        (lambda: t.bitcast(BF16), ValueError, "x: format must have 32 bits, not 'bf16'"),
        (lambda: t.pointer(), ValueError, r"x: a scalar must be one element .* in SBUF, not \[4, 6\] in SBUF"),
        (
            lambda: Tensor(name="y", format=FP32, address=0, partitions=1, shape=(2,), steps=()),
            ValueError,
            "steps must",
        ),
    ):
        with pytest.raises(error, match=message):
            wrong()


def test_what_is_kept_has_places_apart_from_the_lowest_address_on():
    space = Allocator(CONFIG)
    a, b = space.sbuf("a", INT8, (3,), kept=True), space.sbuf("b", FP32, (2, 2), 4, kept=True)
    assert (a.address, b.address, space.fixed_end(Storage.SBUF)) == (0, 16, 32)
    assert (a.partitions, b.partitions, b.storage) == (8, 4, Storage.SBUF)
    assert space.psum("c", FP32, (4096,), kept=True).address == 0
    with pytest.raises(ValueError, match="d: tensors in PSUM must end by byte 16384, not 16385"):
        space.psum("d", INT8, (1,), kept=True)
    with pytest.raises(ValueError, match="e: partitions must be between 1 and 8, not 9"):
        space.sbuf("e", INT8, (1,), 9)


def test_copies_and_constants(machine):
    a, out = machine.tensor(x(3, 4)), machine.tensor(x(3, 4) * 0, BF16)
    machine.expect(out, x(3, 4), isa.tensor_copy(out, a))
    machine.expect(out, np.broadcast_to(x(3, 4)[:, :1, ::-1], (8, 3, 4)), isa.tensor_copy(out[..., ::-1], a[:, :1]))
    machine.run(isa.memset(out[4:8], -2.5))
    assert (machine.values(out)[4:] == -2.5).all() and (machine.values(out)[:4] != -2.5).all()


def test_arithmetic(machine):
    a, b, out = x(3, 4), x(4) + 1, machine.tensor(x(3, 4) * 0)
    ta, tb, s = machine.tensor(a), machine.tensor(b), machine.tensor(x(1))
    column = x(1)[:, :, None]
    for instruction, expected in (
        (isa.tensor_tensor(out, ta, tb, SUBTRACT), a - b[:, None]),
        (isa.tensor_scalar(out, ta, 2, MULTIPLY, s, SUBTRACT, reverse1=True), column - 2 * a),
        (isa.tensor_scalar(out, ta, 0.5, SUBTRACT, reverse0=True), 0.5 - a),
        (isa.scalar_tensor_tensor(out, ta, s, MULTIPLY, tb, ADD), a * column + b[:, None]),
        (isa.reciprocal(out, ta), (1 / a.astype(np.float32))),
        (isa.select(out, machine.tensor(a > 0, INT8), ta, 7.0), np.where(a > 0, a, 7)),
        (isa.affine_select(out, ta, Index(base=-1, steps=(0, 1)), AluOp.IS_GT, 0.0), np.where(np.arange(4) > 1, a, 0)),
    ):
        machine.expect(out, expected, instruction)
    before = machine.values(out)
    machine.run(isa.tensor_copy_predicated(out, machine.tensor(a > 2), tb.broadcast_to(3, 4)))
    assert np.array_equal(machine.values(out), np.where(a > 2, b[:, None], before))


def test_integers_stay_integers(machine):
    a = np.arange(8 * 4).reshape(8, 4) - 2**24 - 1
    ta, out, floats = machine.tensor(a, INT32), machine.tensor(a * 0, INT32), machine.tensor(a * 0)
    machine.expect(out, (a * -3) & 0xFFFF, isa.tensor_scalar(out, ta, -3, MULTIPLY, 0xFFFF, AluOp.BITWISE_AND))
    machine.expect(floats, np.float32(a) * np.float32(-3), isa.tensor_scalar(floats, ta, -3, MULTIPLY))
    assert isa.memset(out, 5).s0 == 5 and isa.memset(floats, 5).s0 == 0x40A00000
    # One float scalar in memory selects FP32 arithmetic.
    assert isa.tensor_scalar(out, ta, machine.tensor(x(1)), ADD, 1, MULTIPLY).s1 == 0x3F800000


def test_integers_without_a_sign(machine):
    a = np.arange(8 * 4).reshape(8, 4) + 2**32 - 16
    a %= 2**32
    ta, out = machine.tensor(a, UINT32), machine.tensor(a * 0, UINT32)
    machine.expect(out, (a - 9) % 2**32, isa.tensor_scalar(out, ta, 9, SUBTRACT))
    machine.expect(out, np.maximum(a, 2**31), isa.tensor_scalar(out, ta, 2**31, MAX))
    machine.expect(out, a >> 1, isa.tensor_scalar(out, ta, 1, AluOp.LOGICAL_SHIFT_RIGHT))
    assert isa.memset(out, 2**32 - 1).s0 == 2**32 - 1
    machine.expect(out, np.full_like(a, 2**32 - 1), isa.memset(out, 2**32 - 1))
    small = machine.tensor(a * 0, UINT8)
    machine.expect(small, a > 5, isa.tensor_scalar(small, ta, 5, AluOp.IS_GT))
    machine.expect(small, np.minimum(a, 255), isa.tensor_copy(small, ta))
    signed = machine.tensor(np.arange(32).reshape(8, 4) - 16, INT32)
    machine.expect(out, np.maximum(machine.values(signed), 0), isa.tensor_copy(out, signed))
    machine.expect(signed, np.minimum(a, 2**31 - 1), isa.tensor_copy(signed, ta))


def test_places_and_random_words(machine):
    numbers = machine.tensor(x(3, 4) * 0, INT32)
    machine.expect(numbers, 5 + np.arange(96).reshape(8, 3, 4), isa.iota(numbers, row_major((3, 4), base=5)))
    machine.run(isa.iota(numbers[:, 1:3, ::2], row_major((2, 2), partition=100)))
    assert machine.values(numbers)[2].tolist() == [[29, 30, 31, 32], [200, 34, 201, 36], [202, 38, 203, 40]]
    a, out = machine.tensor(x(2, 8), FP16), machine.tensor(x(2, 8) * 0, FP16)
    machine.expect(out, x(2, 8).transpose(2, 1, 0), isa.transpose(out, a))
    machine.run(isa.dropout(out, a, 0.5, Draw(seed=3)))
    gone = machine.values(out) == 0
    assert 0.3 < gone.mean() < 0.7
    assert np.array_equal(machine.values(out), np.where(gone, 0, x(2, 8)))
    assert vector.dropped([0], isa.dropout(out, a, 0.5, Draw(seed=3)).s0) == [True]


def test_stochastic_rounding_does_not_depend_on_the_tiling(machine):
    values = np.linspace(1, 2, 8 * 24).reshape(8, 4, 6)
    a = machine.tensor(values)
    whole, parts, sums = (machine.tensor(values * 0, BF16, name) for name in ("whole", "parts", "sums"))
    machine.run(isa.tensor_copy(whole, a, stochastic=Draw(seed=1, stream=2)))
    for rows, first in ((slice(0, 4), 0), (slice(4, 8), 4 * 24)):
        for half, start in ((slice(0, 2), 0), (slice(2, 4), 12)):
            draw = Draw(seed=1, stream=2, index=row_major((2, 6), base=first + start, partition=24))
            machine.run(isa.tensor_copy(parts[rows, half], a[rows, half], stochastic=draw))
    assert np.array_equal(machine.values(whole), machine.values(parts))
    machine.run(isa.tensor_copy(parts, a, stochastic=Draw(seed=2, stream=2)))
    assert not np.array_equal(machine.values(whole), machine.values(parts))
    # In a reduction the index counts results, not sources.
    draw = Draw(seed=1, stream=2, index=row_major((4, 6)))
    thrice = a.reshape(4, 6, 1).broadcast_to(4, 6, 3)
    machine.expect(sums, machine.values(whole), isa.tensor_reduce(sums, thrice, MAX, stochastic=draw))


def test_activations_and_their_sums(machine):
    a = x(3, 4) / 8
    ta, out, bias, total = machine.tensor(a), machine.tensor(a * 0), machine.tensor(x(1)), machine.tensor(x(1) * 0)
    machine.run(isa.activation(out, ta, "exp", 0.5, bias, sum_into=total))
    expected = scalar.activate("exp", (a / 2 + x(1)[:, :, None]).astype(np.float32))
    assert_same_bits(machine.values(out).astype(np.float32), expected)
    assert np.allclose(machine.values(total)[:, 0], expected.sum((1, 2)), rtol=1e-5)
    machine.run(isa.activation(out, ta, "relu"), isa.activation(out, ta, "relu", sum_continue=True, sum_into=total))
    assert np.array_equal(machine.values(total)[:, 0], 2 * np.maximum(a, 0).sum((1, 2)))
    machine.expect(out, np.where(a > 0, a, a / 4), isa.activation(out, ta, "leaky_relu", alpha=0.25))


def test_refusals_of_instructions(machine):
    a, b, i = machine.tensor(x(3, 4), name="a"), machine.tensor(x(4), name="b"), machine.tensor(x(8), INT32, "i")
    for wrong, message in (
        (lambda: isa.tensor_copy(b, a), r"a: shape must broadcast to \(4,\), not \(3, 4\)"),
        (lambda: isa.tensor_copy(a[0:4], a), "a: partitions must be the 4 of a, not 8"),
        (lambda: isa.tensor_reduce(b, a, ADD), r"b: shape must be \(3,\), as a without 1 axes, not \(4,\)"),
        (lambda: isa.tensor_reduce(b, a, ADD, axes=3), "axes must be between 1 and the 2 of a, not 3"),
        (lambda: isa.max8(b, a), r"b: elements of a partition must be 8, not \[4\]"),
        (lambda: isa.match_replace8(a, a, b, 0), r"b: elements of a partition must be 8, not \[4\]"),
        (lambda: isa.tensor_scalar(a, a, b, ADD), r"b: a scalar must be one element per partition in SBUF, not \[4\]"),
        (
            lambda: isa.memset(i, 0.5),
            "i: s0 must be an integer from -2147483648 to 2147483647 if all formats are integers, not 0.5",
        ),
        (lambda: isa.memset(i, 1 << 31), "i: s0 must be .* to 2147483647 if all formats are integers, not 2147483648"),
        (lambda: isa.activation(a, a, "cube"), "function must be one of identity, .*, not 'cube'"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_writing_over_a_source(machine):
    a = machine.tensor(x(12), name="a")
    legal = [
        isa.tensor_scalar(a, a, 1, ADD),
        isa.tensor_tensor(a[:, :4], a[:, :4], a[:, 4:8], ADD),
        isa.tensor_copy(a[:, ::2], a[:, 1::2]),
        isa.tensor_copy(a[4:8], a[0:4]),
        isa.tensor_copy(a.bitcast(INT32), a),
        isa.tensor_scalar(a, a, a[:, 3], MULTIPLY),
        isa.tensor_reduce(a[:, 0].reshape(), a[:, 1:], ADD),
    ]
    refused = [
        isa.tensor_copy(a[:, 1:], a[:, :-1]),
        isa.tensor_copy(a[:, ::-1], a),
        isa.tensor_copy(a.reshape(3, 4), a[:, :4]),
        isa.tensor_tensor(a[:, :4], a[:, :4], a[:, 1:5], ADD),
        isa.tensor_copy(a[0:8, 5:6].broadcast_to(4), a[:, 5:6].broadcast_to(4)),
        isa.tensor_reduce(a[:, 0].reshape(), a, ADD),
        isa.tensor_copy(Tensor(name="b", format=BF16, address=a.address, partitions=8, shape=(12,)), a),
        isa.tensor_scalar_reduce(a[:, :4], a[:, 4:8], 1, ADD, a[:, 1], ADD),
        isa.activation(a[:, :4], a[:, 4:8], "exp", sum_into=a[:, 7]),
    ]
    for instruction in legal:
        Program(CONFIG).append(instruction)
    for instruction in refused:
        instruction.check(Context(CONFIG))
        apart = r": (dst|b) must be apart from (dst|a|b) \(dst may also coincide"
        with pytest.raises(ValueError, match=apart):
            Program(CONFIG).append(instruction)
    with pytest.raises(ValueError, match="rule PARTITIONS"):
        Program(CONFIG).append(dataclasses.replace(legal[0], partitions=9))


def random_program(rng, length, sizes):
    program = Program(CONFIG)
    while len(program.entries) < length:
        opcode = Opcode.ACTIVATE if rng.random() < 0.5 else list(Opcode)[rng.integers(len(Opcode) - 1)]
        try:
            instruction = random_instruction(rng, opcode, CONFIG, sizes, most=12)
            program.append(dataclasses.replace(instruction, overlap=len(program.entries) % 2 == 0))
        except ValueError as error:
            assert "must be apart" in str(error) or "must be an earlier instruction" in str(error)
    return [(entry.instruction, record_of(entry, CONFIG)) for entry in program.entries]


def test_footprints_are_those_of_every_byte(rng):
    meets = 0
    for _ in range(150):
        opcode = list(Opcode)[rng.integers(len(Opcode))]
        first, second = (random_instruction(rng, opcode, CONFIG, (160, 80), most=12) for _ in range(2))
        theirs = [touched(instruction, CONFIG) for instruction in (first, second)]
        for mine, other, cells, others in (
            (first.reads, second.writes, theirs[0][0], theirs[1][1]),
            (first.writes, second.writes, theirs[0][1], theirs[1][1]),
            (first.reads, first.writes, theirs[0][0], theirs[0][1]),
        ):
            both = any(meet(a, b) for a in mine for b in other)
            assert both == bool(cells & others)
            assert both == any(meet(b, a) for a in mine for b in other)
            meets += both
    assert 50 < meets < 400


def test_waits_are_those_of_every_byte(rng):
    counted = {"overlap": 0, "waits": 0}
    for _ in range(6):
        entries = random_program(rng, 40, (1200, 600))
        history = {"vector": [], "scalar": []}
        settled, awaited = dict.fromkeys(history, 0), dict.fromkeys(history, 0)
        done = {engine: [] for engine in history}  # the other engine's instructions that must have retired
        for instruction, record in entries:
            reads, writes = touched(instruction, CONFIG)
            own, other = record.engine, {"vector": "scalar", "scalar": "vector"}[record.engine]
            before = awaited[own]
            for number, (r, w) in enumerate(history[other]):
                if writes & (r | w) or reads & w:
                    awaited[own] = max(awaited[own], number + 1)
            if awaited[own]:
                settled[own] = max(settled[own], done[other][awaited[own] - 1])
            done[own].append(awaited[own])
            independent = not any(reads & w for _, w in history[own][settled[own] :])
            if not independent:
                settled[own] = len(history[own])
            assert instruction.overlap == independent
            new = awaited[own] if awaited[own] > before else 0
            assert {own: 0, other: new} == {"vector": record.vector, "scalar": record.scalar}
            counted["overlap"] += independent
            counted["waits"] += awaited[own] > 0
            history[own].append((reads, writes))
    assert 24 < counted["overlap"] < 228
    assert counted["waits"] > 24
