"""Portable Verilog: free of warnings, and with the same meaning in every tool.

Amaranth and Yosys write legal but sloppy Verilog, and no option changes that. The text is rewritten by patterns that
hold for the pinned versions (`tests/hdl/verilog/test_text.py`):

- Operands get the width of their operation; Yosys only narrows them (`wreduce`).
- Case statements get a default; `write_verilog` has no option for it.
- A memory is cleared in one statement, and written in one; one for every word and byte takes a simulator several times
  as long. `write_verilog -extmem` would clear it from a separate file; nothing merges the bytes.
- Combinational logic with constant inputs must still be evaluated once. Yosys relies on a race at time 0, which Icarus
  loses. `write_verilog -sv` would write `always_comb`, but also SystemVerilog; this is Verilog-2005.
"""

import re
from collections.abc import Iterable, Iterator

from amaranth.back import rtlil
from amaranth.hdl import Const, Fragment, Signal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog.netlists import faster_netlists
from neuroncore_rtl.hdl.verilog.yosys import run_yosys

__all__ = ["convert", "elaborate", "module_ports", "tidy", "to_rtlil", "verilog_text"]

REMOVED_ATTRIBUTES = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")
"""Attributes that Amaranth adds for its own use."""

EXTENDED = {
    **dict.fromkeys(("add", "sub", "and", "or", "xor"), ("A", "B", "Y")),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), ("A", "B")),
    **dict.fromkeys(("shl", "shr", "sshr", "neg", "not"), ("A", "Y")),
}
"""Cells, and their ports that are extended to one common width, the widest."""

TOGETHER = 2 << 20
"""Characters of RTLIL in a run of Yosys at which no further module is added.

Starting Yosys takes as long as one million characters, and its memory is limited.
"""

_MODULE = re.compile(r"^(?=module )", re.MULTILINE)
_NAME = re.compile(r"module (?:\\(?P<escaped>\S+)|(?P<plain>\w+))")
_RTLIL_MODULE = re.compile(r"^module \\(\S+)", re.MULTILINE)
_WIRE = re.compile(r"^ +wire width (\d+) .*?(\S+)$", re.MULTILINE)
_CELL = re.compile(r"^  cell \$(\w+) .*?^  end$", re.MULTILINE | re.DOTALL)
_WIDTH = r"(parameter \\{}_WIDTH )(\d+)"
_CONNECT = r"(connect \\{} )(.+)"
_WAKE = re.compile(r"\\\$auto\$verilog_backend\.cc:\d+:dump_module\$\d+ ")

WAKE = r"""  // Wakes blocks whose inputs never change, once all of them wait: hence nonblocking.
  /* verilator lint_off INITIALDLY */
  reg \$wake ;
  initial \$wake <= 1'h0;
  /* verilator lint_on INITIALDLY */"""


_CLEARED = re.compile(r"^  initial begin\n((?:    (\w+)\[\d+\] = (\d+)'(?:h0+|d0);\n)+)  end$", re.MULTILINE)
"""Pattern of an `initial` block that clears a memory word by word."""

_BYTE_WRITE = re.compile(
    r"    if \((?P<enable>\w+)\[(?P<bit>\d+)\]\)\n"
    r"      (?P<memory>\w+)\[(?P<address>\w+)\]\[(?P<high>\d+):(?P<low>\d+)\] <= (?P<data>\w+)\[(?P=high):(?P=low)\];\n"
)
_BYTE_WRITES = re.compile(rf"^  always @\(posedge clk\) begin\n((?:{_BYTE_WRITE.pattern}){{2,}})  end$", re.MULTILINE)
"""Pattern of a memory's write port with byte enables; groups: enable, its bit, memory, address, bits, data."""

_BARE = re.compile(r"^  always @\*\n    (\S.*;)$", re.MULTILINE)
"""Pattern of a combinational block of one statement."""


