"""What the controller does between sections, where only the run decides what comes next: registers and branches.

A register is an INT32 word of SBUF: instructions read and write it as any other element, the controller through its
window, when no section runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from pathlib import Path

from neuroncore_rtl.kernels.control.compile import ControlProgram, compile_program
from neuroncore_rtl.kernels.control.stock import Block, section_words, semaphores_word

__all__ = ["ROUNDS_CODE", "Code", "ControlOperation", "Label", "executed", "flow_program"]

SOURCE = Path(__file__).parent / "flow.c"

ROUNDS_CODE = 0x2000_0000
"""In an exit code: a branch went back too often; the lower bits are its operation's number."""


class Code(IntEnum):
    """What an operation does with the words `a` and `b`; addresses are those of the controller."""

    END = 0
    """The program has ended."""
    RUN = 1
    """Section `a` is run."""
    SET = 2
    """The register at a = b."""
    COPY = 3
    """The register at a = that at b."""
    ADD = 4
    """The register at a += b."""
    UNLESS_LESS = 5
    """Go on at the label, unless the register at a is less than that at b."""
    UNLESS = 6
    """Go on at the label if the register at a is 0."""
    AGAIN = 7
    """Go back to the label."""


@dataclass(eq=False)
class Label:
    """A place among the operations: the number of the one that follows it; -1 while it is not known."""

    place: int = -1


@dataclass(frozen=True)
class ControlOperation:
    """An operation of the controller.

    Arguments:
        code: what it does.
        a, b: addresses, a number, or a section's.
        label: of a branch.
        source: the line that asked for it, for messages.
    """

    code: Code
    a: int = 0
    b: int = 0
    label: Label | None = None
    source: object = None

    @property
    def reads(self) -> int:
        """How many registers it reads."""
        return {Code.COPY: 1, Code.ADD: 1, Code.UNLESS_LESS: 2, Code.UNLESS: 1}.get(self.code, 0)


def flow_program(
    blocks: Sequence[Block], operations: Sequence[ControlOperation], rounds: int, local_bytes: int
) -> tuple[ControlProgram, list[int]]:
    """Return a stock program and its argument words, which does what `operations` say.

    Arguments:
        blocks: of all sections, those of a section one after the other.
        operations: they start with the first one; the last one is an END.
        rounds: how often branches may go back, all together, before the program ends with `ROUNDS_CODE`.
        local_bytes: of the controller's local memory.
    """
    sections = section_words(blocks)
    counted = {block.section: block.semaphores for block in blocks}
    places, words = {}, []
    for number, own in sections.items():
        places[number] = 1 + 4 * len(operations) + len(words)
        words += own
    flow = []
    for operation in operations:
        a, b = operation.a, operation.b
        if operation.code == Code.RUN:
            a, b = semaphores_word(counted[operation.a]), places[operation.a]
        flow += [operation.code, a, b & 0xFFFF_FFFF, operation.label.place if operation.label else 0]
    flags = [f"-D{code.name}={code:d}" for code in Code]
    return compile_program([SOURCE], flags=flags, local_bytes=local_bytes), [rounds, *flow, *words]


def executed(operations: Sequence[ControlOperation], words: Iterable[int]) -> Iterator[tuple[ControlOperation, bool]]:
    """Yield the operations in the order in which a run executes them, END included, each with whether it is a branch to
    its label.

    Arguments:
        operations: as of :func:`flow_program`.
        words: what the controller read on chip, in order; a run that did not come to its end has too few of them.
    """
    read, place = iter(words), 0
    while True:
        operation = operations[place]
        values = [*islice(read, operation.reads)]
        if len(values) < operation.reads:
            return
        signed = [value - (value >> 31 << 32) for value in values]
        leaves = operation.code == Code.AGAIN
        leaves |= operation.code == Code.UNLESS_LESS and not signed[0] < signed[-1]
        leaves |= operation.code == Code.UNLESS and not values[0]
        yield operation, leaves
        if operation.code == Code.END:
            return
        place = operation.label.place if leaves and operation.label else place + 1
