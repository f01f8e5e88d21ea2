"""The model of collectives: bits against element-by-element Python, sums against float64, order against the words."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.golden.collective import CollectiveError, Deadlock, orders, run
from neuroncore_rtl.golden.collective.order import last_rank
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Cause, Context, Rule
from neuroncore_rtl.spec.isa.collective import (
    ALIGNMENT,
    CHUNK_GRANULES,
    SIGNATURE_FIELDS,
    Collective,
    CollectiveKind,
    CollectiveType,
    ReduceOp,
)
from neuroncore_rtl.spec.isa.collective import Group as G
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from tests.oracles.collectives import (
    STORAGE,
    blocks_of,
    on_every_rank,
    random_codes_of,
    random_group,
    ranks_in_order,
    results,
)

SEED = 2718
CORES = 40
K, T = CollectiveKind, CollectiveType
REDUCTIONS = (K.ALL_REDUCE, K.REDUCE_SCATTER)


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Run:
    """A collective of a group in memories of random bytes: `blocks` are those in every rank's src."""

    def __init__(self, rng, first: Collective, in_place: bool = False, special: float = 0.05):
        dtype = np.dtype(STORAGE[first.dtype])
        self.size = first.count * dtype.itemsize
        pitch = aligned(self.size) + ALIGNMENT * int(rng.integers(3))
        sources, targets = blocks_of(first)
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
            data = random_codes_of(rng, first.dtype, (sources, first.count), special)
            for block in range(sources):
                memory[src + block * pitch :][: self.size] = np.ascontiguousarray(data[block]).view(np.uint8)
            self.instructions.append(instruction)
            self.memories[instruction.core] = memory
            self.blocks.append(list(data))
        self.before = {core: memory.copy() for core, memory in self.memories.items()}

    def execute(self) -> None:
        run({i.core: [i] for i in self.instructions}, self.memories, CORES)

    def stored(self) -> list[list[np.ndarray]]:
        """Return every rank's blocks at dst."""
        out = []
        for i in self.instructions:
            starts = [i.dst + block * i.pitch for block in range(blocks_of(i)[1])]
            out.append([self.memories[i.core][s : s + self.size].view(STORAGE[i.dtype]) for s in starts])
        return out

    def check(self) -> int:
        """Execute, and compare every byte of every memory; return the bytes that changed."""
        self.execute()
        for i, blocks in zip(self.instructions, results(self.blocks, self.instructions), strict=True):
            expected = self.before[i.core].copy()
            for block, values in enumerate(blocks or []):
                start = i.dst + block * i.pitch
                expected[start : start + self.size] = canonical(values, i).view(np.uint8)
            assert_same_bits(self.memories[i.core], expected, np.arange(len(expected)))
        return sum(np.count_nonzero(self.memories[core] != before) for core, before in self.before.items())


def canonical(values: np.ndarray, instruction: Collective) -> np.ndarray:
    """Return values with the canonical NaN where they are computed."""
    values = np.array(values)
    if instruction.kind in REDUCTIONS and instruction.dtype != T.INT32:
        pattern, bits = (np.uint16, 0x7FC0) if instruction.dtype == T.BF16 else (np.uint32, 0x7FC00000)
        values.view(pattern)[np.isnan(values)] = bits
    return values


def random_collective(rng, kind, ranks, count=None) -> Collective:
    dtype = T(int(rng.integers(3)))
    options = {}
    if kind in REDUCTIONS:
        options["op"] = ReduceOp(int(rng.integers(3)))
        if dtype == T.BF16:
            options |= {"narrow": rng.random() < 0.5, "stochastic": rng.random() < 0.5}
    root = int(rng.integers(1, ranks)) if kind == K.SEND else int(rng.integers(ranks))
    chunk = int(rng.choice([1, 2, 3, CHUNK_GRANULES]))
    count = count or int(rng.choice([1, 31, 32, 33, 64, rng.integers(1, 600)]))
    group = random_group(rng, CORES, ranks)
    return Collective(kind=kind, group=group, rank=0, root=root, count=count, dtype=dtype, chunk=chunk, **options)


