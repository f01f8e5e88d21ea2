# amaranth: UnusedElaboratable=no

"""Images with flipped bits: the core always ends them, and writes only bytes that their records name."""

import numpy as np
import pytest

from neuroncore_rtl.run.check.image_failures import explain_fault
from neuroncore_rtl.run.harness.cores import CoreDevice, CoreWork
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.job import dump_image, join_images
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import Storage
from neuroncore_rtl.tb.stimulus.core_illegal import Writable, flipped_image
from tests.run.harness.core_images import random_image

CONFIG = PRESETS["tiny"]
SEED = 60

PLACE = 0x20000  # bytes of HBM for each image


def flipped(rng, count):
    for number in range(count):
        image = random_image(rng, CONFIG, 12, number * PLACE)
        assert len(image.data) <= PLACE
        yield flipped_image(rng, image, 1 if number % 4 else 4)


@pytest.mark.parametrize("count", (16, pytest.param(160, marks=pytest.mark.slow)))
def test_whatever_records_say_the_core_ends_and_writes_only_what_they_name(count):
    print(f"seed {SEED}")
    programs = list(flipped(np.random.default_rng(SEED + count), count))
    dump, places = dump_image(CONFIG, count * PLACE)
    images = [*(program.image for program in programs), dump]
    memory = join_images(images)
    behaviour = Hbm(latency=20, stall=20, reorder=60, size=len(memory), seed=SEED)
    boots = [image.base for image in images]
    work = CoreWork(memories=memory[None], boots=boots, behaviour=behaviour, limit=300_000)
    outcome = run_device(CoreDevice(machine=CONFIG), work)
    runs, (hbm,) = list(outcome.parts.values()), outcome.memories["hbm"]
    wrong = []
    for number, (program, run) in enumerate(zip(programs, runs, strict=False)):
        said = "no error" if run.error is None else explain_fault(run.error, memory, CONFIG)
        code = None if run.error is None else 0x4000_0000 | run.error.cause
        if run.ending == Ending.LIMIT or run.exit_code != (code or 0):
            wrong.append(f"image {number} must end, but: {run}")
        if program.fault is not None and run.error != program.fault:
            wrong.append(f"image {number}: {explain_fault(program.fault, memory, CONFIG)}, not {said}")
    assert not wrong, "\n".join(wrong)
    assert len(runs) == count + 1 and runs[-1].exit_code == 0
    assert sum(program.fault is not None for program in programs) > count / 6

    writable = Writable(CONFIG, dump.base)
    for program in programs:
        for instruction in program.instructions:
            writable.add(instruction)
    kept = hbm[: dump.base] == memory[: dump.base]
    assert (kept | writable.masks[Storage.HBM][0]).all()
    for storage in (Storage.SBUF, Storage.PSUM):
        words = np.ascontiguousarray(places[storage.name].elements(hbm)).view(np.uint8)
        outside = np.argwhere((words != 0) & ~writable.masks[storage])
        assert not len(outside), f"{len(outside)} bytes of {storage.name} are written, the first at {outside[0]}"
