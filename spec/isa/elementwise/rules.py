"""Rules of the vector and the scalar engine's instructions."""

import math
from collections.abc import Iterator

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS
from neuroncore_rtl.spec.functions import FUNCTIONS, TRIGONOMETRIC
from neuroncore_rtl.spec.isa.access import DIMENSIONS, Storage, allowed_start, storage_bytes, storage_partitions
from neuroncore_rtl.spec.isa.alu import BITWISE, FLOAT_ONLY, AluOp
from neuroncore_rtl.spec.isa.elementwise.opcode import (
    OPERATIONS,
    SCALAR_OPCODES,
    SEARCH_ELEMENTS,
    STATS_ELEMENTS,
    STOCHASTIC,
    UNIT_OPCODES,
    UNIT_OPERATIONS,
    VECTOR_OPCODES,
    Opcode,
    transpose_block,
)
from neuroncore_rtl.spec.isa.elementwise.operands import BY_CODE, accesses, extent, is_integer, places, uses
from neuroncore_rtl.spec.isa.rule import Broken, Rule

__all__ = ["ELEMENTWISE_RULES", "FUNCTION_COUNT", "JUDGES", "elementwise_violation"]

ELEMENTWISE_RULES = frozenset(rule for rule in Rule if rule <= Rule.RANGE)

FUNCTION_COUNT = len(FUNCTIONS)
_ALL_OPERATIONS = frozenset(AluOp)


def elementwise_violation(values: dict[str, int], config: Config, opcodes: frozenset[Opcode]) -> Broken | None:
    """Return the lowest broken rule with a message, or None; `opcodes` are those of the executing engine."""
    if values["opcode"] not in opcodes:
        names = ", ".join(opcode.name for opcode in sorted(opcodes))
        return Rule.OPCODE, f"opcode must be one of {names}, not {values['opcode']}"
    for unit, opcodes in UNIT_OPCODES.items():
        if values["opcode"] in opcodes and unit not in config.vector_units:
            name = Opcode(values["opcode"]).name
            return Rule.OPCODE, f"opcode must be one that the vector lanes support, not {name}: {_absent(unit)}"
    # The check of a rule relies on the rules before it.
    for rule, judge in JUDGES:
        message = next(judge(values, config), None)
        if message is not None:
            return rule, message
    return None


def _format(values: dict[str, int], config: Config) -> Iterator[str]:
    for name, place in places(values):
        if place["dtype"] not in BY_CODE:
            yield f"{name}'s format must be the code of one of {', '.join(FORMATS)}, not {place['dtype']}"


def _operation(values: dict[str, int], config: Config) -> Iterator[str]:
    opcode = Opcode(values["opcode"])
    for name in sorted(uses(values) & {"op0", "op1"}):
        allowed = OPERATIONS.get((opcode, name), _ALL_OPERATIONS)
        if values[name] not in allowed:
            yield f"{name} must be one of {', '.join(o.name for o in sorted(allowed))}, not {_op_name(values[name])}"
        for unit, operations in UNIT_OPERATIONS.items():
            if values[name] in operations and unit not in config.vector_units:
                operation = _op_name(values[name])
                yield f"{name} must be one that the vector lanes support, not {operation}: {_absent(unit)}"
    if opcode == Opcode.ACTIVATE and values["function"] >= FUNCTION_COUNT:
        yield f"function must be from 0 to {FUNCTION_COUNT - 1}, not {values['function']}"
    if opcode == Opcode.ACTIVATE and "trigonometry" not in config.scalar_units:
        for name in TRIGONOMETRIC:
            if values["function"] == FUNCTIONS[name].code:
                absent = _absent("trigonometry", "scalar")
                yield f"function must be one that the activation lanes support, not {name}: {absent}"


def _arithmetic(values: dict[str, int], config: Config) -> Iterator[str]:
    integer = is_integer(values)
    wrong = FLOAT_ONLY if integer else BITWISE
    for name in sorted(uses(values) & {"op0", "op1"}):
        if values[name] in wrong and integer:
            yield f"{name} must be an integer operation if every format is an integer, not {_op_name(values[name])}"
        elif values[name] in wrong:
            yield f"{name} must be a float operation unless every format is an integer, not {_op_name(values[name])}"


def _destination(values: dict[str, int], config: Config) -> Iterator[str]:
    dst = BY_CODE[values["dst_dtype"]]
    if values["opcode"] == Opcode.FIND_INDEX8 and dst.is_float:
        yield f"dst's format must be an integer, not {dst.name!r}"
    if values["opcode"] == Opcode.TRANSPOSE and values["dst_dtype"] != values["a_dtype"]:
        yield f"dst's format must be the same as a's, {BY_CODE[values['a_dtype']].name}, not {dst.name!r}"


def _rounding(values: dict[str, int], config: Config) -> Iterator[str]:
    if values["stochastic"] and values["opcode"] not in STOCHASTIC:
        yield f"rounding must be to nearest even for {Opcode(values['opcode']).name}, not stochastic"
    if values["stochastic"] and is_integer(values):
        yield "rounding must be to nearest even for integer arithmetic, not stochastic"
    if values["stochastic"] and values["opcode"] in VECTOR_OPCODES and "random" not in config.vector_units:
        yield f"rounding must be to nearest even, not stochastic: {_absent('random')}"
    if values["stochastic"] and values["opcode"] in SCALAR_OPCODES and "random" not in config.scalar_units:
        yield f"rounding must be to nearest even, not stochastic: {_absent('random', 'scalar')}"


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
    for name, place in places(values):
        start, limit = place["quadrant"] * quadrant, storage_partitions(place["storage"], config)
        if start + lanes > limit:
            yield f"{name}'s partitions must end at {limit}, not {start + lanes}"
        allowed = allowed_start(start, lanes, quadrant)
        if allowed:
            yield f"{name}.partition must be {allowed} partitions, not {start}"


def _ports(values: dict[str, int], config: Config) -> Iterator[str]:
    if "b" in uses(values) and values["a_storage"] == values["b_storage"] == Storage.PSUM:
        yield "a and b must be in different storages, or both in SBUF, not both in PSUM"


def _alignment(values: dict[str, int], config: Config) -> Iterator[str]:
    for name, place in places(values):
        fmt = BY_CODE[place["dtype"]]
        if place["address"] % (fmt.bits // 8):
            yield f"{name}.address must be a multiple of {fmt.bits // 8} for {fmt.name}, not {place['address']}"


def _range(values: dict[str, int], config: Config) -> Iterator[str]:
    tensors = accesses(values)
    for name, place in places(values):
        if name in tensors:
            low, high = extent(values, name)
        else:
            low, high = place["address"], place["address"] + BY_CODE[place["dtype"]].bits // 8
        limit = storage_bytes(place["storage"], config)
        if low < 0 or high > limit:
            yield f"{name}'s bytes must lie from 0 to {limit}, not from {low} to {high}"


def _absent(unit: str, engine: str = "vector") -> str:
    return f"this machine has no {unit} unit ({engine}_{unit}=0)"


def _op_name(code: int) -> str:
    return AluOp(code).name if code in set(AluOp) else str(code)


JUDGES = (
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
"""Check of each rule, which yields messages; in ascending order."""
