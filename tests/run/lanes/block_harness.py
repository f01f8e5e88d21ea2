"""Harness that compares a block's modules and vectors on the same random inputs.

Each port has a random mode, such as sparse, constant or rarely changing. Resets and pauses of the clock are random.
"""

from collections.abc import Mapping

__all__ = ["TOP", "harness"]

TOP = "block_harness"

TEXT = """
/* verilator lint_off WIDTH */
module {top}(input wire clk, output reg done, output reg [63:0] cycles, edges, compared, wrong);
  reg        run = 0;
  reg [15:0] pause = 0;
  reg [63:0] limit;
  integer    part;
  wire gated = clk & run;
{declarations}
  {scalar} scalar(.clk(gated){scalar_ports});
  {vector} vector(.clk(gated){vector_ports});

  initial begin
    done = 0; cycles = 0; edges = 0; compared = 0; wrong = 0;
    if (!$value$plusargs("CYCLES=%d", limit)) limit = 1000;
  end

  always @(negedge clk) if (!done) begin
    // What the last edge left.
    compared <= compared + {output_bits};
    if ({differ}) begin
      wrong <= wrong + 1;
      if (wrong < 4) begin
{complaints}
      end
    end
    // The next one.
    pause <= pause != 0 ? pause - 1 : $urandom % 512 == 0 ? 16'($urandom % 64) : 0;
    run <= pause == 0 && $urandom % 8 != 0;
    if (run) edges <= edges + 1;
    cycles <= cycles + 1;
    done <= cycles + 1 == limit;
{draws}
  end
endmodule
/* verilator lint_on WIDTH */
"""

DRAW = """\
    if ($urandom % 64 == 0) {port}_calm <= !{port}_calm;
    if ({port}_calm ? $urandom % 16 == 0 : $urandom % 4 != 0) begin
      {port}_mood = $urandom % 8;
      for (part = 0; part < {parts}; part = part + 1)
        case ({port}_mood)
          0: {port}[32*part +: 32] <= 0;
          1: {port}[32*part +: 32] <= ~0;
          2: {port}[32*part +: 32] <= $urandom & $urandom & $urandom;
          3: {port}[32*part +: 32] <= $urandom | $urandom | $urandom;
          4: {port}[32*part +: 32] <= {port}[32*part +: 32] ^ ($urandom & $urandom & $urandom & $urandom & $urandom);
          default: {port}[32*part +: 32] <= $urandom;
        endcase
    end"""


def harness(scalar: str, vector: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> str:
    """Return the Verilog that runs two modules for +CYCLES=n cycles, from widths of ports except `clk`."""
    declarations, draws, complaints, common, ports = [], [], [], [], {"scalar": [], "vector": []}
    for port, width in inputs.items():
        parts = -(-width // 32)
        declarations.append(f"  reg [{32 * parts - 1}:0] {port} = 0;")
        common.append(f".{port}({port}[{width - 1}:0])")
        if port == "rst":
            draws.append("    rst <= 32'($urandom % 128 == 0);")
            continue
        declarations.append(f"  reg [2:0] {port}_mood;")
        declarations.append(f"  reg {port}_calm = 0;")
        draws.append(DRAW.format(port=port, parts=parts))
    for port, width in outputs.items():
        for which, connections in ports.items():
            declarations.append(f"  wire [{width - 1}:0] {which}_{port};")
            connections.append(f".{port}({which}_{port})")
        complaint = f'"cycle %0d, {port}: %h as vectors, not %h", cycles, vector_{port}, scalar_{port}'
        complaints.append(f"        if (scalar_{port} != vector_{port}) $display({complaint});")
    return TEXT.format(
        top=TOP,
        scalar=scalar,
        vector=vector,
        declarations="\n".join(declarations),
        draws="\n".join(draws),
        complaints="\n".join(complaints),
        differ=" || ".join(f"scalar_{port} != vector_{port}" for port in outputs),
        output_bits=sum(outputs.values()),
        **{f"{which}_ports": "".join(f", {each}" for each in [*common, *own]) for which, own in ports.items()},
    )
