"""Loader and Storer: every width of link and HBM, every tail, stalls, rates behind HBM's latency, errors."""

from functools import partial

import numpy as np
import pytest

from neuroncore_rtl.hdl.collective.loader import Loader
from neuroncore_rtl.hdl.collective.ops import LoadOp, StoreOp
from neuroncore_rtl.hdl.collective.storer import Storer
from neuroncore_rtl.hdl.dma.job import BURST_BEATS
from neuroncore_rtl.spec.isa.collective import CollectiveType, element_bytes
from tests.hdl.collective.beats import beats_of_bytes
from tests.hdl.memory.axi_memory import serve_reads, serve_writes
from tests.hdl.streams import Played, play

SEED = 20260612
SIZE = 1 << 14
LATENCY = 64
WIDTHS = (8, 16, 32, 64)
PAIRS = [(link, hbm) for link in WIDTHS for hbm in WIDTHS]
RATED = [(8, 8), (8, 64), (16, 16), (16, 32), (32, 16), (64, 8), (64, 32), (64, 64)]
"""Bytes of a link and of HBM."""

FP32, BF16, INT32 = CollectiveType


def operation(elements: int, dtype: CollectiveType, address: int, **flags) -> dict:
    """Return the fields of a `LoadOp` or a `StoreOp`."""
    return {"elements": elements, "dtype": dtype, "address": address} | flags


def load(link_bytes: int, hbm_bytes: int, ops, *, stall=0.0, hold=0, errors=(), latency=1) -> tuple[Played, bool]:
    """Load from a memory of random bytes; return what passed, and whether an error was seen, without which all that
    passed is right."""
    memory = np.random.default_rng(SEED).bytes(SIZE)
    expected = []
    for op in ops:
        size = element_bytes(op["dtype"])
        content = memory[op["address"] : op["address"] + size * op["elements"]]
        if op.get("zero"):
            content = bytes(size * op["elements"])
        if op.get("wide") and op["dtype"] == BF16:
            content = (np.frombuffer(content, "<u2").astype("<u4") << 16).tobytes()
        expected += [beat | op.get("to_send", 0) << 8 * link_bytes for beat in beats_of_bytes(content, link_bytes)]
    dut = Loader(link_bytes, hbm_bytes)
    reads = partial(serve_reads, axi=dut.axi, memory=memory, latency=latency, stall=stall, errors=errors, seed=SEED)
    words = [LoadOp.const(op).as_bits() for op in ops]
    played = play(
        dut, {"ops": words}, {"beats": len(expected)}, stall=stall, hold={"beats": lambda cycle: cycle < hold},
        seed=SEED, others=(reads,), finished="idle", watch=(dut.error,),
    )  # fmt: skip
    failed = bool(played.watched[-1][0])
    assert failed or played.payloads["beats"] == expected
    return played, failed


def store(link_bytes: int, hbm_bytes: int, ops, *, bursts=None, stall=0.0, **options) -> tuple[Played, bool]:
    """Store random beats; return what passed, and whether an error was seen, without which the memory is as it should.

    Arguments:
        bursts, options: of `serve_writes`.
    """
    rng = np.random.default_rng(SEED)
    memory = bytearray(rng.bytes(SIZE))
    expected, beats, bursts = bytearray(memory), [], [] if bursts is None else bursts
    for op in ops:
        content = rng.bytes(element_bytes(op["dtype"]) * op["elements"])
        expected[op["address"] : op["address"] + len(content)] = content
        beats += beats_of_bytes(content, link_bytes, rng)
    dut = Storer(link_bytes, hbm_bytes)
    writes = partial(serve_writes, axi=dut.axi, memory=memory, bursts=bursts, stall=stall, seed=SEED, **options)
    words = [StoreOp.const(op).as_bits() for op in ops]
    watch = (dut.error, dut.beats.valid & dut.beats.ready, dut.axi.aw.valid | dut.axi.w.valid)
    played = play(
        dut, {"ops": words, "beats": beats}, {}, stall=stall, seed=SEED, others=(writes,), finished="quiet", watch=watch
    )
    failed = bool(played.watched[-1][0])
    assert failed or memory == expected
    assert max(length for *_, length in bursts) <= BURST_BEATS
    return played, failed


