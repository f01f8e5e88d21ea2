"""Verilog module as a shared library: Verilator's C++ code, which replaces Amaranth's simulation in a unit's tests."""

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.sim import clang
from neuroncore_rtl.run.sim.seal import intact, seal
from neuroncore_rtl.run.sim.verilator import find_verilator
from neuroncore_rtl.tb.campaign.mutation.netlist import Port

__all__ = ["MutantModel", "compile_mutants"]

_VERILATE = (
    *("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "--no-assert", "--prefix", "Vtop"),
    *("--top-module", "top", "--Mdir", "objects", "--output-split", "1000000"),
)

_FLAGS = ("-O1", "-g0", "-fPIC", "-std=c++20", "-fno-sanitize=all", "-mcpu=baseline", "-Wno-everything", "-DVM_TRACE=0")
_WRAPPER = Path(__file__).with_suffix(".cpp")
_LINK = ("-shared", "-O2", "-fno-sanitize=all", "-mcpu=baseline", "-nostdlib++", "-lunwind")

_WORDS = ((8, ctypes.c_uint8), (16, ctypes.c_uint16), (32, ctypes.c_uint32), (64, ctypes.c_uint64))


class MutantModel:
    """Instance of a compiled module as a mutant; `ports` are in the order of the module's port function."""

    def __init__(self, file: Path, ports: Sequence[Port], mutant: int):
        self._code = ctypes.CDLL(str(file))
        self._code.create.restype = self._code.port.restype = ctypes.c_void_p
        self._top = ctypes.c_void_p(self._code.create())
        addresses = (self._code.port(self._top, number) for number in range(len(ports)))
        self._words = {port.name: _memory(port.width, address) for port, address in zip(ports, addresses, strict=True)}
        self.set("mutant", mutant)

    def set(self, name: str, value: int) -> None:
        words = self._words[name]
        if isinstance(words, ctypes.Array):
            ctypes.memmove(words, value.to_bytes(len(words), "little"), len(words))
        else:
            words.value = value

    def get(self, name: str) -> int:
        words = self._words[name]
        return int.from_bytes(words, "little") if isinstance(words, ctypes.Array) else words.value

    def evaluate(self) -> None:
        self._code.evaluate(self._top)

    def trace(self, given: Mapping[str, np.ndarray], shown: Sequence[str]) -> np.ndarray:
        """Run one cycle per row of `given`; return the outputs, uint32[cycles, outputs], before each clock edge."""
        columns = []
        for name, values in given.items():
            column = np.zeros((len(values), ctypes.sizeof(self._words[name])), np.uint8)
            column[:, : values.shape[1]] = values
            columns.append(column)
        rows = np.ascontiguousarray(np.hstack(columns))
        words = np.zeros((len(rows), len(shown)), np.uint32)
        inputs, outputs = ([ctypes.addressof(self._words[name]) for name in names] for names in (given, shown))
        masks = [(1 << 8 * min(ctypes.sizeof(self._words[name]), 4)) - 1 for name in shown]
        sizes = (ctypes.c_long * len(columns))(*(column.shape[1] for column in columns))
        self._code.trace(
            self._top, ctypes.c_long(len(rows)), ctypes.c_void_p(rows.ctypes.data),
            len(inputs), (ctypes.c_void_p * len(inputs))(*inputs), sizes,
            len(outputs), (ctypes.c_void_p * len(outputs))(*outputs), ctypes.c_void_p(words.ctypes.data),
        )  # fmt: skip
        return words & np.array(masks, np.uint32)


def _memory(width: int, address: int):
    kind = next((kind for bits, kind in _WORDS if width <= bits), ctypes.c_uint8 * (-(-width // 32) * 4))
    return kind.from_address(address)


def compile_mutants(verilog: str, ports: Sequence[Port], folder: Path) -> Path:
    """Compile the module `top` of a Verilog file to `module.so`; RuntimeError with the tool's message."""
    verilator = find_verilator()
    if verilator is None:
        raise RuntimeError("Verilator is missing")
    environment = os.environ | dict(verilator.environment)
    command = [verilator.program, *_VERILATE, verilog]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Verilator cannot read {verilog}:\n{done.stderr[-2000:]}")
    addresses = ", ".join(f"&top->{port.name}" for port in ports)
    (folder / "wrapper.cpp").write_text(f"#define PORTS {addresses}\n{_WRAPPER.read_text()}")
    include = Path(environment["VERILATOR_ROOT"], "include")
    flags = (*_FLAGS, f"-I{include}", f"-I{include / 'vltstd'}", f"-I{folder / 'objects'}")
    sources = [folder / "wrapper.cpp", *sorted((folder / "objects").glob("*.cpp"))]
    # All sources in one compilation, as most of a small module's code is headers.
    everything = folder / "module.cpp"
    everything.write_text("".join(f'#include "{source}"\n' for source in sources))
    clang.compile_with("c++", ("-c", *flags), [everything], folder / "module.o")
    library = folder / "module.so"
    clang.compile_with("c++", _LINK, [folder / "module.o", *_runtime(include, flags), clang.STANDARD_LIBRARY], library)
    return library


def _runtime(include: Path, flags: Sequence[str]) -> list[Path]:
    clang.prepare()
    places = SIM_BUILD / "mutation"
    places.mkdir(parents=True, exist_ok=True)
    version = hashlib.sha256(f"{clang.version()} {_FLAGS} {find_verilator()}".encode()).hexdigest()[:16]
    objects = []
    for name in ("verilated", "verilated_threads"):
        compiled = places / f"{name}-{version}.o"
        with FileLock(compiled.with_suffix(".lock")):
            if not intact(compiled):
                unfinished = compiled.with_suffix(".unfinished.o")
                clang.compile_with("c++", ("-c", *flags), [include / f"{name}.cpp"], unfinished)
                unfinished.replace(compiled)
                seal(compiled)
        objects.append(compiled)
    return objects
