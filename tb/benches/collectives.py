"""TEST=collectives: random collectives of random groups of cores, every byte of every core's HBM against golden.

Each core executes its part of them one after the other without a reset, and those of groups that have no core in common
are under way at once. They run in batches; each has an HBM and wires of its own temper. The picture and the timeline
are of the first batch.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.benches.collective_options import ERRORS, INSTANCE_OPTIONS, instance_of, share_of
from neuroncore_rtl.tb.benches.execution import Executed, execute
from neuroncore_rtl.tb.benches.workloads import TARGET_OPTIONS, span_of, target_label, workload_task
from neuroncore_rtl.tb.check.link_table import link_summary, link_table
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.sim.report import Report, progress
from neuroncore_rtl.tb.sim.settings import DEPTH, SEED, SIM, WAVES, Bench, Option, Settings
from neuroncore_rtl.tb.stimulus.collective_programs import Workload, random_workload

__all__ = ["BENCH", "random_behaviour"]

BATCH = 50
"""Collectives of a simulation."""


def random_behaviour(rng: np.random.Generator) -> Hbm:
    """Return an HBM of some temper."""
    return Hbm(
        latency=int(rng.choice([1, 8, 64, 150])),
        gap=int(rng.choice([0, 0, 5])),
        port_rate=256 * int(rng.choice([0, 0, 4])),
        stall=int(rng.choice([0, 0, 40, 160])),
        seed=int(rng.integers(1, 1 << 31)),
    )


@dataclass
class _Totals:
    """What was run, summed up."""

    kinds: Counter = field(default_factory=Counter)
    ranks: set = field(default_factory=set)
    sizes: Counter = field(default_factory=Counter)
    instructions: int = 0
    cycles: int = 0
    seconds: float = 0.0
    compared: int = 0
    mismatches: int = 0
    disturbed: int = 0
    together: int = 0
    failures: list[str] = field(default_factory=list)
    links: list[Counter] = field(default_factory=list)
    dead: set[int] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)

    def add(self, instance: Instance, workload: Workload, done: Executed) -> None:
        """Add what became of a batch."""
        outcome, links = done.outcome, done.outcome.links
        _, cycles = span_of(instance, outcome)
        self.kinds.update(issue.kind.name.lower() for issue in workload.issues)
        self.ranks.update(issue.group.ranks for issue in workload.issues)
        counts = [issue.count for issue in workload.issues if issue.kind != CollectiveKind.BARRIER]
        self.sizes.update(10 ** (len(str(count)) - 1) for count in counts)
        self.instructions += sum(map(len, workload.lists.values()))
        self.cycles += cycles
        self.seconds += outcome.seconds
        self.compared += done.compared
        self.mismatches += done.mismatches
        self.disturbed += sum(links.disturbed)
        self.links = self.links or [Counter() for _ in links.counters]
        for link, counters in zip(self.links, links.counters, strict=True):
            link.update(counters)
        self.dead.update(links.dead)
        self.files = {**done.files, **self.files}
        busy = sum(part.counters["collective"]["busy"] for part in outcome.parts.values())
        self.together = max(self.together, round(busy / max(cycles, 1)))


def _run(settings: Settings) -> Report:
    instance, errors = instance_of(settings), share_of(settings)
    totals = _Totals()
    label = target_label(settings)
    label += f"{instance.chips}-{settings.topology}-{instance.link_bytes}x{settings.link_latency}-{settings.sim}"
    for first in range(0, settings.count, BATCH):
        rng = np.random.default_rng((settings.seed, first))
        with progress(f"collectives from {first}: making them"):
            workload = random_workload(rng, instance, min(BATCH, settings.count - first), settings.bytes)
        behaviour = random_behaviour(rng)
        pictures = f"collectives-{label}" if first == 0 else None
        task = workload_task(instance, workload, settings, behaviour=behaviour, errors=errors)
        done = execute(task, settings, "collectives", pictures=pictures)
        totals.add(instance, workload, done)
        totals.failures += [f"collectives from {first}: {failure}" for failure in done.failures]
        if done.failures or done.mismatches:
            totals.failures.append(f"collectives from {first}: {done.mismatches} bytes differ; HBM was {behaviour}")
    links = link_table(instance, totals.links, totals.cycles, totals.dead)
    return Report(
        test="collectives",
        label=label,
        settings=dict(settings.values),
        compared=totals.compared,
        mismatches=totals.mismatches,
        extra={
            "collectives": dict(sorted(totals.kinds.items())),
            "ranks": f"{min(totals.ranks)} to {max(totals.ranks)}",
            "elements_from": {f"{size:,}": totals.sizes[size] for size in sorted(totals.sizes)},
            "instructions": totals.instructions,
            "total_cycles": totals.cycles,
            "cores_busy": f"{totals.together} of {instance.cores} on average, in the busiest batch",
            **link_summary(instance, links, totals.disturbed),
            "simulated": f"{totals.cycles / max(totals.seconds, 1e-9):,.0f} cycles a second",
            **totals.files,
        },
        failures=tuple(totals.failures),
        details={"links": links},
    )


BENCH = Bench(
    name="collectives",
    summary="random collectives of random groups one after the other, every byte of every core's HBM against golden",
    options=(
        Option(name="COUNT", type=int, default=100, help="collectives", minimum=1, maximum=1_000_000),
        Option(
            name="BYTES",
            type=int,
            default=8192,
            help="bytes of a rank's src or dst at most",
            minimum=4096,
            maximum=1 << 22,
        ),
        *INSTANCE_OPTIONS,
        *TARGET_OPTIONS,
        ERRORS,
        SEED,
        SIM,
        WAVES,
        DEPTH,
    ),
    run=_run,
)
