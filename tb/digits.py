"""TEST=digits: real input. A trained network reads handwritten digits, with every matrix product done by the RTL."""

from dataclasses import asdict

import numpy as np

from golden import tensor as golden
from golden.arith import round_fp32
from kernels import digits
from spec.formats import BF16
from tb.bench import SIM, Bench, Option, Settings, configuration_options
from tb.matmul import ideal_cycles, multiply
from tb.report import Report

__all__ = ["BENCH", "TARGET_ACCURACY"]

TARGET_ACCURACY = 0.95
"""Below this the bench fails: the arithmetic may be exact and the program around it still wrong."""


def _bf16(values: np.ndarray) -> np.ndarray:
    """Return float32 values rounded to BF16 (to nearest even), as storage words."""
    return round_fp32(np.ascontiguousarray(values).view(np.uint32), BF16, "rne", None)


def _run(settings: Settings) -> Report:
    config = settings.config
    layers = digits.load()
    images, labels = (part[: settings.images] for part in digits.held_out())
    compared = mismatches = cycles = ideal = 0
    values = images
    for number, layer in enumerate(layers):
        a, b = _bf16(values), _bf16(layer.weight)
        product, counters = multiply(a, b, BF16, config, sim=settings.sim)
        mismatches += int((product != golden.matmul(a, b, BF16, config.rows)).sum())
        compared += product.size
        cycles += counters["cycles"]
        ideal += ideal_cycles(a.shape[0], a.shape[1], b.shape[1], BF16, config)
        values = product.view(np.float32) + layer.bias
        if number + 1 < len(layers):
            values = np.maximum(values, 0)
    accuracy = float((values.argmax(axis=1) == labels).mean())
    reference = float((digits.classify(layers, images) == labels).mean())
    failures = [f"accuracy must be at least {TARGET_ACCURACY:.0%}, not {accuracy:.2%}"]
    return Report(
        test="digits",
        label=f"{settings.preset}-{config.rows}x{config.columns}-{settings.sim}",
        settings=dict(settings.values),
        compared=compared,
        mismatches=mismatches,
        cycles=cycles,
        ideal_cycles=ideal,
        extra={
            "images": len(images),
            "accuracy": f"{accuracy:.2%}",
            "accuracy_of_numpy_FP32": f"{reference:.2%}",
            "config": asdict(config),
        },
        failures=tuple(failures) if accuracy < TARGET_ACCURACY else (),
    )


BENCH = Bench(
    name="digits",
    summary="held-out handwritten digits classified by a trained network, its matrix products in BF16 on the RTL",
    options=(
        Option(name="IMAGES", type=int, default=360, help="held-out images to classify", minimum=20, maximum=360),
        *configuration_options("small"),
        SIM,
    ),
    run=_run,
)
