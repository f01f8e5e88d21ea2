"""Times of this RTL against published figures of Trainium 1; this is no prediction of Trainium's times.

PRESET=trainium1 has the clocks of the silicon, PRESET=full one clock of 1.4 GHz. The RTL has no host, and no cores that
start the steps of a ring. So the times of the host and of a step of a ring are free parameters, fitted to half of the
figures that depend on them; the other half tests the fit. With PRESET=full the HBM latency is one, too. The published
kernels are in the checkouts that NKI_SAMPLES, ASST4_TRAINIUM, ACCELOPT, AUTOCOMP, CS152_PACKED and CS152_ROWS name.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from rich.table import Table

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.bench.silicon import modelled, published
from neuroncore_rtl.bench.silicon.formulas import FORMULA_BAR, LENGTHS, REASONS, SHORT, formula_rows
from neuroncore_rtl.bench.silicon.modelled import GHZ
from neuroncore_rtl.bench.silicon.published import PublishedTime
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import LATENCY
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.tables import table
from neuroncore_rtl.run.view.plotting import new_figure, write_plot
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import format_named

__all__ = ["BAR", "formula_reasons", "is_off", "kernel_summary", "measure_silicon", "silicon_tables"]

BAR = 0.25
"""Largest relative error of a ratio of times that needs no stated reason."""

LAYERS = 24
PLOT = SIM_BUILD / "plots" / "silicon.png"
_ARRAY = "at one clock of 1.4 GHz the array has half of the silicon's rate"
WHY = {
    "convolution": _ARRAY,
    "all-reduce": "without Config.ring_rate the links limit a collective, on the silicon DMA engines that are slower",
    "BERT": "24 times one scheduled encoder layer, without embeddings, and without the host's start of an inference",
    "start of a DMA": "a copy takes HBM's 64 cycles and 16 of its own; it fetches no descriptors, and its completion "
    "is not written to memory",
    "allocated attention": "tiles of q and k have rows of 1 KiB, which take as long as 2.5 KiB",
    "AdamW": "the profile has two products less per step: x - c x and c x x are single operations of the scalar engine",
    "rotary": "in the profile the vector engine waits for 28 % of the time; it works for 3.1 ms, as here. The kernel's "
    "loop is Python's range, whose 512 turns AWS's compiler unrolls",
    "softmax of products": "AWS's compiler writes 0.75 GB of intermediate results to HBM and reads them again",
    "1-D convolution": "instructions of three elements, which take 94 ns here and at most 61 on the silicon",
    "packed convolution": "tiles are loaded in rows of 68 bytes, which overlap; AWS's compiler must load longer rows",
    "convolution by rows": "each row is loaded again for each element of the filter, and weights one by one",
    "product 4096 x 8192 x 8192 bf16, tiled": "the loads that the kernel asks for take at least 78 ms at the published "
    "rate of descriptors, so AWS's compiler must have removed or merged some",
}
"""Reasons for errors above `BAR`, by the first words of a figure's name."""


def is_off(ratio: float, ceiling: bool = False) -> bool:
    """Return whether a ratio to a published time differs from 1 by more than `BAR`, or to a ceiling exceeds 1."""
    return ratio > 1 if ceiling else abs(ratio - 1) > BAR


