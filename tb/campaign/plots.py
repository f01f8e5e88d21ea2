"""Pictures of a sweep, each with its data beside it: measures over a variable, the roofline, curves of trainings."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import ceil, inf, nan
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.run.settings import SEED
from neuroncore_rtl.run.view.plotting import new_figure, write_plot
from neuroncore_rtl.tb.campaign.summary import ALWAYS, Spread, spread_of
from neuroncore_rtl.tb.campaign.task import CURVES, Row, Status
from neuroncore_rtl.tb.tests.kernels.workbench import SIZES

__all__ = ["draw_campaign_roofline", "draw_chips", "draw_curves", "draw_measures", "draw_sizes", "size_of"]

INK, FAINT, GRID = "#22303c", "#7d8b99", "#e3e8ed"

COLOURS = (
    "#1b3a70", "#d9743f", "#3f8fc4", "#7bb662", "#8b5fbf", "#c9a227", "#5b8a72", "#c25b78", "#6b7a89", "#22303c",
)  # fmt: skip
MARKERS = "osD^vP*X<>"
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2)))  # of curves, which have no markers

MOST = len(COLOURS)  # most lines in one plot; a sweep of more combinations shows the first ones, and the title says so
TICKS = 12  # most values of a variable with a tick each, evenly spaced; more values have a scale
DODGE = 0.05  # distance of the error bars of two lines, in distances of ticks
CHIPS = "CHIPS"


@dataclass(frozen=True)
class Axis:
    """The x axis: variables that have equal values in all rows, and these values in order."""

    names: tuple[str, ...]
    values: tuple

    @property
    def is_even(self) -> bool:
        """Whether the ticks are evenly spaced, one per value, instead of on a numeric scale."""
        return len(self.values) <= TICKS or not all(type(value) is int for value in self.values)

    @property
    def positions(self) -> list[float]:
        return list(range(len(self.values))) if self.is_even else list(self.values)

    def draw(self, axes: Any) -> None:
        axes.set_xlabel(" = ".join(self.names), color=FAINT)
        if self.is_even:
            texts = [f"{value:,}" if type(value) is int else str(value) for value in self.values]
            wide = sum(map(len, texts)) > 40
            axes.set_xticks(self.positions, texts, rotation=45 * wide, ha="right" if wide else "center")
            axes.set_xlim(-0.4, len(self.values) - 0.6)
        else:
            _set_scale(axes, axes.xaxis, axes.set_xscale, self.values)


@dataclass(frozen=True)
class Panel:
    """A plot: measures to draw over the x axis, by line name; `bound`: column of their lower bound, drawn dashed."""

    title: str
    measures: Mapping[str, str]
    bound: str | None = None


def _panels_of(measures: Iterable[str]) -> list[Panel]:
    """Return a panel for each quantity: "loss.sr.last" and "loss.rne.last" are lines of one panel."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for measure in measures:
        quantity, *rest = measure.split(".")
        title = ", ".join([quantity, *rest[1:]]).replace("_", " ")
        found[title][".".join(rest[:1])] = measure
    return [Panel(title, own) for title, own in found.items()]


def size_of(rows: Sequence[Row], swept: Sequence[str]) -> tuple[str, ...]:
    """Return the variables of the x axis; empty if no variable except SEED has more than one value.

    `swept` are the variables with lists in the sweep. A variable of `SIZES` is preferred, then integers, then the
    variable with the most values. Variables that equal the chosen one in all rows share the axis.
    """
    values = {name: [row.get(name) for row in rows] for name in swept if name != SEED.name}
    values = {name: own for name, own in values.items() if len(set(own)) > 1}

    def rank(name: str) -> tuple:
        is_number = all(type(value) is int for value in values[name])
        return name in (*SIZES, "BYTES") and is_number, is_number, len(set(values[name]))

    first = max(values, key=rank, default=None)
    return () if first is None else tuple(name for name, own in values.items() if own == values[first])


