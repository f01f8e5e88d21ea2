import random
import struct
from functools import partial
from itertools import product

import pytest
from amaranth import ResetInserter, Signal

from neuroncore_rtl.hdl.memory.axi import MAX_BEATS, PAGE_BYTES
from neuroncore_rtl.hdl.queue.boot import Boot
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import RECORD_BYTES
from neuroncore_rtl.spec.memory_map import IMAGE_MAGIC, LOCAL_BYTES
from tests.hdl.memory.axi_memory import serve_reads
from tests.hdl.simulation import WARM_UP, drive, expect, pulse, simulate, slow

BASE = 0x1280
"""Address of the image, not at the start of a page."""


def header(config: Config, program_bytes: int, program: int) -> list[int]:
    return [IMAGE_MAGIC, program_bytes, program, config.rows, config.columns, config.dma_engines, config.cores, 0]


def boot(
    config: Config, words: list[int], program: bytes, *, place: int = 0x80, start: int = BASE, far: int = 0,
    warm_up: int = 0, **memory,
):  # fmt: skip
    content = bytearray(random.Random(2).randbytes(BASE + place + len(program) + 256))
    content[BASE : BASE + 32] = struct.pack("<8I", *words)
    content[BASE + place : BASE + place + len(program)] = program
    dut = Boot(config)

    async def bench(ctx):
        loaded, ends = {}, []
        await ctx.tick().repeat(3)
        drive(ctx, dut, address=far + start)
        await pulse(ctx, dut.start)
        drive(ctx, dut, address=0)
        signals = (dut.load.valid, dut.load.payload, dut.done, dut.error)
        for cycle in range(4 * len(program) + 1000):
            *_, valid, word, done, error = await ctx.tick().sample(*signals)
            if valid and not error.valid:
                assert word.number not in loaded and not done
                loaded[word.number] = word.data
            if done or error.valid or ends:
                ends.append((cycle, (done, error.valid, error.detail)))
                ctx.set(dut.start, len(ends) % 2)
                if len(ends) == 100:
                    (cycles, state), *late = ends
                    assert all(later == state for _, later in late)
                    return loaded, state, cycles
        raise AssertionError("boot does not end")

    reads = partial(serve_reads, axi=dut.axi, memory=content, base=far, **memory)
    return simulate(dut, bench, background=[reads], warm_up=warm_up)


def bursts_of(address: int, size: int, count: int) -> list[tuple[int, int]]:
    beats, bursts = -(-count // size), []
    while beats:
        bursts.append((address, min(beats, MAX_BEATS, (PAGE_BYTES - address % PAGE_BYTES) // size)))
        address, beats = address + bursts[-1][1] * size, beats - bursts[-1][1]
    return bursts


CONFIG = Config(rows=4, columns=6, dma_engines=3, hbm_bytes=16, cores=24)


@pytest.mark.parametrize(
    ("size", "program_bytes", "warm_up"),
    [
        *product((8, 16, 64), (0, 4, 60, 64, 68, 5000), (0,)),
        *((16, 16 * n, 0) for n in (1, 2, 15, 16, 33, 63, 64, 65, 66, 80, 127, 128, 129, 130, 190, 256, 260, 512)),
        (16, 300, WARM_UP),
    ],
)
def test_program_is_copied_in_bursts_of_the_maximum_length(size, program_bytes, warm_up):
    config = CONFIG.with_overrides(hbm_bytes=size)
    program = random.Random(program_bytes).randbytes(program_bytes)
    start = BASE + RECORD_BYTES - 1  # the lowest bits are ignored
    far = random.Random(size + program_bytes).randrange(1 << 39) & -4096
    options = {"far": far, "warm_up": warm_up, "latency": 12, "stall": 0.3 if program_bytes < 1000 else 0}
    place, seen = (5 * (program_bytes // size) + 3) * RECORD_BYTES % 8192, []
    words = header(config, program_bytes, place)
    loaded, state, _ = boot(config, words, program, place=place, start=start, bursts=seen, **options)
    assert state == (1, 0, 0)
    assert seen == bursts_of(far + BASE, size, 32) + bursts_of(far + BASE + place, size, program_bytes)
    assert loaded == dict(enumerate(struct.unpack(f"<{program_bytes // 4}I", program)))


def test_the_first_wrong_word_of_a_header_is_named_and_nothing_is_loaded():
    right = header(CONFIG, 64, 0x80)
    legal = {1: LOCAL_BYTES - 4, 2: -RECORD_BYTES}
    bits = [(place, bit) for place, bit in product(range(8), range(32)) if not legal.get(place, 0) >> bit & 1]
    wrong = [(1, 2), (1, LOCAL_BYTES + 4), (2, 64), (4, 4 | 1 << 31), (6, 1)]
    wrong += [(place, right[place] ^ 1 << bit) for place, bit in bits]
    images = [[*right[:place], word, *right[place + 1 :]] for place, word in wrong]
    for image, (place, _) in zip(images, wrong, strict=True):
        image[7] |= place != 7  # nothing is loaded even if another word is taken for right
    memory = b"".join(struct.pack("<8I", *words).ljust(RECORD_BYTES, b"\0") for words in images)
    dut, reset = Boot(CONFIG), Signal()

    async def bench(ctx):
        for number, (place, word) in enumerate(wrong):
            await pulse(ctx, reset)
            drive(ctx, dut, address=RECORD_BYTES * number)
            await pulse(ctx, dut.start)
            for _ in range(30):
                await ctx.tick()
                assert not ctx.get(dut.done) and not ctx.get(dut.load.valid & ~dut.error.valid)
            expect(ctx, dut.error, (place, hex(word)), valid=1, detail=place)
        return len(wrong)

    reads = partial(serve_reads, axi=dut.axi, memory=memory)
    assert simulate(ResetInserter(reset)(dut), bench, background=[reads]) > 200


@pytest.mark.parametrize(
    ("errors", "program", "loaded"),
    [({BASE}, 1, 0), ({BASE + 16}, 1, 0), *(({BASE + 0x80 + 32: response}, 0x80, 8) for response in (1, 2, 3))],
)
def test_an_error_response_counts_as_an_error_of_the_first_word(errors, program, loaded):
    words = header(CONFIG, 64, program)
    assert boot(CONFIG, words, bytes(64), errors=errors)[:2] == (dict.fromkeys(range(loaded), 0), (0, 1, 0))


@pytest.mark.parametrize(
    ("size", "program_bytes"),
    [*((16, count) for count in (64, 68, 2048, 8196)), (8, 4096), (64, 4096), *slow((16, LOCAL_BYTES))],
)
def test_a_boot_takes_a_cycle_per_word_and_twice_the_latency(size, program_bytes):
    config = CONFIG.with_overrides(hbm_bytes=size)
    _, _, least = boot(config, header(config, 4, 0x80), bytes(4), latency=20)
    assert least < 2 * 20 + 30
    for latency in (20, 23):
        loaded, _, cycles = boot(config, header(config, program_bytes, 0x80), bytes(program_bytes), latency=latency)
        assert len(loaded) == program_bytes // 4
        assert cycles - least == program_bytes // 4 - 1 + 2 * (latency - 20)
