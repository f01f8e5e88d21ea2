"""A program of one's own on the RTL, compared with golden, or on golden alone: what `neuroncore_rtl.run.run` does."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from neuroncore_rtl.golden.core import CoreOutcome
from neuroncore_rtl.golden.timing import Prediction
from neuroncore_rtl.kernels.control import ROUNDS_CODE
from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run.arrays import Inputs, contents
from neuroncore_rtl.run.check.image_failures import LISTED, explained, row_beyond
from neuroncore_rtl.run.check.unwritten import find_unwritten
from neuroncore_rtl.run.core import HBM_OPTIONS, busy_cycles, check_room, hbm_of, queue_cycles
from neuroncore_rtl.run.execution import execute
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.images import ImageTask
from neuroncore_rtl.run.modelled import flow_options, predicted
from neuroncore_rtl.run.profiled import refuse_profile, written_profile
from neuroncore_rtl.run.program_result import Result
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import PROFILE, RECORDED, SEED, Command, Settings, UsageError, choice
from neuroncore_rtl.run.sim.vectors import chosen
from neuroncore_rtl.run.view.source_lines import cycles_by_line
from neuroncore_rtl.spec.config import PRESETS, preset_named
from neuroncore_rtl.spec.isa import Storage

__all__ = ["Kernel", "ProgramFailed", "run"]

Kernel = Callable[[Program], object]
"""Appends all of a program to a new one."""

PRESET = "small"
"""For a kernel, unless told: as of `make sim TEST=matmul`."""


class ProgramFailed(RuntimeError):
    """A program did not come to its end as it should; the message says where and why, a sentence a line.

    Arguments:
        beyond: if that is a number in memory, the element that its row would begin at, and the elements that there are.
    """

    def __init__(self, message: str, beyond: tuple[int, int] | None = None):
        super().__init__(message)
        self.beyond = beyond


def run(
    program: Program | Kernel,
    inputs: Inputs | None = None,
    *,
    preset: str | None = None,
    target: str = "rtl",
    **variables: int | str,
) -> Result:
    """Run a program, and return what it left in HBM and how it ran.

    The first run of a configuration builds its simulator, in a minute or more; what is under way is told on stderr.

    Arguments:
        program: what to run; or a kernel, a function that is given a new program of the preset's and appends to it.
        inputs: what tensors in HBM start with, by their names or by themselves: numbers of any type, which are rounded
            to the tensor's format to nearest even, or codes, unsigned integers of the format's size. The others are
            zero.
        preset: the machine, "tiny" to "full": of a kernel "small" unless told, of a program that it was made for.
        target: "rtl", simulated and compared with golden byte for byte; "golden", the numpy model alone, sooner;
            "model", golden, with cycles from the timing model instead of RTL.
        variables: those of `make sim`, in small letters: order of a kernel's instructions, latency, bandwidth and stall
            of HBM, seed, sim, lanes, waves, depth; profile=1 writes a profile (:mod:`run.view.profile`).

    Raises:
        ValueError: if an argument is not valid, or the kernel is refused.
        ProgramFailed: if the program reports an error, does not end, has races, or reads on chip what it has not
            written.
        MissingTool, BuildFailed, SimulationFailed: if the machine cannot simulate.
    """
    settings = _settings({"preset": preset, "target": target, **variables})
    name = "program"
    if not isinstance(program, Program):
        kernel, config = program, preset_named(settings.preset or PRESET)
        program = Program(config, order=settings.order or Program.order)
        name = re.sub(r"\W+", "", getattr(kernel, "__name__", name))
        kernel(program)
    elif settings.preset and preset_named(settings.preset) != program.config:
        raise UsageError(f"PRESET must be that of the program, {program.config}, not {settings.preset!r}")
    elif settings.order and settings.order != program.order:
        raise UsageError(f"ORDER must be that of the program, {program.order}, not {settings.order}")
    if program.config.cores > 1:
        raise UsageError(f"a program must be of a core that is alone, not of one of {program.config.cores}")
    if settings.target == "golden":
        refuse_profile(settings)
        if settings.waves:
            raise UsageError(f"WAVES must be 0 for TARGET=golden, not {settings.waves}")
    if settings.profile and not program.entries:
        raise UsageError("PROFILE must be 0 for a program without instructions, not 1")
    check_room(program.end(Storage.HBM))
    image = build_image(program, list(contents(inputs or {}, program.space.hbm_tensors)))
    profiled = bool(settings.profile)
    task = _Task(machine=program.config, images=[image], behaviour=hbm_of(settings), profiled=profiled)
    on_target = {"rtl": _on_rtl, "golden": _on_golden, "model": _on_model}[settings.target]
    return Result(program=program, target=settings.target, **on_target(task, settings, name))


class _Task(ImageTask):
    """An image whose loops must end, and which must not read on chip what it has not written."""

    def golden(self) -> tuple[Sequence[np.ndarray], list[CoreOutcome]]:
        """Return HBM and the outcome; ProgramFailed if its loops have gone round too often, with the kernel's line."""
        memories, outcomes = super().golden()
        (image,), code = self.images, outcomes[0].exit_code
        if image.flow is not None and code is not None and code & ROUNDS_CODE:
            loop = image.flow[code ^ ROUNDS_CODE].source
            raise ProgramFailed(f"all loops must end within {image.rounds:,} rounds together, but have not ({loop})")
        return memories, outcomes

    def failures(self, outcome: Outcome, expected: Sequence[CoreOutcome]) -> Iterator[str]:
        """Yield what is wrong, a sentence each."""
        yield from super().failures(outcome, expected)
        yield from self.unwritten(expected[0])

    def unwritten(self, expected: CoreOutcome) -> Iterator[str]:
        """Yield what golden read before it was written, a sentence each."""
        return map(str, islice(find_unwritten(self.images[0], expected.records), LISTED))