def draw_sizes(path: Path, rows: Sequence[Row], swept: Sequence[str], measures: Sequence[str] = ()) -> Path | None:
    """Draw cycles and utilisation over a size, a line per combination of `swept`; None if there is nothing."""
    rows = [row for row in _usable(rows) if row["cycles"]]
    panels = [
        Panel("cycles; dashed: lower bound without stalls", {"": "cycles"}, "ideal_cycles"),
        Panel("utilisation, percent", {"": "utilisation"}),
    ]
    return _draw_panels(path, rows, swept, size_of(rows, [name for name in swept if name != CHIPS]), panels)


def draw_measures(path: Path, rows: Sequence[Row], swept: Sequence[str], measures: Sequence[str] = ()) -> Path | None:
    """Draw the TEST's own measures over a variable, or over SEED if no other varies; arguments as for `draw_sizes`."""
    rows = _usable(rows)
    panels = _panels_of(name for name in measures if name not in ALWAYS)
    return _draw_panels(path, rows, swept, size_of(rows, swept) or (SEED.name,), panels)


def draw_chips(path: Path, rows: Sequence[Row], swept: Sequence[str], measures: Sequence[str] = ()) -> Path | None:
    """Draw cycles and share of the links' bound of a collective over the chips; arguments as for `draw_sizes`."""
    rows = [row for row in _usable(rows) if row.get("ring_bound_cycles")]
    panels = [
        Panel("cycles; dashed: bound of the links", {"": "cycles"}, "ring_bound_cycles"),
        Panel("share of the links' bound, percent", {"": "utilisation"}),
    ]
    return _draw_panels(path, rows, swept, (CHIPS,), panels)


def draw_campaign_roofline(
    path: Path, rows: Sequence[Row], swept: Sequence[str], measures: Sequence[str] = ()
) -> Path | None:
    """Draw the utilisation of each run against the roofline; arguments as for `draw_sizes`.

    The x axis is the least time of the busiest engine divided by the least time of HBM. Above 1 the engine limits the
    speed, below 1 HBM does. So one plot shows machines of any size and HBM of any bandwidth.
    """
    rows = [row for row in _usable(rows) if row.get("hbm_cycles") and row["utilisation"]]
    if len(rows) < 2:
        return None
    figure, (axes,) = _grid(1)
    size = size_of(rows, swept)
    lines, data = _lines(rows, [name for name in swept if name not in size]), []
    labels: list[tuple[tuple[float, float], str, str]] = []
    places = [row["ideal_cycles"] / row["hbm_cycles"] for row in rows]
    shares = [100 * row["utilisation"] for row in rows]
    low, high = min(*places, 0.5) / 2, max(*places, 2) * 2
    bottom = min(shares) / 1.5
    axes.plot([max(low, bottom / 100), 1, high], [max(100 * low, bottom), 100, 100], color=INK, linewidth=2)
    axes.plot([1, 1], [bottom, 100], color=FAINT, linewidth=0.8, linestyle=":")
    for style, (label, own) in zip(_styles(lines), lines.items(), strict=False):
        points = [(row["ideal_cycles"] / row["hbm_cycles"], 100 * row["utilisation"]) for row in own]
        axes.plot(*zip(*points, strict=True), **{**style, "linestyle": ""}, label=label)
        for point, row in zip(points, own, strict=True):
            values = {name: row.get(name) for name in size}
            if size:
                labels.append((point, str(row.get(size[0])), style["color"]))
            numbers = {"engine_cycles_per_hbm_cycle": point[0], "utilisation_percent": point[1]}
            data.append({"series": label, **values, SEED.name: row.get(SEED.name), **numbers})
    for scale, axis, values in ((axes.set_xscale, axes.xaxis, (low, high)), (axes.set_yscale, axes.yaxis, (1, 100))):
        _set_scale(axes, axis, scale, values, logarithmic=True)
    axes.set(xlim=(low, high), ylim=(bottom, 170))
    axes.set_xlabel("least cycles of the busiest engine / least cycles of HBM", color=FAINT)
    axes.set_ylabel("utilisation of that engine, percent", color=FAINT)
    words = {"color": FAINT, "fontsize": 9, "va": "bottom"}
    axes.text(1.05, 115, "the engine bounds", ha="left", **words)
    axes.text(0.95, 115, "HBM bounds", ha="right", **words)
    labelled = f"; points: {' = '.join(size)}" if size else ""
    return _write(figure, path, f"{rows[0]['test']}: roofline{labelled}", lines, data, labels)


