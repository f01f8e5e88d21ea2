"""Readers of StableHLO's operations: each appends operations of the graph and returns the values of the results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32, UNSIGNED32
from neuroncore_rtl.frontends.xla.reading.attributes import Attributes
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.tiling.phases import WindowShape

__all__ = ["READERS", "Given"]


@dataclass(frozen=True)
class Given:
    """An operation of a module: name, values, attributes, and blocks of its regions."""

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Attributes
    blocks: tuple[Graph, ...]

    def append(self, builder: Builder, kind: type[Operation], *operands: Value, **attributes) -> Sequence[Value]:
        """Append the graph's operation with this one's results; return them."""
        fields = {"operands": operands, "results": self.results, "source": builder.source, **attributes}
        builder.operations.append(kind(**fields))
        return self.results


Reader = Callable[[Builder, Given], Sequence[Value]]
READERS: dict[str, Reader] = {}
"""Readers by the operation's name."""

_FUNCTIONS = """abs add and atan2 cbrt ceil clamp convert cosine count_leading_zeros divide exponential
exponential_minus_one floor is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt power
remainder round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign
sine sqrt subtract tan tanh xor""".split()
_SYSTEM = 128
"""Maximum rows of a triangular system, or of a matrix to factor, one after another."""
_COMPARISONS = {
    "EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal",
}  # fmt: skip


def _reads(*names: str) -> Callable[[Reader], Reader]:
    def register(reader: Reader) -> Reader:
        READERS.update(dict.fromkeys([name if "." in name else f"stablehlo.{name}" for name in names], reader))
        return reader

    return register


def _plain(kind: type[Operation], names: dict[str, str], count: int | None, builder: Builder, given: Given):
    """Append an operation with the module's attributes, blocks and first operands: `names` has them by field."""
    read, own = given.attributes, {one.name: one.type for one in fields(kind)}
    found = {
        name: read.integer(attribute) if own[name] in (int, bool) else read.integers(attribute)
        for name, attribute in names.items()
    }
    blocks = zip([name for name, of in own.items() if of is Graph], given.blocks, strict=True)
    return given.append(builder, kind, *given.operands[:count], **found, **dict(blocks))


# Operands of a dynamic operation that give the result's shape are not needed if that is constant.
for _names, _kind, _count, _fields in (
    ("bitcast_convert", graph.Bitcast, None, {}),
    ("broadcast_in_dim dynamic_broadcast_in_dim", graph.Broadcast, 1, {"axes": "broadcast_dimensions"}),
    ("concatenate", graph.Concatenate, None, {"axis": "dimension"}),
    ("dynamic_slice", graph.DynamicSlice, None, {"size": "slice_sizes"}),
    ("dynamic_update_slice", graph.DynamicUpdate, None, {}),
    ("gather", graph.Gather, None, {one.name: one.name for one in fields(graph.Gather)[3:]}),
    ("iota dynamic_iota", graph.Iota, 0, {"axis": "iota_dimension"}),
    ("pad", graph.Pad, None, {
        "low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding",
    }),
    ("reduce", graph.Reduce, None, {"axes": "dimensions"}),
    ("reshape dynamic_reshape", graph.Reshape, 1, {}),
    ("reverse", graph.Reverse, None, {"axes": "dimensions"}),
    ("scatter", graph.Scatter, None, {one.name: one.name for one in fields(graph.Scatter)[3:-1]}),
    ("slice", graph.StridedSlice, None, {"starts": "start_indices", "ends": "limit_indices", "steps": "strides"}),
    ("transpose", graph.Transpose, None, {"order": "permutation"}),
    ("while", graph.While, None, {}),
):  # fmt: skip
    _reads(*_names.split())(partial(_plain, _kind, _fields, _count))


def _pointwise(builder: Builder, given: Given, name: str) -> Sequence[Value]:
    """Append a function of elements; scalars among its operands are broadcast."""
    operands = [builder.broadcast(operand, given.results[0].shape) for operand in given.operands]
    return given.append(builder, graph.Pointwise, *operands, function=name)


@_reads(*_FUNCTIONS, "chlo.erf", "chlo.erfc", "chlo.mulhi")
def _function(builder: Builder, given: Given) -> Sequence[Value]:
    return _pointwise(builder, given, given.name.split(".")[-1])


@_reads("reduce_precision")
def _reduce_precision(builder: Builder, given: Given) -> Sequence[Value]:
    bits = (given.attributes.integer(f"{part}_bits") for part in ("exponent", "mantissa"))
    return _pointwise(builder, given, " ".join(map(str, ("reduce_precision", *bits))))


@_reads("compare")
def _compare(builder: Builder, given: Given) -> Sequence[Value]:
    name = _COMPARISONS[given.attributes.text("comparison_direction")]
    total = given.attributes.text("compare_type") == "TOTALORDER" and given.operands[0].type.is_float
    return _pointwise(builder, given, name + "_total" * total)