def measure_silicon(preset: str) -> dict[str, object]:
    """Return all figures: formulas, collectives, a core, and the fitted constants.

    Without a clock in the preset, the core also runs with the fitted latency of HBM.
    """
    config = PRESETS[preset]
    ghz = config.clock_mhz / 1000 or GHZ
    latencies = [LATENCY.default]
    if not config.dma_start:  # the HBM latency at which a copy takes as long as the published start of a DMA
        others = modelled.dma_start(config, LATENCY.default) - LATENCY.default
        latencies.append(round(published.DMA_START.us * GHZ * 1000 - others))
    rows: list[dict[str, object]] = []

    def add(time: PublishedTime, cycles: Sequence[float]) -> None:
        row = {"name": time.name, "published": time.us}
        row |= {name: getattr(time, name) for name in ("ceiling", "source", "run", "use")}
        times = [(count + config.launch_cycles * time.run) / ghz / 1000 for count in cycles]
        row |= {"cycles": round(cycles[0]), "ours": times[0], "ratio": times[0] / time.us}
        rows.append(row | ({"slow": times[1] / time.us} if len(times) > 1 else {}))

    add(published.DMA_START, [modelled.dma_start(config, latency) for latency in latencies])
    add(published.DEPENDENCE, [modelled.dependence(config)] * len(latencies))
    add(published.BANDWIDTH, modelled.load_recording(config, latencies))
    for name, time in published.CONVOLUTIONS.items():
        with progress(time.name):
            add(time, modelled.convolution(config, format_named(name), latencies))
    with progress(published.BERT.name):
        add(published.BERT, [LAYERS * cycles for cycles in modelled.encoder_layer(preset, latencies)])
    others, refused = len(rows), []
    checkouts = {figure.checkout: os.environ.get(figure.checkout) for figure in published.KERNELS}
    for figure in published.KERNELS:
        if checkout := checkouts[figure.checkout]:
            with progress(figure.time.name):
                try:
                    add(figure.time, modelled.kernel(config, figure, Path(checkout), latencies))
                except ValueError as error:  # an hour's other rows remain
                    refused.append(f"{figure.time.name}: {error}")
    collectives, (host, step) = modelled.collective_rows(config)
    found = {
        "preset": preset,
        "ghz": ghz,
        "formulas": formula_rows(config),
        "core": rows,
        "kernels": [kernel_summary(rows[others:], judged=judged) for judged in (True, False)],
        "collectives": collectives,
        "fit": {"host_us": host, "step_us": step, "latency": latencies[-1]},
        "absent": [variable for variable, checkout in checkouts.items() if not checkout],
        "refused": refused,
        "plot": display_path(PLOT),
    }
    _plot(found, PLOT)
    return {"silicon": found}


def kernel_summary(rows: Sequence[Mapping[str, object]], *, judged: bool) -> dict[str, object]:
    """Return number, median ratio and number within `BAR` of measured kernels, or of the `judged` ones alone."""
    ratios = [row["ratio"] for row in rows if not row["ceiling"] and (not judged or row["use"] == "judged")]
    near = sum(not is_off(ratio) for ratio in ratios)
    return {"judged": judged, "kernels": len(ratios), "near": near, "median": median(ratios) if ratios else None}


def _plot(found: dict[str, object], path: Path) -> None:
    rows = [*found["core"], *found["collectives"]][::-1]
    figure = new_figure(8, 0.27 * len(rows) + 1.4, layout="constrained")
    axes = figure.subplots()
    axes.axvspan(1 - BAR, 1 + BAR, color="tab:green", alpha=0.15, label=f"within {BAR:.0%}")
    axes.axvline(1, color="black", linewidth=0.8)
    kinds = {
        "against a measurement": ("o", "tab:blue", lambda row: not row.get("ceiling") and row["use"] == "judged"),
        "fitted or studied": ("o", "tab:gray", lambda row: row["use"] != "judged"),
        "published upper bound (pass if < 1)": ("<", "tab:orange", lambda row: row.get("ceiling")),
    }
    for label, (marker, color, chosen) in kinds.items():
        places = [place for place, row in enumerate(rows) if chosen(row)]
        axes.plot([rows[place]["ratio"] for place in places], places, marker, color=color, label=label)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=8)
    ticks = 0.05, 0.1, 0.25, 0.5, 1, 2
    axes.set(
        xscale="log",
        xlabel="ours / published",
        title=f"Open-RTL cycles at {found['ghz']} GHz against Trainium 1, no prediction",
    )
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower left")
    data = [
        {"name": row["name"], "ratio": float(row["ratio"]), "use": row["use"], "ceiling": bool(row.get("ceiling"))}
        for row in rows[::-1]
    ]
    write_plot(figure, path, data, dpi=100)


