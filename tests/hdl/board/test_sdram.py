import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl.hdl.board import sdram, sdram_chip
from neuroncore_rtl.hdl.verilog import text as verilog
from neuroncore_rtl.run.harness.board.board import SDRAM, sdram_parameters
from neuroncore_rtl.run.harness.run import run_harness
from neuroncore_rtl.run.harness.verilog_text import arguments, harness, plusargs
from neuroncore_rtl.run.sim import images, simulation

CHIP = dataclasses.replace(sdram_chip.MT48LC16M16, row_bits=11, refresh_ns=16_000_000)
"""Parameters of a chip with a quarter of the rows and of the refresh period, so the refresh rate is the usual one."""

START_NS = 2_000
COUNT = 3000


def bench(clock_hz: int, broken: dict[str, int] | None = None) -> simulation.Design:
    controller = sdram.SdramController(dataclasses.replace(CHIP, **(broken or {})), clock_hz, START_NS)
    word = sdram.sdram_words(CHIP)
    defines = {
        "ARGUMENTS": arguments(memories=("words",), files=("read",)),
        "CHIP": sdram_parameters(CHIP, clock_hz, START_NS),
        "ROW_BITS": CHIP.row_bits,
        "WORD": word.size,
        "WRITE_BIT": word["write"].offset,
    }
    text = verilog.convert(controller, "sdram_controller", None)
    return harness(str(Path(__file__).with_name("sdram.py")), "sdram_bench", defines, text, SDRAM)


def random_accesses(rng: np.random.Generator) -> list[dict[str, int]]:
    found, number = [], 0
    for _ in range(COUNT):
        if rng.random() < 0.3:
            number = int(rng.integers(3 * 4 * 512))  # row, bank and column
        else:
            number = (number + 1) % (3 * 4 * 512)
        pause = int(rng.choice([0, 0, 0, 0, 1, 2, 7, 300])) if found else 0
        random = {"write": int(rng.integers(2)), "data": int(rng.integers(1 << 16)), "mask": int(rng.integers(1, 4))}
        found.append({"pause": pause, "number": number} | random)
    return found


def play(design: simulation.Design, words: list[dict[str, int]]) -> list[tuple[int, int]]:
    lines = []
    for one in words:
        fields = {name: value for name, value in one.items() if name != "pause"}
        lines.append(f"{one['pause'] << 48 | sdram.sdram_words(CHIP).const(fields).as_bits():x}\n")
    with simulation.run_directory("sdram") as directory:
        directory = directory.resolve()
        given = images.write_lines(directory, {"words": "".join(lines)}) + plusargs(read=directory / "read")
        run_harness(simulation.build(design), directory, plusargs=given, limit=400 * COUNT)
        pairs = [line.split() for line in (directory / "read").read_text().splitlines()]
    return [(int(word, 16), int(cycle)) for word, cycle in pairs]


def expected(words: list[dict[str, int]]) -> list[int]:
    memory, found = {}, []
    for one in words:
        number = one["number"]
        value = memory.get(number, (number & 0xFFFF) ^ 0x5AA5)
        if one["write"]:
            byte_mask = (0, 0xFF, 0xFF00, 0xFFFF)[one["mask"]]
            memory[number] = value & ~byte_mask | one["data"] & byte_mask
        else:
            found.append(value)
    return found


@pytest.mark.parametrize("clock_hz", [25_000_000, 66_000_000])
def test_words_are_written_and_read(rng, clock_hz):
    words = random_accesses(rng)
    assert [word for word, _ in play(bench(clock_hz), words)] == expected(words)


def test_a_word_a_cycle_in_an_open_row():
    words = [{"pause": 0, "number": n, "write": 0, "data": 0, "mask": 3} for n in range(512)]
    found = play(bench(25_000_000), words)
    assert [word for word, _ in found] == expected(words)
    # A refresh is due every 7.8 us, twice in 512 cycles.
    assert (np.diff([cycle for _, cycle in found]) > 1).sum() <= 3


BROKEN = {f"{rule.lower()}_ns": rule for rule in ("tRCD", "tRP", "tRAS", "tRFC", "tWR")} | {"tmrd": "tMRD"}
"""Wrong parameters of a controller, and the rule that it breaks; tRC follows from tRAS and tRP."""


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_controller_that_breaks_a_timing_rule_is_detected(rng, name):
    with pytest.raises(simulation.SimulationFailed, match=re.escape(f"SDRAM: {BROKEN[name]} must be ")):
        play(bench(100_000_000, {name: 1}), random_accesses(rng))


def test_a_controller_without_enough_refreshes_is_detected(rng):
    with pytest.raises(simulation.SimulationFailed, match="SDRAM: a refresh is overdue"):
        play(bench(25_000_000, {"refresh_ns": 20_000_000}), random_accesses(rng))
