"""Kernels as files, from a few lines each, and what they leave on golden."""

from pathlib import Path
from types import ModuleType

import numpy as np

from neuroncore_rtl.frontends.nki import run_nki
from neuroncore_rtl.frontends.nki.dialects.load import load_kernel
from neuroncore_rtl.frontends.nki.runtime.run import NkiResult
from neuroncore_rtl.spec.config import PRESETS

HEADER = """import numpy as np
import {package} as nki
import {package}.isa as nisa
import {package}.language as nl

"""

FIRST = HEADER.count("\n") + 3
"""The number of a kernel's first line, behind @nki.jit and def."""


def written(
    folder: Path, body: str, older: bool = False, parameters: str = "x", out: str = "", stores: str = ""
) -> str:
    """Write a kernel named `kernel` of some lines, and return how it is named.

    Arguments:
        out: shape and type of the tensor `out` in HBM, which the first line makes and the last one returns; empty: the
            body has all lines.
        stores: the tile that is copied to `out` behind the body; empty: the body writes it.
    """
    file = folder / "kernel.py"
    rows = body.strip("\n").splitlines()
    if out:
        rows.insert(0, f"out = nl.ndarray({out}, buffer=nl.shared_hbm)")
        rows += [f"nl.store(out, value={stores})" if older else f"nisa.dma_copy(dst=out, src={stores})"] * bool(stores)
        rows.append("return out")
    lines = "".join(f"    {row}\n" for row in rows)
    header = HEADER.format(package="neuronxcc.nki" if older else "nki")
    file.write_text(f"{header}@nki.jit\ndef kernel({parameters}):\n{lines}")
    return f"{file}:kernel"


def stored(folder: Path, expression: str, out: str = "x.shape, x.dtype", parameters: str = "x") -> str:
    """Write a kernel of the first dialect that stores one expression in `out`, and return how it is named."""
    return written(folder, "", True, parameters, out=out, stores=expression)


def loaded(file: Path, text: str) -> ModuleType:
    """Write a file, and return its module for a machine of preset tiny."""
    file.write_text(text)
    return load_kernel(file, PRESETS["tiny"])


def ran(kernel: str, *args: object, preset: str = "tiny", **options) -> NkiResult:
    """Return what a kernel leaves on golden, and its run."""
    return run_nki(kernel, *args, preset=preset, on="golden", **options)


def result(kernel: str, *args: object, **options) -> np.ndarray:
    """Return the first output of a kernel on golden."""
    return ran(kernel, *args, **options).outputs[0]
