"""Plots of a sweep: cycles and utilisation over a size, the roofline, and collectives against their links' bound."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from neuroncore_rtl.run.view.plotting import new_figure
from neuroncore_rtl.tb.campaign.task import Row, Status
from neuroncore_rtl.tb.tests.kernels.workbench import SIZES

__all__ = ["draw_campaign_roofline", "draw_chips", "draw_sizes", "size_of"]

INK, FAINT, GRID = "#22303c", "#7d8b99", "#e3e8ed"

COLOURS = (
    "#1b3a70", "#d9743f", "#3f8fc4", "#7bb662", "#8b5fbf", "#c9a227", "#5b8a72", "#c25b78", "#6b7a89", "#22303c",
)  # fmt: skip

MOST = len(COLOURS)  # most lines in one plot; a sweep of more combinations shows the first ones, and the title says so
CHIPS = "CHIPS"
ASIDE = ("SEED",)  # variables that are not plotted: a point is the median over their values


def size_of(rows: Sequence[Row], swept: Sequence[str]) -> tuple[str, ...]:
    """Return the variables of the x axis; empty if no integer variable has more than one value.

    `swept` are the variables with lists in the sweep. A variable of `SIZES` is preferred, then the variable with the
    most values. Variables that equal the chosen one in all rows share the axis.
    """
    values = {name: [row.get(name) for row in rows] for name in swept if name not in ASIDE}
    values = {name: own for name, own in values.items() if len(set(own)) > 1}
    numbers = {name: own for name, own in values.items() if all(type(value) is int for value in own)}
    first = max(numbers, key=lambda name: (name in (*SIZES, "BYTES"), len(set(numbers[name]))), default=None)
    if first is None:
        return ()
    return tuple(name for name, own in numbers.items() if own == numbers[first])


def draw_sizes(path: Path, rows: Sequence[Row], swept: Sequence[str]) -> Path | None:
    """Draw cycles and utilisation over a size, a line per combination of `swept`; None if there is nothing."""
    rows = [row for row in rows if row["status"] != Status.BROKEN and row["cycles"]]
    size = size_of(rows, [name for name in swept if name != CHIPS])
    if not size:
        return None
    titles = "cycles; dashed: lower bound without stalls", "utilisation"
    return _over(path, rows, swept, size, "ideal_cycles", " = ".join(size), titles)


def draw_campaign_roofline(path: Path, rows: Sequence[Row], swept: Sequence[str]) -> Path | None:
    """Draw the utilisation of each run against the roofline; arguments as for `draw_sizes`.

    The x axis is the least time of the busiest engine divided by the least time of HBM. Above 1 the engine limits the
    speed, below 1 HBM does. So one plot shows machines of any size and HBM of any bandwidth.
    """
    rows = [row for row in rows if row["status"] != Status.BROKEN and row.get("hbm_cycles") and row["utilisation"]]
    if len(rows) < 2:
        return None
    figure, (axes,) = _axes(1)
    size = size_of(rows, swept)
    lines = _lines(rows, [name for name in swept if name not in (*size, *ASIDE)])
    places = [row["ideal_cycles"] / row["hbm_cycles"] for row in rows]
    low, high = min(*places, 0.5) / 2, max(*places, 2) * 2
    axes.plot([low, 1, high], [100 * low, 100, 100], color=INK, linewidth=2)
    axes.plot([1, 1], [0.01, 100], color=FAINT, linewidth=0.8, linestyle=":")
    for colour, (label, own) in zip(COLOURS, lines.items(), strict=False):
        points = sorted((row["ideal_cycles"] / row["hbm_cycles"], 100 * row["utilisation"]) for row in own)
        axes.plot(*zip(*points, strict=True), "o", color=colour, markersize=6, alpha=0.85, label=label, mew=0)
    axes.set_xscale("log", base=2)
    lowest = min(100 * row["utilisation"] for row in rows)
    axes.set(yscale="log", xlim=(low, high), ylim=(min(lowest, 100 * low) / 1.5, 160))
    axes.xaxis.set_major_formatter(_number)
    axes.yaxis.set_major_formatter(_number)
    axes.set_xlabel("least cycles of the busiest engine / least cycles of HBM", color=FAINT)
    axes.set_ylabel("utilisation of that engine, percent", color=FAINT)
    words = {"color": FAINT, "fontsize": 9, "va": "bottom"}
    axes.text(1.05, 108, "the engine bounds", ha="left", **words)
    axes.text(0.95, 108, "HBM bounds", ha="right", **words)
    return _saved(figure, path, f"{rows[0]['test']}: roofline", lines)


def draw_chips(path: Path, rows: Sequence[Row], swept: Sequence[str]) -> Path | None:
    """Draw cycles and share of the links' bound of a collective over the chips; arguments as for `draw_sizes`."""
    rows = [row for row in rows if row["status"] != Status.BROKEN and row.get("ring_bound_cycles")]
    if len(_values(rows, CHIPS)) < 2:
        return None
    titles = "cycles; dashed: bound of the links", "share of the links' bound"
    return _over(path, rows, swept, (CHIPS,), "ring_bound_cycles", "chips", titles)


