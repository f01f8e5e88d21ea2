"""Records as text, one a line, and back.

    tensor_scalar partitions=4 shape=16 dst=sbuf[0,0x100].bf16(1) a=psum[0,0x0].fp32(1) op0=multiply s0=0x40000000
    dma_copy shape=4x32 dst=hbm[0x1000].fp32(32,1) src=sbuf[0,0x100].bf16(p1,1) | wait s3>=4 s5>=1 | signal s7+1
    all_reduce group=0+2x4 rank=3 count=4096 dtype=bf16 src=0x1000 dst=0x2000 op=max | wait s3>=4

An instruction is its name and fields by their names in `spec.isa`, in any order; a field that is not there has its
default, and a flag stands alone. A tensor is storage[partition,address].format(steps), outermost first; in a copy the
step of the dimension that goes from partition to partition has a p before it. s0 and s1 are words, or [partition,
address].format of a scalar in SBUF. The group 0+2x4 is four cores from core 0 in steps of 2, 6-2x4 the same ones
backwards; a collective's src and dst are addresses. Behind bars stand what the record waits for and what it does to
semaphores: + adds, - subtracts, = sets. # starts a comment. `queue` and a queue's name stand before the queue's
records.
"""

import re
from collections.abc import Iterable
from dataclasses import MISSING, fields, replace

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import format_named
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.spec.isa import (
    Access,
    AluOp,
    DmaCopy,
    DmaIndex,
    DmaTensor,
    Elementwise,
    Index,
    LoadStationary,
    MultiplyMoving,
    Opcode,
    Pointer,
    Record,
    Storage,
    Update,
    UpdateOp,
    Wait,
    queue_name,
)
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group, ReduceOp
from neuroncore_rtl.spec.isa.record import Instruction

__all__ = ["assemble", "disassemble", "parse_record", "record_text", "shortened"]

_NAMES: dict[str, type] = {
    "load_stationary": LoadStationary,
    "multiply_moving": MultiplyMoving,
    "dma_copy": DmaCopy,
    **{opcode.name.lower(): Elementwise for opcode in Opcode},
    **{kind.name.lower(): Collective for kind in CollectiveKind},
}
_NAMED_BY = {Elementwise: ("opcode", Opcode), Collective: ("kind", CollectiveKind)}
"""The field that is an instruction's name, where it is not its type that is."""

_WORDS = {"op0": AluOp, "op1": AluOp, "op": ReduceOp, "dtype": CollectiveType}
_FUNCTIONS = {function.code: function.name for function in FUNCTIONS.values()}
_SIGNS = {UpdateOp.ADD: "+", UpdateOp.SUBTRACT: "-", UpdateOp.SET: "="}
_UPDATES = {sign: op for op, sign in _SIGNS.items()}
_HEXADECIMAL = frozenset({"address", "alpha", "seed", "stream", "s0", "s1", "src", "dst", "pitch"})


def disassemble(blocks: Iterable[tuple[int, Iterable[Record]]], config: Config) -> str:
    """Return the text of records of queues, given by their numbers."""
    lines = []
    for queue, records in blocks:
        lines.append(f"queue {queue_name(queue, config)}")
        lines += [f"    {record_text(record)}" for record in records]
    return "".join(f"{line}\n" for line in lines)


def assemble(text: str) -> list[tuple[str, list[Record]]]:
    """Return the records of a text, behind the names of their queues.

    Raises:
        ValueError: with the number of the line that is wrong.
    """
    blocks: list[tuple[str, list[Record]]] = []
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


def record_text(record: Record) -> str:
    """Return a record's line."""
    parts = [_instruction_text(record.instruction)]
    if record.waits:
        parts.append(" ".join(["wait", *(f"s{wait.semaphore}>={wait.value}" for wait in record.waits)]))
    if record.updates:
        updates = (f"s{update.semaphore}{_SIGNS[update.op]}{update.value}" for update in record.updates)
        parts.append(" ".join(["signal", *updates]))
    return " | ".join(parts)