def module_ports(signature: wiring.Signature, interface) -> Iterator[tuple[str, wiring.Member, Value]]:
    """Yield name, member and value of each port that a component with this interface has as a Verilog module.

    The name is the path, joined by `__`. Constants, such as a `ready` that is always 1, are not ports.
    """
    for path, member, value in signature.flatten(interface):
        value = Value.cast(value)
        if not isinstance(value, Const):
            yield "__".join(map(str, path)), member, value


def elaborate(component: wiring.Component, platform) -> tuple[Fragment, dict]:
    """Return `component` elaborated with all of its submodules, and its ports by name.

    A port that is only a part of a signal becomes a separate signal.
    """
    fragment = Fragment.get(component, platform)
    ports = {}
    for port, member, value in module_ports(component.signature, component):
        is_input = member.flow == wiring.In
        if not isinstance(value, Signal):
            part, value = value, Signal(len(value), name=port)
            fragment.add_statements("comb", part.eq(value) if is_input else value.eq(part))
        ports[port] = value, PortDirection.Input if is_input else PortDirection.Output
    return fragment, ports


def to_rtlil(name: str, fragment: Fragment, ports: dict, *, sources: bool = False) -> str:
    """Return the RTLIL of an elaborated component and its submodules.

    Arguments:
        name: Verilog name of the component's module.
        fragment: the fragment from `elaborate`.
        ports: the ports from `elaborate`.
        sources: annotate each signal and cell with its source file and line.
    """
    with faster_netlists():
        return rtlil.convert(fragment, name, ports=ports, emit_src=sources)


def convert(component: wiring.Component, name: str, platform) -> str:
    """Return the Verilog of `component` as a module called `name`, preceded by the Verilog of its submodules."""
    (text,) = verilog_text([to_rtlil(name, *elaborate(component, platform))])
    return text


def verilog_text(netlists: Iterable[str]) -> list[str]:
    """Convert several texts of RTLIL, with distinct module names, to one text of Verilog."""
    texts, together, size = [], [], 0
    for netlist in netlists:
        together.append(netlist)
        size += len(netlist)
        if size > TOGETHER:
            texts += _to_verilog(together)
            together, size = [], 0
    return texts + (_to_verilog(together) if together else [])


def _to_verilog(netlists: list[str]) -> list[str]:
    removed = " ".join(f"-remove {attribute}" for attribute in REMOVED_ATTRIBUTES)
    read = "".join(f"read_rtlil <<rtlil\n{tidy(netlist)}\nrtlil\n" for netlist in netlists)
    script = (
        f"{read}"
        # No optimisation: it would narrow operands again.
        "proc -nomux -norom -noopt\n"
        "memory_collect\n"
        f"attrmap {removed}\n"
        f"attrmap -modattr {removed}\n"
        "write_verilog -norename\n"
    )
    # Yosys warns that some processes cannot be written; Amaranth's always can.
    text = run_yosys(script)
    head, *modules = _MODULE.split(text)
    written = {name["escaped"] or name["plain"]: text for text in modules if (name := _NAME.match(text))}
    names = [set(_RTLIL_MODULE.findall(netlist)) for netlist in netlists]
    assert written.keys() == set().union(*names), "every module is written once, under its name"
    texts = (head + "".join(text for name, text in written.items() if name in own) for own in names)
    return [_rewrite(f"{text.rstrip()}\n") for text in texts]


def _rewrite(text: str) -> str:
    text = re.sub(r"^  reg " + _WAKE.pattern + r" = 0;$", lambda match: WAKE, text, flags=re.MULTILINE)
    text = _WAKE.sub(lambda match: r"\$wake ", text)
    text = "".join(_awaken(module) for module in _MODULE.split(text))
    text = _CLEARED.sub(_clear, text)
    text = _BYTE_WRITES.sub(_write, text)
    return "\n".join(_with_defaults(text.split("\n")))


def tidy(netlist: str) -> str:
    """Return RTLIL text in which all operands of each cell are extended to the same width."""
    return "".join(_tidy_module(module) for module in _MODULE.split(netlist))


