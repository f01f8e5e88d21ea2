"""Kernels with random operands, and their expected results.

Operands are views of larger tensors: strided parts, access patterns, other shapes and orders of dimensions, repeated
elements, any quadrant of the partitions. The whole tensor around a result is compared, to detect stray writes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path

import ml_dtypes
import numpy as np

from neuroncore_rtl.frontends.nki import run_nki
from tests.frontends.nki.kernels import write_kernel

__all__ = ["FLOATS", "INTEGERS", "TYPES", "Operand", "Sketch", "cases", "cast", "round_fp32"]

FLOATS = ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2", "float8_e3m4")
INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
TYPES = (*FLOATS, *INTEGERS)

LANES, QUADRANT = 16, 4
"""Partitions of the simulated machine (preset small), and partitions of a quadrant."""

ROWS = 0.1
"""Probability that a source operand is a single partition, repeated for all partitions."""

MOST, WIDEST = 96, 500
"""Largest number of elements per partition, of an operand and of the tensor around it."""


def cast(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return values rounded to FP32, then to a type; integers that remain integers are not rounded to FP32."""
    values = np.asarray(values)
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        if values.dtype.kind == "f":
            values = np.nan_to_num(np.rint(values.astype(np.float32).astype(np.float64)), posinf=2**40, neginf=-(2**40))
        return np.clip(values, limits.min, limits.max).astype(np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        single = values.astype(np.float32)
        if dtype == "tfloat32":
            bits = single.view(np.uint32)
            kept = (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000
            return np.where(np.isfinite(single), kept, bits).astype(np.uint32).view(np.float32).astype(np.float64)
        return single.astype(getattr(ml_dtypes, dtype, dtype)).astype(np.float64)


def round_fp32(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float32).astype(np.float64)


@dataclass(frozen=True)
class Operand:
    """A view in a kernel, with `values` in float64 or int64.

    Of a result: `base` is the index of the returned tensor around it, `places` are its elements in that tensor.
    """

    name: str
    values: np.ndarray
    dtype: str
    base: int = -1
    places: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def flat(self) -> np.ndarray:
        return self.values.reshape(len(self.values), -1)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


@dataclass
class _Result:
    name: str
    dtype: str
    least: np.ndarray
    most: np.ndarray
    call: str
    other: np.ndarray | None = None


class Sketch:
    def __init__(self, seed: object, older: bool = False):
        self.rng = np.random.default_rng(seed)
        self.older = older
        self.lines: list[str] = []
        self.arguments: list[tuple[np.ndarray, str]] = []
        self.results: list[_Result] = []
        self.names = 0

    def any(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def count(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def shape(self, most: int = 3, elements: int = MOST, least: int = 1) -> tuple[int, ...]:
        free = [1 if self.chance(0.15) else self.count(1, 7) for _ in range(self.count(least, most))]
        while prod(free) > elements:
            free[int(np.argmax(free))] -= 1
        return (self.any(1, LANES, self.count(1, LANES), self.count(1, QUADRANT)), *free)

    def numbers(self, shape: tuple[int, ...], dtype: str, low: float = -4, high: float = 4) -> np.ndarray:
        """Return random numbers: multiples of 1/4 for floats, integers otherwise, nonnegative for unsigned types."""
        if dtype in INTEGERS:
            low = max(low, 0) if dtype.startswith("u") else low
            return self.rng.integers(int(low), int(high) + 1, shape)
        return cast(self.rng.integers(int(4 * low), int(4 * high) + 1, shape) / 4, dtype)

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def argument(self, values: np.ndarray, dtype: str) -> str:
        self.arguments.append((values.copy(), dtype))
        return f"x{len(self.arguments) - 1}"

    def start(self, partitions: int) -> int:
        if partitions > LANES:
            return 0
        starts = [s for s in range(0, LANES, QUADRANT) if s + partitions <= LANES]
        if partitions > 2 * QUADRANT:
            starts = [0]
        elif partitions > QUADRANT:
            starts = [s for s in starts if s % (2 * QUADRANT) == 0]
        return int(self.any(*starts))

    def source(self, shape: tuple[int, ...], dtype: str, values: np.ndarray | None = None, *, memory: str | None = None,
               repeats: bool = True, backwards: bool = True, low: float = -4, high: float = 4) -> Operand:  # fmt: skip
        """Return a random operand to read; `repeats`: elements may be repeated, unless values are given."""
        again = [d for d in range(1, len(shape)) if repeats and values is None and self.chance(0.15)]
        # One partition, repeated.
        again += [0] if repeats and values is None and memory != "psum" and self.chance(ROWS) else []
        few = tuple(1 if d in again else n for d, n in enumerate(shape))
        values = self.numbers(few, dtype, low, high) if values is None else values
        held, view, base, places = self._layout(few, dtype, low, high, memory, backwards, wide=shape)
        np.put(base, places, values)
        name = self.name("a")
        self._storage(held, base, dtype, memory or self.any("sbuf", "sbuf", *(() if 0 in again else ("psum",))))
        self.lines.append(f"{name} = {held}{view}")
        if few != shape and ".ap(" not in view:
            self.lines.append(f"{name} = {name}.broadcast_to({shape})")
        return Operand(name, np.broadcast_to(values, shape), dtype)

    def pair(self, most: int, sources: tuple, targets: tuple, **options) -> tuple[Operand, Operand]:
        shape = self.shape(most)
        return self.source(shape, self.any(*sources), **options), self.target(shape, self.any(*targets))

    def column(self, lanes: int, dtype: str | None = None, low: float = -4, high: float = 4) -> Operand:
        return self.source((lanes, 1), dtype or self.any(*FLOATS), repeats=False, low=low, high=high)

    def scalar(self, lanes: int, integer: bool, low: float = -4, high: float = 4) -> tuple[str, np.ndarray]:
        if self.chance():
            value = self.count(int(low), int(high)) if integer else self.count(int(4 * low), int(4 * high)) / 4
            return repr(value), np.array(value)
        found = self.column(lanes, self.any("int8", "int16", "int32") if integer else None, low, high)
        return found.name, found.values.reshape(lanes, 1)

    def target(
        self, shape: tuple[int, ...], dtype: str, *, memory: str | None = None, backwards: bool = True
    ) -> Operand:
        """Return a random operand to write, a view of a tensor that already contains numbers."""
        held, view, base, places = self._layout(shape, dtype, -4, 4, memory, backwards, wide=shape)
        name = self.name("y")
        self._storage(held, base, dtype, memory or self.any("sbuf", "sbuf", "psum"))
        self.lines.append(f"{name} = {held}{view}")
        self.results.append(_Result(held, dtype, base, base.copy(), ""))
        return Operand(name, np.take(base, places), dtype, len(self.results) - 1, places)

    def _storage(self, held, base, dtype, memory) -> None:
        memory = "shared_hbm" if memory == "hbm" else memory
        self.lines.append(f"{held} = nl.ndarray({base.shape}, dtype=nl.{dtype}, buffer=nl.{memory})")
        self.lines.append(f"nisa.dma_copy(dst={held}, src={self.argument(base, dtype)})")

    def _layout(self, shape, dtype, low, high, memory, backwards, wide) -> tuple[str, str, np.ndarray, np.ndarray]:
        """Return a tensor's name, the text of a view of it, its numbers, and the view's places in the tensor."""
        near = memory != "hbm"
        held, free = self.name("t"), list(shape[1:])
        first = self.start(shape[0]) if near else self.count(0, 3)
        rows = self.any(first + shape[0], LANES) if near else first + shape[0] + self.count(0, 2)
        lanes = slice(first, first + shape[0])
        named = f"{first}:{first + shape[0]}"

        def numbered(*dimensions: int) -> np.ndarray:
            return np.arange(rows * prod(dimensions)).reshape(rows, *dimensions)

        view, whole, places = f"[{named}]", free, numbered(*free)[lanes]
        way = self.any("whole", "steps", "steps", "pattern", "pattern", "reshaped", "permuted")
        if self.older and self.chance(0.3):
            way = "expressions"
        if way in ("steps", "expressions"):
            begins, gaps = [self.count(0, 2) for _ in free], [self.count(1, 3) for _ in free]
            while prod((begin + n * gap) for begin, n, gap in zip(begins, free, gaps, strict=True)) > WIDEST:
                d = self.count(0, len(free) - 1)
                begins[d], gaps[d] = 0, 1
            ends = [begin + (n - 1) * gap + 1 for begin, n, gap in zip(begins, free, gaps, strict=True)]
            whole = [end + self.count(0, 1) for end in ends]
            parts = tuple(slice(*one) for one in zip(begins, ends, gaps, strict=True))
            if way == "expressions":
                axes = [", ".join(":" if d == e else "None" for e in range(len(shape))) for d in range(len(shape))]
                pairs = zip((first, *begins), (1, *gaps), shape, axes, strict=True)
                view = f"[{', '.join(f'{begin} + {gap} * nl.arange({n})[{axis}]' for begin, gap, n, axis in pairs)}]"
            else:
                view = f"[{named}, {', '.join(f'{one.start}:{one.stop}:{one.step}' for one in parts)}]"
            places = numbered(*whole)[(lanes, *parts)]
        elif way == "pattern":
            # Dimensions in any order, with gaps, sometimes with the innermost one reversed.
            steps, reach, begin = [0] * len(free), 1, 0
            for d in self.rng.permutation(len(free)):
                steps[d] = reach * self.count(1, 2)
                reach = steps[d] * (free[d] - 1) + reach
                if backwards and self.chance(0.2):
                    begin, steps[d] = begin + steps[d] * (free[d] - 1), -steps[d]
            gap = self.count(0, 3)
            whole = [reach + gap + self.count(0, 2)]
            steps, offset = (*whole, *steps), first * whole[0] + begin + gap
            pairs = [[step, n] if n == most else [0, most] for step, n, most in zip(steps, shape, wide, strict=True)]
            view = f".ap({pairs}, offset={offset})"
            places = offset + sum(step * at for step, at in zip(steps, np.indices(shape), strict=True))
        elif way == "reshaped":
            view, whole, places = f"[{named}].reshape({shape})", [prod(free)], places.reshape(shape)
        elif way == "permuted" and len(free) > 1:
            order = [int(d) for d in self.rng.permutation(len(free))]
            back = (0, *(1 + order.index(d) for d in range(len(free))))
            view, whole = f"[{named}].permute({back})", [free[d] for d in order]
            places = numbered(*whole)[lanes].transpose(back)
        return held, view, self.numbers((rows, *whole), dtype, low, high), places

    def call(self, line: str) -> None:
        self.lines += line.strip("\n").splitlines()

    def gives(self, line: str, target: Operand, values: np.ndarray, error: np.ndarray | float = 0.0) -> None:
        self.call(line)
        self.expect(target, values, error)

    def expect(
        self, target: Operand, values: np.ndarray, error: np.ndarray | float = 0.0, *, through: str = ""
    ) -> None:
        """Set a result, rounded to type `through` and then to the target's; `error` is allowed before rounding."""
        result = self.results[target.base]
        result.call = self.lines[-1]
        values = np.broadcast_to(values, target.shape)
        exact = np.all(np.asarray(error) == 0)
        for limits, bound in ((result.least, values if exact else values - error),
                              (result.most, values if exact else values + error)):  # fmt: skip
            np.put(limits, target.places, cast(cast(bound, through) if through else bound, target.dtype))

    def expect_either(self, target: Operand, values: np.ndarray, other: np.ndarray) -> None:
        self.expect(target, values)
        result = self.results[target.base]
        result.other = result.least.copy()
        np.put(result.other, target.places, cast(np.broadcast_to(other, target.shape), target.dtype))

    def draw(self, case: "Case") -> None:
        before = len(self.results)
        case(self)
        for number, result in enumerate(self.results[before:], start=before):
            shape = f"{result.name}.shape, dtype={result.name}.dtype, buffer=nl.shared_hbm"
            self.lines.append(f"out{number} = nl.ndarray({shape})")
            self.lines.append(f"nisa.dma_copy(dst=out{number}, src={result.name})")

    def check(self, folder: Path, target: str = "golden") -> None:
        self.lines.append(f"return {', '.join(f'out{number}' for number in range(len(self.results)))}")
        parameters = ", ".join(f"x{n}" for n in range(len(self.arguments)))
        kernel = write_kernel(folder, "\n".join(self.lines), self.older, parameters)
        done = run_nki(kernel, *self.arguments, preset="small", on=target)
        assert len(done.outputs) == len(self.results) > 0 and done.run.bit_exact is not False
        for values, result in zip(done.outputs, self.results, strict=True):
            values = np.asarray(values).astype(np.float64)
            least, most = np.minimum(result.least, result.most), np.maximum(result.least, result.most)
            right = ((values >= least) & (values <= most)) | (np.isnan(values) & np.isnan(least))
            right |= False if result.other is None else values == result.other
            assert right.all(), _wrong(self.lines, result, values, least, most, right)


def _wrong(lines: list[str], result: _Result, values, least, most, right) -> str:
    places = np.argwhere(~right)
    first = tuple(places[0])
    kernel = "\n".join(lines)
    found = f"{values[first]!r}, not from {least[first]!r} to {most[first]!r}"
    return f"{result.call}: {len(places)} of {right.size} wrong, at {first} {found} ({result.dtype})\n{kernel}"


Case = Callable[[Sketch], None]
"""Function that draws a call's operands, appends it, and sets its expected results."""


def cases() -> tuple[dict[str, Case], Callable]:
    """Return a table of cases, and a decorator that enters a function by its name, or by the given names."""
    table: dict[str, Case] = {}

    def case(*names):
        if callable(names[0]):
            return table.setdefault(names[0].__name__, names[0])

        def entered(draw):
            table.update({name: partial(draw, name) for name in names})
            return draw

        return entered

    return table, case
