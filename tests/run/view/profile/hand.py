"""Handmade runs: given cycles in which records are fetched, issued and retired, without a simulation."""

from collections.abc import Callable, Mapping, Sequence

from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.run.view.profile.run import ProfiledRun, Ran
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import RECORD_BYTES, queue_count

__all__ = ["TINY", "hand_run", "soonest_run"]

TINY = PRESETS["tiny"]

Kernel = Callable[[Program], object]
Times = Sequence[tuple[int, int, int | None]]
Spans = Sequence[tuple[int, int]]

BOOT, LOOK = 100, 4  # cycles until the first issue, and from the end of a wait to an issue


def hand_run(kernel: Kernel, times: Times, busy: Mapping[int, Spans] = {}) -> ProfiledRun:
    """Return a run with (fetch, issue, retirement) cycles per entry; `busy` by queue, default issue to retirement."""
    program = Program(TINY)
    kernel(program)
    return _run(program, times, 1000, busy)


def soonest_run(kernel: Kernel, cycles_of: Callable[[Entry], int]) -> ProfiledRun:
    program = Program(TINY)
    kernel(program)
    ends, free, times = {}, {}, []
    for entry in program.entries:
        issued = max([free.get(entry.queue, BOOT), *(ends[lane, count - 1] + LOOK for lane, count in entry.waits)])
        ends[entry.lane, entry.number] = free[entry.queue] = issued + cycles_of(entry)
        times.append((BOOT - 10, issued, issued + cycles_of(entry)))
    return _run(program, times, max(ends.values()) + 100, {})


def _run(program: Program, times: Times, cycles: int, busy: Mapping[int, Spans]) -> ProfiledRun:
    image = build_image(program)
    addresses = {
        entry.position: block.address + RECORD_BYTES * number
        for block, entries in zip(image.blocks, image.entries, strict=True)
        for number, entry in enumerate(entries)
    }
    records = []
    for entry, (fetched, issued, retired) in sorted(zip(program.entries, times, strict=True), key=lambda x: x[1][1]):
        at, when = addresses[entry.position], {"fetched": fetched, "issued": issued, "retired": retired}
        records.append(Ran(number=len(records), address=at, record=image.locate(at)[1], entry=image.entry(at), **when))
    worked = {
        queue: busy.get(queue, [(r.issued, r.retired or cycles) for r in records if r.queue == queue])
        for queue in range(queue_count(TINY))
    }
    controller = {"boot": [(0, BOOT)], "control program": [(BOOT, cycles)]}
    return ProfiledRun(name="by hand", image=image, cycles=cycles, records=records, busy=worked, controller=controller)