@pytest.mark.parametrize("transfer", [load, store])
@pytest.mark.parametrize(("link_bytes", "hbm_bytes"), PAIRS)
def test_transfers_of_every_kind(transfer, link_bytes, hbm_bytes):
    """Numbers of elements that end a beat and a word at every place, in random order."""
    rng = np.random.default_rng(SEED + 100 * link_bytes + hbm_bytes)
    most, ops = max(link_bytes, hbm_bytes) // 2, []
    for n in rng.permutation(np.arange(1, most + 1)):
        elements, dtype = int(n) + most * int(rng.integers(3)), CollectiveType(int(rng.integers(3)))
        flags = {"wide": int(rng.integers(2)), "zero": int(rng.random() < 0.1), "to_send": int(rng.integers(2))}
        address = 64 * int(rng.integers(SIZE // 64 - 8))
        ops.append(operation(elements, dtype, address, **(flags if transfer is load else {})))
    for stall, latency in ((0, 20), (0.5, 3)):
        _, failed = transfer(link_bytes, hbm_bytes, ops, stall=stall, latency=latency)
        assert not failed
    print(f"{len(ops)} operations, twice")


@pytest.mark.parametrize(("link_bytes", "hbm_bytes"), RATED)
@pytest.mark.parametrize(
    ("transfer", "beats", "wide"), [(load, 4, 0), (load, 4, 1), (load, 200, 0), (store, 4, 0), (store, 200, 0)]
)
def test_transfers_hide_the_latency_of_hbm(transfer, beats, wide, link_bytes, hbm_bytes):
    """A beat a cycle, once the first has come, if HBM is wide enough; else a word of HBM."""
    count, elements = 200 // beats, beats * link_bytes // 4
    dtype, flags = (BF16, {"wide": 1}) if wide else (FP32, {})
    size = element_bytes(dtype) * elements
    step = -(-size // 64) * 64
    ops = [operation(elements, dtype, n * step % (SIZE - step + 64), **flags) for n in range(count)]
    played, failed = transfer(link_bytes, hbm_bytes, ops, latency=LATENCY)
    cycles = played.cycles["beats"]
    assert not failed and (transfer is store or cycles[0] < LATENCY + 10 + link_bytes // hbm_bytes)
    assert cycles[-1] - cycles[0] <= max(beats * count, count * -(-size // hbm_bytes))


@pytest.mark.parametrize("elements", [2, 500])
def test_loads_that_nobody_takes_are_kept(elements):
    """More than there is room for, in words or in operations."""
    _, failed = load(
        8, 16, [operation(elements, FP32, 2048 * (n % 7)) for n in range(max(3, 100 // elements))], hold=400
    )
    assert not failed


def test_zeros_are_not_read():
    ops = [operation(100, FP32, SIZE - 64, zero=1), operation(16, FP32, 0)]
    _, failed = load(16, 16, ops, errors=set(range(64, SIZE, 16)))
    assert not failed


def test_too_little_room_is_noticed(monkeypatch):
    monkeypatch.setattr(Loader, "LATENCY_BEATS", LATENCY // 2)
    with pytest.raises(AssertionError):
        test_transfers_hide_the_latency_of_hbm(load, 200, 0, 16, 16)


def test_stores_whose_addresses_nobody_takes_are_kept():
    """Words are taken all the time; bursts of one word, more than there is room for."""
    _, failed = store(8, 8, [operation(2, FP32, 64 * n) for n in range(60)], hold=200)
    assert not failed


def test_so_many_bursts_are_not_answered_at_once():
    bursts = []
    _, failed = store(8, 8, [operation(2, FP32, 64 * n) for n in range(150)], latency=400, bursts=bursts)
    assert not failed
    assert sum(cycle < 400 for cycle, *_ in bursts) == Storer.BURSTS


def test_a_burst_waits_for_its_data():
    """No address before the last word is there."""
    played, _ = store(16, 16, [operation(4 * BURST_BEATS, FP32, 0)], stall=0.8)
    come = 0
    for _, beat, begins in played.watched:
        assert not begins or come == BURST_BEATS
        come += beat
    assert come == BURST_BEATS


@pytest.mark.parametrize(("transfer", "bad"), [(load, 48), (store, 0)])
def test_an_error_is_seen(transfer, bad):
    ops = [operation(64, FP32, 0)]
    assert transfer(16, 16, ops, errors={bad})[1]
    assert not transfer(16, 16, ops, errors={1 << 13})[1]
