"""Kernels as files, from a few lines each, and what they leave on golden."""

from pathlib import Path

import numpy as np

from neuroncore_rtl.frontends.nki import run_nki

HEADER = """import numpy as np
import {package} as nki
import {package}.isa as nisa
import {package}.language as nl

"""

FIRST = HEADER.count("\n") + 3
"""The number of a kernel's first line, behind @nki.jit and def."""


def written(folder: Path, body: str, older: bool = False, parameters: str = "x") -> str:
    """Write a kernel named `kernel` of some lines, and return how it is named."""
    file = folder / "kernel.py"
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    header = HEADER.format(package="neuronxcc.nki" if older else "nki")
    file.write_text(f"{header}@nki.jit\ndef kernel({parameters}):\n{lines}")
    return f"{file}:kernel"


def result(kernel: str, *args: object, preset: str = "tiny", **options) -> np.ndarray:
    """Return the first output of a kernel on golden."""
    return run_nki(kernel, *args, preset=preset, target="golden", **options).outputs[0]
