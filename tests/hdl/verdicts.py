"""Checks of an instruction checker's verdicts, one by one and in a stream."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from amaranth import ResetInserter, Signal

from neuroncore_rtl.hdl.primitives.checker import Checker
from neuroncore_rtl.spec.isa import Rule
from tests.hdl.simulation import drive, simulate
from tests.hdl.streams import Played, play

__all__ = ["assert_verdicts", "pass_on"]


def assert_verdicts(
    dut: Checker,
    words: Sequence[int],
    violations: Iterable[tuple[Rule, str] | None],
    rules: Collection[Rule] | None = None,
    inputs: Iterable[Mapping[str, int]] | None = None,
    *,
    late: bool = False,
) -> list:
    """Compare the checker's verdicts on words with the specification's; return its jobs, None for illegal words.

    The checker accepts no word after an illegal one until it is reset. Its error reports how many legal words preceded
    the illegal one, one cycle later if `late`. The words may break only `rules`. `inputs` has the values of the
    checker's other inputs for each word.
    """
    reset = Signal()

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        legal, verdicts = 0, []
        for number, (word, others) in enumerate(zip(words, inputs or [{}] * len(words), strict=True)):
            drive(ctx, dut, **others)
            if number % 8 == 7:
                await ctx.tick()
            drive(ctx, dut.i, payload=word, valid=1)
            assert ctx.get(dut.i.ready) and not ctx.get(dut.busy)
            await ctx.tick()
            ctx.set(dut.i.valid, 0)
            for _ in range(dut.latency - 1):
                assert ctx.get(dut.busy) and not ctx.get(dut.o.valid) and not ctx.get(dut.error.valid)
                await ctx.tick()
            if late and not ctx.get(dut.o.valid):
                assert ctx.get(dut.busy) and not ctx.get(dut.error.valid)
                await ctx.tick()
            error = ctx.get(dut.error)
            assert ctx.get(dut.o.valid) != error.valid
            if error.valid:
                assert error.number == dut.NUMBERS * legal and not ctx.get(dut.i.ready)
            legal = 0 if error.valid else legal + 1
            verdicts.append((error.cause, None) if error.valid else (0, ctx.get(dut.o.payload)))
            ctx.set(reset, error.valid)
            await ctx.tick()
            ctx.set(reset, 0)
        return verdicts

    causes, jobs = zip(*simulate(ResetInserter(reset)(dut), bench), strict=True)
    wanted = [int(broken[0]) if broken else 0 for broken in violations]
    compared = zip(causes, wanted, words, strict=True)
    wrong = [f"{cause}, not {want}, of {word:#x}" for cause, want, word in compared if cause != want]
    assert not wrong, f"{len(wrong)} of {len(words)} verdicts are wrong, the first: {wrong[0]}"
    assert rules is None or set(wanted) == {0, *map(int, rules)}
    return list(jobs)


def pass_on(dut: Checker, words: Sequence[int], stall: float = 0.0) -> tuple[Played, list[int], tuple[int, int] | None]:
    """Stream words through a checker with a stalling output; return the record, cycles of valid output, and error.

    Valid output must count as busy, and the checker must end idle. The error is (cause, number), or None.
    """
    watch = [dut.busy, dut.o.valid, *(dut.error[name] for name in ("valid", "cause", "number"))]
    cycles = 30 * len(words) + 50
    played = play(dut, {"i": words}, {"o": 0}, stall={"i": 0.0, "o": stall}, watch=watch, cycles=cycles)
    assert all(busy or not valid for busy, valid, *_ in played.watched)
    valid_cycles = [cycle for cycle, (_, valid, *_) in enumerate(played.watched) if valid]
    busy, _, failed, *error = played.watched[-1]
    assert not busy
    return played, valid_cycles, tuple(error) if failed else None
