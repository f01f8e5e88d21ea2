"""Benchmark of cores on NeuronLink: the cost of a concurrent all-reduce, and the simulation speed of many cores."""

import numpy as np
from rich.table import Table

from neuroncore_rtl.bench.ways import COLUMNS, cold_build, side_by_side
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.library.tensor_parallel import tensor_parallel_programs
from neuroncore_rtl.kernels.program import Image, Program, build_image
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.job import Expected, ImageJob
from neuroncore_rtl.run.tables import table
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import collective_queue
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, Group, best_chunk
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.tests.kernels.products import ideal_cycles, random_matrix
from neuroncore_rtl.tb.tests.links.collective import ALLREDUCE
from neuroncore_rtl.tb.tests.links.options import instance_of

__all__ = ["instance_tables", "measure_beside", "measure_speed"]

SIZE = 256  # M = K = N of the product that runs at the same time as an all-reduce
REDUCED = 3 << 19  # FP32; it lasts longer than the product
RANKS = (2, 4)  # one core of each chip, or both
BAR = 0.05  # largest slowdown of the product


def _instance(chips: int, preset: str) -> Instance:
    return instance_of(ALLREDUCE.settings([f"CHIPS={chips}", "TARGET=core", f"PRESET={preset}"]))


def _simulate(job: ImageJob, expected: Expected) -> tuple[Outcome, bool]:
    """Run an image on every core; return the outcome, and whether HBM equals golden's and no core has an error."""
    outcome = run_device(job.device(), job.work(1))
    exact = bool((outcome.memories["hbm"] == expected.memories["hbm"]).all())
    return outcome, exact and all((part.exit_code, part.error) == (0, None) for part in outcome.parts.values())


def _beside(instance: Instance, ranks: int) -> list[Image]:
    """Return the cores' images: core 0 multiplies matrices while `ranks` cores (or none) all-reduce other data."""
    config = instance.core
    rng = np.random.default_rng(1)
    a, b = (random_matrix(rng, BF16, SIZE, SIZE) for _ in range(2))
    group = Group(0, instance.cores // ranks, ranks) if ranks else None
    images = []
    for core in range(instance.cores):
        program = Program(config, core=core)
        src, dst = (program.space.hbm(name, FP32, (REDUCED // 4,)) for name in ("src", "dst"))
        if group and core in group.cores:
            count, rank = REDUCED // 4, group.cores.index(core)
            places = {"src": src.address, "dst": dst.address, "chunk": best_chunk(count, ranks)}
            program.append(Collective(kind=CollectiveKind.ALL_REDUCE, group=group, rank=rank, count=count, **places))
        contents = [(src, stimulus.ordinary_codes(rng, FP32, REDUCED // 4))]
        if core == 0:
            left, right = (program.space.hbm(name, BF16, (SIZE, SIZE)) for name in ("a", "b"))
            matmul(program, program.space.hbm("c", FP32, (SIZE, SIZE)), left, right)
            contents += [(left, a.T), (right, b)]
        images.append(build_image(program, contents))
    return images


def measure_beside() -> list[dict[str, object]]:
    """Return the cycles of a product without and with a simultaneous all-reduce, for each number of ranks."""
    instance = _instance(2, "small")
    queue = collective_queue(instance.core)
    rows, alone = [], None
    for ranks in (0, *RANKS):
        job = ImageJob(machine=instance, images=_beside(instance, ranks))
        outcome, exact = _simulate(job, job.golden())
        events = outcome.parts[0].events
        cycles = max(event.retired for event in events if event.queue != queue)
        alone = cycles if alone is None else alone
        collective = [(event.issued, event.retired) for event in events if event.queue == queue]
        took, cost = max((end - begin for begin, end in collective), default=None), cycles / alone - 1
        ideal = ideal_cycles(SIZE, SIZE, SIZE, BF16, instance.core)
        row = {"ranks": ranks, "cycles": cycles, "ideal_cycles": ideal, "all_reduce_cycles": took}
        rows.append(row | {"cost": cost, "bit_exact": exact, "within_bar": cost < BAR})
    return rows


def measure_speed() -> dict[str, object]:
    """Return build time and simulation speed, in each way, of all cores of an instance that share a linear layer."""
    chips, preset = 16, "tiny"
    instance = _instance(chips, preset)
    rng = np.random.default_rng(1)
    depth = 16 * instance.cores
    x, w = (stimulus.ordinary_codes(rng, BF16, 64 * depth).reshape(shape) for shape in ((64, depth), (depth, 64)))
    shards = tensor_parallel_programs(instance, Group(0, 1, instance.cores), x, w, strips=4)
    job = ImageJob(machine=instance, images=[shard.image for shard in shards])
    device, expected = job.device(), job.golden()

    def one_way():
        build = cold_build(lambda vectors: device.verilog(cached=False, vectors=vectors), device.design)
        outcome, exact = _simulate(job, expected)
        cycles = outcome.counters["simulated"]
        return {"cycles": cycles, "bit_exact": exact}, build | {"cycles_per_s": cycles / outcome.seconds}

    return {"chips": chips, "preset": preset} | side_by_side(f"{instance.cores} cores of preset {preset}", one_way)


def instance_tables(beside: list[dict[str, object]], speed: dict[str, object]) -> list[Table]:
    """Return the tables of both benchmarks."""
    product = table(
        f"Whole cores: {SIZE}^3 product in BF16 on one, beside an all-reduce of {REDUCED >> 10} KiB",
        (
            row | {"ranks": row["ranks"] or "none", "took": f"{row['all_reduce_cycles']:,}" if row["ranks"] else "-"}
            for row in beside
        ),
        f"""
        ranks of the all-reduce: {{ranks}} | its cycles: {{took}} | product's cycles: {{cycles:,}}
        ideal: {{ideal_cycles:,}} | cost: {{cost:+.2%}} | below {BAR:.0%}: {{within_bar}} | bit-exact: {{bit_exact}}
        """,
    )
    fast = table(
        "Whole cores of an instance: a linear layer shared by all of them",
        [speed],
        """
        chips: {chips} | preset: {preset} | cycles: {cycles:,} | WAY cycles/s: {WAY[cycles_per_s]:,.0f}
        speed-up: {speed_up:.1f} | bit-exact: {bit_exact}
        """,
    )
    builds = table("Cold builds", [speed], f"chips: {{chips}} | preset: {{preset}} | {COLUMNS}")
    return [product, fast, builds]
