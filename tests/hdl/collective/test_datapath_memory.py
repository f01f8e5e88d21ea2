"""Loader and Storer: every width of link and HBM, every tail, stalls, rates behind HBM's latency, errors."""

from functools import partial

import numpy as np
import pytest

from neuroncore_rtl.hdl.collective.loader import Loader
from neuroncore_rtl.hdl.collective.ops import LoadOp, StoreOp
from neuroncore_rtl.hdl.collective.storer import Storer
from neuroncore_rtl.hdl.dma.job import BURST_BEATS
from neuroncore_rtl.spec.isa.collective import CollectiveType
from tests.hdl.collective.streams import SIZES, beats_of_bytes, play, serve_writes
from tests.hdl.memory.axi_memory import serve_reads

SEED = 20260612
SIZE = 1 << 14
LATENCY = 64
WIDTHS = (8, 16, 32, 64)
PAIRS = [(link, hbm) for link in WIDTHS for hbm in WIDTHS]
RATED = [(8, 8), (8, 64), (16, 16), (16, 32), (32, 16), (64, 8), (64, 32), (64, 64)]
"""Bytes of a link and of HBM."""

FP32, BF16, INT32 = CollectiveType


def residues(rng, link_bytes: int, hbm_bytes: int) -> list[int]:
    """Return numbers of elements that end a beat and a word at every place, in random order."""
    most = max(link_bytes, hbm_bytes) // 2
    return [int(n) + most * int(rng.integers(0, 3)) for n in rng.permutation(np.arange(1, most + 1))]


def load(link_bytes: int, hbm_bytes: int, ops, *, stall=0.0, latency=1, hold=0, errors=(), seed=SEED):
    """Load from a memory of random bytes; return what passed, what should have, and whether an error was seen."""
    memory = np.random.default_rng(seed).bytes(SIZE)
    expected = []
    for op in ops:
        size, wide = SIZES[op["dtype"]], op["wide"] and op["dtype"] == BF16
        content = memory[op["address"] : op["address"] + size * op["elements"]]
        if op["zero"]:
            content = bytes(size * op["elements"])
        if wide:
            content = (np.frombuffer(content, "<u2").astype("<u4") << 16).tobytes()
        beats = beats_of_bytes(content, link_bytes)
        expected += [beat | op["to_send"] << 8 * link_bytes for beat in beats]
    dut = Loader(link_bytes, hbm_bytes)
    reads = partial(serve_reads, axi=dut.axi, memory=memory, latency=latency, stall=stall, errors=errors, seed=seed)
    words = [LoadOp.const(op).as_bits() for op in ops]
    played = play(
        dut, {"ops": words}, {"beats": len(expected)},
        stall=stall, hold={"beats": hold}, seed=seed, others=(reads,), finished="idle", watch=(dut.error,),
    )  # fmt: skip
    return played, expected, bool(played.watched[-1][0])


def load_op(elements: int, dtype: CollectiveType, address: int, *, wide=0, zero=0, to_send=0) -> dict:
    """Return the fields of a `LoadOp`."""
    return {
        "to_send": to_send, "zero": zero, "wide": wide, "dtype": dtype, "elements": elements, "address": address,
    }  # fmt: skip


