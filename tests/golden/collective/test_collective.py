"""Collective model against element-by-element Python and float64."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.golden.collective import CollectiveError, Deadlock, execute_lists, order, orders
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Cause, Context, Rule, collective
from neuroncore_rtl.spec.isa import collective as isa
from neuroncore_rtl.spec.isa.collective import Group as G
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from tests.oracles import collectives as oracle
from tests.oracles.collectives import on_every_rank, random_collective

CORES = 40
K, T, ALIGNMENT = isa.CollectiveKind, isa.CollectiveType, isa.COLLECTIVE_ALIGNMENT


def part(group: G, rank: int = 0, kind: K = K.ALL_REDUCE, **options) -> collective.Collective:
    return collective.Collective(**{"kind": kind, "group": group, "rank": rank, "count": 4} | options)


class Run:
    def __init__(self, rng, first: collective.Collective, in_place: bool = False, special: float = 0.05):
        self.size = first.count * np.dtype(oracle.STORAGE[first.dtype]).itemsize
        pitch = ALIGNMENT * (-(-self.size // ALIGNMENT) + int(rng.integers(3)))
        sources, targets = oracle.blocks_of(first)
        self.instructions, self.memories, self.blocks = [], {}, []
        for plain in on_every_rank(replace(first, pitch=pitch)):
            src = ALIGNMENT * int(rng.integers(4))
            dst = src + sources * pitch + ALIGNMENT * int(rng.integers(4))
            if in_place:
                dst = {K.REDUCE_SCATTER: src + plain.rank * pitch}.get(first.kind, src)
                src = {K.ALL_GATHER: dst + plain.rank * pitch}.get(first.kind, src)
            seed, stream = (int(word) for word in rng.integers(1 << 32, size=2))
            instruction = replace(plain, src=src, dst=dst, seed=seed, stream=stream)
            memory = rng.integers(256, size=max(src + sources * pitch, dst + targets * pitch)).astype(np.uint8)
            data = oracle.random_codes_of(rng, first.dtype, (sources, first.count), special)
            for block in range(sources):
                memory[src + block * pitch :][: self.size] = np.ascontiguousarray(data[block]).view(np.uint8)
            self.instructions.append(instruction)
            self.memories[instruction.core] = memory
            self.blocks.append(list(data))
        self.before = {core: memory.copy() for core, memory in self.memories.items()}

    def execute(self) -> None:
        execute_lists({i.core: [i] for i in self.instructions}, self.memories, CORES)

    def stored(self) -> list[list[np.ndarray]]:
        out = []
        for i in self.instructions:
            starts = [i.dst + block * i.pitch for block in range(oracle.blocks_of(i)[1])]
            out.append([self.memories[i.core][s : s + self.size].view(oracle.STORAGE[i.dtype]) for s in starts])
        return out

    def check(self) -> int:
        self.execute()
        for i, blocks in zip(self.instructions, oracle.results(self.blocks, self.instructions), strict=True):
            expected = self.before[i.core].copy()
            for block, values in enumerate(blocks or []):
                start = i.dst + block * i.pitch
                expected[start : start + self.size] = canonical(values, i).view(np.uint8)
            assert_same_bits(self.memories[i.core], expected, np.arange(len(expected)))
        return sum(np.count_nonzero(self.memories[core] != before) for core, before in self.before.items())


def canonical(values: np.ndarray, instruction: collective.Collective) -> np.ndarray:
    values = np.array(values)
    if instruction.kind in isa.REDUCTION_KINDS and instruction.dtype != T.INT32:
        pattern, bits = (np.uint16, 0x7FC0) if instruction.dtype == T.BF16 else (np.uint32, 0x7FC00000)
        values.view(pattern)[np.isnan(values)] = bits
    return values


@pytest.mark.parametrize("kind", [kind for kind in K if kind != K.RECEIVE])
@pytest.mark.parametrize("ranks", range(2, 17))
def test_every_kind_is_the_loop_over_elements(kind, ranks):
    rng = np.random.default_rng([2718, kind, ranks])
    changed = 0
    for _ in range(3):
        count = int(rng.choice([1, 31, 32, 33, 64, rng.integers(1, 600)]))
        case = Run(rng, random_collective(rng, cores=CORES, kind=kind, ranks=ranks, count=count))
        for instruction in case.instructions:
            instruction.check(Context(Config(rows=4, columns=4, cores=CORES), core=instruction.core))
        changed += case.check()
    assert (changed > 0) == (kind != K.BARRIER)


ROUNDINGS = [{"narrow": narrow, "stochastic": stochastic} for narrow in (False, True) for stochastic in (False, True)]


@pytest.mark.parametrize("op", collective.ReduceOp)
@pytest.mark.parametrize(
    ("dtype", "rounding"), [(T.FP32, {}), (T.INT32, {}), *((T.BF16, rounding) for rounding in ROUNDINGS)]
)
def test_every_reduction(rng, dtype, op, rounding):
    for kind in isa.REDUCTION_KINDS:
        first = part(G(30, -7, 5), 0, kind, op=op, dtype=dtype, count=700, chunk=2, **rounding)
        assert Run(rng, first, special=0.2).check() > 0


@pytest.mark.parametrize("kind", [K.ALL_REDUCE, K.REDUCE_SCATTER, K.ALL_GATHER, K.BROADCAST])
def test_in_place(rng, kind):
    for ranks in (2, 3, 8):
        Run(rng, random_collective(rng, cores=CORES, kind=kind, ranks=ranks, count=333), in_place=True).check()


def test_sums_are_near_those_of_float64(rng):
    for dtype, narrow, roundoff in ((T.FP32, False, 2.0**-24), (T.BF16, False, 2.0**-8), (T.BF16, True, 2.0**-8)):
        for ranks in (2, 7, 16):
            case = Run(rng, part(G(1, 2, ranks), count=9000, dtype=dtype, narrow=narrow), special=0)
            case.execute()
            (ours,), *_ = case.stored()
            parts = np.array([block for (block,) in case.blocks]).astype(np.float64)
            roundings = ranks - 1 if narrow or dtype == T.FP32 else 1
            bound = roundoff * 1.1 * roundings * np.abs(parts).sum(axis=0)
            error = np.abs(ours.astype(np.float64) - parts.sum(axis=0))
            assert np.all(error <= bound) and np.any(error > 0)


def test_stochastic_rounding_keeps_the_mean_where_nearest_even_does_not():
    count = 1 << 15
    value = np.array([1.0, 2.0**-10, 0, 0], "bfloat16")  # the sum is an eighth of a last place above 1
    mean = {}
    for stochastic in (False, True):
        first = part(G(0, 1, 4), count=count, dtype=T.BF16, stochastic=stochastic)
        memories = {rank: np.full(count, value[rank]).view(np.uint8).copy() for rank in range(4)}
        execute_lists({i.core: [replace(i, seed=7 + i.rank, stream=1)] for i in on_every_rank(first)}, memories)
        mean[stochastic] = memories[2].view("bfloat16").astype(np.float64).mean()
    assert mean[False] == 1.0
    assert abs(mean[True] - 1 - 2.0**-10) < 5 * 2.0**-7 * np.sqrt(0.125 * 0.875 / count)


def test_orders_are_those_of_the_words():
    for count, ranks, chunk in ((1, 2, 1), (65, 3, 1), (3000, 4, 5), (32 * 32 * 6 + 7, 5, 32)):
        for kind in isa.REDUCTION_KINDS:
            ours = orders(order.last_rank(kind, count, ranks, chunk, 1), ranks).T
            assert ours.tolist() == oracle.ranks_in_order(kind, count, ranks, chunk, 1)


def words(*values) -> np.ndarray:
    return np.repeat(np.array(values, np.int32), 16).view(np.uint8).copy()  # 64 bytes of each


INTEGERS = {"dtype": T.INT32, "count": 16}
PAIR = G(0, 1, 2)


def test_overlapping_groups_keep_every_core_s_order():
    # Groups {0, 1}, {1, 2} and all: 1 is in each; 2 starts before core 1 reaches their collective.
    lists = {0: [], 1: [], 2: []}
    for group in (PAIR, G(2, -1, 2), G(0, 1, 3)):
        for one in on_every_rank(part(group, **INTEGERS)):
            lists[one.core].append(one)
    memories = {0: words(1), 1: words(10), 2: words(100)}
    execute_lists(lists, memories, 3)
    assert all(set(memory.view(np.int32).tolist()) == {11 + 111 + 111} for memory in memories.values())


def test_messages_pass_through_a_chain():
    group = G(4, 2, 3)
    lists = {
        4: [part(group, 0, K.SEND, root=1, **INTEGERS)],
        6: [part(group, 1, K.RECEIVE, root=0, **INTEGERS), part(group, 1, K.SEND, root=2, **INTEGERS)],
        8: [part(group, 2, K.RECEIVE, root=1, dst=64, **INTEGERS)],
    }
    memories = {4: words(5), 6: words(6), 8: words(7, 8)}
    execute_lists(lists, memories)
    assert memories[6].tobytes() == words(5).tobytes() and memories[8].tobytes() == words(7, 5).tobytes()


DISAGREEMENTS = {
    "kind": ({}, {"kind": K.BROADCAST}, "kind, not "),
    "op": ({}, {"op": collective.ReduceOp.MAX}, "op, not "),
    "dtype": ({}, {"dtype": T.INT32}, "dtype, not "),
    "narrow": ({"dtype": T.BF16}, {"dtype": T.BF16, "narrow": True}, "narrow, not "),
    "stochastic": ({"dtype": T.BF16}, {"dtype": T.BF16, "stochastic": True}, "stochastic, not "),
    "chunk": ({}, {"chunk": 3}, "chunk, not "),
    "ranks": ({}, {"group": G(3, 2, 4)}, "ranks, not 2 and 3"),
    "base": ({}, {"group": G(7, -2, 3)}, "base, not 3 and 7"),
    "count": ({}, {"count": 5}, "count, not 4 and 5"),
    "root": ({"kind": K.BROADCAST, "root": 0}, {"kind": K.BROADCAST, "root": 1}, "root, not 0 and 1"),
    "kind, both send": ({"kind": K.SEND, "root": 1}, {"kind": K.SEND}, "the sender: both are at SEND"),
}
"""Changes of rank 1's collective, and the reported difference."""


