"""Kernel files from a few lines each."""

from collections.abc import Iterable
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
"""Line number, in the file, of the first line of a kernel's body."""


def write_kernel(
    folder: Path, body: str, older: bool = False, parameters: str = "x", out: str = "", stores: str = ""
) -> str:
    """Write a kernel named `kernel`, and return its name for `run_nki`.

    `body`: its lines; `older`: use the first dialect; `out`: shape and type of the HBM tensor `out`, created first and
    returned last (empty: the body does both); `stores`: tile copied to `out` after the body, or, without `out`, tiles
    that are returned in HBM tensors of their shapes and types.
    """
    file = folder / "kernel.py"
    rows = body.strip("\n").splitlines()
    if out:
        rows.insert(0, f"out = nl.ndarray({out}, buffer=nl.shared_hbm)")
        rows += [f"nl.store(out, value={stores})" if older else f"nisa.dma_copy(dst=out, src={stores})"] * bool(stores)
        rows.append("return out")
    elif stores:
        tiles = stores.split(", ")
        rows += [f"hbm_{a} = nl.ndarray({a}.shape, dtype={a}.dtype, buffer=nl.shared_hbm)" for a in tiles]
        rows += [*(f"nisa.dma_copy(dst=hbm_{a}, src={a})" for a in tiles), f"return hbm_{', hbm_'.join(tiles)}"]
    lines = "".join(f"    {row}\n" for row in rows)
    header = HEADER.format(package="neuronxcc.nki" if older else "nki")
    file.write_text(f"{header}@nki.jit\ndef kernel({parameters}):\n{lines}")
    return f"{file}:kernel"


def store_kernel(folder: Path, expression: str, out: str = "x.shape, x.dtype", parameters: str = "x") -> str:
    return write_kernel(folder, "", True, parameters, out=out, stores=expression)


def results_of(folder: Path, head: str, expressions: Iterable[str], x: np.ndarray) -> list[np.ndarray]:
    """Return float32 values, of the shape of x, of expressions of the first dialect, which one kernel computes."""
    stores = [f"nl.store(out[{n}], value={one})" for n, one in enumerate(expressions)]
    out = f"({len(stores)}, *x.shape), nl.float32"
    return [*result(write_kernel(folder, "\n".join([head, *stores]), older=True, out=out), x)]


def load_module(file: Path, text: str) -> ModuleType:
    file.write_text(text)
    return load_kernel(file, PRESETS["tiny"])


def run_kernel(kernel: str, *args: object, preset: str = "tiny", on: str = "golden", **options) -> NkiResult:
    return run_nki(kernel, *args, preset=preset, on=on, **options)


def result(kernel: str, *args: object, **options) -> np.ndarray:
    return run_kernel(kernel, *args, **options).outputs[0]
