"""Pipelined multiplication: three products of halves, then their sum, with room for registers in between.

(a1 B + a0)(b1 B + b0) = a1 b1 B**2 + ((a0 + a1)(b0 + b1) - a1 b1 - a0 b0) B + a0 b0 (Karatsuba). Operands slightly
wider than an FPGA's multipliers take three of them instead of four.
"""

from types import SimpleNamespace

from amaranth import Cat, Value

__all__ = ["halves_product", "join_halves", "minus", "plus"]


def halves_product(a: Value, b: Value, at: int, halves: bool = True) -> dict[str, Value]:
    """Return the partial products for `join_halves`.

    Arguments:
        a: first factor, unsigned.
        b: second factor, signed or unsigned.
        at: number of bits in the lower half of each operand.
        halves: false: return the whole product, for use without a register between `halves_product` and `join_halves`.
    """
    if not halves:
        return {"whole": a * b}
    upper = b[at:].as_signed() if b.shape().signed else b[at:]
    return {"low": a[:at] * b[:at], "high": a[at:] * upper, "cross": (a[:at] + a[at:]) * (b[:at] + upper)}


def join_halves(parts: SimpleNamespace, at: int, addend: Value, places: int) -> Value:
    """Return addend + (a * b >> places), rounded toward minus infinity; at least one bit wider than needed.

    Arguments:
        parts: the results of `halves_product` as attributes.
        at: as in `halves_product`.
        addend: number added to the product after its right shift.
        places: right shift of the product.
    """
    if hasattr(parts, "whole"):
        return addend + _kind(parts.whole, parts.whole[places:])
    low, high = parts.low, parts.high
    outer = plus(_kind(high, Cat(low, high)), addend << places)
    inner = minus(minus(parts.cross, low), high)
    total = plus(outer, inner << at)
    return _kind(total, total[places:])


def plus(a: Value, b: Value) -> Value:
    """Return a + b on a separate carry chain.

    The zero bit added below keeps Yosys from merging chained sums into carry-save adders, which take two LUTs per bit.
    """
    return ((a << 1) + (b << 1)) >> 1


def minus(a: Value, b: Value) -> Value:
    """Return a - b, computed on a separate carry chain like the sum of `plus`."""
    return ((a << 1) - (b << 1)) >> 1


def _kind(like: Value, value: Value) -> Value:
    return value.as_signed() if like.shape().signed else value.as_unsigned()
