"""Two ends of a link with a wire each way, driven with random flits, stalls and disturbances."""

import random
from collections import deque
from dataclasses import dataclass, field

from amaranth.hdl import Module

from neuroncore_rtl.hdl.link.end import LinkEnd
from neuroncore_rtl.hdl.link.flit import frame_layout
from neuroncore_rtl.hdl.link.wire import Wire
from neuroncore_rtl.spec.link import FLIT_HEADER_BITS, VIRTUAL_CHANNELS
from tests.hdl.simulation import simulate

ENDS = (0, 1)
PATHS = [(end, vc) for end in ENDS for vc in range(VIRTUAL_CHANNELS)]
"""Where flits come in: an end and a virtual channel; they go out at the other end."""


class Pair:
    """Ends 0 and 1; wire n leads from end n to the other."""

    def __init__(self, link_bytes, latency):
        self.link_bytes = link_bytes
        self.flit_bits = FLIT_HEADER_BITS + 8 * link_bytes
        self.frame_bits = frame_layout(link_bytes).size
        self.ends = [LinkEnd(link_bytes, latency) for _ in ENDS]
        self.wires = [Wire(link_bytes, latency) for _ in ENDS]
        self.module = m = Module()
        for n in ENDS:
            m.submodules[f"end{n}"], m.submodules[f"wire{n}"] = self.ends[n], self.wires[n]
            wire, far = self.wires[n], self.ends[1 - n]
            m.d.comb += [wire.i.eq(self.ends[n].tx), far.rx.eq(wire.o), far.rx_present.eq(wire.present)]


@dataclass
class Outcome:
    """What a run did: cycles; for each path the flits and the cycles of their taking, in and out; counters and dead."""

    cycles: int
    sent: dict
    received: dict
    taken_at: dict
    offered_at: dict
    counters: list
    dead_at: list
    events: dict = field(default_factory=dict)


def run_pair(
    *, link_bytes=8, latency=2, flits, seed=0, offer=1.0, drain=1.0, errors=0.0, limit, cut=None, pair=None, extra=0
):
    """Send random flits until all have come or `limit` cycles are over.

    Arguments:
        flits: number of them for each path: a dictionary.
        offer, drain: how likely a source has a flit, and a sink takes one, in a cycle: a number, or by path.
        errors: how likely a frame is turned over in a bit, dropped or repeated, in equal parts, from the
            first one delivered to the last flit.
        cut: wire and cycle from which on it is cut.
        extra: cycles to run on after the last flit.
    """
    pair = pair or Pair(link_bytes, latency)
    rng = random.Random(seed)
    waiting = {path: deque(rng.getrandbits(pair.flit_bits) for _ in range(flits.get(path, 0))) for path in PATHS}
    sent, received, taken_at, offered_at = ({path: [] for path in PATHS} for _ in range(4))
    offers = offer if isinstance(offer, dict) else dict.fromkeys(PATHS, offer)
    drains = drain if isinstance(drain, dict) else dict.fromkeys(PATHS, drain)
    total = sum(flits.values())
    result, dead_at, events = {}, [None, None], {"flip": 0, "drop": 0, "repeat": 0}

    async def bench(ctx):
        offering, draining, left = dict.fromkeys(PATHS, False), dict.fromkeys(PATHS, False), extra
        disturbed = [False, False]
        for cycle in range(limit):
            for n in ENDS:
                disturbance = {}
                if cut and cut[0] == n and cycle >= cut[1]:
                    disturbance["cut"] = 1
                if pair.ends[0].latency <= cycle and left == extra and rng.random() < errors:
                    kind = rng.choice(("flip", "drop", "repeat"))
                    events[kind] += 1
                    disturbance[kind] = 1
                    disturbance["flip_bit"] = rng.randrange(pair.frame_bits)
                if disturbance or disturbed[n]:
                    ctx.set(pair.wires[n].disturbance, disturbance)
                    disturbed[n] = bool(disturbance)
            for path in PATHS:
                end, vc = path
                stream = pair.ends[end].i[vc]
                if waiting[path] and not offering[path] and rng.random() < offers[path]:
                    offering[path] = True
                    ctx.set(stream.payload.as_value(), waiting[path][0])
                ctx.set(stream.valid, offering[path])
                draining[path] = rng.random() < drains[path]
                ctx.set(pair.ends[1 - end].o[vc].ready, draining[path])
            for path in PATHS:
                end, vc = path
                out = pair.ends[1 - end].o[vc]
                if ctx.get(out.valid):
                    if len(offered_at[path]) == len(received[path]):
                        offered_at[path].append(cycle)
                    if draining[path]:
                        received[path].append(ctx.get(out.payload.as_value()))
                if offering[path] and ctx.get(pair.ends[end].i[vc].ready):
                    sent[path].append(waiting[path].popleft())
                    taken_at[path].append(cycle)
                    offering[path] = False
            await ctx.tick()
            for n in ENDS:
                if dead_at[n] is None and ctx.get(pair.ends[n].dead):
                    dead_at[n] = cycle + 1
            if sum(map(len, received.values())) >= total:
                if not left:
                    break
                left -= 1
        result["cycles"] = cycle + 1
        result["counters"] = [{name: ctx.get(end.counters[name]) for name in COUNTERS} for end in pair.ends]

    simulate(pair.module, bench)
    return Outcome(
        cycles=result["cycles"],
        sent=sent,
        received=received,
        taken_at=taken_at,
        offered_at=offered_at,
        counters=result["counters"],
        dead_at=dead_at,
        events=events,
    )


COUNTERS = ("flits", "replays", "crc_errors", "discarded", "idle", "stalled")
