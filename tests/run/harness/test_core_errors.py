# amaranth: UnusedElaboratable=no

"""Errors on the core: it stops, reports record, queue and cause, and works after a reset.

Each case is followed by a correct image; in the end all bytes equal golden's, so nothing ran after an error.
"""

from dataclasses import replace

from neuroncore_rtl.run.check.image_failures import explain_fault
from neuroncore_rtl.run.harness import cores, hbm
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.job import ImageJob, join_images
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.isa import Cause, Record
from tests.oracles.copies import word_copy
from tests.run.harness import core_images as images
from tests.run.harness.core_errors import CASES, CONFIG, HBM_END, HEADERS, SEED, ZONE, works

DEVICE = cores.CoreDevice(machine=CONFIG)
BEHAVIOUR = hbm.Hbm(size=HBM_END, slverr=(ZONE, HBM_END), latency=12, stall=20, reorder=60, interleave=True, seed=SEED)
LIMIT = 150_000  # cycles per image, mostly for the dump of on-chip memory


def run_images(images, **options):
    result = execute(ImageJob(machine=CONFIG, images=images, may_fail=True, **options), Rtl())
    return result, [*result.outcome.parts.values()]


def test_every_error_names_its_record_and_the_core_recovers():
    print(f"seed {SEED}")
    slots = iter(works(2 * len(CASES)))
    run, faults = [], {}
    for name, case in CASES.items():
        run.append(case.image(next(slots)))
        faults[name] = case.fault(run[-1])
        run.append(next(slots).finished())
    result, runs = run_images(run, behaviour=BEHAVIOUR, limit=LIMIT, dump=True)
    memory = join_images(run)
    wrong = [*result.failures, *result.differences]
    for (name, case), failed, recovered in zip(CASES.items(), runs[::2], runs[1::2], strict=False):
        message = "no error" if failed.error is None else explain_fault(failed.error, memory, CONFIG)
        print(f"{name}: {message}")
        if failed.error != faults[name]:
            wrong.append(f"{name}: {message}, not {explain_fault(faults[name], memory, CONFIG)}")
        expected = 77 if case.options.get("case") == images.CATCH else 0x4000_0000 | case.cause
        if failed.exit_code != expected:
            wrong.append(f"{name}: the exit code is {failed.exit_code:#x}, not {expected:#x}")
        parts = (isa.queue_name(case.queue, CONFIG), isa.cause_name(case.cause), case.text)
        wrong += [f"{name}: the message lacks {part!r}: {message}" for part in parts if part not in message]
        if (recovered.error, recovered.exit_code, len(recovered.events)) != (None, 0, 11):
            wrong.append(f"{name}: the next image must run, but: {recovered.error}, {recovered.exit_code}")
    assert not wrong, "\n".join(wrong)
    assert result.mismatches == 0 and min(result.compared_parts.values()) > 0
    assert set(result.compared_parts) == {"HBM", "SBUF", "PSUM"}


def test_images_with_a_wrong_header_are_not_booted():
    run = [work.finished() for work in works(2 * len(HEADERS))]
    for number, (word, value) in enumerate(HEADERS):
        data = bytearray(run[2 * number].data)
        data[4 * word : 4 * word + 4] = value.to_bytes(4, "little")
        run[2 * number] = replace(run[2 * number], data=bytes(data))
    result, runs = run_images(run, behaviour=BEHAVIOUR, limit=LIMIT)
    assert (result.failures, result.mismatches) == ((), 0)
    for failed, recovered, (word, value) in zip(runs[::2], runs[1::2], HEADERS, strict=True):
        detail = 0 if value == HBM_END else word  # if HBM ends within the program
        assert failed.error == cores.CoreFault(0, Cause.BOOT, 0, detail)
        assert failed.exit_code is None and not failed.events
        message = explain_fault(failed.error, result.memory, CONFIG)
        assert message == f"BOOT (word {detail} of the image's header is wrong, or it cannot be read)"
        assert (recovered.error, recovered.exit_code) == (None, 0)


def test_traps_of_the_controller_are_golden_s():
    result, (run,) = run_images([images.hand_image(CONFIG, 0, [], case=images.TRAPS)])
    assert (result.failures, result.mismatches) == ((), 0)
    assert run.exit_code == 0
    assert run.console.count("\n") == 31


def test_the_host_interrupts():
    image = images.hand_image(CONFIG, 0, [], case=images.HOST)
    (run,) = run_device(DEVICE, cores.CoreWork(memories=image.memory()[None], host=6000, limit=LIMIT)).parts.values()
    assert (run.exit_code, run.console, run.error) == (0, "host", None)
    assert run.cycles > 6000
    assert run.counters["controller"]["waiting"] > 1000


def test_a_memory_that_does_not_answer_is_reported():
    queues = [(images.DMA1, [Record(instruction=word_copy(0, 4))])]
    run = [images.hand_image(CONFIG, images.SLOT * n, queues, limit=limit) for n, limit in enumerate((1000, 20_000))]
    boots = [image.base for image in run]
    work = cores.CoreWork(memories=join_images(run)[None], boots=boots, behaviour=hbm.Hbm(latency=4000), limit=100_000)
    outcome = run_device(DEVICE, work)
    stuck, right = outcome.parts.values()
    assert stuck.error == cores.CoreFault(images.DMA1, Cause.STUCK, run[0].blocks[0].address, 0)
    assert stuck.exit_code == 0x4000_0000 | Cause.STUCK
    message = explain_fault(stuck.error, outcome.memories["hbm"][0], CONFIG)
    assert message.startswith("dma1, record") and "dma_copy" in message and message.endswith("STUCK")
    assert (right.error, right.exit_code) == (None, 0)
