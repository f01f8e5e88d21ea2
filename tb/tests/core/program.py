"""TEST=program: random programs of all engines in batches, each with a random HBM; all memories must equal golden's."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from neuroncore_rtl.kernels.program import Image, Program
from neuroncore_rtl.run.harness.hbm import random_hbm
from neuroncore_rtl.run.job import ALIGNMENT, ImageJob
from neuroncore_rtl.run.report import Report, progress
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import ORDER, SEED, SIM, Settings, configuration_options, integer
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.tb.stimulus.core_programs import CoreChoices, garbled_image, random_core_program
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST", "random_images"]

BATCH = 16  # programs per simulation
OPCODES = (*Opcode, *[Opcode.ACTIVATE] * 5)  # ACTIVATE is frequent, to keep the scalar engine busy

TEMPERS = {
    "latency": (1, 8, 64, 150), "gap": (0, 0, 5), "rate": (0, 0, 4 * 256), "stall": (0, 40, 160),
    "reorder": (0, 100, 200), "interleave": (False, True),
}  # fmt: skip

LONGEST = (32, 300)  # candidates of the largest number of moving columns of a multiplication


def random_images(
    rng: np.random.Generator, config: Config, count: int, instructions: int, order: str = Program.order
) -> list[Image]:
    """Return images of random programs at consecutive addresses; half of them have random unused bits."""
    images, base = [], 0
    for _ in range(count):
        choices = CoreChoices(
            longest=int(rng.choice(LONGEST)),
            sbuf_bytes=int(rng.choice([4096, 4096, 16384])),
            psum_bytes=int(rng.choice([4096, 4096, 8192])),
            elementwise_choices=Choices(opcodes=OPCODES),
        )
        image = random_core_program(rng, config, instructions, choices, base, order).image()
        images.append(garbled_image(rng, image) if rng.integers(2) else image)
        base += -(-len(image.data) // ALIGNMENT) * ALIGNMENT
    return images


def _jobs(settings: Settings) -> Jobs:
    for first in range(0, settings.count, BATCH):
        rng = np.random.default_rng((settings.seed, first))
        with progress(f"programs from {first}: making them"):
            count = min(BATCH, settings.count - first)
            images = random_images(rng, settings.config, count, settings.instructions, settings.order)
        behaviour = random_hbm(rng, **TEMPERS)
        given = {"dump": True, "may_fail": True, "limit": None, "subject": first}
        yield ImageJob(machine=settings.config, images=images, behaviour=behaviour, **given)


def _rows(settings: Settings, results: Iterable[Result]) -> Report:
    config = settings.config
    totals, compared, engines, kinds, names, failures = Counter(), Counter(), Counter(), set(), [], []
    for result in results:
        images = result.job.images
        records = [record for image in images for part in image.records for record in part]
        totals.update(
            programs=len(images),
            core_cycles=sum(part.cycles for part in result.outcome.parts.values()),
            waits=sum(len(record.waits) for record in records),
            races=sum(failure.count("race: ") for failure in result.failures),
        )
        compared.update(result.compared_parts)
        engines.update(record.instruction.engine.name.lower() for record in records)
        kinds.update(record.instruction.name for record in records)
        names.append(f"programs from {result.job.subject}")
        if result.failures or result.mismatches:
            failures += [f"{names[-1]}: {line}" for line in result.differences]
            failures.append(f"{names[-1]}: HBM was {result.job.behaviour}")
    return Report(
        names=names,
        rows={
            "programs": totals["programs"],
            "core_cycles": totals["core_cycles"],
            "bytes_compared": {name.lower(): count for name, count in compared.items()},
            "instructions": dict(engines),
            "kinds_of_instruction": len(kinds),
            "waits_for_semaphores": totals["waits"],
            "races": totals["races"],
            "config": config.named,
        },
        failures=failures,
    )


TEST = Scenario(
    name="program",
    summary="random programs of all engines on the whole core, every byte of HBM, SBUF and PSUM against golden",
    options=(
        integer("COUNT", 32, "programs", 1, 100_000),
        integer("INSTRUCTIONS", 60, "instructions per program", 1, 1000),
        *configuration_options("tiny"),
        ORDER,
        SEED,
        SIM,
    ),
    jobs=_jobs,
    rows=_rows,
    timed=False,
    streamed=True,
)
