"""TEST=digits: a trained network classifies handwritten digits.

Each batch is one image, from pixels in HBM to probabilities and digits in HBM. The controller decides whether a batch
is computed again with FP32 products.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from neuroncore_rtl.golden.core import CoreOutcome
from neuroncore_rtl.golden.timing import ControlPath
from neuroncore_rtl.kernels.models import digits
from neuroncore_rtl.kernels.models.digits import Layer
from neuroncore_rtl.kernels.models.digits.network import NETWORK_PASSES, Classifier
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.report import Report, Share
from neuroncore_rtl.run.result import Result, predicted_rows
from neuroncore_rtl.run.settings import Settings, core_options, integer
from neuroncore_rtl.run.sim.packages import require_packages
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.tb.tests.kernels.products import ideal_cycles
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TARGET_DIFFERENCE", "TEST", "control_path", "executed_sections", "results_of", "sizes_of"]

TARGET_ACCURACY = 0.95  # with exact arithmetic, the program can still be wrong
TARGET_DIFFERENCE = {BF16: 0.05, FP32: 1e-5}  # from numpy's FP32 probabilities


def sizes_of(layers: list[Layer]) -> tuple[int, ...]:
    """Return the number of pixels, hidden units and digits of a network."""
    return layers[0].weight.shape[0], *(layer.weight.shape[1] for layer in layers)


def results_of(classifier: Classifier, hbm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the digits and the probabilities from HBM after a run."""
    found = (tensor.elements(hbm) for tensor in (classifier.digits, classifier.probabilities))
    return tuple(np.ascontiguousarray(codes).view(t) for codes, t in zip(found, (np.int32, np.float32), strict=True))


