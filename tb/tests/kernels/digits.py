"""TEST=digits: real input. A trained network reads handwritten digits.

TARGET=core is the machine as its users have it: an image for each batch, from pixels in HBM to probabilities and digits
there; the controller decides whether a batch is computed a second time, with FP32 products.
TARGET=engine has every matrix product done by the tensor engine alone, and numpy between them.
"""

from collections import Counter
from collections.abc import Container, Iterable
from functools import cache

import numpy as np

from neuroncore_rtl.golden import tensor as golden
from neuroncore_rtl.golden.core import Core
from neuroncore_rtl.golden.timing import ControlPath
from neuroncore_rtl.kernels.models import digits
from neuroncore_rtl.kernels.models.digits import Layer
from neuroncore_rtl.kernels.models.digits.network import PASSES, Classifier
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.core import core_options, hbm_of
from neuroncore_rtl.run.execution import execute
from neuroncore_rtl.run.images import ImageTask
from neuroncore_rtl.run.modelled import modelled_report, predicted
from neuroncore_rtl.run.profiled import profile_lines
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Command, Settings, integer
from neuroncore_rtl.run.view.waves import waveform
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.tb.tests.kernels.matmul import ideal_cycles, multiply_recorded

__all__ = [
    "TARGET_ACCURACY",
    "TARGET_DIFFERENCE",
    "TEST",
    "control_path",
    "executed_sections",
    "results",
    "sizes_of",
]

TARGET_ACCURACY = 0.95
"""Below this the bench fails: the arithmetic may be exact and the program around it still wrong."""

TARGET_DIFFERENCE = {BF16: 0.05, FP32: 1e-5}
"""Probabilities differ from numpy's in FP32 by no more, by the format of the products."""


def sizes_of(layers: list[Layer]) -> tuple[int, ...]:
    """Return the pixels, the hidden units and the digits of a network."""
    return layers[0].weight.shape[0], *(layer.weight.shape[1] for layer in layers)