@pytest.mark.parametrize("name", DISAGREEMENTS)
def test_ranks_that_disagree_are_named(name):
    good, bad, said = DISAGREEMENTS[name]
    memories = {core: np.zeros(64, np.uint8) for core in (3, 5, 7)}
    lists = {core: [part(G(3, 2, 3), rank)] for rank, core in enumerate(memories)}
    for rank, core in enumerate(memories):
        lists[core].append(replace(lists[core][0], **(bad if rank == 1 else good)))
    with pytest.raises(CollectiveError, match=f"cores 3 and 5 must agree on {said}") as caught:
        execute_lists(lists, memories, 16)
    place = [field for field, _ in isa.SIGNATURE_FIELDS].index(name.split(",")[0])
    assert (caught.value.core, caught.value.cause, caught.value.detail) == (3, Cause.DISAGREE, 5 | place + 1 << 8)


@pytest.mark.parametrize(
    ("common", "others"),
    [({"kind": K.ALL_GATHER, "pitch": 64, "src": 128}, {"op": collective.ReduceOp.MAX, "root": 1}),
     ({"kind": K.BROADCAST, "dst": 128, "chunk": 1}, {"chunk": 2})],
)  # fmt: skip
def test_what_means_nothing_for_a_kind_is_not_compared(common, others):
    memories = {core: np.zeros(256, np.uint8) for core in range(2)}
    execute_lists({0: [part(PAIR, 0, **common)], 1: [part(PAIR, 1, **common | others)]}, memories)


