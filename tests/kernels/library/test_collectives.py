"""Collectives in programs: bytes, dependences and errors."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.golden.collective import CollectiveError, execute_group, execute_lists
from neuroncore_rtl.kernels.library.collectives import collectives_program, stepwise_all_reduce, torus_all_reduce
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.kernels.program.footprint import addresses_of, check_apart
from neuroncore_rtl.spec import formats, isa
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.isa.collective import BLOCKS_OF_DST, BLOCKS_OF_SRC, COLLECTIVE_ALIGNMENT, Collective, Group
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from neuroncore_rtl.spec.isa.collective import CollectiveType as T
from tests.kernels.running import run_golden_instance
from tests.oracles.collectives import on_every_rank, random_codes_of

SEED = 2310
CONFIG = PRESETS["tiny"].with_overrides(cores=4)
ALL = Group(0, 1, 4)
APART = 1 << 12
MOVING = sorted(set(K) - {K.SEND, K.RECEIVE, K.BARRIER})


def near(rng, kind):
    count = int(rng.integers(1, 40))
    pitch = COLLECTIVE_ALIGNMENT * int(rng.integers(3, 6))
    ranks = on_every_rank(Collective(kind=kind, group=ALL, rank=0, root=2, count=count, dst=APART, pitch=pitch))
    place = int(rng.integers(len(ranks)))
    src, dst = (COLLECTIVE_ALIGNMENT * int(n) for n in rng.integers(24, size=2))
    ranks[place] = replace(ranks[place], src=src, dst=dst)
    return ranks, place


def test_src_and_dst_may_meet_where_golden_knows_what_that_means(rng):
    verdicts = {kind: set() for kind in K if kind != K.RECEIVE}
    for kind in list(verdicts) * 60:
        ranks, place = near(rng, kind)
        try:
            execute_group(ranks, {one.core: np.zeros(2 * APART, np.uint8) for one in ranks})
        except CollectiveError:
            with pytest.raises(ValueError, match=f"{ranks[place].kind.name}: dst must be apart from src"):
                check_apart(ranks[place])
            verdicts[kind].add(False)
        else:
            check_apart(ranks[place])
            verdicts[kind].add(True)
    assert {kind for kind, found in verdicts.items() if len(found) == 2} == set(MOVING)


@pytest.mark.parametrize("kind", MOVING)
def test_the_same_block_is_allowed_where_the_words_say_so(kind):
    one = Collective(kind=kind, group=ALL, rank=1, root=1, count=16, src=1024, dst=1024, pitch=128)
    of_rank = {K.REDUCE_SCATTER: {"dst": 1024 + 128}, K.ALL_GATHER: {"src": 1024 + 128}}.get(kind, {})
    if of_rank or kind == K.ALL_TO_ALL:
        with pytest.raises(ValueError, match=f"{kind.name}: dst must be apart from src"):
            check_apart(one)
    if kind != K.ALL_TO_ALL:
        check_apart(replace(one, **of_rank))


def test_nothing_else_of_a_collective_is_touched(rng):
    for kind in [kind for kind in K if kind != K.RECEIVE] * 8:
        ranks = [replace(one, src=0, dst=APART) for one in near(rng, kind)[0]]
        memories = {one.core: rng.integers(256, size=2 * APART).astype(np.uint8) for one in ranks}
        before = {core: memory.copy() for core, memory in memories.items()}
        execute_group(ranks, memories)
        for one in ranks:
            reads, writes = ([addresses_of(region) for region in regions] for regions in (one.reads, one.writes))
            for found, several in ((reads, BLOCKS_OF_SRC), (writes, BLOCKS_OF_DST)):
                assert sum(map(len, found)) == (CONFIG.cores if kind in several else 1) * 4 * one.count * len(found)
            changed = np.flatnonzero(memories[one.core] != before[one.core])
            assert np.isin(changed, np.concatenate([*writes, []])).all()
            assert len(reads) == (one.kind not in (K.RECEIVE, K.BARRIER) and (kind != K.BROADCAST or one.rank == 2))
            assert len(writes) == (one.kind not in (K.SEND, K.BARRIER))


def copy_chain(config, rng):
    images, results = [], []
    queues = range(3, 3 + config.dma_engines)
    values = rng.integers(-1000, 1000, (config.cores, 8)).astype(np.int32)
    for core in range(config.cores):
        program = Program(config, core=core)
        given, src, dst, out = (program.space.hbm(name, formats.INT32, (8,)) for name in ("given", "src", "dst", "out"))
        for _ in range(2):
            for n, queue in enumerate(queues):
                program.append(dma_copy(src[n : n + 1], given[n : n + 1]), queue=queue)
            common = {"kind": K.ALL_REDUCE, "group": Group(0, 1, config.cores), "rank": core}
            program.append(Collective(**common, count=8, dtype=T.INT32, src=src.address, dst=dst.address))
            for n, queue in enumerate(queues):
                program.append(dma_copy(out[n : n + 1], dst[n : n + 1]), queue=queue)
                program.append(dma_copy(given[n : n + 1], dst[n : n + 1]), queue=queue)
        images.append((program, build_image(program, [(given, values[core].view(np.uint32))])))
        results.append(out)
    return images, results, values.sum(0) * config.cores


@pytest.mark.parametrize("engines", [1, 2, 5, 8])
def test_copies_and_collectives_keep_their_order(rng, engines):
    config = Config(rows=4, columns=4, dma_engines=engines, cores=3)
    made, results, expected = copy_chain(config, rng)
    queue = isa.collective_queue(config)
    for program, _ in made:
        position = {(e.lane, e.number + 1): e.position for e in program.entries}
        assert all(position[wait] < e.position for e in program.entries for wait in e.waits)
        assert all(len(e.waits) <= 2 for e in program.entries)
        assert sum(e.queue == queue and e.lane is not None for e in program.entries) == 2
    for order in (None, *[rng] * 6):
        for out, outcome in zip(results, run_golden_instance(config, [image for _, image in made], order), strict=True):
            assert np.array_equal(out.elements(outcome.hbm)[:engines].view(np.int32), expected[:engines])


def test_refusals():
    program = Program(CONFIG, core=2)
    one = Collective(kind=K.ALL_REDUCE, group=ALL, rank=2, count=16, dst=4096)
    program.append(one)
    for wrong, message in (
        (lambda: program.append(replace(one, rank=1)), "must be the rank of core 2, not of core 1 .rule STATE"),
        (lambda: program.append(replace(one, src=32)), "src_address must be a multiple of 64, not 32"),
        (lambda: program.append(replace(one, count=0)), "count must be at least 1"),
        (lambda: program.append(one, queue=3), "queue must be one of collective, not 3"),
        (lambda: Program(PRESETS["tiny"]).append(replace(one, rank=0)), "cores must lie from 0 to 0, not from 0 to 3"),
        (lambda: Program(CONFIG, core=4), "core must be between 0 and 3, not 4"),
        (lambda: collectives_program(CONFIG, [one], 4096), "base must be at least 0x1040, the end of what ALL_REDUCE"),
        (lambda: collectives_program(CONFIG, [one, replace(one, rank=1)], 8192), "the rank of core 2, .*rule STATE"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


TORUS = Instance(chips=12, topology=Topology.TORUS, width=4)
PLACES = {"src": 64, "dst": 1 << 12}


def of_chips(position=0, kind=K.ALL_REDUCE, **options):
    return Collective(kind=kind, group=Group(position, 2, TORUS.chips), rank=0, **PLACES | options)


def sums_of(lists, vectors):
    """Execute the lists on memories with a vector of each core at src; return each core's vector at dst."""
    memories = {core: np.full(1 << 13, 0xA5, np.uint8) for core in lists}
    for core, vector in vectors.items():
        memories[core][64 : 64 + vector.nbytes] = vector.view(np.uint8)
    execute_lists(lists, memories, TORUS.cores)
    size = next(iter(vectors.values())).nbytes
    for core, memory in memories.items():
        assert np.array_equal(memory[64 : 64 + size], vectors[core].view(np.uint8)), "src must not change"
        assert (memory[PLACES["dst"] + size :] == 0xA5).all()
    return {core: memory[PLACES["dst"] :][:size].view(vectors[core].dtype) for core, memory in memories.items()}


