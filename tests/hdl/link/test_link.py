import numpy as np
import pytest

from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.end import LinkEnd, sequence_window
from tests.hdl.link.pair import ENDS, PATHS, Pair
from tests.hdl.simulation import drive, expect, simulated, slow


@pytest.mark.parametrize(
    ("latency", "vcs"),
    [
        *((1, vcs) for vcs in ((0,), (1,), (0, 1))),
        (27, (0, 1)),
        *slow((4, (0,)), (4, (1,)), (4, (0, 1)), (27, (0,)), (27, (1,))),
    ],
)
@simulated(lambda latency: Pair(1, latency))
async def test_one_flit_per_cycle_in_both_directions_with_the_latency(ctx, pair, latency, vcs):
    through = LinkEnd.SEND_LATENCY + latency + LinkEnd.RECEIVE_LATENCY
    ins, outs = ([port[vc] for port in ports for vc in vcs] for ports in (pair.i, pair.o))
    for i, o in zip(ins, outs, strict=True):
        drive(ctx, i, valid=1)
        drive(ctx, o, ready=1)
    for cycle in range(100):
        _, _, *bits = await ctx.tick().sample(*(port.ready for port in ins), *(port.valid for port in outs))
        accepted, delivered = sum(bits[: len(ins)]), sum(bits[len(ins) :])
        assert (accepted, delivered) == (len(ENDS), len(ENDS) * (cycle >= through))


@pytest.mark.parametrize("full", [*slow(0), 1])
@simulated(lambda: Pair(1))
async def test_a_blocked_virtual_channel_accepts_a_window_and_does_not_block_the_other(ctx, pair, full):
    cycles, window = 200, sequence_window(2)
    for end, vc in PATHS:
        drive(ctx, pair.i[end][vc], valid=1)
        drive(ctx, pair.o[end][vc], ready=vc != full)
    ready = [pair.i[end][vc].ready for end, vc in PATHS]
    accepted = np.sum([(await ctx.tick().sample(*ready))[2:] for _ in range(cycles)], axis=0).tolist()
    assert accepted == [window if vc == full else cycles - window for _, vc in PATHS]


@pytest.mark.parametrize("counts", [(0, 0), *slow(((0x55, 0xAA),), ((0xAA, 0x55),))])
@simulated(lambda: Pair(1, 2))
async def test_idle_link_is_not_dead(ctx, pair, counts):
    """Sequence numbers of idle ends are equal, whatever their bits."""
    cycles, names = LinkEnd.DEAD_CYCLES + 300, LinkCounters.as_shape().members
    for end in ENDS:
        drive(ctx, pair.o[end][0], ready=1)
    for cycle in range(cycles):
        for end in ENDS:
            drive(ctx, pair.i[end][0], valid=cycle < counts[end])
        await ctx.tick()
    for end in ENDS:
        assert not ctx.get(pair.dead[end])
        seen = {"flits": counts[end], "idle": cycles - counts[end]}
        expect(ctx, pair.counters[end], **dict.fromkeys(names, 0) | seen)


@pytest.mark.parametrize(("wire", "busy", "arrived"), [(0, 1, 0x55), (1, 0, 100), *slow((0, 1, 0xAA))])
@simulated(lambda: Pair(1, 2))
async def test_cut_link_is_dead(ctx, pair, wire, busy, arrived):
    """The end that hears nothing is dead, and the other end if it has an unacknowledged flit; both remain dead."""
    dead = [int(end != wire or busy) for end in ENDS]
    drive(ctx, pair.i[wire][0], valid=busy)
    drive(ctx, pair.o[1 - wire][0], ready=1)
    await ctx.tick().repeat(arrived + LinkEnd.SEND_LATENCY + 2)
    ctx.set(pair.disturbance[wire], {"cut": 1})
    await ctx.tick().repeat(LinkEnd.DEAD_CYCLES)
    assert [ctx.get(one) for one in pair.dead] == [0, 0]
    await ctx.tick()
    assert ctx.get(pair.dead[1 - wire])
    await ctx.tick().repeat(12)
    assert [ctx.get(one) for one in pair.dead] == dead
    ctx.set(pair.disturbance[wire], {"cut": 0})
    await ctx.tick().repeat(100)
    assert [ctx.get(one) for one in pair.dead] == dead


def test_window_is_the_least_power_of_two_less_one_that_holds_a_round_trip():
    for latency in range(1, 65):
        round_trip = 2 * latency + LinkEnd.ROUND_TRIP
        assert round_trip <= sequence_window(latency) < 2 * round_trip
        assert sequence_window(latency) & (sequence_window(latency) + 1) == 0


@pytest.mark.parametrize("latency", [0, 124])
def test_window_wrong(latency):
    with pytest.raises(ValueError, match=rf"latency must be from 1 to 123, not {latency}"):
        sequence_window(latency)
