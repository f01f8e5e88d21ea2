"""TEST=collectives: random collectives of random groups of cores; every byte of HBM must equal golden's."""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from neuroncore_rtl.run.check.link_table import link_rows, link_summary, link_table
from neuroncore_rtl.run.harness.hbm import random_hbm
from neuroncore_rtl.run.job import Job
from neuroncore_rtl.run.report import Report, progress
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import RECORDED, SEED, Settings, integer
from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.stimulus.collective_programs import random_workload
from neuroncore_rtl.tb.tests.links.options import ERRORS, INSTANCE_OPTIONS, TARGET_OPTIONS, instance_of, share_of
from neuroncore_rtl.tb.tests.links.workloads import span_of, workload_job
from neuroncore_rtl.tb.tests.scenario import Scenario

__all__ = ["TEST"]

BATCH = 50  # collectives per simulation

TEMPERS = {"latency": (1, 8, 64, 150), "gap": (0, 0, 5), "port_rate": (0, 0, 4 * 256), "stall": (0, 0, 40, 160)}
"""HBM behaviours to choose from, all with responses in order, which the engines need."""


def _jobs(settings: Settings) -> Iterator[Job]:
    instance, errors = instance_of(settings), share_of(settings)
    for first in range(0, settings.count, BATCH):
        rng = np.random.default_rng((settings.seed, first))
        with progress(f"collectives from {first}: making them"):
            workload = random_workload(rng, instance, min(BATCH, settings.count - first), settings.bytes)
        behaviour = random_hbm(rng, **TEMPERS)
        given = {"behaviour": behaviour, "errors": errors, "subject": (f"collectives from {first}", behaviour)}
        named = {"name": f"from{first}" if first else "", "pictures": not first}
        yield workload_job(instance, workload, settings, **named, **given)


def _rows(settings: Settings, results: Iterable[Result]) -> Report:
    instance = instance_of(settings)
    sums, kinds, sizes, ranks, dead = Counter(), Counter(), Counter(), set(), set()
    carried = [Counter() for _ in range(instance.chips * instance.directions)]
    together, names, files, failures = 0, [], {}, []
    for done in results:
        outcome, workload, (name, behaviour) = done.outcome, done.job.workload, done.job.subject
        _, cycles = span_of(instance, outcome)
        disturbed, instructions = sum(outcome.links.disturbed), sum(map(len, workload.lists.values()))
        sums.update(instructions=instructions, cycles=cycles, seconds=outcome.seconds, disturbed=disturbed)
        kinds.update(issue.kind.name.lower() for issue in workload.issues)
        counts = [issue.count for issue in workload.issues if issue.kind != CollectiveKind.BARRIER]
        sizes.update(10 ** (len(str(count)) - 1) for count in counts)
        ranks.update(issue.group.ranks for issue in workload.issues)
        dead.update(outcome.links.dead)
        for link, counters in zip(carried, outcome.links.counters, strict=True):
            link.update(counters)
        busy = sum(part.counters["collective"]["busy"] for part in outcome.parts.values())
        together = max(together, round(busy / max(cycles, 1)))
        files = {**done.files, **files}
        names.append(name)
        if done.failures or done.mismatches:
            failures.append(f"{name}: {done.mismatches} bytes differ; HBM was {behaviour}")
    links = link_table(instance, carried, sums["cycles"], dead)
    return Report(
        names=names,
        rows={
            "collectives": dict(sorted(kinds.items())),
            "ranks": {"fewest": min(ranks), "most": max(ranks)},
            "elements_from": {str(size): sizes[size] for size in sorted(sizes)},
            "instructions": sums["instructions"],
            "total_cycles": sums["cycles"],
            "cores_busy": {"mean_of_busiest_batch": together, "cores": instance.cores},
            **link_summary(instance, links, sums["disturbed"]),
            "simulated_cycles_per_second": round(sums["cycles"] / max(sums["seconds"], 1e-9)),
            **files,
        },
        failures=failures,
        details={"links": link_rows(links)},
    )


TEST = Scenario(
    name="collectives",
    summary="random collectives of random groups, every byte of every core's HBM against golden",
    options=(
        integer("COUNT", 100, "collectives", 1, 1_000_000),
        integer("BYTES", 8192, "largest size of a rank's src or dst, in bytes", 4096, 1 << 22),
        *INSTANCE_OPTIONS,
        *TARGET_OPTIONS,
        ERRORS,
        SEED,
        *RECORDED,
    ),
    jobs=_jobs,
    rows=_rows,
    timed=False,
    streamed=True,
)
