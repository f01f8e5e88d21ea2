"""Mailbox, sender and credit manager against plain Python, with pauses on every stream."""

from collections import deque

import pytest
from amaranth import Value

from neuroncore_rtl.hdl.collective.credit_manager import CreditManager
from neuroncore_rtl.hdl.collective.mailbox import Mailbox
from neuroncore_rtl.hdl.collective.ops import ReceiveOp, SendOp
from neuroncore_rtl.hdl.collective.sender import Sender
from neuroncore_rtl.spec.isa.collective import (
    OTHER_SIDE,
    SIGNATURE_BITS,
    SIGNATURE_FIELDS,
    SIGNATURE_OFFSETS,
    SIGNATURE_USES,
    CollectiveKind,
    CollectiveType,
)
from tests.hdl.simulation import simulate

SEED = 496

LINK_BYTES, WINDOW, CORES = 8, 16, 9


def beats_of(elements, dtype, wide):
    size = 2 if dtype == CollectiveType.BF16 and not wide else 4
    return -(-elements * size // LINK_BYTES)


def test_mailbox(dice):
    dut = Mailbox(CORES)

    async def bench(ctx):
        box, looked, hits = {}, None, 0
        for _ in range(3000):
            free = [core for core in range(CORES) if core not in box]
            put = bool(free) and dice.random() < 0.3
            source, said = dice.choice(free or [0]), dice.getrandbits(SIGNATURE_BITS)
            core = looked if looked is not None and dice.random() < 0.7 else dice.randrange(CORES)
            take = False
            if core == looked:
                assert ctx.get(dut.there) == (core in box)
                if core in box:
                    assert ctx.get(dut.found) == box[core]
                    hits += 1
                    take = dice.random() < 0.5 and not (put and source == core)
            ctx.set(dut.put, put)
            ctx.set(dut.source, source)
            ctx.set(dut.announced, said)
            ctx.set(dut.core, core)
            ctx.set(dut.take, take)
            await ctx.tick()
            if take:
                del box[core]
            if put:
                box[source] = said
            looked = core
        assert hits > 300

    simulate(dut, bench)


def random_sends(rng, count):
    ops, peer = [], None
    for _ in range(count):
        new = peer is None or rng.random() < 0.25
        peer = rng.randrange(CORES) if new else peer
        values = {"load": rng.getrandbits(1), "wide": rng.getrandbits(1), "dtype": rng.randrange(3)}
        values |= {"elements": rng.choice((1, 2, 5, rng.randrange(1, 80))), "new_peer": int(new), "peer": peer}
        ops.append(values)
    return ops


def sending(rng, dut, ops, stall, own, announcements):
    """Return a bench that lets `dut` send; what it sends, and should, with whom that is for; and the most on its way.

    Arguments:
        announcements: what the new peers of `ops` announce, in order.
    """
    sent, source = [], {"load": deque(), "forward": deque()}
    for number, op in enumerate(ops):
        for beat in range(beats_of(op["elements"], op["dtype"], op["wide"])):
            source["load" if op["load"] else "forward"].append(number << 20 | beat)
    wanted = [(op["peer"], number << 20 | b) for number, op in enumerate(ops)
              for b in range(beats_of(op["elements"], op["dtype"], op["wide"]))]  # fmt: skip
    most, box, said = [0], set(), list(announcements)

    async def bench(ctx):
        owed = deque(op["peer"] for op in ops if op["new_peer"])  # announcements that have not come
        waiting, queue = list(ops), {name: deque(beats) for name, beats in source.items()}
        offered = dict.fromkeys(("ops", "load", "forward"), False)
        outstanding, consumed, current, idle = 0, 0, None, 0
        ctx.set(dut.own, own)
        while idle < 200 + 50 * (stall > 0):
            for name, items in (("ops", waiting), ("load", queue["load"]), ("forward", queue["forward"])):
                offered[name] = bool(items) and (offered[name] or rng.random() >= stall)
                ctx.set(getattr(dut, name).valid, offered[name])
                if offered[name]:
                    port = getattr(dut, name)
                    payload = SendOp.as_shape().const(items[0]).as_value() if name == "ops" else items[0]
                    ctx.set(Value.cast(port.payload), payload.value if name == "ops" else payload)
            ready = rng.random() >= stall
            ctx.set(dut.o.ready, ready)
            # One announcement of a core waits at most; another core's grants mean nothing.
            put = bool(owed) and rng.random() < 0.2 and owed[0] not in box
            grant = not put and outstanding and consumed >= WINDOW // 2 and rng.random() < 0.5
            stray = not put and not grant and current is not None and rng.random() < 0.2
            ctx.set(dut.put, put)
            ctx.set(dut.granted, bool(grant or stray))
            ctx.set(dut.source, owed[0] if put else current if grant else ((current or 0) + 1) % CORES)
            ctx.set(dut.announced, said[-len(owed)] if owed else 0)
            if put:
                box.add(owed.popleft())
            if grant:
                consumed -= WINDOW // 2
                outstanding -= WINDOW // 2
            fired = [name for name in offered if offered[name] and ctx.get(getattr(dut, name).ready)]
            moved = ctx.get(dut.o.valid) and ready
            idle = 0 if moved or fired else idle + 1
            if "ops" in fired:
                op = waiting.pop(0)
                if op["new_peer"]:
                    box.discard(op["peer"])
                    outstanding = consumed = 0
                    current = op["peer"]
            if moved:
                sent.append((ctx.get(dut.peer), ctx.get(dut.o.payload)))
                outstanding += 1
                most[0] = max(most[0], outstanding)
            if consumed < outstanding and rng.random() < 0.3:
                consumed += 1
            for name in ("load", "forward"):
                if name in fired:
                    queue[name].popleft()
            for name in fired:
                offered[name] = False
            await ctx.tick()

    return bench, sent, wanted, most


def with_kind(word, kind):
    return word >> 3 << 3 | kind


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("kind", [CollectiveKind.ALL_REDUCE, CollectiveKind.SEND, CollectiveKind.RECEIVE])
def test_sender(kind, stall, dice):
    dut = Sender(LINK_BYTES, CORES, WINDOW)
    ops = random_sends(dice, 60)
    own = with_kind(dice.getrandbits(SIGNATURE_BITS), kind)
    said = with_kind(own, OTHER_SIDE.get(kind, kind))
    bench, sent, wanted, most = sending(dice, dut, ops, stall, own, [said] * sum(op["new_peer"] for op in ops))
    simulate(dut, bench)
    assert sent == wanted
    assert most[0] == WINDOW  # all of the room is used, and no more


def test_sender_refuses_another_collective(dice):
    for place, (name, width) in enumerate(SIGNATURE_FIELDS):
        ops = random_sends(dice, 30)
        kind = dice.choice([kind for kind in CollectiveKind if name in SIGNATURE_USES[kind]])
        partner = OTHER_SIDE.get(kind, kind)
        own = with_kind(dice.getrandbits(SIGNATURE_BITS), kind)
        other = with_kind(own, partner) ^ 1 << SIGNATURE_OFFSETS[name] + dice.randrange(width)
        for later, bits in SIGNATURE_FIELDS[place + 1 :]:
            if later in SIGNATURE_USES[kind]:
                other ^= dice.getrandbits(bits) << SIGNATURE_OFFSETS[later]
        dut = Sender(LINK_BYTES, CORES, WINDOW)
        greetings = [number for number, op in enumerate(ops) if op["new_peer"]]
        bad = dice.randrange(len(greetings))
        announcements = [other if n == bad else with_kind(own, partner) for n in range(len(greetings))]
        bench, sent, wanted, _ = sending(dice, dut, ops, 0.2, own, announcements)

        async def verdict(ctx, bench=bench, dut=dut, op=ops[greetings[bad]], place=place):
            await bench(ctx)
            found = ctx.get(dut.disagreement)
            assert (found.valid, found.core, found.field) == (1, op["peer"], place + 1)
            assert ctx.get(dut.refuses) and ctx.get(dut.peer) == op["peer"]

        simulate(dut, verdict)
        assert sent == wanted[: sum(beats_of(o["elements"], o["dtype"], o["wide"]) for o in ops[: greetings[bad]])]


@pytest.mark.parametrize("slow", [0.0, 0.9])
def test_credit_manager(slow, dice):
    """A model of the sender before: it sends only what was announced and granted, and never has to wait for ever."""
    dut = CreditManager(LINK_BYTES, WINDOW)
    ops, peer = [], None
    for _ in range(80):
        net = dice.random() < 0.8
        new = net and (peer is None or dice.random() < 0.2)
        peer = dice.randrange(CORES) if new else peer
        values = {"net": int(net), "load": int(not net), "dtype": dice.randrange(3), "wide_in": dice.getrandbits(1)}
        ops.append(values | {"elements": dice.randrange(1, 60), "new_peer": int(new), "peer": peer or 0})
    passed = []

    async def bench(ctx):
        waiting = list(ops)
        room = {"may": 0, "buffer": 0}
        announced, left, idle = None, 0, 0
        need = deque()  # each peer in turn, and the beats that it has still to send
        for op in ops:
            if op["net"]:
                if op["new_peer"]:
                    need.append([op["peer"], 0])
                need[-1][1] += beats_of(op["elements"], op["dtype"], op["wide_in"])
        while idle < 300:
            ctx.set(dut.i.valid, bool(waiting))
            if waiting:
                ctx.set(Value.cast(dut.i.payload), ReceiveOp.as_shape().const(waiting[0]).as_value().value)
            ready = left <= 1 and dice.random() < 0.7
            ctx.set(dut.o.ready, ready)
            popped = bool(left and room["buffer"] and dice.random() < 0.9)
            ctx.set(dut.popped, popped)
            tells = dice.random() >= slow and (ctx.get(dut.ready) or ctx.get(dut.grant))
            ctx.set(dut.told, tells)
            idle += 1
            if tells:
                idle = 0
                if ctx.get(dut.ready):
                    assert room["buffer"] == 0 and (announced is None or need[0][1] == 0)
                    if announced is not None:
                        need.popleft()
                    announced = ctx.get(dut.peer)
                    assert announced == need[0][0]
                    room["may"] = WINDOW
                else:
                    assert ctx.get(dut.peer) == announced
                    room["may"] += WINDOW // 2
                assert room["may"] + room["buffer"] <= WINDOW
            if popped:
                idle = 0
                room["buffer"] -= 1
                left -= 1
            if waiting and ready and ctx.get(dut.o.valid):
                idle = 0
                op = waiting.pop(0)
                passed.append(op)
                assert not op["net"] or op["peer"] == ctx.get(dut.peer)
                left += beats_of(op["elements"], op["dtype"], op["wide_in"]) * op["net"]
            if announced is not None and need[0][1] and room["may"] and dice.random() < 0.9:
                room["may"] -= 1
                room["buffer"] += 1
                need[0][1] -= 1
            await ctx.tick()
        assert not waiting and left == 0 and ctx.get(dut.idle)

    simulate(dut, bench)
    assert passed == ops
