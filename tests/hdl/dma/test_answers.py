"""HBM's answers: copies retire in their order, and an error is of the copy whose burst it answers."""

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
"""How many cycles; how likely in each a burst is complete, a copy is over and HBM answers, if they may; and an answer
is an error."""

BOUT = 0.8
"""How likely HBM does in a cycle as in the one before."""

RESET = 0.1
"""How likely in a cycle a unit that has failed is reset."""


class Model:
    """All that was written and answered until the cycle before, and what follows for the copies."""

    def __init__(self):
        self.bursts = 0
        self.responses = []
        self.error = None  # place of the first one in them
        self.over = []  # of each copy, how many bursts there were when it was over
        self.retired = 0
        self.failed = False

    @property
    def good(self) -> int:
        """How many answers came before the first error."""
        return len(self.responses) if self.error is None else self.error

    @property
    def missing(self) -> int:
        """How many bursts have no answer yet."""
        return self.bursts - len(self.responses)

    @property
    def waiting(self) -> list[int]:
        """The copies that are over and have not retired."""
        return self.over[self.retired :]

    def says(self) -> dict[str, bool]:
        """Return what the unit puts out."""
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
        """Go on by a cycle in which this comes."""
        retired = self.says()["retired"]
        self.failed |= self.error is not None and not retired
        self.retired += retired
        self.bursts += burst
        if close:
            self.over.append(self.bursts)
        if response is not None:
            if response != RESPONSE_OKAY and self.error is None:
                self.error = len(self.responses)
            self.responses.append(response)


def said(ctx, answers) -> dict[str, bool]:
    """Return what a unit puts out, as `Model.says`."""
    copies = ("closable", "retired", "quiet", "idle", "failed")
    found = {"room": answers.room, **{name: getattr(answers.copies, name) for name in copies}}
    return {name: bool(ctx.get(port)) for name, port in found.items()}


def drive(ctx, answers, burst, close, response, beside=0):
    """Give a unit what comes in this cycle; `beside` is what the payload holds if no answer does."""
    ctx.set(answers.burst, burst)
    ctx.set(answers.copies.close, close)
    ctx.set(answers.b.valid, response is not None)
    ctx.set(answers.b.payload.resp, beside if response is None else response)


@simulated(Answers)
async def test_every_cycle_is_as_in_a_model(ctx, answers, reset, dice):
    """HBM answers soon, or not before there is no room; copies that write nothing crowd; errors are early or late."""
    seen = Counter()
    model, awake = Model(), False
    for cycles, *likely in PHASES:
        for _ in range(cycles):
            says = model.says()
            assert said(ctx, answers) == says, vars(model)
            burst, close, answers_now, wrong = (dice.random() < chance for chance in likely)
            awake = answers_now if dice.random() > BOUT else awake
            response = dice.choice(ERRORS) if wrong else RESPONSE_OKAY
            burst, close = burst and says["room"], close and says["closable"]
            response = response if awake and model.missing else None
            fresh = says["failed"] and dice.random() < RESET
            seen.update(name for name, bit in says.items() if bit == (name not in ("room", "closable")))
            seen["waits for its turn"] += says["retired"] and model.waiting[0] < model.good
            seen["is not to blame"] += says["retired"] and model.error is not None
            drive(ctx, answers, burst, close, response, dice.getrandbits(2))
            ctx.set(reset, fresh)
            model.step(burst, close, response)
            model = Model() if fresh else model
            await ctx.tick()
    print(seen)
    assert len(seen) == 8 and min(seen.values()) > 9


async def step(ctx, answers, burst=0, close=0, response=None):
    """Go on by a cycle; return whether a copy retires in it."""
    drive(ctx, answers, burst, close, response)
    retired = ctx.get(answers.copies.retired)
    await ctx.tick()
    return retired


@pytest.mark.parametrize("skipped", range(Answers.COPIES - 2))
@simulated(Answers)
async def test_copies_that_wait_for_their_turn_are_not_to_blame(ctx, answers, skipped):
    """Between a copy that is answered and one that fails a cycle later are some that wrote nothing."""
    for burst in (1, *[0] * skipped, 1):
        assert not await step(ctx, answers, burst, close=1)
    retired = [await step(ctx, answers, response=response) for response in (RESPONSE_OKAY, ERROR)]
    retired += [await step(ctx, answers) for _ in range(skipped + 3)]
    assert sum(retired) == 1 + skipped and ctx.get(answers.copies.failed)


@simulated(Answers)
async def test_a_good_answer_behind_an_error_retires_nothing(ctx, answers):
    for _ in range(3):
        await step(ctx, answers, burst=1, close=1)
    retired = [await step(ctx, answers, response=response) for response in (RESPONSE_OKAY, ERROR, RESPONSE_OKAY)]
    retired += [await step(ctx, answers) for _ in range(4)]
    assert sum(retired) == 1 and ctx.get(answers.copies.failed) and ctx.get(answers.copies.quiet)


@simulated(Answers)
async def test_a_failed_copy_of_many_bursts_behind_copies_that_wait_for_their_turn(ctx, answers):
    """Seven copies wrote nothing, and their turns pass while the next one, all of whose bursts HBM answers in a row,
    is over: it failed in its first burst, and has more than `BURSTS` behind it."""
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
