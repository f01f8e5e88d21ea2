"""TEST=digits: real input. A trained network reads handwritten digits.

TARGET=core is the machine as its users have it: an image for each batch, from pixels in HBM to probabilities and digits
there; the controller decides whether a batch is computed a second time, with FP32 products.
TARGET=engine has every matrix product done by the tensor engine alone, and numpy between them.
"""

from collections.abc import Container, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from neuroncore_rtl.golden import tensor as golden
from neuroncore_rtl.golden.core import CoreOutcome
from neuroncore_rtl.golden.timing import ControlPath
from neuroncore_rtl.kernels.models import digits
from neuroncore_rtl.kernels.models.digits import Layer
from neuroncore_rtl.kernels.models.digits.network import NETWORK_PASSES, Classifier
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.job import DeviceJob, ImageJob
from neuroncore_rtl.run.result import Result, predicted_rows
from neuroncore_rtl.run.settings import Settings, core_options, integer
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.tb.stimulus.tensor_tiling import TiledProduct
from neuroncore_rtl.tb.tests.kernels.products import counters_of, ideal_cycles, product_jobs
from neuroncore_rtl.tb.tests.scenario import Jobs, Rows, Scenario

__all__ = [
    "TARGET_ACCURACY",
    "TARGET_DIFFERENCE",
    "TEST",
    "control_path",
    "executed_sections",
    "held_out",
    "results_of",
    "sizes_of",
]

TARGET_ACCURACY = 0.95
"""Below this the bench fails: the arithmetic may be exact and the program around it still wrong."""

TARGET_DIFFERENCE = {BF16: 0.05, FP32: 1e-5}
"""Probabilities differ from numpy's in FP32 by no more, by the format of the products."""


def sizes_of(layers: list[Layer]) -> tuple[int, ...]:
    """Return the pixels, the hidden units and the digits of a network."""
    return layers[0].weight.shape[0], *(layer.weight.shape[1] for layer in layers)


