"""Verilog module and C++ functions that replace a block in a Verilated design: clock edges call C++."""

from neuroncore_rtl.run.lanes.block_code import BlockCode

__all__ = ["source", "verilog"]


def _arguments(code: BlockCode) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    inputs = list(code.netlist.inputs.items())
    return inputs, [(port, len(bits)) for port, bits in code.netlist.outputs.items()]


def verilog(code: BlockCode) -> str:
    """Return the Verilog module that calls the C++ code of a block.

    Its outputs change only at clock edges, since no output depends on an input within a cycle.
    """
    name = code.netlist.name
    inputs, outputs = _arguments(code)
    ports = ["clk", *(port for port, _ in inputs), *(port for port, _ in outputs)]

    def bits(width: int) -> str:
        return "bit" if width == 1 else f"bit [{width - 1}:0]"

    given = ", ".join(f"input {bits(width)} {port}" for port, width in inputs)
    returned = ", ".join(f"output {bits(width)} {port}" for port, width in outputs)
    early = [port if width == 1 else f"{port}[0]" for port, width in inputs]
    step = f"lanes_begun + int'(^{{{', '.join(early)}}})" if code.is_long else "lanes_step"
    # Verilator evaluates the causes of events before all else at an edge: so a long block is the first to begin.
    between = ["  end", "  always @(lanes_step) begin"]
    lines = [
        "`ifndef LANES_BEGUN",
        "`define LANES_BEGUN",
        "int lanes_begun;",
        "`endif",
        f"module {name}({', '.join(ports)});",
        f'  import "DPI-C" function chandle {name}_new();',
        f'  import "DPI-C" function int {name}_begin(input chandle state, {given});',
        f'  import "DPI-C" function void {name}_end(input chandle state, input int step, {returned});',
        "  input wire clk;",
        *(f"  input wire {'' if width == 1 else f'[{width - 1}:0] '}{port};" for port, width in inputs),
        *(f"  output reg {'' if width == 1 else f'[{width - 1}:0] '}{port};" for port, width in outputs),
        "  chandle lanes_state;",
        "  int lanes_step;",
        f"  initial lanes_state = {name}_new();",
        "  /* verilator lint_off BLKSEQ */",
        "  always @(posedge clk) begin",
        f"    lanes_step = {name}_begin(lanes_state, {', '.join(port for port, _ in inputs)});",
        *(between if code.is_long else []),
        "    lanes_begun = lanes_begun + 1;",
        "  end",
        "  /* verilator lint_on BLKSEQ */",
        "  // As outputs depend on `lanes_step`, this follows all registers that the outputs set at the same edge.",
        "  // A long block ends after all blocks have begun and its inputs are known; helpers step it meanwhile.",
        f"  always_comb {name}_end(lanes_state, {step}, {', '.join(port for port, _ in outputs)});",
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


def source(code: BlockCode) -> str:
    """Return a block's C++; the macro `WIDTH` is the number of instances per vector."""
    name = code.netlist.name
    inputs, outputs = _arguments(code)
    places = [(code.places[port], width == 1) for port, width in inputs]
    parameters = [f"unsigned char {place}" if bit else f"const uint32_t* {place}" for place, bit in places]
    before = [f"  const uint32_t w_{place} = {place};" for place, bit in places if bit]
    calls = [f"&w_{place}" if bit else place for place, bit in places]
    numbers = [(number, width == 1) for number, (_, width) in enumerate(outputs)]
    results = [f"unsigned char* r_{number}" if bit else f"uint32_t* r_{number}" for number, bit in numbers]
    room = [f"  uint32_t w_{number};" for number, bit in numbers if bit]
    result_calls = [f"&w_{number}" if bit else f"r_{number}" for number, bit in numbers]
    after = [f"  *r_{number} = (unsigned char)w_{number};" for number, bit in numbers if bit]
    return "\n".join(
        [
            '#include "lanes.h"',
            '#include "pool.h"',
            "namespace {",
            code.text(),
            "}  // namespace",
            f'extern "C" void* {name}_new() {{',
            f"  {code.name}* s = ({code.name}*)zeroed(sizeof({code.name}));",
            f"  {code.name}_init(*s);",
            "  return s;",
            "}",
            f'extern "C" int {name}_begin(void* s, {", ".join(parameters)}) {{',
            *before,
            f"  {code.name}_begin(*({code.name}*)s, {', '.join(calls)});",
            f"  return ++(({code.name}*)s)->step;",
            "}",
            f'extern "C" void {name}_end(void* s, int, {", ".join(results)}) {{',
            *room,
            f"  {code.name}_end(*({code.name}*)s);",
            f"  {code.name}_outputs(*({code.name}*)s, {', '.join(result_calls)});",
            *after,
            "}",
            "",
        ]
    )
