"""Benchmark of the vector and the scalar engine: build time, simulation speed in each way, and golden's speed."""

from dataclasses import replace

import numpy as np
from rich.table import Table

from neuroncore_rtl.bench.ways import COLUMNS, cold_build, measure_time, side_by_side
from neuroncore_rtl.golden.scalar.softmax import softmax
from neuroncore_rtl.kernels.program.instructions import activation, tensor_tensor
from neuroncore_rtl.run.elementwise import expected_memories, record_of
from neuroncore_rtl.run.harness.engines.elementwise import ENGINES, ElementwiseDevice, ElementwiseWork
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.sim.elaboration import engine_verilog
from neuroncore_rtl.run.tables import table
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.tb.tests.kernels.workbench import EngineWorkbench

__all__ = ["elementwise_tables", "measure_elementwise"]

REPETITIONS, ELEMENTS = 8, 4096  # instructions of a run, and elements per lane of an instruction
SOFTMAX = 4096


def _stream(engine: str, config: Config) -> EngineWorkbench:
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
    config = replace(PRESETS["full"], rows=lanes, columns=lanes)
    device = ElementwiseDevice(config=config, engines=(engine,))
    bench = _stream(engine, config)
    sbuf, psum = bench.memories()
    instructions = [entry.instruction for entry in bench.program.entries]
    expected_memories(instructions[:1], sbuf, psum, config)  # compiles golden
    expected, golden_s = measure_time(lambda: expected_memories(instructions, sbuf, psum, config))
    records = [record_of(entry, config) for entry in bench.program.entries]
    work = ElementwiseWork(program=records, sbuf=sbuf, psum=psum)
    elements, top = REPETITIONS * ELEMENTS, f"{engine}_engine"

    def one_way():
        build = cold_build(lambda vectors: engine_verilog(config, top, cached=False, vectors=vectors), device.design)
        outcome = run_device(device, work)
        speed = outcome.cycles / outcome.seconds
        exact = all(np.array_equal(*pair) for pair in zip(outcome.memories.values(), expected, strict=True))
        return {"cycles": outcome.cycles, "bit_exact": exact}, build | {
            "cycles_per_s": speed,
            "mega_elements_per_s": speed * elements * lanes / outcome.cycles / 1e6,
            "golden_over_rtl": outcome.seconds / golden_s,
        }

    found = side_by_side(f"{engine} engine of {lanes} lanes", one_way)
    return {"engine": engine, "lanes": lanes, "cycles_per_element": found["cycles"] / elements} | found


def measure_elementwise(sizes: list[int]) -> dict[str, object]:
    """Return the figures of both engines with the first and the last of `sizes` as number of lanes (datapaths)."""
    engines = [_engine(engine, lanes) for lanes in sorted({sizes[0], sizes[-1]}) for engine in ENGINES]
    codes = np.random.default_rng(1).normal(0, 3, (SOFTMAX, SOFTMAX)).astype(np.float32).view(np.uint32)
    softmax(codes[:2], FP32)  # compiles golden
    _, seconds = measure_time(lambda: softmax(codes, FP32))
    return {"engines": engines, "golden_softmax_s": seconds}


def elementwise_tables(record: dict[str, object]) -> list[Table]:
    """Return the tables of `measure_elementwise`'s figures."""
    rows = record["engines"]
    speed = table(
        "Vector engine (tensor_tensor, both sources in SBUF) and scalar engine (exp), N elements per lane",
        rows,
        """
        engine: {engine} | lanes: {lanes} | cycles\\n/ N: {cycles_per_element:.2f}
        WAY cycles/s: {WAY[cycles_per_s]:,.0f} | speed-up: {speed_up:.1f}
        WAY M\\nelem/s: {WAY[mega_elements_per_s]:.1f} | WAY golden/RTL: {WAY[golden_over_rtl]:,.0f}
        bit-exact: {bit_exact}
        """,
        caption=f"golden: softmax of {SOFTMAX} x {SOFTMAX} fp32 in {record['golden_softmax_s']:.1f} s",
    )
    builds = table("Cold builds", rows, f"engine: {{engine}} | lanes: {{lanes}} | {COLUMNS}")
    return [speed, builds]
