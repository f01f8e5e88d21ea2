"""What the tests of the collective datapath share: streams played and recorded, HBM that is written, packing."""

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from amaranth import Value

from neuroncore_rtl.spec.isa.collective import CollectiveType
from tests.hdl.simulation import simulate

__all__ = ["SIZES", "Played", "beats_of_bytes", "bytes_of_beats", "play", "serve_writes"]

SIZES = {CollectiveType.FP32: 4, CollectiveType.BF16: 2, CollectiveType.INT32: 4}
"""Bytes of an element in memory."""

_QUIET = 20
"""Cycles in which nothing may come any more."""


@dataclass
class Played:
    """What passed on each stream: payloads, and the cycles in which they were taken; what was watched, every cycle."""

    payloads: dict[str, list[int]] = field(default_factory=dict)
    cycles: dict[str, list[int]] = field(default_factory=dict)
    watched: list[tuple[int, ...]] = field(default_factory=list)


def play(
    dut,
    inputs,
    outputs,
    *,
    constants=None,
    stall=0.0,
    seed=1,
    hold=None,
    others=(),
    finished=None,
    watch=(),
    limit=20_000,
) -> Played:
    """Play streams into a unit until it has delivered what it should; then nothing more may come.

    Arguments:
        dut: the unit.
        inputs: of each input stream's name, the payloads as integers.
        outputs: of each output stream's name, how many payloads it delivers.
        constants: of other inputs' names, their values.
        stall: share of the cycles in which an input offers nothing new, or an output takes nothing.
        seed: of the stalls.
        hold: of outputs' names, until which cycle they take nothing.
        others: processes beside, asynchronous functions of the simulator's context.
        finished: name of a bit that must be set at the end, too.
        watch: signals to record.
        limit: cycles that it may last.
    """
    played = Played({n: [] for n in (*inputs, *outputs)}, {n: [] for n in (*inputs, *outputs)})
    rng = random.Random(seed)
    pending = {name: deque(payloads) for name, payloads in inputs.items()}
    names = (*inputs, *outputs)
    ports = {name: getattr(dut, name) for name in names}
    handshakes = [Value.cast(signal) for port in ports.values() for signal in (port.valid, port.ready, port.payload)]
    sampled = [*handshakes, getattr(dut, finished) if finished else Value.cast(1), *watch]

    async def bench(ctx):
        for name, value in (constants or {}).items():
            ctx.set(getattr(dut, name), value)
        offered, held = dict.fromkeys(inputs, False), {}
        cycle = quiet = 0
        while quiet < _QUIET:
            for name in inputs:
                if not offered[name]:
                    offered[name] = bool(pending[name]) and rng.random() >= stall
                    ctx.set(ports[name].valid, offered[name])
                    if offered[name]:
                        ctx.set(Value.cast(ports[name].payload), pending[name][0])
            for name in outputs:
                ctx.set(ports[name].ready, cycle >= (hold or {}).get(name, 0) and rng.random() >= stall)
            values = (await ctx.tick().sample(*sampled))[2:]
            ends = values[len(handshakes)]
            played.watched.append(values[len(handshakes) + 1 :])
            for place, name in enumerate(names):
                valid, ready, payload = values[3 * place : 3 * place + 3]
                if name in held:
                    assert valid and payload == held.pop(name), f"{name} changes before it is taken"
                if valid and not ready:
                    held[name] = payload
                if valid and ready:
                    played.payloads[name].append(payload)
                    played.cycles[name].append(cycle)
                    if name in inputs:
                        pending[name].popleft()
                        offered[name] = False
            done = not any(pending.values()) and all(len(played.payloads[n]) >= outputs[n] for n in outputs)
            quiet += bool(done and ends)
            cycle += 1
            assert cycle < limit, {n: (len(played.payloads[n]), outputs.get(n)) for n in names}
        for name, count in outputs.items():
            assert len(played.payloads[name]) == count, f"{name}: {len(played.payloads[name])} instead of {count}"

    simulate(dut, bench, background=others)
    return played


async def serve_writes(
    ctx, axi, memory: bytearray, *, latency=1, stall=0.0, hold=0, errors=(), seed=1, record=None
) -> None:
    """Take the writes that arrive at a manager's port, and answer them in order.

    Data may come before their address. A burst that has begun must go on without a gap.

    Arguments:
        ctx: of the process.
        axi: the manager's port.
        memory: the content from address 0.
        latency: cycles from a burst's last beat to its answer, at least.
        stall: share of the cycles in which nothing new is offered or taken.
        hold: cycles from the beginning in which no address is taken.
        errors: addresses of the bursts that are answered with an error.
        seed: of the stalls.
        record: gets (cycle, address, beats) of each burst.
    """
    rng = random.Random(seed)
    size = len(axi.w.payload.strb)
    addresses, beats, answers = deque(), deque(), deque()
    cycle, within, answering = 0, False, False
    held = {}
    while True:
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
        (address, length), (data, strobes, last) = (burst.addr, burst.len), (beat.data, beat.strb, beat.last)
        for channel, valid, content in (("aw", awvalid, (address, length)), ("w", wvalid, (data, strobes, last))):
            if channel in held:
                assert valid and content == held.pop(channel), f"{channel} changes before it is taken"
            if valid and not ready[channel]:
                held[channel] = content
        assert wvalid or not within, "a burst waits for its data"
        if answering and bready:
            answering = False
        if awvalid and ready["aw"]:
            assert address % size == 0 and address // 4096 == (address + length * size) // 4096
            addresses.append((address, length + 1))
            if record is not None:
                record.append((cycle, address, length + 1))
        if wvalid and ready["w"]:
            beats.append((data, strobes, last))
            within = not last
        while addresses and len(beats) >= addresses[0][1]:
            address, count = addresses.popleft()
            for number in range(count):
                data, strobes, last = beats.popleft()
                assert last == (number == count - 1)
                for byte in range(size):
                    if strobes >> byte & 1:
                        memory[address + size * number + byte] = data >> 8 * byte & 0xFF
            answers.append((cycle + latency, address in errors))
        cycle += 1


def beats_of_bytes(content: bytes, size: int, rng: np.random.Generator | None = None) -> list[int]:
    """Return bytes as beats of `size`; the last one is filled with random bytes, or with 0."""
    missing = -len(content) % size
    content = content + (rng.bytes(missing) if rng else bytes(missing))
    return [int.from_bytes(content[n : n + size], "little") for n in range(0, len(content), size)]


def bytes_of_beats(beats: list[int], size: int) -> bytes:
    """Return the bytes of beats of `size`."""
    return b"".join(beat.to_bytes(size, "little") for beat in beats)