@pytest.mark.parametrize("count", [1, 47, 64, 192, 200, 500])
@pytest.mark.parametrize("position", [0, 1])
def test_steps_along_rows_and_columns_add_in_their_order(count, position, rng):
    wholes = on_every_rank(of_chips(position, count=count))
    vectors = {one.core: random_codes_of(rng, T.FP32, count).view(np.float32) for one in wholes}
    found = sums_of({one.core: torus_all_reduce(TORUS, one) for one in wholes}, vectors)
    first = next(iter(found.values()))
    assert all(np.array_equal(each.view(np.uint32), first.view(np.uint32)) for each in found.values())

    grid = np.array([vectors[one.core] for one in wholes]).reshape(3, 4, count)
    finite = np.isfinite(grid).all((0, 1)) & (np.abs(grid).max((0, 1)) < 1e3)
    exact = grid[..., finite].astype(np.float64).sum((0, 1))
    assert finite.sum() >= count // 4 and np.allclose(first[finite], exact, atol=1e-4)


def test_the_bits_are_those_of_one_all_reduce_per_step(rng):
    """Rows are added first by the first core of a chip, columns by the second; the oracle adds block by block."""
    count = 12 * 16
    for position in (0, 1):
        wholes = on_every_rank(of_chips(position, count=count))
        vectors = {one.core: rng.standard_normal(count).astype(np.float32) for one in wholes}
        found = sums_of({one.core: torus_all_reduce(TORUS, one) for one in wholes}, vectors)
        rows = [[one.core for one in wholes[4 * row : 4 * row + 4]] for row in range(3)]
        groups = [list(column) for column in zip(*rows, strict=True)] if position else rows
        others = rows if position else [list(column) for column in zip(*rows, strict=True)]
        n = len(groups[0])
        block = count // n
        parts = {}
        for cores in groups:
            scatter = [
                Collective(kind=K.REDUCE_SCATTER, group=Group(cores[0], cores[1] - cores[0], n), rank=rank, count=block,
                           src=64, pitch=4 * block, dst=1 << 12)
                for rank in range(n)
            ]  # fmt: skip
            memories = {core: np.zeros(1 << 13, np.uint8) for core in cores}
            for core in cores:
                memories[core][64 : 64 + 4 * count] = vectors[core].view(np.uint8)
            execute_group(scatter, memories)
            parts |= {core: memories[core][1 << 12 :][: 4 * block] for core in cores}
        for cores in others:
            reduce = [
                replace(one, group=Group(cores[0], cores[1] - cores[0], len(cores)), count=block, src=0)
                for one in on_every_rank(of_chips(count=block))[: len(cores)]
            ]
            memories = {core: np.concatenate([parts[core], np.zeros(1 << 13, np.uint8)]) for core in cores}
            execute_group(reduce, memories)
            place = groups[0].index(cores[0])
            got = memories[cores[0]][1 << 12 :][: 4 * block]
            assert np.array_equal(found[cores[0]].view(np.uint8)[4 * block * place :][: 4 * block], got)