def draw_curves(path: Path, rows: Sequence[Row], swept: Sequence[str], measures: Sequence[str] = ()) -> Path | None:
    """Draw the curves of a TEST that has steps: the mean over the seeds and its spread; arguments as for `draw_sizes`.

    The data have a row per run and step, with a column for each curve.
    """
    rows = [row for row in _usable(rows) if row.get(CURVES)]
    if not rows:
        return None
    quantities = list(dict.fromkeys(quantity for row in rows for quantity in row[CURVES]))
    figure, panels = _grid(len(quantities))
    combinations = _lines(rows, [name for name in swept if name != SEED.name])
    lines: dict[str, dict[str, list[list]]] = {}
    for quantity, axes in zip(quantities, panels, strict=True):
        lines |= (own := _curves(combinations, quantity))
        for style, dashes, (label, curves) in zip(_styles(own), cycle(DASHES), own.items(), strict=False):
            values = np.array([curve for curve in curves if len(curve) == len(curves[0])], float)
            steps, means = np.arange(1, values.shape[1] + 1), values.mean(axis=0)
            axes.plot(steps, means, color=style["color"], linestyle=dashes, linewidth=1.5, label=label)
            if len(values) > 1:
                spread = values.std(axis=0, ddof=1)
                axes.fill_between(steps, means - spread, means + spread, color=style["color"], alpha=0.15, linewidth=0)
        axes.set_title(quantity.replace("_", " "), loc="left", color=INK, fontsize=10)
        axes.set_xlabel("steps", color=FAINT)
        _set_scale(axes, axes.xaxis, axes.set_xscale, (0,))
        _set_scale(axes, axes.yaxis, axes.set_yscale, _heights(axes))
    return _write(figure, path, f"{rows[0]['test']}: {_over_seeds(rows)}", lines, [*_curve_data(rows, swept)])


def _heights(axes: Any) -> list[float]:
    values = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.get_lines()])
    return values[np.isfinite(values)].tolist()


def _curves(combinations: Mapping[str, Sequence[Row]], quantity: str) -> dict[str, list[list]]:
    """Return the curves of a quantity by their label, a list with the values of each seed."""
    found: dict[str, list[list]] = defaultdict(list)
    for label, own in combinations.items():
        for row in own:
            for name, values in row[CURVES].get(quantity, {}).items():
                found[", ".join(part for part in (name, label) if part)].append(values)
    return dict(found)


def _curve_data(rows: Iterable[Row], swept: Sequence[str]) -> Iterator[Row]:
    for row in rows:
        curves = {f"{quantity}.{name}": own for quantity, all in row[CURVES].items() for name, own in all.items()}
        names = dict.fromkeys((SEED.name, *swept))
        variables = {name: row.get(name) for name in names if name in row}
        for step in range(max(map(len, curves.values()))):
            values = {name: own[step] if step < len(own) else None for name, own in curves.items()}
            yield {"test": row["test"], **variables, "step": step + 1, **values}


def _usable(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["status"] != Status.BROKEN]


def _draw_panels(
    path: Path, rows: Sequence[Row], swept: Sequence[str], names: tuple[str, ...], panels: Sequence[Panel]
) -> Path | None:
    """Draw a line for each measure and combination of the variables other than `names`, which share the x axis."""
    values = _values(rows, names[0]) if names else []
    if len(values) < 2 or not panels:
        return None
    axis = Axis(names, tuple(values))
    figure, grid = _grid(len(panels))
    combinations = _lines(rows, [name for name in swept if name not in (*axis.names, SEED.name)])
    data, lines = [], {}
    for axes, panel in zip(grid, panels, strict=True):
        own = {
            ", ".join(part for part in (name, label) if part): (measure, several)
            for label, several in combinations.items()
            for name, measure in panel.measures.items()
        }
        lines |= own
        for n, (style, (label, (measure, several))) in enumerate(zip(_styles(own), own.items(), strict=False)):
            spreads, scale = _spreads(several, axis, measure), 100 if measure == "utilisation" else 1
            aside = DODGE * (n - (min(MOST, len(own)) - 1) / 2) if axis.is_even else 0
            _draw_line(axes, axis, spreads, scale, style, label, aside)
            bounds = _spreads(several, axis, panel.bound) if panel.bound else [None] * len(spreads)
            if panel.bound:
                heights = [bound.mean if bound else nan for bound in bounds]
                dashed = {"color": style["color"], "linestyle": "--", "linewidth": 1, "alpha": 0.7}
                axes.plot(axis.positions, heights, **dashed)
            if axis.names == (SEED.name,):
                _draw_mean(axes, [row.get(measure) for row in several], scale, style["color"])
            data += _panel_data(measure, label, axis, spreads, bounds)
        axis.draw(axes)
        axes.set_title(panel.title, loc="left", color=INK, fontsize=10)
        if "utilisation" in panel.measures.values():
            axes.set_ylim(0, 105)
        else:
            _set_scale(axes, axes.yaxis, axes.set_yscale, _heights(axes))
    title = f"{rows[0]['test']} over {' = '.join(axis.names)}"
    if len(_values(rows, SEED.name)) > 1:
        title += f"; {_over_seeds(rows)}"
    return _write(figure, path, title, lines, data)


