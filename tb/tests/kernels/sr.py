"""TEST=sr: stochastic rounding beside rounding to nearest even, in a long sum and in gradient descent, with a plot.

The default sum is the published example: 0.5 is added to 1024 in FP16, 2,048 times. Rounding to nearest even stays at
1024, where adjacent FP16 numbers are 1 apart; stochastic rounding arrives near 2048. ADDENDS and DTYPE choose another
sum. Gradient descent with weights in BF16 stops, to nearest even, when a step is below half a last place.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from neuroncore_rtl.golden.arith import decode, round_fp32, round_stochastic
from neuroncore_rtl.kernels.library.stochastic import Problem, accumulate, descend_stochastic
from neuroncore_rtl.run import settings as variables
from neuroncore_rtl.run.report import Report, recordings
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import SEED, STALL, Option, Settings, UsageError, choice, integer, refusals
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.sim.packages import require_packages
from neuroncore_rtl.run.view.plotting import new_figure, write_plot
from neuroncore_rtl.spec.formats import BF16, format_named
from neuroncore_rtl.tb.tests.kernels.workbench import EngineWorkbench
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST"]

ADDENDS, START = [0.5] * 2048, 1024.0  # the published example (AWS Neuron documentation, rounding modes)

SAMPLES, FEATURES, RATE = 16, 4, 1 / 32
"""Least-squares problem of the gradient descent."""

OPTIONS = (
    choice("DTYPE", "fp16", "number format of the sums", ("bf16", "fp16", "fp8e4m3", "fp8e5m2", "fp8e3m4")),
    integer("M", 16, "stochastic runs, each in its own partition with its own random words", 1, 1024),
    Option(
        name="ADDENDS",
        type=Path,
        default=None,
        help="file of the sum's addends, text or .npy, each rounded to FP32; default 2,048 times 0.5",
    ),
    choice("START", None, "first value of the sum, a number of DTYPE; default 1024, with ADDENDS 0"),
    integer("STEPS", 400, "steps of gradient descent; 0 omits it", 0, 2000),
    choice("TARGET", "engine", "the vector engine, or the golden model, where no RTL runs", ("engine", "golden")),
)


def read_addends(path: Path) -> list[float]:
    """Return the numbers of a .npy file or a text, separated by blanks, commas or lines.

    Raises:
        UsageError: if the file has no numbers or an element is no finite number; the message names it.
    """
    try:
        elements = (
            np.load(path).ravel().tolist() if path.suffix == ".npy" else re.split(r"[\s,;]+", path.read_text().strip())
        )
        numbers = [float(element) for element in elements]
    except (ValueError, TypeError) as error:
        raise UsageError(f"ADDENDS must be a file of numbers, not {path}: {error}") from None
    if not np.isfinite(np.float32(numbers)).all():
        at = int(np.argmin(np.isfinite(np.float32(numbers))))
        raise UsageError(f"ADDENDS must be finite FP32 numbers, not {numbers[at]:g}, the element {at} of {path}")
    return numbers


def _sum_of(settings: Settings) -> tuple[float, list[float]]:
    own, fmt = settings.addends, format_named(settings.dtype)
    text = settings.start if settings.start is not None else "0" if own else f"{START:g}"
    try:
        start = np.float32(text)
    except ValueError:
        raise UsageError(f"START must be a number, not {text!r}") from None
    nearest = float(decode(round_fp32(start.reshape(1).view(np.uint32), fmt), fmt)[0])
    if nearest != start:
        raise UsageError(f"START must be a number of {fmt.name}, such as {nearest:g}, not {text}")
    return nearest, read_addends(own) if own else ADDENDS


def _jobs(settings: Settings) -> Jobs:
    require_packages("plots")
    runs, steps, fmt = settings.m, settings.steps, format_named(settings.dtype)
    start, addends = _sum_of(settings)
    rng = np.random.default_rng(settings.seed)
    bench = EngineWorkbench(settings.config)
    inputs, weights = rng.normal(0, 1, (SAMPLES, FEATURES)), rng.uniform(1, 2, FEATURES)
    seeds, sums, fitted, exact = {"rne": None, "sr": settings.seed}, {}, {}, None
    with refusals():
        # With rounding to nearest even, all runs are equal: one suffices.
        for name, rows in (("rne", 1), ("sr", runs)):
            sums[name], _ = bench.place(f"sums {name}", np.full((rows, len(addends) + 1), start), fmt)
            if steps:
                fitted[name], _ = bench.place(f"weights {name}", np.zeros((rows, (steps + 1) * FEATURES)), BF16)
        for name, rounding in seeds.items():
            accumulate(bench.program, sums[name], addends, rounding)
        if steps:
            samples, x = bench.share("inputs", inputs.ravel(), runs)
            targets, y = bench.share("targets", inputs @ weights, runs)
            problem = Problem(samples.tiles[0].reshape(SAMPLES, FEATURES), targets.tiles[0], RATE)
            for name, rounding in seeds.items():
                descend_stochastic(bench.program, fitted[name], problem, rounding)
            exact = x.reshape(SAMPLES, FEATURES), y
    yield replace(bench.job("sr", settings), subject=(bench, sums, fitted, exact))


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    (result,), fmt = results, format_named(settings.dtype)
    bench, own_sums, own_weights, exact = result.job.subject
    codes = partial(bench.codes, result=result)
    start, addends = _sum_of(settings)
    sums = {name: decode(codes(rows), fmt) for name, rows in own_sums.items()}
    sums["exact"] = np.cumsum([start, *addends])[None]
    losses = {}
    if exact is not None:
        x, y = exact
        for name, rows in own_weights.items():
            weights = decode(codes(rows), BF16).reshape(-1, settings.steps + 1, FEATURES)
            losses[name] = np.mean((weights @ x.T - y) ** 2, -1)
        losses["exact"] = _descend(x, y, settings.steps)[None]
    untiled = np.array_equal(_accumulate(start, addends, settings), codes(own_sums["sr"]))
    plot = _plot(settings, sums, losses)
    rows = bench.rows(settings, result) if result.outcome else Report()
    extra = {
        "sum": {name: _spread(values[:, -1], sums["exact"][0, -1]) for name, values in sums.items()},
        **({"squared_error": {name: float(np.mean(loss[:, -1])) for name, loss in losses.items()}} if losses else {}),
        "plot": display_path(plot),
        "data": display_path(plot.with_suffix(".csv")),
    }
    failures = () if untiled else ("the sums differ from those of one tensor without tiles",)
    curves = {
        quantity: {name: values.mean(axis=0).tolist() for name, values in own.items()}
        for quantity, own in (("sum", sums), ("squared_error", losses))
        if own
    }
    return replace(rows, rows={**rows.rows, **extra}, failures=failures, curves=curves)


def _spread(ends: np.ndarray, exact: float) -> dict[str, float]:
    return {"runs": len(ends), "mean": ends.mean(), "error": ends.mean() - exact, "deviation": ends.std()}


def _accumulate(start: float, addends: Sequence[float], settings: Settings) -> np.ndarray:
    """Return the codes [runs, steps] of the stochastic sums, computed without tiles or instructions."""
    fmt, runs = format_named(settings.dtype), settings.m
    codes = [round_fp32(np.full(runs, start, np.float32).view(np.uint32), fmt)]
    for step, addend in enumerate(addends, start=1):
        words = (decode(codes[-1], fmt).astype(np.float32) + np.float32(addend)).view(np.uint32)
        codes.append(round_stochastic(words, fmt, settings.seed, step, np.arange(runs)))
    return np.stack(codes, 1)


def _descend(x: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
    weights, losses = np.zeros(FEATURES), []
    for _ in range(steps + 1):
        residues = x @ weights - y
        losses.append(np.mean(residues**2))
        weights = weights - RATE / SAMPLES * residues @ x
    return np.array(losses)


def _plot(settings: Settings, sums: Mapping[str, np.ndarray], losses: Mapping[str, np.ndarray]) -> Path:
    panels = [(f"sum in {settings.dtype}", "additions", sums)]
    panels += [("gradient descent with BF16 weights: squared error", "steps", losses)] if losses else []
    figure, data = new_figure(5.5 * len(panels), 4.2, layout="constrained"), []
    for axes, (title, unit, curves) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        axes.plot(curves["sr"].T, color="tab:blue", lw=0.5, alpha=0.4)
        axes.plot([], color="tab:blue", label=f"stochastic, {settings.m} runs")
        axes.plot(curves["rne"][0], color="tab:red", label="to nearest even")
        axes.plot(curves["exact"][0], "k--", lw=1, label="exact" if curves is sums else "float64")
        axes.set(title=title, xlabel=unit, yscale="linear" if curves is sums else "log")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        data += _data(title, curves)
    return write_plot(figure, recordings() / "plots" / f"{settings.file_name('sr')}.png", data)


def _data(experiment: str, curves: Mapping[str, np.ndarray]) -> list[dict[str, object]]:
    """Return the points of the curves, a row per step: exact, nearest, mean and deviation of the runs, each run."""
    runs, nearest, exact = (curves[name] for name in ("sr", "rne", "exact"))
    return [
        {
            "experiment": experiment,
            "step": step,
            "exact": float(exact[0, step]),
            "rne": float(nearest[0, step]),
            "sr_mean": float(runs[:, step].mean()),
            "sr_deviation": float(runs[:, step].std()),
            **{f"sr_{run}": float(value) for run, value in enumerate(runs[:, step], start=1)},
        }
        for step in range(runs.shape[1])
    ]


TEST = Scenario(
    name="sr",
    summary="stochastic rounding beside rounding to nearest even: a sum of your own, gradient descent, a plot",
    options=(*OPTIONS, *variables.configuration_options("tiny"), SEED, STALL, *variables.RECORDED),
    jobs=_jobs,
    rows=_rows,
)
