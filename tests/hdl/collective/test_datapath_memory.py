from functools import partial

import numpy as np
import pytest

from neuroncore_rtl.hdl.collective.loader import CollectiveLoader
from neuroncore_rtl.hdl.collective.ops import LoadOp, StoreOp
from neuroncore_rtl.hdl.collective.storer import Storer
from neuroncore_rtl.hdl.dma.job import BURST_BEATS
from neuroncore_rtl.spec.isa.collective import CollectiveType, element_bytes
from tests.hdl.collective.words import beats_of_bytes
from tests.hdl.memory.axi_memory import serve_reads, serve_writes
from tests.hdl.simulation import WARM_UP, drive, expect, put, simulated, slow
from tests.hdl.streams import Played, play

SEED = 20260612
SIZE = 1 << 14
LATENCY = 64
TRIED = (8, 16)
RATED = [(8, 8), (8, 64), TRIED, (64, 8), (64, 64)]
PAIRS = [*RATED, (16, 32), (32, 8), (64, 32)]
"""Bytes per beat of the link and of HBM; a test that uses one such pair uses `TRIED`."""

FP32, BF16, INT32 = CollectiveType


def operation(elements: int, dtype: CollectiveType, address: int, **flags) -> dict:
    return {"elements": elements, "dtype": dtype, "address": address} | flags