@pytest.mark.parametrize("kind", [kind for kind in K if kind != K.RECEIVE], ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("ranks", range(2, 17))
def test_every_kind_is_the_loop_over_elements(rng, kind, ranks):
    rng = np.random.default_rng([SEED, kind, ranks])
    changed = 0
    for _ in range(3):
        case = Run(rng, random_collective(rng, kind, ranks))
        for instruction in case.instructions:
            instruction.check(Context(Config(rows=4, columns=4, cores=CORES), core=instruction.core))
        changed += case.check()
    assert (changed > 0) == (kind != K.BARRIER)


@pytest.mark.parametrize("dtype", T)
@pytest.mark.parametrize("op", ReduceOp)
@pytest.mark.parametrize("narrow, stochastic", [(False, False), (True, False), (False, True), (True, True)])
def test_every_reduction(rng, dtype, op, narrow, stochastic):
    if dtype != T.BF16 and (narrow or stochastic):
        return
    for kind in REDUCTIONS:
        options = {"op": op, "dtype": dtype, "narrow": narrow, "stochastic": stochastic}
        first = Collective(kind=kind, group=G(30, -7, 5), rank=0, count=700, chunk=2, **options)
        assert Run(rng, first, special=0.2).check() > 0


@pytest.mark.parametrize("kind", [K.ALL_REDUCE, K.REDUCE_SCATTER, K.ALL_GATHER, K.BROADCAST])
def test_in_place(rng, kind):
    for ranks in (2, 3, 8):
        Run(rng, random_collective(rng, kind, ranks, 333), in_place=True).check()


def test_all_ranks_hold_the_same_bits(rng):
    for ranks in range(2, 17):
        options = {"dtype": T.BF16, "narrow": ranks % 2, "stochastic": ranks % 3 == 0}
        case = Run(rng, Collective(kind=K.ALL_REDUCE, group=G(0, 1, ranks), rank=0, count=5000, chunk=1, **options))
        case.execute()
        (first,), *others = case.stored()
        for (other,) in others:
            assert first.tobytes() == other.tobytes()


def test_sums_are_near_those_of_float64(rng):
    for dtype, narrow, roundoff in ((T.FP32, False, 2.0**-24), (T.BF16, False, 2.0**-8), (T.BF16, True, 2.0**-8)):
        for ranks in (2, 7, 16):
            first = Collective(kind=K.ALL_REDUCE, group=G(1, 2, ranks), rank=0, count=9000, dtype=dtype, narrow=narrow)
            case = Run(rng, first, special=0)
            case.execute()
            (ours,), *_ = case.stored()
            parts = np.array([block for (block,) in case.blocks]).astype(np.float64)
            roundings = ranks - 1 if narrow or dtype == T.FP32 else 1
            bound = roundoff * 1.1 * roundings * np.abs(parts).sum(axis=0)
            error = np.abs(ours.astype(np.float64) - parts.sum(axis=0))
            assert np.all(error <= bound) and np.any(error > 0)


def test_stochastic_rounding_keeps_the_mean_where_nearest_even_does_not(rng):
    group, count = G(0, 1, 4), 1 << 15
    value = np.array([1.0, 2.0**-10, 0, 0], "bfloat16")  # the sum is an eighth of a last place above 1
    mean = {}
    for stochastic in (False, True):
        first = Collective(
            kind=K.ALL_REDUCE, group=group, rank=0, count=count, dtype=T.BF16, stochastic=stochastic, src=0, dst=0
        )
        memories = {rank: np.full(count, value[rank]).view(np.uint8).copy() for rank in range(4)}
        run({i.core: [replace(i, seed=7 + i.rank, stream=1)] for i in on_every_rank(first)}, memories)
        mean[stochastic] = memories[2].view("bfloat16").astype(np.float64).mean()
    assert mean[False] == 1.0
    assert abs(mean[True] - 1 - 2.0**-10) < 5 * 2.0**-7 * np.sqrt(0.125 * 0.875 / count)


def test_orders_are_those_of_the_words():
    for count, ranks, chunk in ((1, 2, 1), (65, 3, 1), (3000, 4, 5), (32 * 32 * 6 + 7, 5, 32)):
        for kind in REDUCTIONS:
            ours = orders(last_rank(kind, count, ranks, chunk, 1), ranks).T
            assert ours.tolist() == ranks_in_order(kind, count, ranks, chunk, 1)


def sum_of(group, rank, **options):
    return Collective(kind=K.ALL_REDUCE, group=group, rank=rank, **{"count": 4} | options)


def words(*values) -> np.ndarray:
    return np.repeat(np.array(values, np.int32), 16).view(np.uint8).copy()  # 64 bytes of each


def test_overlapping_groups_keep_every_core_s_order():
    # 0 and 1, then 1 and 2, then all: 1 is in each, and 2 begins before its turn.
    pair, other, everyone = G(0, 1, 2), G(2, -1, 2), G(0, 1, 3)
    integer = {"dtype": T.INT32, "count": 16}
    lists = {
        0: [sum_of(pair, 0, **integer), sum_of(everyone, 0, **integer)],
        1: [sum_of(pair, 1, **integer), sum_of(other, 1, **integer), sum_of(everyone, 1, **integer)],
        2: [sum_of(other, 0, **integer), sum_of(everyone, 2, **integer)],
    }
    memories = {0: words(1), 1: words(10), 2: words(100)}
    run(lists, memories, 3)
    assert all(set(memory.view(np.int32).tolist()) == {11 + 111 + 111} for memory in memories.values())


def test_messages_pass_through_a_chain():
    group = G(4, 2, 3)
    send = {"group": group, "count": 16, "dtype": T.INT32}
    lists = {
        4: [Collective(kind=K.SEND, rank=0, root=1, **send)],
        6: [Collective(kind=K.RECEIVE, rank=1, root=0, **send), Collective(kind=K.SEND, rank=1, root=2, **send)],
        8: [Collective(kind=K.RECEIVE, rank=2, root=1, dst=64, **send)],
    }
    memories = {4: words(5), 6: words(6), 8: words(7, 8)}
    run(lists, memories)
    assert memories[6].tobytes() == words(5).tobytes() and memories[8].tobytes() == words(7, 5).tobytes()


FIELDS = {
    "kind": ({}, {"kind": K.BROADCAST}),
    "op": ({}, {"op": ReduceOp.MAX}),
    "dtype": ({}, {"dtype": T.INT32}),
    "narrow": ({"dtype": T.BF16}, {"dtype": T.BF16, "narrow": True}),
    "stochastic": ({"dtype": T.BF16}, {"dtype": T.BF16, "stochastic": True}),
    "chunk": ({}, {"chunk": 3}),
    "ranks": ({}, {"group": G(3, 2, 4)}),
    "count": ({}, {"count": 5}),
}


@pytest.mark.parametrize("field", FIELDS)
def test_ranks_that_disagree_are_named(field):
    group = G(3, 2, 3)
    good, bad = FIELDS[field]
    memories = {core: np.zeros(64, np.uint8) for core in (3, 5, 7)}
    plain = [sum_of(group, rank) for rank in range(3)]
    lists = {3: [plain[0], sum_of(group, 0, **good)], 7: [plain[2], sum_of(group, 2, **good)]}
    lists[5] = [plain[1], replace(sum_of(group, 1), **bad)]
    with pytest.raises(CollectiveError, match=f"cores 3 and 5 must agree on {field}, not ") as caught:
        run(lists, memories, 16)
    place = [name for name, _ in SIGNATURE_FIELDS].index(field)
    assert (caught.value.core, caught.value.cause, caught.value.detail) == (3, Cause.DISAGREE, 5 | place + 1 << 8)


def test_other_disagreements():
    memories = {core: np.zeros(256, np.uint8) for core in range(2)}
    group = G(0, 1, 2)
    base = {0: [sum_of(group, 0)], 1: [sum_of(G(1, -1, 2), 0)]}
    with pytest.raises(CollectiveError, match="cores 0 and 1 must agree on base, not 0 and 1"):
        run(base, memories)
    roots = {c: [Collective(kind=K.BROADCAST, group=group, rank=c, count=1, root=c)] for c in range(2)}
    with pytest.raises(CollectiveError, match="cores 0 and 1 must agree on root, not 0 and 1") as caught:
        run(roots, memories)
    place = [name for name, _ in SIGNATURE_FIELDS].index("root")
    assert (caught.value.cause, caught.value.detail) == (Cause.DISAGREE, 1 | place + 1 << 8)
    both = {c: [Collective(kind=K.SEND, group=group, rank=c, count=1, root=1 - c)] for c in range(2)}
    with pytest.raises(CollectiveError, match="agree on who sends: both are at SEND") as caught:
        run(both, memories)
    assert (caught.value.cause, caught.value.detail) == (Cause.DISAGREE, 1 | 1 << 8)
    # What means nothing for a kind is not compared.
    gather = [Collective(kind=K.ALL_GATHER, group=group, rank=c, count=1, pitch=64, src=128) for c in range(2)]
    run({0: [gather[0]], 1: [replace(gather[1], op=ReduceOp.MAX, root=1)]}, memories)
    copies = [Collective(kind=K.BROADCAST, group=group, rank=c, count=1, dst=128, chunk=1 + c) for c in range(2)]
    run({0: [copies[0]], 1: [copies[1]]}, memories)


def test_deadlocks_are_found_and_explained():
    memories = {core: np.zeros(64, np.uint8) for core in range(3)}
    a, b, c = G(0, 1, 2), G(1, 1, 2), G(0, 2, 2)
    ring = {
        0: [sum_of(a, 0), sum_of(c, 0)],
        1: [sum_of(b, 0), sum_of(a, 1)],
        2: [sum_of(c, 1), sum_of(b, 1)],
    }
    with pytest.raises(Deadlock, match=r"core 0 at ALL_REDUCE, number 0, waits for core 1 \(at ALL_REDUCE\)") as caught:
        run(ring, memories)
    assert caught.value.waiting == {0: (1,), 1: (2,), 2: (0,)}
    with pytest.raises(Deadlock, match=r"waits for core 1 \(at its end\)"):
        run({0: [sum_of(a, 0), sum_of(a, 0)], 1: [sum_of(a, 1)]}, memories)
    with pytest.raises(Deadlock, match=r"waits for core 1 \(at its end\)"):
        run({0: [sum_of(a, 0)]}, memories)


def test_what_is_wrong_with_an_instruction():
    memories = {core: np.zeros(256, np.uint8) for core in range(2)}
    group = G(0, 1, 2)

    def error(*instructions):
        with pytest.raises(CollectiveError) as caught:
            run({core: [instruction] for core, instruction in enumerate(instructions)}, memories, 2)
        return caught.value

    broken = error(sum_of(group, 0), sum_of(group, 1, src=32))
    assert broken.cause == Rule.ALIGNMENT and "core 1: ALL_REDUCE: src_address must be a multiple of 64" in str(broken)
    beyond = error(sum_of(group, 0), sum_of(group, 1, dst=256))
    assert beyond.cause == Cause.AXI and "core 1: ALL_REDUCE: dst's bytes must end at 256, not at 272" in str(beyond)
    long = error(sum_of(group, 0, count=17), sum_of(group, 1, src=64, count=17))
    assert long.cause is None and "core 1: ALL_REDUCE: src at 64 and dst at 0 must not overlap so" in str(long)
    exchange = {"kind": K.ALL_TO_ALL, "group": group, "count": 1, "pitch": 64}
    assert "must not overlap so" in str(error(*(Collective(rank=rank, dst=64, **exchange) for rank in range(2))))


def test_a_list_goes_on_until_something_is_wrong():
    memories = {0: words(1), 1: words(2)}
    group = G(0, 1, 2)
    good = {"dtype": T.INT32, "count": 16}
    with pytest.raises(CollectiveError, match="count must be at least 1"):
        run({core: [sum_of(group, core, **good), sum_of(group, core, count=0)] for core in range(2)}, memories)
    assert memories[0].tobytes() == memories[1].tobytes() == words(3).tobytes()
