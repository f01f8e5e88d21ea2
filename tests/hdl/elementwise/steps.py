"""Steps of an elementwise instruction by definition: every index of the shape, with multiplied addresses."""

from dataclasses import dataclass

import numpy as np
from amaranth import Shape
from amaranth.lib import data

from neuroncore_rtl.hdl.elementwise.step import Phase
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import DIMENSIONS, POINTER_FIELDS, Opcode, Storage, alu, elementwise, fields
from tests.hdl.elementwise.instructions import SIZES

__all__ = ["Column", "ExpectedStep", "assert_passed_on", "numbers", "steps_of"]

_PASSED_ON = (
    "opcode", "op0", "op1", "reverse0", "reverse1", "negate", "keep", "function", "alpha", "sum_continue", "pointer0",
    "scalar0", "pointer1", "scalar1", "b_dtype", "seed", "stream", "index_partition", "partitions",
)  # fmt: skip
"""Fields of the instruction that each of its steps contains unchanged."""

_OF_STEP = ("phase", "number", "first", "last", "position", "index", "a_dtype", "dst_dtype")


@dataclass(frozen=True)
class Column:
    """Address and size of the element that every lane accesses in its memory partition in one step."""

    storage: int
    quadrant: int
    address: int
    size: int


@dataclass(kw_only=True)
class ExpectedStep:
    """Expected values of a step; a column is None if it is not read or written."""

    phase: Phase
    number: int = 0
    first: int = 0
    last: int = 0
    position: int | None = None
    index: int | None = None
    a: Column | None = None
    b: Column | None = None
    write: Column | None = None
    a_dtype: int | None = None
    dst_dtype: int | None = None
    final: int = 0


def _column(values: dict[str, int], name: str, indices=(0,) * DIMENSIONS) -> Column:
    size = SIZES[values[f"{name}_dtype"]]
    elements = sum(index * values[f"{name}_step{d}"] for d, index in enumerate(indices))
    address = values[f"{name}_address"] + size * elements
    return Column(values[f"{name}_storage"], values[f"{name}_quadrant"], address, size)


def steps_of(values: dict[str, int], config: Config) -> list[ExpectedStep]:
    opcode, used = values["opcode"], elementwise.uses(values)
    steps = []
    for number, phase in enumerate((Phase.LOAD_S0, Phase.LOAD_S1)):
        if f"s{number}" in used and values[f"pointer{number}"]:
            pointer = fields.unpack(POINTER_FIELDS, values[f"scalar{number}"])
            code = pointer["dtype"]
            column = Column(Storage.SBUF, pointer["quadrant"], pointer["address"], SIZES[code])
            steps.append(ExpectedStep(phase=phase, a=column, a_dtype=code))
    searches = opcode in (Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)
    if searches:
        for k in range(elementwise.VALUES8):
            steps.append(ExpectedStep(phase=Phase.LOAD_VALUE, number=k, b=_column(values, "b", (k, 0, 0, 0))))

    counts = [values[f"count{d}"] for d in range(DIMENSIONS)]
    group = {Opcode.TENSOR_REDUCE: values["axes"], Opcode.TRANSPOSE: 1}.get(opcode, DIMENSIONS)
    places = [index[::-1] for index in np.ndindex(*counts[::-1])]
    writes = []
    for position, indices in enumerate(places):
        first = all(indices[d] == 0 for d in range(group))
        last = all(indices[d] == counts[d] - 1 for d in range(group))
        index = values["index"] + sum(i * values[f"index_step{d}"] for d, i in enumerate(indices))
        column = _column(values, "dst", indices)
        if opcode == Opcode.TENSOR_REDUCE:
            kept = tuple(0 if d < group else i for d, i in enumerate(indices))
            column = _column(values, "dst", kept) if last else None
        writes.append(None if opcode in elementwise.OUTPUTS else column)
        steps.append(
            ExpectedStep(
                phase=Phase.ELEMENT,
                first=int(first),
                last=int(last),
                position=position % (1 << 16),
                index=index % (1 << 64),
                a=_column(values, "a", indices) if "a" in used else None,
                b=_column(values, "b", indices) if "b" in used and not searches else None,
                a_dtype=values["a_dtype"],
            )
        )
    if opcode == Opcode.TRANSPOSE:
        results = elementwise.transpose_block(config)
        writes = [None] * results + writes
    elif "result" in used:
        results = 1
        writes.append(_column(values, "b"))
    else:
        results = elementwise.OUTPUTS.get(opcode, 0)
        writes += [_column(values, "dst", (k, 0, 0, 0)) for k in range(results)]
    for k in range(results):
        steps.append(ExpectedStep(phase=Phase.RESULT, number=k % 16, first=int(k == 0), last=int(k == results - 1)))
    for step, column in zip(steps[-len(writes) :], writes, strict=True):
        step.write = column
        at_b = step.phase == Phase.RESULT and "result" in used
        step.dst_dtype = values["b_dtype" if at_b else "dst_dtype"]
    steps[-1].final = 1
    return steps


def assert_passed_on(values: dict[str, int], want: ExpectedStep, step: dict[str, int]) -> None:
    what = f"{want}: {values}"
    for name in _OF_STEP:
        wanted = getattr(want, name)
        if wanted is not None and not (name == "number" and want.phase in (Phase.LOAD_S0, Phase.LOAD_S1)):
            assert step[name] == getattr(wanted, "value", wanted), f"{name} of {what}"
    for name in _PASSED_ON:
        assert step[name] == values[name], f"{name} of {what}"
    arithmetic = elementwise.arithmetic_of(values)
    flags = arithmetic != alu.Arithmetic.FP32, arithmetic == alu.Arithmetic.UINT32
    assert (step["integer"], step["uint32"]) == flags, what
    assert step["stochastic"] == (values["stochastic"] and want.phase == Phase.ELEMENT), what


def numbers(layout, word):
    """Return fields as integers; an unused field may hold a code that its enumeration lacks."""
    values = {}
    for name, field in layout:
        bits = word >> field.offset & ((1 << field.width) - 1)
        inner = field.shape.as_shape() if hasattr(field.shape, "as_shape") else field.shape
        if isinstance(inner, data.Layout):
            values[name] = numbers(inner, bits)
        else:
            values[name] = bits - (bits >> (field.width - 1) << field.width if Shape.cast(inner).signed else 0)
    return values
