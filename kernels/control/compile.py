"""Compiler of control programs: C and assembly to the bytes of local memory, with clang from the package ziglang."""

import builtins
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.kernels.control.elf import read_elf
from neuroncore_rtl.spec import memory_map
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS
from neuroncore_rtl.spec.memory_map import LOCAL_BASE, LOCAL_BYTES

__all__ = ["RUNTIME", "CompilationFailed", "ControlProgram", "compile_program", "memory_map_header"]

HERE = Path(__file__).resolve().parent

RUNTIME = (HERE / "crt0.S", HERE / "runtime.c")
"""Default sources that a program is linked with, besides its own."""

TRAPS = HERE / "traps.S"
"""Source for programs that name `trap_handler`; omitted otherwise, since boot copies only one word per cycle."""

SCRIPT = HERE / "core.ld"

OUTPUT = SIM_BUILD / "control"
"""Cache of compiled programs."""

FLAGS = (
    "-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m", "-nostdlib", "-ffreestanding", "-fno-builtin",
    "-std=gnu11", "-O2", "-Wall", "-Wextra", "-fno-stack-protector", "-fno-sanitize=all", "-fno-pic", "-static",
    "-fomit-frame-pointer", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections",
)  # fmt: skip


def provide() -> None:
    """Do nothing; `run.sim.packages` replaces this by the installation of the compiler, called before its use."""


class CompilationFailed(ValueError):
    """The compiler or the linker failed; the message ends with its output."""


@dataclass(frozen=True)
class ControlProgram:
    """Program for the controller.

    `bytes` are the contents of local memory from LOCAL_BASE on, a multiple of 16; argument words follow.
    """

    bytes: "builtins.bytes"
    symbols: Mapping[str, int]

    def image(self, arguments: Sequence[int] = ()) -> "builtins.bytes":
        """Return the program with its argument words; ValueError if they overlap the variables of the program."""
        image = self.bytes + b"".join(word.to_bytes(4, "little") for word in arguments)
        room = self.symbols["bss_start"] - LOCAL_BASE
        if len(image) > room:
            raise ValueError(f"program and arguments must have at most {room} bytes, not {len(image)}")
        return image


def memory_map_header() -> str:
    """Return memory_map.h: the constants of spec/memory_map.py and the indices of counters as macros."""
    numbers = {name: getattr(memory_map, name) for name in memory_map.__all__}
    numbers |= {f"COUNTER_{name.upper()}": number for number, name in enumerate(QUEUE_COUNTERS)}
    lines = (f"#define {name} {number:#x}" for name, number in numbers.items())
    return "\n".join(("// Made from spec/memory_map.py.", "#pragma once", *lines, ""))


def compile_program(
    sources: Sequence[Path],
    *,
    runtime: Sequence[Path] = RUNTIME,
    script: Path = SCRIPT,
    flags: Sequence[str] = (),
    local_bytes: int = LOCAL_BYTES,
) -> ControlProgram:
    """Compile and link a program, or return it from the cache.

    The sources are C (.c) and assembly (.S) files; headers may lie beside them. The `runtime` includes the definition
    of _start. `flags` are further compiler arguments, such as "-DN=4". Raises CompilationFailed if a source is missing
    or of another type, or the compiler or the linker fails.
    """
    sources = [Path(source).resolve() for source in sources]
    for source in sources:
        if not source.is_file() or source.suffix not in (".c", ".S"):
            raise CompilationFailed(f"a source must be an existing .c or .S file, not {source}")
    if any("trap_handler" in source.read_text() for source in sources):
        runtime = (*runtime, TRAPS)
    provide()
    elf = OUTPUT / f"{sources[0].stem}-{_key(sources, runtime, script, flags, local_bytes)}.elf"
    if not elf.is_file():
        _compile(sources, runtime, script, flags, local_bytes, elf)
    linked = read_elf(elf, local_bytes)
    room = linked.symbols["image_arguments"] - LOCAL_BASE
    return ControlProgram(linked.image[:room].ljust(room, b"\0"), linked.symbols)


def _key(sources: Sequence[Path], runtime: Sequence[Path], script: Path, flags: Sequence[str], local_bytes: int) -> str:
    headers = sorted({header for folder in {HERE, *(s.parent for s in sources)} for header in folder.glob("*.h")})
    files = [(path.name, path.read_text()) for path in (*sources, *headers, *runtime, script)]
    version = importlib.metadata.version("ziglang")
    parts = (files, memory_map_header(), FLAGS, list(flags), local_bytes, version)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _compile(
    sources: Sequence[Path], runtime: Sequence[Path], script: Path, flags: Sequence[str], local_bytes: int, elf: Path
) -> None:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUTPUT) as scratch:
        (Path(scratch) / "memory_map.h").write_text(memory_map_header())
        sizes = f"LOCAL_BASE = {LOCAL_BASE:#x};\nLOCAL_BYTES = {local_bytes:#x};\n"
        (Path(scratch) / "memory_map.ld").write_text(sizes)
        unfinished = Path(scratch) / elf.name
        includes = dict.fromkeys([scratch, str(HERE), *(str(source.parent) for source in sources)])
        command = [
            *(sys.executable, "-m", "ziglang", "cc", *FLAGS, *flags),
            *(f"-I{folder}" for folder in includes),
            *(f"-Wl,-T,{script}", *map(str, runtime), *map(str, sources), "-o", str(unfinished)),
        ]
        # Separate caches keep all output in one folder. The linker finds memory_map.ld in its working directory.
        caches = {f"ZIG_{kind}_CACHE_DIR": str(OUTPUT / "zig") for kind in ("GLOBAL", "LOCAL")}
        finished = subprocess.run(
            command, cwd=scratch, env=os.environ | caches, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if finished.returncode:
            names = ", ".join(source.name for source in sources)
            raise CompilationFailed(f"{names} cannot be compiled:\n{finished.stdout.strip()}")
        unfinished.replace(elf)