def control_path(images: int, lanes: int) -> ControlPath:
    """Return the cycles of a batch's control program before, between and after the sections.

    After a section the program reads one word of SBUF per image, `lanes` images per tile, and prints a line. The
    formula assumes that the number of unsure images in this line has one digit.
    """
    counted = 13 * images + 5 * (images // lanes) + 18 * (1 + len(str(images))) + 233
    return ControlPath(first=10, between=17 + counted, last=15 + counted)


def executed_sections(image: Image, addresses: Container[int]) -> list[int]:
    """Return the indices of an image's executed sections; `addresses` has the addresses of all executed records."""
    return sorted({block.section for block in image.blocks if block.address in addresses})


@dataclass(frozen=True)
class _Batch:
    number: int
    images: np.ndarray
    classifier: Classifier


def held_out(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Return the images of the test set and their labels."""
    return tuple(part[: settings.images] for part in digits.held_out())


def _jobs(settings: Settings) -> Jobs:
    require_packages("references")
    layers, (images, _) = digits.load(), held_out(settings)
    config = settings.config
    classifier_of = cache(lambda batch: Classifier(config, batch, sizes_of(layers), settings.order))
    for number, first in enumerate(range(0, len(images), settings.batch)):
        part = images[first : first + settings.batch]
        classifier = classifier_of(len(part))
        image = classifier.image(layers, part, encode, settings.confidence / 100)
        yield ImageJob(
            name=str(number),
            machine=config,
            images=[image],
            behaviour=hbm_of(settings),
            outputs=[classifier.digits, classifier.probabilities],
            path=partial(_path, image, len(part)),
            subject=_Batch(number, part, classifier),
        )


def _path(image: Image, batch: int, outcome: CoreOutcome) -> dict[str, object]:
    sections = executed_sections(image, {address for _, address in outcome.records})
    return {"sections": sections, "path": control_path(batch, image.config.columns)}


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    layers, (images, labels) = digits.load(), held_out(settings)
    if settings.target == "model":
        return _predicted_rows(settings, layers, results)
    guessed, found = _core_rows(settings, layers, results)
    guesses = guessed, digits.classify(layers, images).argmax(axis=1)
    accuracy, reference = (float((guess == labels).mean()) for guess in guesses)
    failures = [*found.failures]
    if accuracy < TARGET_ACCURACY:
        failures.append(f"accuracy must be at least {TARGET_ACCURACY:.0%}, not {accuracy:.2%}")
    accuracies = {"accuracy": Share(accuracy), "accuracy_of_numpy_fp32": Share(reference)}
    rows = {"images": len(images), **accuracies, "config": settings.config.named, **found.rows}
    return replace(found, rows=rows, failures=failures)


def _core_rows(settings: Settings, layers: list[Layer], results: Sequence[Result]) -> tuple[np.ndarray, Report]:
    failures, predicted, rows, ideal = [], [], {}, 0
    for result in results:
        batch, run = result.job.subject, result.outcome.parts[0]
        predicted.append(results_of(batch.classifier, result.memory)[0])
        executed = executed_sections(result.job.images[0], {event.address for event in run.events})
        passes = [NETWORK_PASSES[number] for number in executed]
        # A run that differs from golden already has failures.
        wrong = () if result.failures else _disagreements(settings, layers, result, passes[-1])
        failures += [f"batch {batch.number}: {failure}" for failure in wrong]
        ideal += sum(_ideal_cycles(layers, len(batch.images), fmt, settings.config) for fmt in passes)
        rows[f"batch_{batch.number}"] = {"cycles": result.cycles, "console": "; ".join(run.console.splitlines())}
        files = {**result.files, **result.profile_rows}
        rows |= {f"batch_{batch.number}_{what}": path for what, path in files.items()}
    names = [f"batch {result.job.subject.number}" for result in results]
    return np.concatenate(predicted), Report(rows=rows, ideal_cycles=ideal, names=names, failures=failures)


def _predicted_rows(settings: Settings, layers: list[Layer], results: Sequence[Result]) -> Report:
    rows, ideal = {"images": settings.images}, 0
    for result in results:
        batch, image = result.job.subject, result.job.images[0]
        (outcome,) = result.expected.outcomes
        passes = [NETWORK_PASSES[number] for number in _path(image, 0, outcome)["sections"]]
        ideal += sum(_ideal_cycles(layers, len(batch.images), fmt, settings.config) for fmt in passes)
        rows |= {f"batch_{batch.number}_{what}": row for what, row in result.profile_rows.items()}
    predictions = [result.prediction for result in results]
    rows |= predicted_rows(sum(predictions[1:], predictions[0]), settings.config)
    names = [f"batch {result.job.subject.number}" for result in results]
    return Report(rows=rows, names=names, ideal_cycles=ideal)


def _disagreements(settings: Settings, layers: list[Layer], result: Result, fmt: Format) -> Iterable[str]:
    batch = result.job.subject
    predicted, probabilities = results_of(batch.classifier, result.memory)
    if wrong := int((predicted != probabilities.argmax(axis=1)).sum()):
        yield f"digits must be the most probable ones, but {wrong} are not"
    unsure = int((probabilities.max(axis=1) < np.float32(settings.confidence / 100)).sum())
    expected = f"{fmt.name}: unsure of {unsure} of {len(batch.images)} images"
    last = result.outcome.parts[0].console.splitlines()[-1]
    if last != expected:
        yield f"the controller must end with {expected!r}, not {last!r}"
    if unsure and fmt is not FP32:
        yield f"{unsure} images below the threshold must be computed again, but were not"
    difference, limit = np.abs(probabilities - digits.classify(layers, batch.images)).max(), TARGET_DIFFERENCE[fmt]
    if not difference <= limit:
        yield f"probabilities must be within {limit} of numpy's in FP32, but one is off by {difference:.2g}"


def _ideal_cycles(layers: list[Layer], images: int, fmt: Format, config: Config) -> int:
    return sum(ideal_cycles(images, *layer.weight.shape, fmt, config) for layer in layers)


_CONFIDENCE = "percent; the core computes a batch again in FP32 if an image's digit is less probable"

TEST = Scenario(
    name="digits",
    summary="a trained network classifies handwritten digits on the core",
    options=(
        integer("IMAGES", 360, "held-out images to classify", 20, 360),
        integer("BATCH", 120, "images that the core computes together", 1, 360),
        integer("CONFIDENCE", 50, _CONFIDENCE, 0, 100),
        *core_options("core", None, "small"),
    ),
    jobs=_jobs,
    rows=_rows,
)
