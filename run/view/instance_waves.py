"""Initial groups of an instance's waveform: engines or cores, and each direction of each link.

One selected core also has the groups of a single core's waveform, as far as recorded.
"""

import enum
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from neuroncore_rtl.run.view.core_waves import core_groups
from neuroncore_rtl.run.view.wave_groups import Trace, traces
from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType, ReduceOp
from neuroncore_rtl.spec.link import CORES_PER_CHIP, FlitKind

__all__ = [
    "INSTANCE_OPEN", "TOP", "Does", "Receiving", "Sending", "collective_groups", "instance_groups", "traffic_groups",
]  # fmt: skip

TOP = "machines"
"""Name of the harness of all cores."""

INSTANCE_OPEN = ("run", "cores", "engines", "links")
"""Groups that are open initially."""

_AXI = ("awvalid", "awready", "wvalid", "wready", "bvalid", "bready", "arvalid", "arready", "rvalid", "rready")

Does: Any = enum.IntEnum("Does", {**{kind.name: kind.value for kind in CollectiveKind}, "NOTHING": len(CollectiveKind)})
"""Activity of a collective engine, as shown in waveforms."""

Carries: Any = enum.IntEnum("Carries", {**{kind.name: kind.value for kind in FlitKind}, "NOTHING": len(FlitKind)})
"""Content of a frame on a link, as shown in waveforms."""


Sending: Any = enum.IntEnum("Sending", "NOTHING SENDS WAIT_READY WAIT_CREDIT WAIT_LINK", start=0)
"""Activity of a channel's sender in the last cycle."""

Receiving: Any = enum.IntEnum("Receiving", "NOTHING RECEIVES WAIT_NET WAIT_LOAD WAIT_STORE", start=0)
"""Activity of a channel's receiver in the last cycle."""


def collective_groups(known: Collection[str]) -> dict[str, list[Trace]]:
    """Return the groups of a waveform of `run/harness/links/collective.v`; `known`: its signals."""
    engines = {f"core {view.rpartition('_')[2]}": view for view in _views(known, "collective", "engine_core")}
    return {
        "run": traces("""
            cycle dec | still dec cycles without a movement
            offered hex instruction offered, by core | taken hex | retired hex
            at_end hex list at its end | error hex engine has failed
        """),
        "engines": [Trace(f"{view}.does", core, Does) for core, view in engines.items()],
        **link_groups(known, "collective", credits=True),
        **{f"engine of {core}": traces(_ENGINE, view, *_ENGINE_WORDS) for core, view in engines.items()},
        **_DISTURBANCES,
        "HBM ports, two of each core": [Trace(name, name) for name in _AXI],
    }


_DISTURBANCES = {
    "disturbances, by wire": traces("""
        flip hex bit turned | drop hex frame lost | repeated hex frame repeated | cut hex
        dead hex end has given its link up
    """)
}


def traffic_groups(known: Collection[str]) -> dict[str, list[Trace]]:
    """Return the groups of a waveform of `run/harness/links/fabric.v`; `known`: its signals."""
    return {
        "run": traces("""
            cycle dec | still dec cycles without a flit that moves | moves hex a flit moves, by port
            complete hex all flits are made, by port | dead hex end has given its link up, by wire
        """),
        **link_groups(known, "traffic", credits=False),
    }


def _views(known: Collection[str], top: str, kind: str) -> list[str]:
    """Return the harness's view modules of a kind, ordered by the number in the name."""
    found = {
        match[1]: int(match[2])
        for name in known
        if (match := re.fullmatch(rf"{top}\.({kind}_(\d+)\w*)\.(?:clk|counters)", name))
    }
    order = ("", "up", "down", "plus_column", "minus_column", "plus_row", "minus_row")
    ways = {name: re.sub(rf"{kind}_\d+_?", "", name) for name in found}
    return sorted(found, key=lambda name: (found[name], order.index(ways[name])))


