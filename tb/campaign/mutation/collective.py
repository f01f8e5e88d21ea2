"""Mutation units of the collective engine: its submodules, and the engine without these."""

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
from neuroncore_rtl.hdl.memory.read_arbiter import ReadArbiter
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_ALIGNMENT, GRANULE, MAX_RANKS, CollectiveKind, CollectiveType
from neuroncore_rtl.tb.campaign.mutation.netlist import payloads, qualify
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, answers_requests, files, if_valid, tests_module

__all__ = ["COLLECTIVE_UNITS"]


def _announcements(m: Module, mailbox: Mailbox) -> Value:
    """Return whether the mailbox's inputs are legal.

    1. An added core exists and is not in the mailbox.
    2. A removed core was selected in the previous cycle, and is in the mailbox.
    """
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
    """Return whether each load has at least one element, of an existing type, and HBM answers only requests."""
    op = loader.ops.payload
    some = (op.elements != 0) & op.dtype.matches(*CollectiveType)
    return if_valid(loader.ops, some) & answers_requests(m, loader.axi)


def _answered_loads(m: Module, arbiter: ReadArbiter) -> Value:
    """Return whether HBM answers only bursts that were requested."""
    port, bursts = arbiter.port, Signal(range(arbiter.bursts + 1), name="open_bursts")
    ended = port.r.valid & port.r.payload.last
    m.d.sync += bursts.eq(bursts + (port.ar.valid & port.ar.ready) - ended)
    return if_valid(port.r, bursts != 0)


def _store_op(stream) -> Value:
    """Return whether each operation of a Storer has elements of an existing type and an aligned address."""
    op = stream.payload
    aligned = ~op.address[: (COLLECTIVE_ALIGNMENT - 1).bit_length()].any()
    return if_valid(stream, aligned & (op.elements != 0) & op.dtype.matches(*CollectiveType))


def _typed(stream) -> Value:
    return if_valid(stream, stream.payload.dtype.matches(*CollectiveType))


def _jobs(m: Module, schedule: Schedule) -> Value:
    """Return whether a job meets the rules that need no multiplication; a solver cannot handle the others."""
    job = schedule.i.payload
    steps = ("unit", "own", "top")
    beside = Cat(job[name][: (GRANULE - 1).bit_length()] for name in ("src", "dst", "chunk", *steps)).any()
    aligned = ~Cat(job[name][: (COLLECTIVE_ALIGNMENT - 1).bit_length()] for name in steps).any()
    counts = (job.count != 0) & (job.chunk != 0) & (job.chunk <= SEGMENT_ELEMENTS)
    one = (job.kind != CollectiveKind.BARRIER) | (job.count == 1)
    ranks = (job.last_rank != 0) & (job.rank <= job.last_rank) & (job.root <= job.last_rank)
    segments = (job.unit == job.chunk) & (job.own <= job.top) & (job.top < MAX_RANKS * SEGMENT_ELEMENTS)
    in_turn = job.kind.matches(CollectiveKind.ALL_REDUCE, CollectiveKind.BARRIER)
    return if_valid(schedule.i, ~beside & counts & one & ranks & Mux(in_turn, segments, aligned))


def _granules(m: Module, schedule: Schedule) -> Value:
    """Return whether each receive starts at a granule, the block of elements into which vectors are divided."""
    return if_valid(schedule.receives, ~schedule.receives.payload.first_element[: (GRANULE - 1).bit_length()].any())


_MEMORY = ("collective/datapath_memory", "collective/datapath_lengths")
_MEMORY_TESTS, _CONTROL_TESTS = "collective.test_datapath_memory", "collective.test_control"
_LANES = ("reducer", "rounding")

_OF_CHANNELS = tuple(
    f"channel{channel}.{name}"
    for channel in (0, 1)
    for name in ("schedule", "loader", "send_loader", "loads", "storer", "credits", "path", "sender", "port", "buffer")
)

