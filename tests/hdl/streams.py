"""Play payloads into the streams of a unit and record its output streams, with stalls and further testbenches."""

import random
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from amaranth import Const, Value

from tests.hdl.simulation import simulate

__all__ = ["Played", "play"]

_QUIET = 20
"""Cycles at the end in which no payload may be offered."""


@dataclass
class Played:
    """Payloads accepted on each stream, the cycles of acceptance, and the watched values per cycle and at the end."""

    payloads: dict[Hashable, list[int]] = field(default_factory=dict)
    cycles: dict[Hashable, list[int]] = field(default_factory=dict)
    watched: list[tuple[int, ...]] = field(default_factory=list)


def play(
    dut,
    inputs: Mapping[Hashable, Sequence[int]],
    outputs: Mapping[Hashable, int],
    *,
    ports: Mapping[Hashable, object] | None = None,
    constants: Mapping[str, int] | None = None,
    stall: float | Mapping[Hashable, float] = 0.0,
    seed: int = 1,
    hold: Mapping[Hashable, Callable[[int], bool]] | None = None,
    others: Sequence[Callable] = (),
    finished: str | None = None,
    watch: Sequence[Value] = (),
    limit: int = 20_000,
    cycles: int | None = None,
    warm_up: int = 0,
) -> Played:
    """Play streams into a unit until it has delivered all expected payloads; then check that no further one follows.

    A payload on offer must stay unchanged until it is accepted.

    Arguments:
        dut: the unit, or a module around units.
        inputs: payloads of each input stream as integers.
        outputs: number of payloads of each output stream.
        ports: the streams by name; default: the ports of the unit with these names.
        constants: values of other inputs of the unit.
        stall: probability per cycle that an input offers no new payload, or an output is not ready; one for all, or per
            stream.
        seed: seed of the stalls.
        hold: functions of the cycle by output, true where the output is not ready.
        others: further testbenches, asynchronous functions of the simulator's context.
        finished: name of a bit that must be set at the end.
        watch: values to record.
        limit: maximum number of cycles.
        cycles: exact number of cycles, even if payloads remain.
        warm_up: see `tests.hdl.simulation.simulate`.
    """
    names = (*inputs, *outputs)
    ports = ports or {name: getattr(dut, name) for name in names}
    stalls = stall if isinstance(stall, Mapping) else dict.fromkeys(names, stall)
    hold = {name: (hold or {}).get(name, lambda cycle: False) for name in outputs}
    rng, pending = random.Random(seed), {name: deque(payloads) for name, payloads in inputs.items()}
    counts = {name: len(payloads) for name, payloads in inputs.items()} | dict(outputs)
    played = Played({name: [] for name in names}, {name: [] for name in names})
    signals = [Value.cast(getattr(ports[name], part)) for name in names for part in ("valid", "ready", "payload")]
    end = getattr(dut, finished) if finished else Const(1)

    async def bench(ctx):
        for name, value in (constants or {}).items():
            ctx.set(getattr(dut, name), value)
        offered, held = set(), {}
        cycle = quiet = 0
        while quiet < _QUIET if cycles is None else cycle < cycles:
            for name in inputs:
                if name not in offered and pending[name] and rng.random() >= stalls[name]:
                    offered.add(name)
                    ctx.set(Value.cast(ports[name].payload), pending[name][0])
                ctx.set(ports[name].valid, name in offered)
            for name in outputs:
                ctx.set(ports[name].ready, not hold[name](cycle) and rng.random() >= stalls[name])
            _, _, ended, *values = await ctx.tick().sample(end, *signals, *watch)
            played.watched.append(tuple(values[len(signals) :]))
            for number, name in enumerate(names):
                valid, ready, payload = values[3 * number : 3 * number + 3]
                if name in held:
                    assert valid and payload == held.pop(name), f"{name} changes before it is accepted"
                if valid and not ready:
                    held[name] = payload
                elif valid:
                    played.payloads[name].append(payload)
                    played.cycles[name].append(cycle)
                    if name in inputs:
                        pending[name].popleft()
                        offered.remove(name)
            missing = {name: count - len(played.payloads[name]) for name, count in counts.items()}
            quiet += bool(ended) and max(missing.values()) <= 0
            cycle += 1
            assert cycles or cycle < limit, f"payloads missing after {cycle} cycles: {missing}"
        assert cycles or not any(missing.values()), f"surplus payloads: {missing}"
        played.watched.append(tuple(ctx.get(signal) for signal in watch))

    simulate(dut, bench, background=others, warm_up=warm_up)
    return played
