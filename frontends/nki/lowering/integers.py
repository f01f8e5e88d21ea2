"""Operations of integers as sequences of instructions with exact results.

One instruction has one arithmetic, 32 bits with or without a sign (`spec.isa.alu.Arithmetic`), and shifts right with
zeros. Operands of both signs, numbers beyond the arithmetic's range, right shifts of negative numbers and left shifts
beyond a narrow result therefore need other formats of the same bits, or several instructions. The rules:

- Comparisons, maxima and minima are those of the mathematical values.
- Additions, products and bit operations are exact modulo 2^32, in dst's type if that has 32 bits. A narrower dst gets
  the saturated result of 32 bits, without a sign if no operand has one and one is a uint32.
- A number in a bit operation is one of the operands' type, or else a pattern of the bits of the widest operand or
  result. A left shift drops the bits that dst cannot hold; a right shift of a signed type repeats the sign.
"""

from dataclasses import dataclass, replace
from math import ceil, copysign, floor, isinf, isnan
from typing import cast

from neuroncore_rtl.frontends.nki.lowering.operands import one_source_in_psum
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FORMATS, INT32, UINT32, Format, IntFormat
from neuroncore_rtl.spec.isa.alu import BITWISE, COMPARISONS, AluOp

__all__ = [
    "Step", "append_instruction", "append_integers", "between", "is_square", "of_one_sign", "one_instruction",
    "same_bits", "whole_number",
]  # fmt: skip

_LOGICAL = frozenset((AluOp.LOGICAL_AND, AluOp.LOGICAL_OR, AluOp.LOGICAL_XOR))
_EXTREMES = frozenset((AluOp.MAX, AluOp.MIN))
_WRAPPING = frozenset((AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY)) | BITWISE
_SHIFTS = frozenset((AluOp.LOGICAL_SHIFT_LEFT, AluOp.LOGICAL_SHIFT_RIGHT))
_MIRRORED = {
    AluOp.IS_GT: AluOp.IS_LT, AluOp.IS_GE: AluOp.IS_LE, AluOp.IS_LT: AluOp.IS_GT, AluOp.IS_LE: AluOp.IS_GE,
    AluOp.IS_EQUAL: AluOp.IS_EQUAL, AluOp.NOT_EQUAL: AluOp.NOT_EQUAL,
}  # fmt: skip
_BEYOND = 1 << 40
"""A number that no tensor has."""
_SIGN = INT32.min
"""The word with the sign bit only."""
_LAST = 31
"""Largest shift that is not 0 or -1 for every value."""


@dataclass(frozen=True)
class Step:
    """One operation with its second operand; if `reverse`, the first.

    Arguments:
        operand: a number, one element per partition, or, if `whole`, a tensor of the result's shape.
    """

    op: AluOp
    operand: float | Tensor
    reverse: bool = False
    whole: bool = False


def append_instruction(r: Recording, target: Tensor, a: Tensor, *steps: Step) -> None:
    """Append one instruction: the steps in order, the first one on `a`."""
    first, *rest = steps
    if first.whole:
        b = cast("Tensor", first.operand)
        r.program.append(isa.tensor_tensor(target, *((b, a) if first.reverse else (a, b)), first.op))
    elif rest and rest[0].whole:
        (second,) = rest
        options: isa.Options = {"reverse0": first.reverse, "reverse1": second.reverse}
        b = cast("Tensor", second.operand)
        r.program.append(isa.scalar_tensor_tensor(target, a, first.operand, first.op, b, second.op, **options))
    else:
        second = rest[0] if rest else Step(AluOp.BYPASS, 0)
        options = {"reverse0": first.reverse, "reverse1": second.reverse}
        r.program.append(isa.tensor_scalar(target, a, first.operand, first.op, second.operand, second.op, **options))


def whole_number(a: Tensor, step: Step) -> Step:
    """Return the step on 32-bit integers with an integer number that has the same results, if there is one.

    Comparisons and extremes need no FP32, which would round the integers.
    """
    number, op = step.operand, step.op
    if isinstance(number, Tensor) or a.format not in (INT32, UINT32) or float(number).is_integer() or isnan(number):
        return step
    if isinf(number):
        number = copysign(_BEYOND, number)
    if op in _EXTREMES:
        return replace(step, operand=round(number))
    if op not in COMPARISONS:
        return step
    op = _MIRRORED[op] if step.reverse else op
    if op is AluOp.IS_EQUAL or op is AluOp.NOT_EQUAL:
        return Step(op, _BEYOND)
    return Step(op, ceil(number) if op in (AluOp.IS_LT, AluOp.IS_GE) else floor(number))