def results_of(classifier: Classifier, hbm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


@dataclass(frozen=True)
class _Batch:
    """Images that the core classifies at once, and the program that does."""

    number: int
    images: np.ndarray
    classifier: Classifier


def _label(settings: Settings) -> str:
    config = settings.config
    label = f"{settings.preset}-{config.rows}x{config.columns}"
    return label if settings.target == "model" else f"{label}-{settings.sim}"


def held_out(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Return the images and their labels."""
    return tuple(part[: settings.images] for part in digits.held_out())


def _jobs(settings: Settings) -> Jobs:
    layers, (images, _) = digits.load(), held_out(settings)
    if settings.target == "engine":
        yield from _layer_jobs(settings, layers, images)
        return
    config = settings.config
    classifier_of = cache(lambda batch: Classifier(config, batch, sizes_of(layers), settings.order))
    for number, first in enumerate(range(0, len(images), settings.batch)):
        part = images[first : first + settings.batch]
        classifier = classifier_of(len(part))
        image = classifier.image(layers, part, encode, settings.confidence / 100)
        name = f"digits-{_label(settings)}-{number}"
        yield ImageJob(
            machine=config,
            images=[image],
            name=f"core-{name}",
            pictures=name,
            behaviour=hbm_of(settings),
            outputs=[classifier.digits, classifier.probabilities],
            path=partial(_path, image, len(part)),
            subject=_Batch(number, part, classifier),
        )


def _path(image: Image, batch: int, outcome: CoreOutcome) -> dict[str, object]:
    """Return the options of :func:`golden.timing.predict`: golden tells whether a batch is computed again."""
    sections = executed_sections(image, {address for _, address in outcome.records})
    return {"sections": sections, "path": control_path(batch, image.config.columns)}


def _rows(settings: Settings, results: Sequence[Result]) -> Rows:
    config, layers, (images, labels) = settings.config, digits.load(), held_out(settings)
    if settings.target == "model":
        return _predicted_rows(settings, layers, results)
    found = _found_by_engine(layers, results) if settings.target == "engine" else _found(settings, layers, results)
    accuracy, reference = (
        float((guessed == labels).mean()) for guessed in (found.digits, digits.classify(layers, images).argmax(axis=1))
    )
    failures = list(found.failures)
    if accuracy < TARGET_ACCURACY:
        failures.append(f"accuracy must be at least {TARGET_ACCURACY:.0%}, not {accuracy:.2%}")
    accuracies = {"accuracy": f"{accuracy:.2%}", "accuracy_of_numpy_FP32": f"{reference:.2%}"}
    label = f"core-{_label(settings)}" if settings.target == "core" else _label(settings)
    rows = {"images": len(images), **accuracies, "config": config.named, **found.rows}
    counted = {"compared": found.compared, "mismatches": found.mismatches, "ideal_cycles": found.ideal_cycles}
    return Rows(label=label, rows=rows, names=found.names, failures=failures, cycles=found.cycles, **counted)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the results of all jobs say: digits, integer [images], and fields of `Rows`."""

    digits: np.ndarray
    rows: dict[str, str]
    ideal_cycles: int
    names: Sequence[str] = ()
    failures: Sequence[str] = ()
    cycles: int | None = None
    compared: int = 0
    mismatches: int = 0


def _found(settings: Settings, layers: list[Layer], results: Sequence[Result]) -> _Found:
    """Return what images on the core have found."""
    failures, predicted, rows, ideal = [], [], {}, 0
    for result in results:
        batch, image = result.job.subject, result.job.images[0]
        found = results_of(batch.classifier, result.memory)
        predicted.append(found[0])
        run = result.outcome.parts[0]
        passes = [
            NETWORK_PASSES[number] for number in executed_sections(image, {event.address for event in run.events})
        ]
        # What is wrong with a run that is not golden's is said by its failures.
        wrong = () if result.failures else _disagreements(*found, settings, layers, batch.images, passes, run.console)
        failures += [f"batch {batch.number}: {failure}" for failure in wrong]
        ideal += sum(_ideal_cycles(layers, len(batch.images), fmt, settings.config) for fmt in passes)
        rows[f"batch_{batch.number}"] = f"{result.cycles:,} cycles; {'; '.join(run.console.splitlines())}"
        files = {**result.files, **result.profile_rows}
        rows |= {f"batch_{batch.number}_{what}": path for what, path in files.items()}
    names = [f"batch {result.job.subject.number}" for result in results]
    return _Found(digits=np.concatenate(predicted), rows=rows, ideal_cycles=ideal, names=names, failures=failures)


def _predicted_rows(settings: Settings, layers: list[Layer], results: Sequence[Result]) -> Rows:
    """Return the rows of the timing model."""
    rows, ideal = {"images": settings.images}, 0
    for result in results:
        batch, image = result.job.subject, result.job.images[0]
        (outcome,) = result.expected.outcomes
        sections = executed_sections(image, {address for _, address in outcome.records})
        passes = (NETWORK_PASSES[section] for section in sections)
        ideal += sum(_ideal_cycles(layers, len(batch.images), fmt, settings.config) for fmt in passes)
        rows |= {f"batch_{batch.number}_{what}": row for what, row in result.profile_rows.items()}
    predictions = [result.prediction for result in results]
    rows |= predicted_rows(sum(predictions[1:], predictions[0]), settings.config)
    names = [f"batch {result.job.subject.number}" for result in results]
    return Rows(label=_label(settings), rows=rows, names=names, ideal_cycles=ideal)


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


def _layer_jobs(settings: Settings, layers: list[Layer], images: np.ndarray) -> Generator[DeviceJob, Result, None]:
    """Yield the jobs of all layers' products; numpy computes what is between them."""
    values = images
    for number, layer in enumerate(layers):
        a, b = encode(values, BF16), encode(layer.weight, BF16)
        jobs = product_jobs(a, b, BF16, settings.config, name=None if number else "digits", stall=settings.stall)
        results = []
        for job in jobs:
            results.append((yield replace(job, subject=_LayerProduct(number, job.subject, a, b))))
        values = _product(results).view(np.float32) + layer.bias
        if number + 1 < len(layers):
            values = digits.gelu(values)


@dataclass(frozen=True)
class _LayerProduct:
    """A part of the product of a layer: its number, the tensor engine's program, and both operands."""

    layer: int
    program: TiledProduct
    a: np.ndarray
    b: np.ndarray


def _product(results: Sequence[Result]) -> np.ndarray:
    """Return the product of a layer, uint32."""
    first = results[0].job.subject
    product = np.zeros((len(first.a), first.b.shape[1]), np.uint32)
    for result in results:
        result.job.subject.program.gather(result.outcome.memories["psum"], product)
    return product


def _found_by_engine(layers: list[Layer], results: Sequence[Result]) -> _Found:
    """Return what the products of all layers have found."""
    compared = mismatches = 0
    config = results[0].job.on.config
    for number in range(len(layers)):
        own = [result for result in results if result.job.subject.layer == number]
        first, product = own[0].job.subject, _product(own)
        compared += product.size
        mismatches += int((product != golden.matrix_product(first.a, first.b, BF16, config.rows)).sum())
    values = product.view(np.float32) + layers[-1].bias
    return _Found(
        digits=values.argmax(axis=1),
        rows=dict(results[0].files),
        ideal_cycles=_ideal_cycles(layers, len(values), BF16, config),
        cycles=counters_of(results)["cycles"],
        compared=compared,
        mismatches=mismatches,
    )


_CONFIDENCE = "the core computes a batch again in FP32 if an image's digit is less probable than so many percent"

TEST = Scenario(
    name="digits",
    summary="held-out handwritten digits classified by a trained network, from HBM to HBM on the core, or with its "
    "products on the tensor engine alone",
    options=(
        integer("IMAGES", 360, "held-out images to classify", 20, 360),
        integer("BATCH", 120, "images that the core computes at once", 1, 360),
        integer("CONFIDENCE", 50, _CONFIDENCE, 0, 100),
        *core_options("core", "the tensor engine", "small"),
    ),
    jobs=_jobs,
    rows=_rows,
)
