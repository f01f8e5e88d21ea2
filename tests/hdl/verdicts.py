"""What a checker says about instructions, one after the other, and how it says so."""

from collections.abc import Iterable, Mapping

from amaranth import ResetInserter, Signal, Value

from neuroncore_rtl.hdl.checker import Checker
from tests.hdl.simulation import simulate

__all__ = ["judge"]


def judge(dut: Checker, words: Iterable[int], inputs: Iterable[Mapping[str, int]] | None = None) -> list[tuple]:
    """Return of each word the cause of its refusal, 0 if it is legal, and its job, None if it is not.

    The checker is reset behind an illegal word; until then it takes no other, and its error says how many were legal.

    Arguments:
        dut: the checker, of a constant latency.
        words: the instructions.
        inputs: of each of them, what the checker's other inputs are meanwhile.
    """
    words = list(words)
    reset, verdicts = Signal(), []

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        legal = 0
        for word, others in zip(words, inputs or [{}] * len(words), strict=True):
            for name, value in others.items():
                ctx.set(getattr(dut, name), value)
            ctx.set(Value.cast(dut.i.payload), word)
            ctx.set(dut.i.valid, 1)
            assert ctx.get(dut.i.ready) and not ctx.get(dut.busy)
            await ctx.tick()
            ctx.set(dut.i.valid, 0)
            for _ in range(dut.LATENCY - 1):
                assert ctx.get(dut.busy) and not ctx.get(dut.o.valid) and not ctx.get(dut.error.valid)
                await ctx.tick()
            error = ctx.get(dut.error)
            assert ctx.get(dut.o.valid) != error.valid
            if error.valid:
                assert error.number == legal and not ctx.get(dut.i.ready)
            legal = 0 if error.valid else legal + 1
            verdicts.append((error.cause, None) if error.valid else (0, ctx.get(dut.o.payload)))
            ctx.set(reset, error.valid)
            await ctx.tick()
            ctx.set(reset, 0)

    simulate(ResetInserter(reset)(dut), bench)
    assert len(verdicts) == len(words)
    return verdicts
