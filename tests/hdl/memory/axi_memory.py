"""HBM model for Amaranth's simulator: serves the reads, or the writes, of one AXI port."""

import random
from collections import deque
from collections.abc import Mapping
from itertools import count

__all__ = ["serve_reads", "serve_writes"]
RESPONSE_SLVERR = 2


async def serve_reads(
    ctx, axi, memory: bytes, *, base: int = 0, latency: int = 1, stall: float = 0, errors=(), seed: int = 1, bursts=None
):
    """Serve the reads of a manager's port in order; `bursts` gets the address and beats of each burst.

    `memory` begins at the address `base`. `latency` is the minimum number of cycles from an address to its first beat.
    With probability `stall` per cycle no new beat is offered, or no address is accepted. `errors` are the addresses of
    beats with an error response; a mapping gives the responses.
    """
    rng = random.Random(seed)
    size = len(axi.w.payload.strb)
    bursts, beats = [] if bursts is None else bursts, deque()
    responses = errors if isinstance(errors, Mapping) else dict.fromkeys(errors, RESPONSE_SLVERR)
    offered = pending_address = None
    for cycle in count():
        ready = rng.random() >= stall
        if offered is None and beats and beats[0][0] <= cycle and rng.random() >= stall:
            _, address, last = beats.popleft()
            data = int.from_bytes(memory[address - base : address - base + size], "little")
            offered = {"data": data, "resp": responses.get(address, 0), "last": last}
            ctx.set(axi.r.payload, offered)
        ctx.set(axi.ar.ready, ready)
        ctx.set(axi.r.valid, offered is not None)
        *_, valid, burst, taken = await ctx.tick().sample(axi.ar.valid, axi.ar.payload, axi.r.ready)
        offer = (burst.addr, burst.len) if valid else None
        assert pending_address in (None, offer), "AR changes before it is accepted"
        pending_address = None if ready else offer
        if valid and ready:
            _check(burst, size)
            bursts.append((burst.addr, burst.len + 1))
            beats += ((cycle + latency, burst.addr + n * size, n == burst.len) for n in range(burst.len + 1))
        offered = None if taken else offered


def _check(burst, size: int) -> None:
    assert burst.addr % size == 0 and burst.addr // 4096 == (burst.addr + burst.len * size) // 4096


async def serve_writes(
    ctx, axi, memory: bytearray, bursts: list, *, base=0, latency=1, stall=0.0, hold=0, held=("aw",), errors=(), seed=1,
    gaps=False,
) -> None:  # fmt: skip
    """Serve the writes of a manager's port in order; `bursts` gets the cycle, address and beats of each burst.

    Data may arrive before their address. The beats of a burst must follow each other without a gap, unless `gaps`.
    `memory` begins at the address `base`. `latency` is the minimum number of cycles from the last beat of a burst to
    its response. With probability `stall` per cycle nothing new is offered or accepted. The channels `held` accept
    nothing in the first `hold` cycles. `errors` are the addresses of bursts with an error response.
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
            assert offer == offered.pop(channel, offer), f"{channel} changes before it is accepted"
            if offer[0] and not ready[channel]:
                offered[channel] = offer
        assert wvalid or gaps or not within, "a gap within a burst"
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