def load(
    link_bytes: int, hbm_bytes: int, ops, *, stall=0.0, hold=0, warm_up=0, size=SIZE, limit=20_000, fails=False,
    **options,
) -> Played:  # fmt: skip
    memory = np.random.default_rng(SEED).bytes(size)
    expected, bursts = [], []
    for op in ops:
        length, start = element_bytes(op["dtype"]) * op["elements"], op["address"] - options.get("base", 0)
        content = bytes(length) if op.get("zero") else memory[start : start + length]
        if op.get("wide") and op["dtype"] == BF16:
            content = (np.frombuffer(content, "<u2").astype("<u4") << 16).tobytes()
        expected += beats_of_bytes(content, link_bytes)
    dut = CollectiveLoader(link_bytes, hbm_bytes)
    reads = partial(serve_reads, axi=dut.axi, memory=memory, stall=stall, seed=SEED, bursts=bursts, **options)
    words = [LoadOp.const(op).as_bits() for op in ops]
    played = play(
        dut, {"ops": words}, {"beats": len(expected)}, stall=stall, hold={"beats": lambda cycle: cycle < hold},
        seed=SEED, others=(reads,), finished="idle", watch=(dut.error,), warm_up=warm_up, limit=limit,
    )  # fmt: skip
    assert played.watched[-1][0] == fails
    assert fails or played.payloads["beats"] == expected
    assert all(address // hbm_bytes % BURST_BEATS + beats <= BURST_BEATS for address, beats in bursts)
    return played


def store(link_bytes: int, hbm_bytes: int, ops, *, bursts=None, stall=0.0, warm_up=0, fails=False, **options) -> Played:
    rng = np.random.default_rng(SEED)
    memory = bytearray(rng.bytes(SIZE))
    expected, beats, bursts = bytearray(memory), [], [] if bursts is None else bursts
    for op in ops:
        content = rng.bytes(element_bytes(op["dtype"]) * op["elements"])
        start = op["address"] - options.get("base", 0)
        expected[start : start + len(content)] = content
        beats += beats_of_bytes(content, link_bytes, rng)
    dut = Storer(link_bytes, hbm_bytes)
    slow = 0 if isinstance(stall, dict) else stall
    writes = partial(serve_writes, axi=dut.axi, memory=memory, bursts=bursts, stall=slow, seed=SEED, **options)
    words = [StoreOp.const(op).as_bits() for op in ops]
    watch = (dut.error, dut.beats.valid & dut.beats.ready, dut.axi.aw.valid | dut.axi.w.valid)
    options = {"stall": stall, "seed": SEED, "finished": "quiet", "warm_up": warm_up}
    played = play(dut, {"ops": words, "beats": beats}, {}, others=(writes,), watch=watch, **options)
    assert played.watched[-1][0] == fails
    assert fails or memory == expected
    assert max(length for *_, length in bursts) <= BURST_BEATS
    return played


@pytest.mark.parametrize("transfer", [load, store])
@pytest.mark.parametrize(("link_bytes", "hbm_bytes"), PAIRS)
def test_transfers_of_every_kind(transfer, link_bytes, hbm_bytes):
    rng = np.random.default_rng(SEED + 100 * link_bytes + hbm_bytes)
    longest, ops = max(link_bytes, hbm_bytes) // 2, []
    for n in rng.permutation(np.arange(1, longest + 1)):
        elements, dtype = int(n) + longest * int(rng.integers(3)), CollectiveType(int(rng.integers(3)))
        flags = {"wide": int(rng.integers(2)), "zero": int(rng.random() < 0.1)}
        address = 64 * int(rng.integers(SIZE // 64 - 8))
        ops.append(operation(elements, dtype, address, **(flags if transfer is load else {})))
    if is_tried := (link_bytes, hbm_bytes) == TRIED:
        lengths = ((252, FP32), (254, INT32), (255, FP32), (504, BF16), (511, BF16))  # with all bits set
        ops += [operation(length, dtype, 1024 * n) for n, (length, dtype) in enumerate(lengths)]
    for stall, latency in ((0.5, 3), (0, 20))[: 1 + is_tried]:
        transfer(link_bytes, hbm_bytes, ops, stall=stall, latency=latency, warm_up=WARM_UP if is_tried else 0)


@pytest.mark.parametrize(("link_bytes", "hbm_bytes"), RATED)
@pytest.mark.parametrize(
    ("transfer", "beats", "wide"),
    [(load, 4, 0), (load, 4, 1), *slow((load, 200, 0)), (store, 4, 0), *slow((store, 200, 0))],
)
def test_transfers_hide_the_latency_of_hbm(transfer, beats, wide, link_bytes, hbm_bytes):
    count, elements = 200 // beats, beats * link_bytes // 4
    dtype, flags = (BF16, {"wide": 1}) if wide else (FP32, {})
    size = element_bytes(dtype) * elements
    step = -(-size // 64) * 64
    ops = [operation(elements, dtype, n * step % (SIZE - step + 64), **flags) for n in range(count)]
    cycles = transfer(link_bytes, hbm_bytes, ops, latency=LATENCY).cycles["beats"]
    assert transfer is store or cycles[0] < LATENCY + 10 + link_bytes // hbm_bytes
    assert cycles[-1] - cycles[0] <= max(beats * count, count * -(-size // hbm_bytes))


@pytest.mark.parametrize("base", [*slow(0x55_5555_4000, 0xAA_AAAA_8000), (1 << 39) - SIZE // 2, (1 << 40) - SIZE])
@pytest.mark.parametrize("transfer", [load, store])
def test_every_bit_of_an_address(transfer, base):
    sizes = ((0, 1000), (4096, 40), (7 << 10, 800), (SIZE - 512, 128))
    transfer(*TRIED, [operation(elements, FP32, base + start) for start, elements in sizes], base=base)


LONG = [1 << bit for bit in range(10, 30)]
"""Powers of two; an operation with slightly more elements than one of them ends early if the unit loses this bit."""

WIDE_BF16 = {"dtype": BF16, "wide": 1}
LOADS = [*((5, {"dtype": dtype}) for dtype in (FP32, BF16)), (5, WIDE_BF16), (255, {"dtype": FP32}), (63, WIDE_BF16)]
STORES = [(5, FP32), (5, BF16), (63, FP32)]
"""Elements of long stores above a power of two, and their format."""

BURST = BURST_BEATS * TRIED[1]


def any_burst(rng) -> int:
    return int(rng.integers((1 << 40) // BURST - 100)) * BURST


def line(number: int) -> int:
    return 0x0102_0408_1020_4081 * (number + 1) % (1 << 8 * TRIED[0])


def widened(half: int) -> int:
    return sum((half >> 16 * n & 0xFFFF) << 32 * n + 16 for n in range(TRIED[0] // 4))


@simulated(
    lambda: CollectiveLoader(*TRIED), each=((elements + low, flags) for elements in LONG for low, flags in LOADS)
)
async def test_long_loads_do_not_end(ctx, dut, case, rng):
    link_bits, lines = 8 * TRIED[0], TRIED[1] // TRIED[0]
    axi, (elements, flags), address = dut.axi, case, any_burst(rng)
    drive(ctx, dut.ops, payload=operation(elements, address=address, **flags), valid=1)
    drive(ctx, dut, **{"axi.ar.ready": 1, "beats.ready": 1})
    owed, words, beats = 0, 0, 0
    for _ in range(60):
        ctx.set(axi.r.valid, owed > 0)
        ctx.set(axi.r.payload.data, sum(line(lines * words + n) << link_bits * n for n in range(lines)))
        *_, requested, burst, arrived, beat, ends = await ctx.tick().sample(
            axi.ar.valid, axi.ar.payload, dut.beats.valid, dut.beats.payload, dut.ops.ready
        )
        assert not ends and (not requested or (burst.addr, burst.len) == (address, BURST_BEATS - 1))
        if arrived and flags.get("wide"):
            assert beat == widened(line(beats // 2) >> link_bits // 2 * (beats % 2) & (1 << link_bits // 2) - 1)
        elif arrived:
            assert beat == line(beats)
        address += BURST * requested
        words += owed > 0
        owed += BURST_BEATS * requested - (owed > 0)
        beats += arrived
    assert beats > 50 and not ctx.get(dut.idle)


@simulated(lambda: Storer(*TRIED), each=((elements + low, dtype) for elements in LONG for low, dtype in STORES))
async def test_long_stores_do_not_end(ctx, dut, case, rng):
    axi, (elements, dtype), address = dut.axi, case, any_burst(rng)
    drive(ctx, dut.ops, payload=operation(elements, dtype, address), valid=1)
    drive(ctx, dut.beats, valid=1)
    drive(ctx, axi, **{"aw.ready": 1, "w.ready": 1})
    written = answers = 0
    for _ in range(100):
        ctx.set(axi.b.valid, answers > 0)
        *_, requested, burst, word, strobes, last = await ctx.tick().sample(
            axi.aw.valid, axi.aw.payload, axi.w.valid, axi.w.payload.strb, axi.w.payload.last
        )
        assert not requested or (burst.addr, burst.len) == (address, BURST_BEATS - 1)
        assert not word or strobes == (1 << TRIED[1]) - 1
        address += BURST * requested
        ctx.set(dut.ops.valid, 0)
        written += word
        answers += (word and last) - (answers > 0)
    assert written >= 2 * BURST_BEATS and not ctx.get(dut.quiet)


def one_word(number: int, **flags) -> dict:
    dtype = CollectiveType(number % 3)
    elements = 1 + number * 7 % (TRIED[1] // element_bytes(dtype))
    return operation(elements, dtype, 64 * (number * 5 % (SIZE // 64)), **flags)


@pytest.mark.parametrize("words", [1, 9, 125])
def test_blocked_loads_are_kept(words):
    flags = ({"wide": 1}, {}, {"zero": 1}, {})
    if words == 1:
        ops = [one_word(n, **flags[n % 5 % 4]) for n in range(3 * CollectiveLoader.OPERATIONS)]
    else:
        ops = [operation(4 * words, FP32, 2048 * n % SIZE) for n in range(3 if words > 9 else 10)]
    load(*TRIED, ops, hold=400)


@pytest.mark.parametrize(("zeros", "lengths"), [(0, [9] * 30), (CollectiveLoader.OPERATIONS, [40, 1])])
def test_the_buffers_of_words_and_operations_are_filled(zeros, lengths):
    dut, bursts = CollectiveLoader(*TRIED), []
    ops = [operation(1, FP32, 0, zero=1)] * zeros
    ops += [operation(length * TRIED[1] // 4, FP32, 1024 * (n % 8)) for n, length in enumerate(lengths)]
    reads = partial(serve_reads, axi=dut.axi, memory=bytes(SIZE), latency=10, bursts=bursts)
    words = [LoadOp.const(op).as_bits() for op in ops]
    play(dut, {"ops": words}, {"beats": 0}, hold={"beats": lambda cycle: True}, others=(reads,), cycles=400)
    assert sum(beats for _, beats in bursts) == (40 if zeros else dut.words)


@pytest.mark.parametrize(("unit", "rests"), [(CollectiveLoader, "idle"), (Storer, "quiet")])
@simulated(lambda unit: unit(*TRIED), each=range(1, CollectiveLoader.OPERATIONS + 1))
async def test_a_unit_with_operations_is_not_at_rest(ctx, dut, count, unit, rests):
    expect(ctx, dut, **{rests: 1})
    ctx.set(dut.axi.ar.ready, 1)
    for number in range(min(count, unit.OPERATIONS)):
        await put(ctx, dut.ops, operation(4, FP32, 64 * number))
    for _ in range(4):
        await ctx.tick()
        expect(ctx, dut, **{rests: 0} | ({} if unit is Storer else {"beats.valid": 0}))


END = operation(5, FP32, 0)


@pytest.mark.parametrize(
    ("ops", "options"),
    [
        *(([operation(4 * ((1 << bit) + 5) - 1, FP32, 64), END], {"size": 1 << 16}) for bit in (6, 8, 10)),
        *(([operation(*count_and_type, 0, zero=1), END], {}) for count_and_type in ((5125, FP32), (4099, INT32))),
        ([operation(8192 + 1030, BF16, 0, zero=1), END], {}),
        *slow(
            ([operation(4 * 3072 - 1, FP32, 64), END], {"size": 1 << 16}),
            ([operation(4 * ((1 << 15) + 5) - 1, FP32, 64)], {"size": 1 << 20, "limit": 1 << 17}),
            *(([operation((9 << 16) - few, FP32, 0, zero=1), END], {"limit": 1 << 20}) for few in (18, 20)),
        ),
    ],
)
def test_long_loads_end(ops, options):
    load(*TRIED, ops, **options)


def test_zeros_are_not_read():
    load(*TRIED, [operation(100, FP32, SIZE - 64, zero=1), operation(16, FP32, 0)], errors=set(range(64, SIZE, 16)))


def test_blocked_bursts_are_kept():
    store(*TRIED, [one_word(n) for n in range(60)], hold=200)  # words are accepted; bursts of one exceed the buffer
    store(*TRIED, [operation(400, FP32, 2048 * n) for n in range(3)], hold=250, held=("aw", "w"))


@pytest.mark.parametrize("stall", [0.6, 0.5, 0.3, 0.1])
def test_as_many_blocked_bursts_are_kept_as_fit(stall):
    ops = [one_word(n) for n in range(Storer.WORDS + 8)] + [operation(100, FP32, 4096)]
    played = store(*TRIED, ops, stall={"ops": 0, "beats": stall}, hold=250, held=("aw", "w"))
    kept = sum(-(-element_bytes(op["dtype"]) * op["elements"] // TRIED[0]) for op in ops[: Storer.WORDS])
    assert sum(cycle < 250 for cycle in played.cycles["beats"]) == kept


@simulated(lambda: Storer(*TRIED), each=range(1, Storer.OPERATIONS))
async def test_a_reset_discards_all_operations(ctx, dut, count):
    drive(ctx, dut.axi.aw, ready=0)
    await ctx.tick().repeat(4)
    assert not ctx.get(dut.axi.aw.valid | dut.axi.w.valid)
    drive(ctx, dut.beats, valid=1)
    for number in range(count):
        await put(ctx, dut.ops, operation(1, FP32, 64 * number))
    await ctx.tick().until(dut.axi.aw.valid)


@pytest.mark.parametrize("response", [1, 2, 3])
@simulated(lambda: Storer(*TRIED), each=range(2))
async def test_an_error_response_is_reported_when_it_is_valid(ctx, dut, _, response):
    drive(ctx, dut.axi.b, payload={"resp": response}, valid=0)
    await ctx.tick().repeat(3)
    assert not ctx.get(dut.error)
    drive(ctx, dut.axi.b, valid=1)
    await ctx.tick()
    assert ctx.get(dut.error)


def test_the_maximum_number_of_bursts_is_outstanding():
    bursts = []
    store(*TRIED, [operation(2, FP32, 64 * n) for n in range(150)], latency=400, bursts=bursts)
    assert sum(cycle < 400 for cycle, *_ in bursts) == Storer.BURSTS


def test_no_address_is_issued_before_the_last_word_of_its_burst():
    arrived, beats = 0, BURST // TRIED[0]
    for _, beat, begins in store(*TRIED, [operation(BURST // 4, FP32, 0)], stall=0.8).watched:
        assert not begins or arrived == beats
        arrived += beat
    assert arrived == beats


@pytest.mark.parametrize(("transfer", "bad"), [(load, 48), (store, 0)])
def test_an_error_response_is_reported(transfer, bad):
    ops = [operation(64, FP32, 0)]
    transfer(*TRIED, ops, errors={bad}, fails=True)
    transfer(*TRIED, ops, errors={1 << 13})
