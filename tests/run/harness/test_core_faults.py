# amaranth: UnusedElaboratable=no

"""Detection of faults of a core by comparison with golden, race detection or the report."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec.isa import RECORD_BYTES, Cause
from tests.run.harness import core_images, faulty_hbm
from tests.run.harness.broken_core import CONFIG, Fault, broken_core

SEED = 13


@cache
def images():
    rng, found, base = np.random.default_rng(SEED), [], 0
    for _ in range(3):
        found.append(core_images.random_image(rng, CONFIG, 60, base))
        base += -(-len(found[-1].data) // 4096) * 4096
    (block,) = (block for block in found[-1].blocks if block.queue == core_images.VECTOR)
    data = bytearray(found[-1].data)
    data[block.address + RECORD_BYTES * (block.count // 2) - found[-1].base] &= ~7
    return found[:2], replace(found[-1], data=bytes(data))


class BrokenJob(ImageJob):
    def device(self, *, waves=False):
        return broken_core()


def run(fault, chosen, *, dump=False):
    print(f"seed {SEED}")
    behaviour = faulty_hbm.FaultyHbm(latency=16, stall=20, seed=SEED, fault=fault)
    job = BrokenJob(machine=CONFIG, images=chosen, behaviour=behaviour, limit=200_000, dump=dump, may_fail=True)
    result = execute(job, Rtl())
    failures = [*result.failures, *result.differences]
    print("\n".join(failures))
    return result, failures


def test_a_core_of_another_shape_without_faults_passes():
    sound, broken = images()
    result, failures = run(Fault.NONE, sound, dump=True)
    assert not failures and set(result.mismatched_parts.values()) == {0}
    result, failures = run(Fault.NONE, [broken])
    assert result.outcome.parts[0].error.cause == Cause.ENGINE
    assert not any("error must be" in failure for failure in failures)


FAULTS = {
    "silent engine": (Fault.SILENT, r"error must be none, not .*(WATCHDOG|STUCK)"),
    "completion dropped": (Fault.DROPPED, r"error must be none, not .*(WATCHDOG|STUCK)"),
    "update lost": (Fault.LOST, r"error must be none, not .*WATCHDOG"),
    "taken twice": (Fault.TWICE, r"must"),
    "swapped bytes": (Fault.SWAPPED, r"RTL \w\w, golden \w\w"),
    "arbitration": (Fault.IGNORED, r"RTL \w\w, golden \w\w"),
    "hasty": (Fault.HASTY, r"race: \w+ \(.*\) .*; .*\(scalar"),
    "wrong address in a report": (Fault.MISPLACED, r"error must be vector, record .*, not vector, record"),
}


@pytest.mark.parametrize(("fault", "said"), FAULTS.values(), ids=FAULTS)
def test_faults_are_noticed(fault, said):
    sound, broken = images()
    _, failures = run(fault, [broken] if fault == Fault.MISPLACED else sound)
    assert any(re.search(said, failure) for failure in failures)


def test_a_write_beside_what_programs_use_is_noticed():
    result, _ = run(Fault.BEYOND, images()[0], dump=True)
    assert result.mismatched_parts["SBUF"] > 0


def test_a_byte_that_differs_beyond_the_images_is_noticed():
    job = ImageJob(machine=CONFIG, images=images()[0], dump=True)
    expected = job.golden()
    memories = {"hbm": expected.memories["hbm"].copy()}
    outcome = Outcome(ending=Ending.FINISHED, cycles=1, memories=memories)
    assert list(job.failures(outcome, expected)) == ["all 3 images must be run, not 0"]
    memories["hbm"][0, job.everything[-1].base] ^= 1
    assert "HBM beyond the images must be golden's, but 1 bytes differ" in job.failures(outcome, expected)
