"""Berkeley SoftFloat 3 as an oracle for numpy arrays: FP32 arithmetic, comparisons and conversions.

pip downloads the C sources, pinned by hash, as the `softfloat` source distribution of PyPI. They are compiled once with
our batch driver into a shared library under sim_build/oracles/. (Installing the distribution does not work: its
setup.py runs `make clean` and `make` at the same time.)
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.sim import clang

__all__ = [
    "OracleError", "add", "divide", "equal", "f16_to_f32", "f32_to_f16", "f32_to_i32", "less", "less_equal", "mul_add",
    "multiply",
]  # fmt: skip

VERSION = "0.1.4.1"
SHA256 = "da1c1464de184ddc02e7d208f560624ccbdee4926e78fb9d3997fb16a866c95f"
DRIVER = Path(__file__).with_name("softfloat_batch.c")
BUILDS = SIM_BUILD / "oracles"
SOURCES = (
    *("f32_*.c", "f16_to_f32.c", "s_*[!M].c", "s_*256M.c", "softfloat_state.c"),
    *("8086-SSE/s_*UI.c", "8086-SSE/s_*UIToCommonNaN.c", "8086-SSE/softfloat_*.c"),
)
FLAGS = (
    *("-O2", "-g0", "-fPIC", "-shared", "-fno-sanitize=all", "-mcpu=baseline"),
    *("-DSOFTFLOAT_ROUND_ODD", "-DSOFTFLOAT_FAST_INT64", "-DSOFTFLOAT_FAST_DIV32TO16", "-DSOFTFLOAT_FAST_DIV64TO32"),
)


class OracleError(RuntimeError):
    """The library cannot be built; the message names the failed step."""


def _call(function: str, result_type, *operands: np.ndarray, operand_type=np.uint32, extra=()) -> np.ndarray:
    operands = [np.ascontiguousarray(operand, operand_type) for operand in operands]
    lengths = {operand.shape for operand in operands}
    if len(lengths) != 1 or operands[0].ndim != 1:
        raise ValueError(f"operands must be one-dimensional and of one length, not {sorted(lengths)!r}")
    out = np.zeros(len(operands[0]), result_type)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*operands, out, *extra)]
    getattr(_library(), f"batch_{function}")(ctypes.c_size_t(len(out)), *pointers)
    return out


mul_add = partial(_call, "f32_mulAdd", np.uint32)
"""x * w + acc with one rounding; FP32 bit patterns (uint32, one dimension, equal lengths)."""

add, multiply, divide = (partial(_call, f"f32_{name}", np.uint32) for name in ("add", "mul", "div"))
equal, less, less_equal = (partial(_call, f"f32_{name}", bool) for name in ("eq", "lt", "le"))
f32_to_f16 = partial(_call, "f32_to_f16", np.uint16)
f16_to_f32 = partial(_call, "f16_to_f32", np.uint32, operand_type=np.uint16)


def f32_to_i32(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (int32, invalid) for FP32 bit patterns; where `invalid` is set, the integer is undefined."""
    invalid = np.zeros(len(value), bool)
    return _call("f32_to_i32", np.int32, value, extra=(invalid,)), invalid


@cache
def _library() -> ctypes.CDLL:
    recipe = "\n".join((VERSION, SHA256, DRIVER.read_text(), *SOURCES, *FLAGS))
    folder = BUILDS / f"softfloat-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    library = folder / "softfloat_batch.so"
    BUILDS.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not library.exists():
            _build(folder, library)
    return ctypes.CDLL(str(library))


def _build(folder: Path, library: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _run("tar", "-xzf", _download(folder), "-C", folder)
    root = folder / f"softfloat-{VERSION}" / "SoftFloat-master"
    sources = root / "source"
    includes = [root / "build" / "Linux-x86_64-GCC", sources, sources / "8086-SSE", sources / "include"]
    files = [file for pattern in SOURCES for file in sorted(sources.glob(pattern))]
    # Starting the compiler for a hundred small files takes most of the time.
    whole, unfinished = folder / "whole.c", library.with_suffix(".tmp")
    whole.write_text("".join(f'#include "{file}"\n' for file in (DRIVER, *files)))
    clang.compile_with("cc", [*FLAGS, *(f"-I{include}" for include in includes)], [whole], unfinished)
    unfinished.replace(library)


def _download(folder: Path) -> Path:
    archive = BUILDS / f"softfloat-{VERSION}.tar.gz"
    if not archive.exists() or hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        requirements = folder / "requirements.txt"
        requirements.write_text(f"softfloat=={VERSION} --hash=sha256:{SHA256}\n")
        pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", "softfloat", "--require-hashes")
        # pip runs the distribution's setup.py to learn its name, which would compile everything: a dry run suffices.
        dry = {"MAKEFLAGS": "-n"}
        _run(*pip, "--disable-pip-version-check", "--retries", "10", "-r", requirements, "-d", BUILDS, **dry)
    return archive


def _run(*command, **environment: str) -> None:
    command = [str(part) for part in command]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, env=os.environ | environment, check=False, **pipes)
    if done.returncode != 0:
        raise OracleError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
