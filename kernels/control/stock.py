"""The stock control program, which starts blocks of records and waits for them, and its arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from neuroncore_rtl.kernels.control.compile import ControlProgram, compile_program

__all__ = ["Block", "run_arguments", "run_program"]


@dataclass(frozen=True)
class Block:
    """Records of a queue, one behind the other in HBM.

    Arguments:
        queue: its number.
        address: of the first record, a multiple of 128.
        count: 1 to 65,535.
        section: blocks of the next section are started when all of this one has retired.
    """

    queue: int
    address: int
    count: int
    section: int = 0


def run_program() -> ControlProgram:
    """Return the stock program; it needs the arguments that `run_arguments` makes."""
    return compile_program([Path(__file__).with_name("run.c")])


def run_arguments(blocks: Sequence[Block]) -> list[int]:
    """Return the argument words with which the stock program starts `blocks`, in this order."""
    words = []
    for _, section in groupby(blocks, key=lambda block: block.section):
        places = [(block.queue, block.address & 0xFFFF_FFFF, block.address >> 32, block.count) for block in section]
        words += [len(places), *(word for place in places for word in place)]
    return [*words, 0]
