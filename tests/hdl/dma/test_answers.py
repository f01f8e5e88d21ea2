"""HBM's answers: copies retire in their order, and an error is of the copy whose burst it answers."""

import pytest

from neuroncore_rtl.hdl.dma.answers import Answers
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY
from tests.hdl.simulation import simulated

ERROR = RESPONSE_OKAY + 2


async def step(ctx, answers, burst=0, close=0, response=None):
    """Go on by a cycle; return whether a copy retires in it."""
    ctx.set(answers.burst, burst)
    ctx.set(answers.copies.close, close)
    ctx.set(answers.b.valid, response is not None)
    ctx.set(answers.b.payload.resp, response or 0)
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
