"""The tensor engine in Amaranth's own simulator: no Verilog, no build, every signal. For small arrays and programs.

The testbench is the harness `run/harness/engines/tensor.v` without pauses, so it gives the same cycles.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from amaranth import Format, Signal, Value
from amaranth.lib import wiring
from amaranth.sim import Simulator
from vcd import VCDWriter

from neuroncore_rtl.hdl.tensor.edge import MOVING_BITS, STATIONARY_BITS
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.run.files import whole_file
from neuroncore_rtl.run.harness.engines.tensor import TensorProgram, check_steps
from neuroncore_rtl.run.sim.clock import PERIOD_NS
from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.spec.config import Config

__all__ = ["Place", "Trial", "try_engine"]

LIMIT = 10_000
"""Cycles of the longest run; a program of a picture takes hundreds."""


@dataclass(frozen=True)
class Trial:
    """A run of the tensor engine.

    Arguments:
        psum: the drained words, uint32 [words, partitions].
        cycles: number of cycles from the first instruction to the last PSUM word.
        values: by name of a signal, such as "mover.column_valid", its value in each cycle. The first instruction is
            offered in the first cycle.
        places: the unit and the width of each signal.
    """

    psum: np.ndarray
    cycles: int
    values: Mapping[str, list[int]]
    places: Mapping[str, "Place"]

    def write(self, path: Path) -> Path:
        """Write all signals as VCD, with the names of the harness; return the path.

        Each cycle ends with a rising edge of the clock.
        """
        valid, ready, busy = (self.values[name] for name in ("psum__valid", "psum__ready", "busy"))
        length = len(busy)
        harness = {
            "rst": (1, [0] * length),
            "valid": (1, self.values["instructions__valid"]),
            "drain_go": (1, [a & b for a, b in zip(valid, ready, strict=True)]),
            "cycles": (48, [min(cycle, self.cycles) for cycle in range(length)]),
        }
        inside = [(("engine", *at.units), at.name, at.bits, self.values[name]) for name, at in self.places.items()]
        signals = [*(((), name, bits, values) for name, (bits, values) in harness.items()), *inside]
        with whole_file(path) as unfinished, unfinished.open("w") as file, VCDWriter(file, timescale="1 ns") as writer:
            clock = writer.register_var("tensor", "clk", "wire", size=1, init=0)
            variables = []
            for units, name, bits, values in signals:
                shown = f"\\{name}" if "." in name or "[" in name else name
                shown += f" [{bits - 1}:0]" if bits > 1 else ""
                variables.append(
                    (writer.register_var(("tensor", *units), shown, "wire", size=bits, init=values[0]), values)
                )
            for cycle in range(length):
                for variable, values in variables:
                    writer.change(variable, PERIOD_NS * cycle, values[cycle])
                writer.change(clock, PERIOD_NS * cycle + PERIOD_NS // 2, 0)
                writer.change(clock, PERIOD_NS * (cycle + 1), 1)
        return path


@dataclass(frozen=True)
class Place:
    """A signal in its unit: the names of the units around it, its own name, and its bits."""

    units: tuple[str, ...]
    name: str
    bits: int


def try_engine(program: TensorProgram, config: Config, names: Iterable[str] | None = None) -> Trial:
    """Run a program on the tensor engine, and return the values of the signals `names`, or of all.

    Elaboration takes a second for 4 x 4 elements, and four for 8 x 8. Raises ValueError if an instruction is not legal,
    SimulationFailed if the engine does not finish within `LIMIT` cycles.
    """
    check_steps(program, config)
    engine: Any = TensorEngine(config)
    simulator: Any = Simulator(engine)
    inside = _signals(simulator)
    watched = {name: inside[name][1] for name in (inside if names is None else names)}
    values: dict[str, list[int]] = {name: [] for name in watched}
    words: list[int] = []
    cycles = 0

    async def bench(ctx) -> None:
        nonlocal cycles
        memories = [
            _Memory(engine.stationary, STATIONARY_BITS, program.stationary),
            _Memory(engine.moving, MOVING_BITS, program.moving),
        ]
        elapsed, offered, drained, retired, reading, busy = 0, 0, 0, 0, False, True
        requests = [
            (drain.moves, drain.psum + word, word + 1 == drain.words)
            for drain in program.drains
            for word in range(drain.words)
        ]
        while busy or offered < len(program.steps) or requests or reading:
            step = program.steps[offered] if offered < len(program.steps) else None
            valid = step is not None and drained >= step.drains
            ctx.set(engine.instructions.valid, valid)
            if step is not None:
                ctx.set(Value.cast(engine.instructions.payload), step.instruction.encode())
            for memory in memories:
                memory.answer(ctx)
            reads = bool(requests) and retired >= requests[0][0]
            ctx.set(engine.psum.valid, reads)
            if reads:
                ctx.set(engine.psum.address, 4 * requests[0][1])
            if reading:
                words.append(ctx.get(engine.psum.data))
            for name, signal in watched.items():
                values[name].append(ctx.get(signal))
            busy = bool(ctx.get(engine.busy))
            cycles += busy or offered < len(program.steps)
            offered += valid and ctx.get(engine.instructions.ready)
            retired += ctx.get(engine.retired)
            for memory in memories:
                memory.accept(ctx)
            reading = reads and bool(ctx.get(engine.psum.ready))
            if reading:
                drained += requests.pop(0)[2]
            elapsed += 1
            if elapsed > LIMIT:
                raise SimulationFailed(f"the tensor engine must finish within {LIMIT:,} cycles, but has not")
            await ctx.tick()

    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    shape = (-1, config.columns)
    psum = np.frombuffer(b"".join(word.to_bytes(4 * config.columns, "little") for word in words), "<u4").reshape(shape)
    return Trial(psum, cycles, values, {name: inside[name][0] for name in watched})


def _signals(simulator: Any) -> dict[str, tuple[Place, Value]]:
    """Return all signals of a design, and the fields of structures, by their path below the top level.

    If a unit has a port and an inner signal of the same name, the name is the port's, as in Verilog.
    """
    design = simulator._design
    named = [
        (one.name[1:], name, signal) for one in design.fragments.values() for signal, name in one.signal_names.items()
    ]
    for unit, fragment in design.elaboratables.items():
        if isinstance(unit, wiring.Component):
            units = design.fragments[fragment].name[1:]
            named += [(units, "__".join(map(str, path)), port) for path, _, port in unit.signature.flatten(unit)]
    found = {}
    for units, name, value in named:
        signal = Value.cast(value)
        parts = _fields(name, signal._format) if isinstance(signal, Signal) else {name: signal}
        found |= {".".join((*units, part)): (Place(units, part, len(one)), one) for part, one in parts.items()}
    return found


def _fields(name: str, form: Any) -> dict[str, Value]:
    """Return the value of a format of Amaranth, and those of its fields, by name."""
    if isinstance(form, Format.Struct):
        parts = {f"{name}.{field}": inner for field, inner in form._fields.items()}
    elif isinstance(form, Format.Array):
        parts = {f"{name}[{index}]": inner for index, inner in enumerate(form._fields)}
    else:
        return {name: form._value if isinstance(form, Format.Enum) else form._chunks[0][0]}
    return {name: form._value} | {
        path: value for part, inner in parts.items() for path, value in _fields(part, inner).items()
    }


class _Memory:
    """Operand memory, uint8 [rows, bytes], behind a read port that it accepts in every cycle."""

    def __init__(self, port, bits: int, content: np.ndarray):
        self.port, self.size = port, bits // 8
        self.content = np.pad(content, ((0, 0), (0, self.size)))
        self.data = deque([0] * port.signature.latency)

    def answer(self, ctx) -> None:
        ctx.set(self.port.ready, 1)
        ctx.set(self.port.data, self.data.popleft())

    def accept(self, ctx) -> None:
        address = ctx.get(self.port.address) if ctx.get(self.port.valid) else 0
        self.data.append(int.from_bytes(self.content[:, address : address + self.size].tobytes(), "little"))