@_reads("constant")
def _constant(builder: Builder, given: Given) -> Sequence[Value]:
    return given.append(builder, graph.Constant, array=given.attributes.array("value"))


@_reads("get_dimension_size")
def _dimension(builder: Builder, given: Given) -> Sequence[Value]:
    return [builder.number(given.operands[0].shape[given.attributes.integer("dimension")], ())]


@_reads("broadcast")
def _broadcast_outside(builder: Builder, given: Given) -> Sequence[Value]:
    rank, inner = given.results[0].rank, given.operands[0].rank
    return given.append(builder, graph.Broadcast, *given.operands, axes=tuple(range(rank - inner, rank)))


@_reads("real", "imag")
def _part_of_real(builder: Builder, given: Given) -> Sequence[Value]:
    (value,) = given.operands
    return [value if given.name.endswith("real") else builder.number(0, value.shape, value.type)]


@_reads("map")
def _map(builder: Builder, given: Given) -> Sequence[Value]:
    return builder.inline(given.blocks[0], *given.operands)


@_reads("dot_general", "dot")
def _dot(builder: Builder, given: Given) -> Sequence[Value]:
    batch, contract = (
        tuple(given.attributes.integers(f"{side}_{kind}_dimensions") for side in ("lhs", "rhs"))
        for kind in ("batching", "contracting")
    )
    if given.name.endswith("dot"):
        contract = (given.operands[0].rank - 1,), (0,)
    return given.append(builder, graph.Dot, *given.operands, batch=batch, contract=contract)


@_reads("triangular_solve")
def _triangular_solve(builder: Builder, given: Given) -> Sequence[Value]:
    """Append the rows of the solution one after another; each is removed from the rows that are left."""
    (a, b), (result,), attributes = given.operands, given.results, given.attributes
    rows, columns, n = a.rank - 2, a.rank - 1, a.shape[-1]
    if n > _SYSTEM:
        raise Refused(f"a triangular system must have at most {_SYSTEM} rows, not {n}; solve it on the host")
    turned, lower = (*range(rows), columns, rows), bool(attributes.integer("lower"))
    is_right = not attributes.integer("left_side")
    if is_right != (attributes.text("transpose_a") in ("TRANSPOSE", "ADJOINT")):
        a, lower = builder.transpose(a, *turned), not lower
    b = builder.transpose(b, *turned) if is_right else b
    a, b, found = builder.convert(a, FLOAT32), builder.convert(b, FLOAT32), []
    for row in range(n) if lower else range(n - 1, -1, -1):
        one = builder.part(b, rows, at := 0 if lower else row, at + 1)
        column = builder.part(a, columns, row, row + 1)
        if not attributes.integer("unit_diagonal"):
            pivot = builder.part(column, rows, row, row + 1)
            one = builder.apply("divide", one, builder.broadcast(pivot, one.shape, range(a.rank)))
        found.append(one)
        b = builder.part(b, rows, int(lower), n - row if lower else row)
        column = builder.part(column, rows, *((row + 1, n) if lower else (0, row)))
        both = (builder.broadcast(value, b.shape, range(a.rank)) for value in (column, one))
        b = builder.apply("subtract", b, builder.apply("multiply", *both))
    whole = builder.concatenate((found if lower else found[::-1]) or [b], rows)
    return [builder.convert(builder.transpose(whole, *turned) if is_right else whole, result.type)]


@_reads("cholesky")
def _cholesky(builder: Builder, given: Given) -> Sequence[Value]:
    """Append the Cholesky factor column by column; subtract each column's outer product from the rest of the matrix.

    A root that is not positive makes the later ones NaN; as in JAX, the whole factor is NaN then.
    """
    (a,), (result,) = given.operands, given.results
    rows, columns, n = a.rank - 2, a.rank - 1, a.shape[-1]
    if n > _SYSTEM:
        raise Refused(f"a matrix to factor must have at most {_SYSTEM} rows, not {n}; factor it on the host")
    turned = (*range(rows), columns, rows)
    is_upper = not given.attributes.integer("lower")
    if not a.size:
        return [a]
    a = builder.convert(builder.transpose(a, *turned) if is_upper else a, FLOAT32)
    found = []
    for column in range(n):
        one = builder.part(a, columns, 0, 1)
        pivot = builder.apply("sqrt", builder.part(one, rows, 0, 1))
        rest = builder.part(one, rows, 1, n - column)
        rest = builder.apply("divide", rest, builder.broadcast(pivot, rest.shape, range(a.rank)))
        above = builder.number(0, (*a.shape[:-2], column, 1), FLOAT32)
        found.append(builder.concatenate([above, pivot, rest], rows))
        a = builder.part(builder.part(a, rows, 1, n - column), columns, 1, n - column)
        both = (builder.broadcast(one, a.shape, range(a.rank)) for one in (rest, builder.transpose(rest, *turned)))
        a = builder.apply("subtract", a, builder.apply("multiply", *both))
    whole = builder.concatenate(found, columns)
    is_positive = builder.broadcast(builder.apply("greater", pivot, 0), whole.shape, range(a.rank))
    whole = builder.apply("select", is_positive, whole, np.nan)
    return [builder.convert(builder.transpose(whole, *turned) if is_upper else whole, result.type)]


