from collections import Counter

import pytest

from neuroncore_rtl.hdl.dma.answers import Answers
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY
from tests.hdl.simulation import simulated

SEED = 1597
ERRORS = (1, 2, 3)
ERROR = RESPONSE_OKAY + 2

PHASES = (
    *((200, 0.6, 0.2, 0.6, 0), (400, 0.9, 0.1, 0.9, 0), (100, 0.2, 0.2, 0.7, 0)),
    *((170, 1, 0.01, 0, 0), (300, 1, 0.03, 1, 0), (150, 0.9, 0.1, 0.1, 0), (150, 0, 0.3, 1, 0)),
    *((300, 0.1, 0.9, 0.3, 0), (300, 0.05, 1, 0.02, 0), (200, 0.05, 0.5, 0.03, 0)),
    *((500, 0.5, 0.3, 0.5, 0.05), (500, 0.1, 0.9, 0.4, 0.2), (300, 0.3, 0.8, 0.1, 0.02), (300, 0.3, 0.8, 1, 0.05)),
)
"""Cycles of each phase; probabilities per cycle of a burst, the end of a copy and a response, where legal; and the
probability that a response is an error."""

BOUT = 0.8
"""Probability that HBM keeps its state, which is to respond or not, for another cycle."""

RESET = 0.1
"""Probability per cycle of a reset of a unit that has failed."""


class Model:
    """Model of the unit: all bursts and responses until the previous cycle, and the state of the copies."""

    def __init__(self):
        self.bursts = 0
        self.responses = []
        self.error = None  # index of the first error response
        self.closed = []  # number of bursts at the end of each copy
        self.retired = 0
        self.failed = False

    @property
    def good(self) -> int:
        return len(self.responses) if self.error is None else self.error

    @property
    def missing(self) -> int:
        return self.bursts - len(self.responses)

    @property
    def waiting(self) -> list[int]:
        return self.closed[self.retired :]

    def outputs(self) -> dict[str, bool]:
        waiting = self.waiting
        return {
            "room": self.missing < Answers.BURSTS,
            "closable": len(waiting) < Answers.COPIES,
            "retired": bool(waiting) and not self.failed and waiting[0] <= self.good,
            "quiet": not self.missing,
            "idle": not self.missing and not waiting,
            "failed": self.failed,
        }

    def step(self, burst: bool, close: bool, response: int | None) -> None:
        retired = self.outputs()["retired"]
        self.failed |= self.error is not None and not retired
        self.retired += retired
        self.bursts += burst
        if close:
            self.closed.append(self.bursts)
        if response is not None:
            if response != RESPONSE_OKAY and self.error is None:
                self.error = len(self.responses)
            self.responses.append(response)


def outputs_of(ctx, answers) -> dict[str, bool]:
    copies = ("closable", "retired", "quiet", "idle", "failed")
    found = {"room": answers.room, **{name: getattr(answers.copies, name) for name in copies}}
    return {name: bool(ctx.get(port)) for name, port in found.items()}


def drive(ctx, answers, burst, close, response, noise=0):
    ctx.set(answers.burst, burst)
    ctx.set(answers.copies.close, close)
    ctx.set(answers.b.valid, response is not None)
    ctx.set(answers.b.payload.resp, noise if response is None else response)


@simulated(Answers)
async def test_outputs_are_those_of_the_model_in_every_cycle(ctx, answers, reset, py_rng):
    seen = Counter()
    model, awake = Model(), False
    for cycles, *likely in PHASES:
        for _ in range(cycles):
            outputs = model.outputs()
            assert outputs_of(ctx, answers) == outputs, vars(model)
            burst, close, answers_now, wrong = (py_rng.random() < chance for chance in likely)
            awake = answers_now if py_rng.random() > BOUT else awake
            response = py_rng.choice(ERRORS) if wrong else RESPONSE_OKAY
            burst, close = burst and outputs["room"], close and outputs["closable"]
            response = response if awake and model.missing else None
            resets = outputs["failed"] and py_rng.random() < RESET
            seen.update(name for name, bit in outputs.items() if bit == (name not in ("room", "closable")))
            seen["waits for its turn"] += outputs["retired"] and model.waiting[0] < model.good
            seen["is not to blame"] += outputs["retired"] and model.error is not None
            drive(ctx, answers, burst, close, response, py_rng.getrandbits(2))
            ctx.set(reset, resets)
            model.step(burst, close, response)
            model = Model() if resets else model
            await ctx.tick()
    assert len(seen) == 8 and min(seen.values()) > 9


async def step(ctx, answers, burst=0, close=0, response=None):
    drive(ctx, answers, burst, close, response)
    retired = ctx.get(answers.copies.retired)
    await ctx.tick()
    return retired


@pytest.mark.parametrize("skipped", range(Answers.COPIES - 2))
@simulated(Answers)
async def test_copies_without_bursts_between_a_good_and_a_failed_one_retire(ctx, answers, skipped):
    for burst in (1, *[0] * skipped, 1):
        assert not await step(ctx, answers, burst, close=1)
    retired = [await step(ctx, answers, response=response) for response in (RESPONSE_OKAY, ERROR)]
    retired += [await step(ctx, answers) for _ in range(skipped + 3)]
    assert sum(retired) == 1 + skipped and ctx.get(answers.copies.failed)


@simulated(Answers)
async def test_a_good_response_after_an_error_retires_no_copy(ctx, answers):
    for _ in range(3):
        await step(ctx, answers, burst=1, close=1)
    retired = [await step(ctx, answers, response=response) for response in (RESPONSE_OKAY, ERROR, RESPONSE_OKAY)]
    retired += [await step(ctx, answers) for _ in range(4)]
    assert sum(retired) == 1 and ctx.get(answers.copies.failed) and ctx.get(answers.copies.quiet)


@simulated(Answers)
async def test_a_failed_copy_of_many_bursts_after_copies_without_bursts(ctx, answers):
    await step(ctx, answers, burst=1, close=1)
    for _ in range(Answers.COPIES - 1):
        await step(ctx, answers, close=1)
    for _ in range(Answers.BURSTS - 1):
        await step(ctx, answers, burst=1)
    retired = [await step(ctx, answers, response=RESPONSE_OKAY), await step(ctx, answers, burst=1, response=ERROR)]
    retired += [await step(ctx, answers, burst=1, response=RESPONSE_OKAY) for _ in range(6)]
    retired += [await step(ctx, answers, burst=1, close=1, response=RESPONSE_OKAY)]
    retired += [await step(ctx, answers) for _ in range(5)]
    assert sum(retired) == Answers.COPIES and ctx.get(answers.copies.failed)
