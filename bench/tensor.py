"""Build time, simulation speed and utilisation of the tensor engine over array sizes."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
from rich.table import Table

from neuroncore_rtl import ROOT
from neuroncore_rtl.bench.cold import cold_build, timed
from neuroncore_rtl.bench.tables import table
from neuroncore_rtl.golden import tensor as golden
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.tb.benches.matmul import ideal_cycles, random_matrix
from neuroncore_rtl.tb.harness.run import run
from neuroncore_rtl.tb.harness.tensor import TensorDevice, TensorWork
from neuroncore_rtl.tb.sim.elaboration import engine_verilog
from neuroncore_rtl.tb.stimulus.tensor_tiling import tiled_products

__all__ = ["measure", "tables"]

PRODUCTS = (
    (512, 512, 512, BF16),
    (1024, 1024, 1024, BF16),
    (512, 512, 512, FP32),
    (13, 17, 18, BF16),
    (1, 512, 512, BF16),
)
"""Products on the largest array."""


def _config(size: int) -> Config:
    return replace(PRESETS["full"], rows=size, columns=size)


def _warm_start(size: int) -> float:
    """Measure a second run of a small product from the command line, in seconds."""
    variables = (f"ROWS={size}", f"COLUMNS={size}", "M=4", "K=4", "N=4")
    command = [sys.executable, "-m", "neuroncore_rtl.tb", "sim", "matmul", "TARGET=engine", "PRESET=full", *variables]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    _, seconds = timed(lambda: subprocess.run(command, check=True, capture_output=True, cwd=ROOT))
    return seconds


def _product(config: Config, m: int, k: int, n: int, fmt: Format) -> dict[str, float]:
    """Measure one product: cycles, utilisation, simulated cycles per second, and golden's speed beside it."""
    rng = np.random.default_rng(1)
    a, b = random_matrix(rng, fmt, m, k), random_matrix(rng, fmt, k, n)
    golden.matrix_product(a[:8], b[:, :8], fmt, config.rows)  # compiles the kernel
    expected, golden_s = timed(lambda: golden.matrix_product(a, b, fmt, config.rows))
    device = TensorDevice(config=config)
    result = np.zeros_like(expected)
    cycles = seconds = 0
    for program in tiled_products(a, b, fmt, config):
        outcome = run(device, TensorWork(program=program))
        program.gather(outcome.memories["psum"], result)
        cycles += outcome.counters["cycles"]
        seconds += outcome.seconds
    ideal = ideal_cycles(m, k, n, fmt, config)
    macs = m * k * n
    return {
        "shape": f"{m} x {k} x {n} {fmt.name}",
        "bit_exact": bool((result == expected).all()),
        "cycles": cycles,
        "ideal_cycles": ideal,
        "utilisation": ideal / cycles,
        "cycles_per_s": cycles / seconds,
        "pe_steps_per_s": cycles / seconds * config.rows * config.columns,
        "golden_macs_per_s": macs / golden_s,
        "golden_over_rtl": seconds / golden_s,
    }


def measure(sizes: list[int]) -> dict[str, object]:
    """Return the figures of each array size, and those of products on the largest."""
    rows = {}
    for size in sizes:
        config = _config(size)
        device = TensorDevice(config=config)
        row = cold_build(lambda way, of=config: engine_verilog(of, cached=False, vectors=way), device.design)
        rows[str(size)] = row | {"warm_start_s": _warm_start(size)} | _product(config, 4 * size, 4 * size, 512, BF16)
    size = sizes[-1]
    products = [{"array": size} | _product(_config(size), *product) for product in PRODUCTS]
    return {"sizes": rows, "products": products}


def tables(record: dict[str, object]) -> list[Table]:
    """Return the tables of `measure`'s figures."""
    speed = table(
        "Tensor engine, BF16, mac_latency of preset full",
        (
            {"array": size, "m_steps": row["pe_steps_per_s"] / 1e6, "g_macs": row["golden_macs_per_s"] / 1e9, **row}
            for size, row in record["sizes"].items()
        ),
        """
        array: {array} x {array} | elaborate s: {elaboration_s:.1f} | cold build s: {cold_build_s:.1f}
        peak GiB: {build_peak_gib:.2f} | warm start s: {warm_start_s:.1f} | cycles/s: {cycles_per_s:,.0f}
        M PE-steps/s: {m_steps:.1f} | golden G MAC/s: {g_macs:.1f} | golden/RTL: {golden_over_rtl:,.0f}
        """,
    )
    columns = """
        array: {array} x {array} | product: {shape} | cycles: {cycles:,} | ideal: {ideal_cycles:,}
        utilisation: {utilisation:.1%} | bit-exact: {bit_exact}
    """
    return [speed, table("Utilisation", record["products"], columns)]
