"""A test of the clamp that notices every mutant that differs."""

from tests.hdl.simulation import simulate
from tests.tb.campaign.clamp import Clamp


def expected(number: int) -> int:
    return min(number if number < 128 else number & 254, 200)


def outputs() -> list[tuple[int, int]]:
    """Return what the clamp shows for all inputs, up and down."""
    dut = Clamp()

    async def bench(ctx):
        found = []
        for number in (*range(256), *reversed(range(256))):
            ctx.set(dut.i, number)
            *_, before = await ctx.tick().sample(dut.o)
            found.append((ctx.get(dut.o), ctx.get(dut.large)))
        return found

    return simulate(dut, bench)


def test_all():
    numbers = [expected(number) for number in (*range(256), *reversed(range(256)))]
    assert outputs() == [(number, number == 200) for number in numbers]
