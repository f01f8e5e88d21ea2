"""Index expressions: integers affine in an index, and their comparisons.

`nl.arange(128)[:, None] + 4 * nl.arange(8)[None, :]` has shape (128, 8) and steps (1, 4). Access patterns are built
from index expressions without enumerating them, so an expression that is not affine is refused.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from math import ceil, floor, isfinite, prod
from numbers import Integral, Real

import numpy as np

from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.numpy_calls import NumpyCalls

__all__ = ["NOWHERE", "Affine", "Condition", "Mask", "arange", "broadcast_shapes", "mgrid"]


def broadcast_shapes(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that two shapes broadcast to; ValueError if they do not."""
    rank = max(len(one), len(other))
    left, right = ((1,) * (rank - len(shape)) + tuple(shape) for shape in (one, other))
    if any(a != b and 1 not in (a, b) for a, b in zip(left, right, strict=True)):
        raise ValueError(f"shapes must broadcast, not {tuple(one)} and {tuple(other)}")
    return tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))


OPERATIONS: dict[str, Callable] = {
    "floor_divide": operator.floordiv, "mod": operator.mod,
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne, "invert": operator.invert, "logical_not": operator.invert,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "logical_and": operator.and_, "logical_or": operator.or_, "logical_xor": operator.xor,
}  # fmt: skip
"""numpy's functions of index expressions and masks, by name."""


class _Expression(NumpyCalls):
    _way = "sums, multiples and comparisons of index expressions"

    def _elementwise(self, name: str) -> Callable | None:
        return OPERATIONS.get(name)