def append_integers(r: Recording, target: Tensor, dtype: Format, a: Tensor, *steps: Step) -> None:
    """Append one or two steps on integers with exact results; PSUM stores dst's type `dtype` in 32 bits."""
    fmt = cast("IntFormat", dtype)
    own = max(_formats(a, *steps), key=lambda one: one.bits)
    width = max(own, fmt, key=lambda one: one.bits)
    first, second = _pattern(steps[0], own, width), _pattern(steps[-1], own, width)
    if len(steps) == 1 or second.op is AluOp.BYPASS:
        _Single(r, target, fmt).append(a, first)
    elif fused := _fused(target, fmt, a, first, second):
        append_instruction(r, *fused)
    else:
        fmt_between = between(a, first)
        if _is_lost(first, fmt_between):
            rule = f"a number in {first.op.name.lower()} before another operation must be from {INT32.min}"
            raise ValueError(f"{target.name}: {rule} to {UINT32.max}, not {first.operand}")
        r.inserted["integer operations one by one"] += 1
        value = r.program.space.sbuf(target.name, fmt_between, target.shape, target.partitions)
        _Single(r, value, fmt_between).append(a, first)
        _Single(r, target, fmt).append(value, second)


def one_instruction(a: Tensor, step: Step, *others: Tensor) -> bool:
    """Return whether an instruction that has other operands as well computes a step on integers exactly."""
    formats = _formats(a, step, *others)
    words = UINT32 if UINT32 in formats else INT32
    return step.op not in _SHIFTS and not _both_signs(formats) and _within(step, words) == step


def of_one_sign(r: Recording, target: Tensor, a: Tensor, other: float | Tensor) -> tuple[Tensor, float | Tensor]:
    """Return two operands that dst may get; if they are integers of both signs, saturated to dst's sign."""
    tensors = [a, other] if isinstance(other, Tensor) else [a]
    if any(tensor.format.is_float for tensor in (target, *tensors)):
        return a, other
    formats, to = _formats(*tensors), _Single(r, target, cast("IntFormat", target.format))
    if not _both_signs(formats) and (isinstance(other, Tensor) or UINT32 not in formats or other >= 0):
        return a, other
    return to.word(a, to.words), to.word(other, to.words) if isinstance(other, Tensor) else other


def is_square(step: Step) -> bool:
    """Return whether a step is a power that integers have as a product."""
    return step.op is AluOp.POWER and not isinstance(step.operand, Tensor) and step.operand == 2 and not step.reverse


def _formats(*given: Tensor | Step) -> list[IntFormat]:
    operands = [one.operand if isinstance(one, Step) else one for one in given]
    return [cast("IntFormat", operand.format) for operand in operands if isinstance(operand, Tensor)]


def _both_signs(formats: list[IntFormat]) -> bool:
    return UINT32 in formats and any(fmt.signed for fmt in formats)


def between(a: Tensor, step: Step) -> IntFormat:
    """Return the type of an operation's exact result, before another operation."""
    formats = _formats(a, step)
    if step.op is AluOp.LOGICAL_SHIFT_LEFT and not step.reverse and formats[0].bits < INT32.bits:
        return formats[0]
    number = 0 if isinstance(step.operand, Tensor) else step.operand
    unsigned = UINT32 in formats or (step.op in _EXTREMES and number > INT32.max)
    signed = number < 0 or any(fmt.signed for fmt in formats)
    # A maximum is at least its unsigned operand, a minimum at most its signed one.
    return UINT32 if unsigned and (step.op is AluOp.MAX or not signed) else INT32


def _fused(target: Tensor, fmt: IntFormat, a: Tensor, first: Step, second: Step) -> tuple | None:
    """Return the arguments of `append_instruction` if one instruction with both steps is exact, else None."""
    if first.whole or is_square(first) or is_square(second):
        return None
    left, right = AluOp.LOGICAL_SHIFT_LEFT, AluOp.LOGICAL_SHIFT_RIGHT
    formats = _formats(a, first, second)
    if second.op is left and fmt.bits < INT32.bits:
        return None
    if first.op is left and formats[0].bits < INT32.bits and not _masks(second, formats[0].bits):
        return None
    if first.op is right and _is_signed(a, first) and not _masks(second, _LAST + 1 - _count(first)):
        return None
    if second.op is right and not _is_positive(a, first, second):
        return None
    words = UINT32 if UINT32 in formats else INT32
    if _is_lost(first, words):
        return None
    kept = [_within(step, words) for step in (first, second)]
    if all(step is not None for step in kept) and not _both_signs(formats):
        return same_bits(target, fmt, second.op, words), a, *kept
    if {first.op, second.op} <= _WRAPPING - {right}:
        return _as_signed(target, a, first, second)
    return None


