"""TEST=program: random programs of all engines on the whole core; every byte of HBM, SBUF and PSUM is golden's.

Programs run one after the other in batches. Each batch has an HBM of its own temper: latency, bandwidth, pauses and
answers out of order are drawn at random.
"""

from collections import Counter

import numpy as np

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.run.batch import run_batch
from neuroncore_rtl.run.core import ORDER, random_hbm
from neuroncore_rtl.run.harness.cores import CoreDevice
from neuroncore_rtl.run.report import Report, progress
from neuroncore_rtl.run.settings import SEED, SIM, Command, Settings, configuration_options, integer
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.tb.stimulus.core_programs import CoreChoices, garbled_image, random_core_program
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices

__all__ = ["TEST", "random_images"]

BATCH = 16
"""Programs of a simulation."""

OPCODES = (*Opcode, *[Opcode.ACTIVATE] * 5)
"""Those of the vector engine, and that of the scalar engine often enough to keep it busy."""

TEMPERS = {
    "latency": (1, 8, 64, 150), "gap": (0, 0, 5), "rate": (0, 0, 4 * 256), "stall": (0, 40, 160),
    "reorder": (0, 100, 200), "interleave": (False, True),
}  # fmt: skip
"""What the behaviour of HBM is drawn from."""

LONGEST = (32, 300)
"""Moving columns of a multiplication at most."""

ALIGNMENT = 4096
"""Images start at multiples of this."""


def random_images(
    rng: np.random.Generator, config: Config, count: int, instructions: int, order: str = Program.order
) -> list[Image]:
    """Return images of random programs, one behind the other; in half of them the bits that mean nothing are random."""
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


def _run(settings: Settings) -> Report:
    config = settings.config
    device = CoreDevice(machine=config)
    totals, compared, engines, kinds = Counter(), Counter(), Counter(), set()
    mismatches, failures = 0, []
    for first in range(0, settings.count, BATCH):
        rng = np.random.default_rng((settings.seed, first))
        with progress(f"programs from {first}: making them"):
            count = min(BATCH, settings.count - first)
            images = random_images(rng, config, count, settings.instructions, settings.order)
        behaviour = random_hbm(rng, **TEMPERS)
        batch = run_batch(device, images, sim=settings.sim, behaviour=behaviour)
        records = [record for image in images for part in image.records for record in part]
        totals.update(
            programs=len(images),
            core_cycles=sum(run.cycles for run in batch.runs),
            waits_for_semaphores=sum(len(record.waits) for record in records),
            races=sum(map(len, batch.races)),
        )
        compared.update(batch.compared)
        engines.update(record.instruction.engine.name.lower() for record in records)
        kinds.update(record.instruction.name for record in records)
        mismatches += sum(batch.mismatches.values())
        failures += [f"programs from {first}: {failure}" for failure in batch.failures]
        if batch.failures:
            failures.append(f"programs from {first}: HBM was {behaviour}")
    return Report(
        test="program",
        label=f"{settings.preset}-{config.rows}x{config.columns}-{settings.sim}",
        settings=dict(settings.values),
        compared=compared.total(),
        mismatches=mismatches,
        extra={
            "programs": totals["programs"],
            "core_cycles": totals["core_cycles"],
            "bytes_compared": dict(compared),
            "instructions": dict(engines),
            "kinds_of_instruction": len(kinds),
            "waits_for_semaphores": totals["waits_for_semaphores"],
            "races": totals["races"],
            "config": config.named,
        },
        failures=tuple(failures),
    )


TEST = Command(
    name="program",
    summary="random programs of all engines on the whole core, every byte of HBM, SBUF and PSUM against golden",
    options=(
        integer("COUNT", 32, "programs", 1, 100_000),
        integer("INSTRUCTIONS", 60, "instructions of each program", 1, 1000),
        *configuration_options("tiny"),
        ORDER,
        SEED,
        SIM,
    ),
    run=_run,
)