def _over_seeds(rows: Sequence[Row]) -> str:
    seeds = len(_values(rows, SEED.name))
    return f"mean over {seeds} seeds, and one standard deviation" if seeds > 1 else "one seed"


def _spreads(rows: Sequence[Row], axis: Axis, measure: str) -> list[Spread | None]:
    found = defaultdict(list)
    for row in rows:
        found[row.get(axis.names[0])].append(row.get(measure))
    return [spread_of(found[value]) for value in axis.values]


def _draw_line(
    axes: Any, axis: Axis, spreads: Sequence[Spread | None], scale: float, style: Mapping, label: str, aside: float
) -> None:
    """Draw means and deviations; a missing value is a gap. With deviations, `aside` shifts them along the x axis."""
    means = [scale * spread.mean if spread else nan for spread in spreads]
    deviations = [scale * spread.deviation if spread and spread.deviation else nan for spread in spreads]
    spread_out = bool(np.isfinite(deviations).any())
    places = [place + aside * spread_out for place in axis.positions]
    axes.plot(places, means, label=label, **style)
    if spread_out:
        axes.errorbar(places, means, deviations, fmt="none", ecolor=style["color"], capsize=3, linewidth=1)


def _draw_mean(axes: Any, values: Sequence[float | None], scale: float, colour: str) -> None:
    """Draw mean and standard deviation of all values, across the panel."""
    spread = spread_of(values)
    if spread and spread.deviation is not None:
        mean, deviation = scale * spread.mean, scale * spread.deviation
        axes.axhline(mean, color=colour, linewidth=1, linestyle=":")
        axes.axhspan(mean - deviation, mean + deviation, color=colour, alpha=0.1, linewidth=0)


def _panel_data(measure: str, label: str, axis: Axis, spreads: Sequence, bounds: Sequence) -> Iterator[Row]:
    for value, spread, bound in zip(axis.values, spreads, bounds, strict=True):
        if spread is not None:
            names = {"measure": measure, "series": label, **dict.fromkeys(axis.names, value)}
            numbers = {"runs": spread.runs, "mean": spread.mean, "deviation": spread.deviation}
            ends = {"min": spread.least, "max": spread.most, "bound": bound and bound.mean}
            yield names | numbers | ends


def _lines(rows: Sequence[Row], others: Sequence[str]) -> dict[str, list[Row]]:
    told = [name for name in others if name != SEED.name and len(_values(rows, name)) > 1]
    groups: dict[tuple, list[str]] = defaultdict(list)
    for name in told:
        groups[tuple(row.get(name) for row in rows)].append(name)
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[", ".join(f"{' = '.join(names)} {row.get(names[0])}" for names in groups.values())].append(row)
    return dict(found)


def _values(rows: Iterable[Row], name: str) -> list:
    found = {row[name] for row in rows if row.get(name) is not None}
    return sorted(found, key=lambda value: (isinstance(value, str), value))


