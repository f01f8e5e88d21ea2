"""Cycles of the full machine for work with a published time, by the timing model; no RTL is simulated.

A collective takes the cycles of the link model, plus two fitted constants that it lacks.
"""

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np
from scipy.optimize import nnls

from neuroncore_rtl.bench.silicon.published import ALL_GATHERS, ALL_REDUCES, LOADED, KernelFigure
from neuroncore_rtl.bench.silicon.traces import candidate
from neuroncore_rtl.frontends.nki.runtime.run import argument_of, found_in, recorded
from neuroncore_rtl.golden.link.timing import LinkCase, cycles_of
from neuroncore_rtl.golden.timing import MemoryTiming, predict
from neuroncore_rtl.kernels.library.conv2d import conv2d
from neuroncore_rtl.kernels.program import Image, Program, build_image, dma_copy
from neuroncore_rtl.kernels.program.instructions import activation, memset
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.spec.instance import INSTANCES, Topology
from neuroncore_rtl.spec.isa import queue_name
from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.tests.kernels import transformer
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench, Draws

__all__ = [
    "GHZ", "collective_rows", "convolution", "dependence", "dma_start", "encoder_layer", "fit_collectives", "kernel",
    "layer_image", "load_recording",
]  # fmt: skip

GHZ = 1.4
"""Clock of a machine without `Config.clock_mhz`, used for all cycles here."""

CHANNELS, IMAGE, FILTER = 256, 224, 3  # channels, pixels per side of the image, and elements per side of the filter
BAND = 18  # rows of a band: two bands of FP32 fit on chip


def _cycles(image: Image, latencies: Sequence[int]) -> list[int]:
    return [predict(image, MemoryTiming(latency=latency)).cycles for latency in latencies]


def kernel(config: Config, figure: KernelFigure, checkout: Path, latencies: Sequence[int]) -> list[int]:
    """Return the cycles of a published kernel for each latency of HBM."""
    if figure.candidate is None:
        return _kernel_cycles(config, figure, checkout / figure.kernel, latencies)
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{figure.kernel}_{figure.candidate}.py"
        file.write_text(candidate(checkout, figure.kernel, figure.candidate))
        return _kernel_cycles(config, figure, Path(f"{file}:test"), latencies)


def _kernel_cycles(config: Config, figure: KernelFigure, path: Path, latencies: Sequence[int]) -> list[int]:
    function = found_in(path, config)
    given = [
        argument_of("argument", (np.zeros(one), figure.dtype)) if isinstance(one, tuple) else one
        for one in figure.arguments
    ]
    arguments = dict(zip(inspect.signature(function).parameters, given, strict=False)) | figure.keywords
    return _cycles(build_image(recorded(function, arguments, config, figure.grid, "scheduled").program), latencies)


def convolution(config: Config, fmt: Format, latencies: Sequence[int]) -> list[int]:
    """Return the cycles of the published convolution for each latency of HBM, computed in bands of the image."""
    program = Program(config, order="scheduled")
    x = program.space.hbm("x", fmt, (CHANNELS, IMAGE, IMAGE))
    w = program.space.hbm("w", fmt, (FILTER, FILTER, CHANNELS, CHANNELS))
    places = IMAGE - FILTER + 1
    y = program.space.hbm("y", fmt, (CHANNELS, places, places))
    for band in cut(0, places, BAND):
        found = conv2d(program, x[:, band.start : band.stop + FILTER - 1], w, fmt=fmt)
        for part, tile in zip(found.parts, found.tiles, strict=True):
            program.append(dma_copy(y[part, band], tile), next(program.stores))
    return _cycles(build_image(program), latencies)


def encoder_layer(preset: str, latencies: Sequence[int]) -> list[int]:
    """Return the cycles of a layer of BERT-L over 128 tokens for each latency of HBM."""
    layer = f"SEQ=128 DIM=1024 HEADS=16 HIDDEN=4096 TARGET=model PRESET={preset} ORDER=scheduled"
    return _cycles(layer_image(transformer, "encoder", layer.split()), latencies)


