"""Benchmark of NeuronLink: cycles of all-reduces next to the bound of the links, and to the timing model."""

from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from rich.table import Table

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.bench import instance as instance_bench
from neuroncore_rtl.golden.link.cluster import NETWORKS, Cluster, all_reduce
from neuroncore_rtl.golden.link.timing import LinkCase, Parameters, calibrate, cycles_of, timing_errors
from neuroncore_rtl.hdl.link.end import LinkEnd
from neuroncore_rtl.hdl.link.router import Router
from neuroncore_rtl.kernels.library.collectives import torus_all_reduce
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.tables import table
from neuroncore_rtl.run.view.plotting import new_figure, write_plot
from neuroncore_rtl.spec.instance import INSTANCES
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, Group
from neuroncore_rtl.spec.link import CORES_PER_CHIP
from neuroncore_rtl.tb.tests.links.collective import ALLREDUCE, torus_bound
from neuroncore_rtl.tb.tests.links.options import instance_of

__all__ = ["link_tables", "measure_link"]

CHIPS = (2, 4, 8, 16)  # one core of each chip participates
SIZES = (64, 512, 4096, 32768, 262144, 1 << 20)
TORUS_SIZES = (4096, 65536, 1 << 19, 1 << 20)
PLOT = SIM_BUILD / "plots" / "neuronlink_model.png"
GRADIENTS = 1 << 28  # 1 GiB of FP32


def _all_reduce(chips: int, size: int) -> dict[str, object]:
    report = ALLREDUCE.run(ALLREDUCE.settings([f"CHIPS={chips}", "CORES=1", f"BYTES={size}"]))
    measured = {"cycles": report.cycles, "bound": report.ideal_cycles, "bit_exact": not report.problems}
    return {"chips": chips, "bytes": size} | measured


def _torus_all_reduce(algorithm: str, size: int) -> dict[str, object]:
    apart = "" if algorithm == "torus" else "GROUPS=2 STRIDE=2"
    words = f"CHIPS=16 TOPOLOGY=torus ALGORITHM={algorithm} {apart} BYTES={size}"
    settings = ALLREDUCE.settings(words.split())
    report, instance = ALLREDUCE.run(settings), instance_of(settings)
    error = None
    if algorithm == "torus":
        # An FP32 all-reduce of each core of chip 0 and the same core of all other chips.
        groups = [Group(core, CORES_PER_CHIP, instance.chips) for core in range(CORES_PER_CHIP)]
        whole = partial(Collective, kind=CollectiveKind.ALL_REDUCE, rank=0, count=size // 4)
        lists = [torus_all_reduce(instance, whole(group=group)) for group in groups]
        error = max(sum(cycles_of(LinkCase.of(instance, one)) for one in steps) for steps in lists) / report.cycles - 1
    bound = torus_bound(instance, CORES_PER_CHIP, size, size)
    measured = {"cycles": report.cycles, "bound": bound, "bit_exact": not report.problems, "model_error": error}
    return {"algorithm": algorithm, "bytes": size} | measured


def measure_link() -> dict[str, object]:
    """Return the figures of simulated all-reduces and of the timing model."""
    rows = [_all_reduce(chips, size) for chips in CHIPS for size in SIZES]
    measured = []
    for row in rows:
        instance = instance_of(ALLREDUCE.settings([f"CHIPS={row['chips']}"]))
        case = LinkCase(instance=instance, ranks=row["chips"], stride=CORES_PER_CHIP, count=row["bytes"] // 4)
        measured.append((case, row["cycles"]))
    for row, error in zip(rows, timing_errors(measured, Parameters()), strict=True):
        row["model_error"] = float(error)
    instance = measured[0][0].instance
    hop = Router.LATENCY + LinkEnd.SEND_LATENCY + LinkEnd.RECEIVE_LATENCY
    return {
        "link": rows,
        "torus": [_torus_all_reduce(algorithm, size) for size in TORUS_SIZES for algorithm in ("ring", "torus")],
        "beside": instance_bench.measure_beside(),
        "instance_speed": instance_bench.measure_speed(),
        "best_parameters": asdict(calibrate(measured)),
        "hop_cycles": {"router": Router.LATENCY, "link": hop - Router.LATENCY, "wire": instance.link_latency},
        "model": plot_model(PLOT),
        "plot": display_path(PLOT),
    }


def plot_model(path: Path) -> dict[str, dict[int, float]]:
    """Plot the modelled time of an all-reduce over the number of chips; return milliseconds by network and chips."""
    found = {}
    figure = new_figure(7, 4, layout="constrained")
    axes = figure.subplots()
    for name, gbits in NETWORKS.items():
        times = {}
        for instances in 2 ** np.arange(9):
            cluster = Cluster(instance=INSTANCES["trn1"], instances=int(instances), gbits=gbits)
            cycles = all_reduce(cluster, GRADIENTS).cycles
            times[cluster.chips] = cycles / cluster.clock_ghz / 1e6
        found[name] = times
        axes.plot(times.keys(), times.values(), marker="o", label=f"{gbits} Gbit/s per instance")
    axes.set(
        xscale="log",
        xlabel="chips (16 per instance)",
        ylabel="ms at 1.4 GHz",
        ylim=(0, None),
        title=f"All-reduce of {GRADIENTS * 4 >> 30} GiB in FP32: a model, not RTL",
    )
    axes.set_xticks(list(times), [str(chips) for chips in times])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    rows = [
        {"chips": chips, "gbits_per_s_per_instance": NETWORKS[name], "milliseconds": float(time)}
        for name, times in found.items()
        for chips, time in times.items()
    ]
    write_plot(figure, path, rows, dpi=100)
    return found


def link_tables(record: dict[str, object]) -> list[Table]:
    """Return the tables of the figures."""
    hop = record["hop_cycles"]
    measured = table(
        "All-reduce of FP32 on a ring, one core per chip, flits of 16 bytes",
        (row | {"share": row["bound"] / row["cycles"]} for row in record["link"]),
        """
        chips: {chips} | bytes: {bytes:,} | cycles: {cycles:,} | ring bound: {bound:,} | share of it: {share:.1%}
        model: {model_error:+.1%} | bit-exact: {bit_exact}
        """,
        caption=f"a hop: {hop['router']} cycles in the router, {hop['link']} in the ends of a link, "
        f"{hop['wire']} on its wire; model plotted in {record['plot']}",
    )
    times = record["model"]
    model = table(
        f"Model, not RTL: all-reduce of {GRADIENTS * 4 >> 30} GiB in FP32, ms at 1.4 GHz",
        ({"chips": chips} | {name: times[name][chips] for name in times} for chips in next(iter(times.values()))),
        " | ".join(["chips: {chips}", *(f"{name}, {NETWORKS[name]} Gbit/s: {{{name}:.1f}}" for name in times)]),
    )
    errors = ("-" if row["model_error"] is None else f"{row['model_error']:+.1%}" for row in record["torus"])
    shares = (row | {"share": row["bound"] / row["cycles"]} for row in record["torus"])
    rows = (row | {"model": error} for row, error in zip(shares, errors, strict=True))
    torus = table(
        "All-reduce of FP32 over a 4 x 4 torus, a vector on each of the two cores of a chip, flits of 16 bytes",
        rows,
        """
        algorithm: {algorithm} | bytes: {bytes:,} | cycles: {cycles:,} | bound of four links: {bound:,}
        share of it: {share:.1%} | model: {model} | bit-exact: {bit_exact}
        """,
    )
    return [measured, torus, *instance_bench.instance_tables(record["beside"], record["instance_speed"]), model]
