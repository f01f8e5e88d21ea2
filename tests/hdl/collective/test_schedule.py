"""The schedule gives out the operations of the description, in an order that no unit waits for in vain."""

import numpy as np
import pytest
from amaranth import Value

from neuroncore_rtl.hdl.collective import dispatcher, stepper
from neuroncore_rtl.hdl.collective.ops import LoadOp, ReceiveOp, SendOp
from neuroncore_rtl.hdl.collective.schedule import Schedule
from neuroncore_rtl.spec.isa.collective import CollectiveKind
from tests.hdl.collective.jobs import job_bits, operations, random_collective
from tests.hdl.simulation import simulate

SEED = 1618

SHAPES = {"loads": LoadOp, "receives": ReceiveOp, "sends": SendOp}


def load_tuple(op):
    return bool(op.to_send), bool(op.zero), bool(op.wide), op.dtype, op.elements, op.address


def receive_tuple(op):
    flags = (op.net, op.load, op.forward, op.final, op.wide_in, op.wide_out, op.stochastic, op.store, op.zero)
    address = op.store_address if op.store else None
    peer = op.peer if op.net else None
    return (*map(bool, flags), op.op, op.dtype, op.elements, address, op.first_element, bool(op.new_peer), peer)


def send_tuple(op):
    return bool(op.load), bool(op.wide), op.dtype, op.elements, bool(op.new_peer), op.peer


TUPLES = {"loads": load_tuple, "receives": receive_tuple, "sends": send_tuple}


def schedules(channel, jobs, stall=0.0):
    """Return the lists of each job, and the cycles that it took."""
    dut = Schedule(channel)
    found = []

    async def bench(ctx):
        rng = np.random.default_rng(7)
        outputs = [getattr(dut, name) for name in SHAPES]
        for values in jobs:
            lists = {name: [] for name in SHAPES}
            ctx.set(Value.cast(dut.i.payload), job_bits(values))
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
            cycles = 0
            while ctx.get(dut.busy):
                ready = [rng.random() >= stall for _ in outputs]
                for output, on in zip(outputs, ready, strict=True):
                    ctx.set(output.ready, on)
                pairs = [(o.valid, Value.cast(o.payload)) for o in outputs]
                _, _, *sampled = await ctx.tick().sample(*(signal for pair in pairs for signal in pair))
                for n, (name, shape) in enumerate(SHAPES.items()):
                    if sampled[2 * n] and ready[n]:
                        lists[name].append(TUPLES[name](shape.as_shape().from_bits(sampled[2 * n + 1])))
                cycles += 1
                assert cycles < 100_000
            found.append((lists, cycles))

    simulate(dut, bench)
    return found


def wrong(channel, jobs, stall=0.0):
    """Return what differs from the lists in plain Python."""
    faults = []
    for values, (lists, _) in zip(jobs, schedules(channel, jobs, stall), strict=True):
        want = operations(values, channel)
        for name in SHAPES:
            if lists[name] != getattr(want, name):
                faults.append((name, values, lists[name][:40], getattr(want, name)[:40]))
    return faults


def jobs_of(rng, kinds, each):
    jobs = []
    for kind in kinds:
        for number in range(each):
            few = {"ranks": (2, 3, 4, 5)[number % 4]} if number % 3 else {}
            jobs.append(random_collective(rng, kind=kind, **few))
    return jobs


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("channel", [0, 1])
def test_operations_are_those_of_the_description(channel, stall, rng):
    faults = wrong(channel, jobs_of(rng, CollectiveKind, 14), stall)
    assert not faults, f"{len(faults)} lists differ, the first: {faults[0]}"


@pytest.mark.parametrize("channel", [0, 1])
def test_longest_blocks(channel, rng):
    jobs = [
        random_collective(rng, kind=kind, ranks=64, count=(1 << 30) - 1, chunk=31) | {"pitch": (1 << 32) - 64}
        for kind in (CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND, CollectiveKind.RECEIVE)
    ]
    assert not wrong(channel, jobs)


@pytest.mark.parametrize("channel", [0, 1])
def test_a_step_takes_a_cycle(channel, rng):
    jobs = [random_collective(rng, kind=CollectiveKind.ALL_REDUCE, ranks=8, count=8 * 32 * 20, chunk=0)]
    ((lists, cycles),) = schedules(channel, jobs)
    steps = len(operations(jobs[0], channel).receives)
    assert steps == 14 * 10 and cycles <= steps + 10 + 8


@pytest.mark.parametrize(
    ("unit", "name", "value"),
    [(stepper, "_GRANULE_BITS", 4), (dispatcher, "CollectiveType", CollectiveKind)],
)
def test_another_schedule_is_noticed(unit, name, value, rng, monkeypatch):
    jobs = jobs_of(rng, CollectiveKind, 4)
    if name == "CollectiveType":
        value = type("Other", (), {"BF16": 2})
    monkeypatch.setattr(unit, name, value)
    assert wrong(0, jobs)


def test_neighbours_agree_on_every_segment(rng):
    """What a rank sends to another one is what that one receives from it, in the same order and form."""
    for values in jobs_of(rng, CollectiveKind, 12):
        if values["kind"] in (CollectiveKind.SEND, CollectiveKind.RECEIVE):
            continue
        for channel in (0, 1):
            sent, received = {}, {}
            for rank in range(values["ranks"]):
                mine = values | {"rank": rank}
                core = values["base"] + rank * values["stride"]
                lists = operations(mine, channel)
                for _, wide, _, elements, new, peer in lists.sends:
                    sent.setdefault((core, peer), []).append((elements, wide, new))
                for net, *rest in lists.receives:
                    if net:
                        received.setdefault((rest[-1], core), []).append((rest[9 + 1], rest[3], rest[-2]))
            assert sent == received
