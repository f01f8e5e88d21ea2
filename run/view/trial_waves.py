"""Waveform of a run of the tensor engine in Amaranth's simulator, with the names of the engine's harness."""

from pathlib import Path

from vcd import VCDWriter

from neuroncore_rtl.run.files import whole_file
from neuroncore_rtl.run.harness.engines.tensor_trial import Trial
from neuroncore_rtl.run.sim.clock import PERIOD_NS

__all__ = ["write_trial"]


def write_trial(trial: Trial, path: Path) -> Path:
    """Write all signals of a run as VCD; return its path. Each cycle ends with a rising edge of the clock."""
    valid, ready, busy = (trial.values[name] for name in ("psum__valid", "psum__ready", "busy"))
    length = len(busy)
    harness = {
        "rst": (1, [0] * length),
        "valid": (1, trial.values["instructions__valid"]),
        "drain_go": (1, [a & b for a, b in zip(valid, ready, strict=True)]),
        "cycles": (48, [min(cycle, trial.cycles) for cycle in range(length)]),
    }
    signals: list[tuple[tuple[str, ...], str, int, list[int]]] = [
        (("tensor",), name, bits, values) for name, (bits, values) in harness.items()
    ]
    for name, place in trial.places.items():
        signals.append((("tensor", "engine", *place.units), place.name, place.bits, trial.values[name]))
    with whole_file(path) as unfinished, unfinished.open("w") as file, VCDWriter(file, timescale="1 ns") as writer:
        clock = writer.register_var("tensor", "clk", "wire", size=1, init=0)
        variables = []
        for scope, name, bits, values in signals:
            shown = f"\\{name}" if "." in name or "[" in name else name
            shown += f" [{bits - 1}:0]" if bits > 1 else ""
            variables.append((writer.register_var(scope, shown, "wire", size=bits, init=values[0]), values))
        for cycle in range(length):
            for variable, values in variables:
                writer.change(variable, PERIOD_NS * cycle, values[cycle])
            writer.change(clock, PERIOD_NS * cycle + PERIOD_NS // 2, 0)
            writer.change(clock, PERIOD_NS * (cycle + 1), 1)
    return path
