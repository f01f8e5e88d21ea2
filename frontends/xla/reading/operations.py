"""Readers of StableHLO's operations: each returns the operations of the graph that compute the results."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Value, WindowShape
from neuroncore_rtl.frontends.xla.reading.attributes import Attributes
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.program.source import SourceLine

__all__ = ["READERS", "Given"]


@dataclass(frozen=True)
class Given:
    """An operation of a module: name, values, attributes, and blocks of its regions."""

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Attributes
    blocks: tuple[Graph, ...]
    source: SourceLine

    def make(self, kind: type[Operation], *operands: Value, **fields) -> Operation:
        """Return the graph's operation with this one's results, and operands unless others are given."""
        return kind(operands=operands or self.operands, results=self.results, source=self.source, **fields)


Reader = Callable[[Given], list[Operation]]
READERS: dict[str, Reader] = {}
"""Readers by the operation's name."""

_FUNCTIONS = """abs add and atan2 cbrt ceil convert cosine count_leading_zeros divide erf exponential
exponential_minus_one floor is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt power
remainder round_nearest_afz round_nearest_even rsqrt shift_left shift_right_arithmetic shift_right_logical sign sine
sqrt subtract tan tanh xor reduce_precision""".split()
_COMPARISONS = {
    "EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal",
}  # fmt: skip


def _reads(*names: str) -> Callable[[Reader], Reader]:
    def register(reader: Reader) -> Reader:
        READERS.update(dict.fromkeys([f"stablehlo.{name}" for name in names], reader))
        return reader

    return register


@_reads(*(name for name in _FUNCTIONS if name not in ("erf", "reduce_precision")))
def _function(given: Given) -> list[Operation]:
    return [given.make(graph.Pointwise, function=given.name.split(".")[-1])]


READERS["chlo.erf"] = READERS["chlo.erfc"] = READERS["chlo.mulhi"] = _function


@_reads("reduce_precision")
def _reduce_precision(given: Given) -> list[Operation]:
    bits = (given.attributes.integer(f"{part}_bits") for part in ("exponent", "mantissa"))
    return [given.make(graph.Pointwise, function=" ".join(map(str, ("reduce_precision", *bits))))]


@_reads("compare")
def _compare(given: Given) -> list[Operation]:
    name = _COMPARISONS[given.attributes.text("comparison_direction")]
    total = given.attributes.text("compare_type") == "TOTALORDER" and given.operands[0].type.is_float
    return [given.make(graph.Pointwise, function=name + "_total" * total)]


@_reads("select", "clamp")
def _with_scalars(given: Given) -> list[Operation]:
    """Return select or clamp; operands that are scalars are broadcast first."""
    found, operands = [], []
    for operand in given.operands:
        if operand.shape != given.results[0].shape:
            wide = Value(given.results[0].shape, operand.type)
            found.append(graph.Broadcast(operands=(operand,), results=(wide,), source=given.source, axes=()))
            operand = wide
        operands.append(operand)
    return [*found, given.make(graph.Pointwise, *operands, function=given.name.split(".")[-1])]


@_reads("constant")
def _constant(given: Given) -> list[Operation]:
    array = given.attributes.array("value")
    return [graph.Constant(operands=(), results=given.results, source=given.source, array=array)]


@_reads("get_dimension_size")
def _dimension(given: Given) -> list[Operation]:
    array = np.array(given.operands[0].shape[given.attributes.integer("dimension")], np.int32)
    return [graph.Constant(operands=(), results=given.results, source=given.source, array=array)]


# Operands of a dynamic operation that give the result's shape are not needed if that is constant.
@_reads("iota", "dynamic_iota")
def _iota(given: Given) -> list[Operation]:
    axis = given.attributes.integer("iota_dimension")
    return [graph.Iota(operands=(), results=given.results, source=given.source, axis=axis)]


@_reads("bitcast_convert")
def _bitcast(given: Given) -> list[Operation]:
    return [given.make(graph.Bitcast)]


@_reads("broadcast_in_dim", "dynamic_broadcast_in_dim")
def _broadcast(given: Given) -> list[Operation]:
    return [given.make(graph.Broadcast, given.operands[0], axes=given.attributes.integers("broadcast_dimensions"))]


