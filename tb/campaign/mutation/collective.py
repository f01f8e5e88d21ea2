"""Rows of the collective engine: of its units, and of what is left of it without them."""

from functools import partial

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from neuroncore_rtl.hdl.collective.checker import CollectiveChecker
from neuroncore_rtl.hdl.collective.credit_manager import CreditManager
from neuroncore_rtl.hdl.collective.engine import CollectiveEngine
from neuroncore_rtl.hdl.collective.job import SEGMENT_ELEMENTS
from neuroncore_rtl.hdl.collective.lanes import ReduceLane
from neuroncore_rtl.hdl.collective.loader import OPERATION, CollectiveLoader
from neuroncore_rtl.hdl.collective.mailbox import Mailbox
from neuroncore_rtl.hdl.collective.ops import StoreOp
from neuroncore_rtl.hdl.collective.receiver import ReceivePath
from neuroncore_rtl.hdl.collective.rounding import RoundingLane
from neuroncore_rtl.hdl.collective.schedule import Schedule
from neuroncore_rtl.hdl.collective.sender import CollectiveSender
from neuroncore_rtl.hdl.collective.storer import Storer
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_ALIGNMENT, GRANULE, MAX_RANKS, CollectiveKind, CollectiveType
from neuroncore_rtl.tb.campaign.mutation.legal import answers_what_was_asked
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, files, meant, payloads, tested

__all__ = ["COLLECTIVE_UNITS"]


def _announcements(m: Module, mailbox: Mailbox) -> Value:
    """Return whether a core announces itself that may, and what is taken is there."""
    full, looked = Signal(mailbox.cores, name="announced_cores"), Signal.like(mailbox.core, name="looked")
    m.d.sync += looked.eq(mailbox.core)
    with m.If(mailbox.put):
        m.d.sync += full.bit_select(mailbox.source, 1).eq(1)
    with m.If(mailbox.take):
        m.d.sync += full.bit_select(mailbox.core, 1).eq(0)
    puts = ~mailbox.put | ((mailbox.source < mailbox.cores) & ~full.bit_select(mailbox.source, 1))
    takes = ~mailbox.take | (mailbox.there & (looked == mailbox.core))
    return puts & takes & (mailbox.core < mailbox.cores)


def _operations_of_loads(m: Module, loader: CollectiveLoader) -> Value:
    """Return whether what is loaded is some elements of a type that there is, and HBM delivers what was asked for."""
    op = loader.ops.payload
    some = (op.elements != 0) & op.dtype.matches(*CollectiveType)
    return (~loader.ops.valid | some) & answers_what_was_asked(m, loader.axi)


def _loaded(m: Module, operations: BufferedFifo) -> Value:
    return ~operations.o.valid | operations.o.payload.dtype.matches(*CollectiveType)


def _operations_of_stores(m: Module, storer: Storer) -> Value:
    """Return whether what is stored is some elements at an address that may be."""
    return ~storer.ops.valid | _of_store(storer.ops.payload)


def _of_store(op) -> Value:
    """Return whether an operation of a Storer is one that may be."""
    aligned = ~op.address[: (COLLECTIVE_ALIGNMENT - 1).bit_length()].any()
    return aligned & (op.elements != 0) & op.dtype.matches(*CollectiveType)


def _stored(m: Module, operations: BufferedFifo) -> Value:
    return ~operations.o.valid | _of_store(operations.o.payload)


def _loads(m: Module, loader: CollectiveLoader) -> dict[str, Value]:
    return payloads(loader, "beats") | payloads(loader.axi, "ar", of="axi.")


def _converted(m: Module, both) -> dict[str, Value]:
    return payloads(both.widens, "o", of="widens.") | payloads(both.narrows, "o", of="narrows.")


def _of_bytes(m: Module, both) -> Value:
    """Return whether no operation is of no bytes."""
    return Cat(unit.bytes != 0 for unit in (both.widens, both.narrows)).all()


def _operations(m: Module, schedule: Schedule) -> dict[str, Value]:
    return payloads(schedule, "loads", "receives", "sends") | meant(schedule.busy, {"job": schedule.job})


def _jobs(m: Module, schedule: Schedule) -> Value:
    """Return whether a job is one that may be, as far as that is known without products."""
    job = schedule.i.payload
    steps = ("unit", "own", "top")
    beside = Cat(job[name][: (GRANULE - 1).bit_length()] for name in ("src", "dst", "chunk", *steps)).any()
    aligned = ~Cat(job[name][: (COLLECTIVE_ALIGNMENT - 1).bit_length()] for name in steps).any()
    counts = (job.count != 0) & (job.chunk != 0) & (job.chunk <= SEGMENT_ELEMENTS)
    one = (job.kind != CollectiveKind.BARRIER) | (job.count == 1)
    ranks = (job.last_rank != 0) & (job.rank <= job.last_rank) & (job.root <= job.last_rank)
    segments = (job.unit == job.chunk) & (job.own <= job.top) & (job.top < MAX_RANKS * SEGMENT_ELEMENTS)
    in_turn = job.kind.matches(CollectiveKind.ALL_REDUCE, CollectiveKind.BARRIER)
    return ~schedule.i.valid | (~beside & counts & one & ranks & Mux(in_turn, segments, aligned))