def _styles(lines: Mapping) -> Iterator[dict[str, Any]]:
    """Yield a colour and a marker for each line; later markers are smaller, so that equal lines remain visible."""
    count = min(MOST, len(lines))
    for n, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
        size = 5 + 4 * (1 - n / max(1, count - 1)) if count > 1 else 6
        yield {"color": colour, "marker": marker, "markersize": size, "linestyle": "-", "linewidth": 1.6}


def _place_labels(axes: Any, labels: Sequence[tuple[tuple[float, float], str, str]]) -> None:
    """Write a text beside each point, (place, text, colour), where it covers no other text and no point if possible."""
    axes.figure.draw_without_rendering()
    points = axes.transData.transform([place for place, _, _ in labels])
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    for (place, text, colour), (x, y) in zip(labels, points, strict=True):
        width, height = 3.2 * len(text) + 2, 6
        offsets = [(far * across * (9 + width), far * up * (8 + height)) for far in (1, 1.6) for across, up in SIDES]
        boxes = {at: (x + at[0] - width, y + at[1] - height, x + at[0] + width, y + at[1] + height) for at in offsets}
        free = [at for at, box in boxes.items() if not any(_overlap(box, other) for other in taken)]
        at = (free or offsets)[0]
        taken.append(boxes[at])
        points_each = 72 / axes.figure.dpi
        style = {"xytext": (at[0] * points_each, at[1] * points_each), "textcoords": "offset points", "fontsize": 8}
        axes.annotate(text, place, ha="center", va="center", color=colour, **style)


SIDES = (1, 0), (-1, 0), (0, 1), (0, -1), (1, -0.7), (-1, 0.7), (1, 0.7), (-1, -0.7)


def _overlap(box: Sequence[float], other: Sequence[float]) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def _set_scale(axes: Any, axis: Any, set_scale: Any, values: Iterable[float], *, logarithmic: bool = False) -> None:
    """Choose a logarithmic axis for positive values over more than a decade, with ticks at 1, 2 and 5, else linear."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    own = [*values]
    low, high = min(own, default=0), max(own, default=0)
    if logarithmic or (low > 0 and high / low > 20):
        set_scale("log", base=10)
        steps = (1, 2, 5) if high < 2000 * max(low, 1e-300) else (1,)
        axis.set_major_locator(LogLocator(base=10, subs=steps, numticks=30))
        axis.set_minor_locator(NullLocator())
    elif low >= 0 and high >= 2 * low and axis is axes.yaxis:
        axes.set_ylim(bottom=0)
    elif axis is axes.xaxis:
        axis.get_major_locator().set_params(integer=True)
    axis.set_major_formatter(FuncFormatter(_number))


def _number(value: float, _=None) -> str:
    return f"{value:,.0f}" if value == int(value) and abs(value) < inf else f"{value:.6g}"


def _grid(count: int) -> tuple[Any, list]:
    across = min(3, count)
    down = ceil(count / across)
    figure = new_figure(4.9 * across + 0.6, 3.9 * down + 0.6, layout="constrained")
    panels = [*figure.subplots(down, across, squeeze=False).flat]
    for unused in panels[count:]:
        unused.set_axis_off()
    for one in panels[:count]:
        one.grid(color=GRID, linewidth=0.8)
        one.set_axisbelow(True)
        one.tick_params(which="both", colors=INK, length=0)
        for side in one.spines.values():
            side.set_visible(False)
    return figure, panels[:count]


def _write(figure: Any, path: Path, title: str, lines: Mapping, data: Sequence[Row], labels: Sequence = ()) -> Path:
    """Add title, legend and labels of points, widen the figure for the legend, and write the picture with its data."""
    remark = f" (the first {MOST} of {len(lines)} combinations)" if len(lines) > MOST else ""
    figure.suptitle(title + remark, x=0.01, ha="left", color=INK, fontsize=13)
    handles = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in figure.axes]
    named = {label: handle for own in handles for handle, label in own}
    if len(lines) > 1:
        figure.set_figwidth(figure.get_figwidth() + 0.6 + 0.075 * max(map(len, named)))
        place = {"loc": "outside right upper", "frameon": False}
        figure.legend(named.values(), named.keys(), fontsize=9, labelcolor=INK, handlelength=3.5, **place)
    if labels:
        _place_labels(figure.axes[0], labels)
    return write_plot(figure, path, data)