def results(classifier: Classifier, hbm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the digits, int32 [batch], and the probabilities, float32 [batch, digits], that a run left in HBM."""
    found = (tensor.elements(hbm) for tensor in (classifier.digits, classifier.probabilities))
    return tuple(np.ascontiguousarray(codes).view(t) for codes, t in zip(found, (np.int32, np.float32), strict=True))


def control_path(images: int, lanes: int) -> ControlPath:
    """Return the path of the control program for a batch.

    Behind a section it reads a word of SBUF for each image, of so many `lanes` in a tile, and writes a line of text, in
    which a number of one digit is that of the images it is unsure of.
    """
    counted = 13 * images + 5 * (images // lanes) + 18 * (1 + len(str(images))) + 233
    return ControlPath(first=10, between=17 + counted, last=15 + counted)


def executed_sections(image: Image, addresses: Container[int]) -> list[int]:
    """Return the sections of an image of which records were executed; addresses: of all records that were."""
    return sorted({block.section for block in image.blocks if block.address in addresses})


def _run(settings: Settings) -> Report:
    config, layers = settings.config, digits.load()
    images, labels = (part[: settings.images] for part in digits.held_out())
    label = f"{settings.preset}-{config.rows}x{config.columns}-{settings.sim}"
    if settings.target == "model":
        return _on_model(settings, layers, images)
    on_target = {"core": _on_core, "engine": _on_engine}[settings.target]
    predicted, measured, notes, failures = on_target(settings, layers, images, label)
    accuracy, reference = (
        float((found == labels).mean()) for found in (predicted, digits.classify(layers, images).argmax(axis=1))
    )
    if accuracy < TARGET_ACCURACY:
        failures.append(f"accuracy must be at least {TARGET_ACCURACY:.0%}, not {accuracy:.2%}")
    accuracies = {"accuracy": f"{accuracy:.2%}", "accuracy_of_numpy_FP32": f"{reference:.2%}"}
    return Report(
        test="digits",
        label=f"core-{label}" if settings.target == "core" else label,
        settings=dict(settings.values),
        extra={"images": len(images), **accuracies, "config": config.named, **notes},
        failures=tuple(failures),
        **measured,
    )


Found = tuple[np.ndarray, Counter, dict[str, str], list[str]]
"""The digits that were found, integer [images]; counted fields of the report; lines for it; what is wrong."""


def _on_core(settings: Settings, layers: list[Layer], images: np.ndarray, label: str) -> Found:
    config, measured = settings.config, Counter()
    classifier_of = cache(lambda batch: Classifier(config, batch, sizes_of(layers), settings.order))
    failures, predicted, notes = [], [], {}
    for number, first in enumerate(range(0, len(images), settings.batch)):
        part = images[first : first + settings.batch]
        classifier = classifier_of(len(part))
        image = classifier.image(layers, part, encode, settings.confidence / 100)
        profiled = bool(settings.profile)
        task = ImageTask(machine=config, images=[image], behaviour=hbm_of(settings), profiled=profiled)
        name = f"digits-{label}-{number}"
        done = execute(task, settings, f"core-{name}", pictures=name)
        run, (hbm,) = done.outcome.parts[0], done.outcome.memories["hbm"]
        executed = {event.address for event in run.events}
        passes = [PASSES[number] for number in executed_sections(image, executed)]
        found = results(classifier, hbm)
        # What is wrong with a run that is not golden's is told by that.
        wrong = done.failures or tuple(_disagreements(*found, settings, layers, part, passes, run.console))
        failures += [f"batch {number}: {failure}" for failure in wrong]
        predicted.append(found[0])
        ideal = sum(_ideal_cycles(layers, len(part), fmt, config) for fmt in passes)
        measured.update(compared=done.compared, mismatches=done.mismatches, cycles=done.cycles, ideal_cycles=ideal)
        notes[f"batch_{number}"] = f"{done.cycles:,} cycles; {'; '.join(run.console.splitlines())}"
        files = done.files | profile_lines(settings, name, image, run)
        notes |= {f"batch_{number}_{what}": path for what, path in files.items()}
    return np.concatenate(predicted), measured, notes, failures


def _on_model(settings: Settings, layers: list[Layer], images: np.ndarray) -> Report:
    """Return what the timing model says; golden tells whether a batch is computed again."""
    config, found, ideal = settings.config, [], 0
    label, notes = f"{settings.preset}-{config.rows}x{config.columns}", {}
    for number, first in enumerate(range(0, len(images), settings.batch)):
        part = images[first : first + settings.batch]
        classifier = Classifier(config, len(part), sizes_of(layers), settings.order)
        image = classifier.image(layers, part, encode, settings.confidence / 100)
        executed = {address for _, address in Core(config, image.memory()).run(image.base).records}
        sections = executed_sections(image, executed)
        ideal += sum(_ideal_cycles(layers, len(part), PASSES[section], config) for section in sections)
        path = control_path(len(part), config.columns)
        found.append(predicted(image, settings, sections=sections, path=path))
        lines = profile_lines(settings, f"digits-{label}-{number}", image, found[-1])
        notes |= {f"batch_{number}_{what}": line for what, line in lines.items()}
    extra = {"images": len(images), **notes}
    return modelled_report("digits", label, settings, sum(found[1:], found[0]), ideal, extra)


def _disagreements(
    predicted: np.ndarray,
    probabilities: np.ndarray,
    settings: Settings,
    layers: list[Layer],
    images: np.ndarray,
    passes: list[Format],
    console: str,
) -> Iterable[str]:
    """Say where results do not follow from each other, or are far from numpy's."""
    if wrong := int((predicted != probabilities.argmax(axis=1)).sum()):
        yield f"digits must be the most probable ones, but {wrong} are not"
    fmt = passes[-1]
    unsure = int((probabilities.max(axis=1) < np.float32(settings.confidence / 100)).sum())
    expected, last = f"{fmt.name}: unsure of {unsure} of {len(images)} images", console.splitlines()[-1]
    if last != expected:
        yield f"the controller must end with {expected!r}, not {last!r}"
    if unsure and fmt is not FP32:
        yield f"{unsure} images below the threshold must be computed again, but were not"
    difference = float(np.abs(probabilities - digits.classify(layers, images)).max())
    if not difference <= TARGET_DIFFERENCE[fmt]:
        limit = TARGET_DIFFERENCE[fmt]
        yield f"probabilities must be within {limit} of numpy's in FP32, but one is off by {difference:.2g}"


def _ideal_cycles(layers: list[Layer], images: int, fmt: Format, config: Config) -> int:
    return sum(ideal_cycles(images, *layer.weight.shape, fmt, config) for layer in layers)


def _on_engine(settings: Settings, layers: list[Layer], images: np.ndarray, label: str) -> Found:
    config = settings.config
    values, notes = images, {}
    measured = Counter(ideal_cycles=_ideal_cycles(layers, len(images), BF16, config))
    for number, layer in enumerate(layers):
        a, b = encode(values, BF16), encode(layer.weight, BF16)
        waves = None if number else waveform("digits")
        product, counters, recorded = multiply_recorded(a, b, BF16, settings, waves)
        wrong = int((product != golden.matrix_product(a, b, BF16, config.rows)).sum())
        measured.update(compared=product.size, mismatches=wrong, cycles=counters["cycles"])
        notes |= recorded
        values = product.view(np.float32) + layer.bias
        if number + 1 < len(layers):
            values = digits.gelu(values)
    return values.argmax(axis=1), measured, notes, []


_CONFIDENCE = "the core computes a batch again in FP32 if an image's digit is less probable than so many percent"

TEST = Command(
    name="digits",
    summary="held-out handwritten digits classified by a trained network, from HBM to HBM on the core, or with its "
    "products on the tensor engine alone",
    options=(
        integer("IMAGES", 360, "held-out images to classify", 20, 360),
        integer("BATCH", 120, "images that the core computes at once", 1, 360),
        integer("CONFIDENCE", 50, _CONFIDENCE, 0, 100),
        *core_options("core", "the tensor engine", "small"),
    ),
    run=_run,
)
