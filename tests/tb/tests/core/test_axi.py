"""HBM model, arbiter, HBM's users and the core's control port against cocotbext-axi."""

import json
import random
import struct
from functools import cache

import numpy as np
import pytest

from neuroncore_rtl.golden.memory.dma import dma_copy
from neuroncore_rtl.hdl.core_ports import core_counters
from neuroncore_rtl.hdl.dma.engine import DmaEngine
from neuroncore_rtl.hdl.host.registers import layout_places
from neuroncore_rtl.hdl.memory.axi import MAX_BEATS
from neuroncore_rtl.hdl.queue import boot, fetch
from neuroncore_rtl.hdl.queue.record import RecordBeat
from neuroncore_rtl.run.harness.hbm import Hbm, read_memory, write_memory
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.spec import formats, isa, memory_map
from neuroncore_rtl.spec import host_map as at
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.tb.tests.core import axi, axi_lite

SEED = 5

HOSTILE = Hbm(latency=9, gap=2, port_rate=256 * 12, rate=256 * 20, stall=80, reorder=128, interleave=True)
"""HBM with minimal buffers, pauses, and every permitted reordering of responses."""


@cache
def bench(sim: str, size: int, ports: int, each: int) -> tuple[simulation.Build, dict]:
    built = simulation.build(axi.design(axi.HbmBench(size, ports, each)), sim)
    return built, {"managers": ports * each, "beat": size, "size": axi.BENCH_BYTES, "max_beats": MAX_BEATS}


