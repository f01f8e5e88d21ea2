"""TEST=tensor_parallel: a linear layer with its weights divided among the cores of an instance.

The links add the partial products while the arrays compute. The same programs run with and without the all-reduces; the
difference is the cost of the overlap. The result also equals equations that are independent of tiles, copies and
strips.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from neuroncore_rtl.golden import tensor as golden
from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.golden.collective import reduce_blocks
from neuroncore_rtl.kernels.library.collectives import collectives_program
from neuroncore_rtl.kernels.library.tensor_parallel import Shard, tensor_parallel_programs
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.run import settings as shared
from neuroncore_rtl.run.check.link_table import link_rows
from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.report import Report, Share, progress
from neuroncore_rtl.run.result import Result, hbm_width
from neuroncore_rtl.run.settings import HBM_OPTIONS, ORDER, RECORDED, SEED, Settings, check_room, choice, refusals
from neuroncore_rtl.spec.config import PRESETS, preset_named
from neuroncore_rtl.spec.formats import FP32, INT8, MATMUL_FORMATS, Format, format_named
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import collective_queue
from neuroncore_rtl.spec.isa.collective import CollectiveKind, Group
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.tests.kernels.products import ideal_cycles
from neuroncore_rtl.tb.tests.links import options as variables
from neuroncore_rtl.tb.tests.links.collective import ring_bound
from neuroncore_rtl.tb.tests.scenario import Scenario

__all__ = ["TEST", "error_shares", "expected_result"]

_FORMATS = [fmt.name for fmt in MATMUL_FORMATS if fmt is not INT8]


def expected_result(x: np.ndarray, w: np.ndarray, fmt: Format, rows: int, shards: Sequence[Shard]) -> np.ndarray:
    """Return Y by equations, FP32 codes [M, N]; x and w are codes of `fmt`, and an array has `rows` rows."""
    ranks, depth = len(shards), w.shape[0]
    parts = [slice(rank * depth // ranks, (rank + 1) * depth // ranks) for rank in range(ranks)]
    partial = np.stack([golden.matrix_product(x[:, part], w[part], fmt, rows).reshape(-1) for part in parts])
    queue = collective_queue(shards[0].program.config)
    strips = [[e.instruction for e in shard.program.entries if e.queue == queue] for shard in shards]
    result, done = np.zeros(partial.shape[1], np.uint32), 0
    for instructions in zip(*strips, strict=True):
        part = slice(done, done + instructions[0].count)
        result[part] = reduce_blocks(partial[:, part], list(instructions))
        done = part.stop
    return result.reshape(len(x), w.shape[1])


def error_shares(y: np.ndarray, x: np.ndarray, w: np.ndarray, fmt: Format, ranks: int) -> tuple[float, float]:
    """Return the largest errors relative to the largest result, and to the bound of the hardware's FP32 additions."""
    left, right = (decode(codes, fmt).astype(np.float64) for codes in (x, w))
    exact, magnitudes = left @ right, np.abs(left) @ np.abs(right)
    error = np.abs(decode(y, FP32).astype(np.float64) - exact)
    additions = w.shape[0] * (4 if fmt is FP32 else 1) + ranks
    allowed = ((1 + 2.0**-24) ** additions - 1) * magnitudes
    return float(error.max() / np.abs(exact).max()), float((error / allowed).max())


def _images(
    instance: Instance, group: Group, x: np.ndarray, w: np.ndarray, fmt: Format, settings: Settings, *, reduce: bool
) -> tuple[list[Image], list[Shard]]:
    """Return the images of all cores, idle ones outside the group, and the shards of the ranks."""
    how = {"fmt": fmt, "strips": settings.strips, "reduce": reduce, "order": settings.order}
    with refusals():
        shards = tensor_parallel_programs(instance, group, x, w, **how)
    images = {core: shard.image for core, shard in zip(group.cores, shards, strict=True)}
    idle = build_image(collectives_program(instance.core, [], 0))
    return [images.get(core, idle) for core in range(instance.cores)], shards