@dataclass(frozen=True, eq=False)
class Affine(_Expression):
    """Index expression: start + the sum of index[d] * steps[d] over a shape."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    start: int = 0

    def __repr__(self) -> str:
        return "an index expression from {} to {}".format(*self.range)

    def over(self, shape: tuple[int, ...]) -> "Affine":
        own = (0 if count == 1 else step for count, step in zip(self.shape, self.steps, strict=True))
        return Affine(shape, ((0,) * (len(shape) - len(self.shape)) + tuple(own)), self.start)

    @property
    def range(self) -> tuple[int, int]:
        ends = [step * max(0, count - 1) for step, count in zip(self.steps, self.shape, strict=True)]
        return self.start + sum(min(0, end) for end in ends), self.start + sum(max(0, end) for end in ends)

    @from_kernel
    def __getitem__(self, key) -> "Affine":
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(part is Ellipsis for part in keys):
            at = next(n for n, part in enumerate(keys) if part is Ellipsis)
            more = len(self.shape) - sum(part is not None for part in keys) + 1
            keys[at : at + 1] = [slice(None)] * more
        shape, steps, own = [], [], iter(zip(self.shape, self.steps, strict=True))
        for part in keys:
            if part is None:
                shape, steps = [*shape, 1], [*steps, 0]
            elif isinstance(part, slice) and part == slice(None):
                count, step = next(own, (None, None))
                if count is None:
                    raise ValueError(f"an index expression of {len(self.shape)} dimensions has no {key!r}")
                shape, steps = [*shape, count], [*steps, step]
            else:
                raise ValueError(f"an index expression may be indexed only by None and :, not by {part!r}")
        rest = list(own)
        return Affine((*shape, *(c for c, _ in rest)), (*steps, *(s for _, s in rest)), self.start)

    def __add__(self, other) -> "Affine":
        other = self._like(other)
        if other is None:
            return NotImplemented
        shape = broadcast_shapes(self.shape, other.shape)
        a, b = self.over(shape), other.over(shape)
        return Affine(shape, tuple(x + y for x, y in zip(a.steps, b.steps, strict=True)), a.start + b.start)

    __radd__ = __add__

    @from_kernel
    def __mul__(self, other) -> "Affine":
        if not isinstance(other, Integral):
            raise ValueError(f"an index must be affine: an index expression times an integer, not times {other!r}")
        return Affine(self.shape, tuple(step * int(other) for step in self.steps), self.start * int(other))

    __rmul__ = __mul__

    def __neg__(self) -> "Affine":
        return self * -1

    def __sub__(self, other) -> "Affine":
        other = self._like(other)
        return NotImplemented if other is None else self + other * -1

    def __rsub__(self, other) -> "Affine":
        return self * -1 + other

    def __abs__(self) -> "Affine":
        return self if self >= 0 else -self

    @from_kernel
    def __divmod__(self, other) -> tuple["Affine", "Affine"]:
        """Return quotient and remainder if both are affine; ValueError otherwise.

        The part of the index with steps that the divisor does not divide must stay between two of its multiples.
        """
        if isinstance(other, Integral) and int(other) > 0:
            by = int(other)
            whole = tuple(0 if step % by else step // by for step in self.steps)
            rest = Affine(self.shape, tuple(step if step % by else 0 for step in self.steps), self.start % by)
            if rest.range[0] >= 0 and rest.range[1] < by:
                return Affine(self.shape, whole, self.start // by), rest
        raise ValueError(f"an index must be affine: {self!r} cannot be divided by {other!r} into affine parts")

    def __floordiv__(self, other) -> "Affine":
        return divmod(self, other)[0]

    def __mod__(self, other) -> "Affine":
        return divmod(self, other)[1]

    @from_kernel
    def _not_affine(self, other) -> "Affine":
        rule = "an index must be affine, without fractions, powers or operations on bits"
        raise ValueError(f"{rule}, here by {other!r}; comparisons joined by & need parentheses")

    @from_kernel
    def __bool__(self) -> bool:
        """Return the truth if it is the same at every index; ValueError otherwise."""
        least, most = self.range
        if least <= 0 <= most and least != most:
            rule = "an index expression with several values cannot be a condition of Python"
            raise ValueError(f"{rule}, from {least} to {most}: compare it, and use the result as a mask")
        return least > 0 or most < 0

    def __ge__(self, other) -> "Mask":
        return self._compared(other, "ge", ceil)

    def __gt__(self, other) -> "Mask":
        return self._compared(other, "gt", floor)

    def __le__(self, other) -> "Mask":
        return self._compared(other, "ge", floor, is_less=True)

    def __lt__(self, other) -> "Mask":
        return self._compared(other, "gt", ceil, is_less=True)

    def __eq__(self, other) -> "Mask | bool":
        return False if other is None else self._compared(other, "eq")

    def __ne__(self, other) -> "Mask | bool":
        return True if other is None else self._compared(other, "ne")

    @from_kernel
    def _compared(self, other, relation: str, rounding: Callable = floor, is_less: bool = False) -> "Mask":
        """Return the mask of a comparison; `rounding` gives the integer bound that stands for a number between two."""
        if isinstance(other, Real) and not isinstance(other, Integral) and isfinite(other):
            if relation in ("eq", "ne") and other != floor(other):
                return NOWHERE if relation == "eq" else EVERYWHERE
            other = rounding(other)
        if not isinstance(other, Affine | Integral):
            rule = "an index expression must be compared with a finite number or another index expression"
            raise ValueError(f"{rule}, not {other!r}")
        difference = self - other
        return Mask((Condition(-difference if is_less else difference, relation),))

    @staticmethod
    def _like(other) -> "Affine | None":
        if isinstance(other, Affine):
            return other
        return Affine((), (), int(other)) if isinstance(other, Integral) else None


for _name in ("truediv", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Affine, f"__{_name}__", Affine._not_affine)
for _name in ("floordiv", "truediv", "mod", "divmod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Affine, f"__r{_name}__", Affine._not_affine)


@dataclass(frozen=True, eq=False)
class Condition:
    """Comparison of an index expression with 0: "ge", "gt", "eq" or "ne"."""

    value: Affine
    relation: str

    def __invert__(self) -> "Condition":
        opposite = {"ge": "gt", "gt": "ge", "eq": "ne", "ne": "eq"}[self.relation]
        return Condition(-self.value if opposite in ("ge", "gt") else self.value, opposite)

    def is_known(self, holds: bool) -> bool:
        """Return whether the condition is known to hold at every index; with `holds` False, to hold at no index."""
        least, most = self.value.range
        bound = 1 if self.relation == "gt" else 0
        if self.relation in ("ge", "gt"):
            return least >= bound if holds else most < bound
        is_zero, is_other = least == most == 0, least > 0 or most < 0
        return (is_zero if holds else is_other) if self.relation == "eq" else (is_other if holds else is_zero)

    @property
    def bounds(self) -> "tuple[Condition, ...]":
        """The condition itself, or for an equality a lower and an upper bound."""
        if self.relation != "eq":
            return (self,)
        return Condition(self.value, "ge"), Condition(-self.value, "ge")

    @property
    def key(self) -> tuple:
        return self.value.shape, self.value.steps, self.value.start, self.relation


@dataclass(frozen=True, eq=False)
class Mask(_Expression):
    """Mask of a tile, which selects each element for which all conditions hold."""

    conditions: tuple[Condition, ...]

    def __repr__(self) -> str:
        return "a mask of index expressions"

    def __and__(self, other: "Mask | bool") -> "Mask":
        return Mask((*self.conditions, *_mask_of(other).conditions))

    @from_kernel
    def __or__(self, other: "Mask | bool") -> "Mask":
        """Return the union of two masks; ValueError unless one of them holds everywhere or nowhere."""
        other = _mask_of(other)
        for one, rest in ((self, other), (other, self)):
            if one.is_known(False):
                return rest
            if one.is_known(True):
                return EVERYWHERE
        raise ValueError("a mask must be a rectangle: conditions joined by &, not by |, and ~ only of one of them")

    def __invert__(self) -> "Mask":
        return reduce(operator.or_, (Mask((~condition,)) for condition in self.conditions), NOWHERE)

    def __xor__(self, other: "Mask | bool") -> "Mask":
        return (self & ~_mask_of(other)) | (~self & other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __eq__(self, other: object) -> bool:
        return other is not None and self._unequal(other)

    @from_kernel
    def _unequal(self, other: object) -> bool:
        raise ValueError(f"masks must be joined by &, | and ^, not compared with {other!r}")

    @from_kernel
    def __bool__(self) -> bool:
        """Return the truth if it is the same at every index; ValueError otherwise."""
        if not self.is_known(True) and not self.is_known(False):
            rule = "a mask that holds at some indices only cannot be a condition of Python"
            uses = "in if, and, or, not, in, a < i < b, min(), max() or sorted()"
            raise ValueError(f"{rule}, {uses}: join masks by & and |, invert them by ~, and pass them as mask=")
        return self.is_known(True)

    def is_known(self, holds: bool) -> bool:
        found = [condition.is_known(holds) for condition in self.conditions]
        return all(found) if holds else any(found)

    def without(self, other: "Mask") -> "Mask | None":
        theirs = [condition.key for condition in other.conditions]
        rest = tuple(condition for condition in self.conditions if condition.key not in theirs)
        return Mask(rest) if rest else None

    def rectangle(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        parts = [slice(0, count) for count in shape]
        for condition in chain.from_iterable(condition.bounds for condition in self.conditions):
            value, steps = condition.value, _steps_over(tuple(shape), condition.value)
            whole = Condition(Affine(tuple(shape), steps, value.start), condition.relation)
            if whole.is_known(True):
                continue
            if whole.is_known(False):
                return (slice(0, 0),) * len(shape)
            moving = [d for d, (step, count) in enumerate(zip(steps, shape, strict=True)) if step and count > 1]
            if len(moving) > 1 or condition.relation == "ne":
                rule = "a mask must be a rectangle: one dimension in each condition, by <, <=, >, >= or =="
                raise ValueError(f"{rule}, not {steps} over {tuple(shape)}")
            (d,), step, least = moving, steps[moving[0]], 1 if condition.relation == "gt" else 0
            if step > 0:
                first, end = -((value.start - least) // step), shape[d]
            else:
                first, end = 0, (value.start - least) // -step + 1
            first, end = max(parts[d].start, first), min(parts[d].stop, end)
            parts[d] = slice(first, max(first, end))
        return tuple(parts)


def _steps_over(shape: tuple[int, ...], value: Affine) -> tuple[int, ...]:
    """Return the steps of a mask's expression over a shape; missing dimensions are first or, where that fails, last."""
    more = len(shape) - len(value.shape)
    sizes = tuple(size if step else 1 for size, step in zip(value.shape, value.steps, strict=True))
    own, steps = sizes[max(0, -more) :], value.steps[max(0, -more) :]
    for before, after in ((more, 0), (0, more)):
        padded = (1,) * before + own + (1,) * after
        if prod(own) == prod(sizes) and all(size in (1, n) for size, n in zip(padded, shape, strict=True)):
            return (0,) * before + steps + (0,) * after
    raise ValueError(f"a mask must broadcast to the shape {shape}, not have the shape {value.shape}")


