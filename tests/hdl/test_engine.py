import pytest
from amaranth import Cat, ClockDomain, Module, Mux, Signal
from amaranth.hdl import Assert, Fragment
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from tests.hdl import engine, simulation

SEED = 2584


class Sundry(wiring.Component):
    """Logic in a chain and in parts, registers with and without reset, a memory with two granules, both read ports."""

    word: In(8)
    go: In(1)
    decoded: Out(8)
    at_once: Out(8)
    later: Out(8)
    sum: Out(10)
    ticks: Out(4)
    falls: Out(4)
    left: Out(4)

    def elaborate(self, platform):
        m = Module()
        m.domains.slow = slow = ClockDomain(async_reset=True)
        m.domains.fall = fall = ClockDomain(clk_edge="neg", reset_less=True)
        m.submodules.memory = memory = Memory(shape=8, depth=8, init=range(8))
        write, now = memory.write_port(granularity=4), memory.read_port(domain="comb")
        then = memory.read_port(transparent_for=(write,))
        chain = [self.word]
        for _ in range(4):
            chain.append(Signal(8))
            m.d.comb += chain[-1].eq(Mux(self.go, chain[-2] + 3, chain[-2] ^ 0x55))
        kept = Signal(3, reset_less=True)
        m.d.comb += [
            write.addr.eq(kept),
            write.data.eq(chain[-1]),
            write.en.eq(Cat(self.go, self.go & self.word[6])),
            now.addr.eq(self.word),
            then.addr.eq(self.word >> 3),
            then.en.eq(~self.go | self.word[7]),
            self.at_once.eq(now.data),
            self.later.eq(then.data),
        ]
        m.d.sync += [kept.eq(kept + self.word[0]), slow.clk.eq(slow.clk ^ self.word[1]), fall.clk.eq(slow.clk)]
        with m.If(self.word[2]):
            m.d.sync += self.sum.eq(self.sum + Cat(now.data[:4], then.data[:2]))
        m.d.comb += slow.rst.eq(self.word[5:] == 7)
        m.d.slow += self.ticks.eq(self.ticks + 1)
        m.d.fall += self.falls.eq(self.falls + 1)
        m.d.comb += self.left.eq(~self.falls)
        self._decode(m)
        return m

    def _decode(self, m: Module) -> None:
        """Add logic with signals that several statements drive, each a part of the bits."""
        low, high, sum_ = Signal(3), Signal(3), Signal(4)
        m.d.comb += self.decoded.eq(Cat(sum_, low ^ high))
        with m.If(self.word[5]):
            m.d.comb += [low.eq(~self.word), high[1:].eq(self.word[3:6])]
        with m.Switch(self.word[1:4]):
            with m.Case("1-0"):
                m.d.comb += Cat(high[0], low[2]).eq(3)
            with m.Default():
                m.d.comb += low[:2].eq(2)
        m.d.comb += sum_.eq(low + high)


def trace(rng, cycles: int = 400) -> list[tuple]:
    dut = Sundry()
    words, enables = rng.integers(0, 256, cycles).tolist(), rng.integers(0, 2, cycles).tolist()
    words[:77] = [*range(64), *range(63, -1, -5)]
    outputs = (dut.word, dut.decoded, dut.at_once, dut.later, dut.sum, dut.ticks, dut.falls, dut.left)
    changes = []

    async def watch_changes(ctx):
        async for (value,) in ctx.changed(dut.at_once):
            changes.append(value)

    async def watch_ticks(ctx):
        async for _, is_reset, ticks in ctx.tick("slow").sample(dut.ticks):
            changes.append((is_reset, ticks))

    async def bench(ctx):
        found = []
        for word, go in zip(words, enables, strict=True):
            simulation.drive(ctx, dut, word=word - 512 * go, go=go)
            found.append(tuple(map(ctx.get, outputs)))
            *_, ticks = await ctx.tick().sample(dut.ticks)
            found.append((ticks, *map(ctx.get, outputs)))
        return found

    return simulation.simulate(dut, bench, background=[watch_changes, watch_ticks], warm_up=20) + changes


def test_every_cycle_is_as_in_amaranths_own(rng, monkeypatch):
    state = rng.bit_generator.state
    quick = trace(rng)
    rng.bit_generator.state = state
    monkeypatch.setattr(simulation, "Engine", "pysim")
    monkeypatch.setattr(simulation, "in_parts", lambda fragment: fragment)
    monkeypatch.setattr(engine._async, "TestbenchContext", engine._Context.__base__)
    monkeypatch.setattr(engine._async.TickTrigger, "_collect_trigger", engine._collect_trigger)
    own = trace(rng)
    assert quick == own and len(set(own)) > 400


def test_it_runs_once_and_writes_no_waveforms(tmp_path):
    simulator = Simulator(Module(), engine=engine.Engine)
    with pytest.raises(NotImplementedError, match="runs a simulation once"):
        simulator.reset()
    with pytest.raises(NotImplementedError, match="writes no waveforms"), simulator.write_vcd(tmp_path / "wave.vcd"):
        pass


def test_statements_that_drive_the_same_and_assertions_stay_together_in_order():
    a, b, c, d, e = (Signal(4, name=name) for name in "abcde")
    m, inner = Module(), Module()
    m.submodules.inner = inner
    inner.d.comb += [Assert(d[0]), a.eq(1), b.eq(2), d.eq(e)]
    with inner.If(e[0]):
        inner.d.comb += c.eq(a)
    inner.d.comb += [Cat(b[0], c[3]).eq(e), a.eq(3), Assert(d == 0)]
    whole = [repr(statement) for statement in Fragment.get(inner, None).statements["comb"]]
    [(below, *_)] = engine.in_parts(Fragment.get(m, None)).subfragments
    assert "comb" not in below.statements
    parts = [[repr(statement) for statement in part.statements["comb"]] for part, *_ in below.subfragments]
    assert sorted(parts) == sorted([[whole[n] for n in part] for part in ((0, 7), (1, 6), (2, 4, 5), (3,))])
