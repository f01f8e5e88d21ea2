"""Patterns: what users and JAX write for a function that the scalar engine has becomes this function.

- x erfc(-x / sqrt 2) / 2 is gelu(x); with tanh, x (1 + tanh(...)) / 2, its approximation.
- x logistic(x) is silu(x).
- maximum(x, -inf), x * 1 and x / 1 are x; so are the bits of x's bits in its type, and a choice by a known condition.

A graph that differs, or another type than float32, is computed as written.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isclose, pi, prod, sqrt

from neuroncore_rtl.frontends.xla.fuse.placement import number_of
from neuroncore_rtl.frontends.xla.graph.cloning import rebuilt, renamed
from neuroncore_rtl.frontends.xla.graph.operations import Bitcast, Graph, Operation, Pointwise, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32

__all__ = ["recognise"]

_CLOSE = 1e-6
"""Relative error of a constant that FP32 arithmetic makes."""
_DEPTH = 5
"""Maximum products within a product, of which the functions have three."""

Makers = Mapping[Value, Operation]


def recognise(block: Graph) -> Graph:
    """Return the block with functions in place of their patterns; unused operations remain."""
    return _recognise(block, {}, {})


def _recognise(block: Graph, makers: dict[Value, Operation], same: dict[Value, Value]) -> Graph:
    operations = []
    for operation in block.operations:
        operation = rebuilt(operation, same, lambda inner: _recognise(inner, makers, same))
        makers.update(dict.fromkeys(operation.results, operation))
        if isinstance(operation, Pointwise) and (equal := _identity(operation, makers)) is not None:
            same[operation.result] = equal
            continue
        if isinstance(operation, Pointwise) and operation.result.type is FLOAT32:
            if operation.function == "multiply" and (found := _function(operation.result, makers)) is not None:
                operation = makers[operation.result] = replace(operation, operands=found[1:], function=found[0])
        if isinstance(operation, Bitcast) and isinstance(maker := makers.get(operation.operands[0]), Bitcast):
            (first,), result = maker.operands, operation.result
            if (first.shape, first.type) == (result.shape, result.type):
                same[result] = first
                continue
        operations.append(operation)
    return replace(block, operations=operations, results=renamed(block.results, same))


def _identity(operation: Pointwise, makers: Makers) -> Value | None:
    """Return the operand that the result equals."""
    if operation.function == "select" and (chosen := number_of(operation.operands[0], makers)) is not None:
        yes, no = operation.operands[1:]
        return yes if chosen else no
    if operation.result.type is not FLOAT32:
        return None
    neutral = {"maximum": -inf, "minimum": inf, "multiply": 1.0, "divide": 1.0}.get(operation.function)
    if neutral is None:
        return None
    a, b = operation.operands
    if number_of(b, makers) == neutral:
        return a
    return b if operation.function != "divide" and number_of(a, makers) == neutral else None


def _product(value: Value, makers: Makers, depth: int = _DEPTH) -> tuple[float, list[Value]]:
    """Return the product of the numbers among a value's factors, and the other factors; a negation is one of -1."""
    maker = makers.get(value)
    if (number := number_of(value, makers)) is not None:
        return number, []
    if depth and isinstance(maker, Pointwise) and maker.function in ("multiply", "negate"):
        scales, values = zip(*(_product(one, makers, depth - 1) for one in maker.operands), strict=True)
        return prod(scales, start=-1.0 if maker.function == "negate" else 1.0), [one for some in values for one in some]
    return 1.0, [value]


def _function(result: Value, makers: Makers) -> tuple[str, Value] | None:
    scale, values = _product(result, makers)
    if len(values) != 2:
        return None
    for x, other in (values, values[::-1]):
        maker = makers.get(other)
        if not isinstance(maker, Pointwise):
            continue
        if maker.function == "logistic" and scale == 1.0 and maker.operands[0] is x:
            return "silu", x
        if maker.function == "erfc" and scale == 0.5:
            inner, rest = _product(maker.operands[0], makers)
            if rest == [x] and isclose(inner, -sqrt(0.5), rel_tol=_CLOSE):
                return "gelu", x
        if maker.function == "add" and scale == 0.5 and _is_tanh(maker, x, makers):
            return "gelu_tanh", x
    return None


def _is_tanh(add: Pointwise, x: Value, makers: Makers) -> bool:
    """Return whether the sum is 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))."""
    for one, tanh in (add.operands, add.operands[::-1]):
        maker = makers.get(tanh)
        if number_of(one, makers) != 1.0 or not isinstance(maker, Pointwise) or maker.function != "tanh":
            continue
        scale, values = _product(maker.operands[0], makers)
        inner = makers.get(values[0]) if len(values) == 1 else None
        if not isclose(scale, sqrt(2 / pi), rel_tol=_CLOSE) or not isinstance(inner, Pointwise):
            return False
        if inner.function != "add" or inner.operands[0] is not x:
            return False
        cubic, factors = _product(inner.operands[1], makers)
        return isclose(cubic, 0.044715, rel_tol=_CLOSE) and factors == [x, x, x]
    return False
