"""Files of a profile: tables, timeline for Perfetto, pictures of timeline and roofline."""

from pathlib import Path

from neuroncore_rtl.kernels.text.assembly import record_text
from neuroncore_rtl.run.report import align_rows, write_record
from neuroncore_rtl.run.view.plotting import new_figure, write_plot, write_table
from neuroncore_rtl.run.view.profile.figures import Figures
from neuroncore_rtl.run.view.profile.run import ProfiledRun
from neuroncore_rtl.run.view.profile.stalls import StallCause, causes_of, spans_of
from neuroncore_rtl.run.view.profile.tracks import Names, profile_tracks, track_kind
from neuroncore_rtl.run.view.timeline import write_timeline

__all__ = ["listing", "write_profile"]

INK, FAINT, GRID = "#22303c", "#7d8b99", "#e3e8ed"

COLOURS = {
    "load": "#3f8fc4", "store": "#7bb662", "copy": "#9aa7b3", "weights": "#c9a227", "multiply": "#1b3a70",
    "vector": "#8b5fbf", "scalar": "#d9743f", "collective": "#5b8a72",
}  # fmt: skip

STALLS = {
    StallCause.DATA: "#e4a9a9", StallCause.RESULT: "#efc9a0", StallCause.PLACE: "#cdbbe6", StallCause.RECORD: "#b9c4ce",
    StallCause.ENGINE: "#dfe5ea", StallCause.START: "#f3f5f7",
}  # fmt: skip
"""Colours of stalls by cause; the time after an engine's last instruction remains white."""

APART = 400  # maximum number of instructions that a picture separates by thin lines

WIDTH, ROW, MARGINS = 11.0, 0.42, 1.75
"""Inches: width of a picture, height of a queue, total height above and below the queues."""


def write_profile(directory: Path, run: ProfiledRun, hbm_width: int) -> Figures:
    """Write all files of a run's profile; return its figures. HBM moves `hbm_width` bytes per cycle.

    timeline.json is for https://ui.perfetto.dev; listing.txt has instructions and cycles; lines.csv and lines.parquet
    have the cycles by line of the kernel.
    """
    figures = Figures(run, hbm_width)
    write_timeline(directory / "timeline.json", profile_tracks(run))
    write_record(directory / "summary.json", figures.summary())
    write_record(directory / "utilisation.json", figures.monitor())
    (directory / "listing.txt").write_text(listing(run))
    write_table(_lines(run), directory / "lines")
    draw_timeline(directory / "timeline.png", run)
    draw_roofline(directory / "roofline.png", figures)
    return figures


def _lines(run: ProfiledRun) -> list[dict[str, object]]:
    """Return a row per line that appends instructions, and per line of the user's kernel that calls it."""
    rows = []
    for source, cost in run.costs.items():
        kernel, user, share = source.kernel, source.user, cost.cycles / max(run.cycles, 1)
        lines = {"file": kernel.file, "line": kernel.number, "code": kernel.code}
        lines |= {"user_file": user.file, "user_line": user.number, "user_code": user.code}
        rows.append({**lines, "cycles": cost.cycles, "share": share, "records": cost.records})
    return rows


def listing(run: ProfiledRun) -> str:
    """Return the table of a run's records."""
    rows: list[tuple[str, ...]] = [("queue", "fetched", "issued", "retired", "record")]
    names = Names(run.space)
    for ran in run.records:
        cycles = ("-" if cycle is None else f"{cycle:,}" for cycle in (ran.fetched, ran.issued, ran.retired))
        tensors = " ".join(f"{name}={tensor}" for name, tensor in names.of(ran).items())
        remark = f"  # {tensors}{', ' if tensors else ''}{ran.entry.source}"
        rows.append((run.queue_name(ran.queue), *cycles, f"{record_text(ran.record)}{remark}"))
    return "".join(f"{line}\n" for line in align_rows(rows, right=(1, 2, 3)))


def _style(axes, title: str, run: ProfiledRun) -> None:
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title(f"{title}\n", loc="left", color=INK, fontsize=13)
    config, source = run.config, " by the timing model: no RTL has run" if run.modelled else ""
    said = f"{config.rows} x {config.columns} processing elements, {run.cycles:,} cycles{source}"
    axes.text(0, 1.02, said, transform=axes.transAxes, color=FAINT, fontsize=9)


