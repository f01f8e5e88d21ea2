"""TEST=train: the digits network learns on the core, with BF16 weights, and a plot.

One image trains for all steps: gather, forward, cross entropy, backward, AdamW, without a host in between. The plot has
a curve for stochastic rounding, for rounding to nearest even, where a weight remains unchanged as long as its steps are
below half a last place, and for float64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.models.digits import Layer, classify, gelu, held_out, softmax, training_set
from neuroncore_rtl.kernels.models.digits.gradients import gradients, initial_digits
from neuroncore_rtl.kernels.models.digits.trainer import DigitsTrainer
from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.report import Report, Share
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import TILE_OPTION, Settings, choice, integer, refusals
from neuroncore_rtl.run.sim.packages import require_packages
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.tb.tests.kernels import derivatives
from neuroncore_rtl.tb.tests.learning import learning
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST", "Trained", "learned", "trainer_of"]

ROUNDINGS = {"sr": "stochastic", "rne": "to nearest even"}


@dataclass(frozen=True)
class Task:
    """Training set in the order of the steps, initial weight and bias of both layers in float64, options of AdamW."""

    images: np.ndarray
    labels: np.ndarray
    start: list[np.ndarray]
    options: AdamW

    @property
    def sizes(self) -> tuple[int, int, int]:
        return *self.start[0].shape, self.start[2].shape[1]


def task_of(settings: Settings) -> Task:
    """Return the task; SEED draws the order of the images and the initial weights."""
    rng = np.random.default_rng(settings.seed)
    images, labels = training_set()
    order = rng.permutation(len(images))
    start = initial_digits(rng, (images.shape[1], settings.hidden, int(labels.max()) + 1))
    return Task(images[order], labels[order], start, AdamW(rate=settings.rate / 1e6))


def trainer_of(settings: Settings, task: Task, rounding: str) -> DigitsTrainer:
    """Return the program for a rounding of the weights."""
    seed = settings.seed if rounding == "sr" else None
    length, batch, steps = len(task.labels), settings.batch, settings.steps
    return DigitsTrainer(settings.config, length, task.sizes, batch, steps, task.options, seed, settings.tile)


@dataclass(frozen=True)
class Trained:
    """Mean losses of the batches, and final weight and bias of both layers."""

    losses: np.ndarray
    parameters: list[np.ndarray]

    @property
    def accuracy(self) -> float:
        return accuracy(self.parameters)


def accuracy(parameters: Sequence[np.ndarray]) -> float:
    """Return numpy's accuracy on the held-out images."""
    images, labels = held_out()
    layers = [Layer(*(part.astype(np.float32) for part in parameters[place : place + 2])) for place in (0, 2)]
    return float((classify(layers, images).argmax(axis=1) == labels).mean())


def learned(trainer: DigitsTrainer, hbm: np.ndarray) -> Trained:
    """Return the outcome of a run from HBM."""
    losses, *parameters = (
        decode(np.ascontiguousarray(tensor.elements(hbm)), tensor.format)
        for tensor in (trainer.losses, *trainer.parameters)
    )
    return Trained(losses.reshape(-1, trainer.batch).mean(axis=1), parameters)


def reference(task: Task, batch: int, steps: int) -> Trained:
    """Return the outcome of the same training in float64."""
    parameters, losses = [part.copy() for part in task.start], []
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in parameters]
    for step in range(1, steps + 1):
        rows = np.arange((step - 1) * batch, step * batch) % len(task.labels)
        images, labels = task.images[rows].astype(float), task.labels[rows]
        weight0, bias0, weight1, bias1 = parameters
        probabilities = softmax(gelu(images @ weight0 + bias0) @ weight1 + bias1)
        losses.append(-np.log(probabilities[np.arange(batch), labels]).mean())
        for p, g, (m, v) in zip(parameters, gradients(parameters, images, labels), moments, strict=True):
            derivatives.adamw_step(task.options, step, p, g, m, v)
    return Trained(np.array(losses), parameters)


def _jobs(settings: Settings) -> Jobs:
    require_packages("references")
    task = task_of(settings)
    for name in [name for name in ROUNDINGS if settings.round in (name, "both")]:
        with refusals():
            trainer = trainer_of(settings, task, name)
            image = trainer.image(task.images, task.labels, task.start, encode)
        note = f"{settings.steps:,} steps, {ROUNDINGS[name]}"
        yield learning.learning_job(image, settings, note, (name, trainer), name)


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    task, curves, notes, failures = task_of(settings), {}, {}, []
    for result in results:
        name, trainer = result.job.subject
        notes |= {f"{name}_{what}": note for what, note in learning.learning_rows(result).items()}
        curves[name] = learned(trainer, result.memory)
        found = (*learning.golden_failures(result), *learning.disagreements(curves[name].losses))
        failures += [f"{name}: {failure}" for failure in found]
    names = list(curves)
    curves["float64"] = reference(task, settings.batch, settings.steps)
    rows = _outcome_rows(curves, task) | _plot(curves, settings) | notes
    rows |= learning.target_rows(settings, results)
    ideal = sum(learning.ideal_training_cycles(result.job.images[0]) for result in results)
    losses = {"loss": {name: found.losses.tolist() for name, found in curves.items()}}
    return Report(names=names, rows=rows, ideal_cycles=ideal, failures=failures, curves=losses)


def _outcome_rows(curves: Mapping[str, Trained], task: Task) -> dict[str, object]:
    rounded = [decode(encode(part, fmt), fmt) for part, fmt in zip(task.start, (BF16, FP32, BF16, FP32), strict=True)]
    return {
        **learning.loss_rows({name: found.losses for name, found in curves.items()}),
        "accuracy_before": Share(accuracy(rounded)),
        "accuracy": {name: Share(found.accuracy) for name, found in curves.items()},
    }


def _plot(curves: Mapping[str, Trained], settings: Settings) -> dict[str, str]:
    styles = {"sr": ("tab:blue", "-"), "rne": ("tab:red", "-"), "float64": ("black", "--")}
    drawn = []
    for name, found in curves.items():
        rounding = f"BF16 weights, {ROUNDINGS[name]}" if name in ROUNDINGS else name
        what = f"{rounding}: {found.accuracy:.1%} right"
        drawn.append(learning.Curve(name, found.losses, what, *styles[name], faint=name in ROUNDINGS))
    title = f"Handwritten digits, AdamW, rate {settings.rate / 1e6:g}"
    return learning.draw_losses(settings.file_name("train"), title, drawn)


TEST = Scenario(
    name="train",
    summary="a network learns to read digits on the core, with BF16 weights and either rounding, and a plot",
    options=(
        integer("STEPS", 100, "steps of the training", 2, 1000),
        integer("BATCH", 32, "images in a step", 1, 1437),
        integer("HIDDEN", 48, "units between pixels and digits", 1, 512),
        integer("RATE", 1000, "learning rate in millionths", 1, 100_000),
        choice("ROUND", "both", "rounding of the weights", ("both", *ROUNDINGS)),
        TILE_OPTION,
        *learning.training_options("small"),
    ),
    jobs=_jobs,
    rows=_rows,
)