def parse_record(line: str) -> Record:
    """Return the record of a line.

    Raises:
        ValueError: that says what is wrong.
    """
    text, *others = line.split("|")
    found = {"wait": (), "signal": ()}
    for words in (other.split() for other in others):
        if not words or words[0] not in found:
            raise ValueError(f"behind a bar must stand wait or signal, not {' '.join(words)!r}")
        found[words[0]] = tuple(words[1:])
    waits = [_matched(r"s(\d+)>=(\d+)", word, "a wait must be like s3>=4") for word in found["wait"]]
    rule = "a signal must be like s7+1, s7-1 or s7=1"
    updates = [_matched(r"s(\d+)([-+=])(\d+)", word, rule) for word in found["signal"]]
    return Record(
        instruction=_instruction(text.split()),
        waits=tuple(Wait(int(semaphore), int(value)) for semaphore, value in waits),
        updates=tuple(Update(int(semaphore), int(value), _UPDATES[sign]) for semaphore, sign, value in updates),
    )


def shortened(record: Record, config: Config) -> Record:
    """Return a record of the same bits whose instruction has no more dimensions than it needs.

    Decoded instructions have all that there can be; of those outside, some have one element and no steps.
    """
    short = instruction = record.instruction
    while not isinstance(short, LoadStationary | MultiplyMoving | Collective) and len(short.shape) > 1:
        # Of a gather or scatter the outermost dimension is that of the rows.
        d = int(isinstance(short, DmaCopy) and bool(short.gather or short.scatter))
        if short.shape[d] != 1:
            break
        parts = {name: getattr(short, name) for name in ("dst", "src", "a", "b", "index") if hasattr(short, name)}
        parts = {name: _without(part, d) for name, part in parts.items() if part is not None}
        if None in parts.values():
            break
        short = replace(short, shape=short.shape[:d] + short.shape[d + 1 :], **parts)
    if isinstance(short, Elementwise) and not any((short.index.base, short.index.partition, *short.index.steps)):
        short = replace(short, index=Index())
    shorter = replace(record, instruction=short)
    assert short is instruction or shorter.encode(config) == record.encode(config)
    return shorter


def _without(part: Access | DmaTensor | Index, d: int):
    """Return a tensor without a dimension; None if that has a meaning."""
    axis = getattr(part, "axis", None)
    if not part.steps:
        return part
    if part.steps[d] or axis == d:
        return None
    changes = {} if axis is None or axis < d else {"axis": axis - 1}
    return replace(part, steps=part.steps[:d] + part.steps[d + 1 :], **changes)


# From instructions to text


def _instruction_text(instruction: Instruction) -> str:
    if isinstance(instruction, Elementwise | Collective):
        name = getattr(instruction, _naming(type(instruction))).name.lower()
    else:
        name = next(name for name, kind in _NAMES.items() if isinstance(instruction, kind))
    words = [name]
    for field in fields(instruction):
        value = getattr(instruction, field.name)
        if field.name == _naming(type(instruction)) or value == field.default:
            continue
        words.append(field.name if value is True else f"{field.name}={_value_text(field.name, value)}")
    return " ".join(words)


def _naming(kind: type) -> str | None:
    """Return the field of instructions of a type that is their name."""
    return _NAMED_BY.get(kind, (None, None))[0]


def _value_text(name: str, value) -> str:
    match value:
        case _ if name == "shape":
            return "x".join(map(str, value))
        case _ if name == "format":
            return value.name
        case _ if name == "function":
            return _FUNCTIONS.get(value, str(value))
        case AluOp() | ReduceOp() | CollectiveType():
            return value.name.lower()
        case Group():
            return f"{value.base}{value.stride:+}x{value.ranks}"
        case Pointer():
            return f"[{value.partition},{value.address:#x}].{value.format.name}"
        case Access() | DmaTensor():
            axis = getattr(value, "axis", None)
            steps = ",".join(f"{'p' * (d == axis)}{step}" for d, step in enumerate(value.steps))
            partition = "" if value.storage == Storage.HBM and value.partition == 0 else f"{value.partition},"
            return f"{value.storage.name.lower()}[{partition}{value.address:#x}].{value.format.name}({steps})"
        case DmaIndex():
            return f"[{value.partition},{value.address:#x}]<{value.limit}"
        case Index():
            return f"{value.base}+{value.partition}({','.join(map(str, value.steps))})"
    return hex(value) if name in _HEXADECIMAL else str(int(value))


