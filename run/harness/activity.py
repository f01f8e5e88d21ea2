"""Activity of a core: the spans of cycles in which its cycle counters counted.

A profiled run watches the lowest bit of each counter, and logs each change of the set of counting ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from amaranth import Shape
from amaranth.lib import data

from neuroncore_rtl.hdl.core_ports import core_counters
from neuroncore_rtl.spec.config import Config

__all__ = ["STARTED", "Activity", "activity_defines", "read_activity"]

Activity = Mapping[str, Sequence[tuple[int, int]]]
"""Ascending spans (first cycle, end) by counter, such as "queues.0.idle": all of queues; `busy`, `columns`, `wait_...`
of engines; `waiting`, `STARTED` of the controller."""

STARTED = "controller.started"
"""Counter name of the span from the retirement of the controller's first instruction to the end of the run."""

_INSTRUCTIONS = "controller.instructions"

_CYCLES = ("idle", "executing", "busy", "columns", "waiting")


def activity_defines(config: Config) -> dict[str, object]:
    """Return the macros `ACTIVITY`, a vector of the lowest bits of watched counters, and `ACTIVITIES`, its width."""
    bits = [
        f"|counters[{low + width - 1}:{low}]" if name == _INSTRUCTIONS else f"counters[{low}]"
        for name, low, width in _watched(config)
    ]
    return {"ACTIVITY": f"{{{', '.join(reversed(bits))}}}", "ACTIVITIES": len(bits)}


def read_activity(lines: Iterable[Sequence[str]], config: Config, end: int) -> Activity:
    """Return the intervals in which the counters of a core counted, up to cycle `end`.

    Each line is a cycle, and the bits of `ACTIVITY` from that cycle on.
    """
    names = [STARTED if name == _INSTRUCTIONS else name for name, _, _ in _watched(config)]
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    since: dict[int, int] = {}
    before = 0
    for cycle, word in [*((int(cycle), int(bits, 16)) for cycle, bits in lines), (end, 0)]:
        cycle, changed = min(cycle, end), before ^ word
        while changed:
            bit = changed.bit_length() - 1
            changed ^= 1 << bit
            if word >> bit & 1:
                since[bit] = cycle
            elif cycle > since[bit]:
                found[names[bit]].append((since[bit], cycle))
        before = word
    return found


def _watched(config: Config) -> list[tuple[str, int, int]]:
    """Return name, lowest bit and width of the watched counters, the counter of instructions first."""
    leaves = {name: (low, width) for name, low, width in _leaves(core_counters(config), "", 0)}
    kinds = {name: name.rpartition(".")[2] for name in leaves}
    cycles = [name for name, kind in kinds.items() if kind in _CYCLES or kind.startswith("wait_")]
    return [(name, *leaves[name]) for name in (_INSTRUCTIONS, *cycles)]


def _leaves(shape, name: str, base: int) -> Iterator[tuple[str, int, int]]:
    layout = shape.as_shape() if isinstance(shape, type) else shape
    if not isinstance(layout, data.StructLayout | data.ArrayLayout):
        yield name, base, Shape.cast(layout).width
        return
    for key, field in iter(layout):
        yield from _leaves(field.shape, f"{name}.{key}" if name else str(key), base + field.offset)
