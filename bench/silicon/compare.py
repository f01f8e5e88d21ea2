"""Cycles of this RTL at 1.4 GHz against published figures of Trainium 1; this is no prediction of Trainium's times.

The RTL has no host, and its HBM can have any latency. So the host's time and HBM's latency are free parameters, fitted
to half of the figures that depend on them; the other half tests the fit. NKI_SAMPLES is the path of a checkout of
nki-samples.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table
from scipy.optimize import nnls

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.bench.silicon import modelled, published
from neuroncore_rtl.bench.silicon.formulas import LENGTHS, REASONS, SHORT, formula_rows
from neuroncore_rtl.bench.silicon.published import PublishedTime
from neuroncore_rtl.run.report import display_path, progress
from neuroncore_rtl.run.settings import LATENCY
from neuroncore_rtl.run.tables import table
from neuroncore_rtl.run.view.plotting import new_figure, write_plot
from neuroncore_rtl.spec.formats import format_named

__all__ = [
    "BAR", "collective_rows", "fit_collectives", "formula_reasons", "is_off", "measure_silicon", "silicon_tables",
]  # fmt: skip

GHZ = 1.4
"""Clock of the published core, used for all cycles here."""

BAR = 0.25
"""Largest relative error of a ratio of times that needs no stated reason."""

LAYERS = 24
PLOT = SIM_BUILD / "plots" / "silicon.png"
_ARRAY = "the array accepts one column per cycle of 1.4 GHz; the silicon's has a clock of 2.8 GHz"
_LINK = (
    "two cores of a chip exchange 64 bytes per cycle in each direction, and add as many: 162 GiB/s of a vector. The "
    "published time corresponds to 53 GiB/s, by DMA rings"
)
WHY = {
    "convolution": _ARRAY,
    "start of a DMA": "a copy takes HBM's 64 cycles and 16 of its own; it fetches no descriptors, and its completion "
    "is not written to memory",
    "all-reduce": _LINK,
}
"""Reasons for errors above `BAR`, by the first words of a figure's name."""


def is_off(ratio: float, ceiling: bool = False) -> bool:
    """Return whether a ratio to a published time differs from 1 by more than `BAR`, or to a ceiling exceeds 1."""
    return ratio > 1 if ceiling else abs(ratio - 1) > BAR


def _us(cycles: float) -> float:
    return cycles / GHZ / 1000


def _row(time: PublishedTime, cycles: Sequence[float], more: str = "") -> dict[str, object]:
    ratios = [_us(count) / time.us for count in cycles]
    row = {"name": time.name, "published": time.us, "ceiling": time.ceiling, "source": time.source, "more": more}
    return row | {"cycles": round(cycles[0]), "ours": _us(cycles[0]), "ratio": ratios[0], "slow": ratios[1]}


def fit_collectives(rows: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """Return two fitted constants: microseconds per start of a collective by the host, and per step around the ring.

    The fit minimises the squared relative errors of the estimates; neither constant is negative.
    """
    scale = np.array([row["published"] for row in rows], float)
    columns = np.array([[1, row["steps"]] for row in rows]) / scale[:, None]
    rest = 1 - np.array([row["bare"] for row in rows]) / scale
    host, step = nnls(columns, rest)[0]
    return float(host), float(step)


def collective_rows() -> tuple[list[dict[str, object]], tuple[float, float]]:
    """Return the rows of collectives, cycles of the link model plus the fitted constants, and these constants.

    Every second row is used for the fit, the other rows test it.
    """
    groups = (
        (published.ALL_REDUCES, modelled.all_reduce_cycles, 2),
        (published.ALL_GATHERS, modelled.all_gather_cycles, 31),
    )
    rows = [
        {
            "name": time.name,
            "published": time.us,
            "bare": _us(cycles(time.size)),
            "steps": steps,
            "fitted": number % 2 == 1,
        }
        for times, cycles, steps in groups
        for number, time in enumerate(times)
    ]
    host, step = fit_collectives([row for row in rows if row["fitted"]])
    for row in rows:
        row["ours"] = host + step * row["steps"] + row["bare"]
        row["ratio"] = row["ours"] / row["published"]
    return rows, (host, step)


def measure_silicon() -> dict[str, object]:
    """Return all figures: formulas, collectives, a core at two latencies of HBM, and the fitted constants."""
    # With the latency `slow` a copy takes as long as the published start of a DMA.
    slow = round(published.DMA_START.us * GHZ * 1000 - (modelled.dma_start(LATENCY.default) - LATENCY.default))
    latencies = LATENCY.default, slow
    checkout = os.environ.get("NKI_SAMPLES")
    rows = [_row(published.DMA_START, [modelled.dma_start(latency) for latency in latencies])]
    rows.append(_row(published.BANDWIDTH, modelled.load_recording(latencies)))
    for name, time in published.CONVOLUTIONS.items():
        with progress(time.name):
            rows.append(_row(time, modelled.convolution(format_named(name), latencies)))
    with progress(published.BERT.name):
        layers = [LAYERS * cycles for cycles in modelled.encoder_layer(latencies)]
        rows.append(_row(published.BERT, layers))
    for figure in published.KERNELS if checkout else ():
        with progress(figure.time.name):
            rows.append(_row(figure.time, modelled.kernel(figure, Path(checkout), latencies), figure.more))
    collectives, (host, step) = collective_rows()
    found = {
        "formulas": formula_rows(),
        "core": rows,
        "collectives": collectives,
        "fit": {"host_us": host, "step_us": step, "latency": slow},
        "checkout": bool(checkout),
        "plot": display_path(PLOT),
    }
    _plot(found, PLOT)
    return {"silicon": found}


def _plot(found: dict[str, object], path: Path) -> None:
    rows = [*found["core"], *found["collectives"]][::-1]
    figure = new_figure(8, 0.27 * len(rows) + 1.4, layout="constrained")
    axes = figure.subplots()
    axes.axvspan(1 - BAR, 1 + BAR, color="tab:green", alpha=0.15, label=f"within {BAR:.0%}")
    axes.axvline(1, color="black", linewidth=0.8)
    kinds = {
        "against a measurement": ("o", "tab:blue", lambda row: not row.get("ceiling") and not row.get("fitted")),
        "fitted": ("o", "tab:gray", lambda row: row.get("fitted")),
        "published upper bound (pass if < 1)": ("<", "tab:orange", lambda row: row.get("ceiling")),
    }
    for label, (marker, color, chosen) in kinds.items():
        places = [place for place, row in enumerate(rows) if chosen(row)]
        axes.plot([rows[place]["ratio"] for place in places], places, marker, color=color, label=label)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=8)
    ticks = 0.05, 0.1, 0.25, 0.5, 1, 2
    axes.set(
        xscale="log", xlabel="ours / published", title="Open-RTL cycles at 1.4 GHz against Trainium 1, no prediction"
    )
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower left")
    data = [
        {"name": row["name"], "ratio": float(row["ratio"])}
        | {kind: bool(row.get(kind)) for kind in ("fitted", "ceiling")}
        for row in rows[::-1]
    ]
    write_plot(figure, path, data, dpi=100)


