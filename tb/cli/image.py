"""`make image`: contents of HBM before a TEST on the core, and golden's contents afterwards."""

import hashlib
import json
from dataclasses import asdict

import numpy as np

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.golden.core import CoreOutcome
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.check.image_failures import explain_fault
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.tb.cli.export import list_files
from neuroncore_rtl.tb.tests.scenario import Scenario

__all__ = ["export_image", "image_files"]


def export_image(command: Scenario, settings: Settings) -> int:
    """Write the first image of a TEST on a single core to `sim_build/images`; return the exit status."""
    if settings.target != "core":
        raise UsageError(f"TARGET must be core for an image, not {settings.target}")
    job = next(iter(command.jobs(settings)))
    with progress("golden"):
        golden = job.golden()
    (expected,), (outcome,) = golden.memories["hbm"], golden.outcomes
    if outcome.error is not None or outcome.exit_code is None:
        reason = explain_fault(outcome.error, job.memories[0], job.config) if outcome.error else "no end"
        raise UsageError(f"an image must run to its end without an error, but has {reason}")
    directory = SIM_BUILD / "images" / settings.file_name(command.name)
    directory.mkdir(parents=True, exist_ok=True)
    files = image_files(command.name, job.images[0], job.memories[0], expected, outcome)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    list_files(directory / name for name in files)
    return 0


def image_files(
    test: str, image: Image, before: np.ndarray, expected: np.ndarray, outcome: CoreOutcome
) -> dict[str, bytes]:
    """Return the files of an image by name; before and expected are memory from address 0, uint8 [bytes]."""
    config = image.config
    raw = {"image": before.tobytes(), "expected": expected.tobytes()}
    run = (image.base, before.size, outcome.exit_code, config.hbm_bytes)
    tensors = image.space.hbm_tensors if image.space else []
    description = {
        "test": test,
        "parameters": asdict(config),
        "boot_address": image.base,
        "load_address": 0,
        "bytes": before.size,
        "exit_code": outcome.exit_code,
        "output": outcome.console.decode("latin-1"),
        "tensors": [
            {"name": one.name, "address": one.address, "format": one.format.name, "shape": list(one.shape)}
            for one in tensors
        ],
        "sha256": {f"{name}.bin": hashlib.sha256(content).hexdigest() for name, content in raw.items()},
    }
    return {
        **{f"{name}.bin": content for name, content in raw.items()},
        **{f"{name}.hex": _beats(content, config.hbm_bytes) for name, content in raw.items()},
        "run.hex": "".join(f"{number:016x}\n" for number in run).encode(),
        "image.json": json.dumps(description, indent=2).encode() + b"\n",
    }


def _beats(content: bytes, size: int) -> bytes:
    """Return bytes as lines for $readmemh: one beat per line, with the beat's first byte at the end of the line."""
    content += bytes(-len(content) % size)
    digits = np.frombuffer(content, np.uint8).reshape(-1, size)[:, ::-1].tobytes().hex()
    return "".join(f"{digits[at : at + 2 * size]}\n" for at in range(0, len(digits), 2 * size)).encode()