def draw_timeline(path: Path, run: ProfiledRun) -> Path:
    """Draw each engine's instructions in a row, with stalls below; return the path."""
    queues = list(run.queues)
    figure = new_figure(WIDTH, MARGINS + ROW * len(queues), layout="constrained")
    axes = figure.subplots()
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter

    data: list[dict[str, object]] = []
    kinds, causes, line = {}, {}, 0.6 if len(run.records) <= APART else 0
    for row, queue in enumerate(queues):
        shown: dict[str, list[tuple[int, int]]] = {}
        for ran in run.queues[queue]:
            spans = shown.setdefault(track_kind(ran), [])
            # Some are accepted while the previous one executes.
            begin = max(ran.issued, sum(spans[-1])) if spans else ran.issued
            spans.append((begin, max(0, run.end_of(ran) - begin)))
        name = run.queue_name(queue)
        for kind, spans in shown.items():
            data += _span_rows(name, kind, spans)
            # Weights are loaded during multiplications.
            place = (row - 0.34, 0.14) if kind == "weights" else (row - 0.18, 0.34)
            axes.broken_barh(spans, place, facecolor=COLOURS[kind], edgecolor="white", linewidth=line)
            kinds[kind] = None
        stalls: dict[StallCause, list[tuple[int, int]]] = {}
        for begin, end, cause in spans_of(causes_of(run, queue)):
            stalls.setdefault(cause, []).append((begin, end - begin))
        for cause, spans in stalls.items():
            data += _span_rows(name, f"stall: {cause.name.lower()}", spans)
            if cause in STALLS:
                axes.broken_barh(spans, (row + 0.18, 0.16), color=STALLS[cause], linewidth=0)
                causes[cause] = None
    axes.set_yticks(range(len(queues)), [run.queue_name(queue) for queue in queues])
    axes.set_ylim(len(queues) - 0.5, -0.5)
    axes.set_xlim(0, run.cycles)
    axes.set_xlabel("cycles", color=FAINT)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.tick_params(colors=INK, length=0)
    _style(axes, run.name, run)
    handles = [Patch(color=COLOURS[kind], label=kind) for kind in COLOURS if kind in kinds]
    handles += [Patch(color=STALLS[cause], label=f"stall: {cause.name.lower()}") for cause in STALLS if cause in causes]
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=9, labelcolor=INK)
    return write_plot(figure, path, data)


def _span_rows(queue: str, what: str, spans: list[tuple[int, int]]) -> list[dict[str, object]]:
    row: dict[str, object] = {"queue": queue, "what": what}
    return [row | {"first_cycle": begin, "end_cycle": begin + length} for begin, length in spans]


def draw_roofline(path: Path, figures: Figures) -> Path:
    """Draw the roofline of array and HBM, and the run's position; return the path."""
    run, peak, width = figures.run, figures.peak, figures.hbm_width
    ridge, reached = peak / width, figures.product_flops / max(run.cycles, 1)
    intensity = figures.intensity
    figure = new_figure(7.0, 4.6, layout="constrained")
    axes = figure.subplots()
    low, high = min(ridge, intensity or ridge) / 8, max(ridge, intensity) * 16
    axes.plot([low, ridge, high], [low * width, peak, peak], color=INK, linewidth=2)
    axes.plot([ridge, ridge], [low * width / 8, peak], color=FAINT, linewidth=0.8, linestyle=":")
    axes.text(high, peak * 1.08, f"array: {peak:,} operations a cycle", ha="right", color=INK, fontsize=9)
    axes.text(ridge * 1.08, low * width / 4, f"{ridge:g} operations a byte", color=FAINT, fontsize=9)
    axes.text(low * 1.5, low * width * 0.9, f"HBM: {width:,} bytes a cycle", color=INK, fontsize=9)
    if intensity:
        bound = min(peak, intensity * width)
        axes.plot([intensity, intensity], [reached, bound], color=COLOURS["load"], linewidth=1.2)
        axes.plot([intensity], [reached], "o", color=COLOURS["load"], markersize=8)
        words = f"{run.name}\n{reached:,.1f} operations a cycle,\n{reached / bound:.0%} of what is possible"
        place = {"xytext": (10, -4), "textcoords": "offset points", "va": "top"}
        axes.annotate(words, (intensity, reached), fontsize=9, color=INK, **place)
    else:
        axes.text(0.5, 0.5, "the array has not multiplied", transform=axes.transAxes, ha="center", color=FAINT)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlim(low, high)
    axes.set_ylim(min(reached or peak, low * width) / 8, peak * 2)
    axes.set_xlabel("operations of the array for each byte of HBM", color=FAINT)
    axes.set_ylabel("operations of the array in a cycle", color=FAINT)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(color=GRID, linewidth=0.8)
    axes.tick_params(which="both", colors=INK, length=0)
    _style(axes, "Roofline", run)
    reach = {"operations_per_byte": intensity, "operations_per_cycle": reached}
    return write_plot(figure, path, [reach | {"array_operations_per_cycle": peak, "hbm_bytes_per_cycle": width}])
