"""Hierarchical block with instances that `native/side_by_side.cpp` evaluates in parallel, and its wrapper.

Verilator's wrapper evaluates the block when inputs change and at each edge of the clock; each time it returns all
outputs, as four-state vectors. Here instances are evaluated at edges only. So the wrapper here writes inputs when they
change, reads outputs at edges, and those that are seldom used only then; values have two states.

As a program: run Verilator with the arguments; if they create the block of the environment, replace its wrapper.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SideBySide"]


@dataclass(frozen=True)
class SideBySide:
    """Block that the main program evaluates once an edge, its instances in parallel.

    No output that depends on an input in the same cycle may lead back to an input.

    Arguments:
        block: name of the module.
        seldom: regular expression of outputs that the design above uses only where `used` is true.
        used: Verilog condition, on signals that change with the rising edge.
    """

    block: str
    instances: int
    seldom: str
    used: str

    @property
    def environment(self) -> dict[str, str]:
        return {"BLOCK": self.block, "SELDOM": self.seldom, "USED": self.used}


@dataclass(frozen=True)
class _Port:
    direction: str
    high: int
    name: str

    @property
    def member(self) -> str:
        """Name in the class of the block; Verilator encodes double underscores."""
        return self.name.replace("__", "___05F")

    @property
    def declaration(self) -> str:
        return f"{self.direction} bit [{self.high}:0] {self.name}"

    @property
    def parameter(self) -> str:
        return f"{'const ' if self.direction == 'input' else ''}svBitVecVal* {self.member}"

    @property
    def copy(self) -> str:
        """C++ statement that writes an input or reads an output."""
        bits, inside = self.high + 1, f"block.{self.member}"
        size = "I" if bits <= 32 else "Q" if bits <= 64 else "W"
        if self.direction == "output":
            return f"VL_SET_SVBV_{size}({bits}, {self.member}, {inside});"
        size = "C" if bits <= 8 else "S" if bits <= 16 else size
        return f"VL_SET_{size}_SVBV({bits}, {inside}, {self.member});"


def _wrapper(text: str, seldom: str, used: str) -> tuple[str, str]:
    """Return the Verilog module and the C++ functions that it calls.

    Arguments:
        text: Verilator's module.
        seldom: regular expression of outputs that are only read at a falling edge.
        used: Verilog condition in which they are.
    """
    header = re.match(r".*?module (\w+) \((.*?)\);", text, re.DOTALL)
    if header is None:
        raise ValueError(f"Verilator's wrapper begins with {text[:80]!r}")
    block = header[1]
    ports = [
        _Port(direction, int(high or 0), name)
        for direction, high, name in re.findall(r"(input|output) logic (?:\[(\d+):0\])? *(\w+)", header[2])
    ]
    inputs = [port for port in ports if port.direction == "input" and port.name != "clk"]
    outputs = [port for port in ports if port.direction == "output"]
    rare = [port for port in outputs if re.search(seldom, port.name)]
    functions = {"write": inputs, "read": [port for port in outputs if port not in rare], "read_rare": rare}
    settings = text[text.index("`ifdef VERILATOR") :]
    # Costs of Verilator's functions.
    settings = re.sub(r"(profile_data|hier_workers) .*\n", "", settings)
    return _verilog(block, header[0], functions, used) + settings, _cpp(block, functions)


def _verilog(block: str, header: str, functions: Mapping[str, Sequence[_Port]], used: str) -> str:
    """Return the module; edges write outputs without blocking, so that other processes read the values before them."""
    lines = [
        header,
        "timeunit 1ns; timeprecision 1ps;",
        f'import "DPI-C" function chandle {block}_create(string scope);',
    ]
    for function, ports in functions.items():
        declared = ", ".join(["chandle block", *(port.declaration for port in ports)])
        lines.append(f'import "DPI-C" function void {block}_{function}({declared});')
    lines += [f'import "DPI-C" function void {block}_finish(chandle block);', "chandle block;"]
    lines.append(f'initial block = {block}_create($sformatf("%m"));')
    lines.append(f"always_comb {block}_write({_arguments(port.name for port in functions['write'])});")
    for function, condition in (("read", "(clk)"), ("read_rare", f"(negedge clk) if ({used})")):
        ports = functions[function]
        lines += [f"bit [{port.high}:0] {port.name}_now;" for port in ports]
        lines.append(f"always @{condition} begin")
        lines.append(f"{block}_{function}({_arguments(f'{port.name}_now' for port in ports)});")
        lines += [f"{port.name} <= {port.name}_now;" for port in ports]
        lines.append("end")
    return "\n".join([*lines, f"final {block}_finish(block);", "endmodule", ""])


def _arguments(names: Iterable[str]) -> str:
    return ", ".join(["block", *names])


def _cpp(block: str, functions: Mapping[str, Sequence[_Port]]) -> str:
    lines = [f'#include "V{block}.h"', '#include "verilated_dpi.h"', 'extern "C" {']
    lines.append(f"void* {block}_create(const char* scope) {{ return new V{block}{{scope}}; }}")
    for function, ports in functions.items():
        parameters = ", ".join(["void* handle", *(port.parameter for port in ports)])
        lines += [f"void {block}_{function}({parameters}) {{", f"auto& block = *static_cast<V{block}*>(handle);"]
        lines += [port.copy for port in ports]
        lines += ["block.eval();"] if function == "write" else []
        lines.append("}")
    lines += [f"void {block}_finish(void* handle) {{", f"auto* block = static_cast<V{block}*>(handle);"]
    return "\n".join([*lines, "block->final();", "delete block;", "}", "}", ""])


def _main(verilator: str, *arguments: str) -> None:
    if status := subprocess.run([verilator, *arguments]).returncode:
        sys.exit(status)
    options, block = Path(arguments[-1]).read_text(), os.environ["BLOCK"]
    if f"--lib-create {block}\n" not in options:
        return
    module = Path("objects", f"V{block}", f"{block}.sv")
    texts = _wrapper(module.read_text(), os.environ["SELDOM"], os.environ["USED"])
    for path, text in zip((module, module.with_suffix(".cpp")), texts, strict=True):
        path.write_text(text)


if __name__ == "__main__":
    _main(*sys.argv[1:])
