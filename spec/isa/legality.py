"""The rules that an instruction of the vector or scalar engine must obey, in one place; and the codes of all rules.

:func:`violation` reads an instruction's fields, so it judges any word of bits. The assembler side raises its message;
the hardware, which checks the same rules before it touches a memory, reports the same `Rule` as its cause of error.
"""

import enum
import math
from collections.abc import Iterator

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS, Format
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.spec.isa.access import DIMENSIONS, POINTER_FIELDS, Storage, storage_bytes, storage_partitions
from neuroncore_rtl.spec.isa.alu import BITWISE, COMPARISONS, FLOAT_ONLY, REDUCTIONS, SLOW, AluOp
from neuroncore_rtl.spec.isa.elementwise import Elementwise, Opcode, unpack

__all__ = [
    "BLOCK",
    "ELEMENTWISE_RULES",
    "FUNCTION_COUNT",
    "OPERATIONS",
    "OUTPUTS",
    "SCALAR_OPCODES",
    "SEARCH_ELEMENTS",
    "STATS_ELEMENTS",
    "STOCHASTIC",
    "VALUES8",
    "VECTOR_OPCODES",
    "Rule",
    "check",
    "counts_of",
    "extent",
    "is_integer",
    "transpose_block",
    "uses",
    "violation",
]


class Rule(enum.IntEnum):
    """What a refused instruction breaks; the value is the hardware's cause of error. Of several the lowest is named."""

    OPCODE = 1
    """The opcode is one of the engine's."""
    FORMAT = 2
    """Every tensor and pointer that the opcode uses has a known format."""
    OPERATION = 3
    """op0, op1 and function are known, and the opcode can use them."""
    ARITHMETIC = 4
    """INT32 arithmetic does not divide or raise to powers; FP32 arithmetic has no bitwise operations and shifts."""
    DESTINATION = 5
    """FIND_INDEX8 writes an integer format; TRANSPOSE keeps the format."""
    ROUNDING = 6
    """Stochastic rounding is for results of FP32 arithmetic that are written element by element."""
    SHAPE = 7
    """Counts are at least 1, and as many as the opcode can take."""
    PARTITIONS = 8
    """Lanes exist in the storage; more than half of them start at partition 0, more than a quarter at a half."""
    PORTS = 9
    """Two sources cannot both be in PSUM, which has one read port."""
    ALIGNMENT = 10
    """Addresses are multiples of the element's size."""
    RANGE = 11
    """All elements lie inside the partition, the words of a MultiplyMoving inside a bank of PSUM."""
    STORAGE = 12
    """A DMA's storages exist, and what is gathered or scattered is in HBM."""
    STATE = 13
    """A MultiplyMoving uses no more columns than were loaded, and INT8 with INT8 only."""


ELEMENTWISE_RULES = frozenset(rule for rule in Rule if rule <= Rule.RANGE)
"""The rules that an instruction of the vector or scalar engine can break."""

BLOCK = 32
"""Elements and lanes of a transposed block, on a machine that has so many partitions."""

VALUES8 = 8
"""Values that MAX8 finds and the index and replace instructions look for."""

STATS_ELEMENTS = 512
"""Most elements of a BN_STATS, as published."""

SEARCH_ELEMENTS = (8, 16384)
"""Fewest and most elements that MAX8, FIND_INDEX8 and MATCH_REPLACE8 search, as published."""

FUNCTION_COUNT = len(FUNCTIONS)
"""Codes of ACTIVATE's functions."""

_O = Opcode
_USES: dict[Opcode, str] = {
    _O.TENSOR_COPY: "a",
    _O.MEMSET: "s0",
    _O.TENSOR_TENSOR: "a b op0",
    _O.TENSOR_SCALAR: "a s0 s1 op0 op1",
    _O.SCALAR_TENSOR_TENSOR: "a b s0 op0 op1",
    _O.TENSOR_SCALAR_REDUCE: "a s0 op0 op1 result",
    _O.TENSOR_REDUCE: "a op0",
    _O.TENSOR_TENSOR_SCAN: "a b s0 op0 op1",
    _O.BN_STATS: "a",
    _O.BN_AGGR: "a",
    _O.RECIPROCAL: "a",
    _O.SELECT: "a b s0",
    _O.AFFINE_SELECT: "a s0 op0",
    _O.IOTA: "",
    _O.TRANSPOSE: "a",
    _O.MAX8: "a",
    _O.FIND_INDEX8: "a b",
    _O.MATCH_REPLACE8: "a b s0",
    _O.DROPOUT: "a s0",
    _O.ACTIVATE: "a s0 s1",
}
"""What an opcode uses besides dst; "result" is b as a second destination."""