def link_groups(known: Collection[str], top: str, *, credits: bool) -> dict[str, list[Trace]]:
    """Return the groups of the links; `credits`: the harness shows the ends of the links."""
    views = {  # named as by run.harness.collective_faults.link_name
        view.replace("_", " ").replace("plus ", "+").replace("minus ", "-"): view
        for view in _views(known, top, "link_chip")
    }
    overview = [Trace(f"{view}.carries", name.removeprefix("link "), Carries) for name, view in views.items()]
    table = _LINK.format(credits=_CREDITS if credits else "")
    return {"links": overview, **{name: traces(table, view, Carries) for name, view in views.items()}}


_ENGINE_WORDS = (Does, CollectiveType, ReduceOp, Sending, Receiving)

_LINK = """
    carries Carries on the wire | valid bin flit on the wire | vc dec virtual channel
    number dec sequence number | source dec from core | destination dec to core | channel dec
    {credits}
    stalls bin waits for a credit | goes_back bin goes back and sends again
    expected dec other direction: next number expected
    retry dec other direction: replays asked for | disturbed bin frame is disturbed | dead bin
    flits dec flits so far | replays dec retries so far | stalled dec cycles without a credit so far
"""

_CREDITS = "credits0 dec credits left, virtual channel 0 | credits1 dec credits left, virtual channel 1"

_ENGINE = """
    active bin has an instruction | number dec its number | does Does kind
    dtype CollectiveType type | op ReduceOp operation | count dec elements of a block | rank dec
    ranks dec last rank | base dec core of rank 0 | stride signed cores to the next rank
""" + "".join(
    f"""
    sending{channel} Sending channel {channel} sends
    receiving{channel} Receiving channel {channel} receives
    sent{channel} dec channel {channel}: flits sent
    received{channel} dec channel {channel}: flits received
    """
    for channel in (0, 1)
)


def instance_groups(known: Collection[str], core: int | None = None) -> dict[str, list[Trace]]:
    """Return the groups of an instance's waveform, and further groups that show `core` in detail."""
    cores = len([name for name in known if re.fullmatch(rf"{TOP}\.log_\d+\.clk", name)])
    return {
        "run": traces("""
            cycle dec | still dec cycles of rest | start bin starts, by core | over bin program has ended
            failed bin error | quiet bin
        """),
        "cores": [trace for number in range(cores) for trace in _overview(number)],
        **link_groups(known, TOP, credits=True),
        **_DISTURBANCES,
        **({} if core is None else _inside(known, core)),
    }


def _overview(number: int) -> list[Trace]:
    table = f"""
        issued bin core {number}: issues, by queue | retired bin core {number}: retires, by queue
        controller_pc hex core {number}: controller's pc
    """
    return traces(table, f"log_{number}")


def _inside(known: Collection[str], core: int) -> dict[str, list[Trace]]:
    """Return the groups of a lone core for one core of the instance."""
    chip, number = divmod(core, CORES_PER_CHIP)
    at = f"cores.chip_{chip}.core{number}"
    own = f"{TOP}.{at}."
    groups = core_groups([f"machine.core.{name.removeprefix(own)}" for name in known if name.startswith(own)])
    ports = traces("\n".join(f"axi__0__{name} handshake {name.upper()}" for name in ("ar", "r", "aw", "w", "b")), at)
    return {
        f"core {core}: {name}": ports if name == "HBM ports" else [_moved(trace, at, core) for trace in lines]
        for name, lines in groups.items()
    }


def _moved(trace: Trace, at: str, core: int) -> Trace:
    """Return a line of a lone core with its path in an instance; its harness's signals are in `log_<core>`."""
    if trace.signal.startswith("core."):
        return replace(trace, signal=at + trace.signal.removeprefix("core"))
    return trace if trace.signal == "cycle" else replace(trace, signal=f"log_{core}.{trace.signal}")
