"""The receive path: copies and reductions in every format, in random order, with stalls; its rate; faults are seen."""

import numpy as np
import pytest
from amaranth import Cat

from neuroncore_rtl.golden.arith import round_fp32, round_stochastic
from neuroncore_rtl.golden.vector import alu
from neuroncore_rtl.hdl.collective import receiver
from neuroncore_rtl.hdl.collective.ops import ReceiveOp, StoreOp
from neuroncore_rtl.hdl.collective.receiver import ReceivePath
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.spec.isa.collective import CollectiveType, ReduceOp
from neuroncore_rtl.tb.stimulus.alu_cases import alu_cases
from tests.hdl.collective.streams import SIZES, beats_of_bytes, bytes_of_beats, play
from tests.hdl.simulation import simulate

SEED = 20260611
DRAW = {"seed": 0x1234_5678, "stream": 0x9ABC_DEF0}
OPERATION = {ReduceOp.SUM: AluOp.ADD, ReduceOp.MAX: AluOp.MAX, ReduceOp.MIN: AluOp.MIN}


class Traffic:
    """Operations with what comes in for them and what must come out.

    Arguments:
        link_bytes: of a beat.
        seed: of everything.
    """

    def __init__(self, link_bytes: int, seed: int = SEED):
        self.link_bytes = link_bytes
        self.rng = np.random.default_rng(seed)
        self.ops, self.net, self.load, self.store_ops = [], [], [], []
        self.results = {"store": [], "forward": []}
        """Bytes of each operation, in order."""

    def add(self, elements: int, dtype: CollectiveType, **fields) -> None:
        """Add an operation; `fields` are those of a `ReceiveOp`."""
        rng, bf16 = self.rng, dtype == CollectiveType.BF16
        fields = {"store": 1, **fields}
        first, address = int(rng.integers(1 << 32)), 64 * int(rng.integers(1 << 34))
        op = fields | {
            "dtype": dtype, "elements": elements, "first_element": first, "store_address": address,
        }  # fmt: skip
        self.ops.append(ReceiveOp.const(op).as_bits())
        if fields["store"]:
            stored = {"dtype": dtype, "elements": elements, "address": address}
            self.store_ops.append(StoreOp.const(stored).as_bits())
        a, b = (words[:elements].astype(np.uint32) for words in alu_cases(rng, max(elements, 2)))
        net, load = fields.get("net"), fields.get("load")
        if not (net and load):
            content = a.astype(f"<u{SIZES[dtype]}").tobytes()
            (self.net if net else self.load).extend(beats_of_bytes(content, self.link_bytes, rng))
        else:
            if bf16:
                a = a if fields.get("wide_in") else a & np.uint32(0xFFFF0000)
                b &= np.uint32(0xFFFF0000)
            raw = a.astype("<u4") if not bf16 or fields.get("wide_in") else (a >> 16).astype("<u2")
            self.net += beats_of_bytes(raw.tobytes(), self.link_bytes, rng)
            self.load += beats_of_bytes(b.astype("<u4").tobytes(), self.link_bytes, rng)
            content = self._reduced(a, b, first, dtype, fields).tobytes()
        for sink, results in self.results.items():
            if fields.get(sink):
                results.append(content)

    def _reduced(self, a, b, first: int, dtype: CollectiveType, fields) -> np.ndarray:
        words = alu(OPERATION[fields.get("op", ReduceOp.SUM)], a, b, dtype == CollectiveType.INT32)
        if dtype != CollectiveType.BF16 or fields.get("wide_out"):
            return words.astype("<u4")
        if fields.get("final") and fields.get("stochastic"):
            index = (first + np.arange(len(words))) & 0xFFFFFFFF
            return round_stochastic(words, BF16, DRAW["seed"], DRAW["stream"], index).astype("<u2")
        return round_fp32(words, BF16).astype("<u2")

    def add_random(self, elements: int) -> None:
        """Add an operation of any kind."""
        rng = self.rng
        dtype = CollectiveType(int(rng.integers(3)))
        fields = {"op": ReduceOp(int(rng.integers(3)))}
        fields |= dict(zip(("store", "forward"), ((1, 0), (0, 1), (1, 1))[rng.integers(3)], strict=True))
        kind = rng.integers(4)
        fields |= {"net": int(kind != 0), "load": int(kind != 1)}
        if kind >= 2:
            fields |= {"final": int(rng.integers(2)), "stochastic": int(rng.integers(2))}
            if dtype == CollectiveType.BF16:
                fields["wide_in"] = int(rng.integers(2))
                fields["wide_out"] = int(fields["wide_in"] and not fields["store"] and rng.integers(2))
        self.add(elements, dtype, **fields)

    def beats(self, sink: str) -> int:
        """Return how many beats go to a sink."""
        return sum(-(-len(content) // self.link_bytes) for content in self.results[sink])

    def play(self, **options):
        """Play it on a receive path; return what passed."""
        inputs = {"ops": self.ops, "net": self.net, "load": self.load}
        outputs = {"store_ops": len(self.store_ops), "store": self.beats("store"), "forward": self.beats("forward")}
        return play(
            ReceivePath(self.link_bytes), inputs, outputs, constants=DRAW, finished="idle", seed=SEED, **options
        )

    def wrong(self, played) -> list[str]:
        """Return what is not as it should be."""
        found = [] if played.payloads["store_ops"] == self.store_ops else ["store_ops"]
        for sink, results in self.results.items():
            beats, place = played.payloads[sink], 0
            for number, content in enumerate(results):
                count = -(-len(content) // self.link_bytes)
                if bytes_of_beats(beats[place : place + count], self.link_bytes)[: len(content)] != content:
                    found.append(f"{sink} {number}")
                place += count
        return found


def elements_of_every_residue(link_bytes: int, rng) -> list[int]:
    """Return numbers of elements that end a beat at every place, short and longer, in random order."""
    most = link_bytes // 2
    return [int(n) for n in rng.permutation([most * rounds + n for rounds in (0, 1, 2, 3) for n in range(1, most + 1)])]


@pytest.mark.parametrize(("link_bytes", "stall"), [(8, 0), (8, 0.4), (16, 0.4), (64, 0.3)])
def test_random_operations(link_bytes, stall):
    traffic = Traffic(link_bytes, SEED + link_bytes)
    sizes = elements_of_every_residue(link_bytes, traffic.rng)
    for elements in sizes * max(1, 128 // len(sizes)):
        traffic.add_random(elements)
    played = traffic.play(stall=stall)
    assert traffic.wrong(played) == []
    print(f"{len(traffic.ops)} operations, {sum(map(len, traffic.results['store']))} bytes stored")


@pytest.mark.parametrize("held", ["store", "forward"])
def test_results_that_nobody_takes_are_kept(held):
    traffic = Traffic(16)
    for dtype, fields, _ in RATES.values():
        traffic.add(100, dtype, **fields | {"store": int(not fields.get("wide_out"))})
    assert traffic.wrong(traffic.play(hold={held: 200})) == []


RATES = {
    "fp32": (CollectiveType.FP32, {"net": 1, "load": 1, "forward": 1}, 4),
    "int32 max": (CollectiveType.INT32, {"net": 1, "load": 1, "op": ReduceOp.MAX}, 4),
    "wide, partial": (
        CollectiveType.BF16,
        {"net": 1, "load": 1, "wide_in": 1, "wide_out": 1, "store": 0, "forward": 1},
        4,
    ),
    "wide, final": (
        CollectiveType.BF16,
        {"net": 1, "load": 1, "wide_in": 1, "final": 1, "stochastic": 1, "forward": 1},
        4,
    ),
    "narrow": (CollectiveType.BF16, {"net": 1, "load": 1, "store": 0, "forward": 1}, 4),
    "copy": (CollectiveType.BF16, {"net": 1, "forward": 1}, 2),
}
"""Format, fields, bytes of an element where a step takes it."""


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("steps", [1, 4])
def test_a_step_a_cycle_across_operations(name, steps):
    """No cycle is lost, with results for both sinks."""
    dtype, fields, size = RATES[name]
    link_bytes, count = 16, 30
    traffic = Traffic(link_bytes)
    for _ in range(count):
        traffic.add(steps * link_bytes // size, dtype, **fields)
    played = traffic.play()
    assert traffic.wrong(played) == []
    source = "load" if fields.get("load") else "net"
    cycles = played.cycles[source]
    assert cycles == list(range(cycles[0], cycles[0] + steps * count))
    sink = "forward" if fields.get("forward") else "store"
    assert played.cycles[sink][-1] == cycles[-1] + ReceivePath.LATENCY


def test_kinds_alternate_without_a_gap():
    """The ends of a step, of a reduction and of copies, come one after the other."""
    traffic = Traffic(16)
    for number in range(36):
        dtype, fields, size = list(RATES.values())[number % len(RATES)]
        traffic.add(4 * 16 // size, dtype, **fields)
    played = traffic.play()
    assert traffic.wrong(played) == []
    taken = sorted({*played.cycles["net"], *played.cycles["load"]})
    assert taken == list(range(taken[0], taken[0] + 4 * 36))


def test_a_wrong_half_is_noticed(monkeypatch):
    monkeypatch.setattr(receiver, "_widened", lambda half: Cat(half, half))
    traffic = Traffic(8)
    for dtype, fields, _ in RATES.values():
        traffic.add(11, dtype, **fields)
    forwarded = [name for name, (_, fields, _) in RATES.items() if fields.get("forward")]
    assert traffic.wrong(traffic.play()) == [f"forward {forwarded.index('narrow')}"]


def test_too_little_room_is_noticed(monkeypatch):
    monkeypatch.setattr(ReceivePath, "RESULTS", ReceivePath.LATENCY)
    with pytest.raises(AssertionError):
        test_a_step_a_cycle_across_operations("fp32", 4)


def test_waits_say_what_is_missing():
    traffic = Traffic(8)
    traffic.add(2, CollectiveType.FP32, net=1, load=1)
    dut = ReceivePath(8)
    found = []

    async def watch(ctx):
        names = ("wait_net", "wait_load", "wait_room", "idle")
        await ctx.tick().repeat(3)
        found.append([ctx.get(getattr(dut, name)) for name in names])
        ctx.set(dut.ops.payload, ReceiveOp.from_bits(traffic.ops[0]))
        ctx.set(dut.ops.valid, 1)
        ctx.set(dut.store_ops.ready, 1)
        await ctx.tick()
        ctx.set(dut.ops.valid, 0)
        found.append([ctx.get(getattr(dut, name)) for name in names])
        ctx.set(dut.net.valid, 1)
        await ctx.delay(1e-8)
        found.append([ctx.get(getattr(dut, name)) for name in names])
        ctx.set(dut.load.valid, 1)
        await ctx.tick().repeat(20)
        found.append([ctx.get(getattr(dut, name)) for name in names])

    simulate(dut, watch)
    assert found == [[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