def _is_lost(step: Step, words: IntFormat) -> bool:
    """Return whether a number of a maximum or minimum is the result for all values, but `words` cannot hold it."""
    if isinstance(step.operand, Tensor) or step.op not in _EXTREMES:
        return False
    return step.operand > words.max if step.op is AluOp.MAX else step.operand < words.min


def _masks(step: Step, bits: int) -> bool:
    """Return whether a step keeps at most the low `bits` bits."""
    number = not isinstance(step.operand, Tensor)
    return step.op is AluOp.BITWISE_AND and number and 0 <= cast("float", step.operand) < 1 << bits


def _count(step: Step) -> int:
    """Return the bits that a shift drops; 32 if they are not known."""
    known = not isinstance(step.operand, Tensor) and not step.reverse
    return min(int(cast("float", step.operand)) % (1 << 32), _LAST + 1) if known else _LAST + 1


def _is_signed(a: Tensor, step: Step) -> bool:
    """Return whether the value that a right shift shifts can be negative."""
    value = step.operand if step.reverse else a
    return cast("IntFormat", value.format).signed if isinstance(value, Tensor) else value < 0


def _is_positive(a: Tensor, first: Step, second: Step) -> bool:
    """Return whether the value that the second step shifts right cannot be negative."""
    if second.reverse:
        return not _is_signed(a, second)
    if first.op in COMPARISONS or first.op in _LOGICAL or _masks(first, _LAST):
        return True
    bits = first.op in BITWISE and first.op is not AluOp.LOGICAL_SHIFT_LEFT
    numbers = isinstance(first.operand, Tensor) or first.operand >= 0
    return bits and numbers and not any(fmt.signed for fmt in _formats(a, first))


def _wrapped(value: int, fmt: IntFormat) -> int:
    return (value - fmt.min) % (1 << fmt.bits) + fmt.min


def _pattern(step: Step, own: IntFormat, width: IntFormat) -> Step:
    """Return a step with the number of a bit operation in the operands' type `own`, or as its bits in `width`."""
    if isinstance(step.operand, Tensor) or step.op not in BITWISE - _SHIFTS or own.min <= step.operand <= own.max:
        return step
    return replace(step, operand=_wrapped(int(step.operand), width))


def _within(step: Step, words: IntFormat) -> Step | None:
    """Return a step with the same results and its number within the range of an arithmetic; None if none exists."""
    if isinstance(step.operand, Tensor):
        return step
    value = int(step.operand)
    if step.op is AluOp.ABSOLUTE_MAX:
        # The magnitude of the constant must not exceed that of any value; that of -2^31 is -2^31.
        return replace(step, operand=words.min)
    if step.op in BITWISE and step.op not in _SHIFTS:
        return replace(step, operand=_wrapped(value, words))
    if words.min <= value <= words.max:
        return step
    if step.op in _LOGICAL:
        return replace(step, operand=1)
    end = words.max if value > words.max else words.min
    if step.op in _EXTREMES:
        return replace(step, operand=end)
    if step.op not in COMPARISONS:
        return None
    # Every value is on one side of the number, so that the comparison is always true or always false.
    op = _MIRRORED[step.op] if step.reverse else step.op
    below = end == words.max
    true = op is AluOp.NOT_EQUAL or op in ((AluOp.IS_LT, AluOp.IS_LE) if below else (AluOp.IS_GT, AluOp.IS_GE))
    always, never = (AluOp.IS_LE, AluOp.IS_GT) if below else (AluOp.IS_GE, AluOp.IS_LT)
    return Step(always if true else never, end)