def _jobs(settings: Settings) -> Iterator[ImageJob]:
    core = preset_named(settings.preset)
    instance = variables.instance_of(Settings({**settings.values, "TARGET": "core"}))
    errors = variables.share_of(settings)
    (group,) = variables.groups_of(instance, settings.cores, 1, 1)
    fmt = format_named(settings.dtype)
    m, k, n = settings.m, settings.k, settings.n
    check_room((m * k + k * n) * fmt.bits // 8 + 4 * m * n)
    rng = np.random.default_rng(settings.seed)
    x, w = (
        stimulus.ordinary_codes(rng, fmt, rows * columns).reshape(rows, columns) for rows, columns in ((m, k), (k, n))
    )
    behaviour = replace(hbm_of(settings), rate=0, port_rate=256 * settings.bandwidth // core.hbm_ports)
    for reduce, own in ((True, {"name": ""}), (False, {"name": "alone", "pictures": False})):
        with progress("making the programs"):
            images, shards = _images(instance, group, x, w, fmt, settings, reduce=reduce)
        given = {"behaviour": behaviour, "errors": errors, "core": settings.core} | own
        yield ImageJob(machine=instance, images=images, subject=(group, x, w, shards), **given)


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    whole, without = results
    instance, outcome = whole.job.instance, whole.outcome
    group, x, w, shards = whole.job.subject
    fmt, (m, k, n) = format_named(settings.dtype), (settings.m, settings.k, settings.n)
    with progress("golden product"):
        expected = expected_result(x, w, fmt, instance.core.rows, shards)
    found = [
        np.ascontiguousarray(shard.y.elements(whole.hbm[core])).view(np.uint32)
        for core, shard in zip(group.cores, shards, strict=True)
    ]
    relative, allowed = error_shares(found[0], x, w, fmt, group.ranks)
    cycles, alone = whole.cycles, without.cycles
    stored, stored_alone = _stored(whole), _stored(without)
    tail = ((cycles - stored) - (alone - stored_alone)) / alone
    far = f"the result is {allowed:.3g} times as far from float64's as rounding allows"
    columns = [outcome.parts[c].counters["tensor"]["columns"] for c in group.cores]
    return Report(
        names=("with the all-reduces", "without"),
        compared=sum(result.size for result in found),
        mismatches=sum(int((result != expected).sum()) for result in found),
        cycles=cycles,
        ideal_cycles=-(-ideal_cycles(m, k, n, fmt, instance.core) // group.ranks),
        rows={
            "shape": f"[{m}, {k}] x [{k}, {n}] {fmt.name}, K on {group.ranks} cores, {settings.strips} strips",
            "cycles_without_all_reduce": alone,
            "cost_of_all_reduce": Share(cycles / alone - 1),
            "of_which": {"products_stored_later": Share(stored / stored_alone - 1), "last_sums": Share(tail)},
            "roofline": _roofline(instance, group, m, k, n, fmt, settings.bandwidth),
            "array_busy": Share(np.mean(columns) / cycles),
            "error": {"of_largest_result": relative, "of_what_rounding_allows": Share(allowed)},
            "core": instance.core.named,
            **whole.link_summary,
            "simulated_cycles_per_second": round(outcome.counters["simulated"] / outcome.seconds),
            **whole.files,
        },
        failures=() if allowed <= 1 else [far],
        details={"links": link_rows(whole.links)},
    )


def _stored(done: Result) -> int:
    """Return the cycle in which the last record other than a collective is retired."""
    queue = collective_queue(done.job.config)
    events = (event for run in done.outcome.parts.values() for event in run.events)
    return max(event.retired or 0 for event in events if event.queue != queue)


def _roofline(
    instance: Instance, group: Group, m: int, k: int, n: int, fmt: Format, bandwidth: int
) -> dict[str, object]:
    """Return the cycles of a core's array, of its HBM and of the links, with each byte moved once."""
    array = -(-ideal_cycles(m, k, n, fmt, instance.core) // group.ranks)
    product = 4 * m * n
    moved = (m * k + k * n) * fmt.bits // 8 // group.ranks + 3 * product  # stored; read and written by the all-reduce
    needed = {
        "array": array,
        "hbm": -(-moved // hbm_width(instance.core, bandwidth)),
        "links": ring_bound(instance, CollectiveKind.ALL_REDUCE, group, product, product),
    }
    return {"bound": max(needed, key=needed.__getitem__), **needed}


TEST = Scenario(
    name="tensor_parallel",
    summary="a linear layer with its weights divided among whole cores, products added on the links meanwhile",
    options=(
        *(option for option in variables.INSTANCE_OPTIONS if option.name not in ("INSTANCE", "CHIPS")),
        shared.integer("CHIPS", 2, "chips of two cores", 2, 64),
        variables.CORES,
        choice("PRESET", "tiny", "named configuration of a core", PRESETS),
        shared.integer("M", 64, "rows of X and Y", 1, 1 << 16),
        shared.integer("K", 128, "columns of X, rows of W, divided among the cores", 1, 1 << 16),
        shared.integer("N", 64, "columns of W and Y", 1, 1 << 16),
        shared.integer("STRIPS", 4, "strips of Y, each with an all-reduce", 1, 4096),
        shared.dtype_option(_FORMATS),
        variables.ERRORS,
        ORDER,
        SEED,
        *HBM_OPTIONS,
        *RECORDED[:-1],
        variables.CORE,
        RECORDED[-1],
    ),
    jobs=_jobs,
    rows=_rows,
)