SCALAR_OPCODES = frozenset({_O.ACTIVATE})
"""The scalar engine's."""

VECTOR_OPCODES = frozenset(_USES) - SCALAR_OPCODES
"""The vector engine's."""

_NEVER_INTEGER = frozenset({_O.BN_STATS, _O.BN_AGGR, _O.RECIPROCAL, _O.ACTIVATE, _O.TRANSPOSE})

STOCHASTIC = frozenset(
    {
        _O.TENSOR_COPY, _O.MEMSET, _O.TENSOR_TENSOR, _O.TENSOR_SCALAR, _O.SCALAR_TENSOR_TENSOR,
        _O.TENSOR_SCALAR_REDUCE, _O.TENSOR_REDUCE, _O.TENSOR_TENSOR_SCAN, _O.RECIPROCAL, _O.SELECT, _O.DROPOUT,
        _O.ACTIVATE,
    }
)  # fmt: skip
"""Opcodes whose results may be rounded stochastically."""

OUTPUTS: dict[Opcode, int] = {_O.BN_STATS: 6, _O.BN_AGGR: 2, _O.MAX8: VALUES8, _O.FIND_INDEX8: VALUES8}
"""Elements of dst, along dimension 0, of opcodes that do not write element by element."""

_ALL = frozenset(AluOp)
_FAST = _ALL - SLOW
OPERATIONS: dict[tuple[Opcode, str], frozenset[AluOp]] = {
    (_O.TENSOR_SCALAR_REDUCE, "op1"): REDUCTIONS,
    (_O.TENSOR_REDUCE, "op0"): REDUCTIONS,
    (_O.TENSOR_TENSOR_SCAN, "op0"): _FAST,
    (_O.TENSOR_TENSOR_SCAN, "op1"): _FAST,
    (_O.AFFINE_SELECT, "op0"): frozenset(COMPARISONS),
}
"""The operations that an opcode can use, where not all."""

_BY_CODE: dict[int, Format] = {f.code: f for f in FORMATS.values()}


def transpose_block(config: Config) -> int:
    """Return the elements and lanes of a block that TRANSPOSE transposes."""
    return min(BLOCK, config.partitions)


def uses(values: dict[str, int]) -> frozenset[str]:
    """Return what an instruction of known opcode uses: of a, b, result, s0, s1, op0, op1. dst is always used."""
    used = frozenset(_USES[Opcode(values["opcode"])].split())
    return used | {"result"} if values["opcode"] == Opcode.ACTIVATE and values["sum_store"] else used


def _accesses(values: dict[str, int]) -> list[str]:
    """Return which of dst, a and b an instruction reads or writes."""
    used = uses(values)
    return ["dst"] + ["a"] * ("a" in used) + ["b"] * bool(used & {"b", "result"})


