from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import DMA_DIMENSIONS, HBM_ADDRESS_BITS, DmaCopy, DmaIndex, Storage
from tests.hdl.dma.copies import CONFIG, execute, legal_copy, random_memories, tensor
from tests.hdl.dma.machine import HBM_BYTES, run_copies
from tests.hdl.simulation import slow


def run_and_compare(config, copies, memories, base=0, *, may_fail=False, **options):
    """Run copies on the engine, and by golden on `memories`; compare memories, retirement and errors."""
    outcome = run_copies(config, copies, memories, base=base, **options)
    errors = execute(copies, memories, base)
    assert outcome.errors == errors and (may_fail or not errors)
    assert len(outcome.retired) == len(copies) - len(errors)
    differing = [storage for storage in Storage if not np.array_equal(outcome.memories[storage], memories[storage])]
    assert not differing, f"memories differ: {differing}"


@pytest.mark.parametrize(
    ("changed", "seed", "number", "options"),
    [
        ({}, 11, 300, {"latency": 50}),
        ({}, 12, 300, {"stall": 60, "latency": 10}),
        ({}, 13, 300, {"stall": 180, "latency": 2}),
        ({}, 15, 200, {"base": (1 << HBM_ADDRESS_BITS) - HBM_BYTES}),
        ({}, 16, 25, {"stall": 20, "sim": "icarus"}),  # finds unknown bits
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
    config, rng = replace(CONFIG, **changed), np.random.default_rng(seed)
    memories, base = random_memories(rng, config), options.get("base", 0)
    copies = [legal_copy(rng, config, memories, base) for _ in range(number)]
    run_and_compare(config, copies, memories, may_fail=True, seed=seed, **options)


@pytest.mark.parametrize("stall", [0, 100])
def test_copies_see_the_results_of_earlier_ones(stall):
    rng = np.random.default_rng(17)
    memories = random_memories(rng, CONFIG)
    program = []
    for storages in product(Storage, repeat=3):
        begin, middle, end = (tensor(s, 0x1000 * n + 3 * n) for n, s in enumerate(storages))
        program += [DmaCopy(shape=(100,), src=a, dst=b) for a, b in ((begin, middle), (middle, end), (end, begin))]
    memories[Storage.HBM][0, 0x4000:0x4020] = rng.integers(0, 8, 8).astype("<u4").view(np.uint8)
    words_in, words_out = tensor(Storage.HBM, 0x4000, fmt=INT32), tensor(Storage.SBUF, 0x80, fmt=INT32, axis=0)
    rows, inside = tensor(Storage.HBM, 0, (9, 1), INT32), tensor(Storage.SBUF, 0x200, (1, 1), INT32, axis=0)
    program += [
        DmaCopy(shape=(8,), src=words_in, dst=words_out),
        DmaCopy(shape=(8, 9), src=rows, dst=inside, gather=DmaIndex(address=0x80, limit=8)),
        DmaCopy(shape=(8,), src=replace(words_in, address=0), dst=words_out),
    ]
    run_and_compare(CONFIG, program, memories, stall=stall)


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


@pytest.mark.parametrize("port_latency", [0, *slow(1)])
def test_a_copy_to_the_chip_retires_when_its_last_line_is_written(port_latency):
    config = replace(CONFIG, port_latency=port_latency)
    memories = random_memories(np.random.default_rng(3), config)
    places = [(Storage.HBM, Storage.SBUF), (Storage.HBM, Storage.PSUM), (Storage.SBUF, Storage.HBM)]
    copies = [DmaCopy(shape=(64,), src=tensor(src), dst=tensor(dst, 1 << 12)) for src, dst in places]
    late = [
        np.subtract(*(run_copies(config, [copy], memories, unwritten=cycles).retired[0] for cycles in (30, 0)))
        for copy in copies
    ]
    assert late == [30, 30, 0]
