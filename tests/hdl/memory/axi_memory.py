"""HBM for tests in Amaranth's simulator: answers the reads of one port."""

import random
from collections import deque

RESPONSE_SLVERR = 2


async def serve_reads(ctx, axi, memory: bytes, *, latency: int = 1, stall: float = 0, errors=(), seed: int = 1):
    """Answer the reads that arrive at a manager's port, in order.

    Arguments:
        ctx: of the process.
        axi: the manager's port.
        memory: the content from address 0.
        latency: cycles from an address to its first beat, at least.
        stall: share of the cycles in which nothing new is offered or taken.
        errors: addresses of the beats that are answered with an error.
        seed: of the stalls.
    """
    rng = random.Random(seed)
    size = len(axi.w.payload.strb)
    beats = deque()  # cycle from which on it may come, address, whether it is the last
    offered = None
    cycle, asked, taken = 0, (0, 0, 0), True
    while True:
        ready = rng.random() >= stall
        if offered is None and beats and beats[0][0] <= cycle and rng.random() >= stall:
            _, address, last = beats.popleft()
            data = int.from_bytes(memory[address : address + size], "little")
            offered = {"data": data, "resp": RESPONSE_SLVERR if address in errors else 0, "last": last}
        ctx.set(axi.ar.ready, ready)
        ctx.set(axi.r.valid, offered is not None)
        if offered is not None:
            ctx.set(axi.r.payload, offered)
        *_, valid, asks, r_ready = await ctx.tick().sample(axi.ar.valid, axi.ar.payload, axi.r.ready)
        address, length = asks.addr, asks.len
        assert taken or (valid, address, length) == asked, "AR changes before it is taken"
        asked, taken = (valid, address, length), ready or not valid
        if valid and ready:
            assert address % size == 0 and address // 4096 == (address + length * size) // 4096
            beats += ((cycle + latency, address + n * size, n == length) for n in range(length + 1))
        if r_ready:
            offered = None
        cycle += 1
