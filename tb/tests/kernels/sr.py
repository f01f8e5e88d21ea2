"""TEST=sr: the purpose of stochastic rounding, shown on the hardware, with a plot.

The published example adds 0.5 to 1024 in FP16, 2,048 times. Rounding to nearest even stays at 1024, where adjacent FP16
numbers are 1 apart; stochastic rounding arrives near 2048. The second experiment is gradient descent with BF16 weights:
rounding to nearest even stops when a step is below half a last place, stochastic rounding continues.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from neuroncore_rtl.golden.arith import decode, round_stochastic
from neuroncore_rtl.kernels.library.stochastic import Problem, accumulate, descend_stochastic
from neuroncore_rtl.run.report import Report, display_path
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import RECORDED, SEED, STALL, Settings, configuration_options, integer, refusals
from neuroncore_rtl.spec.formats import BF16, FP16
from neuroncore_rtl.tb.tests.figures import headless_pyplot, write_figure
from neuroncore_rtl.tb.tests.kernels.workbench import EngineWorkbench
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST"]

ADDITIONS, START, ADDEND = 2048, 1024.0, 0.5  # AWS Neuron documentation, rounding modes
SAMPLES, FEATURES, RATE = 16, 4, 1 / 32
_M = integer("M", 16, "independent runs, one partition each", 1, 1024)
_STEPS = integer("STEPS", 400, "steps of gradient descent", 1, 2000)


def _jobs(settings: Settings) -> Jobs:
    runs, steps, seed = settings.m, settings.steps, settings.seed
    rng = np.random.default_rng(seed)
    bench = EngineWorkbench(settings.config)
    inputs, weights = rng.normal(0, 1, (SAMPLES, FEATURES)), rng.uniform(1, 2, FEATURES)
    seeds, sums, fitted = {"rne": None, "sr": seed}, {}, {}
    with refusals():
        # With rounding to nearest even, all runs are equal: one suffices.
        for name, rows in (("rne", 1), ("sr", runs)):
            sums[name], _ = bench.place(f"sums {name}", np.full((rows, ADDITIONS + 1), START), FP16)
            fitted[name], _ = bench.place(f"weights {name}", np.zeros((rows, (steps + 1) * FEATURES)), BF16)
        samples, exact_inputs = bench.share("inputs", inputs.ravel(), runs)
        targets, exact_targets = bench.share("targets", inputs @ weights, runs)
        problem = Problem(samples.tiles[0].reshape(SAMPLES, FEATURES), targets.tiles[0], RATE)
        for name, rounding in seeds.items():
            accumulate(bench.program, sums[name], 1, ADDEND, rounding)
        for name, rounding in seeds.items():
            descend_stochastic(bench.program, fitted[name], problem, rounding)
    experiment = bench, sums, fitted, exact_inputs.reshape(SAMPLES, FEATURES), exact_targets
    yield replace(bench.job("sr", settings), subject=experiment)


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    (result,), runs, steps = results, settings.m, settings.steps
    bench, own_sums, own_weights, x, y = result.job.subject
    codes = partial(bench.codes, result=result)
    sums = {name: decode(codes(rows), FP16) for name, rows in own_sums.items()}
    fitted = {name: decode(codes(rows), BF16).reshape(-1, steps + 1, FEATURES) for name, rows in own_weights.items()}
    losses = {n: np.mean((w @ x.T - y) ** 2, -1) for n, w in fitted.items()}
    losses["float64"] = _descend(x, y, steps)
    plot = _plot(sums, losses)
    untiled = (_accumulate(runs, settings.seed) == sums["sr"]).all()
    ends = sums["sr"][:, -1]
    extra = {
        "1024 + 2048 * 0.5": {
            "to nearest even": f"{sums['rne'][0, -1]:g}",
            "stochastic, mean": f"{ends.mean():.1f}",
            "standard deviation": f"{ends.std():.1f}",
        },
        "squared error at the end": {name: f"{np.mean(loss[..., -1]):.2e}" for name, loss in losses.items()},
        "equal to one untiled tensor": "yes" if untiled else "no",
        "plot": display_path(plot),
    }
    failures = () if untiled else ("the sums differ from those of one tensor without tiles",)
    rows = bench.rows(settings, result)
    return replace(rows, rows={**rows.rows, **extra}, failures=failures)


def _accumulate(runs: int, seed: int) -> np.ndarray:
    sums = np.full((runs, ADDITIONS + 1), START)
    for step in range(1, ADDITIONS + 1):
        words = (sums[:, step - 1] + ADDEND).astype(np.float32).view(np.uint32)
        sums[:, step] = decode(round_stochastic(words, FP16, seed, step, np.arange(runs)), FP16)
    return sums


def _descend(x: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
    weights, losses = np.zeros(FEATURES), []
    for _ in range(steps + 1):
        residues = x @ weights - y
        losses.append(np.mean(residues**2))
        weights = weights - RATE / SAMPLES * residues @ x
    return np.array(losses)


def _plot(sums: dict[str, np.ndarray], losses: dict[str, np.ndarray]) -> Path:
    pyplot = headless_pyplot()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    left.plot(START + ADDEND * np.arange(ADDITIONS + 1), "k--", lw=1, label="exact")
    right.semilogy(losses["float64"], "k--", lw=1, label="float64")
    for plot, found, what in ((left.plot, sums, ""), (right.semilogy, losses, "BF16 weights, ")):
        plot(found["sr"].T, color="tab:blue", lw=0.5, alpha=0.5)
        plot([], color="tab:blue", label=f"{what}stochastic, {len(found['sr'])} runs")
        plot(found["rne"][0], color="tab:red", label=f"{what}to nearest even")
    left.set(title="FP16: 1024 + 0.5 + 0.5 + ...", xlabel="additions", ylabel="sum")
    right.set(title="Gradient descent, least squares", xlabel="steps", ylabel="mean squared error")
    return write_figure(figure, "sr")


TEST = Scenario(
    name="sr",
    summary="the purpose of stochastic rounding: a long FP16 sum and BF16 gradient descent, with a plot",
    options=(_M, _STEPS, *configuration_options("tiny"), SEED, STALL, *RECORDED),
    jobs=_jobs,
    rows=_rows,
)
