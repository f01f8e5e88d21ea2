"""Lowering of the interface's calls, for both dialects.

Both dialects use one function per call, which writes to a `dst`. In the first dialect a call also accepts `dtype` and
`mask`, and `result` computes the shape and type of the new tile, which is then the `dst`.
"""

import inspect
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce, wraps
from math import prod
from numbers import Integral
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.nki.indices.affine import NOWHERE, Mask, broadcast_shapes
from neuroncore_rtl.frontends.nki.indices.dtypes import DType, dtype_of, promoted
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel, kernel_line
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.dimensions import apart
from neuroncore_rtl.frontends.nki.lowering.operands import is_written, mark_written
from neuroncore_rtl.frontends.nki.lowering.truth import lower_to, result_type
from neuroncore_rtl.frontends.nki.trace.recording import Recording, recording
from neuroncore_rtl.frontends.nki.trace.results import Pending

__all__ = ["Call", "at_least_2d", "instruction", "like", "nl_function", "nothing", "together"]

HINTS = frozenset(("name", "engine", "priority", "dge_mode", "perf_mode"))
"""Arguments without effect here: an instruction has one engine, and copies have their own queues."""

MOVES = frozenset(("dma_copy", "tensor_copy", "memset"))
"""Calls that do nothing for empty slices, so that kernels need not test whether a remainder is empty."""

DRAWN = frozenset(("rng", "rand2", "dropout"))
"""Calls of random numbers: each has other results."""

Result = Callable[[dict], tuple[tuple[int, ...], DType, Memory]]
"""Maps a call's arguments to shape, type and memory of its result."""

Along = Callable[[dict, View], tuple[int | None, ...] | None]
"""Maps a call's arguments and dst to the dimension of the argument `like` for each dimension of dst."""