@_reads("broadcast")
def _broadcast_outside(given: Given) -> list[Operation]:
    rank, inner = given.results[0].rank, given.operands[0].rank
    return [given.make(graph.Broadcast, axes=tuple(range(rank - inner, rank)))]


@_reads("reshape", "dynamic_reshape")
def _reshape(given: Given) -> list[Operation]:
    return [given.make(graph.Reshape, given.operands[0])]


@_reads("transpose")
def _transpose(given: Given) -> list[Operation]:
    return [given.make(graph.Transpose, order=given.attributes.integers("permutation"))]


@_reads("slice")
def _slice(given: Given) -> list[Operation]:
    starts, ends, steps = (
        given.attributes.integers(f"{name}") for name in ("start_indices", "limit_indices", "strides")
    )
    return [given.make(graph.StridedSlice, starts=starts, ends=ends, steps=steps)]


@_reads("reverse")
def _reverse(given: Given) -> list[Operation]:
    return [given.make(graph.Reverse, axes=given.attributes.integers("dimensions"))]


@_reads("pad")
def _pad(given: Given) -> list[Operation]:
    low, high, interior = (
        given.attributes.integers(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    return [given.make(graph.Pad, low=low, high=high, interior=interior)]


@_reads("concatenate")
def _concatenate(given: Given) -> list[Operation]:
    return [given.make(graph.Concatenate, axis=given.attributes.integer("dimension"))]


@_reads("reduce")
def _reduce(given: Given) -> list[Operation]:
    return [given.make(graph.Reduce, axes=given.attributes.integers("dimensions"), body=given.blocks[0])]


@_reads("map")
def _map(given: Given) -> list[Operation]:
    builder = Builder(given.source)
    for value, result in zip(builder.inline(given.blocks[0], *given.operands), given.results, strict=True):
        builder.operations.append(graph.Reshape(operands=(value,), results=(result,), source=given.source))
    return builder.operations


@_reads("dot_general")
def _dot(given: Given) -> list[Operation]:
    numbers = given.attributes.structure("dot_dimension_numbers", "dot_dimension_numbers")
    batch = tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions)
    contract = tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions)
    return [given.make(graph.Dot, batch=batch, contract=contract)]


@_reads("dot")
def _plain_dot(given: Given) -> list[Operation]:
    contract = (given.operands[0].rank - 1,), (0,)
    return [given.make(graph.Dot, batch=((), ()), contract=contract)]


@_reads("sort")
def _sort(given: Given) -> list[Operation]:
    axis = given.attributes.integer("dimension", -1) % given.operands[0].rank
    stable = bool(given.attributes.integer("is_stable"))
    return [given.make(graph.Sort, axis=axis, stable=stable, body=given.blocks[0])]


@_reads("dynamic_slice")
def _dynamic_slice(given: Given) -> list[Operation]:
    return [given.make(graph.DynamicSlice, size=given.attributes.integers("slice_sizes"))]


@_reads("dynamic_update_slice")
def _dynamic_update(given: Given) -> list[Operation]:
    return [given.make(graph.DynamicUpdate)]


@_reads("gather")
def _gather(given: Given) -> list[Operation]:
    numbers = given.attributes.structure("dimension_numbers", "gather_dimension_numbers")
    return [
        given.make(
            graph.Gather,
            offset_dims=tuple(numbers.offset_dims),
            collapsed_slice_dims=tuple(numbers.collapsed_slice_dims),
            operand_batching_dims=tuple(numbers.operand_batching_dims),
            start_indices_batching_dims=tuple(numbers.start_indices_batching_dims),
            start_index_map=tuple(numbers.start_index_map),
            index_vector_dim=numbers.index_vector_dim,
            slice_sizes=given.attributes.integers("slice_sizes"),
        )
    ]


@_reads("scatter")
def _scatter(given: Given) -> list[Operation]:
    numbers = given.attributes.structure("scatter_dimension_numbers", "scatter_dimension_numbers")
    return [
        given.make(
            graph.Scatter,
            update_window_dims=tuple(numbers.update_window_dims),
            inserted_window_dims=tuple(numbers.inserted_window_dims),
            input_batching_dims=tuple(numbers.input_batching_dims),
            scatter_indices_batching_dims=tuple(numbers.scatter_indices_batching_dims),
            scatter_dims_to_operand_dims=tuple(numbers.scattered_dims_to_operand_dims),
            index_vector_dim=numbers.index_vector_dim,
            unique_indices=bool(given.attributes.integer("unique_indices")),
            body=given.blocks[0],
        )
    ]


