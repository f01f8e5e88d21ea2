from collections import deque
from itertools import product
from operator import le

import pytest

from neuroncore_rtl.hdl.collective import credit_manager, mailbox, sender
from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS, ReceiveOp, SendOp
from neuroncore_rtl.spec.isa import collective as isa
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from neuroncore_rtl.spec.link import CORE_BITS
from tests.hdl.collective.words import field_at, matching_signatures
from tests.hdl.simulation import WARM_UP, drive, expect, flash, pulse, put, simulated
from tests.hdl.streams import play

SEED = 496
LINK_BYTES, WINDOW, CORES, MOST = 8, 16, 9, 100


def beats_of(op, wide):
    size = 2 if op.get("dtype") == isa.CollectiveType.BF16 and not op[wide] else 4
    return -(-op["elements"] * size // LINK_BYTES)


@simulated(lambda: mailbox.Mailbox(MOST), each=range(4))
async def test_mailbox_at_random_and_a_reset(ctx, dut, _, py_rng):
    for core in range(MOST):
        drive(ctx, dut, core=core)
        await ctx.tick()
        assert not ctx.get(dut.there)
    box, last_core, hits = {}, MOST - 1, 0
    for _ in range(2000):
        free = [core for core in range(MOST) if core not in box]
        put = bool(free) and py_rng.random() < 0.1
        source, announced = py_rng.choice(free or [0]), py_rng.getrandbits(isa.SIGNATURE_BITS)
        core = last_core if py_rng.random() < 0.4 else py_rng.choice((source, py_rng.randrange(MOST)))
        hit = core == last_core and core in box
        assert core != last_core or ctx.get(dut.there) == hit
        assert not hit or ctx.get(dut.found) == box[core]
        hits += hit
        take = hit and py_rng.random() < 0.7 and not (put and source == core)
        drive(ctx, dut, put=put, source=source, announced=announced, core=core, take=take)
        await ctx.tick()
        if take:
            del box[core]
        if put:
            box[source] = announced
        last_core = core
    assert hits > 100 and 20 < len(box) < MOST
    drive(ctx, dut, put=0, take=0)


def with_peers(py_rng, ops, new_peer, cores):
    """Yield the operations with a format and a peer, which with probability `new_peer` is a new one."""
    peer = None
    for op in ops:
        new = bool(op.get("net", 1)) and (peer is None or py_rng.random() < new_peer)
        peer = py_rng.randrange(cores) if new else peer
        yield op | {"dtype": py_rng.randrange(3), "new_peer": int(new), "peer": peer or 0}


def random_sends(py_rng, count):
    lengths = [py_rng.choice((1, 2, 5, py_rng.randrange(1, 80))) for _ in range(count)]
    ops = [{"load": py_rng.getrandbits(1), "wide": py_rng.getrandbits(1), "elements": length} for length in lengths]
    return list(with_peers(py_rng, ops, 0.25, CORES))


def send(py_rng, ops, stall, own, announcements, **options):
    dut = sender.CollectiveSender(LINK_BYTES, CORES, WINDOW)
    beats = [(op, py_rng.getrandbits(8 * LINK_BYTES)) for op in ops for _ in range(beats_of(op, "wide"))]
    inputs = {
        "ops": [SendOp.const(op).as_bits() for op in ops],
        "load": [beat for op, beat in beats if op["load"]],
        "forward": [beat for op, beat in beats if not op["load"]],
    }
    most = 0

    async def partners(ctx):
        nonlocal most
        owed = deque(zip((op["peer"] for op in ops if op["new_peer"]), announcements, strict=True))
        outstanding, consumed, current, box = 0, 0, None, set()
        while True:
            # At most one announcement of a core is pending; grants of another core are ignored.
            put = bool(owed) and py_rng.random() < 0.2 and owed[0][0] not in box
            grant = not put and outstanding and consumed >= WINDOW // 2 and py_rng.random() < 0.5
            stray = not put and not grant and current is not None and py_rng.random() < 0.2
            source = owed[0][0] if put else current if grant else ((current or 0) + 1) % CORES
            announced = owed[0][1] if owed else 0
            drive(ctx, dut, put=put, granted=bool(grant or stray), source=source, announced=announced)
            taken, moved = dut.ops.valid & dut.ops.ready, dut.o.valid & dut.o.ready
            *_, taken, op, moved = await ctx.tick().sample(taken, dut.ops.payload, moved)
            if put:
                box.add(owed.popleft()[0])
            if grant:
                consumed, outstanding = consumed - WINDOW // 2, outstanding - WINDOW // 2
            if taken and op.new_peer:
                current, outstanding, consumed = op.peer, 0, 0
                box.discard(current)
            outstanding += moved
            most = max(most, outstanding)
            consumed += consumed < outstanding and py_rng.random() < 0.3

    watch = [dut.peer, dut.refuses, dut.disagreement.valid, dut.disagreement.core, dut.disagreement.field]
    options |= {"stall": stall, "seed": py_rng.getrandbits(32), "warm_up": WARM_UP, "watch": watch}
    played = play(dut, inputs, {"o": len(beats)}, constants={"own": own}, others=[partners], **options)
    sent = [(played.watched[n][0], beat) for n, beat in zip(played.cycles["o"], played.payloads["o"], strict=True)]
    return sent, [(op["peer"], beat) for op, beat in beats], most, played.watched[-1]


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("kind", [K.ALL_REDUCE, K.SEND, K.RECEIVE])
def test_sent_beats_and_the_window_of_a_sender(kind, stall, py_rng):
    ops = random_sends(py_rng, 60)
    own, announced = matching_signatures(py_rng, kind)
    sent, wanted, most, _ = send(py_rng, ops, stall, own, [announced] * sum(op["new_peer"] for op in ops))
    assert sent == wanted
    assert most == WINDOW


@pytest.mark.parametrize("place", range(0, len(isa.SIGNATURE_FIELDS), 5))
def test_sender_refuses_another_collective(place, py_rng):
    name, width = isa.SIGNATURE_FIELDS[place]
    py_rng.seed(f"{SEED} {name}")
    ops = random_sends(py_rng, 30)
    kind = py_rng.choice([kind for kind in K if name in isa.SIGNATURE_USES[kind]])
    own, announced = matching_signatures(py_rng, kind)
    other = announced ^ 1 << isa.SIGNATURE_OFFSETS[name] + py_rng.randrange(width)
    for later, bits in isa.SIGNATURE_FIELDS[place + 1 :]:
        if later in isa.SIGNATURE_USES[kind]:
            other ^= py_rng.getrandbits(bits) << isa.SIGNATURE_OFFSETS[later]
    first_ops = [number for number, op in enumerate(ops) if op["new_peer"]]
    bad = py_rng.choice(first_ops)
    announcements = [other if number == bad else announced for number in first_ops]
    sent, wanted, _, state = send(py_rng, ops, 0.2, own, announcements, cycles=1600)
    assert state == (ops[bad]["peer"], 1, 1, ops[bad]["peer"], place + 1)
    assert sent == wanted[: sum(beats_of(op, "wide") for op in ops[:bad])]


@simulated(lambda: sender.CollectiveSender(LINK_BYTES, CORES, WINDOW), each=product(K, range(isa.SIGNATURE_BITS)))
async def test_the_differing_field_of_two_announcements_is_named(ctx, dut, case, py_rng):
    (kind, bit), source = case, py_rng.randrange(CORES)
    field, (own, announced) = field_at(kind, bit), matching_signatures(py_rng, kind)
    drive(ctx, dut, own=own, put=1, source=source, announced=announced ^ 1 << bit)
    drive(ctx, dut.ops, payload={"new_peer": 1, "peer": source, "elements": 2}, valid=1)
    taken = 0
    for _ in range(5):
        taken += (await ctx.tick().sample(dut.ops.ready))[-1]
        drive(ctx, dut, put=0, **{"ops.valid": not taken})
    assert (taken, ctx.get(dut.refuses)) == (field == 0, field != 0)
    expect(ctx, dut.disagreement, valid=field != 0, core=source if field else 0, field=field)


@simulated(lambda: sender.CollectiveSender(LINK_BYTES, CORES, WINDOW), each=(0, 1))
async def test_wait_outputs_of_a_sender(ctx, dut, load):
    expect(ctx, dut, wait_ready=0, wait_credit=0, wait_load=0)
    drive(ctx, dut.ops, payload={"load": load, "new_peer": 1, "peer": 3, "elements": 4 * WINDOW}, valid=1)
    await ctx.tick().repeat(3)
    expect(ctx, dut, wait_ready=1, wait_credit=0, wait_load=0)
    drive(ctx, dut, source=3)
    await pulse(ctx, dut.put)
    await ctx.tick().until(dut.ops.ready)
    drive(ctx, dut.ops, valid=0)
    expect(ctx, dut, wait_ready=0, wait_credit=0, wait_load=load)
    beats = dut.load if load else dut.forward
    drive(ctx, beats, valid=1)
    await ctx.tick()
    expect(ctx, dut, wait_ready=0, wait_credit=0, wait_load=0)
    drive(ctx, dut, stop=1, **{"o.ready": 1})
    await ctx.tick()
    assert not ctx.get(dut.o.valid | beats.ready)
    drive(ctx, dut, stop=0)
    await ctx.tick().repeat(WINDOW)
    expect(ctx, dut, wait_ready=0, wait_credit=1, wait_load=0)
    drive(ctx, dut, granted=1, source=2)
    await ctx.tick()
    expect(ctx, dut, wait_ready=0, wait_credit=1, wait_load=0)
    drive(ctx, beats, valid=0)
    await ctx.tick()
    expect(ctx, dut, wait_ready=0, wait_credit=0, wait_load=load)
    drive(ctx, dut, granted=0, **{"o.ready": 0})


LONG = [((1 << bit) + 6, *kind) for bit, kind in product(range(8, 30), ((0, 0), (1, 0), (1, 1)))]
"""Element counts that are small except for one higher bit, with the fields that determine the elements per beat."""


async def begin(ctx, dut, **op):
    """Let the sender accept an operation for a new peer, core 3; all beats of its load are available."""
    drive(ctx, dut, source=3, **{"load.valid": 1})
    drive(ctx, dut.ops, payload=op | {"load": 1, "new_peer": 1, "peer": 3}, valid=1)
    await pulse(ctx, dut.put)
    await ctx.tick().until(dut.ops.ready)
    drive(ctx, dut.ops, payload=op | {"load": 1, "peer": 3}, valid=0)


@simulated(lambda: sender.CollectiveSender(LINK_BYTES, CORES, WINDOW), each=LONG)
async def test_long_sends_do_not_end(ctx, dut, case):
    drive(ctx, dut.o, ready=1)
    await begin(ctx, dut, **dict(zip(("elements", "dtype", "wide"), case, strict=True)))
    drive(ctx, dut.ops, valid=1)
    for cycle in range(40):
        drive(ctx, dut, granted=cycle % 8 == 7)
        *_, moves, ends = await ctx.tick().sample(dut.o.valid, dut.ops.ready)
        assert moves and not ends


@pytest.mark.parametrize(("size", "rate"), [(LINK_BYTES, 3), *((32, rate) for rate in (3, 10, 31, 0))])
@simulated(lambda size, rate: sender.CollectiveSender(size, CORES, WINDOW, rate), each=(0, 1))
async def test_a_rate_limits_the_mean_of_sent_bytes(ctx, dut, stalls, size, rate):
    """Beats leave at the rate, or every cycle without one; behind a stall the cycles since any earlier beat pay."""
    await begin(ctx, dut, elements=1 << 20)
    sent, offered, moves, rate = [], False, False, rate or size
    for cycle in range(40 * size // rate):
        drive(ctx, dut, granted=moves and len(sent) % (WINDOW // 2) == 0)
        ready = not stalls or cycle % 11 != 3
        drive(ctx, dut.o, ready=ready)
        *_, valid = await ctx.tick().sample(dut.o.valid)
        assert valid or not offered  # an offered beat stays
        offered = valid and not ready
        moves = bool(valid and ready)
        sent += [cycle] * moves
    for first, cycle in enumerate(sent):
        earliest = [cycle + size * n // rate for n in range(len(sent) - first)]
        assert all(map(le, earliest, sent[first:])) and (stalls or first or sent == earliest)
    assert stalls or len(sent) == 40


@simulated(lambda: credit_manager.CreditManager(LINK_BYTES, WINDOW), each=LONG)
async def test_no_new_peer_is_ready_before_a_long_operation_has_ended(ctx, dut, case):
    elements, dtype, wide = case
    op = {"net": 1, "dtype": dtype, "wide_in": wide, "elements": elements, "new_peer": 1}
    drive(ctx, dut, told=1, **{"o.ready": 1})
    await put(ctx, dut.i, op)
    drive(ctx, dut.i, payload=op | {"peer": 5}, valid=1)
    drive(ctx, dut, popped=1)
    for _ in range(20):
        *_, ready, passes = await ctx.tick().sample(dut.ready, dut.i.ready)
        assert not (ready or passes)
    drive(ctx, dut, popped=0)


@simulated(lambda: credit_manager.CreditManager(LINK_BYTES, WINDOW), each=range(60))
async def test_owed_beats_are_counted_modulo_a_power_of_two(ctx, dut, case, py_rng):
    modulus = 1 << ELEMENTS_BITS + 1
    op, owed = {"net": 1, "new_peer": 1, "elements": 2}, 0
    drive(ctx, dut, told=1, **{"o.ready": 1})
    while owed != modulus:
        owed += beats_of(op, "wide_in")
        await put(ctx, dut.i, op)
        await ctx.tick().repeat(py_rng.randrange(1, 3))
        # A new peer gets READY if no beat is owed.
        await flash(ctx, dut.i, {"new_peer": 1})
        assert ctx.get(dut.ready) == (owed == modulus)
        op = {"net": 1, "dtype": py_rng.randrange(3), "wide_in": py_rng.randrange(2)}
        op["elements"] = py_rng.choice((py_rng.randrange(1, 1 << ELEMENTS_BITS), (1 << ELEMENTS_BITS) - 1))
        if owed + beats_of(op, "wide_in") > modulus:
            op |= {"dtype": 0, "elements": (modulus - owed) * LINK_BYTES // 4 - py_rng.randrange(2)}


@pytest.mark.parametrize("told", [0, 1])
@simulated(lambda: credit_manager.CreditManager(LINK_BYTES, WINDOW), each=range(WINDOW))
async def test_a_new_peer_gets_its_grant_after_half_a_window_of_its_own_beats(ctx, dut, remaining, told):
    for beats, tells in ((WINDOW - remaining, told), (WINDOW, 1)):
        drive(ctx, dut.i, payload={"net": 1, "elements": beats * LINK_BYTES // 4, "new_peer": 1}, valid=1)
        await ctx.tick().until(dut.ready)
        drive(ctx, dut, told=1, **{"o.ready": 1})
        await ctx.tick()
        drive(ctx, dut.i, valid=0)
        grants = []
        for _ in range(beats):
            drive(ctx, dut, popped=1, told=tells and ctx.get(dut.grant))
            grants += (await ctx.tick().sample(dut.grant))[-1:]
        drive(ctx, dut, popped=0, told=0)
        assert not tells or grants == [number == WINDOW // 2 for number in range(beats)]


@pytest.mark.parametrize("slow", [0.0, 0.9])
def test_credits_suffice_and_never_exceed_the_window(slow, py_rng):
    dut = credit_manager.CreditManager(LINK_BYTES, WINDOW)

    nets = [int(py_rng.random() < 0.8) for _ in range(80)]
    ops = [
        {"net": net, "load": 1 - net, "wide_in": py_rng.getrandbits(1), "elements": py_rng.randrange(1, 60)}
        for net in nets
    ]
    ops = list(with_peers(py_rng, ops, 0.2, 1 << CORE_BITS))
    remaining = 0  # beats of accepted operations that are still in the buffer or have not arrived

    async def neighbours(ctx):
        nonlocal remaining
        room, buffer, announced = 0, 0, None
        need = deque()  # each peer in order, and the number of its beats that have not arrived
        for op in filter(lambda op: op["net"], ops):
            if op["new_peer"]:
                need.append([op["peer"], 0])
            need[-1][1] += beats_of(op, "wide_in")
        passing = iter(ops)
        while True:
            popped = bool(remaining and buffer and py_rng.random() < 0.9)
            told = py_rng.random() >= slow and (ctx.get(dut.ready) or ctx.get(dut.grant))
            drive(ctx, dut, popped=popped, told=told)
            *_, ready, peer, passes = await ctx.tick().sample(dut.ready, dut.peer, dut.o.valid & dut.o.ready)
            if told and ready:
                assert buffer == 0 and (announced is None or need[0][1] == 0)
                if announced is not None:
                    need.popleft()
                announced, room = peer, WINDOW
                assert announced == need[0][0]
            elif told:
                assert peer == announced
                room += WINDOW // 2
            assert room + buffer <= WINDOW
            buffer, remaining = buffer - popped, remaining - popped
            if passes:
                op = next(passing)
                assert not op["net"] or op["peer"] == peer
                remaining += beats_of(op, "wide_in") * op["net"]
            if announced is not None and need[0][1] and room and py_rng.random() < 0.9:
                room, buffer, need[0][1] = room - 1, buffer + 1, need[0][1] - 1

    words = [ReceiveOp.const(op).as_bits() for op in ops]
    options = {"stall": {"i": 0.0, "o": 0.3}, "hold": {"o": lambda cycle: remaining > 1}, "warm_up": WARM_UP}
    assert play(dut, {"i": words}, {"o": len(ops)}, others=[neighbours], **options).payloads["o"] == words