@dataclass(frozen=True)
class Call:
    """A call of the interface.

    Arguments:
        name: name in its module.
        lower: function of (recording, dst, arguments) that appends the call's instructions.
        how: "exact", "expanded" into several instructions, or "differs".
        note: the difference in a few words.
        result: shape, type and memory of the result without a dst; None: dst is mandatory.
        like: argument that a mask's shape refers to.
        product: whether the call can accumulate in PSUM.
        each: whether the call is element-wise, so that it can be split.
        keeps: whether the call can leave elements of dst unchanged.
        along: see `Along`; None if dst has the dimensions of `like`.
        rows: arguments, or "dst", that share only the partitions with `like`, so that a mask cuts no other dimension.
    """

    name: str
    lower: Callable
    how: str
    note: str
    result: Result | None
    like: str
    product: bool = False
    each: bool = False
    keeps: bool = False
    along: Along | None = None
    rows: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.lower).parameters.values())[1:]

    def function(self, older: bool) -> Callable:
        own = self.parameters
        skipped = own[1:] if older and self.result is not None else own
        signature = inspect.Signature(skipped)

        def called(*args, dtype=None, mask=None, **options):
            options = {key: value for key, value in options.items() if key in signature.parameters or key not in HINTS}
            dst = options.pop("dst", None) if skipped is not own else None
            arguments = _bound(f"nisa.{self.name}", signature, args, options)
            dst = arguments.pop("dst", dst)
            return self.run(dst, arguments, dtype, mask)

        called.__name__ = called.__qualname__ = self.name
        called.__doc__ = self.lower.__doc__
        return from_kernel(called)

    def run(
        self, dst: View | None, arguments: dict, dtype: object, mask: Mask | None, memory: Memory | None = None
    ) -> View | None:
        """Append the call's instructions; without a dst it is pending until the next call, its result in `memory`."""
        current = recording()
        current.flush()
        for name in ("reduce_res", "dst_idx"):
            if isinstance(second := arguments.get(name), View):
                current.own(second, everything=False)
        arguments = {name: _resolved(current, value) for name, value in arguments.items()}
        _check_tensors(f"nisa.{self.name}", self.parameters, arguments | ({} if dst is None else {"dst": dst}))
        views = [value for value in (dst, *arguments.values()) if isinstance(value, View)]
        if self._copies_nothing(views):
            nowhere = replace(views[0].allocation, memory=Memory.sbuf)
            return replace(views[0], allocation=nowhere) if dst is None else dst
        mask = _decided(mask)
        cuts = [value.cut for value in arguments.values() if self.product and isinstance(value, View) and value.cut]
        for cut in cuts:
            mask = None if mask is None else mask.without(cut.mask)
        shape = arguments[self.like].shape if isinstance(arguments.get(self.like), View) else None

        def append(target: View, **more) -> None:
            parts = {name: self._masked(name, value, mask, shape) for name, value in arguments.items()}
            target = current.with_index(target)
            nothing = any(cut.is_empty for cut in cuts)
            part = None if nothing else self._where(target, arguments, mask, shape)
            whole = part is not None and part.shape == target.shape and not cuts
            if part is not None:
                if part.repeats_partition():
                    rule = "a destination must have each partition once"
                    raise ValueError(f"{part.name}: {rule}, not one partition again and again in {part.shape}")
                adds = more or (self.product and dst is not None)
                keeps = self.keeps or any(arguments.get(name) is not None for name in ("dst_rmw_op", "oob_mode"))
                current.own(target, everything=whole and not (adds or keeps))
            if dst is None and target.allocation is result.allocation and not whole:
                # Calls without a mask read the whole tile, so the part that the mask excludes is zero.
                current.inserted["zeros beside a mask"] += 1
                target.allocation.zeros.add(target.one_block())
            if self.product and dst is None and not more and not _is_zero(target):
                more = {"accumulate": False}  # an assignment, which overwrites
            if part is not None:
                for piece, operands in apart(current, part, parts) if self.each else ((part, parts),):
                    lower_to(current, piece, self.name, operands | more, self.lower, self.keeps)
                mark_written(part)

        if dst is not None:
            append(dst)
            return dst
        if self.result is None:
            raise ValueError(f"nisa.{self.name}: dst must be given")
        shape_of, own, usual = self.result(arguments)
        own = result_type(self.name, arguments, own)
        result = current.allocate(shape_of, own if dtype is None else dtype_of(dtype), memory or usual)
        part = self._where(result, arguments, mask, shape)
        whole = part is not None and part.shape == result.shape and not cuts
        reads = None if self.name in DRAWN else tuple(views)
        current.pending = Pending(result, append, kernel_line(), self.product, reads, whole)
        return result

    def _copies_nothing(self, views: list[View]) -> bool:
        """Return whether a copy has only empty tensors; ValueError if any other call has an empty one."""
        for view in views:
            if not view.size and (self.name not in MOVES or any(other.size for other in views)):
                raise ValueError(f"{view.name}: an operand must have elements, not shape {view.shape}")
        return bool(views) and not views[0].size

    def _masked(self, name: str, value: object, mask: Mask | None, shape: tuple[int, ...] | None) -> object:
        if mask is None or not isinstance(value, View) or shape is None:
            return value
        return value.masked(mask, shape, 1 if name in self.rows else None)

    def _where(self, dst: View, arguments: dict, mask: Mask | None, shape: tuple[int, ...] | None) -> View | None:
        """Return the part of dst where a mask holds; None if it holds nowhere.

        The mask refers to the shape of the argument that `like` names.
        """
        order = None if self.along is None or mask is None or shape is None else self.along(arguments, dst)
        if order is None or mask is None or shape is None:
            return dst.masked(mask, shape, 1 if "dst" in self.rows else None)
        parts = mask.rectangle(shape)
        if any(part.stop <= part.start for part in parts):
            return None
        return dst[tuple(slice(None) if d is None else parts[d] for d in order)]


def instruction(
    table: dict[str, Call],
    how: str = "exact",
    note: str = "",
    *,
    result: Result | None,
    like: str = "data",
    name: str = "",
    **more,
) -> Callable:
    """Return a decorator that enters a lowering function in a table; arguments as for `Call`."""

    def entered(lower: Callable) -> Callable:
        called = name or lower.__name__
        table[called] = Call(called, lower, how, note, result, like, **more)
        return lower

    return entered


