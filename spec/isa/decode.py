"""From the bits of an instruction back to the record that says what it does: the disassembler's half of `spec.isa`."""

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import format_of
from neuroncore_rtl.spec.isa.access import ACCESS_FIELDS, DIMENSIONS, POINTER_FIELDS, Access, Pointer, Storage
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.spec.isa.collective import collective_fields, collective_of
from neuroncore_rtl.spec.isa.dma import dma_fields, dma_of
from neuroncore_rtl.spec.isa.elementwise import Elementwise, Index, Opcode, decode_fields, unpack
from neuroncore_rtl.spec.isa.legality import uses
from neuroncore_rtl.spec.isa.record import Engine, Instruction
from neuroncore_rtl.spec.isa.tensor import (
    LOAD_STATIONARY,
    MULTIPLY_MOVING,
    LoadStationary,
    MultiplyMoving,
    tensor_fields,
)

__all__ = ["body_fields", "decode_instruction", "instruction_of"]

_FLAGS = ("reverse0", "reverse1", "negate", "keep", "sum_continue", "sum_store", "stochastic", "overlap")
_NUMBERS = ("partitions", "axes", "function", "alpha", "seed", "stream")
_INNERMOST_LAST = tuple(reversed(range(DIMENSIONS)))


def decode_instruction(engine: int, body: int, config: Config) -> Instruction:
    """Return the instruction of a record's body; what lies above it is ignored.

    Raises:
        ValueError: if there is no such engine, or a field holds the code of nothing.
    """
    return instruction_of(engine, body_fields(engine, body), config)


def body_fields(engine: int, body: int) -> dict[str, int]:
    """Return the value of every field of the instruction in a record's body: what the rules judge.

    Raises:
        ValueError: if there is no such engine.
    """
    if engine not in _FIELDS:
        raise ValueError(f"engine must be one of {', '.join(f'{e.name} ({e.value})' for e in Engine)}, not {engine}")
    return _FIELDS[engine](body)


def instruction_of(engine: int, values: dict[str, int], config: Config) -> Instruction:
    """Return the instruction of its fields, in its full form: all dimensions. What it does not use has its default.

    Raises:
        ValueError: if a field that it uses holds the code of nothing.
    """
    match engine:
        case Engine.TENSOR:
            return _tensor(values)
        case Engine.DMA:
            return dma_of(values)
        case Engine.COLLECTIVE:
            return collective_of(values)
    return _elementwise(values, config)


_FIELDS = {
    Engine.TENSOR: tensor_fields,
    Engine.VECTOR: decode_fields,
    Engine.SCALAR: decode_fields,
    Engine.DMA: dma_fields,
    Engine.COLLECTIVE: collective_fields,
}
"""Of every engine, what takes its instruction's bits apart."""


def _tensor(values: dict[str, int]) -> LoadStationary | MultiplyMoving:
    common = {name: values[name] for name in ("half", "k", "m", "address")} | {"format": format_of(values["dtype"])}
    match values["opcode"]:
        case opcode if opcode == LOAD_STATIONARY:
            return LoadStationary(**common)
        case opcode if opcode == MULTIPLY_MOVING:
            flags = {name: bool(values[name]) for name in ("accumulate", "transpose")}
            return MultiplyMoving(**common, **flags, n=values["n"], stride=values["stride"], psum=values["psum"])
        case opcode:
            raise ValueError(f"opcode must be {LOAD_STATIONARY} or {MULTIPLY_MOVING}, not {opcode}")


def _elementwise(values: dict[str, int], config: Config) -> Elementwise:
    opcode = Opcode(values["opcode"])
    used = uses(values)
    needed = {"dst": True, "a": "a" in used, "b": bool(used & {"b", "result"})}
    return Elementwise(
        opcode=opcode,
        shape=tuple(values[f"count{d}"] for d in _INNERMOST_LAST),
        **{name: AluOp(values[name]) for name in ("op0", "op1") if name in used},
        **{f"s{number}": _scalar(values, number, config) for number in (0, 1) if f"s{number}" in used},
        index=Index(
            base=values["index"],
            partition=values["index_partition"],
            steps=tuple(values[f"index_step{d}"] for d in _INNERMOST_LAST),
        ),
        **{name: _access(values, name, config) if used else None for name, used in needed.items()},
        **{name: bool(values[name]) for name in _FLAGS},
        **{name: values[name] for name in _NUMBERS},
    )


def _scalar(values: dict[str, int], number: int, config: Config) -> int | Pointer:
    word = values[f"scalar{number}"]
    return _pointer(unpack(POINTER_FIELDS, word), config) if values[f"pointer{number}"] else word


def _pointer(values: dict[str, int], config: Config) -> Pointer:
    return Pointer(
        format=format_of(values["dtype"]), address=values["address"], partition=values["quadrant"] * config.quadrant
    )


def _access(values: dict[str, int], name: str, config: Config) -> Access:
    own = {field: values[f"{name}_{field}"] for field, _ in ACCESS_FIELDS}
    return Access(
        format=format_of(own["dtype"]),
        address=own["address"],
        partition=own["quadrant"] * config.quadrant,
        storage=Storage(own["storage"]),
        steps=tuple(own[f"step{d}"] for d in _INNERMOST_LAST),
    )
