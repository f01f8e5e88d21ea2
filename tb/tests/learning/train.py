"""TEST=train: the digits network learns on the core, its weights in BF16, with a plot.

One image trains for all steps: gather, forward, cross entropy, backward, AdamW, and no host between. The loss of every
image in every step is in HBM in the end, and every byte of that is compared with golden. The curve of stochastic
rounding stands beside that of rounding to nearest even, where a weight stays as it is while its steps are less than
half a last place, and beside that of float64 on the same images.

TARGET=model is for long curves: golden computes, and the timing model tells the cycles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.models.digits import Layer, classify, gelu, held_out, softmax, training_set
from neuroncore_rtl.kernels.models.digits.gradients import gradients, initial_digits
from neuroncore_rtl.kernels.models.digits.trainer import DigitsTrainer
from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.report import shown
from neuroncore_rtl.run.result import Result, predicted_rows
from neuroncore_rtl.run.settings import TILE_OPTION, Settings, choice, core_options, integer, refusals
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.tb.tests.learning.learning import (
    Curve,
    disagreements,
    draw_losses,
    ended,
    ends_of,
    ideal_training_cycles,
    learning_job,
    learning_rows,
)
from neuroncore_rtl.tb.tests.scenario import Jobs, Rows, Scenario

__all__ = ["TEST", "Trained", "learned", "trainer_of"]

ROUNDINGS = {"sr": "stochastic", "rne": "to nearest even"}


@dataclass(frozen=True)
class Task:
    """What is learned.

    Arguments:
        images, labels: the training set in the order in which steps go through it.
        start: weight and bias of both layers in turn, float64.
        options: of AdamW.
    """

    images: np.ndarray
    labels: np.ndarray
    start: list[np.ndarray]
    options: AdamW

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Pixels, hidden units, digits."""
        return *self.start[0].shape, self.start[2].shape[1]


def task_of(settings: Settings) -> Task:
    """Return the task: SEED draws the order of the images and the first weights."""
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
    """What a run left.

    Arguments:
        losses: float64 [steps], means of a batch.
        parameters: weight and bias of both layers in turn, float64.
    """

    losses: np.ndarray
    parameters: list[np.ndarray]

    @property
    def accuracy(self) -> float:
        """Of held-out images."""
        return accuracy(self.parameters)


def accuracy(parameters: Sequence[np.ndarray]) -> float:
    """Return the share of held-out digits that numpy reads rightly; parameters: weight and bias of both layers."""
    images, labels = held_out()
    layers = [Layer(*(part.astype(np.float32) for part in parameters[place : place + 2])) for place in (0, 2)]
    return float((classify(layers, images).argmax(axis=1) == labels).mean())


def learned(trainer: DigitsTrainer, hbm: np.ndarray) -> Trained:
    """Return what a run left in HBM, uint8 from address 0."""
    losses, *parameters = (
        decode(np.ascontiguousarray(tensor.elements(hbm)), tensor.format)
        for tensor in (trainer.losses, *trainer.parameters)
    )
    return Trained(losses.reshape(-1, trainer.batch).mean(axis=1), parameters)


def reference(task: Task, batch: int, steps: int) -> Trained:
    """Return what float64 makes of the same images."""
    parameters, o, losses = [part.copy() for part in task.start], task.options, []
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in parameters]
    for step in range(1, steps + 1):
        rows = np.arange((step - 1) * batch, step * batch) % len(task.labels)
        images, labels = task.images[rows].astype(float), task.labels[rows]
        weight0, bias0, weight1, bias1 = parameters
        probabilities = softmax(gelu(images @ weight0 + bias0) @ weight1 + bias1)
        losses.append(-np.log(probabilities[np.arange(batch), labels]).mean())
        for p, g, (m, v) in zip(parameters, gradients(parameters, images, labels), moments, strict=True):
            m += (1 - o.beta1) * (g - m)
            v += (1 - o.beta2) * (g * g - v)
            root = np.sqrt(v / (1 - o.beta2**step)) + o.epsilon
            p -= o.rate * (o.decay * p + m / (1 - o.beta1**step) / root)
    return Trained(np.array(losses), parameters)


