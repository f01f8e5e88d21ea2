"""Reference page of the instruction set, generated from `spec`.

`python -m neuroncore_rtl.kernels.text.reference` writes docs/isa.md.
"""

import ast
import enum
import inspect
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from neuroncore_rtl import ROOT
from neuroncore_rtl.kernels.text import assembly
from neuroncore_rtl.kernels.text.markdown import markdown_table
from neuroncore_rtl.spec import host_map, isa, memory_map
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS, MATMUL_FORMATS, FloatFormat
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.spec.isa import collective, dma, elementwise, engine, record
from neuroncore_rtl.spec.isa.collective import agreement, layout, rules
from neuroncore_rtl.spec.isa.fields import Layout

__all__ = ["page", "write_reference"]

PAGE = ROOT / "docs" / "isa.md"


def write_reference() -> None:
    """Write docs/isa.md."""
    PAGE.write_text(page())


def page() -> str:
    """Return the text of docs/isa.md."""
    counters = [(str(number), f"`{name}`") for number, name in enumerate(isa.QUEUE_COUNTERS)]
    sizes = f"`GRANULE` is {collective.GRANULE} elements, `CHUNK_GRANULES` {collective.CHUNK_GRANULES}"
    sizes += f", `MAX_RANKS` {collective.MAX_RANKS}; `opcode` is {collective.COLLECTIVE}."
    sections = (
        *(
            "# Instruction set",
            "Generated from `spec/` by `python -m neuroncore_rtl.kernels.text.reference`.",
            "![Record: 128 bytes, a header and an instruction](pictures/record.svg)",
        ),
        *("## Records", _prose(record)),
        *("The header:", _layout(isa.HEADER_FIELDS), _documented(record)["HEADER_FIELDS"]),
        *("The instruction follows at bit " + str(isa.HEADER_BITS) + " of the record. Engines:", _codes(isa.Engine)),
        *("Operations of an update:", _codes(isa.UpdateOp)),
        *(
            "Counters of every queue:",
            _documented(engine)["QUEUE_COUNTERS"],
            markdown_table(("number", "name"), counters),
        ),
        *("### NOP", _prose(isa.Nop)),
        *("## Formats", _formats()),
        *("## Tensor engine", _layout(isa.TENSOR_FIELDS), _prose(isa.TensorInstruction)),
        *(f"### LOAD_STATIONARY = {isa.LOAD_STATIONARY}", _prose(isa.LoadStationary)),
        *(f"### MULTIPLY_MOVING = {isa.MULTIPLY_MOVING}", _prose(isa.MultiplyMoving)),
        *("## Vector and scalar engine", _prose(elementwise), _layout(isa.ELEMENTWISE_FIELDS), _prose(isa.Elementwise)),
        *("A tensor (`dst_`, `a_`, `b_`):", _prose(isa.Access), "Storages:", _codes(isa.Storage)),
        *("A scalar in memory, in `scalar0` or `scalar1`:", _layout(isa.POINTER_FIELDS), _prose(isa.Pointer)),
        *("The number of an element (`index`):", _prose(isa.Index)),
        *("### Opcodes", _prose(isa.Opcode), _opcodes()),
        *("### Operations", *_enumeration(isa.AluOp)),
        *("### Functions", _functions()),
        *("## DMA engines", _prose(dma), f"`opcode` is {isa.DMA_COPY}.", _layout(isa.DMA_FIELDS)),
        *(_prose(isa.DmaCopy), "A tensor:", _prose(isa.DmaTensor), "Row numbers:", _prose(isa.DmaIndex)),
        *("## Collective engine", _prose(collective), sizes, _layout(collective.COLLECTIVE_FIELDS)),
        *(_documented(layout)["COLLECTIVE_FIELDS"], _prose(collective.Collective)),
        *("A group:", _prose(collective.Group)),
        *("### Kinds", *_enumeration(collective.CollectiveKind)),
        *("### Reductions and types", *_enumeration(collective.ReduceOp), *_enumeration(collective.CollectiveType)),
        *("### What ranks must agree on", _layout(collective.SIGNATURE_FIELDS, collective.SIGNATURE_OFFSETS)),
        _documented(agreement)["SIGNATURE_FIELDS"],
        *("### Fields that rules check", _prose(rules)),
        *("## Assembly", _prose(assembly)),
        *("## Errors", "### Rules", *_enumeration(isa.Rule), "### Other causes", *_enumeration(isa.Cause)),
        *("## Memory map", _prose(memory_map), _memory_map()),
        *("## Host registers", _prose(host_map), *_host_registers()),
    )
    return "\n\n".join(section.strip() for section in sections if section) + "\n"


