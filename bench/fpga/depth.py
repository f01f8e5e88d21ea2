"""Cost of the multiply-accumulate's stages on an ECP5, and the utilisation of an array, over `mac_latency`."""

from itertools import product
from pathlib import Path

from rich.table import Table

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.bench.fpga import area
from neuroncore_rtl.bench.fpga.units import UNITS
from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.hdl.tensor.checker import TensorChecker
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.tables import table
from neuroncore_rtl.run.view.plotting import new_figure, write_plot
from neuroncore_rtl.spec.config import LOAD_COLUMNS, PRESETS, Config

__all__ = ["cycles_of_product", "depth_tables", "measure_depth", "plot", "utilisation"]

WIDTHS = (12, 8)  # widths of the multiplied significands, in bits
SIZE = 512
PLOT = SIM_BUILD / "plots" / "mac_stages.png"
CURVES = (("luts", "LUT4"), ("registers", "FF"), ("fmax_mhz", "MHz"))


def cycles_of_product(config: Config, size: int) -> tuple[int, int]:
    """Return the cycles of a square product, a multiple of the array's size, on the engine and at full rate."""
    ideal = size**3 // (config.rows * config.columns)
    first = TensorChecker.LATENCY + config.columns // LOAD_COLUMNS
    return ideal + first + TensorEngine.latency(config), ideal


def utilisation(config: Config, size: int = SIZE) -> float:
    """Return the share of cycles in which the array multiplies."""
    cycles, ideal = cycles_of_product(config, size)
    return ideal / cycles


def measure_depth() -> dict[str, object]:
    """Return a row for each significand width and number of stages, and the path of their plot."""
    rows = []
    for bits, latency in product(WIDTHS, Mac.CUTS):
        with progress(f"ECP5: mac_latency {latency}, {bits} bits"):
            config = PRESETS["full"].with_overrides(mac_latency=latency, significand_bits=bits)
            figures = area.measure_area(UNITS["mac"].build(config))
        own = {"mac_latency": latency, "significand_bits": bits}
        rows.append({**own, **figures, "utilisation": utilisation(config)})
    plot(rows, PLOT)
    return {"depth": rows, "plot": display_path(PLOT)}


def plot(rows: list[dict[str, object]], path: Path) -> None:
    """Plot rows of `measure_depth`: a panel per figure, a curve per width."""
    figure = new_figure(8, 6, layout="constrained")
    panels = figure.subplots(2, 2, sharex=True)
    for axes, (name, unit) in zip(panels.flat, CURVES, strict=False):
        for bits in WIDTHS:
            own = [row for row in rows if row["significand_bits"] == bits]
            axes.plot([row["mac_latency"] for row in own], [row[name] for row in own], "o-", label=f"{bits} bits")
        axes.set(ylabel=unit, ylim=0)
        axes.grid(alpha=0.3)
    panels[0, 0].legend(title="significands")
    axes = panels[1, 1]
    data = [{name: row[name] for name in ("significand_bits", "mac_latency", *dict(CURVES))} for row in rows]
    for size in (SIZE, 2 * SIZE):
        shares = {n: utilisation(PRESETS["full"].with_overrides(mac_latency=n), size) for n in Mac.CUTS}
        axes.plot(list(shares), [100 * share for share in shares.values()], "o-", label=f"{size} x {size} x {size}")
        data += [{"size": size, "mac_latency": n, "utilisation": share} for n, share in shares.items()]
    axes.set(ylabel="utilisation of 128 x 128, %", ylim=(90, 100), xticks=list(Mac.CUTS))
    axes.grid(alpha=0.3)
    axes.legend()
    for axes in panels[1]:
        axes.set_xlabel("mac_latency, stages")
    figure.suptitle("A multiply-accumulate on an ECP5 (LFE5U-85F, speed grade 6)")
    write_plot(figure, path, data, dpi=100)


def depth_tables(record: dict[str, object]) -> list[Table]:
    """Return the table of the figures."""
    columns = """
    bits: {significand_bits} | stages: {mac_latency} | LUT4: {luts} | FF: {registers} | CCU2C: {carries}
    MULT18X18D: {multipliers} | MHz: {fmax_mhz:.1f} | utilisation: {utilisation:.1%}
    """
    title = "Stages of the multiply-accumulate on an ECP5; 512 x 512 x 512 on 128 x 128"
    return [table(title, record["depth"], columns)]