def _formula_table(rows: Sequence[Mapping[str, object]]) -> Table:
    cells = [
        {"name": row["name"], "formula": row["formula"]}
        | {f"n{n}": f"{ours:,.0f} / {theirs:,.0f}" for n, (ours, theirs) in zip(LENGTHS, row["cycles"], strict=True)}
        | {"ratio": row["cycles"][-1][0] / row["cycles"][-1][1], "whole": row["whole"]}
        for row in rows
    ]
    columns = ["instruction: {name} | published: {formula}", *(f"N = {n}: {{n{n}}}" for n in LENGTHS)]
    columns += [f"ratio at {LENGTHS[-1]}: {{ratio:.2f}}", "with overhead: {whole:,.0f}"]
    caption = (
        "cycles from one instruction to the next, ours / published, of the engine's own clock, without the static "
        f"overhead; with overhead: ours at {LENGTHS[-1]} with the preset's access_cycles"
    )
    return table("Cycles of instructions", cells, " | ".join(columns), caption)


def formula_reasons(rows: Sequence[Mapping[str, object]]) -> list[tuple[str, str]]:
    """Return the names and the reasons of formulas that are off; KeyError if a row lacks its reason."""
    found: dict[str, list[str]] = {}
    for row in rows:
        ratios = [ours / theirs for ours, theirs in row["cycles"]]
        far = [abs(ratio - 1) > FORMULA_BAR for ratio in ratios]
        if any(far) and (row["name"] in REASONS or far[-1] or max(ratios) > 1 + FORMULA_BAR):
            found.setdefault(REASONS[row["name"]], []).append(row["name"])
        elif any(far):
            found.setdefault(SHORT, []).append("others, below 64 elements")
    return [(", ".join(dict.fromkeys(names)), why) for why, names in found.items()]


def silicon_tables(record: Mapping[str, object]) -> list[Table]:
    """Return the tables of the figures."""
    found = record["silicon"]
    fit, core, collectives = found["fit"], found["core"], found["collectives"]
    notes = [f"within: at most {BAR:.0%} off, or below a ceiling (<=)"]
    notes += ["us: with the start and the end of a run, where the published time has them"]
    notes += ["fitted: set a rate; studied: led to a change of a program here; judged: neither"]
    notes += [
        f"{one['kernels']} measured{' and judged' * one['judged']} kernels: median {one['median']:.2f}, "
        f"{one['near']} within {BAR:.0%}"
        for one in found["kernels"]
        if one["kernels"]
    ]
    notes += [f"{variable} names no checkout: its kernels are absent" for variable in found["absent"]]
    notes += [f"did not run: {one}" for one in found["refused"]]
    cells = [
        row
        | {
            "limit": ("<= " if row["ceiling"] else "") + f"{row['published']:,.1f}",
            "right": not is_off(row["ratio"], row["ceiling"]),
        }
        for row in core
    ]
    slow = f" | ratio, LATENCY={fit['latency']:,}: {{slow:.2f}}" if "slow" in core[0] else ""
    times = table(
        f"A core, PRESET={found['preset']}: open-RTL cycles by the timing model, at {found['ghz']} GHz",
        cells,
        "what: {name} | use: {use} | published us: {limit} | cycles: {cycles:,} | us: {ours:,.1f} | "
        f"ratio: {{ratio:.2f}} | within: {{right}}{slow}",
        caption="; ".join(notes),
    )
    judged = table(
        f"Collectives: {fit['host_us']:.1f} us of the host, {fit['step_us']:.2f} us per step of a ring, and cycles",
        (row | {"right": not is_off(row["ratio"])} for row in collectives),
        """
        what: {name} | use: {use} | published us: {published:,.0f} | cycles alone, us: {bare:,.1f} | us: {ours:,.1f}
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
