"""Random instructions of the vector or the scalar engine, every byte of both memories against golden."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from neuroncore_rtl.spec.formats import FORMATS, format_named
from neuroncore_rtl.spec.isa import Opcode, Storage
from neuroncore_rtl.tb.check.costs import step_cycles
from neuroncore_rtl.tb.check.execution import ElementwiseProgram, expected_memories, work_of
from neuroncore_rtl.tb.harness.elementwise import ElementwiseDevice
from neuroncore_rtl.tb.harness.outcome import Outcome
from neuroncore_rtl.tb.harness.run import run
from neuroncore_rtl.tb.sim.report import Report, progress, shown
from neuroncore_rtl.tb.sim.settings import DEPTH, SEED, SIM, WAVES, Option, Settings, configuration_options
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_program
from neuroncore_rtl.tb.view.waves import waveform, write_save_file

__all__ = ["SHOWN", "Differences", "instruction_options", "run_instructions"]

SHOWN = 5
"""Instructions with wrong results that are printed; the rest is counted."""


def instruction_options(first: Option) -> tuple[Option, ...]:
    """Return the options of a bench of random instructions, after the one that chooses them."""
    return (
        first,
        Option(
            name="DTYPE",
            type=str,
            default=None,
            help="the only number format of the tensors, instead of all mixed",
            choices=tuple(FORMATS),
        ),
        *configuration_options("tiny"),
        SEED,
        Option(name="N", type=int, default=None, help="elements a lane; random if not given", minimum=1, maximum=4096),
        Option(name="COUNT", type=int, default=200, help="instructions", minimum=1, maximum=4000),
        Option(
            name="STALL",
            type=int,
            default=0,
            help="every stream and memory port pauses in so many of 256 cycles, at random",
            minimum=0,
            maximum=240,
        ),
        SIM,
        WAVES,
        DEPTH,
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


def run_instructions(
    test: str,
    label: str,
    settings: Settings,
    opcodes: Sequence[Opcode],
    *,
    functions: Sequence[int] | None = None,
) -> tuple[Report, ElementwiseProgram, Outcome]:
    """Run COUNT random instructions and compare; prints what differs.

    Arguments:
        test, label: of the report.
        settings: of a bench with `instruction_options`.
        opcodes: what to draw from, all of one engine.
        functions: codes of ACTIVATE's functions to draw from; None: all.
    """
    config = settings.config
    engine = "scalar" if Opcode.ACTIVATE in opcodes else "vector"
    formats = tuple(FORMATS.values()) if settings.dtype is None else (format_named(settings.dtype),)
    choices = Choices(opcodes=tuple(opcodes), formats=formats, elements=settings.n)
    if functions is not None:
        choices = Choices(**{**vars(choices), "functions": tuple(functions)})
    rng = np.random.default_rng(settings.seed)
    program = random_program(rng, config, settings.count, choices)
    with progress("golden"):
        expected = expected_memories(program.instructions, program.sbuf, program.psum, config)
    waves: Path | None = waveform(test) if settings.waves else None
    outcome = run(
        ElementwiseDevice(config=config, engines=(engine,)),
        work_of(program, stall=settings.stall, seed=settings.seed),
        sim=settings.sim,
        waves=waves,
        waves_levels=settings.depth,
        doing=f"running {settings.count:,} instructions",
    )
    differences = Differences(program, outcome, expected, config)
    for line in differences.lines():
        print(line)
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
            "config": asdict(config),
            "counters": dict(outcome.parts[engine].counters),
            **({"waveform": shown(write_save_file(waves))} if waves else {}),
        },
        failures=(f"instruction {refused.number} was refused, rule {refused.cause}",) if refused else (),
    )
    return report, program, outcome
