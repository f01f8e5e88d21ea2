"""Splitting of calls with too many free dimensions: one instruction per index of the outermost one."""

from collections.abc import Iterator

from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.pairing import paired
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.spec.isa.access import DIMENSIONS

__all__ = ["apart"]


def apart(r: Recording, dst: View, arguments: dict) -> Iterator[tuple[View, dict]]:
    """Yield dst and arguments of the parts of an element-wise call that fit into an instruction.

    Tensors of dst's shape are split; tensors of one element per partition, and other values, are passed whole.
    """
    whole = [name for name, value in arguments.items() if isinstance(value, View) and not _is_column(value)]
    free = [d for d, n in enumerate(dst.shape) if n > 1 and d != dst.lanes]
    if len(free) <= DIMENSIONS:
        yield dst, arguments
        return
    _, (dst, *found) = paired(dst.shape, dst, *(arguments[name] for name in whole))
    free = [d for d, n in enumerate(dst.shape) if n > 1 and d != dst.lanes]
    views = dict(zip(whole, found, strict=True))
    joined = sum(_go_on(d, e, (dst, *views.values())) for d, e in zip(free, free[1:], strict=False))
    if len(free) - joined <= DIMENSIONS:
        yield dst, arguments
        return
    outer = free[0]
    r.inserted["instructions of fewer dimensions"] += dst.shape[outer] - 1
    for index in range(dst.shape[outer]):
        part = (*(slice(None),) * outer, slice(index, index + 1))
        yield from apart(r, dst[part], arguments | {name: view[part] for name, view in views.items()})


def _go_on(d: int, e: int, views: tuple[View, ...]) -> bool:
    return all(view.element.steps[d] == view.element.steps[e] * view.shape[e] for view in views)


def _is_column(view: View) -> bool:
    return view.size == (1 if view.lanes is None else view.shape[view.lanes])