@pytest.mark.parametrize(("link_bytes", "hbm_bytes"), PAIRS)
def test_loads_of_every_kind(link_bytes, hbm_bytes):
    rng = np.random.default_rng(SEED + 100 * link_bytes + hbm_bytes)
    ops = [
        load_op(
            elements, CollectiveType(int(rng.integers(3))), 64 * int(rng.integers(SIZE // 64 - 8)),
            wide=int(rng.integers(2)), zero=int(rng.random() < 0.1), to_send=int(rng.integers(2)),
        )
        for elements in residues(rng, link_bytes, hbm_bytes)
    ]  # fmt: skip
    for stall, latency in ((0, 20), (0.5, 3)):
        played, expected, failed = load(link_bytes, hbm_bytes, ops, stall=stall, latency=latency)
        assert played.payloads["beats"] == expected
        assert not failed
    print(f"{len(ops)} operations, {len(expected)} beats, twice")


@pytest.mark.parametrize(("link_bytes", "hbm_bytes"), RATED)
@pytest.mark.parametrize(("dtype", "wide", "beats"), [(FP32, 0, 4), (BF16, 1, 4), (FP32, 0, 200)])
def test_loads_hide_the_latency_of_hbm(link_bytes, hbm_bytes, dtype, wide, beats):
    """A beat a cycle, once the first has come, if HBM is wide enough; else as many bytes as HBM has."""
    count = 200 // beats
    elements = beats * link_bytes // 4
    step = -(-SIZES[dtype] * elements // 64) * 64
    ops = [load_op(elements, dtype, n * step % (SIZE - step + 64), wide=wide) for n in range(count)]
    played, expected, _ = load(link_bytes, hbm_bytes, ops, latency=LATENCY)
    assert played.payloads["beats"] == expected
    cycles = played.cycles["beats"]
    assert cycles[0] < LATENCY + 10 + link_bytes // hbm_bytes
    words = count * -(-SIZES[dtype] * elements // hbm_bytes)
    assert cycles[-1] - cycles[0] <= max(len(expected), words)


@pytest.mark.parametrize("elements", [2, 500])
def test_loads_that_nobody_takes_are_kept(elements):
    """More than there is room for, in words or in operations."""
    ops = [load_op(elements, FP32, 2048 * (n % 7)) for n in range(max(3, 100 // elements))]
    played, expected, _ = load(8, 16, ops, hold=400)
    assert played.payloads["beats"] == expected


def test_zeros_are_not_read():
    ops = [load_op(100, FP32, SIZE - 64, zero=1), load_op(16, FP32, 0)]
    played, expected, failed = load(16, 16, ops, errors=set(range(64, SIZE, 16)))
    assert played.payloads["beats"] == expected
    assert not failed


def test_a_read_error_is_seen():
    assert load(16, 16, [load_op(16, FP32, 0)], errors={48})[2]


def test_too_little_room_is_noticed(monkeypatch):
    monkeypatch.setattr(Loader, "LATENCY_BEATS", LATENCY // 2)
    with pytest.raises(AssertionError):
        test_loads_hide_the_latency_of_hbm(16, 16, FP32, 0, 200)


def store(link_bytes: int, hbm_bytes: int, ops, *, stall=0.0, latency=1, hold=0, errors=(), record=None, seed=SEED):
    """Store random beats; return what passed, the memory, what it should be, and whether an error was seen."""
    rng = np.random.default_rng(seed)
    memory = bytearray(rng.bytes(SIZE))
    expected, beats = bytearray(memory), []
    for op in ops:
        content = rng.bytes(SIZES[op["dtype"]] * op["elements"])
        expected[op["address"] : op["address"] + len(content)] = content
        beats += beats_of_bytes(content, link_bytes, rng)
    dut = Storer(link_bytes, hbm_bytes)
    writes = partial(
        serve_writes, axi=dut.axi, memory=memory,
        latency=latency, stall=stall, hold=hold, errors=errors, seed=seed, record=record,
    )  # fmt: skip
    words = [StoreOp.const(op).as_bits() for op in ops]
    played = play(
        dut, {"ops": words, "beats": beats}, {},
        stall=stall, seed=seed, others=(writes,), finished="quiet", watch=(dut.error,),
    )  # fmt: skip
    return played, memory, expected, bool(played.watched[-1][0])


@pytest.mark.parametrize(("link_bytes", "hbm_bytes"), PAIRS)
def test_stores_of_every_kind(link_bytes, hbm_bytes):
    rng = np.random.default_rng(SEED + 100 * link_bytes + hbm_bytes)
    ops = [
        {
            "elements": n,
            "dtype": CollectiveType(int(rng.integers(3))),
            "address": 64 * int(rng.integers(SIZE // 64 - 8)),
        }
        for n in residues(rng, link_bytes, hbm_bytes)
    ]
    for stall, latency in ((0, 20), (0.5, 3)):
        _, memory, expected, failed = store(link_bytes, hbm_bytes, ops, stall=stall, latency=latency)
        assert memory == expected
        assert not failed
    print(f"{len(ops)} operations, twice")


@pytest.mark.parametrize(("link_bytes", "hbm_bytes"), RATED)
@pytest.mark.parametrize("beats", [4, 200])
def test_stores_take_a_beat_a_cycle(link_bytes, hbm_bytes, beats):
    """HBM's latency is not seen; where HBM is the narrower, it takes a word a cycle."""
    count = 200 // beats
    elements = beats * link_bytes // 4
    step = -(-4 * elements // 64) * 64
    ops = [{"elements": elements, "dtype": FP32, "address": n * step % (SIZE - step + 64)} for n in range(count)]
    bursts = []
    played, memory, expected, _ = store(link_bytes, hbm_bytes, ops, latency=LATENCY, record=bursts)
    assert memory == expected
    cycles = played.cycles["beats"]
    words = count * -(-4 * elements // hbm_bytes)
    assert cycles[-1] - cycles[0] <= max(beats * count, words)
    assert max(length for *_, length in bursts) <= BURST_BEATS


def test_stores_whose_addresses_nobody_takes_are_kept():
    """Words are taken all the time; bursts of one word, more than there is room for."""
    ops = [{"elements": 2, "dtype": FP32, "address": 64 * n} for n in range(60)]
    _, memory, expected, _ = store(8, 8, ops, hold=200)
    assert memory == expected


def test_so_many_bursts_are_not_answered_at_once():
    ops = [{"elements": 2, "dtype": FP32, "address": 64 * n} for n in range(150)]
    bursts = []
    _, memory, expected, _ = store(8, 8, ops, latency=400, record=bursts)
    assert memory == expected
    assert sum(cycle < 400 for cycle, *_ in bursts) == Storer.BURSTS


def test_a_burst_waits_for_its_data():
    """No address before the last word is there."""
    dut = Storer(16, 16)
    words = BURST_BEATS
    op = StoreOp.const({"elements": 4 * words, "dtype": FP32, "address": 0}).as_bits()
    watch = (dut.beats.valid & dut.beats.ready, dut.axi.aw.valid | dut.axi.w.valid)
    writes = partial(serve_writes, axi=dut.axi, memory=bytearray(SIZE))
    inputs = {"ops": [op], "beats": list(range(words))}
    played = play(dut, inputs, {}, stall=0.8, others=(writes,), finished="quiet", watch=watch)
    come = 0
    for beat, begins in played.watched:
        assert not begins or come == words
        come += beat
    assert come == words


def test_a_write_error_is_seen():
    ops = [{"elements": 64, "dtype": FP32, "address": 0}]
    assert store(16, 16, ops, errors={0})[-1]
    assert not store(16, 16, ops, errors={1 << 13})[-1]