def like(*names: str, dtype: DType | None = None, memory: Memory = Memory.sbuf) -> Result:
    """Return a function for `Call.result`.

    The result has the shape to which the named arguments broadcast, the type `dtype` or their promoted type, and the
    given memory.
    """

    def result_of(arguments: dict) -> tuple[tuple[int, ...], DType, Memory]:
        views = [arguments[name] for name in names if isinstance(arguments.get(name), View)]
        return at_least_2d(together(*views)), dtype or promoted(*(view.dtype for view in views)), memory

    return result_of


def together(*tiles: View) -> tuple[int, ...]:
    """Return the shape that tiles broadcast to; for different ranks, the shape with the most elements."""
    shapes = [tile.shape for tile in tiles]
    if len({len(shape) for shape in shapes}) == 1:
        return reduce(broadcast_shapes, shapes)
    return max(shapes, key=prod)


def at_least_2d(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape padded with 1 to a tile's two dimensions, partitions and elements."""
    return (*shape, *(1,) * (2 - len(shape)))


def nothing(arguments: dict) -> tuple[tuple[int, ...], DType, Memory]:
    """Serve as `Call.result` of a call with no operand that determines the shape: raise ValueError."""
    raise ValueError("a dst must be given")


def nl_function(function: Callable) -> Callable:
    """Wrap a function of `nki.language`: flush the pending call, resolve tensors, name the kernel's line in errors."""
    signature = inspect.signature(function)
    taken, name = signature.parameters, f"nl.{function.__name__}"

    @wraps(function)
    def called(*args, **options):
        current = recording()
        options = {key: value for key, value in options.items() if key in taken or key not in HINTS}
        current.flush()
        if isinstance(dst := options.get("dst", args[0] if args and "dst" in taken else None), View):
            current.own(dst, everything=False)
        given = {key: _resolved(current, value) for key, value in _bound(name, signature, args, options).items()}
        _check_tensors(name, taken.values(), given)
        if "mask" in given:
            given["mask"] = _decided(given["mask"])
        return function(**given)

    return from_kernel(called)


def _bound(name: str, signature: inspect.Signature, args: tuple, options: dict) -> dict[str, Any]:
    try:
        return dict(signature.bind(*args, **options).arguments)
    except TypeError as wrong:
        raise ValueError(f"{name}{signature}: {wrong}") from None


def _check_tensors(name: str, parameters: Iterable[inspect.Parameter], arguments: Mapping[str, object]) -> None:
    for parameter in parameters:
        given = arguments.get(parameter.name, parameter.default)
        if parameter.annotation in (View, View | None) and not (isinstance(given, View) or given is parameter.default):
            raise ValueError(f"{name}: {parameter.name} must be a tensor, not {given!r}")


def _decided(mask: object) -> Any:
    """Return a mask; None for True (everywhere), `NOWHERE` for False, ValueError for any other object."""
    if isinstance(mask, bool | np.bool_):
        return None if mask else NOWHERE
    if mask is not None and not isinstance(mask, Mask):
        raise ValueError(f"mask must be a comparison of index expressions, not {mask!r}")
    return mask


def _resolved(current: Recording, value: object) -> object:
    if isinstance(value, np.ndarray) and value.size != 1:
        rule = "an array of numpy must be an argument of the kernel or the result of nl.shared_constant"
        raise ValueError(f"{rule}, not one that the kernel finds elsewhere, of shape {value.shape}")
    if isinstance(value, Integral) and abs(int(value)) >= 1 << 128:
        raise ValueError(f"a number must be within the range of FP32, below 2**128, not {reprlib.repr(value)}")
    return current.resolved(value) if isinstance(value, View) else value


def _is_zero(target: View) -> bool:
    return target.one_block() in target.allocation.zeros and not is_written(target)
