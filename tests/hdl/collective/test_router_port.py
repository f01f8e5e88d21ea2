"""A channel's port of the router: every kind of flit both ways, against plain Python."""

from itertools import product

import pytest

from neuroncore_rtl.hdl.collective.router_port import RouterPort
from neuroncore_rtl.spec.isa import collective as isa
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from neuroncore_rtl.spec.link import CORE_BITS, FlitKind
from tests.hdl.collective.announcements import field_at, other_side, with_kind
from tests.hdl.simulation import WARM_UP, drive, simulate_each, simulated

SEED = 1729

LINK_BYTES, CHANNEL = 8, 1


def port() -> RouterPort:
    return RouterPort(LINK_BYTES, CHANNEL)


def flit(kind, source=0, data=0, destination=0, channel=CHANNEL) -> dict:
    header = {"kind": kind, "source": source, "destination": destination, "channel": channel}
    return {"header": header, "data": data}


def fields(payload) -> tuple[int, ...]:
    """Return a flit's fields, in the order of the arguments of :func:`flit`."""
    header = payload.header
    return header.kind, header.source, payload.data, header.destination, header.channel


@simulated(port, warm_up=WARM_UP)
async def test_what_comes_goes_on_by_its_kind(ctx, dut, dice):
    for _ in range(1000):
        kind, valid, room = dice.choice(list(FlitKind)), dice.getrandbits(1), dice.getrandbits(1)
        source, data = dice.getrandbits(CORE_BITS), dice.getrandbits(8 * LINK_BYTES)
        drive(ctx, dut.i, payload=flit(kind, source, data, dice.getrandbits(CORE_BITS), 0), valid=valid)
        drive(ctx, dut.received, ready=room)
        *_, beat, comes, ready, put, granted, said, announced = await ctx.tick().sample(
            dut.received.payload, dut.received.valid, dut.i.ready, dut.put, dut.granted, dut.source, dut.announced
        )
        is_kind = tuple(int(valid and kind == one) for one in (FlitKind.DATA, FlitKind.READY, FlitKind.GRANT))
        assert (comes, put, granted) == is_kind
        assert (beat, said, announced) == (data, source, data % (1 << isa.SIGNATURE_BITS))
        assert ready == (kind != FlitKind.DATA or room)


@simulated(port, warm_up=WARM_UP)
async def test_what_goes_is_chosen_by_its_haste(ctx, dut, dice):
    """One flit a cycle where the router takes it; a refusal is told once."""
    core, waiting, has_refused, refuses, counts = dice.getrandbits(CORE_BITS), None, 0, 0, dict.fromkeys(FlitKind, 0)
    ctx.set(dut.core, core)
    for cycle in range(3000):
        refuses = refuses or int(cycle > 1500 and dice.random() < 0.05)
        wants = {name: int(dice.random() < 0.3) for name in ("ready", "grant")}
        own, beat = dice.getrandbits(isa.SIGNATURE_BITS), dice.getrandbits(8 * LINK_BYTES)
        receiver, sender = (dice.getrandbits(CORE_BITS) for _ in range(2))
        drive(ctx, dut, own=own, refuses=refuses, receiver=receiver, sender=sender, **wants)
        some, taken = int(dice.random() < 0.8), int(dice.random() < 0.6)
        drive(ctx, dut.beats, payload=beat, valid=some)
        drive(ctx, dut.o, ready=taken)
        *_, offered, at_o, told, beats = await ctx.tick().sample(dut.o.valid, dut.o.payload, dut.told, dut.beats.ready)
        assert offered == (waiting is not None)
        assert waiting is None or fields(at_o) == waiting
        free = waiting is None or taken
        tells = wants["ready"] or wants["grant"]
        refusing = refuses and not has_refused
        assert (told, beats) == (free and not refusing and tells, free and not refusing and not tells)
        if not free:
            continue
        if refusing:
            has_refused, waiting = 1, (FlitKind.REFUSE, core, own, receiver, CHANNEL)
        elif tells:
            waiting = (FlitKind.READY if wants["ready"] else FlitKind.GRANT), core, own, sender, CHANNEL
        else:
            waiting = (FlitKind.DATA, core, beat, receiver, CHANNEL) if some else None
        if waiting:
            counts[waiting[0]] += 1
    assert counts.pop(FlitKind.REFUSE) == 1 and min(counts.values()) > 100


@simulated(port, each=product(K, range(isa.SIGNATURE_BITS)))
async def test_the_first_refusal_is_kept(ctx, dut, case, dice):
    """With the field of each bit that differs, in what a core of either side of any kind says."""

    def shown(ctx):
        return tuple(ctx.get(getattr(dut.refused, part)) for part in ("valid", "core", "field"))

    kind, bit = case
    own = with_kind(dice.getrandbits(isa.SIGNATURE_BITS), kind)
    said, source, noise = other_side(own, kind) ^ 1 << bit, dice.getrandbits(CORE_BITS), dice.getrandbits(8)
    data = said | noise << isa.SIGNATURE_BITS
    drive(ctx, dut, own=own)
    for other, valid in product(FlitKind, (0, 1)):
        if not valid or other != FlitKind.REFUSE:
            drive(ctx, dut.i, payload=flit(other, source, data), valid=valid)
            await ctx.tick()
            assert shown(ctx) == (0, 0, 0)
    drive(ctx, dut.i, payload=flit(FlitKind.REFUSE, source, data), valid=1)
    await ctx.tick()
    field = field_at(kind, bit)
    assert shown(ctx) == (1, source, field)
    for _ in range(3):
        others = dice.getrandbits(CORE_BITS), dice.getrandbits(8 * LINK_BYTES)
        drive(ctx, dut.i, payload=flit(FlitKind.REFUSE, *others), valid=1)
        await ctx.tick()
        assert shown(ctx) == (1, source, field)
    drive(ctx, dut.i, valid=0)


@pytest.mark.parametrize("kind", K)
def test_the_lowest_field_that_differs_is_named(kind, dice):
    dut = port()

    async def bench(ctx, bits):
        own = with_kind(dice.getrandbits(isa.SIGNATURE_BITS), kind)
        said = other_side(own, kind)
        for bit in bits:
            said ^= 1 << bit
        drive(ctx, dut, own=own)
        drive(ctx, dut.i, payload=flit(FlitKind.REFUSE, 1, said), valid=1)
        await ctx.tick()
        assert ctx.get(dut.refused.field) == min((f for bit in bits if (f := field_at(kind, bit))), default=0)

    simulate_each(dut, bench, [dice.sample(range(isa.SIGNATURE_BITS), 4) for _ in range(50)])
