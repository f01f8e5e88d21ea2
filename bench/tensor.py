"""Benchmark of the tensor engine over array sizes: build time, simulation speed in each way, and utilisation."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
from rich.table import Table

from neuroncore_rtl import ROOT
from neuroncore_rtl.bench.ways import COLUMNS, cold_build, measure_time, side_by_side
from neuroncore_rtl.golden import tensor as golden
from neuroncore_rtl.run.harness.engines.tensor import TensorDevice, TensorWork
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.sim.elaboration import engine_verilog
from neuroncore_rtl.run.tables import table
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.tb.stimulus.tensor_tiling import tiled_products
from neuroncore_rtl.tb.tests.kernels.products import ideal_cycles, random_matrix

__all__ = ["measure_tensor", "tensor_tables"]

PRODUCTS = (
    (512, 512, 512, BF16),
    (1024, 1024, 1024, BF16),
    (512, 512, 512, FP32),
    (13, 17, 18, BF16),
    (1, 512, 512, BF16),
)


def _config(size: int) -> Config:
    return replace(PRESETS["full"], rows=size, columns=size)


def _warm_start(size: int) -> float:
    """Return the seconds of `make sim` for a small product, with an existing build."""
    variables = (f"ROWS={size}", f"COLUMNS={size}", "M=4", "K=4", "N=4")
    command = [sys.executable, "-m", "neuroncore_rtl", "sim", "matmul", "TARGET=engine", "PRESET=full", *variables]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    _, seconds = measure_time(lambda: subprocess.run(command, check=True, capture_output=True, cwd=ROOT))
    return seconds


class _Product:
    """A product of random matrices, computed once by golden and simulated on `device` any number of times."""

    def __init__(self, config: Config, m: int, k: int, n: int, fmt: Format):
        rng = np.random.default_rng(1)
        self._operands = a, b = random_matrix(rng, fmt, m, k), random_matrix(rng, fmt, k, n)
        self._format = fmt
        self._ideal_cycles = ideal_cycles(m, k, n, fmt, config)
        golden.matrix_product(a[:8], b[:, :8], fmt, config.rows)  # compiles the kernel
        self._expected, self._golden_s = measure_time(lambda: golden.matrix_product(a, b, fmt, config.rows))
        self.device = TensorDevice(config=config)
        self.golden = {"shape": f"{m} x {k} x {n} {fmt.name}", "golden_gmacs_per_s": m * k * n / self._golden_s / 1e9}

    def simulate(self) -> tuple[dict[str, object], dict[str, float]]:
        config = self.device.config
        result = np.zeros_like(self._expected)
        cycles = seconds = 0
        for program in tiled_products(*self._operands, self._format, config):
            outcome = run_device(self.device, TensorWork(program=program))
            program.gather(outcome.memories["psum"], result)
            cycles += outcome.counters["cycles"]
            seconds += outcome.seconds
        done = {
            "bit_exact": bool((result == self._expected).all()),
            "cycles": cycles,
            "ideal_cycles": self._ideal_cycles,
            "utilisation": self._ideal_cycles / cycles,
        }
        return done, {
            "cycles_per_s": cycles / seconds,
            "ns_per_pe": seconds / (cycles * config.rows * config.columns) * 1e9,
            "golden_over_rtl": seconds / self._golden_s,
        }


def _array(size: int) -> dict[str, object]:
    config = _config(size)
    product = _Product(config, 4 * size, 4 * size, 512, BF16)

    def one_way():
        build = cold_build(lambda vectors: engine_verilog(config, cached=False, vectors=vectors), product.device.design)
        done, speed = product.simulate()
        return done, build | {"warm_start_s": _warm_start(size)} | speed

    return product.golden | side_by_side(f"tensor engine of {size} x {size}", one_way)


def measure_tensor(sizes: list[int]) -> dict[str, object]:
    """Return the figures of each array size, and of products on the largest array."""
    arrays = {str(size): _array(size) for size in sizes}
    products = []
    for shape in PRODUCTS:
        product = _Product(_config(sizes[-1]), *shape)
        done, speed = product.simulate()
        products.append({"array": sizes[-1]} | product.golden | done | speed)
    return {"sizes": arrays, "products": products}


def tensor_tables(record: dict[str, object]) -> list[Table]:
    """Return the tables of the figures."""
    rows = [{"array": size} | row for size, row in record["sizes"].items()]
    array = "array: {array} x {array} |"
    return [
        table(
            "Tensor engine, BF16, mac_latency of preset full",
            rows,
            f"""
            {array} WAY cycles/s: {{WAY[cycles_per_s]:,.0f}} | speed-up: {{speed_up:.1f}}
            WAY ns/PE: {{WAY[ns_per_pe]:.2f}} | golden\\nG MAC/s: {{golden_gmacs_per_s:.1f}}
            WAY golden/RTL: {{WAY[golden_over_rtl]:,.0f}} | bit-exact: {{bit_exact}}
            """,
        ),
        table(
            "Cold builds, and a second run from the command line",
            rows,
            f"{array} {COLUMNS} | WAY warm\\nstart s: {{WAY[warm_start_s]:.1f}}",
        ),
        table(
            "Utilisation",
            record["products"],
            f"""
            {array} product: {{shape}} | cycles: {{cycles:,}} | ideal: {{ideal_cycles:,}}
            utilisation: {{utilisation:.1%}} | bit-exact: {{bit_exact}}
            """,
        ),
    ]
