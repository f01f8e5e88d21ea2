"""Blocks that cannot be vectorised, with a message that names the cell."""

import pytest

from neuroncore_rtl.hdl.verilog.conversion import Irreplaceable
from neuroncore_rtl.run.sim import vectors
from tests.run.lanes.rtlil_text import cell_lines, concatenation, constant, memory_lines

WIDTH = 80
LANE = ("odd_lane", {"a": WIDTH, "b": WIDTH}, WIDTH)
BLOCK = ("odd_block", {"a": WIDTH, "b": 2 * WIDTH}, 2 * WIDTH)
"""Names of the modules, and widths of their inputs and of their output."""


def module(name: str, inputs: dict[str, int], output: int, lines: list[str]) -> str:
    ports = [f"wire width {width} input {place} \\{port}" for place, (port, width) in enumerate(inputs.items(), 2)]
    last = f"wire width {output} output {len(inputs) + 2} \\y"
    return "\n".join([f"module \\{name}", "wire input 1 \\clk", *ports, last, *lines, "end", ""])


def binary(kind: str, width: int = WIDTH) -> list[str]:
    parameters = {"A_WIDTH": WIDTH, "B_WIDTH": WIDTH, "Y_WIDTH": width, "A_SIGNED": 0, "B_SIGNED": 0}
    connections = {"A": "\\held_a", "B": "\\held_b", "Y": f"\\result [{width - 1}:0]"}
    rest = [f"connect \\result [79:{width}] {constant(0, WIDTH - width)}"] if width < WIDTH else []
    return [*cell_lines(f"${kind}", "\\odd", parameters, connections), *rest]


def memory(reset: str = "1'0", **odd: object) -> list[str]:
    connections = {
        **{"RD_EN": "1'1", "RD_SRST": reset, "RD_ADDR": "\\held_b [2:0]", "RD_DATA": "\\result"},
        **{"WR_EN": concatenation(["\\held_b [3]"] * WIDTH), "WR_ADDR": "\\held_b [6:4]", "WR_DATA": "\\held_a"},
    }
    undefined = {"INIT": f"{4 * WIDTH}'x", "RD_ARST_VALUE": f"{WIDTH}'x", "RD_INIT_VALUE": f"{WIDTH}'x"}
    shape = {"size": 4, "width": WIDTH, "address": 3, "reads": 1, "writes": 1}
    return memory_lines("\\words", connections, **shape, **undefined, **odd)


def texts(odd: list[str], *, clock: str = "\\clk", held: bool = True) -> dict[str, str]:
    lane = [f"wire width {WIDTH} \\{wire}" for wire in ("held_a", "held_b", "result")]
    for port in ("a", "b"):
        ends = {"CLK": "\\clk", "D": f"\\{port}", "Q": f"\\held_{port}"}
        flip_flop = cell_lines("$dff", f"\\ff_{port}", {"WIDTH": WIDTH, "CLK_POLARITY": 1}, ends)
        lane += flip_flop if held else [f"connect \\held_{port} \\{port}"]
    block = []
    for name, clk, part in (("first", clock, "[79:0]"), ("second", "\\clk", "[159:80]")):
        block += cell_lines(
            "\\odd_lane", f"\\{name}", {}, {"clk": clk, "a": "\\a", "b": f"\\b {part}", "y": f"\\y {part}"}
        )
    return {"odd_block": module(*BLOCK, block), "odd_lane": module(*LANE, [*lane, *odd, "connect \\y \\result"])}


REASONS = {
    "unknown cell": (texts(binary("div", 40)), r"odd_lane: cannot evaluate odd, a cell \$div"),
    "wide sum": (texts(binary("add")), r"odd_lane: odd \(add\) has 80 bits"),
    "wide comparison": (texts(binary("lt", 1)), r"odd_lane: odd \(lt\) compares 80 bits"),
    "wide shift": (texts(binary("shr")), r"odd_lane: odd \(shr\) has 80 bits"),
    "output of an input": (
        texts(binary("and"), held=False),
        "odd_block: output y depends on input a within a cycle; a register",
    ),
    "another clock": (texts(binary("and"), clock="\\a [0]"), "odd_block: first has a separate clock"),
    "transparent memory": (
        texts(memory(RD_TRANSPARENCY_MASK="1'1")),
        "odd_lane: words forwards a write of the same cycle",
    ),
    "memory without a clock": (texts(memory(RD_CLK_ENABLE="1'0")), "odd_lane: words is read within a cycle"),
    "falling edge": (texts(memory(RD_CLK_POLARITY="1'0")), "odd_lane: words is not clocked by the rising edge"),
    "memory with a reset": (texts(memory(reset="\\held_b [7]")), "odd_lane: memory words has a reset"),
    "memory from elsewhere": (texts(memory(OFFSET=2)), "odd_lane: memory words does not begin at address 0"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_reason_is_said_and_the_block_stays(reason, monkeypatch, tmp_path):
    monkeypatch.setattr(vectors, "libraries_folder", tmp_path)
    block, message = REASONS[reason]
    with pytest.raises(Irreplaceable, match=f"odd_block is simulated module by module, not as vectors: {message}"):
        vectors.vectorised("odd_block", ("odd_lane",), block)
    assert not list(tmp_path.iterdir())


def test_what_is_usual_is_no_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(vectors, "libraries_folder", tmp_path)
    for cell in (binary("and"), memory()):
        assert "module odd_block" in vectors.vectorised("odd_block", ("odd_lane",), texts(cell))
