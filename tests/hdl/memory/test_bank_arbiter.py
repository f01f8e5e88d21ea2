import pytest

from neuroncore_rtl.hdl.memory.bank_arbiter import LINE_PATIENCE, BankArbiter
from tests.hdl.simulation import drive, expect, pulse, simulated

SEED = 2014
ENGINES, LINES, BANKS = 3, 4, 4
REQUESTERS = range(ENGINES + LINES)

PHASES = (
    *((0.2, 0.1, 0.0, 4), (0.5, 0.9, 0.1, 4), (0.9, 0.9, 0.0, 1), (0.9, 0.5, 0.5, 2)),
    *((0.3, 0.95, 0.9, 3), (1.0, 1.0, 0.0, 1), (1.0, 1.0, 0.3, 2)),
)
"""Phases of the test: probabilities per cycle of a new request of an engine, of a new request of a line port, and of
`held_up`; and the number of banks."""


class Model:
    def __init__(self, early):
        self.early = early
        self.waited = [0] * LINES

    def answer(self, wishes, turn, held_up):
        """Return grants, stalls and whether an urgent line is served; `wishes` has each requester's bank, or None."""
        urgent = [waited == LINE_PATIENCE for waited in self.waited]

        def priority(number):
            line = number - ENGINES
            return (1, number) if line < 0 else (0 if urgent[line] else 2, (line - turn) % LINES)

        granted = set()
        for bank in range(BANKS):
            requests = sorted((number for number in REQUESTERS if wishes[number] == bank), key=priority)
            if requests and not (self.early and any(urgent) and requests[0] < ENGINES):
                granted.add(requests[0])
        stalled = {number for number in REQUESTERS if wishes[number] is not None} - (set() if held_up else granted)
        served = any(urgent) if self.early else any(urgent[number - ENGINES] for number in granted if number >= ENGINES)
        for line in range(LINES):
            self.waited[line] = min(self.waited[line] + 1, LINE_PATIENCE) if ENGINES + line in stalled else 0
        return granted, stalled, served


def bits(numbers):
    return sum(1 << number for number in numbers)


async def step(ctx, arbiter, model, wishes, turn, held_up, rng):
    ctx.set(arbiter.requests, bits(number for number in REQUESTERS if wishes[number] is not None))
    for port, bank in zip(arbiter.banks, wishes, strict=True):
        ctx.set(port, int(rng.integers(BANKS)) if bank is None else bank)
    drive(ctx, arbiter, turn=turn, held_up=held_up)
    granted, stalled, urgent = model.answer(wishes, turn, held_up)
    expect(ctx, arbiter, (wishes, turn, held_up), grants=bits(granted), stalls=bits(stalled), urgent=urgent)
    await ctx.tick()
    return granted, stalled


@pytest.mark.parametrize("early", [False, True])
@simulated(lambda early: BankArbiter(ENGINES, LINES, BANKS, early))
async def test_grants_stalls_and_urgency_are_those_of_the_model(ctx, arbiter, reset, early, rng):
    # A request stays until it is granted, or is withdrawn for a cycle; each reset occurs when all lines are urgent.
    model = Model(early)
    seen = {"urgent": 0, "behind a line": 0}
    for engines, lines, held, banks in PHASES:
        wishes, resting = [None] * len(REQUESTERS), set()
        for _ in range(200):
            for number in set(REQUESTERS) - resting:
                if wishes[number] is None and rng.random() < (engines if number < ENGINES else lines):
                    wishes[number] = int(rng.integers(banks))
            turn, held_up = int(rng.integers(LINES)), bool(rng.random() < held)
            seen["urgent"] += LINE_PATIENCE in model.waited
            granted, stalled = await step(ctx, arbiter, model, wishes, turn, held_up, rng)
            seen["behind a line"] += any(n < ENGINES for n in stalled) and any(n >= ENGINES for n in granted)
            resting = {number for number in stalled if rng.random() < 0.03}
            wishes = [wish if number in stalled - resting else None for number, wish in enumerate(wishes)]
        for _ in range(LINE_PATIENCE + 1):
            await step(ctx, arbiter, model, [0] * len(REQUESTERS), 0, True, rng)
        assert model.waited == [LINE_PATIENCE] * LINES
        await pulse(ctx, reset)
        model = Model(early)
    assert min(seen.values()) > 50
