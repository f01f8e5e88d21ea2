"""Build time and simulation speed of the vector and the scalar engine, and the golden model's speed beside them."""

import time
from dataclasses import replace

import numpy as np
from rich.table import Table

from neuroncore_rtl.bench.cold import cold_build
from neuroncore_rtl.golden.scalar.softmax import softmax
from neuroncore_rtl.kernels.program.instructions import activation, tensor_tensor
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.tb.benches.workbench import EngineWorkbench
from neuroncore_rtl.tb.check.execution import expected_memories, record_of
from neuroncore_rtl.tb.harness.elementwise import ENGINES, ElementwiseDevice, ElementwiseWork
from neuroncore_rtl.tb.harness.run import run
from neuroncore_rtl.tb.sim.elaboration import engine_verilog

__all__ = ["measure", "table"]

REPETITIONS, ELEMENTS = 8, 4096
"""Instructions of a run, and elements a lane of each."""

SOFTMAX = 4096
"""Rows and columns of the softmax that golden computes."""


def _stream(engine: str, config: Config) -> EngineWorkbench:
    """Return a program that keeps one engine busy: additions, or exponentials, of a tensor in SBUF."""
    bench = EngineWorkbench(config)
    values = np.random.default_rng(1).normal(0, 1, (config.partitions, ELEMENTS))
    x, _ = bench.place("x", values)
    y, _ = bench.place("y", values)
    for _ in range(REPETITIONS):
        out, source = y.tiles[0], x.tiles[0]
        one = activation(out, source, "exp") if engine == "scalar" else tensor_tensor(out, source, out, AluOp.ADD)
        bench.program.append(one)
    return bench


def _engine(engine: str, lanes: int) -> dict[str, object]:
    """Measure one engine of so many lanes: cold build, cycles per second, and golden on the same program."""
    config = replace(PRESETS["full"], rows=lanes, columns=lanes)
    device = ElementwiseDevice(config=config, engines=(engine,))
    build = cold_build(lambda way: engine_verilog(config, f"{engine}_engine", cached=False, vectors=way), device.design)
    bench = _stream(engine, config)
    sbuf, psum = bench.memories()
    instructions = [entry.instruction for entry in bench.program.entries]
    expected_memories(instructions[:1], sbuf, psum, config)  # compiles
    started = time.perf_counter()
    expected = expected_memories(instructions, sbuf, psum, config)
    golden_s = time.perf_counter() - started
    records = [record_of(entry, config) for entry in bench.program.entries]
    outcome = run(device, ElementwiseWork(program=records, sbuf=sbuf, psum=psum))
    elements = REPETITIONS * ELEMENTS
    return build | {
        "engine": engine,
        "lanes": lanes,
        "cycles": outcome.cycles,
        "elements": elements,
        "cycles_per_s": outcome.cycles / outcome.seconds,
        "golden_over_rtl": outcome.seconds / golden_s,
        "bit_exact": all(
            bool((outcome.memories[name] == memory).all())
            for name, memory in zip(("sbuf", "psum"), expected, strict=True)
        ),
    }


def _softmax_seconds() -> float:
    """Measure golden's softmax of a large FP32 matrix, in seconds."""
    codes = np.random.default_rng(1).normal(0, 3, (SOFTMAX, SOFTMAX)).astype(np.float32).view(np.uint32)
    softmax(codes[:2], FP32)  # compiles
    started = time.perf_counter()
    softmax(codes, FP32)
    return time.perf_counter() - started


def measure(sizes: list[int]) -> dict[str, object]:
    """Return the figures of both engines for each number of lanes, and golden's softmax."""
    return {
        "engines": [_engine(engine, lanes) for lanes in sizes for engine in ENGINES],
        "golden_softmax_s": _softmax_seconds(),
    }


def table(record: dict[str, object]) -> Table:
    """Return the table of `measure`'s figures."""
    caption = f"golden: softmax of {SOFTMAX} x {SOFTMAX} fp32 in {record['golden_softmax_s']:.1f} s"
    result = Table(
        title="Vector engine (tensor_tensor, both sources in SBUF) and scalar engine (exp), N elements a lane",
        caption=caption,
    )
    for heading in ("engine", "lanes", "elaborate s", "cold build s", "peak GiB", "cycles / N", "cycles/s",
                    "M elem/s", "golden/RTL", "bit-exact"):  # fmt: skip
        result.add_column(heading, justify="right")
    for row in record["engines"]:
        result.add_row(
            row["engine"], str(row["lanes"]), f"{row['elaboration_s']:.1f}", f"{row['cold_build_s']:.1f}",
            f"{row['build_peak_gib']:.2f}", f"{row['cycles'] / row['elements']:.2f}", f"{row['cycles_per_s']:,.0f}",
            f"{row['cycles_per_s'] * row['elements'] / row['cycles'] * row['lanes'] / 1e6:.1f}",
            f"{row['golden_over_rtl']:,.0f}", "yes" if row["bit_exact"] else "NO",
        )  # fmt: skip
    return result
