"""C and C++ compiler: the clang and linker in the package `ziglang`, the same on every computer.

Zig would compile its complete C++ library before it links the first program, which takes 40 s of CPU time. The parts
that Verilator's programs need are a single file here, which takes 4 s.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.sim.seal import intact, seal

__all__ = ["CACHES", "STANDARD_LIBRARY", "ZIG", "CompilerFailed", "compile_with", "prepare", "version"]

_FOUND = importlib.util.find_spec("ziglang")
_PACKAGE = Path(_FOUND.origin).parent if _FOUND and _FOUND.origin else Path(sysconfig.get_path("purelib"), "ziglang")

ZIG: Path = _PACKAGE / "zig"
"""Program: `zig c++` and `zig cc` are clang, `zig ar` is ar."""

CACHES = {f"ZIG_{kind}_CACHE_DIR": str(SIM_BUILD / "zig") for kind in ("GLOBAL", "LOCAL")}
"""Environment variables of the compiler's caches, kept below `sim_build/`."""

_SOURCE = Path(__file__).with_name("native") / "libcxx.cpp"

_FLAGS = (
    *("-c", "-std=c++23", "-O0", "-g0", "-fno-sanitize=all", "-mcpu=baseline", "-Wno-everything"),
    *(f"-I{_PACKAGE / 'lib' / folder}" for folder in ("", "libcxx/src", "libcxxabi/include", "libcxxabi/src")),
)
"""Flags without optimisation, which would double the compile time; no simulation executes this code in every cycle."""


class CompilerFailed(RuntimeError):
    """A compiler error; the message names the source and contains the compiler's output."""


def provide() -> None:
    """Do nothing; `run.sim.packages` replaces this by the installation of the compiler, called before its use."""


@cache
def version() -> str:
    """Return the version of `ziglang`, also while it is being installed."""
    pinned = "\n".join(importlib.metadata.requires("neuroncore-rtl") or ())
    return re.findall(r"^ziglang==([\w.]+)", pinned, re.MULTILINE)[0]


def compile_with(language: str, flags: Sequence[str], sources: Sequence[Path], output: Path) -> None:
    """Compile in `language` "c++" or "cc", and link unless `flags` say otherwise."""
    provide()
    command = [str(ZIG), language, *flags, "-o", str(output), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | CACHES)
    if done.returncode:
        raise CompilerFailed(f"zig {language} cannot compile {sources[0]}:\n{done.stderr[-2000:]}")


_KEY = hashlib.sha256("\n".join((_SOURCE.read_text(), *_FLAGS, version())).encode()).hexdigest()[:16]

STANDARD_LIBRARY: Path = SIM_BUILD / "zig" / f"libcxx-{_KEY}.o"
"""Object file linked instead of zig's library, with `-nostdlib++ -lunwind`; made by `prepare`."""


def prepare() -> None:
    """Compile `STANDARD_LIBRARY` if it is missing."""
    STANDARD_LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(STANDARD_LIBRARY.with_suffix(".lock")):
        if not intact(STANDARD_LIBRARY):
            unfinished = STANDARD_LIBRARY.with_suffix(".unfinished.o")
            compile_with("c++", _FLAGS, [_SOURCE], unfinished)
            unfinished.replace(STANDARD_LIBRARY)
            seal(STANDARD_LIBRARY)
