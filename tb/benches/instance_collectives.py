"""A workload of collectives on whole cores: each core's list becomes the image that it boots, and nobody else moves
anything. What comes of it has the form of a run on the engines alone, so that the same TESTs tell of both."""

from neuroncore_rtl.kernels.library.collectives import collectives_program
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import collective_queue
from neuroncore_rtl.tb.benches.collective_execution import Executed, failures_of
from neuroncore_rtl.tb.benches.instance_bench import execute_images
from neuroncore_rtl.tb.harness.collective_run import Ending, Event, Outcome
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.harness.instance_run import InstanceOutcome
from neuroncore_rtl.tb.sim.settings import Settings
from neuroncore_rtl.tb.stimulus.collective_programs import PAGE, Workload

__all__ = ["collective_images", "engines_of", "execute_on_cores"]


def collective_images(instance: Instance, workload: Workload) -> list[Image]:
    """Return the image of each core, behind the data of the workload; a core without a list has nothing to do."""
    base = -(-workload.memories.shape[1] // PAGE) * PAGE
    return [
        build_image(collectives_program(instance.core, workload.lists.get(core, []), base))
        for core in range(instance.cores)
    ]


def engines_of(instance: Instance, workload: Workload, outcome: InstanceOutcome) -> Outcome:
    """Return what the collective engines did while all cores ran, as if they had been alone; the memories are those
    that the workload is about. Errors are those of the cores, and not told again."""
    queue = collective_queue(instance.core)
    events = [
        [Event(core, event.issued, event.retired) for event in run.events if event.queue == queue]
        for core, run in enumerate(outcome.runs)
    ]
    retired = [[event.retired for event in found if event.retired is not None] for found in events]
    ending = Ending.RETIRED
    if outcome.gave_up:
        ending = Ending.LIMIT
    elif any(run.error is not None for run in outcome.runs):
        ending = Ending.ERROR
    elif any(len(retired[core]) < len(listed) for core, listed in workload.lists.items()):
        ending = Ending.DEAD if outcome.dead else Ending.STUCK
    return Outcome(
        ending=ending,
        cycles=max((cycle for found in retired for cycle in found), default=0),
        taken=list(map(len, events)),
        retired=list(map(len, retired)),
        faults={},
        counters=[run.counters["collective"] for run in outcome.runs],
        dead=outcome.dead,
        disturbed=outcome.disturbed,
        links=outcome.links,
        events=events,
        memories=outcome.memories[:, : workload.memories.shape[1]],
        seconds=outcome.seconds,
        samples=outcome.samples,
    )


def execute_on_cores(
    instance: Instance,
    workload: Workload,
    settings: Settings,
    label: str,
    *,
    behaviour: Hbm,
    errors: float = 0.0,
    pictures: str | None = None,
) -> Executed:
    """Run a workload on the cores of an instance and on golden, and compare all memories byte for byte.

    A core starts after the delay before its first collective; the other delays are as long as a record takes.

    Arguments:
        instance, workload, settings, label, behaviour, errors, pictures: as of
        `tb.benches.collective_execution.execute`.
    """
    delays = [workload.delays[core][0] if workload.delays.get(core) else 0 for core in range(instance.cores)]
    done = execute_images(
        instance,
        collective_images(instance, workload),
        settings,
        label,
        behaviour=behaviour,
        data=workload.memories,
        delays=delays,
        errors=errors,
        pictures=pictures,
    )
    outcome = engines_of(instance, workload, done.outcome)
    begin = min((event.taken for events in outcome.events for event in events), default=0)
    dead = [f for f in failures_of(instance, workload, outcome) if f not in done.failures]
    return Executed(
        outcome=outcome,
        cycles=outcome.cycles - begin,
        compared=done.compared,
        mismatches=done.mismatches,
        failures=(*done.failures, *dead),
        files=done.files,
        links=done.links,
        link_summary=done.link_summary,
    )
