from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from neuroncore_rtl.golden.memory import dma as golden
from neuroncore_rtl.hdl.dma.answers import Answers
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import DMA_DIMENSIONS, HBM_ADDRESS_BITS, DmaCopy, DmaIndex, Storage
from tests.hdl.dma.copies import CONFIG, legal_copy, random_memories, run_and_compare, tensor
from tests.hdl.dma.machine import HBM_BYTES, run_copies
from tests.hdl.simulation import slow
from tests.oracles.copies import beyond


def compare(config, seed, number, *, base=0, **options):
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    memories = random_memories(rng, config)
    copies = [legal_copy(rng, config, memories, base) for _ in range(number)]
    run_and_compare(config, copies, memories, base, errors=None, seed=seed, **options)


@pytest.mark.parametrize(
    ("changed", "seed", "number", "options"),
    [
        ({}, 11, 300, {"latency": 50}),
        ({}, 12, 300, {"stall": 60, "latency": 10}),
        ({}, 13, 300, {"stall": 180, "latency": 2}),
        ({}, 15, 200, {"base": (1 << HBM_ADDRESS_BITS) - HBM_BYTES}),
        *slow(
            ({"hbm_bytes": 64}, 14, 300, {"stall": 40}),
            ({"hbm_bytes": 8, "port_latency": 1}, 17, 200, {"stall": 40}),
            ({"hbm_bytes": 8, "cast_lanes": 1, "cast_latency": 3}, 7, 200, {"stall": 20}),
            ({"cast_lanes": 2, "cast_latency": 2}, 7, 200, {"stall": 20}),
        ),
    ],
    ids=str,
)
def test_copies_are_those_of_the_specification(changed, seed, number, options):
    compare(replace(CONFIG, **changed), seed, number, **options)


def test_no_simulator_finds_unknown_bits(sim, seed=16):
    compare(CONFIG, seed, 40, sim=sim, stall=20)


@pytest.mark.parametrize("stall", [0, 100])
def test_copies_see_the_results_of_earlier_ones(stall):
    rng = np.random.default_rng(17)
    memories = random_memories(rng, CONFIG)
    program = []
    for storages in product(Storage, repeat=3):
        begin, middle, end = (tensor(s, 0x1000 * n + 3 * n) for n, s in enumerate(storages))
        program += [DmaCopy(shape=(100,), src=a, dst=b) for a, b in ((begin, middle), (middle, end), (end, begin))]
    numbers = rng.integers(0, 8, 8).astype("<u4")
    memories[Storage.HBM][0, 0x4000:0x4020] = numbers.view(np.uint8)
    words_in, words_out = tensor(Storage.HBM, 0x4000, fmt=INT32), tensor(Storage.SBUF, 0x80, fmt=INT32, axis=0)
    rows, inside = tensor(Storage.HBM, 0, (9, 1), INT32), tensor(Storage.SBUF, 0x200, (1, 1), INT32, axis=0)
    program += [
        DmaCopy(shape=(8,), src=words_in, dst=words_out),
        DmaCopy(shape=(8, 9), src=rows, dst=inside, gather=DmaIndex(address=0x80, limit=8)),
        DmaCopy(shape=(8,), src=replace(words_in, address=0), dst=words_out),
    ]
    run_and_compare(CONFIG, program, memories, stall=stall)


@pytest.mark.parametrize(("stall", "latency"), [(0, 50), (100, 2)])
def test_rows_beyond_the_limit_are_skipped(stall, latency):
    rng = np.random.default_rng(18)
    memories = random_memories(rng, CONFIG)
    table = tensor(Storage.HBM, 0x1004, (24, 8, 1), INT32)
    tile = tensor(Storage.SBUF, 0x2010, (1, 10, 1), INT32, axis=0)
    program = []
    for number, rows in enumerate(range(1, 9)):
        for share in (0, 0.3, 1, 1):
            address = 4 * len(program)
            numbers = beyond(rng, 10, rng.integers(0, 10, 8), share).view(np.uint8).reshape(8, 4)
            memories[Storage.SBUF][:, address : address + 4] = numbers
            index = DmaIndex(address=address, partition=8 - rows, limit=10, skip=True)
            program += [
                DmaCopy(shape=(rows, 3, 8 - number), src=table, dst=tile, gather=index),
                DmaCopy(shape=(400,), src=tensor(Storage.SBUF, 0x3000), dst=tensor(Storage.HBM, 0x6003 + 16 * number)),
                DmaCopy(shape=(rows, 3, 8 - number), src=tile, dst=table, scatter=index),
                DmaCopy(shape=(rows, 3, 8 - number), src=tile, dst=replace(table, address=0x5000), scatter=index),
                DmaCopy(shape=(3,), src=tensor(Storage.SBUF, 0x4000), dst=tensor(Storage.HBM, 0x8003 + 16 * number)),
            ]
    run_and_compare(CONFIG, program, memories, stall=stall, latency=latency)