def same_bits(target: Tensor, fmt: Format, op: AluOp, source: Format) -> Tensor:
    """Return dst for a result of `op`: where a cast of 32 bits to the other sign would saturate, with the same bits.

    `source` is the operands' format: an instruction computes integers as UINT32 if it has such operands, else as INT32.
    """
    words = source if source is UINT32 or source.is_float else INT32
    # The magnitude of -2^31 is 2^31 without a sign.
    wraps = op in _WRAPPING - {AluOp.LOGICAL_SHIFT_RIGHT} or (op is AluOp.ABSOLUTE_MAX and words is INT32)
    return target.bitcast(words) if wraps and {fmt, words} == {INT32, UINT32} else target


def _signed(tensor: Tensor) -> Tensor:
    return tensor.bitcast(INT32) if tensor.format is UINT32 else tensor


def _as_signed(target: Tensor, a: Tensor, *steps: Step) -> tuple:
    """Return the arguments of `append_instruction` with all 32-bit operands and the result in INT32."""
    kept = []
    for step in steps:
        operand = step.operand
        if isinstance(operand, Tensor):
            kept.append(replace(step, operand=_signed(operand)))
            continue
        value, most = int(operand), UINT32.max if target.format.bits == INT32.bits else INT32.max
        if step.op not in BITWISE and not INT32.min <= value <= most:
            rule = f"from {INT32.min} to {most} beside integers"
            raise ValueError(f"{target.name}: a number in {step.op.name.lower()} must be {rule}, not {value}")
        kept.append(replace(step, operand=_wrapped(value, INT32)))
    return _signed(target), _signed(a), *kept