A, B, C = PAIR, G(1, 1, 2), G(0, 2, 2)
DEADLOCKS = {
    "ring": ({0: [part(A, 0), part(C, 0)], 1: [part(B, 0), part(A, 1)], 2: [part(C, 1), part(B, 1)]},
             r"core 0 at ALL_REDUCE, number 0, waits for core 1 \(at ALL_REDUCE\)", {0: (1,), 1: (2,), 2: (0,)}),
    "shorter list": ({0: [part(A, 0)] * 2, 1: [part(A, 1)]}, r"waits for core 1 \(at its end\)", {0: (1,)}),
    "no list": ({0: [part(A, 0)]}, r"waits for core 1 \(at its end\)", {0: (1,)}),
}  # fmt: skip


@pytest.mark.parametrize(("lists", "message", "waiting"), DEADLOCKS.values(), ids=DEADLOCKS)
def test_deadlocks_are_found_and_explained(lists, message, waiting):
    with pytest.raises(Deadlock, match=message) as caught:
        execute_lists(lists, {core: np.zeros(64, np.uint8) for core in range(3)})
    assert caught.value.waiting == waiting


EXCHANGE = {"kind": K.ALL_TO_ALL, "count": 1, "pitch": 64, "dst": 64}


@pytest.mark.parametrize(
    ("first", "second", "cause", "message"),
    [
        ({}, {"src": 32}, Rule.ALIGNMENT, "core 1: ALL_REDUCE: src_address must be a multiple of 64"),
        ({}, {"dst": 256}, Cause.AXI, "core 1: ALL_REDUCE: dst's bytes must end at 256, not at 272"),
        ({"count": 17}, {"count": 17, "src": 64}, None, "core 1: ALL_REDUCE: src at 64 .* must not overlap this way"),
        (EXCHANGE, EXCHANGE, None, "must not overlap this way"),
    ],
)
def test_what_is_wrong_with_an_instruction(first, second, cause, message):
    memories = {core: np.zeros(256, np.uint8) for core in range(2)}
    with pytest.raises(CollectiveError, match=message) as caught:
        execute_lists({0: [part(PAIR, 0, **first)], 1: [part(PAIR, 1, **second)]}, memories, 2)
    assert caught.value.cause == cause


def test_a_list_goes_on_until_something_is_wrong():
    memories = {0: words(1), 1: words(2)}
    with pytest.raises(CollectiveError, match="count must be at least 1"):
        execute_lists({core: [part(PAIR, core, **INTEGERS), part(PAIR, core, count=0)] for core in range(2)}, memories)
    assert memories[0].tobytes() == memories[1].tobytes() == words(3).tobytes()