COLLECTIVE_UNITS = {
    "collective_checker": Unit("collectives: checker", lambda: CollectiveChecker(100), files("collective/checker"), 0),
    "schedule": Unit(
        "collectives: schedule", lambda: Schedule(1), files("collective/schedule"), 6, legal=_jobs,
        means=lambda m, schedule: payloads(schedule, "loads", "receives", "send_loads", "sends")
        | qualify(schedule.busy, {"job": schedule.job}),
    ),
    "width_converter": Unit(
        "collectives: widths", lambda: tests_module("collective.test_width_converter").Both(8, 16),
        files("collective/width_converter"), 8,
        legal=lambda m, both: Cat(unit.bytes != 0 for unit in (both.widens, both.narrows)).all(),
        means=lambda m, both: payloads(both.widens, "o", of="widens.") | payloads(both.narrows, "o", of="narrows."),
    ),
    "collective_loader": Unit(
        "collectives: loader", lambda: CollectiveLoader(*tests_module(_MEMORY_TESTS).TRIED), files(*_MEMORY), 0,
        without=("converter",), legal=_operations_of_loads,
        means=lambda m, loader: payloads(loader, "beats") | payloads(loader.axi, "ar", of="axi."),
        promises={"operations": (lambda: BufferedFifo(OPERATION, CollectiveLoader.OPERATIONS),
                                 lambda m, operations: _typed(operations.o))},
    ),
    "read_arbiter": Unit(
        "HBM: reads of two managers", lambda: ReadArbiter(8), files("memory/read_arbiter"), 6,
        legal=_answered_loads, means=lambda m, arbiter: payloads(arbiter.port, "ar", of="port."),
    ),
    "storer": Unit(
        "collectives: storer", lambda: Storer(*tests_module(_MEMORY_TESTS).TRIED), files(*_MEMORY), 0,
        without=("converter",), legal=lambda m, storer: _store_op(storer.ops),
        means=lambda m, storer: payloads(storer.axi, "aw", "w", of="axi."),
        promises={"operations": (lambda: BufferedFifo(StoreOp, Storer.OPERATIONS),
                                 lambda m, operations: _store_op(operations.o))},
    ),
    "receive_path": Unit(
        "collectives: receive path", lambda: ReceivePath(8), files("collective/datapath_receive"), 0,
        means=lambda m, path: payloads(path, "store_ops", "store", "forward"), legal=lambda m, path: _typed(path.ops),
        without=tuple(f"{unit}.lane{n}" for unit in _LANES for n in (0, 1)),
    ),
    "reduce_lane": Unit(
        "collectives: reduction", ReduceLane, files("collective/datapath_lanes"), 3, without=("adder",)
    ),
    "rounding_lane": Unit(
        "collectives: rounding", RoundingLane, files("collective/datapath_lanes"), 6, without=("random",)
    ),
    "mailbox": Unit(
        "collectives: mailbox", lambda: Mailbox(tests_module(_CONTROL_TESTS).MOST),
        files("collective/control"), 6, legal=_announcements,
    ),
    "router_port": Unit(
        "collectives: router port", lambda: tests_module("collective.test_router_port").port(),
        files("collective/router_port"), 6, means=lambda m, port: payloads(port, "o"),
    ),
    "collective_sender": Unit(
        "collectives: sender",
        lambda: CollectiveSender((tests := tests_module(_CONTROL_TESTS)).LINK_BYTES, tests.CORES, tests.WINDOW),
        files("collective/control"), 6, without=("mailbox",),
        means=lambda m, sender: payloads(sender, "o"),
    ),
    "credit_manager": Unit(
        "collectives: credits",
        lambda: CreditManager((tests := tests_module(_CONTROL_TESTS)).LINK_BYTES, tests.WINDOW),
        files("collective/control"), 6, legal=lambda m, credits: _typed(credits.i),
    ),
    "collective": Unit(
        "collective engine",
        lambda: CollectiveEngine((t := tests_module("collective.machine")).LINK_BYTES, t.HBM_BEAT, t.FIRST + t.CORES),
        files("collective/cycles", "collective/engines"), 0,
        module="collective_engine",
        without=("checker", "counting", "counting0", "counting1", "numbering", *_OF_CHANNELS),
        promises={f"channel{n}.schedule": (partial(Schedule, n), _granules) for n in (0, 1)},
    ),
}  # fmt: skip
