"""Text form of records, one per line.

    tensor_scalar partitions=4 shape=16 dst=sbuf[0,0x100].bf16(1) a=psum[0,0x0].fp32(1) op0=multiply s0=0x40000000
    dma_copy shape=4x32 dst=hbm[0x1000].fp32(32,1) src=sbuf[0,0x100].bf16(p1,1) | wait s3>=4 s5>=1 | signal s7+1
    nop | wait s5>=7 s6>=1
    all_reduce group=0+2x4 rank=3 count=4096 dtype=bf16 src=0x1000 dst=0x2000 op=max | wait s3>=4

A line is the name of an instruction and its fields, named as in `spec.isa`, in any order. A missing field has its
default. A flag has no value. A tensor is storage[partition,address].format(steps), outermost step first; in a copy, p
marks the step along the partitions. s0 and s1 are words, or [partition,address].format of a scalar in SBUF. The group
0+2x4 is four cores from core 0 in steps of 2, 6-2x4 is the same cores in reverse; src and dst of a collective are
addresses. The waits and the semaphore updates of the record follow bars: + adds, - subtracts, = sets. # starts a
comment. A line `queue` with a name precedes the records of a queue.
"""

import enum
import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any, cast

from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format, format_named
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.spec.isa.collective import CollectiveType, Group, ReduceOp

__all__ = ["assemble", "disassemble", "parse_record", "record_text"]

_FUNCTIONS = {function.code: function.name for function in FUNCTIONS.values()}
_SIGNS = {isa.UpdateOp.ADD: "+", isa.UpdateOp.SUBTRACT: "-", isa.UpdateOp.SET: "="}
_UPDATES = {sign: op for op, sign in _SIGNS.items()}
_HEXADECIMAL = frozenset({"address", "alpha", "seed", "stream", "s0", "s1", "src", "dst", "pitch"})


def disassemble(blocks: Iterable[tuple[int, Iterable[isa.Record]]], config: Config) -> str:
    """Return the assembly text of records; `blocks` are pairs of a queue index and the queue's records."""
    lines = []
    for queue, records in blocks:
        lines.append(f"queue {isa.queue_name(queue, config)}")
        lines += [f"    {record_text(record)}" for record in records]
    return "".join(f"{line}\n" for line in lines)