def layer_image(benches: ModuleType, name: str, words: Sequence[str]) -> Image:
    """Return the image of a TEST in one of the modules `benches`."""
    [layer] = [test for test in benches.TESTS if test.name == name]
    settings = layer.settings(words)
    bench = CoreWorkbench(settings.config, settings.order)
    layer.build(bench, settings, Draws(settings.seed))
    return build_image(bench.program, bench.contents, runs=bench.runs)


def dma_start(config: Config, latency: int) -> int:
    """Return the cycles from issue to end of a copy of 64 bytes from HBM to SBUF."""
    program = Program(config)
    x, tile = program.space.hbm("x", FP32, (1, 16)), program.space.sbuf("tile", FP32, (16,), 1)
    program.append(dma_copy(tile, x), next(program.loads))
    records = predict(build_image(program), MemoryTiming(latency=latency)).records
    [copy] = [one for one in records if queue_name(one.queue, config).startswith("dma")]
    return copy.retired - copy.issued


def dependence(config: Config) -> int:
    """Return the cycles from an ACTIVATE of one element to the next one, which reads its result."""
    program = Program(config)
    tile = program.space.sbuf("tile", FP32, (1,))
    program.append(memset(tile, 0.0))
    for _ in range(4):
        program.append(activation(tile, tile, "identity"))
    records = predict(build_image(program)).records
    issued = [one.issued for one in records if queue_name(one.queue, config) == "scalar"]
    return issued[-1] - issued[-2]


def load_recording(config: Config, latencies: Sequence[int]) -> list[int]:
    """Return the cycles in which the DMA engines for loads copy `LOADED` bytes to SBUF, for each latency of HBM."""
    program = Program(config)
    columns = LOADED // (config.partitions * BF16.bits // 8)
    x = program.space.hbm("x", BF16, (config.partitions, columns))
    tile = program.space.sbuf("tile", BF16, (columns,))
    share = columns // len(program.load_queues)
    for first in range(0, columns, share):
        program.append(dma_copy(tile[:, first : first + share], x[:, first : first + share]), next(program.loads))
    return _cycles(build_image(program), latencies)


def fit_collectives(rows: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """Return two fitted times in microseconds: of a start by the host, and of a step around the ring.

    The fit minimises the squared relative errors of the estimates; no constant is negative.
    """
    scale = np.array([row["published"] for row in rows], float)
    columns = np.array([[1, row["steps"]] for row in rows]) / scale[:, None]
    rest = 1 - np.array([row["bare"] for row in rows]) / scale
    host, step = nnls(columns, rest)[0]
    return float(host), float(step)


def collective_rows(config: Config) -> tuple[list[dict[str, object]], tuple[float, float]]:
    """Return the rows and the fitted constants; every second row is used for the fit, the other rows test it."""
    instance, cores = INSTANCES["trainium1" if config.clock_mhz else "trn1"], INSTANCES["trn1"].cores
    case = partial(LinkCase, instance=instance.with_overrides(topology=Topology.TORUS))
    # An all-reduce between the cores of a chip, and an all-gather by all cores of an instance, with their steps.
    groups = (
        (ALL_REDUCES, lambda words: case(ranks=2, count=words), 2),
        (ALL_GATHERS, lambda words: case(ranks=cores, count=words // cores, kind=CollectiveKind.ALL_GATHER), 31),
    )
    rows = [
        {
            "name": time.name,
            "published": time.us,
            "bare": cycles_of(case_of(time.size // 4)) / (config.clock_mhz or 1000 * GHZ),
            "steps": steps,
            "use": ("judged", "fitted")[number % 2],
        }
        for times, case_of, steps in groups
        for number, time in enumerate(times)
    ]
    host, step = fit_collectives([row for row in rows if row["use"] == "fitted"])
    for row in rows:
        row["ours"] = host + step * row["steps"] + row["bare"]
        row["ratio"] = row["ours"] / row["published"]
    return rows, (host, step)
