"""Control flow between sections: registers and branches, executed by the controller.

A register is an INT32 word in SBUF, which the controller accesses through its window while no section runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from pathlib import Path

from neuroncore_rtl.kernels.control.compile import ControlProgram, compile_program
from neuroncore_rtl.kernels.control.stock import Block, section_words, semaphores_word

__all__ = ["ROUNDS_CODE", "Code", "ControlOperation", "Label", "flow_program", "trace_operations"]

SOURCE = Path(__file__).parent / "flow.c"

ROUNDS_CODE = 0x2000_0000
"""Exit code if the program exceeds its limit of loop rounds; the lower bits are the index of the branch operation."""


class Code(IntEnum):
    """Codes of control operations; each operates on the words `a` and `b`. Addresses are those of the controller."""

    END = 0
    """End the program."""
    RUN = 1
    """Run section a."""
    SET = 2
    """Register at a = b."""
    COPY = 3
    """Register at a = register at b."""
    ADD = 4
    """Register at a += b."""
    UNLESS_LESS = 5
    """Branch unless register at a < register at b."""
    UNLESS = 6
    """Branch if register at a = 0."""
    AGAIN = 7
    """Branch back to the start of a loop."""


@dataclass(eq=False)
class Label:
    """Branch target: the index of an operation; -1 while unknown."""

    place: int = -1


@dataclass(frozen=True)
class ControlOperation:
    """One operation that the controller executes: an instruction on registers, a branch or the run of a section.

    `a` is the address of a register or the index of a section, `b` the address of a register or a constant, `label` the
    target of a branch, `source` the line of the kernel.
    """

    code: Code
    a: int = 0
    b: int = 0
    label: Label | None = None
    source: object = None

    @property
    def reads(self) -> int:
        """Number of registers that the operation reads."""
        return {Code.COPY: 1, Code.ADD: 1, Code.UNLESS_LESS: 2, Code.UNLESS: 1}.get(self.code, 0)


def flow_program(
    blocks: Sequence[Block], operations: Sequence[ControlOperation], rounds: int, local_bytes: int
) -> tuple[ControlProgram, list[int]]:
    """Return the stock program that executes operations, and its argument words.

    Blocks are grouped by section. Operations run from the first one to END. After more than `rounds` backward branches
    the program ends with `ROUNDS_CODE`.
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


def trace_operations(
    operations: Sequence[ControlOperation], words: Iterable[int]
) -> Iterator[tuple[ControlOperation, bool]]:
    """Yield the operations in the order in which a run executed them, and whether each branched.

    `words` are the values that the controller read from on-chip memory, in order; some are missing at the end if the
    run was interrupted.
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
