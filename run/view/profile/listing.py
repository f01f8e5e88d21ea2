"""Disassembly of a run with cycles: a line per record, in the order of issue."""

from collections.abc import Iterator

from neuroncore_rtl.kernels.text.assembly import record_text
from neuroncore_rtl.run.view.profile.run import ProfiledRun
from neuroncore_rtl.run.view.profile.tensors import Names

__all__ = ["listing"]


def listing(run: ProfiledRun) -> str:
    """Return the table of a run's records."""
    rows = [("queue", "fetched", "issued", "retired", "record"), *_rows(run)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = []
    for queue, *cycles, text in rows:
        cells = [queue.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cycles, widths[1:], strict=True))]
        lines.append("  ".join([*cells, text]))
    return "".join(f"{line}\n" for line in lines)


def _rows(run: ProfiledRun) -> Iterator[tuple[str, ...]]:
    names = Names(run.space)
    for ran in run.records:
        cycles = ("-" if cycle is None else f"{cycle:,}" for cycle in (ran.fetched, ran.issued, ran.retired))
        tensors = " ".join(f"{name}={tensor}" for name, tensor in names.of(ran).items())
        remark = f"  # {tensors}{', ' if tensors else ''}{ran.entry.source}"
        yield run.queue_name(ran.queue), *cycles, f"{record_text(ran.record)}{remark}"
