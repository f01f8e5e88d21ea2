"""The C and C++ compiler of what runs on this machine: the clang, with its linker, that the package `ziglang` carries.

It is the same everywhere, and no machine has to have one. Zig would compile the whole of its C++ library before it
links the first program, 40 seconds of CPU; what programs of Verilator's need of it is one file here, and takes four.
"""

import hashlib
import importlib.metadata
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import ziglang
from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.sim.seal import intact, seal

__all__ = ["CACHES", "STANDARD_LIBRARY", "ZIG", "CompilerFailed", "compile_with", "prepare", "version"]

_PACKAGE = Path(ziglang.__file__).parent

ZIG: Path = _PACKAGE / "zig"
"""The program: `zig c++` and `zig cc` are clang, `zig ar` is ar."""

CACHES = {f"ZIG_{kind}_CACHE_DIR": str(SIM_BUILD / "zig") for kind in ("GLOBAL", "LOCAL")}
"""Environment variables: caches of our own, so that nothing else is written."""

_SOURCE = Path(__file__).with_name("libcxx.cpp")

_FLAGS = (
    *("-c", "-std=c++23", "-O0", "-g0", "-fno-sanitize=all", "-mcpu=baseline", "-Wno-everything"),
    *(f"-I{_PACKAGE / 'lib' / folder}" for folder in ("", "libcxx/src", "libcxxabi/include", "libcxxabi/src")),
)
"""Not optimised: nothing that a simulation does every cycle is in it, and it would take twice the time."""


class CompilerFailed(RuntimeError):
    """The compiler refuses something; the message names it and has what the compiler said."""


def version() -> str:
    """Return the version of the package."""
    return importlib.metadata.version("ziglang")


def compile_with(language: str, flags: Sequence[str], sources: Sequence[Path], output: Path) -> None:
    """Compile, and link if `flags` say no other.

    Arguments:
        language: "c++" or "cc".
        flags, sources, output: what the compiler gets.

    Raises:
        CompilerFailed: it refuses the sources.
    """
    command = [str(ZIG), language, *flags, "-o", str(output), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | CACHES)
    if done.returncode:
        raise CompilerFailed(f"zig {language} cannot compile {sources[0]}:\n{done.stderr[-2000:]}")


_KEY = hashlib.sha256("\n".join((_SOURCE.read_text(), *_FLAGS, version())).encode()).hexdigest()[:16]

STANDARD_LIBRARY: Path = SIM_BUILD / "zig" / f"libcxx-{_KEY}.o"
"""What programs are linked with in place of zig's own, besides `-nostdlib++ -lunwind`; `prepare` makes it."""


def prepare() -> None:
    """Compile `STANDARD_LIBRARY`, if it was not yet.

    Raises:
        CompilerFailed: it cannot be.
    """
    STANDARD_LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(STANDARD_LIBRARY.with_suffix(".lock")):
        if not intact(STANDARD_LIBRARY):
            unfinished = STANDARD_LIBRARY.with_suffix(".unfinished.o")
            compile_with("c++", _FLAGS, [_SOURCE], unfinished)
            unfinished.replace(STANDARD_LIBRARY)
            seal(STANDARD_LIBRARY)