def test_every_bit_of_a_row_number_its_limit_and_its_step():
    rng = np.random.default_rng(20)
    memories, base = random_memories(rng, CONFIG), 1 << HBM_ADDRESS_BITS - 1
    tile, program = tensor(Storage.SBUF, 0x2000, (1, 1), INT32, axis=0), []

    def gather(numbers, limit, step, row):
        address = 4 * len(program)
        memories[Storage.SBUF][:, address : address + 4] = np.array(numbers, "<u4").view(np.uint8).reshape(8, 4)
        table = tensor(Storage.HBM, base + row - 4 * step * (numbers[0] if step else 0), (step, 1), INT32)
        dst = replace(tile, address=0x2000 + 12 * len(program))
        index = DmaIndex(address=address, limit=limit, skip=True)
        program.append(DmaCopy(shape=(8, 3), src=table, dst=dst, gather=index))

    for bit in range(32):
        limit = 1 << bit | int(rng.integers(1 << bit)) | (int(rng.integers(1 << 32)) if bit % 2 else 0)
        flipped = [limit - 1 ^ 1 << int(other) for other in (31, *rng.integers(0, 32, 5))]
        gather([limit, limit - 1, *flipped], limit, 0, 4 * bit)
    for bit in range(31):
        for sign in (1, -1):
            step = sign * (1 << bit | int(rng.integers(1 << bit)))
            number = 1 + int(rng.integers(1 << min(31, 36 - bit)))
            gather([number] * 8, number + 1, step, 4 * int(rng.integers(HBM_BYTES // 8)))
    run_and_compare(CONFIG, program, memories, base=base)


def test_every_bit_of_a_count():
    # Up to 11 bits of each dimension. The partition has no effect in HBM.
    memories = random_memories(np.random.default_rng(22), CONFIG)
    program = []
    for d, last in product(range(DMA_DIMENSIONS), (0x555, 0x2AA)):
        shape = tuple(1 + last * (place == d) for place in range(DMA_DIMENSIONS))
        in_hbm = replace(tensor(Storage.HBM, 0x5000 * d, (3,) * DMA_DIMENSIONS), partition=last)
        on_chip = tensor(Storage.SBUF, 0x2000 * d, (2,) * DMA_DIMENSIONS)
        src, dst = (in_hbm, on_chip) if last & 1 else (on_chip, in_hbm)
        program.append(DmaCopy(shape=shape, src=src, dst=dst))
    run_and_compare(CONFIG, program, memories)


def test_at_most_as_many_copies_await_responses_as_are_counted(latency=1500):
    memories = random_memories(np.random.default_rng(21), CONFIG)
    copies = [DmaCopy(shape=(1,), src=tensor(Storage.SBUF, n), dst=tensor(Storage.HBM, 64 * n)) for n in range(30)]
    outcome = run_and_compare(CONFIG, copies, memories, latency=latency)
    assert outcome.retired[-1] - outcome.taken[0] > len(copies) // Answers.COPIES * latency


def test_a_skipped_row_costs_a_cycle():
    memories = random_memories(np.random.default_rng(19), CONFIG)
    memories[Storage.SBUF][:, :4] = np.arange(8, dtype="<u4")[:, np.newaxis].view(np.uint8)
    table, tile = tensor(Storage.HBM, 0, (400, 1)), tensor(Storage.SBUF, 0x200, (1, 1), axis=0)
    cycles = []
    for limit in (8, 1, 0):
        copy = DmaCopy(shape=(8, 400), src=table, dst=tile, gather=DmaIndex(address=0, limit=limit, skip=True))
        outcome = run_copies(CONFIG, [copy] * 3, memories)
        cycles.append(outcome.retired[-1] - outcome.retired[0])
        assert outcome.counters["read_bytes"] == outcome.counters["write_bytes"] == 3 * limit * 400
    assert cycles[0] - cycles[1] > 2 * 7 * (400 // CONFIG.hbm_bytes - 2) and cycles[2] <= 60


@pytest.mark.parametrize("port_latency", [0, *slow(1)])
def test_a_copy_to_the_chip_retires_when_its_last_line_is_written(port_latency):
    config = replace(CONFIG, port_latency=port_latency)
    memories = random_memories(np.random.default_rng(3), config)
    places = [(Storage.HBM, Storage.SBUF), (Storage.HBM, Storage.PSUM), (Storage.SBUF, Storage.HBM)]
    copies = [DmaCopy(shape=(64,), src=tensor(src), dst=tensor(dst, 1 << 12)) for src, dst in places]
    at_once, late = (
        np.array([run_copies(config, [copy], memories, unwritten=cycles).retired[0] for copy in copies])
        for cycles in (0, 30)
    )
    assert list(late - at_once) == [30, 30, 0]


def test_a_wrong_result_is_detected(monkeypatch):
    # Golden drops the lowest bit of every cast element.
    store = golden.store_words
    monkeypatch.setattr(golden, "store_words", lambda *arguments: store(*arguments) >> 1 << 1)
    with pytest.raises(AssertionError, match="memories differ"):
        compare(CONFIG, 11, 100)