def _over(path: Path, rows: Sequence[Row], swept: Sequence[str], size: Sequence[str], bound: str, name: str, titles):
    """Draw cycles, their bound (a column of the rows), and utilisation over a size, the x axis; return the path."""
    figure, (left, right) = _axes(2)
    lines = _lines(rows, [variable for variable in swept if variable not in (*size, *ASIDE)])
    for colour, (label, own) in zip(COLOURS, lines.items(), strict=False):
        _line(left, own, size[0], "cycles", colour, label)
        _line(left, own, size[0], bound, colour, None)
        _line(right, own, size[0], "utilisation", colour, label, scale=100)
    for axes, title, unit in zip((left, right), titles, ("", "percent"), strict=True):
        values = _values(rows, size[0])
        ticks = values if len(values) <= 12 else values[:: -(-len(values) // 12)]
        axes.set_xscale("log", base=2)
        axes.minorticks_off()
        axes.set_xticks(ticks, [f"{value:,}" for value in ticks])
        axes.set_xlabel(name, color=FAINT)
        axes.set_title(title, loc="left", color=INK, fontsize=10)
        axes.set_ylabel(unit, color=FAINT)
    left.set_yscale("log")
    left.yaxis.set_major_formatter(_number)
    right.set_ylim(0, 105)
    return _saved(figure, path, f"{rows[0]['test']} over {name}", lines)


def _lines(rows: Sequence[Row], others: Sequence[str]) -> dict[str, list[Row]]:
    told = [name for name in others if len(_values(rows, name)) > 1]
    groups: dict[tuple, list[str]] = defaultdict(list)
    for name in told:
        groups[tuple(row.get(name) for row in rows)].append(name)
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[", ".join(f"{' = '.join(names)} {row.get(names[0])}" for names in groups.values())].append(row)
    return dict(found)


def _values(rows: Iterable[Row], name: str) -> list:
    return sorted({row[name] for row in rows if row.get(name) is not None}, key=lambda value: (str(type(value)), value))


def _line(axes, rows: Sequence[Row], size: str, measure: str, colour: str, label: str | None, scale: int = 1) -> None:
    """Draw the medians and the spread of a measure over a size; a line without a label is a bound, drawn dashed."""
    found = defaultdict(list)
    for row in rows:
        if row[measure] is not None:
            found[row[size]].append(scale * row[measure])
    sizes = sorted(found)
    style = {"linewidth": 1, "linestyle": "--", "alpha": 0.7} if label is None else {"linewidth": 1.8, "marker": "o"}
    axes.plot(sizes, [median(found[size]) for size in sizes], color=colour, label=label, markersize=4.5, **style)
    if label is not None and any(min(own) < max(own) for own in found.values()):
        reach = [min(found[size]) for size in sizes], [max(found[size]) for size in sizes]
        axes.fill_between(sizes, *reach, color=colour, alpha=0.15, linewidth=0)


def _number(value: float, _=None) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _axes(count: int) -> tuple[object, Sequence]:
    figure = new_figure(5.2 * count + 1.0, 4.6, layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for one in axes:
        one.grid(color=GRID, linewidth=0.8)
        one.set_axisbelow(True)
        one.tick_params(which="both", colors=INK, length=0)
        for side in one.spines.values():
            side.set_visible(False)
    return figure, axes


def _saved(figure, path: Path, title: str, lines: dict) -> Path:
    remark = f" (the first {MOST} of {len(lines)} combinations)" if len(lines) > MOST else ""
    figure.suptitle(title + remark, x=0.01, ha="left", color=INK, fontsize=13)
    if len(lines) > 1:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        place = {"loc": "outside lower center", "ncols": min(4, len(labels)), "frameon": False}
        figure.legend(handles, labels, fontsize=9, labelcolor=INK, **place)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, facecolor="white")
    return path
