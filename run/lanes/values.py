"""Cells as C++ expressions over one instance (scalar) or several (vector, one element per instance).

An expression has a type, 32 or 64 bits per element, and is *varying* if it is a vector. Functions are those of
`lanes.h`, overloaded for scalars and vectors. Bits above a value's width are zero.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from neuroncore_rtl.run.lanes.netlist import WORD, Bit, Cell, Unsupported

__all__ = ["Expression", "Values", "runs", "word"]


def word(width: int) -> int:
    """Return the size of the word for `width` bits: 32 or 64."""
    return 32 if width <= 32 else WORD


def runs(bits: list[Bit]) -> Iterator[tuple[str | None, int, int, int]]:
    """Yield the runs of adjacent bits of one source that make up `bits`, lowest first.

    A run is: source (None: a constant), first bit in it (or the value of the constant), length, position in `bits`.
    """
    place = 0
    while place < len(bits):
        bit = bits[place]
        last = place + 1
        if isinstance(bit, int):
            value = bit
            while last < len(bits) and isinstance(following := bits[last], int):
                value |= following << last - place
                last += 1
            yield None, value, last - place, place
        else:
            source, first = bit
            while last < len(bits) and bits[last] == (source, first + last - place):
                last += 1
            yield source, first, last - place, place
        place = last


@dataclass(frozen=True)
class Expression:
    """C++ expression of a word of `type` bits, or, if `varying`, of a vector of such words."""

    code: str
    type: int
    varying: bool

    def as_vector(self) -> "Expression":
        return self if self.varying else Expression(f"K{self.type}({self.code})", self.type, True)

    def as_type(self, wanted: int) -> "Expression":
        if self.type == wanted:
            return self
        return Expression(f"{'wide' if wanted == WORD else 'narrow'}({self.code})", wanted, self.varying)


def constant(value: int, wanted: int) -> Expression:
    # UINT64_C gives exactly uint64_t, which overloads need; unsigned long long may differ from it.
    return Expression(f"{value:#x}u" if wanted == 32 else f"UINT64_C({value:#x})", wanted, False)


def together(*values: Expression) -> list[Expression]:
    """Return expressions as operands of one operation: if one is a vector, all become vectors."""
    return [value.as_vector() for value in values] if any(value.varying for value in values) else list(values)


def infix(operator: str, values: Sequence[Expression]) -> Expression:
    """Return the values joined by an operator; a single value unchanged."""
    if len(values) == 1:
        return values[0]
    alike = together(*values)
    return Expression(f"({f' {operator} '.join(value.code for value in alike)})", alike[0].type, alike[0].varying)


def call(function: str, result: int, *values: Expression) -> Expression:
    """Return the call of a function with a result of `result` bits."""
    alike = together(*values)
    return Expression(f"{function}({', '.join(value.code for value in alike)})", result, alike[0].varying)


def inverted(value: Expression) -> Expression:
    """Return the opposite of a truth value, 0 or 1."""
    return infix("^", (value, constant(1, 32)))


def masked(value: Expression, bits: int) -> Expression:
    """Return the lowest bits of a value."""
    if bits >= value.type:
        return value
    return Expression(f"({value.code} & {constant((1 << bits) - 1, value.type).code})", value.type, value.varying)


class Values:
    """Expressions of bits and cells of a module.

    `source` maps (source, first bit, length) to expression, first bit and width. For a source wider than 64 bits the
    expression covers only the requested bits.
    """

    def __init__(self, module: str, source: Callable[[str, int, int], tuple[Expression, int, int]]):
        self.module = module
        self.source = source

    def bits(self, bits: list[Bit], wanted: int) -> Expression:
        """Return the value of bits, zero-extended to the `wanted` type; Unsupported if it has more bits."""
        while bits and bits[-1] == 0:
            bits = bits[:-1]
        if len(bits) > wanted:
            raise Unsupported(f"has an operand of {len(bits)} bits, more than {wanted}")
        if wanted == WORD and len(bits) <= 32:
            return self.bits(bits, 32).as_type(WORD)
        terms = []
        for source, first, length, place in _with_copies(bits):
            if source is None:
                if first:
                    terms.append(constant(first << place, wanted))
                continue
            if first < 0:  # copies of one bit
                value = self.slice(source, ~first, 1, wanted)
                mask = constant(((1 << length) - 1) << place, wanted)
                code = f"(-{value.code} & {mask.code})" if value.varying else f"(({mask.code}) & (0 - {value.code}))"
                terms.append(Expression(code, wanted, value.varying))
                continue
            value = self.slice(source, first, length, wanted)
            terms.append(Expression(f"({value.code} << {place})", wanted, value.varying) if place else value)
        if not terms:
            return constant(0, wanted)
        if len(terms) == 1:
            return terms[0]
        scalars = [term for term in terms if not term.varying]
        vectors = [term for term in terms if term.varying]
        if scalars:
            scalar = Expression("(" + " | ".join(term.code for term in scalars) + ")", wanted, False)
            vectors = [*vectors, scalar.as_vector()] if vectors else [scalar]
        return infix("|", vectors)

    def slice(self, name: str, first: int, length: int, wanted: int) -> Expression:
        value, place, width = self.source(name, first, length)
        if place:
            value = Expression(f"({value.code} >> {place})", value.type, value.varying)
        value = value.as_type(wanted)
        return masked(value, length) if place + length < width else value

    def extended(self, bits: list[Bit], signed: bool, wanted: int) -> Expression:
        """Return the value of bits, extended by sign or zeros, or truncated, to a word of `wanted` bits."""
        bits = bits[:wanted]
        if signed and len(bits) < wanted and bits[-1] != 0:
            value = self.bits(bits, wanted)
            return Expression(f"signed_{wanted}({value.code}, {wanted - len(bits)})", wanted, value.varying)
        return self.bits(bits, wanted)

    def pieces(self, bits: list[Bit]) -> Iterator[tuple[list[Bit], int]]:
        """Split bits into pieces of at most one word, each with its word's size."""
        for first in range(0, len(bits), WORD):
            piece = bits[first : first + WORD]
            yield piece, word(len(piece))

    def cell(self, cell: Cell) -> Expression:
        """Return a cell's value in the type of its width; Unsupported if operands are too wide."""
        try:
            return self._cell(cell)
        except Unsupported as error:
            raise Unsupported(f"{self.module}: {cell.name} ({cell.kind}) {error}") from None

    def _cell(self, cell: Cell) -> Expression:
        kind, width, operands = cell.kind, cell.width, cell.operands
        wanted = word(width)
        a, b = operands.get("A", []), operands.get("B", [])
        both = "A" in cell.signed and ("B" in cell.signed or "B" not in operands)

        if kind in ("and", "or", "xor", "xnor", "add", "sub", "mul"):
            left, right = (self.extended(bits, both, wanted) for bits in (a, b))
            operator = {"and": "&", "or": "|", "xor": "^", "xnor": "^", "add": "+", "sub": "-", "mul": "*"}[kind]
            value = infix(operator, (left, right))
            if kind == "xnor":
                value = Expression(f"(~{value.code})", wanted, value.varying)
            longest = max(len(a), len(b))
            most = {"and": longest, "or": longest, "xor": longest, "add": longest + 1, "mul": len(a) + len(b)}
            return value if not both and most.get(kind, WORD + 1) <= width else masked(value, width)
        if kind in ("not", "neg", "pos"):
            value = self.extended(a, both, wanted)
            sign = {"not": "~", "neg": "-", "pos": ""}[kind]
            return masked(Expression(f"({sign}{value.code})", wanted, value.varying), width)
        if kind == "mux":
            select = self.bits(operands["S"], 32)
            return self.mux(select, self.bits(b, wanted), self.bits(a, wanted), wanted)
        if kind == "pmux":
            value = self.bits(a, wanted)
            for index, select in enumerate(operands["S"]):
                case = self.bits(b[index * width : (index + 1) * width], wanted)
                value = self.mux(self.bits([select], 32), case, value, wanted)
            return value
        if kind in ("shl", "sshl", "shr", "sshr", "shift", "shiftx"):
            return self._shift(cell)
        if kind in ("lt", "le", "gt", "ge"):
            if max(len(a), len(b)) > WORD:
                raise Unsupported(f"compares {max(len(a), len(b))} bits, more than {WORD}")
            size = word(max(len(a), len(b)))
            left, right = (self.extended(bits, both, size) for bits in (a, b))
            return call(("signed_" if both else "") + kind, 32, left, right).as_type(wanted)
        if kind in ("eq", "ne"):
            size = max(len(a), len(b))
            a, b = (_stretched(bits, size, both) for bits in (a, b))
            parts = [
                call("eq", 32, self.bits(left, size), self.bits(right, size))
                for (left, size), (right, _) in zip(self.pieces(a), self.pieces(b), strict=True)
            ]
            value = infix("&", parts)
            return (value if kind == "eq" else inverted(value)).as_type(wanted)
        if kind in ("reduce_or", "reduce_bool", "logic_not", "logic_and", "logic_or"):
            value = self._any(a)
            if kind in ("logic_and", "logic_or"):
                value = infix("&" if kind == "logic_and" else "|", (value, self._any(b)))
            return (value if kind != "logic_not" else inverted(value)).as_type(wanted)
        if kind == "reduce_and":
            parts = [
                call("eq", 32, self.bits(piece, size), constant((1 << len(piece)) - 1, size))
                for piece, size in self.pieces(a)
            ]
            return infix("&", parts).as_type(wanted)
        if kind in ("reduce_xor", "reduce_xnor"):
            parts = [call("parity", 32, self.bits(piece, size)) for piece, size in self.pieces(a)]
            value = infix("^", parts)
            return (value if kind == "reduce_xor" else inverted(value)).as_type(wanted)
        raise Unsupported("has an unknown kind")

    def mux(self, select: Expression, high: Expression, low: Expression, wanted: int) -> Expression:
        if select.varying:
            high, low = high.as_vector(), low.as_vector()
            return Expression(f"choose({select.code}, {high.code}, {low.code})", wanted, True)
        high, low = together(high, low)
        return Expression(f"({select.code} ? {high.code} : {low.code})", wanted, high.varying)

    def _any(self, bits: list[Bit]) -> Expression:
        if len(bits) == 1:
            return self.bits(bits, 32)
        return infix("|", [call("any", 32, self.bits(piece, size)) for piece, size in self.pieces(bits)])

    def _shift(self, cell: Cell) -> Expression:
        kind, width = cell.kind, cell.width
        a, b = cell.operands["A"], cell.operands["B"]
        a_signed, b_signed = "A" in cell.signed, "B" in cell.signed
        if len(b) > WORD:
            raise Unsupported(f"shifts by a number of {len(b)} bits, more than {WORD}")
        left = kind in ("shl", "sshl")
        reach = width if left else max(width, len(a))
        if reach > WORD:
            raise Unsupported(f"shifts a word of {reach} bits, more than {WORD}")
        size = word(max(reach, len(b)))
        value = self.extended(a, a_signed, size)
        if a_signed and not left and kind != "sshr":
            value = masked(value, reach)
        safe = len(b) < size and (1 << len(b)) <= size
        if b_signed and kind in ("shift", "shiftx"):
            amount = self.extended(b, True, size)
            moved = call("shift_either", size, value, amount)
        else:
            amount = self.bits(b, size)
            name = "left" if left else "signed_right" if kind == "sshr" and a_signed else "right"
            moved = call(name if not safe else f"{name}_within", size, value, amount)
        return masked(moved.as_type(word(width)), width)


def _stretched(bits: list[Bit], size: int, signed: bool) -> list[Bit]:
    return bits + [bits[-1] if signed and bits else 0] * (size - len(bits))


def _with_copies(bits: list[Bit]) -> Iterator[tuple[str | None, int, int, int]]:
    """Yield `runs` of bits, but copies of one bit, as in a sign extension, as one run.

    In such a run the position of the bit in its source is inverted (`~`), which makes it negative.
    """
    place = begin = 0
    for bit, same in groupby([*bits, None]):
        count = len(list(same))
        if bit is None or (isinstance(bit, tuple) and count > 1):
            yield from ((source, first, length, begin + at) for source, first, length, at in runs(bits[begin:place]))
            begin = place + count
            if bit is not None:
                yield bit[0], ~bit[1], count, place
        place += count
