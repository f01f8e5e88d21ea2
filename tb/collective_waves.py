"""What a waveform of `tb/collective.v` shows first, in groups; signals of many cores have a bit for each."""

from tb.wave_groups import Trace

__all__ = ["COLLECTIVE_GROUPS"]

_AXI = ("awvalid", "awready", "wvalid", "wready", "bvalid", "bready", "arvalid", "arready", "rvalid", "rready")

COLLECTIVE_GROUPS: dict[str, list[Trace]] = {
    "run": [
        Trace("cycle", "cycle", "dec"),
        Trace("still", "cycles without a movement", "dec"),
        Trace("offered", "instruction offered"),
        Trace("taken", "taken"),
        Trace("retired", "retired"),
        Trace("at_end", "list at its end"),
        Trace("error", "engine has failed"),
    ],
    "links": [
        Trace("dead", "dead"),
        Trace("flip", "bit turned"),
        Trace("drop", "frame lost"),
        Trace("repeated", "frame repeated"),
        Trace("cut", "cut"),
    ],
    "HBM ports, two of each core": [Trace(name, name) for name in _AXI],
}