def _layout(layout: Layout, offsets: Mapping[str, int] | None = None) -> str:
    """Return a table of the bit fields of a layout; without `offsets`, the fields are contiguous from bit 0 on."""
    rows, first = [], 0
    for name, width in layout:
        first = first if offsets is None else offsets[name]
        bits = str(first) if width == 1 else f"{first}-{first + width - 1}"
        rows.append((bits, str(width), f"`{name}`"))
        first += width
    return markdown_table(("bits", "width", "field"), rows)


def _codes(kind: type[enum.IntEnum]) -> str:
    words = _documented(kind)
    rows = [(str(int(member)), f"`{member.name}`", words.get(member.name, "")) for member in kind]
    return markdown_table(("code", "name", "meaning"), rows)


def _enumeration(kind: type[enum.IntEnum]) -> tuple[str, str]:
    return _prose(kind), _codes(kind)


def _opcodes() -> str:
    words = _documented(isa.Opcode)
    rows = [
        (str(int(code)), f"`{code.name}`", "scalar" if code in isa.SCALAR_OPCODES else "vector", words[code.name])
        for code in isa.Opcode
    ]
    return markdown_table(("code", "name", "engine", "meaning"), rows)


def _functions() -> str:
    rows = [
        (str(f.code), f"`{f.name}`", f"`{f.derivative_of}`" if f.derivative_of else "", "yes" if f.has_alpha else "")
        for f in FUNCTIONS.values()
    ]
    return markdown_table(("code", "name", "derivative of", "alpha"), rows)


def _formats() -> str:
    rows = []
    for f in FORMATS.values():
        parts = (f.exponent_bits, f.mantissa_bits) if isinstance(f, FloatFormat) else ("", "")
        used = "yes" if f in MATMUL_FORMATS else ""
        rows.append((str(f.code), f"`{f.name}`", str(f.bits), *map(str, parts), used))
    return markdown_table(("code", "name", "bits", "exponent", "mantissa", "tensor engine"), rows)


def _memory_map() -> str:
    words = _documented(memory_map)
    assigned = map(_assigned, ast.parse(inspect.getsource(memory_map)).body)
    constants = [name for name in assigned if name in memory_map.__all__]
    return markdown_table(
        ("name", "value", "meaning"),
        [(f"`{name}`", f"`{getattr(memory_map, name):#x}`", words.get(name, "")) for name in constants],
    )


def _host_registers() -> Iterator[str]:
    rows = []
    for register in host_map.HOST_REGISTERS:
        rows.append((f"`{register.offset:#04x}`", f"`{register.name}`", "", register.effect.value, register.meaning))
        for field in register.fields:
            bits = str(field.low) if field.width == 1 else f"{field.low}-{field.low + field.width - 1}"
            rows.append(("", f"`{field.name}`", bits, "", field.meaning))
    yield markdown_table(("offset", "name", "bits", "access", "meaning"), rows)
    words, names = _documented(host_map), ", ".join(f"`{name}`" for name in Config.RANGES)
    yield f"`PARAMETER_WORDS` = `{host_map.PARAMETER_WORDS:#x}`: {words['PARAMETER_WORDS']} They are {names}."
    yield f"`COUNTER_WORDS` = `{host_map.COUNTER_WORDS:#x}`: {words['COUNTER_WORDS']}"


def _prose(documented: type | ModuleType) -> str:
    """Return the docstring of a class or module as Markdown; its arguments become a list."""
    items: list[str] = []
    before, _, arguments = (inspect.getdoc(documented) or "").partition("Arguments:\n")
    for line in arguments.splitlines():
        named = re.fullmatch(r" {4}(\w+(?:, \w+)*): (.*)", line)
        if named:
            names = ", ".join(f"`{name}`" for name in named[1].split(", "))
            items.append(f"- {names}: {named[2]}")
        elif line.strip():
            items[-1] += f" {line.strip()}"
    return _plain("\n\n".join((before.strip(), "\n".join(items))))


def _documented(place: type | ModuleType) -> dict[str, str]:
    """Return the docstrings that follow assignments in a class or module, by assigned name."""
    body: Any = ast.parse(inspect.getsource(place)).body
    body = body[0].body if inspect.isclass(place) else body
    return {
        name: _plain(" ".join(ast.literal_eval(text.value).split()))
        for node, text in zip(body, body[1:], strict=False)
        if (name := _assigned(node)) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _assigned(node: ast.stmt) -> str | None:
    """Return the name that a statement assigns to; None if it is not an assignment."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return targets[0].id if targets and isinstance(targets[0], ast.Name) else None


def _plain(text: str) -> str:
    """Replace each role of a documentation tool, such as :func:, by the last part of the name in backticks."""
    return re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"`\1`", text)


if __name__ == "__main__":
    write_reference()
