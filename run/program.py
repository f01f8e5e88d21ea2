"""`run`: executes a program, a kernel or an image on a target."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import islice

from neuroncore_rtl.golden.core import CoreOutcome
from neuroncore_rtl.kernels.control import ROUNDS_CODE
from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run.arrays import Inputs, contents
from neuroncore_rtl.run.check.image_failures import LISTED, explain_fault, row_beyond
from neuroncore_rtl.run.check.unwritten import find_unwritten
from neuroncore_rtl.run.harness.hbm import Hbm, hbm_of
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.job import Expected, ImageJob
from neuroncore_rtl.run.page.page import write_page
from neuroncore_rtl.run.page.parts import collect_parts
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import (
    BOARD_OPTIONS,
    RUN_OPTIONS,
    Command,
    Settings,
    UsageError,
    check_room,
    choice,
    machine_of,
    unknown,
)
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.targets import TARGET_VARIABLES, Target, execute, target_of
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.isa import Storage

__all__ = ["PRESET", "ProgramFailed", "ProgramJob", "program_job", "run"]

Kernel = Callable[[Program], object]
"""A function that appends instructions to a new program."""

PRESET = "small"
"""Default machine of a kernel."""

_RUN = Command(
    name="run",
    summary="a program",
    options=(
        choice("TARGET", "rtl", "the target", ("rtl", "golden", "model", "board")),
        choice("ORDER", None, "order of the instructions of a queue", ORDERS),
        *RUN_OPTIONS,
        *BOARD_OPTIONS,
    ),
    run=lambda settings: 0,
)


_VARIABLES = [option.name for option in _RUN.options if option.name != "TARGET"]


class ProgramFailed(RuntimeError):
    """A program that failed; the message says where and why, a sentence per line.

    For a row index out of range, `beyond` is the row's first element, and the number of elements of the tensor.
    """

    def __init__(self, message: str, beyond: tuple[int, int] | None = None):
        super().__init__(message)
        self.beyond = beyond


def run(
    program: Program | Kernel | Image,
    inputs: Inputs | None = None,
    *,
    on: str | Target = "rtl",
    preset: str | Config | None = None,
    **variables: int | str | None,
) -> Result:
    """Run a program; return the contents of HBM, the cycles and their causes.

    The first run of a configuration builds its simulator, in a minute or more; stderr shows the progress.

    Arguments:
        program: a program; a kernel, that is, a function that appends to a new program of the preset; or an image.
        inputs: initial contents of tensors in HBM, by the tensors or their names; default 0. Numbers are rounded to the
            tensor's format, to nearest even; unsigned integers of the format's size are its codes.
        on: "rtl", simulated and compared with golden byte for byte; "golden", the faster numpy model; "model", golden
            with cycles from the timing model; "board", a real or simulated board; or a `Target`.
        preset: the machine of a kernel, "tiny" to "full" or a `Config`; default "small"; a program has a machine.
        variables: those of `make sim` in small letters: parameters of the machine, such as rows and hbm_ports; order;
            latency, bandwidth and stall of HBM; seed, sim, lanes, waves, depth; profile=1 writes a profile
            (`run.view.profile`); port and baud of a board.

    Raises:
        ValueError: if an argument is not valid, or the kernel is refused.
        ProgramFailed: if the program reports an error, does not end, has races, or reads on-chip bytes before it writes
            them.
        MissingTool, BuildFailed, SimulationFailed: if this computer cannot simulate.
    """
    if not isinstance(on, str | Target):
        raise UsageError(f"on must be the name of a target, or a Target, not {on!r}")
    if "target" in variables:
        raise UsageError("the target of a run is its argument `on`, not `target`")
    machine, others = machine_of(PRESET if preset is None else preset, variables)
    has_machine = preset is not None or len(others) < len(variables)
    for name in others:
        if name.upper() not in _VARIABLES:
            raise unknown("a variable of run", name, [*map(str.lower, _VARIABLES), *Config.RANGES])
    given = {name.upper(): int(value) if isinstance(value, bool) else value for name, value in others.items()}
    given |= {"TARGET": on} if isinstance(on, str) else {}
    settings = _RUN.settings(f"{name}={value}" for name, value in given.items() if value is not None)
    target, name = target_of(settings.some(TARGET_VARIABLES)) if isinstance(on, str) else on, "program"
    if isinstance(program, Image):
        if inputs or has_machine or settings.order:
            raise UsageError("inputs, the machine and order must not be given for an image, which has them")
        config, made = program.config, None
    else:
        if not isinstance(program, Program):
            if not callable(program):
                raise UsageError(f"a program must be a Program, a kernel or an Image, not {program!r}")
            kernel, program = program, Program(machine, order=settings.order or Program.order)
            name = re.sub(r"\W+", "", getattr(kernel, "__name__", name))
            kernel(program)
        elif has_machine and machine != program.config:
            raise UsageError(f"the machine must be the program's, {program.config}, not {machine}")
        elif settings.order and settings.order != program.order:
            raise UsageError(f"ORDER must be the program's, {program.order}, not {settings.order}")
        if target.profile and not program.entries:
            raise UsageError("PROFILE must be 0 for a program without instructions, not 1")
        config, made = program.config, program
    order = settings.order if made is None else made.order
    name = _file_name(f"run-{name}", config, target, {**settings.values, "ORDER": order or Program.order})
    with collect_parts() as parts:
        result = execute(program_job(program, inputs or {}, name, hbm_of(settings)), target)
    if parts is not None:
        report = Report(
            test=name, settings={**settings.values, "TARGET": target.name, "ORDER": order}, rows=result.rows,
            cycles=result.cycles, compared=result.compared, mismatches=result.mismatches, failures=result.failures,
            modelled=not target.compares, config=config,
        )  # fmt: skip
        result = replace(result, files={**result.files, "report": display_path(write_page(report, parts))})
    if result.failures:
        fault = next((part.error for part in result.outcome.parts.values()), None) if result.outcome else None
        raise ProgramFailed("\n".join(result.failures), row_beyond(fault, result.job.memories[0], config))
    return replace(result, program=made)


def _file_name(name: str, config: Config, on: Target, values: Mapping[str, object]) -> str:
    """Return the name of a run's files: `name`, and what differs from the defaults, for the machine from a preset."""

    def changes(preset: str) -> dict[str, object]:
        usual = PRESETS[preset]
        pairs = ((name, getattr(config, name)) for name in names)
        return {name.upper(): value for name, value in pairs if value != getattr(usual, name)}

    names = [one.name for one in fields(Config)]

    preset = min((PRESET, *PRESETS), key=lambda name: len(changes(name)))
    own = {one.name.upper(): getattr(on, one.name) for one in fields(on)}
    own = {name: value for name, value in own.items() if isinstance(value, int | str)}
    usual = {**_RUN.settings(PRESET=PRESET).values, "ORDER": Program.order, "PROFILE": 0}
    given = {"TARGET": on.name, "PRESET": preset, **changes(preset)}
    return Settings(given | {**values, **given, **own}, {**dict.fromkeys(given), **usual}).file_name(name)