def assemble(text: str) -> list[tuple[str, list[isa.Record]]]:
    """Return the records of an assembly text: pairs of a queue name and the queue's records.

    Raises:
        ValueError: if a line is wrong; the message starts with the line number.
    """
    blocks: list[tuple[str, list[isa.Record]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[0] == "queue" and len(words) == 2:
            blocks.append((words[1], []))
        elif not blocks:
            raise ValueError(f"line {number}: the first line must name a queue, not {line.strip()!r}")
        else:
            try:
                blocks[-1][1].append(parse_record(" ".join(words)))
            except ValueError as wrong:
                raise ValueError(f"line {number}: {wrong}") from wrong
    return blocks


def record_text(record: isa.Record) -> str:
    """Return the line of assembly text for a record."""
    parts = [_instruction_text(record.instruction)]
    if record.waits:
        parts.append(" ".join(["wait", *(f"s{wait.semaphore}>={wait.value}" for wait in record.waits)]))
    if record.updates:
        updates = (f"s{update.semaphore}{_SIGNS[update.op]}{update.value}" for update in record.updates)
        parts.append(" ".join(["signal", *updates]))
    return " | ".join(parts)


def parse_record(line: str) -> isa.Record:
    """Return the record that a line of assembly text describes.

    Raises:
        ValueError: if the line is wrong.
    """
    text, *others = line.split("|")
    found: dict[str, tuple[str, ...]] = {"wait": (), "signal": ()}
    for words in (other.split() for other in others):
        if not words or words[0] not in found:
            raise ValueError(f"wait or signal must follow a bar, not {' '.join(words)!r}")
        found[words[0]] = tuple(words[1:])
    waits = [_matched(r"s(\d+)>=(\d+)", word, "a wait must be like s3>=4") for word in found["wait"]]
    rule = "a signal must be like s7+1, s7-1 or s7=1"
    updates = [_matched(r"s(\d+)([-+=])(\d+)", word, rule) for word in found["signal"]]
    return isa.Record(
        instruction=_instruction(text.split()),
        waits=tuple(isa.Wait(int(semaphore), int(value)) for semaphore, value in waits),
        updates=tuple(isa.Update(int(semaphore), int(value), _UPDATES[sign]) for semaphore, sign, value in updates),
    )


# From instructions to text


def _instruction_text(instruction: isa.Instruction) -> str:
    words = [instruction.name.lower()]
    for field in fields(cast(Any, instruction)):
        value = getattr(instruction, field.name)
        if field.name == _naming(type(instruction)) or value == field.default:
            continue
        words.append(field.name if value is True else f"{field.name}={_value_text(field.name, value)}")
    return " ".join(words)


def _naming(kind: type[isa.Instruction]) -> str | None:
    """Return the field that distinguishes the mnemonics of an instruction type; None if the type has one mnemonic."""
    return kind.named_by and kind.named_by[0]


def _value_text(name: str, value) -> str:
    match value:
        case _ if name == "shape":
            return "x".join(map(str, value))
        case _ if name == "format":
            return value.name
        case _ if name == "function":
            return _FUNCTIONS.get(value, str(value))
        case isa.AluOp() | ReduceOp() | CollectiveType():
            return value.name.lower()
        case Group():
            return f"{value.base}{value.stride:+}x{value.ranks}"
        case isa.Pointer():
            return f"[{value.partition},{value.address:#x}].{value.format.name}"
        case isa.Access() | isa.DmaTensor():
            axis = getattr(value, "axis", None)
            steps = ",".join(f"{'p' * (d == axis)}{step}" for d, step in enumerate(value.steps))
            partition = "" if value.storage == isa.Storage.HBM and value.partition == 0 else f"{value.partition},"
            return f"{value.storage.name.lower()}[{partition}{value.address:#x}].{value.format.name}({steps})"
        case isa.DmaIndex():
            return f"[{value.partition},{value.address:#x}]<{value.limit}" + "?" * value.skip
        case isa.Index():
            return f"{value.base}+{value.partition}({','.join(map(str, value.steps))})"
    return hex(value) if name in _HEXADECIMAL else str(int(value))


# From text to instructions


def _instruction(words: list[str]) -> isa.Instruction:
    name, *settings = words or [""]
    if name not in isa.MNEMONICS:
        raise ValueError(f"an instruction must be one of {', '.join(isa.MNEMONICS)}, not {name!r}")
    kind = isa.MNEMONICS[name]
    known: dict[str, Any] = {field.name: field for field in fields(cast(Any, kind)) if field.name != _naming(kind)}
    values: dict[str, Any] = {kind.named_by[0]: kind.named_by[1][name.upper()]} if kind.named_by else {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if key not in known:
            raise ValueError(f"a field of {name} must be one of {', '.join(known)}, not {key!r}")
        if key in values:
            raise ValueError(f"duplicate field {key}")
        values[key] = _value(known[key].type, key, text) if equals else True
    missing = [key for key, field in known.items() if field.default is MISSING and key not in values]
    if missing:
        raise ValueError(f"{name}: missing {', '.join(missing)}")
    return kind(**values)


def _value(kind: type, key: str, text: str):
    if key == "function" and text in FUNCTIONS:
        return FUNCTIONS[text].code
    parse = next((parse for kinds, parse in _PARSERS if kind in kinds), None)
    if parse is not None:
        return parse(key, text)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _code(kind, key, text)
    return _integer(text)


def _code(codes: type[enum.Enum], key: str, text: str) -> enum.Enum:
    if text.upper() not in codes.__members__:
        raise ValueError(f"{key} must be one of {', '.join(code.name.lower() for code in codes)}, not {text!r}")
    return codes[text.upper()]


def _group(key: str, text: str) -> Group:
    base, stride, ranks = _matched(r"(\d+)([+-]\d+)x(\d+)", text, f"{key} must be like 0+1x8")
    return Group(int(base), int(stride), int(ranks))


def _rows(key: str, text: str) -> isa.DmaIndex:
    form = f"{key} must be like [0,0x100]<64, or [0,0x100]<64? to skip rows"
    partition, address, limit, skip = _matched(r"\[(\d+),(\w+)\]<(\d+)(\??)", text, form)
    return isa.DmaIndex(address=_integer(address), partition=int(partition), limit=int(limit), skip=bool(skip))


def _index(key: str, text: str) -> isa.Index:
    base, partition, steps = _matched(r"(-?\d+)\+(-?\d+)\((.*)\)", text, f"{key} must be like 0+16(4,1)")
    return isa.Index(base=int(base), partition=int(partition), steps=_steps(steps))


def _scalar(key: str, text: str) -> int | isa.Pointer:
    if not text.startswith("["):
        return _integer(text)
    partition, address, fmt = _matched(r"\[(\d+),(\w+)\]\.(\w+)", text, f"{key} must be like [0,0x100].fp32")
    return isa.Pointer(format=format_named(fmt), address=_integer(address), partition=int(partition))


def _place(text: str) -> dict:
    """Parse the text of a tensor; return the arguments that `Access` and `DmaTensor` have in common."""
    pattern = r"(sbuf|psum|hbm)\[(?:(\d+),)?(\w+)\]\.(\w+)\((.*)\)"
    storage, partition, address, fmt, steps = _matched(pattern, text, "a tensor must be like sbuf[0,0x100].bf16(16,1)")
    return {
        "format": format_named(fmt),
        "address": _integer(address),
        "partition": int(partition or 0),
        "storage": isa.Storage[storage.upper()],
        "steps": _steps(steps.replace("p", "")),
    }


def _dma_tensor(key: str, text: str) -> isa.DmaTensor:
    place = _place(text)
    axes = [d for d, step in enumerate(text.partition("(")[2].split(",")) if step.startswith("p")]
    if len(axes) > 1:
        raise ValueError(f"at most one dimension may step along the partitions, not {text!r}")
    return isa.DmaTensor(**place, axis=axes[0] if axes else None)


def _steps(text: str) -> tuple[int, ...]:
    return tuple(_integer(step) for step in text.split(",")) if text else ()


def _integer(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"a number must be decimal, or hexadecimal with 0x, not {text!r}") from None


def _matched(pattern: str, text: str, rule: str) -> tuple[str, ...]:
    found = re.fullmatch(pattern, text)
    if not found:
        raise ValueError(f"{rule}, not {text!r}")
    return found.groups()


_PARSERS = (
    ((tuple[int, ...],), lambda key, text: tuple(_integer(count) for count in text.split("x"))),
    ((Format,), lambda key, text: format_named(text)),
    ((isa.Access, isa.Access | None), lambda key, text: isa.Access(**_place(text))),
    ((isa.DmaTensor,), _dma_tensor),
    ((isa.DmaIndex | None,), _rows),
    ((isa.Index,), _index),
    ((int | isa.Pointer,), _scalar),
    ((Group,), _group),
)
"""Parsers of field values by type; enumerations are parsed by name, and all other types as numbers."""