def _label(settings: Settings) -> str:
    label = f"{settings.preset}-{settings.config.rows}x{settings.config.columns}-{settings.round}"
    label += f"-{settings.hidden}-{settings.batch}x{settings.steps}-{settings.rate}"
    return f"{label}-tile{settings.tile}" if settings.tile else label


def _jobs(settings: Settings) -> Jobs:
    task = task_of(settings)
    for name in [name for name in ROUNDINGS if settings.round in (name, "both")]:
        with refusals():
            trainer = trainer_of(settings, task, name)
            image = trainer.image(task.images, task.labels, task.start, encode)
        note = f"{settings.steps:,} steps, {ROUNDINGS[name]}"
        yield learning_job(image, settings, f"train-{_label(settings)}-{name}", note, (name, trainer))


def _rows(settings: Settings, results: Sequence[Result]) -> Rows:
    task, curves, notes, failures = task_of(settings), {}, {}, []
    for result in results:
        name, trainer = result.job.subject
        notes |= {f"{name} {what}": note for what, note in learning_rows(result).items()}
        curves[name] = learned(trainer, result.memory)
        found = (*ended(result), *disagreements(curves[name].losses))
        failures += [f"{name}: {failure}" for failure in found]
    names = list(curves)
    curves["float64"] = reference(task, settings.batch, settings.steps)
    label = _label(settings)
    extra = _found(curves, task) | {"plot": shown(_plot(curves, settings, label))} | notes
    predictions = [result.prediction for result in results if result.prediction]
    if predictions:
        extra |= predicted_rows(sum(predictions[1:], predictions[0]), settings.config)
    else:
        label, extra = f"core-{label}-{settings.sim}", {"config": settings.config.named} | extra
    ideal = sum(ideal_training_cycles(result.job.images[0]) for result in results)
    return Rows(label=label, names=names, rows=extra, ideal_cycles=ideal, failures=failures)


def _found(curves: Mapping[str, Trained], task: Task) -> dict[str, object]:
    """Return what was learned, for a report."""
    rounded = [decode(encode(part, fmt), fmt) for part, fmt in zip(task.start, (BF16, FP32, BF16, FP32), strict=True)]
    return {
        **ends_of({name: found.losses for name, found in curves.items()}),
        "accuracy before": f"{accuracy(rounded):.2%}",
        "accuracy after": {name: f"{found.accuracy:.2%}" for name, found in curves.items()},
    }


def _plot(curves: Mapping[str, Trained], settings: Settings, label: str) -> Path:
    """Draw the losses; return where the picture is."""
    styles = {"sr": ("tab:blue", "-"), "rne": ("tab:red", "-"), "float64": ("black", "--")}
    drawn = []
    for name, found in curves.items():
        rounding = f"BF16 weights, {ROUNDINGS[name]}" if name in ROUNDINGS else name
        what = f"{rounding}: {found.accuracy:.1%} right"
        drawn.append(Curve(found.losses, what, *styles[name], faint=name in ROUNDINGS))
    return draw_losses(f"train-{label}", f"Handwritten digits, AdamW, rate {settings.rate / 1e6:g}", drawn)


TEST = Scenario(
    name="train",
    summary="a network learns to read digits on the core, BF16 weights rounded stochastically or to nearest even, "
    "with a plot",
    options=(
        integer("STEPS", 100, "steps of the training", 2, 1000),
        integer("BATCH", 32, "images of a step", 1, 1437),
        integer("HIDDEN", 48, "units between pixels and digits", 1, 512),
        integer("RATE", 1000, "learning rate in millionths", 1, 100_000),
        choice("ROUND", "both", "rounding of the weights", ("both", *ROUNDINGS)),
        TILE_OPTION,
        *core_options("core", None, "small"),
    ),
    jobs=_jobs,
    rows=_rows,
)