def program_job(program: Program | Image, inputs: Inputs, name: str, behaviour: Hbm) -> "ProgramJob":
    """Return the job of a program or image for a lone core; `inputs`: see `run`, `name`: see `Job`."""
    if not isinstance(program, Image):
        if program.config.cores > 1:
            raise UsageError(f"a program must be of a core that is alone, not of one of {program.config.cores}")
        check_room(program.end(Storage.HBM))
        program = build_image(program, list(contents(inputs, program.space.hbm_tensors)))
    return ProgramJob(machine=program.config, images=[program], behaviour=behaviour, name=name)


@dataclass(frozen=True, kw_only=True)
class ProgramJob(ImageJob):
    """Job of a program that must end its loops, and must write on-chip bytes before it reads them."""

    def golden(self) -> Expected:
        """Return golden's result; ProgramFailed, with the kernel's line, after too many iterations of loops."""
        expected = super().golden()
        (image,), (outcome,) = self.images, expected.outcomes
        if image.flow is not None and outcome.exit_code is not None and outcome.exit_code & ROUNDS_CODE:
            loop = image.flow[outcome.exit_code ^ ROUNDS_CODE].source
            raise ProgramFailed(f"all loops must end within {image.rounds:,} rounds together, but have not ({loop})")
        return expected

    def judge(self, expected: Expected) -> None:
        """Raise ProgramFailed if golden failed, or read bytes before they were written."""
        (outcome,) = expected.outcomes
        if outcome.error is not None:
            where = outcome.error, self.memories[0], self.config
            raise ProgramFailed(explain_fault(*where), row_beyond(*where))
        if outcome.exit_code is None:
            raise ProgramFailed(f"the program must end, but has not after {len(outcome.records):,} records")
        if unwritten := [*self._unwritten(outcome)]:
            raise ProgramFailed("\n".join(unwritten))

    def failures(self, outcome: Outcome, expected: Expected) -> Iterator[str]:
        yield from super().failures(outcome, expected)
        yield from self._unwritten(expected.outcomes[0])

    def _unwritten(self, outcome: CoreOutcome) -> Iterator[str]:
        """Yield a sentence for each of the first reads of unwritten bytes in golden's execution."""
        return map(str, islice(find_unwritten(self.images[0], outcome.records), LISTED))
