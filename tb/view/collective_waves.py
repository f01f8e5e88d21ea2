"""What a waveform of `tb/harness/collective.v` or `tb/harness/fabric.v` shows first, in groups: a group for each
core's engine and for each direction of each link, as far as the views of `tb/harness/link_view.v` and
`tb/harness/engine_view.v` are there."""

import enum
import re
from collections.abc import Collection

from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType, ReduceOp
from neuroncore_rtl.spec.link import FlitKind
from neuroncore_rtl.tb.view.wave_groups import Trace, traces

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
        "run": traces("""
            cycle dec | still dec cycles without a movement
            offered hex instruction offered, by core | taken hex | retired hex
            at_end hex list at its end | error hex engine has failed
        """),
        "engines": [
            Trace(f"{view}.does", f"core {view.rpartition('_')[2]}", Does)
            for view in _views(known, "collective", "engine_core")
        ],
        **link_groups(known, "collective", credits=True),
        **{
            f"engine of core {view.rpartition('_')[2]}": traces(_ENGINE, view, *_ENGINE_WORDS)
            for view in _views(known, "collective", "engine_core")
        },
        **disturbance_group(),
        "HBM ports, two of each core": [Trace(name, name) for name in _AXI],
    }


def disturbance_group() -> dict[str, list[Trace]]:
    """Return the group of what befalls the wires."""
    return {
        "disturbances, by wire": traces("""
            flip hex bit turned | drop hex frame lost | repeated hex frame repeated | cut hex
            dead hex end has given its link up
        """)
    }


def traffic_groups(known: Collection[str]) -> dict[str, list[Trace]]:
    """Return the groups for the instance that a waveform with these signals of `tb/harness/fabric.v` is of."""
    return {
        "run": traces("""
            cycle dec | still dec cycles without a flit that moves | moves hex a flit moves, by port
            complete hex all flits are made, by port | dead hex end has given its link up, by wire
        """),
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
    views = {  # by the name that tb.harness.collective_faults.link_name gives the link
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
