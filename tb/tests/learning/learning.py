"""What TESTs share in which a network learns on the core: one image runs on it, or on golden beside the timing model,
and the losses are drawn."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from neuroncore_rtl.golden.core import Core
from neuroncore_rtl.golden.timing import Prediction
from neuroncore_rtl.kernels.program import Image
from neuroncore_rtl.run.check.runs import cycles_of_runs
from neuroncore_rtl.run.core import hbm_of, summary
from neuroncore_rtl.run.execution import execute
from neuroncore_rtl.run.images import ImageTask
from neuroncore_rtl.run.modelled import predicted
from neuroncore_rtl.run.profiled import profile_lines
from neuroncore_rtl.run.report import progress, recordings
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.spec.costs import busy_cycles

__all__ = ["Curve", "Learned", "disagreements", "draw_losses", "ends_of", "ideal_cycles", "learn"]

LIMIT = 5_000_000
"""Cycles that a section may take before a run is given up."""


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What became of an image.

    Arguments:
        hbm: what it left there, uint8 from address 0.
        golden: what golden left; without RTL the same.
        cycles: of each run of a section.
        measured: fields of a report that are of the run alone.
        prediction: the timing model's; None of RTL.
        notes: what a report says of the run.
    """

    hbm: np.ndarray
    golden: np.ndarray
    cycles: Sequence[int]
    measured: Mapping[str, int]
    failures: tuple[str, ...] = ()
    prediction: Prediction | None = None
    notes: Mapping[str, object] = field(default_factory=dict)


def learn(image: Image, settings: Settings, name: str, doing: str) -> Learned:
    """Run an image on what TARGET asks for, and compare all of HBM with golden's.

    Arguments:
        image: what learns, with its runs.
        settings: of the TEST, with the options of the core.
        name: of what is recorded.
        doing: what golden does, for whoever waits.
    """
    if settings.target == "model":
        with progress(f"golden: {doing}"):
            outcome = Core(image.config, image.memory()).run(image.base)
        ended = (outcome.exit_code, outcome.error) == (0, None)
        found = predicted(image, settings)
        records, end = found.records, found.cycles
        result = {
            "hbm": outcome.hbm,
            "golden": outcome.hbm,
            "measured": {},
            "failures": () if ended else (f"golden must end without an error, not with {outcome.error}",),
            "prediction": found,
            "notes": profile_lines(settings, name, image, found),
        }
    else:
        profiled = bool(settings.profile)
        task = ImageTask(
            machine=settings.config,
            images=[image],
            behaviour=hbm_of(settings),
            limit=LIMIT * len(image.runs),
            profiled=profiled,
        )
        name = f"{name}-{settings.sim}"
        done = execute(task, settings, f"core-{name}", pictures=name)
        run = done.outcome.parts[0]
        records, end = run.events, run.cycles
        result = {
            "hbm": done.outcome.memories["hbm"][0],
            "golden": done.golden[0],
            "measured": {"compared": done.compared, "mismatches": done.mismatches, "cycles": done.cycles},
            "failures": done.failures,
            "notes": {
                "busy": summary(run, image.config)["busy"],
                **done.files,
                **profile_lines(settings, name, image, run),
            },
        }
    addresses, issued = [record.address for record in records], [record.issued for record in records]
    return Learned(cycles=cycles_of_runs(image, addresses, issued, end), **result)


def ideal_cycles(image: Image) -> int:
    """Return the cycles of the busiest engine if it never waits, of the tensor engine those in which a column enters
    the array."""
    cycles, times = Counter(), Counter(image.runs)
    for block, entries in zip(image.blocks, image.entries, strict=True):
        once = sum(busy_cycles(entry.instruction, image.config) for entry in entries)
        cycles[block.queue] += times[block.section] * once
    return max(cycles.values())


def ends_of(curves: Mapping[str, np.ndarray]) -> dict[str, dict[str, str]]:
    """Return for a report how far losses have fallen; curves: those of all steps, by name."""
    ends = {name: _ends(losses) for name, losses in curves.items()}
    return {
        "loss, first and last quarter": {name: f"{first:.3f} to {last:.3f}" for name, (first, last) in ends.items()}
    }


def disagreements(losses: np.ndarray) -> Iterator[str]:
    """Say if nothing was learned; losses: of all steps."""
    first, last = _ends(losses)
    if not last < first:
        yield f"the loss must fall, but the last steps' is {last:.3f} and that of the first ones {first:.3f}"


def _ends(losses: np.ndarray) -> tuple[float, float]:
    """Return the mean losses of the first and the last steps, a quarter each."""
    few = -(-len(losses) // 4)
    return float(losses[:few].mean()), float(losses[-few:].mean())


@dataclass(frozen=True)
class Curve:
    """Losses in a picture.

    Arguments:
        losses: float64 [steps].
        label: what they are.
        colour, line: of the means of a few steps; see matplotlib.
        faint: whether each step's loss is there, too.
    """

    losses: np.ndarray
    label: str
    colour: str = "tab:blue"
    line: str = "-"
    faint: bool = True


def draw_losses(name: str, title: str, curves: Sequence[Curve]) -> Path:
    """Draw losses, and over them means of a few steps; return where the picture is.

    Arguments:
        name: of the picture.
        title: above it.
        curves: of as many steps each.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for curve in curves:
        count = len(curve.losses)
        few = max(1, count // 20)
        means = np.convolve(curve.losses, np.full(few, 1 / few), "valid")
        steps = np.arange(1, count + 1)
        if curve.faint:
            axes.plot(steps, curve.losses, color=curve.colour, lw=0.5, alpha=0.3)
        axes.plot(steps[few - 1 :], means, curve.line, color=curve.colour, lw=1.2, label=curve.label)
    axes.set(title=title, xlabel="steps", ylabel="cross entropy")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path = recordings() / "plots" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