class _Single:
    """One operation of integers with dst `target` of type `fmt`."""

    def __init__(self, r: Recording, target: Tensor, fmt: IntFormat):
        self._r, self._target, self._fmt = r, target, fmt

    @property
    def words(self) -> IntFormat:
        """32-bit type with the sign of dst's type."""
        return INT32 if self._fmt.signed else UINT32

    def append(self, a: Tensor, step: Step) -> None:
        if step.reverse and step.whole:
            a, step = cast("Tensor", step.operand), Step(step.op, a, whole=True)
        if is_square(step):
            step = Step(AluOp.MULTIPLY, one_source_in_psum(self._r, a, a)[1], whole=True)
        if step.op is AluOp.LOGICAL_SHIFT_RIGHT:
            self._shift_right(a, step)
        elif step.op is AluOp.LOGICAL_SHIFT_LEFT and self._fmt.bits < INT32.bits:
            self._shift_left(a, step)
        elif step.op in _EXTREMES:
            self._extreme(a, step)
        elif step.op in COMPARISONS and _both_signs(_formats(a, step)):
            self._compare(a, step)
        else:
            self._plain(a, step)

    def _new(self, fmt: Format, shape: tuple[int, ...] | None = None) -> Tensor:
        shape = self._target.shape if shape is None else shape
        return self._r.program.space.sbuf(self._target.name, fmt, shape, self._target.partitions)

    def _to(self, target: Tensor, a: Tensor, *steps: Step) -> Tensor:
        append_instruction(self._r, target, a, *steps)
        return target

    def _plain(self, a: Tensor, step: Step) -> None:
        formats = _formats(a, step)
        words = UINT32 if UINT32 in formats else INT32
        within = _within(step, words)
        if within is not None and (not _both_signs(formats) or step.op in _LOGICAL):
            self._to(same_bits(self._target, self._fmt, step.op, words), a, within)
        elif step.op in _WRAPPING:
            append_instruction(self._r, *_as_signed(self._target, a, step))
        else:
            names = " and ".join(fmt.name for fmt in formats)
            rule = f"integers in {step.op.name.lower()} must be of one sign"
            raise ValueError(f"{self._target.name}: {rule}, not {names}: copy them to tensors of one type first")

    def _shift_left(self, a: Tensor, step: Step) -> None:
        """Keep the low bits, as a dst of an unsigned type: a cast to a signed type would saturate."""
        target, held = self._target, FORMATS[f"uint{self._fmt.bits}"]
        in_words = target.format is not self._fmt
        keep = Step(AluOp.BITWISE_AND, (1 << self._fmt.bits) - 1)
        out = self._new(held) if in_words else target.bitcast(held)
        self._r.inserted["bits beyond the type cut off"] += 1
        if step.whole:
            words = UINT32 if UINT32 in _formats(a, step) else INT32
            self._to(out, self._to(self._new(words), a, step), keep)
        else:
            self._to(out, a, step, keep)
        if in_words:
            self._r.program.append(isa.tensor_copy(target, out.bitcast(self._fmt)))

    def _extreme(self, a: Tensor, step: Step) -> None:
        """Convert the operands to dst's sign if they differ: saturation keeps the order of what dst can hold."""
        formats = _formats(a, step)
        words = UINT32 if UINT32 in formats else INT32
        value = None if isinstance(step.operand, Tensor) else int(step.operand)
        if not _both_signs(formats) and (value is None or words.min <= value <= words.max):
            self._to(self._target, a, step)
            return
        words = self.words
        operand = self.word(step.operand, words) if isinstance(step.operand, Tensor) else step.operand
        within = _within(replace(step, operand=operand), words)
        assert within is not None
        self._to(self._target, self.word(a, words), within)

    def word(self, tensor: Tensor, words: IntFormat) -> Tensor:
        if tensor.format is words:
            return tensor
        self._r.inserted["integers of the other sign"] += 1
        copy = self._new(words, tensor.shape)
        self._r.program.append(isa.tensor_copy(copy, tensor))
        return copy

    def _compare(self, a: Tensor, step: Step) -> None:
        """Compare the bits without a sign; a negative operand is below every unsigned one."""
        operand = cast("Tensor", step.operand)
        unsigned = self._to(self._new(INT32), a, step)
        op = _MIRRORED[step.op] if step.reverse is (operand.format is UINT32) else step.op
        below = op in (AluOp.IS_LT, AluOp.IS_LE, AluOp.NOT_EQUAL)
        is_negative = Step(AluOp.IS_LT if below else AluOp.IS_GE, 0)
        join = AluOp.LOGICAL_OR if below else AluOp.LOGICAL_AND
        self._r.inserted["comparison of both signs"] += 1
        if operand.format is UINT32 or step.whole:
            signed = a if operand.format is UINT32 else operand
            self._to(self._target, signed, is_negative, Step(join, unsigned, whole=True))
        else:
            column = self._to(self._new(INT32, operand.shape), operand, is_negative)
            self._to(self._target, unsigned, Step(join, column))

    def _shift_right(self, a: Tensor, step: Step) -> None:
        """Shift the value plus 2^31, which is not negative, and subtract the shifted 2^31."""
        value, count = (step.operand, a) if step.reverse else (a, step.operand)
        right, target = AluOp.LOGICAL_SHIFT_RIGHT, self._target
        if not _is_signed(a, step):
            self._unsigned_shift(a, step)
        elif not isinstance(value, Tensor):
            # The complement is not negative.
            inverse = Step(AluOp.BITWISE_XOR, -1)
            self._to(target, _signed(a), Step(right, ~int(value), True), inverse)
        elif not isinstance(count, Tensor):
            self._r.inserted["arithmetic shift"] += 1
            count = min(int(count) % (1 << 32), _LAST)
            shifted = self._to(self._new(INT32), value, Step(AluOp.BITWISE_XOR, _SIGN), Step(right, count))
            self._to(target, shifted, Step(AluOp.SUBTRACT, _wrapped(1 << _LAST - count, INT32)))
        else:
            self._r.inserted["arithmetic shift"] += 1
            few, bias = (self._new(INT32, count.shape) for _ in range(2))
            self._to(few, count, Step(AluOp.MIN, _LAST))
            self._to(bias, few, Step(right, _SIGN, True))
            flip = Step(AluOp.BITWISE_XOR, _SIGN)
            if step.reverse:
                column = self._to(self._new(INT32, value.shape), value, flip)
                shifted = self._to(self._new(INT32), few, Step(right, column, True))
            else:
                shifted = self._to(self._new(INT32), value, flip, Step(right, few, whole=step.whole))
            self._to(target, shifted, Step(AluOp.SUBTRACT, bias, whole=step.whole or step.reverse))

    def _unsigned_shift(self, a: Tensor, step: Step) -> None:
        value = step.operand if step.reverse else a
        wide = isinstance(value, Tensor) and value.format is UINT32
        if wide or UINT32 not in _formats(a, step):
            self._plain_shift(a, step)
            return
        count = _signed(a) if step.reverse else a
        operand = step.operand if step.reverse else _signed(cast("Tensor", step.operand))
        self._plain_shift(count, replace(step, operand=operand))

    def _plain_shift(self, a: Tensor, step: Step) -> None:
        number = step.operand
        if not isinstance(number, Tensor):
            words = UINT32 if UINT32 in _formats(a, step) else INT32
            step = replace(step, operand=_wrapped(int(number), words))
        self._to(self._target, a, step)
