"""Shared parts of TESTs in which a network learns on the core."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.kernels.program import Image
from neuroncore_rtl.run.check.runs import cycles_of_runs
from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.report import recordings
from neuroncore_rtl.run.result import Result, predicted_rows
from neuroncore_rtl.run.settings import Option, Settings, choice, core_options
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.sim.packages import require_packages
from neuroncore_rtl.run.view.plotting import new_figure, write_plot
from neuroncore_rtl.spec.costs import busy_cycles

__all__ = [
    "Curve", "cycles_by_run", "disagreements", "draw_losses", "golden_failures", "ideal_training_cycles",
    "learning_job", "learning_rows", "loss_rows", "target_rows", "training_options",
]  # fmt: skip

LIMIT = 5_000_000  # cycle limit of a section

TARGET = choice(
    "TARGET", "core", "the whole core, its timing model, or golden, the quickest, without cycles: no RTL runs in these",
    ("core", "model", "golden"),
)  # fmt: skip


ENDS = "first_quarter", "last_quarter"


def training_options(preset: str) -> tuple[Option, ...]:
    """Return the variables of a machine that trains; `preset` is the default of PRESET."""
    return TARGET, *core_options("core", None, preset)[1:]


def learning_job(image: Image, settings: Settings, note: str, subject: object = None, name: str = "") -> ImageJob:
    """Return the job of an image that trains a network; name: see `Job`."""
    require_packages("plots")  # before a run that takes long
    simulated = {"limit": LIMIT * len(image.runs)} if settings.target == "core" else {}
    given = {"name": name, "note": note, "subject": subject, "behaviour": hbm_of(settings)}
    return ImageJob(machine=settings.config, images=[image], **simulated, **given)


def learning_rows(result: Result) -> dict[str, object]:
    """Return the report rows of the run of one image."""
    if result.outcome is None:
        return result.profile_rows
    return {"busy": result.rows["busy"], **result.files, **result.profile_rows}


def target_rows(settings: Settings, results: Sequence[Result]) -> dict[str, object]:
    """Return the rows of a report about the timing model, golden or the core."""
    predictions = [result.prediction for result in results if result.prediction]
    if predictions:
        return predicted_rows(sum(predictions[1:], predictions[0]), settings.config)
    return {"config": settings.config.named}


def golden_failures(result: Result) -> Iterator[str]:
    """Yield a failure if golden, as the only executor, has not completed without an error."""
    if result.outcome is None:
        (outcome,) = result.expected.outcomes
        if (outcome.exit_code, outcome.error) != (0, None):
            yield f"golden must end without an error, not with {outcome.error}"


def cycles_by_run(result: Result) -> list[int]:
    """Return the cycles of each run of a section; empty for golden, which has no cycles."""
    if result.cycles is None:
        return []
    records = result.prediction.records if result.prediction else result.outcome.parts[0].events
    addresses, issued = [record.address for record in records], [record.issued for record in records]
    end = result.cycles if result.prediction else result.outcome.parts[0].cycles
    return cycles_of_runs(result.job.images[0], addresses, issued, end)


def ideal_training_cycles(image: Image) -> int:
    """Return the cycles of the busiest engine without stalls; the tensor engine's count the moved columns."""
    cycles, times = Counter(), Counter(image.runs)
    for block, entries in zip(image.blocks, image.entries, strict=True):
        once = sum(busy_cycles(entry.instruction, image.config) for entry in entries)
        cycles[block.queue] += times[block.section] * once
    return max(cycles.values())


def loss_rows(curves: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the mean losses of the first and the last quarter of the steps; `curves` has all losses by name."""
    return {"loss": {name: dict(zip(ENDS, _ends(losses), strict=True)) for name, losses in curves.items()}}


def disagreements(losses: np.ndarray) -> Iterator[str]:
    """Yield a failure if the losses of all steps show that nothing was learned."""
    first, last = _ends(losses)
    if not last < first:
        yield f"the loss must fall, but is {last:.3f} in the last steps after {first:.3f} in the first ones"


def _ends(losses: np.ndarray) -> tuple[float, float]:
    few = -(-len(losses) // 4)
    return float(losses[:few].mean()), float(losses[-few:].mean())


@dataclass(frozen=True)
class Curve:
    """Losses of a training, the column `name` of the data; `faint` also draws each step's loss."""

    name: str
    losses: np.ndarray
    label: str
    colour: str = "tab:blue"
    line: str = "-"
    faint: bool = True


def draw_losses(name: str, title: str, curves: Sequence[Curve]) -> dict[str, str]:
    """Draw the losses and their moving means; return the paths of the picture and of its data, for a report."""
    figure = new_figure(7, 4.2, layout="constrained")
    axes = figure.subplots()
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
    losses = {curve.name: curve.losses.tolist() for curve in curves}
    rows = [
        {"step": step + 1, **{name: own[step] for name, own in losses.items()}} for step in range(len(curves[0].losses))
    ]
    path = write_plot(figure, recordings() / "plots" / f"{name}.png", rows)
    return {"plot": display_path(path), "data": display_path(path.with_suffix(".csv"))}
