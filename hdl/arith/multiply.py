"""A product in two steps, with room for registers in between: three products of halves, and their sum.

(a1 B + a0)(b1 B + b0) = a1 b1 B**2 + ((a0 + a1)(b0 + b1) - a1 b1 - a0 b0) B + a0 b0: three multipliers of an FPGA where
operands that are a little wider than its multipliers would take four.
"""

from types import SimpleNamespace

from amaranth import Cat, Value

__all__ = ["halves_product", "joined", "minus", "plus"]


def halves_product(a: Value, b: Value, at: int, halves: bool = True) -> dict[str, Value]:
    """Return what :func:`joined` makes the product of.

    Arguments:
        a: unsigned. b: of either kind.
        at: the number of bits in the lower half of each.
        halves: 0 for the product itself, for what has no register in between.
    """
    if not halves:
        return {"whole": a * b}
    upper = b[at:].as_signed() if b.shape().signed else b[at:]
    return {"low": a[:at] * b[:at], "high": a[at:] * upper, "cross": (a[:at] + a[at:]) * (b[:at] + upper)}


def joined(parts: SimpleNamespace, at: int, addend: Value, places: int) -> Value:
    """Return addend + (a * b >> places), rounded toward minus infinity; one bit or more wider than needed.

    Arguments:
        parts: attributes named as what :func:`halves_product` returned. at: as there.
        addend, places: as above.
    """
    if hasattr(parts, "whole"):
        return addend + _kind(parts.whole, parts.whole[places:])
    low, high = parts.low, parts.high
    outer = plus(_kind(high, Cat(low, high)), addend << places)
    inner = minus(minus(parts.cross, low), high)
    total = plus(outer, inner << at)
    return _kind(total, total[places:])


def plus(a: Value, b: Value) -> Value:
    """Return a + b by a carry chain of its own: Yosys would make carry-save adders, two LUTs a bit, of a chain of sums
    that go on as they are, and does not look for one bit more below."""
    return ((a << 1) + (b << 1)) >> 1


def minus(a: Value, b: Value) -> Value:
    """Return a - b, in the same way."""
    return ((a << 1) - (b << 1)) >> 1


def _kind(like: Value, value: Value) -> Value:
    return value.as_signed() if like.shape().signed else value.as_unsigned()
