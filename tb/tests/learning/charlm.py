"""TEST=charlm: a small transformer learns Shakespeare's sonnets on the core by characters, and then writes.

The report has a line per step and per written character: the loss next to the loss of a float64 training, the cycles,
and whether RTL and golden agree bit for bit.

TARGET=model is for long curves: golden computes, and the timing model predicts the cycles.
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
from neuroncore_rtl.run.report import Report, progress
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import TILE_OPTION, Settings, UsageError, check_room, choice, integer, refusals
from neuroncore_rtl.spec.isa import Storage
from neuroncore_rtl.tb.tests.learning import language_model, learning
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST", "image_of", "model_of"]

LINES = 20  # approximate number of steps with a line in the report


@dataclass(frozen=True)
class Task:
    """Text to learn and to write, initial parameters, and `starts`, the first character of each window by step."""

    text: Text
    sizes: Sizes
    start: Mapping[str, np.ndarray]
    starts: np.ndarray
    options: AdamW
    prompt: str
    written: int

    @property
    def windows(self) -> np.ndarray:
        return self.text.numbers[self.starts[..., None] + np.arange(self.sizes.context + 1)]

    @property
    def inputs(self) -> int:
        """Number of characters that the model reads: all except the last written one."""
        return len(self.prompt) + self.written - 1


def task_of(settings: Settings) -> Task:
    """Return the task; SEED draws the initial parameters and the windows."""
    text = sonnets()
    with refusals():
        own = {name: getattr(settings, name) for name in ("heads", "hidden", "layers")}
        sizes = Sizes(characters=len(text.characters), context=settings.seq, features=settings.dim, **own)
    # FP32: masters, two moments, gradients. BF16: copies.
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
            f"TOKENS must be at most {room} with SEQ={settings.seq} and a prompt of {prompt}, not {settings.tokens}"
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


def _jobs(settings: Settings) -> Jobs:
    task = task_of(settings)
    with refusals():
        model = model_of(settings, task)
        check_room(model.program.space.fixed_end(Storage.HBM))
        image = image_of(model, task)
    note = f"{settings.steps:,} steps, {task.inputs} characters"
    yield learning.learning_job(image, settings, note, (task, model))


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    (result,) = results
    task, model = result.job.subject
    with progress("float64"):
        losses, parameters = language_model.trained(task.start, task.sizes, task.windows, task.options)
        written = language_model.written_text(parameters, task.sizes, task.text.encode(task.prompt), task.written)
    lines = _Lines(task, model, result)
    title = f"Shakespeare's sonnets, AdamW, rate {settings.rate / 1e6:g}"
    both = {"core": lines.losses, "float64": losses}
    curves = [
        learning.Curve("core", lines.losses, "on the core"),
        learning.Curve("float64", losses, "float64", "black", "--", faint=False),
    ]
    rows = {
        "text": {"characters": len(task.text.numbers), "different": len(task.text.characters)},
        "parameters": sum(value.size for value in task.start.values()),
        "steps": lines.steps(losses),
        **learning.loss_rows(both),
        "characters": lines.characters(),
        "writes": _one_line(task.prompt + lines.text),
        "float64_writes": _one_line(task.prompt + task.text.decode(written)),
        **learning.draw_losses(settings.file_name("charlm"), title, curves),
        **learning.learning_rows(result),
    }
    failures = (*learning.golden_failures(result), *learning.disagreements(lines.losses))
    return Report(
        rows=rows | learning.target_rows(settings, results),
        ideal_cycles=learning.ideal_training_cycles(result.job.images[0]),
        failures=failures,
        curves={"loss": {name: own.tolist() for name, own in both.items()}},
    )


def _one_line(text: str) -> str:
    return text.replace("\n", " / ")


class _Lines:
    """Lines of a run's report; losses: float64 [steps], means of all characters; text: written after the prompt."""

    def __init__(self, task: Task, model: LanguageModel, result: Result):
        self._task, self._result = task, result
        runs, cycles = result.job.images[0].runs, learning.cycles_by_run(result)
        self._cycles = {
            section: [count for own, count in zip(runs, cycles, strict=bool(cycles)) if own == section]
            for section in (STEP, WRITE)
        }
        steps = len(task.starts)
        self._losses = [codes.reshape(steps, -1) for codes in self._codes(model.windows.losses)]
        self._scores, self._written = (self._codes(tensor) for tensor in (model.page.scores, model.page.written))
        self.losses = decode(self._losses[0], model.windows.losses.format).mean(axis=1)
        self._first = len(task.prompt) - 1
        self.text = task.text.decode(self._written[0][self._first : task.inputs, 0])

    def _codes(self, tensor: HbmTensor) -> tuple[np.ndarray, np.ndarray]:
        memories = self._result.memory, self._result.expected.memories["hbm"][0]
        return tuple(np.array(tensor.elements(memory)) for memory in memories)

    def steps(self, exact: Sequence[float]) -> dict[str, dict[str, object]]:
        count = len(self.losses)
        every = -(-count // LINES)
        chosen = sorted({0, *range(every - 1, count, every), count - 1})
        return {
            f"{step + 1}": {
                "loss": float(self.losses[step]),
                "float64": float(exact[step]),
                **self._timed(STEP, step),
                **self._compared(self._losses, step),
            }
            for step in chosen
        }

    def characters(self) -> dict[str, dict[str, object]]:
        return {
            f"{position + 1}": {
                "character": repr(self.text[position - self._first]),
                **self._timed(WRITE, position),
                **self._compared(self._scores, position),
            }
            for position in range(self._first, self._task.inputs)
        }

    def _timed(self, section: str, run: int) -> dict[str, int]:
        return {"cycles": self._cycles[section][run]} if self._cycles[section] else {}

    def _compared(self, codes: tuple[np.ndarray, np.ndarray], row: int) -> dict[str, str]:
        if self._result.outcome is None:
            return {}
        found, golden = codes
        return {"golden": "bit-exact" if np.array_equal(found[row], golden[row]) else "differs from golden"}


TEST = Scenario(
    name="charlm",
    summary="a small transformer learns Shakespeare's sonnets on the core, and writes; a line for each step",
    options=(
        choice("PROMPT", "Shall I ", "beginning of the text to write, in characters of the sonnets"),
        integer("TOKENS", None, "characters to write; default: as many as SEQ allows after the prompt", 1, 1024),
        integer("STEPS", 40, "steps of the training", 2, 10_000),
        integer("BATCH", 1, "windows of the text per step", 1, 64),
        integer("SEQ", 64, "characters of a window, and limit of prompt plus written text", 2, 1024),
        integer("DIM", 32, "features of a character", 1, 4096),
        integer("HEADS", 2, "heads, a divisor of DIM", 1, 1024),
        integer("HIDDEN", 64, "hidden features of the MLP", 1, 16384),
        integer("LAYERS", 1, "layers", 1, 32),
        integer("RATE", 10_000, "learning rate in millionths", 1, 100_000),
        TILE_OPTION,
        *learning.training_options("small"),
    ),
    jobs=_jobs,
    rows=_rows,
)
