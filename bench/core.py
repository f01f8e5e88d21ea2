"""Benchmark of the core: build time, simulation speed, utilisation, and DMA bandwidth."""

import numpy as np
from rich.table import Table

from neuroncore_rtl.bench.ways import COLUMNS, cold_build, measure_time, side_by_side
from neuroncore_rtl.golden import tensor as golden_tensor
from neuroncore_rtl.kernels.program import Image, Program, build_image, dma_copy
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.run import build_device, run_device
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.tables import table
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import BF16, INT8
from neuroncore_rtl.tb.tests.kernels.products import ideal_cycles, product_image, random_matrix

__all__ = ["core_tables", "measure_core"]

PRODUCTS = (("small", 256), ("full", 512))  # preset, and M = K = N of a BF16 product
CURVE_PRESET = "small"
CURVE_SIZES = (64, 256, 512, 1024, 2048, 4096, 8192, 32768)
"""Bytes that one DMA instruction copies, contiguous in HBM and in one partition, for the curve of bandwidth."""

CURVE_BYTES = 1 << 18  # least bytes of all transfers of one size


def _product(preset: str, size: int) -> dict[str, object]:
    """Measure a square BF16 product in each way to simulate; `whole_s` includes files, process start and read-back."""
    config = PRESETS[preset]
    rng = np.random.default_rng(1)
    a, b = (random_matrix(rng, BF16, size, size) for _ in range(2))
    image, _ = product_image(a, b, BF16, config)
    job = ImageJob(machine=config, images=[image])
    device = job.device()
    golden_tensor.matrix_product(a[:8], b, BF16, config.rows)  # compiles golden
    job.golden()
    expected, golden_s = measure_time(job.golden)
    work = job.work(1)
    ideal = ideal_cycles(size, size, size, BF16, config)

    def one_way():
        build = cold_build(lambda vectors: device.verilog(cached=False, vectors=vectors), device.design)
        build_device(device)
        outcome, whole_s = measure_time(lambda: run_device(device, work))
        done = outcome.parts[0]
        return {
            "records": len(done.events),
            "cycles": done.cycles,
            "columns": done.counters["tensor"]["columns"],
            "controller_instructions": done.counters["controller"]["instructions"],
            "bit_exact": bool(done.error is None and (outcome.memories["hbm"] == expected.memories["hbm"]).all()),
        }, build | {
            "cycles_per_s": done.cycles / outcome.seconds,
            "whole_s": whole_s,
            "whole_cycles_per_s": done.cycles / whole_s,
            "golden_over_rtl": outcome.seconds / golden_s,
        }

    found = side_by_side(f"core of preset {preset}", one_way)
    found |= {"ideal_cycles": ideal, "utilisation": ideal / found["cycles"], "golden_s": golden_s}
    return {"preset": preset, "size": size} | found


def _transfers(size: int, load: bool, config: Config) -> Image:
    count = max(CURVE_BYTES // size, 2 * config.dma_engines)
    program = Program(config)
    far = program.space.hbm("far", INT8, (count, size))
    # Separate addresses, so that no transfer waits for another.
    near = program.space.sbuf("near", INT8, (-(-count // config.partitions), size), kept=True)
    for number in range(count):
        place, partition = divmod(number, config.partitions)
        line, row = near[partition : partition + 1, place], far[number : number + 1]
        program.append(dma_copy(line, row) if load else dma_copy(row, line))
    codes = np.random.default_rng(1).integers(0, 256, (count, size)).astype(np.uint8)
    return build_image(program, [(far, codes)] if load else [])


def _curve() -> list[dict[str, object]]:
    config = PRESETS[CURVE_PRESET]
    points = []
    for size in CURVE_SIZES:
        point: dict[str, object] = {"bytes": size, "bit_exact": True}
        for name, load in (("load", True), ("store", False)):
            result = execute(ImageJob(machine=config, images=[_transfers(size, load, config)]), Rtl())
            events = result.outcome.parts[0].events
            cycles = max(event.retired for event in events) - min(event.issued for event in events)
            point[name] = len(events) * size / (cycles * config.hbm_ports * config.hbm_bytes)
            point["bit_exact"] &= result.bit_exact
        points.append(point)
    return points


def measure_core() -> dict[str, object]:
    """Return the figures of products on the core and of DMA copies."""
    return {"core": [_product(*product) for product in PRODUCTS], "dma": _curve()}


def core_tables(record: dict[str, object]) -> list[Table]:
    """Return the tables of `measure_core`'s figures."""
    rows = record["core"]
    products = table(
        "Core: M = K = N product in BF16, from HBM to HBM",
        rows,
        """
        preset: {preset} | size: {size} | records: {records} | cycles: {cycles:,} | ideal: {ideal_cycles:,}
        utilisation: {utilisation:.1%} | bit-exact: {bit_exact}
        """,
    )
    speed = table(
        "Simulation of it",
        rows,
        """
        preset: {preset} | WAY cycles/s: {WAY[cycles_per_s]:,.0f} | speed-up: {speed_up:.1f}
        WAY cycles/s\\nwith start\\nand end: {WAY[whole_cycles_per_s]:,.0f}
        WAY golden/RTL: {WAY[golden_over_rtl]:,.0f}
        """,
    )
    builds = table("Cold builds", rows, f"preset: {{preset}} | {COLUMNS}")
    config = PRESETS[CURVE_PRESET]
    curve = table(
        f"DMA: share of {config.hbm_ports * config.hbm_bytes} bytes per cycle, {config.dma_engines} engines, "
        f"HBM latency {Hbm().latency} cycles",
        record["dma"],
        "bytes per transfer: {bytes:,} | HBM to SBUF: {load:.1%} | SBUF to HBM: {store:.1%} | bit-exact: {bit_exact}",
    )
    return [products, speed, builds, curve]
