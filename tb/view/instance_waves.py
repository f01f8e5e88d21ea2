"""What a waveform of all cores of an instance in `tb/harness/cores.v` shows first, in groups: what every core and every
link is at, and of one core what a waveform of the core alone shows, as far as it is recorded so deep."""

import re
from collections.abc import Collection
from dataclasses import replace

from neuroncore_rtl.spec.link import CORES_PER_CHIP
from neuroncore_rtl.tb.view.collective_waves import disturbance_group, link_groups
from neuroncore_rtl.tb.view.core_waves import core_groups
from neuroncore_rtl.tb.view.wave_groups import Trace, traces

__all__ = ["OPEN", "TOP", "instance_groups"]

TOP = "machines"
"""Name of the harness."""

OPEN = ("run", "cores", "links")
"""Groups that are open at first."""

_AXI = ("ar", "r", "aw", "w", "b")


def instance_groups(known: Collection[str], core: int | None = None) -> dict[str, list[Trace]]:
    """Return the groups for the instance that a waveform with these signals is of.

    Arguments:
        known: the signals.
        core: the one whose insides are shown; None: none.
    """
    cores = len([name for name in known if re.fullmatch(rf"{TOP}\.log_\d+\.clk", name)])
    return {
        "run": traces(_RUN),
        "cores": [trace for number in range(cores) for trace in _overview(number)],
        **link_groups(known, TOP, credits=True),
        **disturbance_group(),
        **({} if core is None else _inside(known, core)),
    }


_RUN = """
    cycle dec | still dec cycles of rest | start bin starts, by core | over bin program has ended
    failed bin error | quiet bin
"""


def _overview(number: int) -> list[Trace]:
    table = f"""
        issued bin core {number}: issues, by queue | retired bin core {number}: retires, by queue
        controller_pc hex core {number}: controller's pc
    """
    return traces(table, f"log_{number}")


def _inside(known: Collection[str], core: int) -> dict[str, list[Trace]]:
    """Return the groups of the core alone, whose signals are further down here."""
    chip, number = divmod(core, CORES_PER_CHIP)
    at = f"cores.chip_{chip}.core{number}"
    own = f"{TOP}.{at}."
    groups = core_groups([f"machine.core.{name.removeprefix(own)}" for name in known if name.startswith(own)])
    ports = traces("\n".join(f"axi__0__{channel} handshake {channel.upper()}" for channel in _AXI), at)
    return {
        f"core {core}: {name}": ports if name == "HBM ports" else [_moved(trace, at, core) for trace in lines]
        for name, lines in groups.items()
    }


def _moved(trace: Trace, at: str, core: int) -> Trace:
    """Return a line of the core alone as it is here; what its harness has, the core's log has."""
    if trace.signal.startswith("core."):
        return replace(trace, signal=at + trace.signal.removeprefix("core"))
    return trace if trace.signal == "cycle" else replace(trace, signal=f"log_{core}.{trace.signal}")
