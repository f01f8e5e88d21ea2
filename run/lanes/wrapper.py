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
    values = "".join(f", next_{port}" for port, _ in outputs)
    lines = [
        f"module {name}({', '.join(ports)});",
        f'  import "DPI-C" function chandle {name}_new({returned});',
        f'  import "DPI-C" function void {name}_step(input chandle state, {given}, {returned});',
        "  input wire clk;",
        *(f"  input wire {'' if width == 1 else f'[{width - 1}:0] '}{port};" for port, width in inputs),
        *(f"  output reg {'' if width == 1 else f'[{width - 1}:0] '}{port};" for port, width in outputs),
        "  chandle state;",
        *(f"  {bits(width)} next_{port};" for port, width in outputs),
        "  initial begin",
        f"    state = {name}_new({values[2:]});",
        *(f"    {port} = next_{port};" for port, _ in outputs),
        "  end",
        "  always @(posedge clk) begin",
        "    /* verilator lint_off BLKSEQ */",
        f"    {name}_step(state, {', '.join(port for port, _ in inputs)}{values});",
        "    /* verilator lint_on BLKSEQ */",
        *(f"    {port} <= next_{port};" for port, _ in outputs),
        "  end",
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
            "#include <stdlib.h>",
            "namespace {",
            code.text(),
            "}  // namespace",
            f'extern "C" void* {name}_new({", ".join(results)}) {{',
            *room,
            f"  const uintptr_t found = (uintptr_t)calloc(1, sizeof({code.name}) + 64);",
            f"  {code.name}* s = ({code.name}*)((found + 63) & ~(uintptr_t)63);",
            f"  {code.name}_init(*s);",
            f"  {code.name}_outputs(*s, {', '.join(result_calls)});",
            *after,
            "  return s;",
            "}",
            f'extern "C" void {name}_step(void* s, {", ".join([*parameters, *results])}) {{',
            *before,
            *room,
            f"  {code.name}_step(*({code.name}*)s, {', '.join([*calls, *result_calls])});",
            *after,
            "}",
            "",
        ]
    )
