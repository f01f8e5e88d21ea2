"""Blocks that cannot be vectorised, with a message that names the cell."""

import pytest

from neuroncore_rtl.hdl.verilog.conversion import Irreplaceable
from neuroncore_rtl.run.sim import vectors

LANE = r"""
module \odd_lane
  wire input 1 \clk
  wire width 80 input 2 \a
  wire width 80 input 3 \b
  wire width 80 output 4 \y
  wire width 80 \held_a
  wire width 80 \held_b
  wire width 80 \result
  {held_a}
  {held_b}
  {cell}
  connect \y \result
end
"""

BLOCK = r"""
module \odd_block
  wire input 1 \clk
  wire width 80 input 2 \a
  wire width 160 input 3 \b
  wire width 160 output 4 \y
  cell \odd_lane \first
    connect \clk {clock}
    connect \a \a
    connect \b \b [79:0]
    connect \y \y [79:0]
  end
  cell \odd_lane \second
    connect \clk \clk
    connect \a \a
    connect \b \b [159:80]
    connect \y \y [159:80]
  end
end
"""

FLIP_FLOP = r"""cell $dff \ff_{q}
    parameter \WIDTH 80
    parameter \CLK_POLARITY 1'1
    connect \CLK \clk
    connect \D \{d}
    connect \Q \{q}
  end"""

MEMORY = r"""cell $mem_v2 \words
    parameter \MEMID "\\words"
    parameter \SIZE 4
    parameter \OFFSET {offset}
    parameter \ABITS 3
    parameter \WIDTH 80
    parameter \INIT 320'x
    parameter \RD_PORTS 1
    parameter \RD_CLK_ENABLE 1'{clocked}
    parameter \RD_CLK_POLARITY 1'{rising}
    parameter \RD_TRANSPARENCY_MASK 1'{transparent}
    parameter \RD_COLLISION_X_MASK 1'0
    parameter \RD_WIDE_CONTINUATION 1'0
    parameter \RD_CE_OVER_SRST 1'0
    parameter \RD_ARST_VALUE 80'x
    parameter \RD_SRST_VALUE 80'0
    parameter \RD_INIT_VALUE 80'x
    parameter \WR_PORTS 1
    parameter \WR_CLK_ENABLE 1'1
    parameter \WR_CLK_POLARITY 1'1
    parameter \WR_PRIORITY_MASK 1'0
    parameter \WR_WIDE_CONTINUATION 1'0
    connect \RD_CLK \clk
    connect \RD_EN 1'1
    connect \RD_ARST 1'0
    connect \RD_SRST {reset}
    connect \RD_ADDR \held_b [2:0]
    connect \RD_DATA \result
    connect \WR_CLK \clk
    connect \WR_EN {{ {enables} }}
    connect \WR_ADDR \held_b [6:4]
    connect \WR_DATA \held_a
  end"""


def binary(kind: str, width: int = 80) -> str:
    parameters = [f"parameter \\{port}_WIDTH {bits}" for port, bits in (("A", 80), ("B", 80), ("Y", width))]
    signs = ["parameter \\A_SIGNED 0", "parameter \\B_SIGNED 0"]
    connections = ["connect \\A \\held_a", "connect \\B \\held_b", f"connect \\Y \\result [{width - 1}:0]"]
    rest = [f"connect \\result [79:{width}] {80 - width}'{'0' * (80 - width)}"] if width < 80 else []
    return "\n".join([f"cell ${kind} \\odd", *parameters, *signs, *connections, "end", *rest])


def memory(**odd: object) -> str:
    enables = " ".join(["\\held_b [3]"] * 80)
    usual = {"offset": 0, "clocked": 1, "rising": 1, "transparent": 0, "reset": "1'0", "enables": enables}
    return MEMORY.format(**usual | odd)


def texts(cell: str, *, clock: str = "\\clk", held: bool = True) -> dict[str, str]:
    ffs = {port: FLIP_FLOP.format(d=port[-1], q=port) for port in ("held_a", "held_b")}
    wires = {port: f"connect \\{port} \\{port[-1]}" for port in ("held_a", "held_b")}
    return {"odd_block": BLOCK.format(clock=clock), "odd_lane": LANE.format(**(ffs if held else wires), cell=cell)}


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
    "transparent memory": (texts(memory(transparent=1)), "odd_lane: words forwards a write of the same cycle"),
    "memory without a clock": (texts(memory(clocked=0)), "odd_lane: words is read within a cycle"),
    "falling edge": (texts(memory(rising=0)), "odd_lane: words is not clocked by the rising edge"),
    "memory with a reset": (texts(memory(reset="\\held_b [7]")), "odd_lane: memory words has a reset"),
    "memory from elsewhere": (texts(memory(offset=2)), "odd_lane: memory words does not begin at address 0"),
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