@_reads("sort")
def _sort(builder: Builder, given: Given) -> Sequence[Value]:
    axis = given.attributes.integer("dimension", -1) % given.operands[0].rank
    return given.append(builder, graph.Sort, *given.operands, axis=axis, body=given.blocks[0])


@_reads("reduce_window")
def _reduce_window(builder: Builder, given: Given) -> Sequence[Value]:
    window = _window(given, given.attributes.integers("window_dimensions"))
    return given.append(builder, graph.ReduceWindow, *given.operands, window=window, body=given.blocks[0])


@_reads("select_and_scatter")
def _select_and_scatter(builder: Builder, given: Given) -> Sequence[Value]:
    window = _window(given, given.attributes.integers("window_dimensions", (1,) * given.operands[0].rank))
    select, scatter = given.blocks
    fields = {"window": window, "select": select, "scatter": scatter}
    return given.append(builder, graph.SelectAndScatter, *given.operands, **fields)


def _window(
    given: Given, size: tuple[int, ...], spread: str = "base_dilations", dilation: str = "window_dilations"
) -> WindowShape:
    """Return the windows; `spread` and `dilation` are the names of attributes."""
    ones, read = (1,) * len(size), given.attributes.integers
    padding = read("padding", (0, 0) * len(size))
    return WindowShape(
        size=size, stride=read("window_strides", ones), low=padding[0::2], high=padding[1::2],
        spread=read(spread, ones), dilation=read(dilation, ones),
    )  # fmt: skip


@_reads("convolution")
def _convolution(builder: Builder, given: Given) -> Sequence[Value]:
    """Append the convolution between transpositions from and to the orders of dimensions that the module has."""
    (result,), attributes = given.results, given.attributes

    def order(side: str, first: str, second: str) -> tuple[int, ...]:
        outer = [attributes.integer(f"{side}_{name}_dimension") for name in (first, second)]
        return *outer, *attributes.integers(f"{side}_spatial_dimensions")

    left = builder.transpose(given.operands[0], *order("input", "batch", "feature"))
    right = builder.transpose(given.operands[1], *order("kernel", "output_feature", "input_feature"))
    outward = order("output", "batch", "feature")
    groups, batch_groups = (attributes.integer(f"{name}_group_count", 1) for name in ("feature", "batch"))
    plain = builder.append(
        graph.Convolution, [result.shape[axis] for axis in outward], result.type, left, right,
        window=_window(given, right.shape[2:], "lhs_dilation", "rhs_dilation"), groups=groups,
        reverse=tuple(map(bool, attributes.integers("window_reversal", (0,) * (result.rank - 2)))),
        batch_groups=batch_groups,
    )  # fmt: skip
    return [builder.transpose(plain, *np.argsort(outward).tolist())]


@_reads("rng_bit_generator")
def _random_bits(builder: Builder, given: Given) -> Sequence[Value]:
    (state,), (_, bits) = given.operands, given.results
    if state.shape != (2,) or not state.type.is_wide or not bits.type.is_integer:
        raise Refused(f"random bits must be integers of a state of 2 uint64, not {bits} of {state}")
    words, new = builder.append(graph.Bitcast, (2, 2), UNSIGNED32, state), Value((2, 2), UNSIGNED32)
    fields = {"operands": (words,), "results": (new, bits), "source": builder.source}
    is_threefry = given.attributes.text("rng_algorithm") == "THREE_FRY"  # the other two are Philox
    builder.operations.append(graph.RandomBits(**fields, is_threefry=is_threefry))
    return builder.append(graph.Bitcast, (2,), state.type, new), bits


@_reads("case")
def _case(builder: Builder, given: Given) -> Sequence[Value]:
    return given.append(builder, graph.Branches, *given.operands, branches=given.blocks)


@_reads("if")
def _if(builder: Builder, given: Given) -> Sequence[Value]:
    """Append a case: branch 1 if the condition is true, which the first region is."""
    if not given.operands[0].type.is_boolean:
        raise Refused(f"a condition must be boolean, not {given.operands[0]}")
    return given.append(builder, graph.Branches, *given.operands, branches=given.blocks[::-1])