def _pairs(values: tuple[int, ...], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (values[0::2], values[1::2]) if values else ((0,) * rank, (0,) * rank)


@_reads("reduce_window")
def _reduce_window(given: Given) -> list[Operation]:
    size = given.attributes.integers("window_dimensions")
    return [given.make(graph.ReduceWindow, window=_window(given, size), body=given.blocks[0])]


@_reads("select_and_scatter")
def _select_and_scatter(given: Given) -> list[Operation]:
    rank = given.operands[0].rank
    window = _window(given, given.attributes.integers("window_dimensions", (1,) * rank))
    select, scatter = given.blocks
    return [given.make(graph.SelectAndScatter, window=window, select=select, scatter=scatter)]


def _window(given: Given, size: tuple[int, ...]) -> WindowShape:
    ones, attributes = (1,) * len(size), given.attributes
    low, high = _pairs(attributes.integers("padding"), len(size))
    stride, dilation = attributes.integers("window_strides", ones), attributes.integers("window_dilations", ones)
    spread = attributes.integers("base_dilations", ones)
    return WindowShape(size=size, stride=stride, low=low, high=high, spread=spread, dilation=dilation)


@_reads("convolution")
def _convolution(given: Given) -> list[Operation]:
    """Return the convolution between transpositions from and to the orders of dimensions that the module has."""
    numbers, attributes = (
        given.attributes.structure("dimension_numbers", "convolution_dimension_numbers"),
        given.attributes,
    )
    orders = (
        (numbers.input_batch_dimension, numbers.input_feature_dimension, *numbers.input_spatial_dimensions),
        (
            numbers.kernel_output_feature_dimension,
            numbers.kernel_input_feature_dimension,
            *numbers.kernel_spatial_dimensions,
        ),
    )
    order_out = (numbers.output_batch_dimension, numbers.output_feature_dimension, *numbers.output_spatial_dimensions)
    found, operands = [], []
    for operand, order in zip(given.operands, orders, strict=True):
        turned = Value(tuple(operand.shape[axis] for axis in order), operand.type)
        found.append(graph.Transpose(operands=(operand,), results=(turned,), source=given.source, order=order))
        operands.append(turned)
    result, rank = given.results[0], len(order_out) - 2
    plain, ones = Value(tuple(result.shape[axis] for axis in order_out), result.type), (1,) * rank
    low, high = _pairs(attributes.integers("padding"), rank)
    window = WindowShape(
        size=operands[1].shape[2:], stride=attributes.integers("window_strides", ones), low=low, high=high,
        spread=attributes.integers("lhs_dilation", ones), dilation=attributes.integers("rhs_dilation", ones),
    )  # fmt: skip
    reverse = tuple(map(bool, attributes.integers("window_reversal", (0,) * rank)))
    groups, batch_groups = (attributes.integer(f"{name}_group_count", 1) for name in ("feature", "batch"))
    back = tuple(np.argsort(order_out).tolist())
    return [
        *found,
        graph.Convolution(
            operands=tuple(operands), results=(plain,), source=given.source, window=window, reverse=reverse,
            groups=groups, batch_groups=batch_groups,
        ),
        graph.Transpose(operands=(plain,), results=given.results, source=given.source, order=back),
    ]  # fmt: skip


@_reads("while")
def _while(given: Given) -> list[Operation]:
    condition, body = given.blocks
    return [given.make(graph.While, condition=condition, body=body)]


@_reads("case")
def _case(given: Given) -> list[Operation]:
    return [given.make(graph.Branches, branches=given.blocks)]


@_reads("if")
def _if(given: Given) -> list[Operation]:
    """Return a case: branch 1 if the condition is true, which the first region is."""
    condition = given.operands[0]
    if not condition.type.is_boolean:
        raise Refused(f"a condition must be boolean, not {condition}")
    return [given.make(graph.Branches, branches=given.blocks[::-1])]
