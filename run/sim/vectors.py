"""Vector libraries: blocks of replicated modules (*lanes*) as C++ from RTLIL, compiled once, linked at run time.

A Verilated program calls a block's library by name. There is one library per vector level, the vector instructions that
a processor has; the program's library search path selects the level at start.
"""

import hashlib
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.hdl.verilog.conversion import Irreplaceable
from neuroncore_rtl.run import lanes
from neuroncore_rtl.run.files import whole_file, write_text
from neuroncore_rtl.run.lanes import wrapper
from neuroncore_rtl.run.lanes.block_code import BlockCode
from neuroncore_rtl.run.lanes.extraction import netlists
from neuroncore_rtl.run.lanes.netlist import Unsupported
from neuroncore_rtl.run.sim import clang
from neuroncore_rtl.run.sim.seal import intact, seal

__all__ = [
    "LANES_VARIABLE", "LEVELS", "MARK", "MOST_THREADS", "POOL", "THREADS_VARIABLE", "WAYS",
    "WrongChoice", "compile_libraries", "compile_library", "compiler_sources", "lanes_choice", "level",
    "libraries_of", "library_paths", "paying_threads", "search_path", "source_of", "threads_choice",
    "threads_of", "use_vectors", "vectorised",
]  # fmt: skip

libraries_folder = SIM_BUILD / "lanes"

FOLDER = Path(lanes.__file__).parent

LEVEL_VARIABLE = "LANES_LEVEL"
"""Environment variable that selects a lower level than the processor's."""

MARK = "// lanes: "
"""Prefix of the label that precedes a module which calls a library."""

POOL = FOLDER / "pool.h"
"""C++ header of the threads that step blocks of lanes, and instances side by side."""

THREADS_MARK = "// threads: "
"""Prefix of the number of threads that pay for the library."""

WAYS = ("vector", "scalar")
"""Ways to simulate blocks of replicated modules: by vector libraries, or as Verilog like all other modules."""

LANES_VARIABLE = "LANES"
"""Environment variable whose value is one of `WAYS`; by default the first."""

THREADS_VARIABLE = "THREADS"
"""Environment variable with the number of threads that step blocks of lanes, or `PAYING`; by default 1."""

PAYING = "paying"
"""As many threads as pay for the design, at most one per processor."""

MOST_THREADS = 64

_used: list[int] = []


class WrongChoice(ValueError):
    """An environment variable has an unknown or unavailable value; the message lists the valid ones."""


@dataclass(frozen=True)
class Level:
    """Vector level of a processor with the flags `needs`: `width` instances per vector, `cpu` for the compiler."""

    width: int
    cpu: str
    needs: tuple[str, ...] = ()


