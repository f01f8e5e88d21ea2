"""Two link ends with a wire in each direction, driven with random flits, stalls and disturbances."""

import random
from collections import Counter
from dataclasses import dataclass

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.end import CREDITS, LinkEnd
from neuroncore_rtl.hdl.link.flit import flit_layout, flit_stream, frame_layout
from neuroncore_rtl.hdl.link.wire import DISTURBANCE, Wire
from neuroncore_rtl.spec.link import VIRTUAL_CHANNELS
from tests.hdl.streams import play

ENDS = (0, 1)
PATHS = [(end, vc) for end in ENDS for vc in range(VIRTUAL_CHANNELS)]
"""Inputs of flits: an end and a virtual channel. The flits are delivered at the other end."""

_COUNTERS = tuple(LinkCounters.as_shape().members)


@dataclass
class Outcome:
    """Result of a run; dictionaries are by path, lists by end.

    `dead_at` is the first cycle in which each end was dead, or None; `events` has the number of disturbances of each
    kind.
    """

    sent: dict
    sent_at: dict
    received: dict
    received_at: dict
    counters: list
    dead_at: list
    events: Counter


class Pair(wiring.Component):
    """Both ends and their wires: wire n leads from end n to the other. Ports are arrays indexed by end, or by wire."""

    def __init__(self, link_bytes: int = 8, latency: int = 2):
        self.ends = [LinkEnd(link_bytes, latency) for _ in ENDS]
        self.wires = [Wire(link_bytes, latency) for _ in ENDS]
        flits = flit_stream(link_bytes)
        super().__init__(
            {
                "i": In(flits).array(len(ENDS), VIRTUAL_CHANNELS),
                "o": Out(flits).array(len(ENDS), VIRTUAL_CHANNELS),
                "tx": Out(frame_layout(link_bytes)).array(len(ENDS)),
                "disturbance": In(DISTURBANCE).array(len(ENDS)),
                "dead": Out(1).array(len(ENDS)),
                "credits_used": Out(CREDITS).array(len(ENDS)),
                "counters": Out(LinkCounters).array(len(ENDS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for n, (end, wire, far) in enumerate(zip(self.ends, self.wires, reversed(self.ends), strict=True)):
            m.submodules[f"end{n}"], m.submodules[f"wire{n}"] = end, wire
            m.d.comb += [wire.i.eq(end.tx), far.rx.eq(wire.o), far.rx_present.eq(wire.present)]
            m.d.comb += [wire.disturbance.eq(self.disturbance[n]), self.dead[n].eq(end.dead)]
            m.d.comb += [self.tx[n].eq(end.tx), self.counters[n].eq(end.counters)]
            m.d.comb += self.credits_used[n].eq(end.credits_used)
            for vc in range(VIRTUAL_CHANNELS):
                wiring.connect(m, wiring.flipped(self.i[n][vc]), end.i[vc])
                wiring.connect(m, end.o[vc], wiring.flipped(self.o[n][vc]))
        return m


def run_pair(
    *, link_bytes=8, latency=2, flits=None, seed=0, offer=1.0, drain=1.0, errors=0.0, cut=None, limit=8000, cycles=None
) -> Outcome:
    """Send random flits until all have been delivered, or for exactly `cycles` cycles.

    The wires have the latency `latency`. Per cycle, a source has a flit with probability `offer`, a sink is ready with
    `drain`. `flits` and `drain` are numbers for all paths, or dictionaries. With probability `errors` a frame has a
    flipped bit, is dropped or repeated, until the last flit is delivered. `cut` is a wire and the first cycle of its
    cut.
    """
    pair = Pair(link_bytes, latency)
    ins = {("i", *path): pair.i[path[0]][path[1]] for path in PATHS}
    outs = {("o", *path): pair.o[1 - path[0]][path[1]] for path in PATHS}
    rng, events = random.Random(seed), Counter()
    counts = flits if isinstance(flits, dict) else dict.fromkeys(PATHS, flits or 0)
    bits = flit_layout(link_bytes).size
    payloads = {path: [rng.getrandbits(bits) for _ in range(counts.get(path, 0))] for path in PATHS}

    async def disturb(ctx):
        cycle, left = 0, sum(map(len, payloads.values()))
        while True:
            for n, disturbance in enumerate(pair.disturbance):
                disturbed = {"cut": cut is not None and cut[0] == n and cycle >= cut[1]}
                if cycle >= latency and left and rng.random() < errors:
                    kind = rng.choice(("flip", "drop", "repeat"))
                    events[kind] += 1
                    disturbed |= {kind: 1, "flip_bit": rng.randrange(frame_layout(link_bytes).size)}
                ctx.set(disturbance, disturbed)
            _, _, *arrivals = await ctx.tick().sample(*(out.valid & out.ready for out in outs.values()))
            cycle, left = cycle + 1, left - sum(arrivals)

    drains = drain if isinstance(drain, dict) else dict.fromkeys(PATHS, drain)
    stall = dict.fromkeys(ins, 1 - offer) | {("o", *path): 1 - drains[path] for path in PATHS}
    watch = list(pair.dead) + [counters[name] for counters in pair.counters for name in _COUNTERS]
    played = play(
        pair, {("i", *path): payloads[path] for path in PATHS}, {("o", *path): len(payloads[path]) for path in PATHS},
        ports=ins | outs, stall=stall, seed=seed, others=[disturb], watch=watch, limit=limit, cycles=cycles,
    )  # fmt: skip
    found = [{path: what[way, *path] for path in PATHS} for way in "io" for what in (played.payloads, played.cycles)]
    dead_at = [next((n for n, watched in enumerate(played.watched) if watched[end]), None) for end in ENDS]
    last = played.watched[-1][len(ENDS) :]
    counters = [dict(zip(_COUNTERS, last[len(_COUNTERS) * end :], strict=False)) for end in ENDS]
    return Outcome(*found, counters, dead_at, events)
