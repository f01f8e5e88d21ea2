"""The stock control program, which starts blocks of records and waits for them, and its arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from neuroncore_rtl.kernels.control.compile import ControlProgram, compile_program

__all__ = ["Block", "run_arguments", "run_program", "section_words"]


@dataclass(frozen=True)
class Block:
    """Records of a queue, one behind the other in HBM.

    Arguments:
        queue: its number.
        address: of the first record, a multiple of 128.
        count: 1 to 65,535.
        section: blocks of another section are started when all of this one has retired.
        semaphores: those that the section counts on.
    """

    queue: int
    address: int
    count: int
    section: int = 0
    semaphores: range = range(0)


def run_program() -> ControlProgram:
    """Return the stock program; it needs the arguments that `run_arguments` makes."""
    return compile_program([Path(__file__).with_name("run.c")])


def run_arguments(blocks: Sequence[Block], runs: Sequence[int] | None = None) -> list[int]:
    """Return the argument words with which the stock program starts `blocks`, section by section.

    Arguments:
        blocks: those of a section one after the other.
        runs: numbers of sections, in the order in which they are run, each as often as it is named; None: every one
            once, in the order of the blocks.

    Raises:
        ValueError: if a section that is to be run has no blocks.
    """
    sections = section_words(blocks)
    runs = [*sections] if runs is None else runs
    missing = sorted({*runs} - {*sections})
    if missing:
        raise ValueError(f"runs must be of sections that have blocks, {sorted(sections)}, not {missing}")
    places, words = {}, []
    for number, own in sections.items():
        places[number] = 1 + len(runs) + len(words)
        words += own
    return [len(runs), *(places[number] for number in runs), *words]


def section_words(blocks: Sequence[Block]) -> dict[int, list[int]]:
    """Return of every section, by its number, the words with which `run_section` of `core.h` runs it."""
    return {number: _words([*own]) for number, own in groupby(blocks, key=lambda block: block.section)}


def _words(blocks: Sequence[Block]) -> list[int]:
    counted = blocks[0].semaphores
    places = [(block.queue, block.address & 0xFFFF_FFFF, block.address >> 32, block.count) for block in blocks]
    return [len(places), counted.start | counted.stop << 16, *(word for place in places for word in place)]
