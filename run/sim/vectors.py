"""Blocks of lanes as libraries of vector code: made from RTLIL, compiled once, and found by the dynamic linker.

A Verilated program calls a block's library by name, and there is one for each level of the processor's vectors; which
of them is loaded is decided when the program starts, by the search path that it is given.
"""

import hashlib
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.hdl.verilog.conversion import Irreplaceable
from neuroncore_rtl.run import lanes
from neuroncore_rtl.run.lanes import wrapper
from neuroncore_rtl.run.lanes.block_code import BlockCode
from neuroncore_rtl.run.lanes.extraction import netlists
from neuroncore_rtl.run.lanes.netlist import Unsupported
from neuroncore_rtl.run.sim import clang
from neuroncore_rtl.run.sim.modules import write
from neuroncore_rtl.run.sim.seal import intact, seal

__all__ = [
    "LANES_VARIABLE", "LEVELS", "MARK", "WAYS", "WrongChoice", "chosen", "compile_libraries",
    "compile_library",
    "compiler_sources", "level", "libraries_of", "library_paths", "search_path", "source_of", "vectorised",
    "wanted",
]  # fmt: skip

libraries_folder = SIM_BUILD / "lanes"
"""Where libraries and what they are made from are kept."""

FOLDER = Path(lanes.__file__).parent
"""The compiler's sources, and the header that its output includes."""

LEVEL_VARIABLE = "LANES_LEVEL"
"""Environment variable that chooses a level below that of the processor."""

MARK = "// lanes: "
"""What stands before the module that calls a library, followed by its label."""

WAYS = ("vector", "scalar")
"""Blocks of lanes as vectors, or all modules as Verilator has them."""

LANES_VARIABLE = "LANES"
"""Environment variable: one of `WAYS`, else the first."""


class WrongChoice(ValueError):
    """An environment variable asks for what does not exist, or not here; the message says what would be valid."""


@dataclass(frozen=True)
class Level:
    """Vectors of a processor.

    Arguments:
        width: instances that are evaluated at once. cpu: for the compiler. needs: flags of the processor.
    """

    width: int
    cpu: str
    needs: tuple[str, ...] = ()


LEVELS = {
    "avx512": Level(16, "x86_64_v4", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
    "avx2": Level(8, "x86_64_v3", ("avx2", "bmi1", "bmi2", "fma", "movbe", "f16c")),
    "plain": Level(4, "baseline"),
}
"""By name, the best first; `plain` runs on any processor."""

FLAGS = ("-O2", "-g0", "-fPIC", "-fno-sanitize=all", "-fno-exceptions", "-fno-rtti", "-std=c++17", "-Wno-everything")
"""For the C++ compiler. Jump threading is held back: where lanes share hundreds of conditions it takes minutes."""

HELD_BACK = ("-mllvm", "-jump-threading-phi-threshold=1", "-mllvm", "-jump-threading-implication-search-threshold=0")


@cache
def compiler_sources() -> str:
    """Return a hash of what decides which code a block becomes, and which library that."""
    texts = [file.read_text() for file in sorted(FOLDER.glob("*.*"))]
    texts += [repr((FLAGS, HELD_BACK, LEVELS)), clang.version()]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def vectorised(name: str, of: tuple[str, ...], texts: Mapping[str, str]) -> str:
    """Return the Verilog that calls a block's library; store the library's source.

    Arguments:
        name, of, texts: see `hdl.verilog.conversion.Replacement`.

    Raises:
        Irreplaceable: it cannot be evaluated so.
    """
    parts = [name, *of, *texts.values(), compiler_sources()]
    label = f"{name}-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}"
    source = source_of(label)
    verilog = source.with_suffix(".v")
    if not verilog.is_file():
        try:
            code = BlockCode(netlists(name, of, texts), name)
            write(source, wrapper.source(code))
        except Unsupported as error:
            raise Irreplaceable(f"{name} is simulated module by module, not as vectors: {error}") from error
        write(verilog, f"{MARK}{label}\n{wrapper.verilog(code)}")
    return verilog.read_text()


def source_of(label: str) -> Path:
    """Return the C++ file of a library."""
    return libraries_folder / f"{label}.cpp"


def libraries_of(verilog: str) -> list[str]:
    """Return the labels of the libraries that a text calls."""
    return re.findall(rf"^{MARK}(\S+)$", verilog, re.MULTILINE)


@contextmanager
def chosen(way: str | None) -> Iterator[None]:
    """Let what runs inside evaluate blocks of lanes in one of `WAYS`; None: as the environment says."""
    before = os.environ.get(LANES_VARIABLE)
    if way is not None:
        os.environ[LANES_VARIABLE] = way
    try:
        yield
    finally:
        if way is not None:
            os.environ.pop(LANES_VARIABLE)
            if before is not None:
                os.environ[LANES_VARIABLE] = before


def wanted() -> bool:
    """Return whether blocks of lanes are to be evaluated as vectors.

    Raises:
        WrongChoice: the environment asks for neither of the two ways.
    """
    way = os.environ.get(LANES_VARIABLE) or WAYS[0]
    if way not in WAYS:
        raise WrongChoice(f"{LANES_VARIABLE} must be one of {', '.join(WAYS)}, not {way!r}")
    return way == "vector"


@cache
def level() -> str:
    """Return the name of the best level that this processor has, or the one that the environment chooses.

    Raises:
        WrongChoice: there is no level of that name, or the processor does not have it.
    """
    flags = set()
    if platform.machine() in ("x86_64", "AMD64") and Path("/proc/cpuinfo").is_file():
        found = re.search(r"^flags\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        flags = set(found[1].split()) if found else set()
    here = [name for name, level in LEVELS.items() if flags.issuperset(level.needs)]
    chosen = os.environ.get(LEVEL_VARIABLE) or here[0]
    if chosen not in here:
        raise WrongChoice(f"{LEVEL_VARIABLE} must be one of {', '.join(here)} on this processor, not {chosen!r}")
    return chosen


def search_path() -> Path:
    """Return the folder of the libraries of this machine's level."""
    return libraries_folder / level()


def library_paths(labels: Iterable[str]) -> list[Path]:
    """Return where the libraries of this machine's level are, or will be."""
    return [search_path() / f"lib{label}.so" for label in labels]


def compile_libraries(labels: Iterable[str]) -> list[Path]:
    """Return the libraries of this machine's level, compiled if they were not yet.

    Raises:
        CompilerFailed: one cannot be compiled.
    """
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(compile_library, labels))


def compile_library(label: str, of: str | None = None) -> Path:
    """Return the library of this machine's level, or of one that is named, compiled if it was not yet.

    Raises:
        CompilerFailed: it cannot be compiled.
    """
    of = of or level()
    library = libraries_folder / of / f"lib{label}.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(library.with_suffix(".lock")):
        if not intact(library):
            unfinished = library.with_name(f".{label}.{os.getpid()}.so")
            _compile(source_of(label), LEVELS[of], library.name, unfinished)
            unfinished.replace(library)
            seal(library)
    return library


def _compile(source: Path, of: Level, name: str, library: Path) -> None:
    # What they call of C, the program that loads them has; zig would make libraries of its own for each processor.
    flags = (f"-DWIDTH={of.width}", f"-mcpu={of.cpu}", f"-I{FOLDER}", "-shared", "-nostdlib", f"-Wl,-soname,{name}")
    clang.compile_with("c++", (*FLAGS, *HELD_BACK, *flags), [source], library)
