"""Operands of a vector or scalar instruction, derived from its fields."""

from collections.abc import Iterator

from neuroncore_rtl.spec.formats import FORMATS, NARROW_FLOATS, UINT32, Format
from neuroncore_rtl.spec.isa.access import DIMENSIONS, POINTER_FIELDS, Storage
from neuroncore_rtl.spec.isa.alu import Arithmetic
from neuroncore_rtl.spec.isa.elementwise.layout import ACCESSES, ELEMENTWISE_FIELDS
from neuroncore_rtl.spec.isa.elementwise.opcode import MOVES, NEVER_INTEGER, OUTPUTS, USES, VALUES8, Opcode
from neuroncore_rtl.spec.isa.fields import unpack

__all__ = [
    "BY_CODE",
    "accesses",
    "arithmetic_of",
    "counts_of",
    "extent",
    "is_integer",
    "places",
    "unused",
    "uses",
    "widens_to_odd",
]

BY_CODE: dict[int, Format] = {f.code: f for f in FORMATS.values()}

_PLACES = {
    name: [(field, f"{name}_{field}") for field in ("address", "quadrant", "dtype", "storage")] for name in ACCESSES
}
_USES: dict[int, frozenset[str]] = {opcode: frozenset(used.split()) for opcode, used in USES.items()}


def uses(values: dict[str, int]) -> frozenset[str]:
    """Return the operands that an instruction uses, besides dst."""
    used = _USES[values["opcode"]]
    return used | {"result"} if values["opcode"] == Opcode.ACTIVATE and values["sum_store"] else used


def accesses(values: dict[str, int]) -> list[str]:
    """Return the tensors (dst, a, b) that an instruction reads or writes."""
    used = uses(values)
    return ["dst"] + ["a"] * ("a" in used) + ["b"] * bool(used & {"b", "result"})


def places(values: dict[str, int]) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield name and fields of every used access and pointer."""
    for name in accesses(values):
        yield name, {field: values[full] for field, full in _PLACES[name]}
    for number in (0, 1):
        if values[f"pointer{number}"] and f"s{number}" in uses(values):
            yield f"s{number}", unpack(POINTER_FIELDS, values[f"scalar{number}"]) | {"storage": int(Storage.SBUF)}


def is_integer(values: dict[str, int]) -> bool:
    """Return whether an instruction of known opcode and formats uses integer arithmetic (see `AluOp`).

    SELECT's predicate and FIND_INDEX8's positions are not operands of the arithmetic.
    """
    opcode = values["opcode"]
    if opcode in NEVER_INTEGER:
        return False
    bystander = _BYSTANDERS.get(opcode)
    return not any(BY_CODE[place["dtype"]].is_float for name, place in places(values) if name != bystander)


def arithmetic_of(values: dict[str, int]) -> Arithmetic:
    """Return the arithmetic of an instruction of known opcode and formats (see `AluOp`)."""
    if not is_integer(values):
        return Arithmetic.FP32
    opcode = values["opcode"]
    deciding = (uses(values) & {"a", "b", "s0", "s1"}) - _NO_OPERANDS.get(opcode, frozenset())
    if opcode in (Opcode.MEMSET, Opcode.IOTA):
        deciding |= {"dst"}
    unsigned = any(name in deciding and place["dtype"] == UINT32.code for name, place in places(values))
    return Arithmetic.UINT32 if unsigned else Arithmetic.INT32


_BYSTANDERS: dict[int, str] = {Opcode.SELECT: "a", Opcode.FIND_INDEX8: "dst"}
"""Operands that are not part of an opcode's arithmetic."""

_NO_OPERANDS: dict[int, set[str]] = {Opcode.SELECT: {"a"}, Opcode.DROPOUT: {"s0"}}
"""Operands that an opcode reads as a predicate or a probability."""


def widens_to_odd(values: dict[str, int]) -> bool:
    """Return whether an instruction of known opcode and formats rounds integers to odd if FP32 cannot hold them.

    It does so if it only moves numbers to a format narrower than FP32, so that its cast to nearest even rounds them as
    if they were exact. Otherwise they are rounded to nearest even, as operands of FP32 arithmetic.
    """
    return values["opcode"] in MOVES and BY_CODE[values["dst_dtype"]] in NARROW_FLOATS and not values["stochastic"]


def counts_of(values: dict[str, int], name: str) -> list[int]:
    """Return the counts of an access, dimension 0 (the innermost) first."""
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
    """Return the addresses of an access's first byte, and after its last byte, within a partition."""
    size = BY_CODE[values[f"{name}_dtype"]].bits // 8
    spans = [(count - 1) * values[f"{name}_step{d}"] for d, count in enumerate(counts_of(values, name))]
    low, high = sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)
    return values[f"{name}_address"] + size * low, values[f"{name}_address"] + size * (high + 1)


def unused(values: dict[str, int]) -> frozenset[str]:
    """Return the fields that an instruction does not use."""
    opcode, used = Opcode(values["opcode"]), uses(values)
    draws = values["stochastic"] or opcode == Opcode.DROPOUT
    meaningless = {
        "axes": opcode != Opcode.TENSOR_REDUCE,
        "negate": opcode != Opcode.TENSOR_REDUCE,
        "keep": opcode != Opcode.SELECT,
        "seed": not draws,
        "stream": not draws,
        "reverse0": "op0" not in used or opcode in _NEVER_REVERSED,
        "reverse1": "op1" not in used or opcode == Opcode.TENSOR_SCALAR_REDUCE,
    }
    meaningless |= dict.fromkeys(("function", "alpha", "sum_continue", "sum_store"), opcode != Opcode.ACTIVATE)
    for name in ("op0", "op1"):
        meaningless[name] = name not in used
    for number in (0, 1):
        meaningless[f"pointer{number}"] = meaningless[f"scalar{number}"] = f"s{number}" not in used
    prefixes = tuple(f"{name}_" for name in ("a", "b") if name not in accesses(values))
    if not draws and opcode not in (Opcode.IOTA, Opcode.AFFINE_SELECT):
        prefixes += ("index",)
    return frozenset(name for name, _ in ELEMENTWISE_FIELDS if meaningless.get(name) or name.startswith(prefixes))


_NEVER_REVERSED = (Opcode.TENSOR_TENSOR, Opcode.TENSOR_REDUCE, Opcode.AFFINE_SELECT)
