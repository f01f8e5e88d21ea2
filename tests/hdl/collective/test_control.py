"""Mailbox, sender and credit manager against plain Python, with pauses on every stream."""

from collections import deque

import pytest

from neuroncore_rtl.hdl.collective.credit_manager import CreditManager
from neuroncore_rtl.hdl.collective.mailbox import Mailbox
from neuroncore_rtl.hdl.collective.ops import ReceiveOp, SendOp
from neuroncore_rtl.hdl.collective.sender import Sender
from neuroncore_rtl.spec.isa import collective as isa
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from tests.hdl.simulation import drive, simulated
from tests.hdl.streams import play

SEED = 496

LINK_BYTES, WINDOW, CORES = 8, 16, 9


def beats_of(op, wide):
    size = 2 if op["dtype"] == isa.CollectiveType.BF16 and not op[wide] else 4
    return -(-op["elements"] * size // LINK_BYTES)


@simulated(lambda: Mailbox(CORES))
async def test_mailbox(ctx, dut, dice):
    box, looked, hits = {}, None, 0
    for _ in range(3000):
        free = [core for core in range(CORES) if core not in box]
        put = bool(free) and dice.random() < 0.3
        source, said = dice.choice(free or [0]), dice.getrandbits(isa.SIGNATURE_BITS)
        core = looked if looked is not None and dice.random() < 0.7 else dice.randrange(CORES)
        take = False
        if core == looked:
            assert ctx.get(dut.there) == (core in box)
            if core in box:
                assert ctx.get(dut.found) == box[core]
                hits += 1
                take = dice.random() < 0.5 and not (put and source == core)
        drive(ctx, dut, put=put, source=source, announced=said, core=core, take=take)
        await ctx.tick()
        if take:
            del box[core]
        if put:
            box[source] = said
        looked = core
    assert hits > 300


def random_ops(dice, count, new_peer, draw):
    """Return the fields of operations; those of the network may be for another peer than the one before.

    Arguments:
        new_peer: how likely they are. draw: makes the fields, but for the peer and the format.
    """
    ops, peer = [], None
    for _ in range(count):
        op = draw()
        new = bool(op.get("net", 1)) and (peer is None or dice.random() < new_peer)
        peer = dice.randrange(CORES) if new else peer
        ops.append(op | {"dtype": dice.randrange(3), "new_peer": int(new), "peer": peer or 0})
    return ops


def random_sends(dice, count):
    def draw():
        elements = dice.choice((1, 2, 5, dice.randrange(1, 80)))
        return {"load": dice.getrandbits(1), "wide": dice.getrandbits(1), "elements": elements}

    return random_ops(dice, count, 0.25, draw)


def send(dice, ops, stall, own, announcements, **options):
    """Let a sender send; return what it sends and what it should, each with whom that is for, the most that was on its
    way, and what it says of a disagreement in the end.

    Arguments:
        own: what it announces. announcements: what the new peers of `ops` announce, in order.
        options: of `play`.
    """
    dut = Sender(LINK_BYTES, CORES, WINDOW)
    beats = [(op, number << 20 | beat) for number, op in enumerate(ops) for beat in range(beats_of(op, "wide"))]
    inputs = {
        "ops": [SendOp.const(op).as_bits() for op in ops],
        "load": [beat for op, beat in beats if op["load"]],
        "forward": [beat for op, beat in beats if not op["load"]],
    }
    most = [0]

    async def partners(ctx):
        owed = deque(zip((op["peer"] for op in ops if op["new_peer"]), announcements, strict=True))
        outstanding, consumed, current, box = 0, 0, None, set()
        while True:
            # One announcement of a core waits at most; another core's grants mean nothing.
            put = bool(owed) and dice.random() < 0.2 and owed[0][0] not in box
            grant = not put and outstanding and consumed >= WINDOW // 2 and dice.random() < 0.5
            stray = not put and not grant and current is not None and dice.random() < 0.2
            source = owed[0][0] if put else current if grant else ((current or 0) + 1) % CORES
            said = owed[0][1] if owed else 0
            drive(ctx, dut, put=put, granted=bool(grant or stray), source=source, announced=said)
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
            most[0] = max(most[0], outstanding)
            consumed += consumed < outstanding and dice.random() < 0.3

    watch = [dut.peer, dut.refuses, dut.disagreement.valid, dut.disagreement.core, dut.disagreement.field]
    played = play(
        dut, inputs, {"o": len(beats)}, constants={"own": own}, stall=stall, seed=dice.getrandbits(32),
        others=[partners], watch=watch, **options,
    )  # fmt: skip
    peers = [played.watched[cycle][0] for cycle in played.cycles["o"]]
    sent = list(zip(peers, played.payloads["o"], strict=True))
    return sent, [(op["peer"], beat) for op, beat in beats], most[0], played.watched[-1]


def with_kind(word, kind):
    return word >> 3 << 3 | kind


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("kind", [K.ALL_REDUCE, K.SEND, K.RECEIVE])
def test_sender(kind, stall, dice):
    ops = random_sends(dice, 60)
    own = with_kind(dice.getrandbits(isa.SIGNATURE_BITS), kind)
    said = with_kind(own, isa.OTHER_SIDE.get(kind, kind))
    sent, wanted, most, _ = send(dice, ops, stall, own, [said] * sum(op["new_peer"] for op in ops))
    assert sent == wanted
    assert most == WINDOW  # all of the room is used, and no more


@pytest.mark.parametrize("place", range(len(isa.SIGNATURE_FIELDS)), ids=[name for name, _ in isa.SIGNATURE_FIELDS])
def test_sender_refuses_another_collective(place, dice):
    name, width = isa.SIGNATURE_FIELDS[place]
    dice.seed(f"{SEED} {name}")
    ops = random_sends(dice, 30)
    kind = dice.choice([kind for kind in K if name in isa.SIGNATURE_USES[kind]])
    own = with_kind(dice.getrandbits(isa.SIGNATURE_BITS), kind)
    said = with_kind(own, isa.OTHER_SIDE.get(kind, kind))
    other = said ^ 1 << isa.SIGNATURE_OFFSETS[name] + dice.randrange(width)
    for later, bits in isa.SIGNATURE_FIELDS[place + 1 :]:
        if later in isa.SIGNATURE_USES[kind]:
            other ^= dice.getrandbits(bits) << isa.SIGNATURE_OFFSETS[later]
    greetings = [number for number, op in enumerate(ops) if op["new_peer"]]
    bad = dice.choice(greetings)
    announcements = [other if number == bad else said for number in greetings]
    sent, wanted, _, state = send(dice, ops, 0.2, own, announcements, cycles=3000)
    assert state == (ops[bad]["peer"], 1, 1, ops[bad]["peer"], place + 1)
    assert sent == wanted[: sum(beats_of(op, "wide") for op in ops[:bad])]


@pytest.mark.parametrize("slow", [0.0, 0.9])
def test_credit_manager(slow, dice):
    """A model of the sender before: it sends only what was announced and granted, and never has to wait for ever."""
    dut = CreditManager(LINK_BYTES, WINDOW)

    def draw():
        net = int(dice.random() < 0.8)
        return {"net": net, "load": 1 - net, "wide_in": dice.getrandbits(1), "elements": dice.randrange(1, 60)}

    ops = random_ops(dice, 80, 0.2, draw)
    left = [0]  # beats of what has passed that are still in the buffer, or to come

    async def neighbours(ctx):
        room, buffer, announced = 0, 0, None
        need = deque()  # each peer in turn, and the beats that it has still to send
        for op in filter(lambda op: op["net"], ops):
            if op["new_peer"]:
                need.append([op["peer"], 0])
            need[-1][1] += beats_of(op, "wide_in")
        passing = iter(ops)
        while True:
            popped = bool(left[0] and buffer and dice.random() < 0.9)
            told = dice.random() >= slow and (ctx.get(dut.ready) or ctx.get(dut.grant))
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
            buffer, left[0] = buffer - popped, left[0] - popped
            if passes:
                op = next(passing)
                assert not op["net"] or op["peer"] == peer
                left[0] += beats_of(op, "wide_in") * op["net"]
            if announced is not None and need[0][1] and room and dice.random() < 0.9:
                room, buffer, need[0][1] = room - 1, buffer + 1, need[0][1] - 1

    words = [ReceiveOp.const(op).as_bits() for op in ops]
    played = play(
        dut, {"i": words}, {"o": len(ops)}, stall={"i": 0.0, "o": 0.3}, hold={"o": lambda cycle: left[0] > 1},
        others=[neighbours], finished="idle",
    )  # fmt: skip
    assert played.payloads["o"] == words