# From text to instructions


def _instruction(words: list[str]) -> Instruction:
    name, *settings = words or [""]
    if name not in _NAMES:
        raise ValueError(f"an instruction must be one of {', '.join(_NAMES)}, not {name!r}")
    kind = _NAMES[name]
    known = {field.name: field for field in fields(kind) if field.name != _naming(kind)}
    values = {key: codes[name.upper()] for named, (key, codes) in _NAMED_BY.items() if named is kind}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if key not in known:
            raise ValueError(f"a field of {name} must be one of {', '.join(known)}, not {key!r}")
        if key in values:
            raise ValueError(f"{key} must be there once")
        values[key] = _value(kind, key, text) if equals else True
    missing = [key for key, field in known.items() if field.default is MISSING and key not in values]
    if missing:
        raise ValueError(f"{name} must have {', '.join(missing)}")
    return kind(**values)


def _value(kind: type, key: str, text: str):
    if key == "shape":
        return tuple(_integer(count) for count in text.split("x"))
    if key == "format":
        return format_named(text)
    if key in _WORDS:
        if text.upper() not in _WORDS[key].__members__:
            raise ValueError(
                f"{key} must be one of {', '.join(code.name.lower() for code in _WORDS[key])}, not {text!r}"
            )
        return _WORDS[key][text.upper()]
    if key == "group":
        base, stride, ranks = _matched(r"(\d+)([+-]\d+)x(\d+)", text, "group must be like 0+1x8")
        return Group(int(base), int(stride), int(ranks))
    if key == "function" and text in FUNCTIONS:
        return FUNCTIONS[text].code
    if key in ("dst", "src", "a", "b") and kind is not Collective:
        return _tensor(DmaTensor if kind is DmaCopy else Access, text)
    if key in ("gather", "scatter"):
        partition, address, limit = _matched(r"\[(\d+),(\w+)\]<(\d+)", text, f"{key} must be like [0,0x100]<64")
        return DmaIndex(address=_integer(address), partition=int(partition), limit=int(limit))
    if key == "index":
        base, partition, steps = _matched(r"(-?\d+)\+(-?\d+)\((.*)\)", text, "index must be like 0+16(4,1)")
        return Index(base=int(base), partition=int(partition), steps=_steps(steps))
    if key in ("s0", "s1") and text.startswith("["):
        partition, address, fmt = _matched(r"\[(\d+),(\w+)\]\.(\w+)", text, f"{key} must be like [0,0x100].fp32")
        return Pointer(format=format_named(fmt), address=_integer(address), partition=int(partition))
    return _integer(text)


def _tensor(kind: type, text: str) -> Access | DmaTensor:
    pattern = r"(sbuf|psum|hbm)\[(?:(\d+),)?(\w+)\]\.(\w+)\((.*)\)"
    storage, partition, address, fmt, steps = _matched(pattern, text, "a tensor must be like sbuf[0,0x100].bf16(16,1)")
    place = {
        "format": format_named(fmt),
        "address": _integer(address),
        "partition": int(partition or 0),
        "storage": Storage[storage.upper()],
        "steps": _steps(steps.replace("p", "")),
    }
    if kind is Access:
        return Access(**place)
    axes = [d for d, step in enumerate(steps.split(",")) if step.startswith("p")]
    if len(axes) > 1:
        raise ValueError(f"one dimension at most must go along the partitions, not as in {text!r}")
    return DmaTensor(**place, axis=axes[0] if axes else None)


def _steps(text: str) -> tuple[int, ...]:
    return tuple(_integer(step) for step in text.split(",")) if text else ()


def _integer(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"a number must be decimal, or hexadecimal behind 0x, not {text!r}") from None


def _matched(pattern: str, text: str, rule: str) -> tuple[str, ...]:
    found = re.fullmatch(pattern, text)
    if not found:
        raise ValueError(f"{rule}, not {text!r}")
    return found.groups()
