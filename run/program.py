"""`run`: a program, a kernel or an image on any target."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from neuroncore_rtl.golden.core import CoreOutcome
from neuroncore_rtl.kernels.control import ROUNDS_CODE
from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run.arrays import Inputs, contents
from neuroncore_rtl.run.check.image_failures import LISTED, explained, row_beyond
from neuroncore_rtl.run.check.unwritten import find_unwritten
from neuroncore_rtl.run.execute import execute
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.job import Expected
from neuroncore_rtl.run.jobs import ImageJob
from neuroncore_rtl.run.options import BOARD_OPTIONS, HBM_OPTIONS, check_room, hbm_of, target_of
from neuroncore_rtl.run.result import ProgramResult
from neuroncore_rtl.run.settings import PROFILE, RECORDED, SEED, Command, Settings, UsageError, choice
from neuroncore_rtl.run.targets.target import Target
from neuroncore_rtl.spec.config import PRESETS, Config, preset_named
from neuroncore_rtl.spec.isa import Storage

__all__ = ["PRESET", "ProgramFailed", "ProgramJob", "program_job", "run"]

Kernel = Callable[[Program], object]
"""Appends all of a program to a new one."""

PRESET = "small"
"""The machine of a kernel unless one is given: as of `make sim TEST=matmul`."""


class ProgramFailed(RuntimeError):
    """A program did not end as it should; the message says where and why, a sentence a line.

    Arguments:
        beyond: if a number in memory is beyond its tensor, the first element of its row, and the number of elements.
    """

    def __init__(self, message: str, beyond: tuple[int, int] | None = None):
        super().__init__(message)
        self.beyond = beyond


def run(
    program: Program | Kernel | Image,
    inputs: Inputs | None = None,
    *,
    on: str | Target = "rtl",
    preset: str | None = None,
    **variables: int | str,
) -> ProgramResult:
    """Run a program, and return the contents of HBM, its cycles and where they were spent.

    The first run of a configuration builds its simulator, in a minute or more; progress is shown on stderr.

    Arguments:
        program: the program; a kernel, a function that appends to a new program of the preset; or an image of a
        program. inputs: first contents of tensors in HBM, by their names or by themselves: numbers of any type, which
        are rounded
            to the tensor's format to nearest even, or codes, unsigned integers of the format's size. Others are zero.
        on: "rtl", simulated and compared with golden byte for byte; "golden", the numpy model alone, sooner; "model",
            golden, with cycles from the timing model instead of RTL; "board", a board or a simulated one; or a target.
        preset: the machine, "tiny" to "full": of a kernel "small" unless given, of a program that of the program.
        variables: those of `make sim`, in small letters: order of a kernel's instructions, latency, bandwidth and stall
            of HBM, seed, sim, lanes, waves, depth; profile=1 writes a profile (:mod:`run.view.profile`); port and baud
            of a board.

    Raises:
        ValueError: if an argument is not valid, or the kernel is refused.
        ProgramFailed: if the program reports an error, does not end, has races, or reads on chip what it has not
            written.
        MissingTool, BuildFailed, SimulationFailed: if the machine cannot simulate.
    """
    settings = _settings({"preset": preset, "target": on if isinstance(on, str) else None, **variables})
    target, name = target_of(settings) if isinstance(on, str) else on, "program"
    if isinstance(program, Image):
        if inputs or preset or settings.order:
            raise UsageError("an image must be run as it is: inputs, preset and order are those it was made with")
        label = _label(name, program.config, target, settings)
        return _done(
            ProgramJob(
                machine=program.config, images=[program], behaviour=hbm_of(settings), name=label, pictures=label
            ),
            None,
            target,
            settings,
        )
    if not isinstance(program, Program):
        kernel, config = program, preset_named(settings.preset or PRESET)
        program = Program(config, order=settings.order or Program.order)
        name = re.sub(r"\W+", "", getattr(kernel, "__name__", name))
        kernel(program)
    elif settings.preset and preset_named(settings.preset) != program.config:
        raise UsageError(f"PRESET must be that of the program, {program.config}, not {settings.preset!r}")
    elif settings.order and settings.order != program.order:
        raise UsageError(f"ORDER must be that of the program, {program.order}, not {settings.order}")
    if target.profile and not program.entries:
        raise UsageError("PROFILE must be 0 for a program without instructions, not 1")
    label = _label(name, program.config, target, settings)
    return _done(program_job(program, inputs or {}, label, hbm_of(settings)), program, target, settings)


def _label(name: str, config: Config, target: Target, settings: Settings) -> str:
    label = f"run-{name}-{config.rows}x{config.columns}"
    return f"{label}-{settings.sim}" if target.name == "rtl" else label


def program_job(program: Program, inputs: Inputs, label: str, behaviour: Hbm) -> "ProgramJob":
    """Return the job of a program.

    Arguments:
        program: of a lone core.
        inputs: see `run`.
        label: of the recorded files.
        behaviour: of HBM.

    Raises:
        ValueError: if the inputs do not fit the program, or it is too large to be simulated.
    """
    if program.config.cores > 1:
        raise UsageError(f"a program must be of a core that is alone, not of one of {program.config.cores}")
    check_room(program.end(Storage.HBM))
    image = build_image(program, list(contents(inputs, program.space.hbm_tensors)))
    return ProgramJob(machine=program.config, images=[image], behaviour=behaviour, name=label, pictures=label)


def _done(job: "ProgramJob", program: Program | None, target: Target, settings: Settings) -> ProgramResult:
    """Execute a job, and raise ProgramFailed unless it ended as it should."""
    done = execute(job, target, bandwidth=settings.bandwidth)
    if done.failures:
        fault = done.outcome.parts[0].error if done.outcome else None
        raise ProgramFailed("\n".join(done.failures), row_beyond(fault, job.memories[0], job.config))
    return ProgramResult(**vars(done), program=program)


def _settings(given: Mapping[str, int | str | None]) -> Settings:
    options = (
        choice("PRESET", None, "the machine", PRESETS),
        choice("TARGET", "rtl", "the target", ("rtl", "golden", "model", "board")),
        choice("ORDER", None, "of the instructions of a queue", ORDERS),
        *(SEED, *HBM_OPTIONS, *RECORDED, PROFILE, *BOARD_OPTIONS),
    )
    words = {name.upper(): int(value) if isinstance(value, bool) else value for name, value in given.items()}
    command = Command(name="run", summary="a program", options=options, run=lambda settings: 0)
    return command.settings(f"{name}={value}" for name, value in words.items() if value is not None)


@dataclass(frozen=True, kw_only=True)
class ProgramJob(ImageJob):
    """An image whose loops must end, and which must not read on chip what it has not written."""

    def golden(self) -> Expected:
        """Return HBM and the outcome.

        Raises:
            ProgramFailed: if its loops have too many rounds, with the kernel's line.
        """
        expected = super().golden()
        (image,), (outcome,) = self.images, expected.outcomes
        if image.flow is not None and outcome.exit_code is not None and outcome.exit_code & ROUNDS_CODE:
            loop = image.flow[outcome.exit_code ^ ROUNDS_CODE].source
            raise ProgramFailed(f"all loops must end within {image.rounds:,} rounds together, but have not ({loop})")
        return expected

    def judge(self, expected: Expected) -> None:
        """Raise ProgramFailed unless golden has run to its end and read nothing that was not written."""
        (outcome,) = expected.outcomes
        if outcome.error is not None:
            where = outcome.error, self.memories[0], self.config
            raise ProgramFailed(explained(*where), row_beyond(*where))
        if outcome.exit_code is None:
            raise ProgramFailed(f"the program must end, but has not after {len(outcome.records):,} records")
        if unwritten := [*self._unwritten(outcome)]:
            raise ProgramFailed("\n".join(unwritten))

    def failures(self, outcome: Outcome, expected: Expected) -> Iterator[str]:
        """Yield what is wrong, a sentence each."""
        yield from super().failures(outcome, expected)
        yield from self._unwritten(expected.outcomes[0])

    def _unwritten(self, outcome: CoreOutcome) -> Iterator[str]:
        """Yield what golden read before it was written, a sentence each."""
        return map(str, islice(find_unwritten(self.images[0], outcome.records), LISTED))
