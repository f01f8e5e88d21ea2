"""Build time and simulation speed of the vector and the scalar engine, and the golden model's speed beside them."""

from dataclasses import replace

import numpy as np
from rich.table import Table

from neuroncore_rtl.bench.cold import cold_build, timed
from neuroncore_rtl.bench.tables import table
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

__all__ = ["measure", "tables"]

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
    expected, golden_s = timed(lambda: expected_memories(instructions, sbuf, psum, config))
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
            np.array_equal(found, wanted) for found, wanted in zip(outcome.memories.values(), expected, strict=True)
        ),
    }


def measure(sizes: list[int]) -> dict[str, object]:
    """Return the figures of both engines for each number of lanes, and golden's softmax."""
    engines = [_engine(engine, lanes) for lanes in sizes for engine in ENGINES]
    codes = np.random.default_rng(1).normal(0, 3, (SOFTMAX, SOFTMAX)).astype(np.float32).view(np.uint32)
    softmax(codes[:2], FP32)  # compiles
    _, seconds = timed(lambda: softmax(codes, FP32))
    return {"engines": engines, "golden_softmax_s": seconds}


def tables(record: dict[str, object]) -> list[Table]:
    """Return the table of `measure`'s figures."""
    rows = [row | {"each": row["cycles"] / row["elements"]} for row in record["engines"]]
    speed = table(
        "Vector engine (tensor_tensor, both sources in SBUF) and scalar engine (exp), N elements a lane",
        (row | {"m_elements": row["cycles_per_s"] / row["each"] * row["lanes"] / 1e6} for row in rows),
        """
        engine: {engine} | lanes: {lanes} | elaborate s: {elaboration_s:.1f} | cold build s: {cold_build_s:.1f}
        peak GiB: {build_peak_gib:.2f} | cycles / N: {each:.2f} | cycles/s: {cycles_per_s:,.0f}
        M elem/s: {m_elements:.1f} | golden/RTL: {golden_over_rtl:,.0f} | bit-exact: {bit_exact}
        """,
        caption=f"golden: softmax of {SOFTMAX} x {SOFTMAX} fp32 in {record['golden_softmax_s']:.1f} s",
    )
    return [speed]