def _places(values: dict[str, int]) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield name and fields of every access and pointer that an instruction uses."""
    for name in _accesses(values):
        yield name, {field: values[f"{name}_{field}"] for field in ("address", "quadrant", "dtype", "storage")}
    for number in (0, 1):
        if f"s{number}" in uses(values) and values[f"pointer{number}"]:
            yield f"s{number}", unpack(POINTER_FIELDS, values[f"scalar{number}"]) | {"storage": int(Storage.SBUF)}


def is_integer(values: dict[str, int]) -> bool:
    """Return whether an instruction of known opcode and formats computes in INT32 rather than in FP32.

    It does if everything that takes part in the arithmetic has an integer format; SELECT's predicate and FIND_INDEX8's
    positions do not take part. Statistics, reciprocals and activations are always FP32.
    """
    opcode = values["opcode"]
    if opcode in _NEVER_INTEGER:
        return False
    bystander = {Opcode.SELECT: "a", Opcode.FIND_INDEX8: "dst"}.get(opcode)
    return not any(_BY_CODE[place["dtype"]].is_float for name, place in _places(values) if name != bystander)


def counts_of(values: dict[str, int], name: str) -> list[int]:
    """Return the counts that an access steps through, dimension 0 (the innermost) first."""
    opcode = values["opcode"]
    counts = [values[f"count{d}"] for d in range(DIMENSIONS)]
    if name == "dst":
        if opcode in OUTPUTS:
            return [OUTPUTS[opcode], 1, 1, 1]
        if opcode == Opcode.TENSOR_REDUCE:
            return [1 if d < values["axes"] else count for d, count in enumerate(counts)]
    if name == "b":
        if opcode in (Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8):
            return [VALUES8, 1, 1, 1]
        if "result" in uses(values):
            return [1] * DIMENSIONS
    return counts


def extent(values: dict[str, int], name: str) -> tuple[int, int]:
    """Return the first byte of an access in its partitions, and the byte after the last."""
    size = _BY_CODE[values[f"{name}_dtype"]].bits // 8
    spans = [(count - 1) * values[f"{name}_step{d}"] for d, count in enumerate(counts_of(values, name))]
    low, high = sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)
    return values[f"{name}_address"] + size * low, values[f"{name}_address"] + size * (high + 1)


def violation(values: dict[str, int], config: Config, opcodes: frozenset[Opcode]) -> tuple[Rule, str] | None:
    """Return the lowest rule that an instruction breaks, and a message; None if it is legal.

    Arguments:
        values: of every field (`spec.isa.elementwise.decode_fields`).
        config: the machine's parameters.
        opcodes: those of the engine that it is given to.
    """
    if values["opcode"] not in opcodes:
        return (
            Rule.OPCODE,
            f"opcode must be one of {', '.join(o.name for o in sorted(opcodes))}, not {values['opcode']}",
        )
    for rule, judge in _JUDGES:
        message = next(judge(values, config), None)
        if message is not None:
            return rule, f"{Opcode(values['opcode']).name}: {message}"
    return None


def check(instruction: Elementwise, config: Config) -> None:
    """Raise ValueError, with a message that names the rule, the value and the place, if an instruction is not legal."""
    broken = violation(instruction.fields(config), config, frozenset(_USES))
    if broken is not None:
        rule, message = broken
        raise ValueError(f"{message} (rule {rule.name})")


def _format(values: dict[str, int], config: Config) -> Iterator[str]:
    for name, place in _places(values):
        if place["dtype"] not in _BY_CODE:
            yield f"{name}'s format must be the code of one of {', '.join(FORMATS)}, not {place['dtype']}"


def _operation(values: dict[str, int], config: Config) -> Iterator[str]:
    opcode = Opcode(values["opcode"])
    for name in sorted(uses(values) & {"op0", "op1"}):
        allowed = OPERATIONS.get((opcode, name), _ALL)
        if values[name] not in allowed:
            yield f"{name} must be one of {', '.join(o.name for o in sorted(allowed))}, not {_named(values[name])}"
    if opcode == Opcode.ACTIVATE and values["function"] >= FUNCTION_COUNT:
        yield f"function must be below {FUNCTION_COUNT}, not {values['function']}"


def _arithmetic(values: dict[str, int], config: Config) -> Iterator[str]:
    integer = is_integer(values)
    wrong = FLOAT_ONLY if integer else BITWISE
    for name in sorted(uses(values) & {"op0", "op1"}):
        if values[name] in wrong and integer:
            yield f"{name} must be one of INT32 arithmetic if every format is an integer's, not {_named(values[name])}"
        elif values[name] in wrong:
            yield f"{name} must be {_named(values[name])} only if every format is an integer's"


def _destination(values: dict[str, int], config: Config) -> Iterator[str]:
    dst = _BY_CODE[values["dst_dtype"]]
    if values["opcode"] == Opcode.FIND_INDEX8 and dst.is_float:
        yield f"dst's format must be an integer's, not {dst.name!r}"
    if values["opcode"] == Opcode.TRANSPOSE and values["dst_dtype"] != values["a_dtype"]:
        yield f"dst's format must be that of a, {_BY_CODE[values['a_dtype']].name}, not {dst.name!r}"


def _rounding(values: dict[str, int], config: Config) -> Iterator[str]:
    if values["stochastic"] and (values["opcode"] not in STOCHASTIC or is_integer(values)):
        yield "rounding must be to nearest even for integers and where dst is not a result a place, not stochastic"


def _shape(values: dict[str, int], config: Config) -> Iterator[str]:
    opcode = values["opcode"]
    counts = [values[f"count{d}"] for d in range(DIMENSIONS)]
    shape, volume = tuple(reversed(counts)), math.prod(counts)
    if 0 in counts:
        yield f"counts must be at least 1, not {shape!r}"
    if opcode == Opcode.TENSOR_REDUCE and not 1 <= values["axes"] <= DIMENSIONS:
        yield f"axes must be from 1 to {DIMENSIONS}, not {values['axes']}"
    if opcode == Opcode.TRANSPOSE and counts[0] != transpose_block(config):
        yield f"the innermost count must be {transpose_block(config)}, not {counts[0]}"
    if opcode == Opcode.BN_STATS and volume > STATS_ELEMENTS:
        yield f"elements must be at most {STATS_ELEMENTS}, not {volume}"
    if opcode == Opcode.BN_AGGR and counts[0] % 3:
        yield f"the innermost count must be a multiple of 3, not {counts[0]}"
    if opcode in (Opcode.MAX8, Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8):
        low, high = SEARCH_ELEMENTS
        if not low <= volume <= high:
            yield f"elements must be from {low} to {high}, not {volume}"


def _partitions(values: dict[str, int], config: Config) -> Iterator[str]:
    lanes, quadrant = values["partitions"], config.quadrant
    if lanes < 1:
        yield f"partitions must be at least 1, not {lanes}"
    if values["opcode"] == Opcode.TRANSPOSE and lanes % transpose_block(config):
        yield f"partitions must be a multiple of {transpose_block(config)}, not {lanes}"
    for name, place in _places(values):
        start, limit = place["quadrant"] * quadrant, storage_partitions(place["storage"], config)
        if start + lanes > limit:
            yield f"{name}'s partitions must end at {limit}, not {start + lanes}"
        if lanes > 2 * quadrant and place["quadrant"]:
            yield f"{name}.partition must be 0 for more than {2 * quadrant} partitions, not {start}"
        elif lanes > quadrant and place["quadrant"] % 2:
            yield f"{name}.partition must be 0 or {2 * quadrant} for more than {quadrant} partitions, not {start}"


def _ports(values: dict[str, int], config: Config) -> Iterator[str]:
    if "b" in uses(values) and values["a_storage"] == values["b_storage"] == Storage.PSUM:
        yield "a and b must be in different storages, or both in SBUF, not both in PSUM"


def _alignment(values: dict[str, int], config: Config) -> Iterator[str]:
    for name, place in _places(values):
        fmt = _BY_CODE[place["dtype"]]
        if place["address"] % (fmt.bits // 8):
            yield f"{name}.address must be a multiple of {fmt.bits // 8} for {fmt.name}, not {place['address']}"


def _range(values: dict[str, int], config: Config) -> Iterator[str]:
    accesses = _accesses(values)
    for name, place in _places(values):
        if name in accesses:
            low, high = extent(values, name)
        else:
            low, high = place["address"], place["address"] + _BY_CODE[place["dtype"]].bits // 8
        limit = storage_bytes(place["storage"])
        if low < 0 or high > limit:
            yield f"{name}'s bytes must lie from 0 to {limit}, not from {low} to {high}"


def _named(code: int) -> str:
    return AluOp(code).name if code in set(AluOp) else str(code)


_JUDGES = (
    (Rule.FORMAT, _format),
    (Rule.OPERATION, _operation),
    (Rule.ARITHMETIC, _arithmetic),
    (Rule.DESTINATION, _destination),
    (Rule.ROUNDING, _rounding),
    (Rule.SHAPE, _shape),
    (Rule.PARTITIONS, _partitions),
    (Rule.PORTS, _ports),
    (Rule.ALIGNMENT, _alignment),
    (Rule.RANGE, _range),
)
