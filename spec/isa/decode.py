"""From the bits of an instruction back to the record that says what it does: the disassembler's half of `spec.isa`."""

from spec.config import Config
from spec.formats import format_of
from spec.isa.access import ACCESS_FIELDS, DIMENSIONS, POINTER_FIELDS, Access, Pointer, Storage
from spec.isa.alu import AluOp
from spec.isa.dma import DMA_BITS, decode_dma
from spec.isa.elementwise import ELEMENTWISE_BITS, Elementwise, Index, Opcode, decode_fields, unpack
from spec.isa.legality import uses
from spec.isa.record import Engine, Instruction
from spec.isa.tensor import LOAD_STATIONARY, MULTIPLY_MOVING, TENSOR_BITS, LoadStationary, MultiplyMoving, tensor_fields

__all__ = ["decode_elementwise", "decode_instruction", "decode_tensor"]

_FLAGS = ("reverse0", "reverse1", "negate", "keep", "sum_continue", "sum_store", "stochastic", "overlap")
_NUMBERS = ("partitions", "axes", "function", "alpha", "seed", "stream")
_INNERMOST_LAST = tuple(reversed(range(DIMENSIONS)))


def decode_instruction(engine: int, body: int, config: Config) -> Instruction:
    """Return the instruction of a record's body; what lies above it is ignored.

    Raises:
        ValueError: if there is no such engine, or a field holds the code of nothing.
    """
    match engine:
        case Engine.TENSOR:
            return decode_tensor(body & (1 << TENSOR_BITS) - 1)
        case Engine.VECTOR | Engine.SCALAR:
            return decode_elementwise(body & (1 << ELEMENTWISE_BITS) - 1, config)
        case Engine.DMA:
            return decode_dma(body & (1 << DMA_BITS) - 1)
    raise ValueError(f"engine must be one of {', '.join(f'{e.name} ({e.value})' for e in Engine)}, not {engine}")


def decode_tensor(word: int) -> LoadStationary | MultiplyMoving:
    """Return the instruction of a word of the tensor engine.

    Raises:
        ValueError: if a field holds the code of nothing.
    """
    values = tensor_fields(word)
    common = {name: values[name] for name in ("half", "k", "m", "address")} | {"format": format_of(values["dtype"])}
    match values["opcode"]:
        case opcode if opcode == LOAD_STATIONARY:
            return LoadStationary(**common)
        case opcode if opcode == MULTIPLY_MOVING:
            flags = {name: bool(values[name]) for name in ("accumulate", "transpose")}
            return MultiplyMoving(**common, **flags, n=values["n"], stride=values["stride"], psum=values["psum"])
        case opcode:
            raise ValueError(f"opcode must be {LOAD_STATIONARY} or {MULTIPLY_MOVING}, not {opcode}")


def decode_elementwise(word: int, config: Config) -> Elementwise:
    """Return the instruction of a word of the vector or scalar engine, with all four dimensions.

    Raises:
        ValueError: if a field holds the code of nothing.
    """
    values = decode_fields(word)
    opcode = Opcode(values["opcode"])
    used = uses(values)
    needed = {"dst": True, "a": "a" in used, "b": bool(used & {"b", "result"})}
    return Elementwise(
        opcode=opcode,
        shape=tuple(values[f"count{d}"] for d in _INNERMOST_LAST),
        op0=AluOp(values["op0"]),
        op1=AluOp(values["op1"]),
        s0=_scalar(values, 0, config),
        s1=_scalar(values, 1, config),
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
