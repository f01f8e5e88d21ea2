"""What the tests of the collective datapath share: elements as beats, and HBM that is written."""

import random
from collections import deque
from itertools import count

import numpy as np

__all__ = ["beats_of_bytes", "bytes_of_beats", "serve_writes"]


def beats_of_bytes(content: bytes, size: int, rng: np.random.Generator | None = None) -> list[int]:
    """Return bytes as beats of `size`; the last one is filled with random bytes, or with 0."""
    missing = -len(content) % size
    content = content + (rng.bytes(missing) if rng else bytes(missing))
    return [int.from_bytes(content[n : n + size], "little") for n in range(0, len(content), size)]


def bytes_of_beats(beats: list[int], size: int) -> bytes:
    """Return the bytes of beats of `size`."""
    return b"".join(beat.to_bytes(size, "little") for beat in beats)


async def serve_writes(
    ctx, axi, memory: bytearray, bursts: list, *, latency=1, stall=0.0, hold=0, errors=(), seed=1
) -> None:
    """Take the writes that arrive at a manager's port, and answer them in order.

    Data may come before their address. A burst that has begun must go on without a gap.

    Arguments:
        ctx: of the process.
        axi: the manager's port.
        memory: the content from address 0.
        bursts: gets (cycle, address, beats) of each burst.
        latency: cycles from a burst's last beat to its answer, at least.
        stall: share of the cycles in which nothing new is offered or taken.
        hold: cycles from the beginning in which no address is taken.
        errors: addresses of the bursts that are answered with an error.
        seed: of the stalls.
    """
    rng = random.Random(seed)
    size = len(axi.w.payload.strb)
    addresses, beats, answers, held = deque(), deque(), deque(), {}
    within = answering = False
    for cycle in count():
        ready = {"aw": cycle >= hold and rng.random() >= stall, "w": rng.random() >= stall}
        for channel, value in ready.items():
            ctx.set(getattr(axi, channel).ready, value)
        if not answering and answers and answers[0][0] <= cycle and rng.random() >= stall:
            answering = True
            ctx.set(axi.b.payload.resp, 2 if answers.popleft()[1] else 0)
        ctx.set(axi.b.valid, answering)
        *_, awvalid, burst, wvalid, beat, bready = await ctx.tick().sample(
            axi.aw.valid, axi.aw.payload, axi.w.valid, axi.w.payload, axi.b.ready
        )
        answering = answering and not bready
        offers = {"aw": (awvalid, burst.addr, burst.len), "w": (wvalid, beat.data, beat.strb, beat.last)}
        for channel, offer in offers.items():
            assert offer == held.pop(channel, offer), f"{channel} changes before it is taken"
            if offer[0] and not ready[channel]:
                held[channel] = offer
        assert wvalid or not within, "a burst waits for its data"
        if awvalid and ready["aw"]:
            assert burst.addr % size == 0 and burst.addr // 4096 == (burst.addr + burst.len * size) // 4096
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
                        memory[address + size * number + byte] = beat.data >> 8 * byte & 0xFF
            answers.append((cycle + latency, address in errors))
