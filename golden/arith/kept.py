"""Functions that Numba compiles once: their code is kept in `sim_build`, and loaded without Numba.

To import Numba and to compile takes longer than most programs do; what it made of a function is loaded in milliseconds.
"""

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

__all__ = ["OPTIONS", "kept_function"]

OPTIONS = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""What `numba.njit` is told of a function that is kept, beside its signature."""


@cache
def kept_function(module: str, name: str) -> Callable[..., None]:
    """Return a compiled function, which takes arrays for pointers, and integers. Other threads go on while it runs.

    It is compiled if its code is not there: if its module, anything in `spec/`, Numba or the processor is another one.
    The module may use no other sources.

    Arguments:
        module: full name of the module, which need not be imported for code that is there.
        name: in it, of a function that `numba.njit` has compiled with `OPTIONS` for one signature, of pointers and
            int64, without a result.
    """
    path = SIM_BUILD / "golden" / f"{name}-{_digest(module)}.ll"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(_compiled(module, name))
        unfinished.replace(path)
    code = path.read_text()
    native, engine = load_compiled(binding.parse_assembly(code), code.split(maxsplit=2)[1])
    function = ctypes.CFUNCTYPE(ctypes.c_int32)(native)
    nothing = np.zeros(2, np.uint64)  # places of the result and of an exception, of which there are none

    def call(*arguments: np.ndarray | int, engine=engine) -> None:  # the engine holds the code
        function(*map(_argument, (nothing[:1], nothing[1:], *arguments)))

    return call


def _argument(value: np.ndarray | int) -> ctypes.c_void_p | ctypes.c_int64:
    return ctypes.c_void_p(value.ctypes.data) if isinstance(value, np.ndarray) else ctypes.c_int64(value)


def _compiled(module: str, name: str) -> str:
    """Return a function in LLVM's intermediate language, behind a comment with its name there."""
    dispatcher = getattr(import_module(module), name)
    (signature,) = dispatcher.signatures
    native = dispatcher.overloads[signature].fndesc.llvm_func_name
    return f"; {native}\n{dispatcher.inspect_llvm(signature)}"


def _digest(module: str) -> str:
    """Return what changes with all that the code of a module's functions depends on."""
    found = find_spec(module)
    assert found is not None and found.origin is not None
    sources = [Path(found.origin), *sorted((ROOT / "spec").rglob("*.py"))]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    features = binding.get_host_cpu_features().flatten()
    digest.update(f"{version('numba')} {version('llvmlite')} {binding.get_host_cpu_name()} {features}".encode())
    return digest.hexdigest()[:16]