def _settings(given: Mapping[str, int | str | None]) -> Settings:
    options = (
        choice("PRESET", None, "the machine", PRESETS),
        choice("TARGET", "rtl", "what it runs on", ("rtl", "golden", "model")),
        choice("ORDER", None, "of the instructions of a queue", ORDERS),
        *(SEED, *HBM_OPTIONS, *RECORDED, PROFILE),
    )
    words = {name.upper(): int(value) if isinstance(value, bool) else value for name, value in given.items()}
    command = Command(name="run", summary="a program of one's own", options=options, run=run)
    return command.settings(f"{name}={value}" for name, value in words.items() if value is not None)


def _on_rtl(task: _Task, settings: Settings, name: str) -> dict[str, object]:
    """Return the fields of a result of the RTL."""
    label = f"run-{name}-{task.config.rows}x{task.config.columns}-{settings.sim}"
    with chosen(settings.lanes):
        done = execute(task, settings, label, pictures=label)
    if done.failures:
        fault = done.outcome.parts[0].error
        raise ProgramFailed("\n".join(done.failures), row_beyond(fault, task.memories[0], task.config))
    outcome = done.outcome.parts[0]
    queues = queue_cycles(outcome, task.config)
    return {
        "memory": done.outcome.memories["hbm"][0],
        "cycles": done.cycles,
        "utilisation": {engine: busy / done.cycles for engine, busy in busy_cycles(outcome).items()},
        "stalls": {queue: {c: n for c, n in counts.items() if c != "executing"} for queue, counts in queues.items()},
        "compared": done.compared,
        "mismatches": done.mismatches,
        "lines": cycles_by_line(
            task.images[0], ((event.address, event.issued, event.retired) for event in outcome.events), done.cycles
        ),
        **{file: Path(path).absolute() for file, path in done.files.items()},
        **_profiled(settings, label, task, outcome),
    }


def _on_golden(task: _Task, settings: Settings, name: str) -> dict[str, object]:
    """Return the fields of a result of golden."""
    return {"memory": _golden(task)[0]}


def _golden(task: _Task) -> tuple[np.ndarray, CoreOutcome]:
    """Return HBM and the outcome of a run on golden, which came to its end."""
    with progress("golden"):
        (memory,), (outcome,) = task.golden()
    if outcome.error is not None:
        where = outcome.error, task.memories[0], task.config
        raise ProgramFailed(explained(*where), row_beyond(*where))
    if outcome.exit_code is None:
        raise ProgramFailed(f"the program must end, but has not after {len(outcome.records):,} records")
    if unwritten := [*task.unwritten(outcome)]:
        raise ProgramFailed("\n".join(unwritten))
    return memory, outcome


def _on_model(task: _Task, settings: Settings, name: str) -> dict[str, object]:
    """Return the fields of a result whose cycles the timing model has worked out."""
    (image,) = task.images
    memory, outcome = _golden(task)
    found = predicted(image, settings, **flow_options(image, outcome.loaded))
    busy = {engine: count / found.cycles for engine, count in found.busy.items()}
    label = f"run-{name}-{task.config.rows}x{task.config.columns}"
    copying = max(share for engine, share in busy.items() if engine.startswith("dma"))
    engines = {engine: share for engine, share in busy.items() if not engine.startswith("dma")}
    return {
        "memory": memory,
        "cycles": found.cycles,
        "utilisation": engines | {"dma": copying},
        "stalls": {queue: causes for queue, causes in found.waits.items() if any(causes.values())},
        "lines": cycles_by_line(image, ((one.address, one.issued, one.retired) for one in found.records), found.cycles),
        **_profiled(settings, label, task, found),
    }


def _profiled(settings: Settings, label: str, task: ImageTask, found: Outcome | Prediction) -> dict[str, object]:
    """Return the fields of a result that tell of its profile, if there is to be one."""
    written = written_profile(settings, label, task.images[0], found)
    if written is None:
        return {}
    directory, figures = written
    run = figures.run
    causes = {cause.name.lower(): count for cause, count in figures.stalls[run.queue_name(run.busiest)].items()}
    return {"profile": directory.absolute(), "busiest": run.queue_name(run.busiest), "causes": causes}
