"""Random instructions of the vector or the scalar engine, every byte of both memories against golden."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from neuroncore_rtl.run.elementwise import ElementwiseProgram, expected_memories, work_of
from neuroncore_rtl.run.execution import run_recorded
from neuroncore_rtl.run.harness.engines.elementwise import ElementwiseDevice
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.report import Report, progress
from neuroncore_rtl.run.settings import (
    RECORDED,
    SEED,
    Option,
    Settings,
    UsageError,
    choice,
    configuration_options,
    integer,
)
from neuroncore_rtl.run.view.waves import waveform
from neuroncore_rtl.spec.config import SCALAR_UNITS, VECTOR_UNITS
from neuroncore_rtl.spec.costs import step_cycles
from neuroncore_rtl.spec.formats import FORMATS, format_named
from neuroncore_rtl.spec.isa import Opcode, Storage
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_program

__all__ = ["SHOWN", "Differences", "compare_program", "instruction_options", "run_instructions"]

SHOWN = 5
"""Instructions with wrong results that are printed; the rest is counted."""


def instruction_options(first: Option) -> tuple[Option, ...]:
    """Return the options of a bench of random instructions, after the one that chooses them."""
    return (
        first,
        choice("DTYPE", None, "the only number format of the tensors, instead of all mixed", FORMATS),
        *configuration_options("tiny"),
        SEED,
        integer("N", None, "elements a lane; random if not given", 1, 4096),
        integer("COUNT", 800, "instructions", 1, 4000),
        integer("STALL", 0, "every stream and memory port pauses in so many of 256 cycles, at random", 0, 240),
        *RECORDED,
    )


class Differences:
    """Where the memories differ from golden's, and which instructions wrote there.

    Arguments:
        program: what ran.
        outcome: what came of it.
        expected: SBUF and PSUM of golden.
        config: the machine's parameters.
    """

    def __init__(self, program: ElementwiseProgram, outcome: Outcome, expected: tuple[np.ndarray, np.ndarray], config):
        self._program, self._config = program, config
        self._memories = {
            Storage.SBUF: (outcome.memories["sbuf"], expected[0], program.sbuf),
            Storage.PSUM: (outcome.memories["psum"], expected[1], program.psum),
        }
        self.places = [
            (storage, int(partition), int(byte))
            for storage, (got, wanted, _) in self._memories.items()
            for partition, byte in np.argwhere(got != wanted)
        ]

    @property
    def compared(self) -> int:
        """Bytes of both memories."""
        return sum(got.size for got, _, _ in self._memories.values())

    @property
    def changed(self) -> int:
        """Bytes that golden leaves other than they were."""
        return sum(int((wanted != before).sum()) for _, wanted, before in self._memories.values())

    def lines(self) -> list[str]:
        """Return the first wrong byte of each of the first instructions that wrote one."""
        found = {}
        for storage, partition, byte in self.places:
            writer = self._program.last_writer(storage, partition, byte)
            found.setdefault(writer, (storage, partition, byte))
            if len(found) == SHOWN:
                break
        return [self._line(writer, *place) for writer, place in found.items()]

    def _line(self, writer: int | None, storage: Storage, partition: int, byte: int) -> str:
        got, wanted, _ = self._memories[storage]
        word = slice(byte & ~3, (byte & ~3) + 4)
        words = [memory[partition, word][::-1].tobytes().hex() for memory in (got, wanted)]
        who = "no instruction writes there" if writer is None else f"{writer}: {self._program.instructions[writer]}"
        return f"{storage.name} partition {partition} byte {byte}: word {words[0]}, golden {words[1]}; {who}"


def compare_program(
    program: ElementwiseProgram, device: ElementwiseDevice, settings: Settings, test: str
) -> tuple[Outcome, Differences, dict[str, str]]:
    """Run a program on a device and on golden; print what differs.

    Arguments:
        program: what both run.
        device: the engines.
        settings: with the machine's options, `RECORDED`, SEED and STALL.
        test: names the waveform.

    Returns:
        What became of it, the differences, and for a report the waveform, if WAVES asks for one.
    """
    count = f"{len(program.instructions):,} instructions"
    with progress(f"golden: {count}"):
        expected = expected_memories(program.instructions, program.sbuf, program.psum, settings.config)
    work = work_of(program, stall=settings.stall, seed=settings.seed)
    outcome, recorded = run_recorded(device, work, settings, waveform(test), f"running {count}")
    differences = Differences(program, outcome, expected, settings.config)
    for line in differences.lines():
        print(line)
    return outcome, differences, recorded


def run_instructions(
    test: str, label: str, settings: Settings, opcodes: Sequence[Opcode], **drawn: object
) -> tuple[Report, ElementwiseProgram, Outcome]:
    """Run COUNT random instructions and compare; prints what differs.

    Arguments:
        test, label: of the report.
        settings: of a bench with `instruction_options`.
        opcodes: what to draw from, all of one engine; what its lanes have no unit for is left out.
        drawn: what else is said of `tb.stimulus.elementwise_programs.Choices`.

    Raises:
        UsageError: if the lanes have units for none of it.
    """
    config = settings.config
    engine = "scalar" if Opcode.ACTIVATE in opcodes else "vector"
    formats = tuple(FORMATS.values()) if settings.dtype is None else (format_named(settings.dtype),)
    choices = Choices(opcodes=tuple(opcodes), formats=formats, elements=settings.n, **drawn).on(config)
    if not (choices.opcodes and choices.functions):
        units = VECTOR_UNITS if engine == "vector" else SCALAR_UNITS
        absent = ", ".join(f"{engine}_{unit}" for unit in units if not getattr(config, f"{engine}_{unit}"))
        raise UsageError(f"{label} must be of units that this machine's lanes have, where these are 0: {absent}")
    program = random_program(np.random.default_rng(settings.seed), config, settings.count, choices)
    device = ElementwiseDevice(config=config, engines=(engine,))
    outcome, differences, recorded = compare_program(program, device, settings, test)
    refused = outcome.parts[engine].error
    report = Report(
        test=test,
        label=f"{label}-{settings.preset}-{config.rows}x{config.columns}-{settings.dtype or 'mixed'}-{settings.sim}",
        settings=dict(settings.values),
        compared=differences.compared,
        mismatches=len(differences.places),
        cycles=outcome.cycles,
        ideal_cycles=sum(step_cycles(instruction, config) for instruction in program.instructions),
        extra={
            "changed": differences.changed,
            "instructions": dict(sorted(Counter(i.opcode.name.lower() for i in program.instructions).items())),
            "config": config.named,
            "counters": dict(outcome.parts[engine].counters),
            **recorded,
        },
        failures=(f"instruction {refused.number} was refused, rule {refused.cause}",) if refused else (),
    )
    return report, program, outcome