def _granules(m: Module, schedule: Schedule) -> Value:
    """Return whether what a channel is to receive begins with a granule, as all does that vectors are cut into."""
    op = schedule.receives.payload
    return ~schedule.receives.valid | ~op.first_element[: (GRANULE - 1).bit_length()].any()


_MEMORY = ("collective/datapath_memory", "collective/datapath_lengths")
"""Tests of what is loaded and stored."""

_MEMORY_TESTS, _CONTROL_TESTS = "collective.test_datapath_memory", "collective.test_control"
"""Modules of tests that have parameters."""

_LANES = ("reducer", "rounding")
"""In the receive path units whose lanes have a row of their own."""

_OF_CHANNELS = tuple(
    f"channel{channel}.{name}"
    for channel in (0, 1)
    for name in ("schedule", "loader", "storer", "credits", "path", "sender", "port", "buffer")
)
"""Of the engine's channels what has a row of its own."""

COLLECTIVE_UNITS = {
    "collective_checker": Unit("collectives: checker", lambda: CollectiveChecker(100), files("collective/checker"), 0),
    "schedule": Unit(
        "collectives: schedule", lambda: Schedule(1), files("collective/schedule"), 6,
        means=_operations, legal=_jobs,
    ),
    "width_converter": Unit(
        "collectives: widths", tested("collective.test_width_converter", lambda tests: tests.Both(8, 16)),
        files("collective/width_converter"), 8, means=_converted, legal=_of_bytes,
    ),
    "collective_loader": Unit(
        "collectives: loader", tested(_MEMORY_TESTS, lambda tests: CollectiveLoader(*tests.TRIED)), files(*_MEMORY), 0,
        without=("converter",), means=_loads, legal=_operations_of_loads,
        promises={"operations": (lambda: BufferedFifo(OPERATION, CollectiveLoader.OPERATIONS), _loaded)},
    ),
    "storer": Unit(
        "collectives: storer", tested(_MEMORY_TESTS, lambda tests: Storer(*tests.TRIED)), files(*_MEMORY), 0,
        without=("converter",), legal=_operations_of_stores,
        means=lambda m, storer: payloads(storer.axi, "aw", "w", of="axi."),
        promises={"operations": (lambda: BufferedFifo(StoreOp, Storer.OPERATIONS), _stored)},
    ),
    "receive_path": Unit(
        "collectives: receive path", lambda: ReceivePath(8), files("collective/datapath_receive"), 0,
        means=lambda m, path: payloads(path, "store_ops", "store", "forward"),
        legal=lambda m, path: ~path.ops.valid | path.ops.payload.dtype.matches(*CollectiveType),
        without=tuple(f"{unit}.lane{n}" for unit in _LANES for n in (0, 1)),
    ),
    "reduce_lane": Unit(
        "collectives: reduction", ReduceLane, files("collective/datapath_lanes"), 3, without=("adder",)
    ),
    "rounding_lane": Unit(
        "collectives: rounding", RoundingLane, files("collective/datapath_lanes"), 6, without=("random",)
    ),
    "mailbox": Unit(
        "collectives: mailbox", tested(_CONTROL_TESTS, lambda tests: Mailbox(tests.MOST)),
        files("collective/control"), 6, legal=_announcements,
    ),
    "router_port": Unit(
        "collectives: router port", tested("collective.test_router_port", lambda tests: tests.port()),
        files("collective/router_port"), 6, means=lambda m, port: payloads(port, "o"),
    ),
    "collective_sender": Unit(
        "collectives: sender", tested(_CONTROL_TESTS, lambda t: CollectiveSender(t.LINK_BYTES, t.CORES, t.WINDOW)),
        files("collective/control"), 6, without=("mailbox",),
        means=lambda m, sender: payloads(sender, "o"),
    ),
    "credit_manager": Unit(
        "collectives: credits", tested(_CONTROL_TESTS, lambda t: CreditManager(t.LINK_BYTES, t.WINDOW)),
        files("collective/control"), 6,
        legal=lambda m, credits: ~credits.i.valid | credits.i.payload.dtype.matches(*CollectiveType),
    ),
    "collective": Unit(
        "collective engine",
        tested("collective.machine", lambda t: CollectiveEngine(t.LINK_BYTES, t.HBM_BEAT, t.FIRST + t.CORES)),
        files("collective/cycles", "collective/engines", "collective/retirement"), 0,
        module="collective_engine",
        without=("checker", "counting", "counting0", "counting1", "numbering", *_OF_CHANNELS),
        promises={f"channel{n}.schedule": (partial(Schedule, n), _granules) for n in (0, 1)},
    ),
}  # fmt: skip
"""By the names that UNIT= takes."""
