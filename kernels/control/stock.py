"""Stock control program, which starts blocks of records and waits for their completion, and its arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from neuroncore_rtl.kernels.control.compile import ControlProgram, compile_program
from neuroncore_rtl.spec.memory_map import LOCAL_BYTES

__all__ = ["Block", "section_words", "semaphores_word", "stock_program"]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Block:
    """Consecutive records of a queue in HBM, at most 65,535, from an address that is a multiple of 128.

    All blocks of a section retire before the next section starts. The section uses the `semaphores`.
    """

    queue: int
    address: int
    count: int
    section: int = 0
    semaphores: range = range(0)


def stock_program(
    blocks: Sequence[Block], runs: Sequence[int] | None = None, local_bytes: int = LOCAL_BYTES
) -> tuple[ControlProgram, list[int]]:
    """Return the stock program that starts blocks, grouped by section, and its argument words.

    `runs` are section numbers in the order of execution, with repeats; None runs each section once, in the order of the
    blocks. Raises ValueError if a section in `runs` has no blocks.
    """
    sections = section_words(blocks)
    runs = [*sections] if runs is None else runs
    missing = sorted({*runs} - {*sections})
    if missing:
        raise ValueError(f"runs must name sections that have blocks, {sorted(sections)}, not {missing}")
    if len(sections) == len(runs) == 1:
        return _compiled("run.c", local_bytes), sections[runs[0]]
    places, words = {}, []
    for number, own in sections.items():
        places[number] = 1 + 2 * len(runs) + len(words)
        words += own
    counted = {block.section: block.semaphores for block in blocks}
    changed, heads = range(0), []
    for number in runs:
        used = counted[number]
        heads += [semaphores_word(range(used.start, min(used.stop, changed.stop))), places[number]]
        changed = range(used.start, max(used.stop, changed.stop))
    return _compiled("sections.c", local_bytes), [len(runs), *heads, *words]


@cache
def _compiled(source: str, local_bytes: int) -> ControlProgram:
    return compile_program([HERE / source], local_bytes=local_bytes)


def section_words(blocks: Sequence[Block]) -> dict[int, list[int]]:
    """Return, for each section index, the argument words with which `run_section` of `core.h` runs the section."""
    found = {}
    for number, own in groupby(blocks, key=lambda block: block.section):
        places = [(block.queue, block.address & 0xFFFF_FFFF, block.address >> 32, block.count) for block in own]
        found[number] = [len(places), *(word for place in places for word in place)]
    return found


def semaphores_word(semaphores: range) -> int:
    """Return the argument word with which `semaphores_clear` of `core.h` clears a range of semaphores."""
    return semaphores.start | semaphores.stop << 16 if semaphores else 0