def _tidy_module(module: str) -> str:
    widths = {name: int(width) for width, name in _WIRE.findall(module)}
    return _CELL.sub(lambda match: _extend(match, widths), module)


def _extend(cell: re.Match, widths: dict[str, int]) -> str:
    """Return the text of a cell with its narrower operands extended.

    The result of the cell already has the right width.
    """
    text = cell[0]
    ports = EXTENDED.get(cell[1], ())
    present = {port: int(re.search(_WIDTH.format(port), text)[2]) for port in ports}
    width = max(present.values(), default=0)
    for port in present:
        missing = width - present[port]
        if port != "Y" and missing > 0:
            operand = re.search(_CONNECT.format(port), text)[2]
            signed = rf"parameter \{port}_SIGNED 1" in text
            fill = " ".join([_sign(operand, widths)] * missing) if signed else f"{missing}'{'0' * missing}"
            text = text.replace(f"parameter \\{port}_WIDTH {present[port]}\n", f"parameter \\{port}_WIDTH {width}\n")
            text = text.replace(f"connect \\{port} {operand}\n", f"connect \\{port} {{ {fill} {operand} }}\n")
    return text


def _sign(operand: str, widths: dict[str, int]) -> str:
    """Return the text of the most significant bit of an operand: a signal, a slice, a constant or a concatenation."""
    first = operand.removeprefix("{").split()
    constant = re.fullmatch(r"\d+'([01-]+)", first[0])
    if constant:
        return f"1'{constant[1][0]}"
    if len(first) > 1 and first[1].startswith("["):
        return f"{first[0]} [{first[1].strip('[]').split(':')[0]}]"
    return f"{first[0]} [{widths[first[0]] - 1}]"


def _awaken(module: str) -> str:
    """Make `always` blocks of one statement read the wake-up signal, which starts their evaluation.

    Yosys omits the signal in these blocks.
    """
    text = _BARE.sub(r"  always @* begin\n    if (\\$wake ) begin end\n    \1\n  end", module)
    if text == module or r"reg \$wake ;" in module:
        return text
    head, block, rest = text.partition("  always @*")
    return f"{head}{WAKE}\n{block}{rest}"


def _clear(initial: re.Match) -> str:
    words, memory, width = initial[1].count("\n"), initial[2], initial[3]
    word = rf"\{memory}$word "
    return (
        f"  integer {word};\n"
        f"  initial for ({word} = 0; {word} < {words}; {word} = {word} + 1) {memory}[{word}] = {width}'h0;"
    )


def _write(port: re.Match) -> str:
    """Return a single assignment for a write port with byte enables; bytes not enabled keep their value.

    The port is returned unchanged if its enables are not bits of one signal, or its bytes do not cover the whole word.
    """
    writes = list(_BYTE_WRITE.finditer(port[1]))
    enable, memory, address = writes[0].group("enable", "memory", "address")
    lows = [int(write["low"]) for write in writes]
    ends = [int(write["high"]) + 1 for write in writes]
    module = port.string[port.string.rfind("\nmodule ", 0, port.start()) : port.start()]
    alike = all(write.group("enable", "memory", "address") == (enable, memory, address) for write in writes)
    if not alike or lows != [0, *ends[:-1]] or f"  reg [{ends[-1] - 1}:0] {memory} [" not in module:
        return port[0]
    bits = []
    for write in reversed(writes):
        place = f"[{write['high']}:{write['low']}]"
        bits.append(f"{enable}[{write['bit']}] ? {write['data']}{place} : {memory}[{address}]{place}")
    word = ",\n      ".join(bits)
    return f"  always @(posedge clk) begin\n    if (|{enable})\n      {memory}[{address}] <= {{ {word} }};\n  end"


def _with_defaults(lines: list[str]) -> Iterator[str]:
    has_default = []
    for line in lines:
        word = line.strip()
        if word.startswith("casez"):
            has_default.append(False)
        elif word.startswith("default:"):
            has_default[-1] = True
        elif word == "endcase" and not has_default.pop():
            yield line.replace("endcase", "  default: ;")
        yield line