EVERYWHERE = Mask(())

NOWHERE = Mask((Condition(Affine((), (), -1), "ge"),))


@from_kernel
def _mask_of(given: object) -> Mask:
    if isinstance(given, Mask):
        return given
    if not isinstance(given, bool | np.bool_):
        raise ValueError(f"a mask must be joined with a mask or a bool, not with {given!r}")
    return EVERYWHERE if given else NOWHERE


@from_kernel
def arange(*bounds: int) -> Affine:
    """Return the values of `range(*bounds)` as an index expression."""
    first, end, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if not all(isinstance(number, Integral) for number in (first, end, step)) or not range(first, end, step):
        raise ValueError(f"arange's bounds must be integers and at least one number between them, not {bounds!r}")
    return Affine((len(range(first, end, step)),), (int(step),), int(first))


class _Grid(tuple):
    """Tuple of the index expressions of `mgrid`, which are also the attributes p, x, y, z, w."""

    p, x, y, z, w = (property(operator.itemgetter(dimension)) for dimension in range(5))


class _MeshGrid:
    """Implements `nl.mgrid`: the result of `nl.mgrid[0:128, 0:512]` is an index expression per dimension."""

    @from_kernel
    def __getitem__(self, key) -> _Grid:
        parts = key if isinstance(key, tuple) else (key,)
        found = []
        for d, part in enumerate(parts):
            if not isinstance(part, slice):
                raise ValueError(f"mgrid is indexed by slices, not by {part!r}")
            line = arange(part.start or 0, part.stop, part.step or 1)
            shape = tuple(line.shape[0] if e == d else 1 for e in range(len(parts)))
            found.append(Affine(shape, tuple(line.steps[0] if e == d else 0 for e in range(len(parts))), line.start))
        return _Grid(found)


mgrid = _MeshGrid()
