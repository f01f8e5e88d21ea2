"""Cache of functions that Numba compiles: stored in `sim_build`, later loaded in milliseconds without Numba."""

import ctypes
import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from llvmlite import binding

from neuroncore_rtl import ROOT, SIM_BUILD
from neuroncore_rtl.golden.arith.machine_code import load_compiled

__all__ = ["OPTIONS", "cached_function", "provide"]

OPTIONS = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of `numba.njit` for a cached function, besides its signature."""


def provide() -> None:
    """Do nothing; `run.sim.packages` replaces this by the installation of Numba, called before its first use."""


@cache
def cached_function(module: str, name: str) -> Callable[..., None]:
    """Return function `name` of `module`, compiled; it accepts integers, and an array for each pointer.

    It runs without the GIL. It is compiled again if its module, `spec/`, Numba or the processor has changed. The module
    may import no other sources of this project, since changes of those are not detected; it is imported only to
    compile. Its decorator `numba.njit` must have `OPTIONS` and one signature: arguments are pointers and int64, without
    a result.
    """
    provide()
    path = SIM_BUILD / "golden" / f"{name}-{_digest(module)}.ll"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(_compiled(module, name))
        unfinished.replace(path)
    code = path.read_text()
    native, engine = load_compiled(binding.parse_assembly(code), code.split(maxsplit=2)[1])
    function = ctypes.CFUNCTYPE(ctypes.c_int32)(native)
    nothing = np.zeros(2, np.uint64)  # Numba's slots for a result and an exception; both unused

    def call(*arguments: np.ndarray | int, engine=engine) -> None:  # the engine owns the code
        function(*map(_argument, (nothing[:1], nothing[1:], *arguments)))

    return call


def _argument(value: np.ndarray | int) -> ctypes.c_void_p | ctypes.c_int64:
    return ctypes.c_void_p(value.ctypes.data) if isinstance(value, np.ndarray) else ctypes.c_int64(value)


def _compiled(module: str, name: str) -> str:
    """Return function `name` of `module` in LLVM's intermediate language; a first comment line has its LLVM name."""
    dispatcher = getattr(import_module(module), name)
    (signature,) = dispatcher.signatures
    native = dispatcher.overloads[signature].fndesc.llvm_func_name
    return f"; {native}\n{dispatcher.inspect_llvm(signature)}"


def _digest(module: str) -> str:
    found = find_spec(module)
    assert found is not None and found.origin is not None
    sources = [Path(found.origin), *sorted((ROOT / "spec").rglob("*.py"))]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    features = binding.get_host_cpu_features().flatten()
    digest.update(f"{version('numba')} {version('llvmlite')} {binding.get_host_cpu_name()} {features}".encode())
    return digest.hexdigest()[:16]
