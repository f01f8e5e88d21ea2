"""What a waveform of `tb/harness/collective.v` or `tb/harness/fabric.v` shows first, in groups: a group for each
core's engine and for each direction of each link, as far as the views of `tb/harness/link_view.v` and
`tb/harness/engine_view.v` are there."""

import enum
import re
from collections.abc import Collection, Iterator

from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType, ReduceOp
from neuroncore_rtl.spec.link import FlitKind
from neuroncore_rtl.tb.view.wave_groups import Trace

__all__ = ["OPEN", "collective_groups", "disturbance_group", "link_groups", "traffic_groups"]

OPEN = ("run", "engines", "links")
"""Groups that are open at first."""

_AXI = ("awvalid", "awready", "wvalid", "wready", "bvalid", "bready", "arvalid", "arready", "rvalid", "rready")

Does = enum.IntEnum("Does", {**{kind.name: kind.value for kind in CollectiveKind}, "NOTHING": len(CollectiveKind)})
"""What an engine is at."""

Carries = enum.IntEnum("Carries", {**{kind.name: kind.value for kind in FlitKind}, "NOTHING": len(FlitKind)})
"""What a frame carries."""


class Sending(enum.IntEnum):
    """What the sending end of a channel was at in the last cycle."""

    NOTHING = 0
    SENDS = 1
    WAIT_READY = 2
    WAIT_CREDIT = 3
    WAIT_LINK = 4


class Receiving(enum.IntEnum):
    """What the receiving end of a channel was at in the last cycle."""

    NOTHING = 0
    RECEIVES = 1
    WAIT_NET = 2
    WAIT_LOAD = 3
    WAIT_STORE = 4


def collective_groups(known: Collection[str]) -> dict[str, list[Trace]]:
    """Return the groups for the instance that a waveform with these signals of `tb/harness/collective.v` is of."""
    return {
        "run": [
            Trace("cycle", "cycle", "dec"),
            Trace("still", "cycles without a movement", "dec"),
            Trace("offered", "instruction offered, by core"),
            Trace("taken", "taken"),
            Trace("retired", "retired"),
            Trace("at_end", "list at its end"),
            Trace("error", "engine has failed"),
        ],
        "engines": [
            Trace(f"{view}.does", f"core {view.rpartition('_')[2]}", Does)
            for view in _views(known, "collective", "engine_core")
        ],
        **link_groups(known, "collective", credits=True),
        **{
            f"engine of core {view.rpartition('_')[2]}": list(_engine(view))
            for view in _views(known, "collective", "engine_core")
        },
        **disturbance_group(),
        "HBM ports, two of each core": [Trace(name, name) for name in _AXI],
    }


def disturbance_group() -> dict[str, list[Trace]]:
    """Return the group of what befalls the wires."""
    return {
        "disturbances, by wire": [
            Trace("flip", "bit turned"),
            Trace("drop", "frame lost"),
            Trace("repeated", "frame repeated"),
            Trace("cut", "cut"),
            Trace("dead", "end has given its link up"),
        ]
    }


def traffic_groups(known: Collection[str]) -> dict[str, list[Trace]]:
    """Return the groups for the instance that a waveform with these signals of `tb/harness/fabric.v` is of."""
    return {
        "run": [
            Trace("cycle", "cycle", "dec"),
            Trace("still", "cycles without a flit that moves", "dec"),
            Trace("moves", "a flit moves, by port"),
            Trace("complete", "all flits are made, by port"),
            Trace("dead", "end has given its link up, by wire"),
        ],
        **link_groups(known, "traffic", credits=False),
    }


def _views(known: Collection[str], top: str, kind: str) -> list[str]:
    """Return the names of the views of a kind, in the order of their numbers."""
    found = {
        match[1]: int(match[2])
        for name in known
        if (match := re.fullmatch(rf"{top}\.({kind}_(\d+)\w*)\.(?:clk|counters)", name))
    }
    order = ("", "up", "down", "plus_column", "minus_column", "plus_row", "minus_row")
    ways = {name: re.sub(rf"{kind}_\d+_?", "", name) for name in found}
    return sorted(found, key=lambda name: (found[name], order.index(ways[name])))


def link_groups(known: Collection[str], top: str, *, credits: bool) -> dict[str, list[Trace]]:
    """Return a group of what all links carry, and one for each direction of each.

    Arguments:
        known: the signals.
        top: name of the harness.
        credits: whether the ends of the links can be looked into.
    """
    views = _views(known, top, "link_chip")
    names = {
        view: view.replace("_", " ").replace("plus ", "+").replace("minus ", "-") for view in views
    }  # as tb.harness.collective_faults.link_name calls them
    overview = [Trace(f"{view}.carries", names[view].removeprefix("link "), Carries) for view in views]
    return {"links": overview, **{names[view]: list(_link(view, credits=credits)) for view in views}}


def _link(view: str, *, credits: bool) -> Iterator[Trace]:
    yield Trace(f"{view}.carries", "on the wire", Carries)
    yield Trace(f"{view}.valid", "flit on the wire", "bin")
    yield Trace(f"{view}.vc", "virtual channel", "dec")
    yield Trace(f"{view}.number", "sequence number", "dec")
    yield Trace(f"{view}.source", "from core", "dec")
    yield Trace(f"{view}.destination", "to core", "dec")
    yield Trace(f"{view}.channel", "channel", "dec")
    if credits:
        yield Trace(f"{view}.credits0", "credits left, virtual channel 0", "dec")
        yield Trace(f"{view}.credits1", "credits left, virtual channel 1", "dec")
    yield Trace(f"{view}.stalls", "waits for a place", "bin")
    yield Trace(f"{view}.goes_back", "goes back and sends again", "bin")
    yield Trace(f"{view}.expected", "other direction: next number expected", "dec")
    yield Trace(f"{view}.retry", "other direction: replays asked for", "dec")
    yield Trace(f"{view}.disturbed", "frame is disturbed", "bin")
    yield Trace(f"{view}.dead", "dead", "bin")
    yield Trace(f"{view}.flits", "flits so far", "dec")
    yield Trace(f"{view}.replays", "retries so far", "dec")
    yield Trace(f"{view}.stalled", "cycles without a credit so far", "dec")


def _engine(view: str) -> Iterator[Trace]:
    yield Trace(f"{view}.active", "has an instruction", "bin")
    yield Trace(f"{view}.number", "its number", "dec")
    yield Trace(f"{view}.does", "kind", Does)
    yield Trace(f"{view}.dtype", "type", CollectiveType)
    yield Trace(f"{view}.op", "operation", ReduceOp)
    yield Trace(f"{view}.count", "elements of a block", "dec")
    yield Trace(f"{view}.rank", "rank", "dec")
    yield Trace(f"{view}.ranks", "last rank", "dec")
    yield Trace(f"{view}.base", "core of rank 0", "dec")
    yield Trace(f"{view}.stride", "cores to the next rank", "signed")
    for channel in (0, 1):
        yield Trace(f"{view}.sending{channel}", f"channel {channel} sends", Sending)
        yield Trace(f"{view}.receiving{channel}", f"channel {channel} receives", Receiving)
        yield Trace(f"{view}.sent{channel}", f"channel {channel}: flits sent", "dec")
        yield Trace(f"{view}.received{channel}", f"channel {channel}: flits received", "dec")
