"""Patterns: what users and JAX write for a function that the scalar engine has becomes this function.

- x erfc(-x / sqrt 2) / 2 is gelu(x); with tanh, x (1 + tanh(...)) / 2, its approximation.
- x logistic(x) is silu(x).
- maximum(x, -inf), x * 1 and x / 1 are x.

A graph that differs, or another type than float32, is computed as written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf, isclose, pi, sqrt

from neuroncore_rtl.frontends.xla.fuse.placement import placed_root
from neuroncore_rtl.frontends.xla.graph.operations import Branches, Constant, Graph, Operation, Pointwise, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32

__all__ = ["recognise"]

_CLOSE = 1e-6
"""Relative error of a constant that FP32 arithmetic makes."""

Makers = Mapping[Value, Operation]


def recognise(block: Graph) -> Graph:
    """Return the block with functions in place of their patterns; unused operations remain."""
    return _recognise(block, {}, {})


def _recognise(block: Graph, makers: dict[Value, Operation], same: dict[Value, Value]) -> Graph:
    operations = []
    for operation in block.operations:
        inner = {}
        for name in ("body", "condition", "select", "scatter"):
            if isinstance(value := getattr(operation, name, None), Graph):
                inner[name] = _recognise(value, makers, same)
        if isinstance(operation, Branches):
            inner["branches"] = tuple(_recognise(each, makers, same) for each in operation.branches)
        operation = replace(operation, operands=tuple(same.get(one, one) for one in operation.operands), **inner)
        if isinstance(operation, Pointwise) and operation.result.type is FLOAT32:
            if (equal := _identity(operation, makers)) is not None:
                same[operation.result] = equal
                continue
            if operation.function == "multiply" and (found := _function(operation, makers)) is not None:
                operation = replace(operation, operands=found[1:], function=found[0])
        makers.update(dict.fromkeys(operation.results, operation))
        operations.append(operation)
    return replace(block, operations=operations, results=tuple(same.get(one, one) for one in block.results))


def _number(value: Value, makers: Makers) -> float | None:
    """Return the number that all elements of a value are, if it is known."""
    root, _ = placed_root(value, (None,) * value.rank, makers)
    maker = makers.get(root)
    return float(maker.splat) if isinstance(maker, Constant) and maker.splat is not None else None


def _identity(operation: Pointwise, makers: Makers) -> Value | None:
    """Return the operand that the result equals."""
    neutral = {"maximum": -inf, "minimum": inf, "multiply": 1.0, "divide": 1.0}.get(operation.function)
    if neutral is None:
        return None
    a, b = operation.operands
    if _number(b, makers) == neutral:
        return a
    return b if operation.function != "divide" and _number(a, makers) == neutral else None


def _factors(value: Value, makers: Makers) -> Iterator[Value | float]:
    """Yield the factors of a product, numbers as such; a negation is a factor of -1."""
    maker = makers.get(value)
    if (number := _number(value, makers)) is not None:
        yield number
    elif isinstance(maker, Pointwise) and maker.function == "multiply":
        yield from _factors(maker.operands[0], makers)
        yield from _factors(maker.operands[1], makers)
    elif isinstance(maker, Pointwise) and maker.function == "negate":
        yield -1.0
        yield from _factors(maker.operands[0], makers)
    else:
        yield value


def _product(value: Value, makers: Makers) -> tuple[float, list[Value]]:
    """Return the product of the numbers among the factors, and the other factors."""
    scale, values = 1.0, []
    for factor in _factors(value, makers):
        if isinstance(factor, Value):
            values.append(factor)
        else:
            scale *= factor
    return scale, values


def _function(operation: Pointwise, makers: Makers) -> tuple[str, Value] | None:
    scale, values = _product_of(operation, makers)
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


def _product_of(operation: Pointwise, makers: Makers) -> tuple[float, list[Value]]:
    scale, values = 1.0, []
    for operand in operation.operands:
        number, some = _product(operand, makers)
        scale, values = scale * number, values + some
    return scale, values


def _is_tanh(add: Pointwise, x: Value, makers: Makers) -> bool:
    """Return whether the sum is 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))."""
    for one, tanh in (add.operands, add.operands[::-1]):
        maker = makers.get(tanh)
        if _number(one, makers) != 1.0 or not isinstance(maker, Pointwise) or maker.function != "tanh":
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