LEVELS = {
    "avx512": Level(16, "x86_64_v4", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
    "avx2": Level(8, "x86_64_v3", ("avx2", "bmi1", "bmi2", "fma", "movbe", "f16c")),
    "plain": Level(4, "baseline"),
}
"""Levels by name, best first; `plain` runs on any processor."""

FLAGS = ("-O2", "-g0", "-fPIC", "-fno-sanitize=all", "-fno-exceptions", "-fno-rtti", "-std=c++17", "-Wno-everything")
"""C++ flags."""

HELD_BACK = (
    *("-mllvm", "-jump-threading-phi-threshold=1", "-mllvm", "-jump-threading-implication-search-threshold=0"),
    *("-mllvm", "-enable-misched=false"),
)
"""Jump threading takes minutes if lanes share hundreds of conditions. The scheduler of instructions would undo the
order of cells (`CHAINS` in `run.lanes.schedule`)."""


@cache
def compiler_sources() -> str:
    """Return a hash of everything that determines a block's code and library."""
    texts = [file.read_text() for file in sorted(FOLDER.glob("*.*"))]
    texts += [repr((FLAGS, HELD_BACK, LEVELS)), clang.version()]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def vectorised(name: str, of: tuple[str, ...], texts: Mapping[str, str]) -> str:
    """Store the C++ source of a block's vector library; return the Verilog module that calls the library.

    It is a `hdl.verilog.conversion.Replacement`; it raises Irreplaceable if the block cannot be evaluated as vectors.
    """
    parts = [name, *of, *texts.values(), compiler_sources()]
    label = f"{name}-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}"
    source = source_of(label)
    verilog = source.with_suffix(".v")
    if not verilog.is_file():
        try:
            code = BlockCode(netlists(name, of, texts), name)
            write_text(source, wrapper.source(code))
        except Unsupported as error:
            raise Irreplaceable(f"{name} is simulated module by module, not as vectors: {error}") from error
        write_text(verilog, f"{MARK}{label}\n{THREADS_MARK}{code.threads}\n{wrapper.verilog(code)}")
    return verilog.read_text()


def source_of(label: str) -> Path:
    """Return the path of the C++ source of a vector library."""
    return libraries_folder / f"{label}.cpp"


def libraries_of(verilog: str) -> list[str]:
    """Return the labels of the vector libraries that a Verilog text calls."""
    return re.findall(rf"^{MARK}(\S+)$", verilog, re.MULTILINE)


def paying_threads(verilog: str) -> int:
    """Return the number of threads that pay for a Verilog text that calls vector libraries."""
    return max(map(int, re.findall(rf"^{THREADS_MARK}(\d+)$", verilog, re.MULTILINE)), default=1)


@contextmanager
def _environment_choice(variable: str, value: str | None) -> Iterator[None]:
    """Set an environment variable in this context; None: leave it as it is."""
    before = os.environ.get(variable)
    if value is not None:
        os.environ[variable] = value
    try:
        yield
    finally:
        if value is not None:
            os.environ.pop(variable)
            if before is not None:
                os.environ[variable] = before


def lanes_choice(way: str | None) -> AbstractContextManager[None]:
    """Set in this context how blocks of lanes are simulated; None: the environment variable decides."""
    return _environment_choice(LANES_VARIABLE, way)


@contextmanager
def threads_choice(number: int | None) -> Iterator[list[int]]:
    """Set the number in this context; None: the environment's, or `PAYING`. Yield the numbers that simulations used."""
    with _environment_choice(THREADS_VARIABLE, str(number or os.environ.get(THREADS_VARIABLE) or PAYING)):
        _used.clear()
        yield _used


def threads_of(paying: int) -> int:
    """Return the number for a simulation of a design in which `paying` threads pay; WrongChoice for an invalid one."""
    chosen = os.environ.get(THREADS_VARIABLE) or "1"
    if chosen == PAYING:
        chosen = str(min(paying, len(os.sched_getaffinity(0))))
    if not (chosen.isdecimal() and 1 <= int(chosen) <= MOST_THREADS):
        raise WrongChoice(f"{THREADS_VARIABLE} must be {PAYING} or an integer from 1 to {MOST_THREADS}, not {chosen!r}")
    _used.append(int(chosen))
    return int(chosen)


def use_vectors() -> bool:
    """Return whether blocks of lanes are evaluated as vectors; WrongChoice for an invalid environment variable."""
    way = os.environ.get(LANES_VARIABLE) or WAYS[0]
    if way not in WAYS:
        raise WrongChoice(f"{LANES_VARIABLE} must be one of {', '.join(WAYS)}, not {way!r}")
    return way == "vector"


@cache
def level() -> str:
    """Return the vector level that the environment selects, by default the best of this processor."""
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
    """Return the folder of the libraries for this computer's vector level."""
    return libraries_folder / level()


def library_paths(labels: Iterable[str]) -> list[Path]:
    """Return the paths of the vector libraries `labels` for this computer's instructions; they need not exist."""
    return [search_path() / f"lib{label}.so" for label in labels]


def compile_libraries(labels: Iterable[str]) -> list[Path]:
    """Return the paths of the vector libraries `labels` for this computer's instructions; compile missing ones."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(compile_library, labels))


def compile_library(label: str, of: str | None = None) -> Path:
    """Return a library's path for the level `of`, by default this computer's; compile it if missing."""
    of = of or level()
    library = libraries_folder / of / f"lib{label}.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(library.with_suffix(".lock")):
        if not intact(library):
            with whole_file(library) as unfinished:
                _compile(source_of(label), LEVELS[of], library.name, unfinished)
            seal(library)
    return library


def _compile(source: Path, of: Level, name: str, library: Path) -> None:
    # The loading program provides the C functions; zig would otherwise build separate libraries for each processor.
    flags = (f"-DWIDTH={of.width}", f"-mcpu={of.cpu}", f"-I{FOLDER}", "-shared", "-nostdlib", f"-Wl,-soname,{name}")
    clang.compile_with("c++", (*FLAGS, *HELD_BACK, *flags), [source], library)
