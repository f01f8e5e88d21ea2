from collections import Counter

import pytest

from neuroncore_rtl.hdl.dma.answers import Answers
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY
from tests.hdl.simulation import drive, expect, simulated

SEED = 1597
ERRORS = (1, 2, 3)

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
        self.bursts = self.responses = self.retired = 0
        self.good = 0  # number of responses before the first error
        self.closed = []  # number of bursts at the end of each copy
        self.failed = False

    def outputs(self) -> dict[str, bool]:
        waiting, missing = self.closed[self.retired :], self.bursts - self.responses
        return {
            "room": missing < Answers.BURSTS,
            "copies.closable": len(waiting) < Answers.COPIES,
            "copies.retired": bool(waiting) and not self.failed and waiting[0] <= self.good,
            "copies.quiet": not missing,
            "copies.idle": not missing and not waiting,
            "copies.failed": self.failed,
        }

    def step(self, burst: bool, close: bool, response: int | None) -> None:
        retired = self.outputs()["copies.retired"]
        self.failed |= self.good < self.responses and not retired
        self.retired += retired
        self.bursts += burst
        if close:
            self.closed.append(self.bursts)
        if response is not None:
            self.good += self.good == self.responses and response == RESPONSE_OKAY
            self.responses += 1


def give(ctx, answers, burst, close, response, noise=0):
    drive(ctx, answers, burst=burst, **{"copies.close": close, "b.valid": response is not None})
    ctx.set(answers.b.payload.resp, noise if response is None else response)


@simulated(Answers)
async def test_outputs_are_those_of_the_model_in_every_cycle(ctx, answers, reset, py_rng):
    seen = Counter()
    model, awake = Model(), False
    for cycles, *likely in PHASES:
        for _ in range(cycles):
            outputs = model.outputs()
            expect(ctx, answers, vars(model), **outputs)
            burst, close, answers_now, wrong = (py_rng.random() < chance for chance in likely)
            awake = answers_now if py_rng.random() > BOUT else awake
            response = py_rng.choice(ERRORS) if wrong else RESPONSE_OKAY
            burst, close = burst and outputs["room"], close and outputs["copies.closable"]
            response = response if awake and model.bursts > model.responses else None
            resets = model.failed and py_rng.random() < RESET
            seen.update(name for name, bit in outputs.items() if bit == (name not in ("room", "copies.closable")))
            seen["waits for its turn"] += outputs["copies.retired"] and model.closed[model.retired] < model.good
            seen["is not to blame"] += outputs["copies.retired"] and model.good < model.responses
            give(ctx, answers, burst, close, response, py_rng.getrandbits(2))
            ctx.set(reset, resets)
            model.step(burst, close, response)
            model = Model() if resets else model
            await ctx.tick()
    assert len(seen) == 8 and min(seen.values()) > 9


GOOD, BAD = {"response": RESPONSE_OKAY}, {"response": ERRORS[1]}
BURST, CLOSE, BOTH = {"burst": 1}, {"close": 1}, {"burst": 1, "close": 1}

FAILURES = {
    **{
        f"{n} copies without bursts between a good and a failed one": ([BOTH, *[CLOSE] * n, BOTH], [GOOD, BAD], 1 + n)
        for n in range(Answers.COPIES - 2)
    },
    "a good response after an error": ([BOTH] * 3, [GOOD, BAD, GOOD], 1),
    "a failed copy of many bursts after copies without bursts": (
        [BOTH, *[CLOSE] * (Answers.COPIES - 1), *[BURST] * (Answers.BURSTS - 1)],
        [GOOD, BURST | BAD, *[BURST | GOOD] * 6, BOTH | GOOD],
        Answers.COPIES,
    ),
}
"""Inputs per cycle before and from the first response, and the number of copies that retire."""


@pytest.mark.parametrize(("before", "after", "count"), FAILURES.values(), ids=FAILURES)
@simulated(Answers)
async def test_only_copies_before_the_failed_one_retire(ctx, answers, before, after, count):
    retired = []
    for inputs in (*before, *after, *[{}] * (count + 4)):
        give(ctx, answers, **{"burst": 0, "close": 0, "response": None} | inputs)
        retired.append(ctx.get(answers.copies.retired))
        await ctx.tick()
    assert not any(retired[: len(before)]) and sum(retired) == count and ctx.get(answers.copies.failed)
    responses = sum("response" in inputs for inputs in after)
    assert ctx.get(answers.copies.quiet) == (responses == sum("burst" in inputs for inputs in (*before, *after)))
