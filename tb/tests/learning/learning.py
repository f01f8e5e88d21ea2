"""What TESTs share in which a network learns on the core: one image runs on it, or on golden beside the timing model,
and the losses are drawn."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroncore_rtl.kernels.program import Image
from neuroncore_rtl.run.check.runs import cycles_of_runs
from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.report import recordings
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.spec.costs import busy_cycles

__all__ = [
    "Curve", "cycles_by_run", "disagreements", "draw_losses", "ended", "ends_of", "ideal_training_cycles",
    "learning_job", "learning_rows",
]  # fmt: skip

LIMIT = 5_000_000
"""Cycles that a section may take before a run is stopped."""


def learning_job(image: Image, settings: Settings, name: str, note: str, subject: object = None) -> ImageJob:
    """Return the job of an image that trains a network.

    Arguments:
        image: the image, with its runs of sections.
        settings: of the TEST, with the options of the core.
        name: of the recorded files.
        note: what golden computes, for the progress display.
        subject: see `ImageJob`.
    """
    simulated = {} if settings.target == "model" else {"limit": LIMIT * len(image.runs)}
    name = name if settings.target == "model" else f"{name}-{settings.sim}"
    names = {"name": f"core-{name}", "pictures": name, "note": note, "subject": subject}
    return ImageJob(machine=settings.config, images=[image], behaviour=hbm_of(settings), **simulated, **names)


def learning_rows(result: Result) -> dict[str, object]:
    """Return the rows of a report that tell of the run of one image."""
    if result.prediction is not None:
        return result.profile_rows
    return {"busy": result.rows["busy"], **result.files, **result.profile_rows}


def ended(result: Result) -> Iterator[str]:
    """Say if golden alone, without RTL, has not run to its end."""
    if result.prediction is not None:
        (outcome,) = result.expected.outcomes
        if (outcome.exit_code, outcome.error) != (0, None):
            yield f"golden must end without an error, not with {outcome.error}"


def cycles_by_run(result: Result) -> list[int]:
    """Return the cycles of each run of a section."""
    records = result.prediction.records if result.prediction else result.outcome.parts[0].events
    addresses, issued = [record.address for record in records], [record.issued for record in records]
    end = result.cycles if result.prediction else result.outcome.parts[0].cycles
    return cycles_of_runs(result.job.images[0], addresses, issued, end)


def ideal_training_cycles(image: Image) -> int:
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
