"""HBM for tests in Amaranth's simulator: answers the reads, or the writes, of one port."""

import random
from collections import deque
from collections.abc import Mapping
from itertools import count

__all__ = ["serve_reads", "serve_writes"]

RESPONSE_SLVERR = 2


async def serve_reads(
    ctx, axi, memory: bytes, *, base: int = 0, latency: int = 1, stall: float = 0, errors=(), seed: int = 1, bursts=None
):
    """Answer the reads that arrive at a manager's port, in order.

    Arguments:
        ctx: of the process.
        axi: the manager's port.
        memory: the content from address `base` on.
        latency: cycles from an address to its first beat, at least.
        stall: share of the cycles in which nothing new is offered or taken.
        errors: addresses of the beats that are answered with an error, and if it is a mapping with which response.
        seed: of the stalls.
        bursts: a list that gets (address, beats) of each burst.
    """
    rng = random.Random(seed)
    size = len(axi.w.payload.strb)
    bursts = [] if bursts is None else bursts
    beats = deque()  # cycle from which on it may come, address, whether it is the last
    offered = asked = None
    for cycle in count():
        ready = rng.random() >= stall
        if offered is None and beats and beats[0][0] <= cycle and rng.random() >= stall:
            _, address, last = beats.popleft()
            data = int.from_bytes(memory[address - base : address - base + size], "little")
            offered = {"data": data, "resp": _response(errors, address), "last": last}
            ctx.set(axi.r.payload, offered)
        ctx.set(axi.ar.ready, ready)
        ctx.set(axi.r.valid, offered is not None)
        *_, valid, burst, taken = await ctx.tick().sample(axi.ar.valid, axi.ar.payload, axi.r.ready)
        offer = (burst.addr, burst.len) if valid else None
        assert asked in (None, offer), "AR changes before it is taken"
        asked = None if ready else offer
        if valid and ready:
            _check(burst, size)
            bursts.append((burst.addr, burst.len + 1))
            beats += ((cycle + latency, burst.addr + n * size, n == burst.len) for n in range(burst.len + 1))
        offered = None if taken else offered


def _response(errors, address: int) -> int:
    if address not in errors:
        return 0
    return errors[address] if isinstance(errors, Mapping) else RESPONSE_SLVERR


def _check(burst, size: int) -> None:
    """A burst is of whole beats, and crosses no page."""
    assert burst.addr % size == 0 and burst.addr // 4096 == (burst.addr + burst.len * size) // 4096


async def serve_writes(
    ctx, axi, memory: bytearray, bursts: list, *, base=0, latency=1, stall=0.0, hold=0, held=("aw",), errors=(), seed=1
) -> None:
    """Take the writes that arrive at a manager's port, and answer them in order.

    Data may come before their address. A burst that has begun must go on without a gap.

    Arguments:
        ctx: of the process.
        axi: the manager's port.
        memory: the content from address `base` on.
        bursts: gets (cycle, address, beats) of each burst.
        latency: cycles from a burst's last beat to its answer, at least.
        stall: share of the cycles in which nothing new is offered or taken.
        hold: cycles from the beginning in which nothing is taken of the channels `held`.
        errors: addresses of the bursts that are answered with an error.
        seed: of the stalls.
    """
    rng = random.Random(seed)
    size = len(axi.w.payload.strb)
    addresses, beats, answers, offered = deque(), deque(), deque(), {}
    within = answering = False
    for cycle in count():
        ready = {name: (name not in held or cycle >= hold) and rng.random() >= stall for name in ("aw", "w")}
        for channel, value in ready.items():
            ctx.set(getattr(axi, channel).ready, value)
        if not answering and answers and answers[0][0] <= cycle and rng.random() >= stall:
            answering = True
            ctx.set(axi.b.payload.resp, RESPONSE_SLVERR if answers.popleft()[1] else 0)
        ctx.set(axi.b.valid, answering)
        *_, awvalid, burst, wvalid, beat, bready = await ctx.tick().sample(
            axi.aw.valid, axi.aw.payload, axi.w.valid, axi.w.payload, axi.b.ready
        )
        answering = answering and not bready
        offers = {"aw": (awvalid, burst.addr, burst.len), "w": (wvalid, beat.data, beat.strb, beat.last)}
        for channel, offer in offers.items():
            assert offer == offered.pop(channel, offer), f"{channel} changes before it is taken"
            if offer[0] and not ready[channel]:
                offered[channel] = offer
        assert wvalid or not within, "a burst waits for its data"
        if awvalid and ready["aw"]:
            _check(burst, size)
            addresses.append((burst.addr, burst.len + 1))
            bursts.append((cycle, *addresses[-1]))
        if wvalid and ready["w"]:
            beats.append(beat)
            within = not beat.last
        while addresses and len(beats) >= addresses[0][1]:
            address, length = addresses.popleft()
            for number in range(length):
                beat = beats.popleft()
                assert beat.last == (number == length - 1)
                for byte in range(size):
                    if beat.strb >> byte & 1:
                        memory[address - base + size * number + byte] = beat.data >> 8 * byte & 0xFF
            answers.append((cycle + latency, address in errors))
