"""Race detector: accesses against execution, and races of runs and programs."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from neuroncore_rtl.golden import core, scalar, tensor, vector
from neuroncore_rtl.golden.collective import execute_lists as golden_collectives
from neuroncore_rtl.golden.memory.dma import dma_copy
from neuroncore_rtl.run.check.races import Execution, find_races, race_events
from neuroncore_rtl.run.check.touches import touches_of
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT32, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import DmaCopy, DmaTensor, Elementwise, MultiplyMoving, Record, Storage, Wait
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group
from neuroncore_rtl.tb.check.ordering import find_unordered
from tests.oracles import chains, instructions
from tests.oracles.copies import INDEX_ADDRESS, INDEX_LIMIT, SBUF_USED, random_copy

SEED = 1729
CONFIG = Config(rows=8, columns=8, dma_engines=3)
HBM_BYTES = 1 << 14
SIZES = 1024, 512
TENSOR, VECTOR, SCALAR, DMA0, DMA1, DMA2 = range(6)


def random_memories(rng):
    hbm = rng.integers(256, size=(1, HBM_BYTES)).astype(np.uint8)
    sbuf, psum = np.zeros((8, SBUF_USED), np.uint8), np.zeros((8, CONFIG.psum_bytes), np.uint8)
    for memory, size in ((sbuf, SIZES[0]), (psum, SIZES[1])):
        memory[:, :size] = rng.integers(256, size=(8, size))
    rows = rng.integers(INDEX_LIMIT, size=8).astype("<u4")
    sbuf[:, INDEX_ADDRESS : INDEX_ADDRESS + 4] = rows[:, np.newaxis].view(np.uint8)
    return {Storage.HBM: hbm, Storage.SBUF: sbuf, Storage.PSUM: psum}


def copies_of(memories):
    return {place: memory.copy() for place, memory in memories.items()}


def masks_of(instruction, memories):
    masks = [{storage: np.zeros(memory.shape, bool) for storage, memory in memories.items()} for _ in range(2)]
    for touch in touches_of(instruction, CONFIG):
        for start in touch.starts:
            masks[touch.writes][touch.storage][touch.partitions, start : start + touch.length] = True
    return masks


def execute(instruction, memories):
    hbm, sbuf, psum = memories[Storage.HBM][0], memories[Storage.SBUF], memories[Storage.PSUM]
    if isinstance(instruction, DmaCopy):
        dma_copy(instruction, hbm, sbuf, psum)
    elif isinstance(instruction, Elementwise):
        engine = scalar.ScalarEngine if instruction.opcode in isa.SCALAR_OPCODES else vector.VectorEngine
        engine(CONFIG).execute(instruction, sbuf, psum)
    else:
        engine = tensor.TensorEngine(CONFIG)
        engine.psum[:] = psum.view(np.uint32)
        weights = isa.LoadStationary(format=instruction.format, k=8, m=8, address=0)
        engine.execute(weights, np.ones((8, 64), np.uint8), None)
        engine.execute(instruction, None, sbuf)
        psum[:] = engine.psum.view(np.uint8)


def random_of_any_engine(rng):
    kind = rng.integers(6)
    if kind < 2:
        return random_copy(rng, CONFIG, HBM_BYTES)
    if kind < 4:
        instruction = instructions.random_instruction(rng, isa.Opcode(int(rng.choice(list(isa.Opcode)))), CONFIG, SIZES)
        return replace(instruction, function=0)  # others are slow to compile, and access the same bytes
    fmt = MATMUL_FORMATS[rng.integers(len(MATMUL_FORMATS))]
    size = fmt.bits // 8
    k, m, n = (int(x) for x in rng.integers(1, 9, size=3))
    places = {"address": size * int(rng.integers(20)), "stride": size * int(rng.integers(5))}
    psum, accumulate = int(rng.integers(100)), bool(rng.integers(2))
    return MultiplyMoving(format=fmt, k=k, m=m, n=n, psum=psum, accumulate=accumulate, **places)


def test_touches_are_what_execution_reads_and_writes(rng):
    written, kinds = 0, set()
    for _ in range(200):
        instruction = random_of_any_engine(rng)
        before, other = random_memories(rng), random_memories(rng)
        reads, writes = masks_of(instruction, before)
        for storage, mask in reads.items():
            other[storage][mask] = before[storage][mask]
        after, other_after = copies_of(before), copies_of(other)
        for memories in (after, other_after):
            execute(instruction, memories)
        partly = getattr(instruction, "keep", False) or getattr(instruction, "scatter", None) is not None
        for storage, mask in writes.items():
            assert not np.any((after[storage] != before[storage]) & ~mask), instruction
            # The bytes written depend only on the bytes read, not on their former values.
            assert partly or np.array_equal(after[storage][mask], other_after[storage][mask]), instruction
            written += mask.sum()
        kinds.add(type(instruction))
    assert written > 1000 and kinds == {DmaCopy, Elementwise, MultiplyMoving}


@pytest.mark.parametrize("kind", [kind for kind in CollectiveKind if kind != CollectiveKind.RECEIVE])
def test_a_collective_reads_and_writes_its_blocks(rng, kind):
    common = {"group": Group(0, 1, 3), "count": 37, "dtype": CollectiveType.BF16, "pitch": 128}
    ranks = [Collective(kind=kind, rank=n, src=64 * n, dst=1024 - 64 * n, root=1, **common) for n in range(3)]
    if kind == CollectiveKind.SEND:
        ranks = [replace(ranks[0], root=1), replace(ranks[1], kind=CollectiveKind.RECEIVE, root=0)]
    before = {rank: rng.integers(256, size=2048).astype(np.uint8) for rank in range(len(ranks))}
    other, written = copies_of(before), []
    for rank, one in enumerate(ranks):
        reads, writes = (mask[Storage.HBM][0] for mask in masks_of(one, {Storage.HBM: before[rank][np.newaxis]}))
        other[rank][~reads] = rng.integers(256, size=(~reads).sum())
        written.append(writes)
    after, other_after = copies_of(before), copies_of(other)
    for state in (after, other_after):
        golden_collectives({rank: [one] for rank, one in enumerate(ranks)}, state, 3)
    for rank, writes in enumerate(written):
        assert not np.any((after[rank] != before[rank]) & ~writes)
        assert np.array_equal(after[rank][writes], other_after[rank][writes])
    assert any(map(np.any, written)) == (kind != CollectiveKind.BARRIER)


def test_a_load_reads_its_columns():
    (touch,) = touches_of(isa.LoadStationary(format=BF16, k=5, m=3, address=64), CONFIG)
    assert (touch.writes, touch.storage, touch.partitions, touch.length) == (False, Storage.SBUF, range(5), 6)
    assert touch.starts.tolist() == [64]


def copy(source, target, count=4, step=1, storage=Storage.HBM):
    src = DmaTensor(format=INT32, storage=Storage.HBM, address=source, steps=(1,))
    return DmaCopy(shape=(count,), src=src, dst=DmaTensor(format=INT32, storage=storage, address=target, steps=(step,)))


def elementwise(source, target, **more):
    a, dst = (isa.Access(format=FP32, address=address) for address in (source, target))
    return Elementwise(**{"opcode": isa.Opcode.TENSOR_COPY, "partitions": 8, "shape": (4,), "dst": dst, "a": a, **more})


def event(queue, address, issued, retired, instruction):
    return Execution(queue, address, issued, retired, instruction, isa.queue_name(queue, CONFIG))


def races(*runs):
    events = [event(queue, 128 * n, issued, retired, i) for n, (queue, i, issued, retired) in enumerate(runs)]
    return [(race.first.address // 128, race.second.address // 128) for race in find_races(events, CONFIG)]


@pytest.mark.parametrize("issued, retired, found", [(10, 20, 1), (19, 30, 1), (20, 30, 0), (1, 10, 0), (1, 11, 1)])
def test_only_what_happens_at_once_races(issued, retired, found):
    assert len(races((DMA0, copy(0, 16), 10, 20), (DMA1, copy(16, 512), issued, retired))) == found


def test_partitions_are_told_apart():
    def column(partition, step):
        one = copy(0, 0, step=step, storage=Storage.SBUF)
        return replace(one, dst=replace(one.dst, partition=partition, axis=0))

    assert not races((DMA0, column(0, 2), 0, 9), (DMA1, column(7, -2), 0, 9))
    assert races((DMA0, column(0, 2), 0, 9), (DMA1, column(6, -2), 0, 9))


def test_a_queue_races_with_itself_only_with_overlap():
    first, second = elementwise(0, 64), elementwise(64, 128)
    overlapping = elementwise(64, 128, overlap=True)
    assert not races((VECTOR, first, 0, 9), (VECTOR, second, 5, 15))
    assert races((VECTOR, first, 0, 9), (VECTOR, overlapping, 5, 15)) == [(0, 1)]
    assert not races((VECTOR, first, 0, 9), (VECTOR, elementwise(256, 64, overlap=True), 5, 15))
    assert not races((VECTOR, first, 0, 9), (VECTOR, elementwise(512, 576), 4, 12), (VECTOR, overlapping, 5, 15))
    assert races((VECTOR, first, 0, 9), (VECTOR, isa.Nop(), 4, 4), (VECTOR, overlapping, 5, 15)) == [(0, 2)]
    assert races((VECTOR, first, 0, 9), (SCALAR, elementwise(256, 64), 5, 15))


def test_a_scatter_may_write_any_row():
    scatter = DmaCopy(
        shape=(2, 4),
        src=DmaTensor(format=INT32, storage=Storage.SBUF, address=0, steps=(1, 1), axis=0),
        dst=DmaTensor(format=INT32, storage=Storage.HBM, address=0, steps=(8, 1)),
        scatter=isa.DmaIndex(address=64, limit=10),
    )
    assert races((DMA0, scatter, 0, 9), (DMA1, copy(9 * 32 + 12, 0x1000, count=1), 0, 9))
    assert not races((DMA0, scatter, 0, 9), (DMA1, copy(9 * 32 + 16, 0x1000, count=1), 0, 9))
    assert races((DMA0, scatter, 0, 9), (VECTOR, elementwise(256, 64, shape=(1,)), 0, 9))


def test_a_race_says_who_and_where():
    first, apart = event(DMA0, 0x100, 10, 20, copy(0, 16)), event(VECTOR, 0x200, 12, 14, elementwise(0, 64))
    (race,) = find_races([first, apart, event(DMA1, 0x300, 15, 25, copy(24, 512))], CONFIG)
    assert str(race) == (
        "DMA_COPY (dma0, record 0x100, cycles 10 to 20) writes dst; "
        "DMA_COPY (dma1, record 0x300, cycles 15 to 25) reads src: HBM bytes 24 to 31"
    )


def test_races_of_random_runs_are_those_of_byte_masks(rng):
    shapes = {Storage.HBM: (1, HBM_BYTES), Storage.SBUF: (8, 2048), Storage.PSUM: (8, 2048)}
    memories = {storage: np.zeros(shape) for storage, shape in shapes.items()}
    found = 0
    for _ in range(5):
        runs, masks = [], []
        while len(runs) < 20:
            instruction = random_of_any_engine(rng)
            if getattr(instruction, "gather", None) or getattr(instruction, "scatter", None):
                continue
            issued = int(rng.integers(200))
            runs.append((len(runs), instruction, issued, issued + int(rng.integers(1, 40))))
            masks.append(masks_of(instruction, memories))
        expected = set()
        for a, b in combinations(range(20), 2):
            (reads, writes), (other_reads, other_writes) = masks[a], masks[b]
            pairs = [(writes, other_writes), (writes, other_reads), (reads, other_writes)]
            at_once = runs[a][2] < runs[b][3] and runs[b][2] < runs[a][3]
            if at_once and any(np.any(x[s] & y[s]) for x, y in pairs for s in Storage):
                expected.add((a, b))
        assert {tuple(sorted(pair)) for pair in races(*runs)} == expected
        found += len(expected)
    assert found > 10


def program_of(rng, length):
    chosen = enumerate(chains.word_copies(rng, range(DMA0, DMA2 + 1), length))
    return [(queue, isa.RECORD_BYTES * number, record) for number, (queue, record) in chosen]


def test_a_program_that_waits_for_all_is_in_order(rng):
    for _ in range(5):
        assert find_unordered(program_of(rng, 60), CONFIG) == []


def test_without_a_needed_wait_it_is_not(rng):
    program = program_of(rng, 60)
    outcomes = []
    for place, (queue, address, record) in enumerate(program):
        for number in range(len(record.waits)):
            hasty = replace(record, waits=record.waits[:number] + record.waits[number + 1 :])
            found = find_unordered([*program[:place], (queue, address, hasty), *program[place + 1 :]], CONFIG)
            outcomes.append(bool(found))
            assert all(race.second.address >= address for race in found)
    assert outcomes.count(True) > 10 and outcomes.count(False) > 0  # ordered, if other waits imply the removed one


def ordered(producers, wait, *updates):
    program = []
    for n, queue in enumerate(producers):
        writer = Record(instruction=copy(4 * n, 64 * (n + 1), count=1), updates=updates or (isa.Update(1),))
        program.append((queue, 128 * n, writer))
    reader = Record(instruction=copy(64, 1024, count=1), waits=(wait,))
    return not find_unordered([*program, (DMA2, 1024, reader)], CONFIG)


def test_a_wait_is_certain_of_what_others_cannot_add():
    assert ordered([DMA0], Wait(1, 1))
    assert not ordered([DMA0], Wait(2, 1))
    assert not ordered([DMA0], Wait(1, 0))
    assert not ordered([DMA0, DMA1], Wait(1, 1))
    assert ordered([DMA0, DMA1], Wait(1, 2))
    assert ordered([DMA0, DMA1, DMA1], Wait(1, 3))
    assert not ordered([DMA0, DMA1, DMA1], Wait(1, 2))
    assert not ordered([DMA0], Wait(1, 1), isa.Update(1), isa.Update(1, 1, isa.UpdateOp.SET))


def nop_at(queue, *waits, updates=()):
    return queue, 0x800, Record(instruction=isa.Nop(), waits=tuple(Wait(*wait) for wait in waits), updates=updates)


def test_nops_join(rng):
    """A copy that overwrites the sources of five copies waits for them, by NOPs in its queue or in another queue."""
    queues = TENSOR, VECTOR, SCALAR, DMA0, DMA1
    copies = [Record(instruction=copy(64, 256 * n, count=1), updates=(isa.Update(n),)) for n in range(1, 6)]
    readers = [(queue, 128 * n, copies[n]) for n, queue in enumerate(queues)]
    own = [nop_at(DMA2, (1, 1), (2, 1)), nop_at(DMA2, (3, 1), (4, 1))]
    other = [nop_at(TENSOR, (1, 1), (2, 1)), nop_at(SCALAR, (3, 1), (4, 1))]
    other = [(queue, address, replace(record, updates=(isa.Update(9),))) for queue, address, record in other]
    for nops, last in ((own, (5, 1)), (other, (9, 2))):
        writer = Record(instruction=copy(512, 64, count=1), waits=(Wait(*last), Wait(5, 1)))
        program = [*readers, *nops, (DMA2, 0x900, writer)]
        assert not find_unordered(program, CONFIG)
        for place in (len(readers), len(readers) + 1):
            queue, address, record = program[place]
            for number in range(2):
                hasty = replace(record, waits=record.waits[:number] + record.waits[number + 1 :])
                (race,) = find_unordered([*program[:place], (queue, address, hasty), *program[place + 1 :]], CONFIG)
                assert race.first.queue == queues[2 * (place - len(readers)) + number]


def test_a_nop_says_nothing_of_the_records_before_it():
    reader = Record(instruction=copy(64, 512, count=1))
    writer = Record(instruction=copy(512, 64, count=1), waits=(Wait(1, 1),))
    nop = nop_at(DMA0, updates=(isa.Update(1),))
    assert find_unordered([(DMA0, 0, reader), nop, (DMA1, 0x900, writer)], CONFIG)
    awaited = Record(instruction=copy(64, 512, count=1), updates=(isa.Update(2),))
    nop = nop_at(DMA0, (2, 1), updates=(isa.Update(1),))
    assert not find_unordered([(DMA0, 0, awaited), nop, (DMA1, 0x900, writer)], CONFIG)


def test_lanes_of_the_tensor_queue_complete_apart():
    load = isa.LoadStationary(format=BF16, k=8, m=8, address=0)
    multiply = MultiplyMoving(format=BF16, k=8, m=8, n=8, address=64, stride=2, psum=0)
    multiplies, loads = (Record(instruction=i, updates=(isa.Update(n),)) for n, i in enumerate((multiply, load)))

    def is_ordered(semaphore, address):
        writer = copy(0, address, count=1, storage=Storage.SBUF)
        waits = (Wait(semaphore, 1),)
        program = [(TENSOR, 0, loads), (TENSOR, 128, multiplies), (DMA0, 256, Record(instruction=writer, waits=waits))]
        return not find_unordered(program, CONFIG)

    assert is_ordered(0, 64) and is_ordered(0, 0)  # a MultiplyMoving follows the load that it uses
    assert is_ordered(1, 0) and not is_ordered(1, 64)


def test_overlap_is_judged_in_a_program():
    def program(**more):
        records = elementwise(0, 64), elementwise(64, 128, **more)
        return [(VECTOR, 128 * n, Record(instruction=i)) for n, i in enumerate(records)]

    assert not find_unordered(program(), CONFIG)
    assert find_unordered(program(overlap=True), CONFIG)


def test_a_trace_of_the_golden_core_is_judged(rng):
    program = program_of(rng, 30)
    hbm = np.zeros(HBM_BYTES, np.uint8)
    machine = core.Machine(CONFIG, hbm)
    for queue in (DMA0, DMA1, DMA2):
        first, records = 0x800 * queue, [record for q, _, record in program if q == queue]
        data = b"".join(record.encode(CONFIG) for record in records)
        hbm[first : first + len(data)] = np.frombuffer(data, np.uint8)
        machine.queues[queue].start(first, len(records))
    machine.run()
    assert len(machine.trace) == 30
    events = race_events([(queue, address, n, n + 1) for n, (queue, address) in enumerate(machine.trace)], hbm, CONFIG)
    assert not find_races(events, CONFIG)
    assert find_races([event(e.queue, e.address, 0, 1, e.instruction) for e in events], CONFIG)
    records = (hbm[address : address + isa.RECORD_BYTES].tobytes() for _, address in machine.trace)
    executed = [(*at, Record.decode(data, CONFIG)) for at, data in zip(machine.trace, records, strict=True)]
    assert not find_unordered(executed, CONFIG)
