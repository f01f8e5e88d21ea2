"""TEST=charlm: a small transformer learns Shakespeare's sonnets on the core, character by character, and then writes.

One image does all of it, and no host takes part in between: the parameters stay in HBM, where the last step leaves
them. Each step and each character has a line: the loss beside that of the same training in float64, the cycles, and
whether RTL and golden agree bit for bit, of a step in the loss of every character, of a character in all scores.

TARGET=model is for long curves: golden computes, and the timing model tells the cycles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.models.charlm import Text, sonnets
from neuroncore_rtl.kernels.models.charlm.network import Sizes, initial_charlm
from neuroncore_rtl.kernels.models.charlm.program import STEP, WRITE, LanguageModel
from neuroncore_rtl.kernels.program import HbmTensor, Image
from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.options import TILE_OPTION, check_room, core_options
from neuroncore_rtl.run.report import progress, shown
from neuroncore_rtl.run.result import Result, predicted_rows
from neuroncore_rtl.run.settings import Settings, UsageError, choice, integer, refusals
from neuroncore_rtl.spec.isa import Storage
from neuroncore_rtl.tb.tests.learning import language_model
from neuroncore_rtl.tb.tests.learning.learning import (
    Curve,
    cycles_by_run,
    disagreements,
    draw_losses,
    ended,
    ends_of,
    ideal_training_cycles,
    learning_job,
    learning_rows,
)
from neuroncore_rtl.tb.tests.scenario import Jobs, Rows, Scenario

__all__ = ["TEST", "image_of", "model_of"]

LINES = 20
"""Steps of which there is a line, about."""

SIZES = ("SEQ", "BATCH", "DIM", "HEADS", "HIDDEN", "LAYERS", "STEPS", "RATE")
"""Variables by which runs are told apart."""


@dataclass(frozen=True)
class Task:
    """What is learned, and what is written.

    Arguments:
        text: what is learned.
        sizes: of the network.
        start: parameters, float64 by name.
        starts: where the windows start, int64 [steps, windows of a step].
        options: of AdamW.
        prompt: what is written on from.
        written: how many characters.
    """

    text: Text
    sizes: Sizes
    start: Mapping[str, np.ndarray]
    starts: np.ndarray
    options: AdamW
    prompt: str
    written: int

    @property
    def windows(self) -> np.ndarray:
        """The characters of all windows, int64 [steps, windows of a step, context + 1]."""
        return self.text.numbers[self.starts[..., None] + np.arange(self.sizes.context + 1)]

    @property
    def read(self) -> int:
        """Characters that are read: the last one is written, but not read."""
        return len(self.prompt) + self.written - 1


def task_of(settings: Settings) -> Task:
    """Return the task: SEED draws the first parameters, and where the windows start.

    Raises:
        UsageError: if what is asked for does not fit the text or the context, or would be too large to be simulated.
    """
    text = sonnets()
    with refusals():
        sizes = Sizes(
            characters=len(text.characters),
            context=settings.seq,
            features=settings.dim,
            heads=settings.heads,
            hidden=settings.hidden,
            layers=settings.layers,
        )
    # Masters, two moments and gradients in FP32, copies in BF16.
    check_room(sum(map(prod, sizes.shapes().values())) * (4 * (3 + settings.batch) + 2))
    try:
        prompt = len(text.encode(settings.prompt))
    except ValueError as refusal:
        raise UsageError(f"PROMPT: {refusal}") from refusal
    if not 0 < prompt <= settings.seq:
        raise UsageError(f"PROMPT must have from 1 to SEQ={settings.seq} characters, not {prompt}")
    room = settings.seq + 1 - prompt
    if settings.tokens is not None and settings.tokens > room:
        raise UsageError(
            f"TOKENS must be at most {room}, which is what SEQ={settings.seq} leaves behind a prompt of {prompt}, "
            f"not {settings.tokens}"
        )
    rng = np.random.default_rng(settings.seed)
    start = initial_charlm(rng, sizes)
    starts = rng.integers(0, len(text.numbers) - settings.seq, (settings.steps, settings.batch))
    options = AdamW(rate=settings.rate / 1e6)
    return Task(text, sizes, start, starts, options, settings.prompt, settings.tokens or room)


def model_of(settings: Settings, task: Task) -> LanguageModel:
    """Return the program."""
    steps, batch = task.starts.shape
    length = len(task.text.numbers)
    return LanguageModel(settings.config, task.sizes, length, batch, steps, task.options, settings.order, settings.tile)


def image_of(model: LanguageModel, task: Task) -> Image:
    """Return the image of a program."""
    text = task.text
    return model.image(text.numbers, task.starts.ravel(), task.start, text.encode(task.prompt), task.written, encode)


def _label(settings: Settings) -> str:
    machine = f"{settings.preset}-{settings.config.rows}x{settings.config.columns}"
    machine += f"-tile{settings.tile}" if settings.tile else ""
    return f"{machine}-{'x'.join(str(settings.values[name]) for name in SIZES)}"


def _jobs(settings: Settings) -> Jobs:
    task = task_of(settings)
    with refusals():
        model = model_of(settings, task)
        check_room(model.program.space.fixed_end(Storage.HBM))
        image = image_of(model, task)
    note = f"{settings.steps:,} steps, {task.read} characters"
    yield learning_job(image, settings, f"charlm-{_label(settings)}", note, (task, model))


def _rows(settings: Settings, results: Sequence[Result]) -> Rows:
    (result,) = results
    task, model = result.job.subject
    with progress("float64"):
        losses, parameters = language_model.trained(task.start, task.sizes, task.windows, task.options)
        written = language_model.written_text(parameters, task.sizes, task.text.encode(task.prompt), task.written)
    lines, label = _Lines(task, model, result), _label(settings)
    title = f"Shakespeare's sonnets, AdamW, rate {settings.rate / 1e6:g}"
    curves = [
        Curve(lines.losses, "on the core"),
        Curve(losses, "float64", "black", "--", faint=False),
    ]
    rows = {
        "text": f"{len(task.text.numbers):,} characters, {len(task.text.characters)} different ones",
        "parameters": sum(value.size for value in task.start.values()),
        "steps": lines.steps(losses),
        **ends_of({"core": lines.losses, "float64": losses}),
        "characters": lines.characters(),
        "writes": _shown(task.prompt + lines.text),
        "float64 writes": _shown(task.prompt + task.text.decode(written)),
        "plot": shown(draw_losses(f"charlm-{label}", title, curves)),
        **learning_rows(result),
    }
    if result.prediction:
        rows |= predicted_rows(result.prediction, settings.config)
    else:
        label, rows["config"] = f"core-{label}-{settings.sim}", settings.config.named
    failures = (*ended(result), *disagreements(lines.losses))
    return Rows(label=label, rows=rows, ideal_cycles=ideal_training_cycles(result.job.images[0]), failures=failures)


def _shown(text: str) -> str:
    """Return a text in one line."""
    return text.replace("\n", " / ")


class _Lines:
    """What a run left, for a report.

    Arguments:
        task, model: what was run.
        result: of the run.

    Attributes:
        losses: float64 [steps], means of all characters.
        text: what was written behind the prompt.
    """

    def __init__(self, task: Task, model: LanguageModel, result: Result):
        self._task, self._result = task, result
        runs, cycles = result.job.images[0].runs, cycles_by_run(result)
        self._cycles = {
            section: [count for own, count in zip(runs, cycles, strict=True) if own == section]
            for section in (STEP, WRITE)
        }
        steps = len(task.starts)
        self._losses = [codes.reshape(steps, -1) for codes in self._codes(model.windows.losses)]
        self._scores, self._written = (self._codes(tensor) for tensor in (model.page.scores, model.page.written))
        self.losses = decode(self._losses[0], model.windows.losses.format).mean(axis=1)
        self._first = len(task.prompt) - 1
        self.text = task.text.decode(self._written[0][self._first : task.read, 0])

    def _codes(self, tensor: HbmTensor) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of a tensor as they were found, and golden's."""
        memories = self._result.memory, self._result.expected.memories["hbm"][0]
        return tuple(np.array(tensor.elements(memory)) for memory in memories)

    def steps(self, exact: Sequence[float]) -> dict[str, dict[str, object]]:
        """Return the lines of some steps, the first and the last one among them; exact: losses in float64."""
        count = len(self.losses)
        every = -(-count // LINES)
        chosen = sorted({0, *range(every - 1, count, every), count - 1})
        return {
            f"{step + 1}": {
                "loss": f"{self.losses[step]:.3f}",
                "float64": f"{exact[step]:.3f}",
                "cycles": self._cycles[STEP][step],
                **self._compared(self._losses, step),
            }
            for step in chosen
        }

    def characters(self) -> dict[str, dict[str, object]]:
        """Return the lines of the characters that were written."""
        return {
            f"{position + 1}": {
                "character": repr(self.text[position - self._first]),
                "cycles": self._cycles[WRITE][position],
                **self._compared(self._scores, position),
            }
            for position in range(self._first, self._task.read)
        }

    def _compared(self, codes: tuple[np.ndarray, np.ndarray], row: int) -> dict[str, str]:
        """Return whether RTL and golden agree on a row, if RTL has run."""
        if self._result.prediction:
            return {}
        found, golden = codes
        return {"bit-exact": "bit-exact" if np.array_equal(found[row], golden[row]) else "differs from golden"}


TEST = Scenario(
    name="charlm",
    summary="a small transformer learns Shakespeare's sonnets on the core, character by character, and writes; a line "
    "for each step",
    options=(
        choice("PROMPT", "Shall I ", "what is written on from, in characters of the text"),
        integer("TOKENS", None, "characters that are written, unless told as many as SEQ leaves", 1, 1024),
        integer("STEPS", 40, "steps of the training", 2, 10_000),
        integer("BATCH", 1, "windows of the text in a step", 1, 64),
        integer("SEQ", 64, "characters of a window, and of the prompt with what is written", 2, 1024),
        integer("DIM", 32, "features of a character", 1, 4096),
        integer("HEADS", 2, "heads, which divide the features", 1, 1024),
        integer("HIDDEN", 64, "features of the MLP between its layers", 1, 16384),
        integer("LAYERS", 1, "layers", 1, 32),
        integer("RATE", 10_000, "learning rate in millionths", 1, 100_000),
        TILE_OPTION,
        *core_options("core", None, "small"),
    ),
    jobs=_jobs,
    rows=_rows,
)
