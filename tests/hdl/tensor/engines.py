"""What the tests of the engine share: programs written by hand, faults, and comparisons that say where they differ."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from neuroncore_rtl.golden.arith import storage_dtype
from neuroncore_rtl.golden.tensor import TensorEngine
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa import MultiplyMoving, TensorInstruction
from neuroncore_rtl.tb.harness.run import Device
from neuroncore_rtl.tb.harness.tensor import Drain, Step, TensorProgram
from neuroncore_rtl.tb.sim import simulation

__all__ = ["FaultyDevice", "assert_same_words", "faulty", "golden_words", "memory_of", "program_of"]


def assert_same_words(words: np.ndarray, expected: np.ndarray) -> None:
    """Compare PSUM words, uint32 of shape [words, partitions], bit for bit; fail with the first differences."""
    assert words.shape == expected.shape
    assert expected.size > 0
    differs = np.argwhere(words != expected)
    shown = [f"word {w}, partition {p}: {words[w, p]:08x}, not {expected[w, p]:08x}" for w, p in differs[:5]]
    assert not shown, f"{len(differs)} of {expected.size} words differ from golden: {'; '.join(shown)}"


def memory_of(codes: np.ndarray, fmt: Format) -> np.ndarray:
    """Return operand memory, uint8 [rows, bytes], with codes [rows, elements] from address 0."""
    return np.ascontiguousarray(codes).astype(storage_dtype(fmt).newbyteorder("<")).view(np.uint8)


def program_of(
    instructions: Sequence[TensorInstruction],
    stationary: np.ndarray,
    moving: np.ndarray,
    words: Sequence[tuple[int, int]],
) -> TensorProgram:
    """Return a program that executes `instructions` and at the end reads `words`: first PSUM word and number, each."""
    moves = sum(isinstance(instruction, MultiplyMoving) for instruction in instructions)
    drains = [Drain(moves, psum, count) for psum, count in words]
    return TensorProgram([Step(instruction, 0) for instruction in instructions], drains, stationary, moving)


def golden_words(config: Config, program: TensorProgram) -> np.ndarray:
    """Return what golden leaves in the words that a program of `program_of` reads."""
    engine = TensorEngine(config)
    for step in program.steps:
        engine.execute(step.instruction, program.stationary, program.moving)
    return np.concatenate([engine.psum[:, d.psum : d.psum + d.words].T for d in program.drains])


class FaultyDevice:
    """A device with a change of its Verilog; otherwise it is as the sound one."""

    def __init__(self, sound: Device, change: Callable[[str], str]):
        self._sound, self._change = sound, change

    def __getattr__(self, name: str):
        return getattr(self._sound, name)

    def design(self, *, waves: bool = False) -> simulation.Design:
        """Return the changed device in its harness."""
        design = self._sound.design(waves=waves)
        return replace(design, verilog=self._change(design.verilog))


def faulty(sound: Device, module: str, *, ports: dict[str, str], body: str = "") -> FaultyDevice:
    """Return a device in which every module whose name matches is put into a shell that breaks it.

    Arguments:
        sound: the device.
        module: regular expression that matches the whole name.
        ports: what is connected to a port in the place of the shell's port of that name: of an input an expression, of
            an output a wire that `body` declares, or nothing.
        body: Verilog of the shell.
    """
    return FaultyDevice(sound, lambda text: _in_shells(text, module, ports, body))


def _in_shells(text: str, module: str, ports: dict[str, str], body: str) -> str:
    modules = [
        m
        for m in re.finditer(r"^module (\\?)(\S+?) ?\((.*?)^endmodule", text, re.M | re.S)
        if re.fullmatch(module, m[2])
    ]
    assert len(modules) == 1, f"{len(modules)} modules match {module}"
    shells = []
    for found in modules:
        escape, name, rest = found.groups()
        declarations = re.findall(r"^  (input|output) (\[\d+:0\] )?(\S+) ?;", rest, re.M)
        assert set(ports) <= {port for *_, port in declarations}
        connections = ", ".join(f".{port} ({ports.get(port, port)} )" for *_, port in declarations)
        heads = "".join(f"    {way} {width}{port} ;\n" for way, width, port in declarations)
        names = ", ".join(f"{port} " for *_, port in declarations)
        text = text.replace(found[0], found[0].replace(f"module {escape}{name}", f"module \\sound_{name} ", 1))
        shells.append(
            f"module {escape}{name} ({names});\n{heads}{body}\n    \\sound_{name} sound({connections});\nendmodule\n"
        )
    return text + "\n" + "\n".join(shells)