@pytest.mark.parametrize("dtype", T)
def test_a_grid_of_any_groups_in_any_format_agrees(dtype, rng):
    grid = [[Group(6 * plane + row, 2, 3) for row in range(2)] for plane in range(4)]
    vectors, lists = {}, {}
    for core in range(24):
        plane, within = divmod(core, 6)
        groups = grid[plane][within % 2], Group(core - within % 2, 1, 2), Group(within, 6, 4)
        whole = Collective(kind=K.ALL_REDUCE, group=Group(core, 1, 2), rank=0, count=333, dtype=dtype, **PLACES)
        vectors[core] = random_codes_of(rng, dtype, 333)
        lists[core] = stepwise_all_reduce(whole, groups)
    found = sums_of(lists, vectors)
    assert len({each.tobytes() for each in found.values()}) == 1
    if dtype == T.INT32:
        with np.errstate(over="ignore"):
            assert np.array_equal(found[0], np.sum(list(vectors.values()), axis=0, dtype=np.int32))


def test_what_is_no_all_reduce_over_a_torus_is_refused():
    cases = (
        (replace(TORUS, topology=Topology.RING), of_chips(count=4), "topology must be torus, not ring"),
        (TORUS, of_chips(count=4, kind=K.ALL_GATHER), "whole must be an ALL_REDUCE, not ALL_GATHER"),
        (TORUS, replace(of_chips(count=4), group=Group(0, 2, 3)), "group must be 12 cores from 0 to 22, every 2, one"),
    )
    for instance, whole, message in cases:
        with pytest.raises(ValueError, match=message):
            torus_all_reduce(instance, whole)
    with pytest.raises(ValueError, match="groups must contain core 0, not 2 cores from 1 to 2"):
        stepwise_all_reduce(of_chips(count=4), [Group(1, 1, 2)])
