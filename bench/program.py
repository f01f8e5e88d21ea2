"""Benchmark of program construction: from kernel calls to the image's bytes."""

import gc
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from neuroncore_rtl.bench.silicon.modelled import layer_image
from neuroncore_rtl.frontends.nki.record import record
from neuroncore_rtl.frontends.nki.runtime.run import found_in
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.tables import table
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.tb.tests.kernels import backward

__all__ = ["measure_program", "program_tables"]

LAYER = "SEQ=128 DIM=128 HEADS=4 HIDDEN=512"
CALLS = 10_000
REPETITIONS = 3  # the fastest is the result, as other programs may slow the machine

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rounds(count):
    rows, columns = nl.tile_size.pmax, 64
    out = nl.ndarray((rows, columns), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, columns), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=1.0)
    for _ in range(count):
        sums = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=tile[:, :rows], moving=tile)
        least = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=least, op=nl.maximum, data=sums, axis=1, negate=True)
        tile = nl.ndarray((rows, columns), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.activation(dst=tile, op=nl.exp, data=sums, bias=least)
        nisa.dma_copy(dst=out, src=tile)
    return out
"""
"""Kernel with four calls in each pass of its loop after `memset`, one for each kind of engine."""


def measure_program() -> dict[str, list[dict[str, object]]]:
    """Return a row for each program and each order in which its instructions are scheduled."""
    config, own = preset_named("small"), [*LAYER.split(), "PRESET=small"]
    programs: dict[str, Callable[[str], Image]] = {
        f"encoder_backward {LAYER}": lambda order: layer_image(backward, "encoder_backward", [*own, f"ORDER={order}"]),
        f"{CALLS:,} calls of nki": lambda order: _calls(config, order),
    }
    rows = []
    for name, build in programs.items():
        for order in ORDERS:
            with progress(f"{name}, ORDER={order}"):
                build(order)
                rows.append({"program": name, "order": order, **_fastest(build, order)})
    return {"program": rows}


def program_tables(found: dict[str, object]) -> list[Table]:
    """Return the table of `measure_program`."""
    columns = "program: {program} | ORDER: {order} | records: {records:,} | s: {seconds:.2f} | us / record: {each:.0f}"
    caption = "CPU time of one process, PRESET=small"
    return [table("From a kernel's first call to the bytes of its image", found["program"], columns, caption)]


def _calls(config: Config, order: str) -> Image:
    with TemporaryDirectory() as folder:
        path = Path(folder, "rounds.py")
        path.write_text(KERNEL)
        kernel = found_in(f"{path}:rounds", config)
    return build_image(record(kernel, {"count": CALLS // 4}, config, order=order).program)


def _fastest(build: Callable[[str], Image], order: str) -> dict[str, float]:
    seconds = []
    for _ in range(REPETITIONS):
        gc.collect()
        started = time.process_time()
        image = build(order)
        seconds.append(time.process_time() - started)
    records = sum(map(len, image.records))
    return {"records": records, "seconds": min(seconds), "each": min(seconds) / records * 1e6}
