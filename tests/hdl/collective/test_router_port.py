from functools import partial
from itertools import product

from neuroncore_rtl.hdl.collective.router_port import RouterPort
from neuroncore_rtl.spec.isa import collective as isa
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from neuroncore_rtl.spec.link import CORE_BITS, FlitKind
from tests.hdl.collective.words import field_at, matching_signatures
from tests.hdl.simulation import WARM_UP, drive, expect, flash, simulated

SEED = 1729
LINK_BYTES, CHANNEL = 8, 1


port = partial(RouterPort, LINK_BYTES, CHANNEL)


def flit(kind, source=0, data=0, destination=0, channel=CHANNEL) -> dict:
    return {"header": {"kind": kind, "source": source, "destination": destination, "channel": channel}, "data": data}


@simulated(port, warm_up=WARM_UP)
async def test_received_flits_are_forwarded_by_kind(ctx, dut, py_rng):
    for _ in range(1000):
        kind, valid, room = py_rng.choice(list(FlitKind)), py_rng.getrandbits(1), py_rng.getrandbits(1)
        source, data = py_rng.getrandbits(CORE_BITS), py_rng.getrandbits(8 * LINK_BYTES)
        drive(ctx, dut.i, payload=flit(kind, source, data, py_rng.getrandbits(CORE_BITS), 0), valid=valid)
        drive(ctx, dut.received, ready=room)
        *_, beat, received_valid, ready, put, granted, announced_word, announced = await ctx.tick().sample(
            dut.received.payload, dut.received.valid, dut.i.ready, dut.put, dut.granted, dut.source, dut.announced
        )
        is_kind = tuple(int(valid and kind == one) for one in (FlitKind.DATA, FlitKind.READY, FlitKind.GRANT))
        assert (received_valid, put, granted) == is_kind
        assert (beat, announced_word, announced) == (data, source, data % (1 << isa.SIGNATURE_BITS))
        assert ready == (kind != FlitKind.DATA or room)


@simulated(port, warm_up=WARM_UP)
async def test_priority_of_sent_flits_and_a_single_refusal(ctx, dut, py_rng):
    core, pending, has_refused, refuses, counts = py_rng.getrandbits(CORE_BITS), None, 0, 0, dict.fromkeys(FlitKind, 0)
    ctx.set(dut.core, core)
    for cycle in range(3000):
        refuses = refuses or int(cycle > 1500 and py_rng.random() < 0.05)
        controls = {name: int(py_rng.random() < 0.3) for name in ("ready", "grant")}
        own, beat = py_rng.getrandbits(isa.SIGNATURE_BITS), py_rng.getrandbits(8 * LINK_BYTES)
        receiver, sender = (py_rng.getrandbits(CORE_BITS) for _ in range(2))
        drive(ctx, dut, own=own, refuses=refuses, receiver=receiver, sender=sender, **controls)
        some, taken = int(py_rng.random() < 0.8), int(py_rng.random() < 0.6)
        drive(ctx, dut.beats, payload=beat, valid=some)
        drive(ctx, dut.o, ready=taken)
        *_, offered, at_o, told, beats = await ctx.tick().sample(dut.o.valid, dut.o.payload, dut.told, dut.beats.ready)
        assert offered == (pending is not None)
        assert pending is None or at_o == dut.o.payload.shape().const(flit(*pending))
        free = pending is None or taken
        has_control = controls["ready"] or controls["grant"]
        refusing = refuses and not has_refused
        assert (told, beats) == (free and not refusing and has_control, free and not refusing and not has_control)
        if not free:
            continue
        if refusing:
            has_refused, pending = 1, (FlitKind.REFUSE, core, own, receiver)
        elif has_control:
            pending = (FlitKind.READY if controls["ready"] else FlitKind.GRANT), core, own, sender
        else:
            pending = (FlitKind.DATA, core, beat, receiver) if some else None
        if pending:
            counts[pending[0]] += 1
    assert counts.pop(FlitKind.REFUSE) == 1 and min(counts.values()) > 100


@simulated(port, each=product(K, range(isa.SIGNATURE_BITS)))
async def test_the_first_refusal_is_kept_with_its_core_and_lowest_field(ctx, dut, case, py_rng):
    kind, bit = case
    bits = {bit, *py_rng.sample(range(isa.SIGNATURE_BITS), py_rng.choice((0, 0, 3)))}
    (own, announced), source = matching_signatures(py_rng, kind), py_rng.getrandbits(CORE_BITS)
    data = announced ^ sum(1 << one for one in bits) | py_rng.getrandbits(8) << isa.SIGNATURE_BITS
    drive(ctx, dut, own=own)
    for other, valid in product(FlitKind, (0, 1)):
        if not valid or other != FlitKind.REFUSE:
            drive(ctx, dut.i, payload=flit(other, source, data), valid=valid)
            await ctx.tick()
            expect(ctx, dut.refused, valid=0, core=0, field=0)
    field = min(filter(None, (field_at(kind, one) for one in bits)), default=0)
    for payload in ((source, data), *((py_rng.getrandbits(CORE_BITS), py_rng.getrandbits(64)) for _ in range(3))):
        await flash(ctx, dut.i, flit(FlitKind.REFUSE, *payload))
        expect(ctx, dut.refused, valid=1, core=source, field=field)