def _formula_table(rows: Sequence[Mapping[str, object]]) -> Table:
    cells = [
        {"name": row["name"], "formula": row["formula"]}
        | {f"n{n}": f"{ours:,} / {theirs:,.0f}" for n, (ours, theirs) in zip(LENGTHS, row["cycles"], strict=True)}
        | {"ratio": row["cycles"][-1][0] / row["cycles"][-1][1]}
        for row in rows
    ]
    columns = ["instruction: {name} | published: {formula}", *(f"N = {n}: {{n{n}}}" for n in LENGTHS)]
    columns.append(f"ratio at {LENGTHS[-1]}: {{ratio:.2f}}")
    caption = "cycles from one instruction to the next, ours / published, each of its engine's own clock"
    return table("Cycles of instructions", cells, " | ".join(columns), caption)


def formula_reasons(rows: Sequence[Mapping[str, object]]) -> list[tuple[str, str]]:
    """Return the names and the reasons of formulas that are off (`is_off`); KeyError if a row lacks its reason."""
    found: dict[str, list[str]] = {}
    for row in rows:
        ratios = [ours / theirs for ours, theirs in row["cycles"]]
        own = max(ratios) > 1 + BAR or is_off(ratios[-1]) or row["name"] in REASONS
        if own:
            found.setdefault(REASONS[row["name"]], []).append(row["name"])
        elif any(map(is_off, ratios)):
            found.setdefault(SHORT, []).append("others, below 64 elements")
    return [(", ".join(dict.fromkeys(names)), why) for why, names in found.items()]


def silicon_tables(record: Mapping[str, object]) -> list[Table]:
    """Return the tables of the figures."""
    found = record["silicon"]
    fit, core, collectives = found["fit"], found["core"], found["collectives"]
    notes = [f"within: at most {BAR:.0%} off, or below a ceiling (<=)"]
    notes += [f"{row['name']}: of {row['more']}, which is more work" for row in core if row["more"]]
    notes += [] if found["checkout"] else ["NKI_SAMPLES names no checkout: no published kernels"]
    cells = [
        row
        | {
            "limit": ("<= " if row["ceiling"] else "") + f"{row['published']:,.1f}",
            "right": not is_off(row["ratio"], row["ceiling"]),
        }
        for row in core
    ]
    times = table(
        "A core: open-RTL cycles by the timing model, at 1.4 GHz",
        cells,
        f"""
        what: {{name}} | published us: {{limit}} | cycles: {{cycles:,}} | us: {{ours:,.1f}} | ratio: {{ratio:.2f}}
        within: {{right}} | ratio, LATENCY={fit["latency"]:,}: {{slow:.2f}}
        """,
        caption="; ".join(notes),
    )
    judged = table(
        f"Collectives: {fit['host_us']:.1f} us of the host, {fit['step_us']:.2f} us per step of a ring, and cycles",
        (
            row | {"half": "fitted" if row["fitted"] else "judged", "right": not is_off(row["ratio"])}
            for row in collectives
        ),
        """
        what: {name} | half: {half} | published us: {published:,.0f} | cycles alone, us: {bare:,.1f} | us: {ours:,.1f}
        ratio: {ratio:.2f} | within: {right}
        """,
    )
    names: dict[str, list[str]] = {}
    for row in (*core, *collectives):
        if is_off(row["ratio"], row.get("ceiling", False)):
            why = next((why for words, why in WHY.items() if row["name"].startswith(words)), "no reason known")
            names.setdefault(why, []).append(row["name"])
    reasons = Table("what", "reason", title=f"Why, if off by more than {BAR:.0%}", show_lines=True)
    for what, why in [*formula_reasons(found["formulas"]), *(("; ".join(who), why) for why, who in names.items())]:
        reasons.add_row(what, why)
    sources = Table("what", "from", title="Sources")
    for source in dict.fromkeys(row["source"] for row in core):
        sources.add_row("; ".join(row["name"] for row in core if row["source"] == source), source)
    sources.add_row("collectives", published.ALL_REDUCES[0].source)
    sources.add_row("instructions", "aws-neuron-sdk @1db4d74e: nki/api/nki/isa/__init__.py")
    return [_formula_table(found["formulas"]), times, judged, reasons, sources]
