"""Streams played into a unit and recorded at its outputs, each with its pauses, while other processes go on beside."""

import random
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from amaranth import Const, Value

from tests.hdl.simulation import simulate

__all__ = ["Played", "play"]

_QUIET = 20
"""Cycles in which nothing may come any more."""


@dataclass
class Played:
    """What passed on each stream: payloads, and the cycles in which they were taken; what was watched, in every cycle
    and after the last one."""

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
    worn: int = 0,
) -> Played:
    """Play streams into a unit until it has delivered what it should; then nothing more may come.

    Arguments:
        dut: the unit, or a module around some.
        inputs: of each input stream, by its name, the payloads as integers.
        outputs: of each output stream, how many payloads it delivers.
        ports: the streams by their names, if they are not ports of the unit that are called so.
        constants: of other inputs' names, their values.
        stall: share of the cycles in which an input offers nothing new, or an output takes nothing; of all, or of each.
        seed: of the stalls.
        hold: of outputs' names, whether they take nothing in a cycle.
        others: processes beside, asynchronous functions of the simulator's context.
        finished: name of a bit that must be set at the end, too.
        watch: what to record.
        limit: cycles that it may last.
        cycles: to run in any case, however far the streams come.
        worn: see :func:`tests.hdl.simulation.simulate`.
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
            for place, name in enumerate(names):
                valid, ready, payload = values[3 * place : 3 * place + 3]
                if name in held:
                    assert valid and payload == held.pop(name), f"{name} changes before it is taken"
                if valid and not ready:
                    held[name] = payload
                elif valid:
                    played.payloads[name].append(payload)
                    played.cycles[name].append(cycle)
                    if name in inputs:
                        pending[name].popleft()
                        offered.remove(name)
            left = {name: count - len(played.payloads[name]) for name, count in counts.items()}
            quiet += bool(ended) and max(left.values()) <= 0
            cycle += 1
            assert cycles or cycle < limit, f"payloads that have not passed in {cycle} cycles: {left}"
        assert cycles or not any(left.values()), f"more comes than should: {left}"
        played.watched.append(tuple(ctx.get(signal) for signal in watch))

    simulate(dut, bench, background=others, worn=worn)
    return played
