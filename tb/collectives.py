"""TEST=collectives: random collectives of random groups of cores, every byte of every core's HBM against golden.

Each core executes its part of them one after the other without a reset, and those of groups that have no core in common
are under way at once. They run in batches; each has an HBM and wires of its own temper.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from spec.isa.collective import CollectiveKind
from tb.bench import DEPTH, SEED, SIM, WAVES, Bench, Option, Settings
from tb.collective_execution import Executed, execute
from tb.collective_options import ERRORS, INSTANCE_OPTIONS, instance_of, share_of
from tb.collective_programs import Workload, random_workload
from tb.hbm import Hbm
from tb.report import Report, progress

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
    flits: int = 0
    disturbed: int = 0
    retries: int = 0
    together: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, workload: Workload, done: Executed) -> None:
        """Add what became of a batch."""
        outcome = done.outcome
        self.kinds.update(issue.kind.name.lower() for issue in workload.issues)
        self.ranks.update(issue.group.ranks for issue in workload.issues)
        counts = [issue.count for issue in workload.issues if issue.kind != CollectiveKind.BARRIER]
        self.sizes.update(10 ** (len(str(count)) - 1) for count in counts)
        self.instructions += sum(map(len, workload.lists.values()))
        self.cycles += outcome.cycles
        self.seconds += outcome.seconds
        self.compared += done.compared
        self.mismatches += done.mismatches
        self.flits += sum(link["flits"] for link in outcome.links)
        self.disturbed += sum(outcome.disturbed)
        self.retries += sum(link["replays"] for link in outcome.links)
        busy = sum(counters["busy"] for counters in outcome.counters)
        self.together = max(self.together, round(busy / max(outcome.cycles, 1)))


def _run(settings: Settings) -> Report:
    instance, errors = instance_of(settings), share_of(settings)
    totals = _Totals()
    for first in range(0, settings.count, BATCH):
        rng = np.random.default_rng((settings.seed, first))
        with progress(f"collectives from {first}: making them"):
            workload = random_workload(rng, instance, min(BATCH, settings.count - first), settings.bytes)
        behaviour = random_behaviour(rng)
        done = execute(instance, workload, settings, "collectives", behaviour=behaviour, errors=errors)
        totals.add(workload, done)
        totals.failures += [f"collectives from {first}: {failure}" for failure in done.failures]
        if done.failures or done.mismatches:
            totals.failures.append(f"collectives from {first}: {done.mismatches} bytes differ; HBM was {behaviour}")
    return Report(
        test="collectives",
        label=f"{settings.chips}-{settings.topology}-{settings.link_bytes}x{settings.link_latency}-{settings.sim}",
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
            "flits": totals.flits,
            "disturbed_frames": totals.disturbed,
            "retries": totals.retries,
            "simulated": f"{totals.cycles / max(totals.seconds, 1e-9):,.0f} cycles a second",
        },
        failures=tuple(totals.failures),
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
        ERRORS,
        SEED,
        SIM,
        WAVES,
        DEPTH,
    ),
    run=_run,
)