@pytest.mark.parametrize(
    ("sim", "shape", "rounds"),
    [
        ("verilator", (16, 2, 2), 3),
        ("icarus", (16, 2, 2), 1),
        *(pytest.param("icarus", shape, 1, marks=pytest.mark.slow) for shape in ((8, 1, 3), (64, 1, 1))),
    ],
)
def test_managers_read_what_they_wrote(sim, shape, rounds, tmp_path):
    built, known = bench(sim, *shape)
    size = known["beat"]
    content = np.random.default_rng(SEED).integers(0, 256, axi.BENCH_BYTES, np.uint8)
    plusargs = [*HOSTILE.plusargs(), *write_memory(tmp_path, content, size)]
    (tmp_path / "content").write_bytes(content)
    settings = known | {"part": 9000 // size * size, "places": 12, "rounds": rounds, "pause": 0.4}
    files = {name: str((tmp_path / name).resolve()) for name in ("content", "expected")}
    axi.run_axi(built, "managers_read_what_they_wrote", plusargs, **settings, **files, seed=SEED)
    assert (read_memory(tmp_path) == np.fromfile(tmp_path / "expected", np.uint8)).all()


OUTSIDE = Hbm(latency=5, slverr=(0x1040, 0x1080), size=axi.BENCH_BYTES // 2)
INSIDE = Hbm(latency=5, slverr=(0x1040, 0x1080), decerr=(0x2010, 0x2020), stall=100)


@pytest.mark.parametrize(
    ("sim", "hbm", "decerr"),
    [("verilator", OUTSIDE, (OUTSIDE.size, axi.BENCH_BYTES)), ("icarus", INSIDE, INSIDE.decerr)],
)
def test_errors_are_answered(sim, hbm, decerr):
    built, known = bench(sim, 16, 2, 2)
    axi.run_axi(built, "errors_are_answered", hbm.plusargs(), **known, slverr=hbm.slverr, decerr=decerr, pause=0)


def timing(tmp_path, hbm: Hbm, bursts: int, length: int) -> dict[str, np.ndarray]:
    built, known = bench("verilator", 16, 2, 2)
    path = tmp_path / "events.json"
    settings = known | {"bursts": bursts, "length": length, "cycles": 400, "events": str(path.resolve())}
    axi.run_axi(built, "timing", hbm.plusargs(), **settings)
    events = {channel: np.array(found) for channel, found in json.loads(path.read_text()).items()}
    counts = {"aw": bursts, "ar": bursts, "w": bursts * length, "r": bursts * length, "b": bursts}
    assert {channel: len(found) for channel, found in events.items()} == counts
    return events


@pytest.mark.parametrize(("latency", "gap"), [(1, 0), (64, 7)])
def test_latency_and_gap(latency, gap, tmp_path):
    events = timing(tmp_path, Hbm(latency=latency, gap=gap), bursts=8, length=16)
    assert events["r"][0] - events["ar"][0] == latency + 1
    assert (events["b"] - events["w"][15::16] == latency + 1 + gap * np.arange(8)).all()
    assert (np.diff(events["w"]) == 1).all()
    assert events["r"][-1] - events["r"][0] == 8 * 16 - 1 + 7 * gap


@pytest.mark.parametrize("limit", [{"port_rate": 256 * 4}, {"rate": 256 * 4}], ids=["port", "all"])
def test_bandwidth_is_shared(limit, tmp_path):
    """HBM with 4 bytes per cycle reads 16 bytes and writes 16 bytes in 8 cycles."""
    events = timing(tmp_path, Hbm(latency=5, **limit), bursts=4, length=8)
    assert abs(events["r"][-1] - events["r"][0] - 8 * 31) <= 8
    assert abs(events["b"][-1] - events["r"][-1]) <= 16


def random_copy(rng: random.Random, memory: np.ndarray, src: int, dst: int, size: int) -> isa.DmaCopy:
    shape, steps, spans = [], ([], []), [0, 0]
    run = 1
    for _ in range(rng.randint(1, 4)):
        count = rng.choice((1, 2, 3, rng.randint(1, 40), rng.randint(1, 300)))
        chosen = [rng.choice((run, run + rng.randint(0, 30))) for _ in steps]
        if any(span + (count - 1) * step >= size - 64 for span, step in zip(spans, chosen, strict=True)):
            break
        shape.insert(0, count)
        for side, step in enumerate(chosen):
            steps[side].insert(0, step)
            spans[side] += (count - 1) * step
        run = max(spans) + 1
    addresses = [start + rng.randrange(size - span) for start, span in zip((src, dst), spans, strict=True)]
    tensors = [
        isa.DmaTensor(format=formats.INT8, address=address, storage=isa.Storage.HBM, steps=tuple(own))
        for address, own in zip(addresses, steps, strict=True)
    ]
    copy = isa.DmaCopy(shape=tuple(shape), src=tensors[0], dst=tensors[1])
    dma_copy(copy, memory, None, None)
    return copy


UNITS = Config(rows=4, columns=4, dma_engines=2, hbm_bytes=16)


@cache
def units_bench() -> simulation.Build:
    engines = {f"dma{number}": DmaEngine(UNITS) for number in range(UNITS.dma_engines)}
    bench = axi.RamBench(UNITS.hbm_bytes, {"boot": boot.Boot(UNITS), "fetcher": fetch.Fetcher(UNITS), **engines})
    return simulation.build(axi.design(bench), "icarus")


def test_units_use_a_ram(tmp_path):
    rng = random.Random(SEED)
    size, part = 1 << 16, 1 << 13
    memory = np.frombuffer(bytearray(rng.randbytes(size)), np.uint8)
    words = (memory_map.IMAGE_MAGIC, 1000, 0x180, UNITS.rows, UNITS.columns, UNITS.dma_engines, UNITS.cores, 0)
    memory[:32] = np.frombuffer(struct.pack("<8I", *words), np.uint8)
    (tmp_path / "content").write_bytes(memory)
    requests = [[rng.randrange(0, 4 * part, isa.RECORD_BYTES) for _ in range(8)] for _ in range(isa.queue_count(UNITS))]
    loaded = dict(enumerate(struct.unpack("<250I", memory[0x180 : 0x180 + 1000])))
    records = [[int.from_bytes(memory[a : a + isa.RECORD_BYTES], "little") for a in asked] for asked in requests]
    parts = ((2 * part, 4 * part), (3 * part, 6 * part))
    copies = [[random_copy(rng, memory, src, dst, 2000) for _ in range(4)] for src, dst in parts]
    files = {name: str((tmp_path / name).resolve()) for name in ("content", "found", "after")}
    encoded = [[copy.encode() for copy in of_engine] for of_engine in copies]
    settings = {"requests": requests, "copies": encoded, "boot": 0, "size": size, "pause": 0.4, "seed": SEED}
    settings["beat"] = [(field.offset, field.width) for _, field in RecordBeat(UNITS.hbm_bytes)]
    axi.run_axi(units_bench(), "units_use_a_ram", **settings, **files)
    found = json.loads((tmp_path / "found").read_text())
    assert {int(number): word for number, word in found["loaded"].items()} == loaded
    assert [[int(record, 16) for record in of_queue] for of_queue in found["records"]] == records
    assert (np.fromfile(tmp_path / "after", np.uint8) == memory).all()


CONFIG = PRESETS["tiny"]


@cache
def control_bench(sim: str) -> simulation.Build:
    return simulation.build(axi_lite.control_design(CONFIG), sim)


def there() -> dict[int, int]:
    values = {register.offset: 0 for register in at.HOST_REGISTERS}
    parameters = at.parameter_values(CONFIG)
    values |= {at.IDENTITY.offset: at.HOST_MAGIC, at.VERSION.offset: at.HOST_VERSION}
    values[at.PARAMETER_COUNT.offset] = len(parameters)
    values |= {at.PARAMETER_WORDS + 4 * n: value for n, value in enumerate(parameters.values())}
    counters = range(len(layout_places(core_counters(CONFIG))))
    return values | {at.counter_offset(number) + half: 0 for number in counters for half in (0, 4)}


@pytest.mark.parametrize(("sim", "pause"), [("verilator", 0.3), ("icarus", 0)])
def test_control_port(sim, pause):
    axi.run_axi(control_bench(sim), None, module="axi_lite_tests", there=[*there().items()], pause=pause, seed=3)
