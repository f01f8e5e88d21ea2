from itertools import islice, product

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import round_fp32, round_stochastic
from neuroncore_rtl.golden.vector import alu
from neuroncore_rtl.hdl.collective import ops
from neuroncore_rtl.hdl.collective.receiver import ReceivePath
from neuroncore_rtl.spec import formats
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.spec.isa.collective import CollectiveType, ReduceOp, element_bytes
from neuroncore_rtl.tb.stimulus.alu_cases import alu_cases
from tests.hdl.collective.words import beats_of_bytes
from tests.hdl.simulation import WARM_UP, drive, expect, put, simulated, slow
from tests.hdl.streams import play

FP32, BF16, INT32 = CollectiveType
SEED = 20260611
DRAWS = [{"seed": 0x1234_5678, "stream": 0x9ABC_DEF0}, {"seed": 0xEDCB_A987, "stream": 0x6543_210F}]
"""Keys of stochastic rounding; each bit is set in exactly one of the two keys."""

OPERATION = {ReduceOp.SUM: AluOp.ADD, ReduceOp.MAX: AluOp.MAX, ReduceOp.MIN: AluOp.MIN}


class Traffic:
    """Operations with their inputs and expected outputs."""

    def __init__(self, link_bytes: int, seed: int = SEED, draw: dict[str, int] = DRAWS[0]):
        self.link_bytes, self.draw = link_bytes, draw
        self.rng = np.random.default_rng(seed)
        self.ops, self.net, self.load, self.store_ops = [], [], [], []
        self.results = {"store": [], "forward": []}
        """Bytes that each operation stores or forwards, in order, and whether it rounds elements to half their size, so
        that two result beats fit one output beat."""

    def add(self, elements: int, dtype: CollectiveType, ties: bool = False, **fields) -> None:
        """Add an operation; with `ties`, its FP32 sums are halfway between BF16 numbers, or one bit from halfway."""
        rng, bf16 = self.rng, dtype == BF16
        first, address = int(rng.integers(1 << 32)), 64 * int(rng.integers(1 << 34))
        common = {"dtype": dtype, "elements": elements}
        op = {"net": 0, "load": 0, "store": 1, "wide_in": 0} | fields | common
        self.ops.append(ops.ReceiveOp.const(op | {"first_element": first, "store_address": address}).as_bits())
        if op["store"]:
            self.store_ops.append(ops.StoreOp.const(common | {"address": address}).as_bits())
        a, b = (words[:elements].astype("<u4") for words in alu_cases(rng, max(elements, 2)))
        if ties:
            low = 0x8000 ^ (1 << rng.integers(18, size=elements)) & 0xFFFF
            a, b = (a & 0xFFFF0000 | low).astype("<u4"), b & 0
        if op["net"] and op["load"]:
            wide, upper = op["wide_in"] or not bf16, np.uint32(0xFFFF0000 if bf16 else 0xFFFFFFFF)
            a, b = a if wide else a & upper, b & upper
            raw = a if wide else (a >> 16).astype("<u2")
            self.net += beats_of_bytes(raw.tobytes(), self.link_bytes, rng)
            self.load += beats_of_bytes(b.tobytes(), self.link_bytes, rng)
            content = self._reduced(a, b, first, dtype, op).tobytes()
        else:
            content = a.astype(f"<u{element_bytes(dtype)}").tobytes()
            (self.net if op["net"] else self.load).extend(beats_of_bytes(content, self.link_bytes, rng))
        rounds = op["net"] and op["load"] and dtype == BF16 and not op.get("wide_out")
        for sink, results in self.results.items():
            results += [(content, rounds)] * op.get(sink, 0)

    def _reduced(self, a, b, first: int, dtype: CollectiveType, fields) -> np.ndarray:
        words = alu(OPERATION[fields.get("op", ReduceOp.SUM)], a, b, dtype == INT32)
        if dtype != BF16 or fields.get("wide_out"):
            return words.astype("<u4")
        if fields.get("final") and fields.get("stochastic"):
            index = (first + np.arange(len(words))) & 0xFFFFFFFF
            return round_stochastic(words, formats.BF16, self.draw["seed"], self.draw["stream"], index).astype("<u2")
        return round_fp32(words, formats.BF16).astype("<u2")

    def add_random(self, elements: int) -> None:
        rng = self.rng
        dtype = CollectiveType(int(rng.integers(3)))
        fields = {"op": ReduceOp(int(rng.integers(3)))}
        fields |= dict(zip(("store", "forward"), ((1, 0), (0, 1), (1, 1))[rng.integers(3)], strict=True))
        kind = rng.integers(4)
        fields |= {"net": int(kind != 0), "load": int(kind != 1)}
        if kind >= 2:
            fields |= {"final": int(rng.integers(2)), "stochastic": int(rng.integers(2))}
            if dtype == BF16:
                fields["wide_in"] = int(rng.integers(2))
                fields["wide_out"] = int(fields["wide_in"] and not fields["store"] and rng.integers(2))
        self.add(elements, dtype, **fields)

    def check(self, **options):
        """Play the operations; return the record."""
        inputs = {"ops": self.ops, "net": self.net, "load": self.load}
        outputs = {"store_ops": len(self.store_ops)}
        for sink, results in self.results.items():
            outputs[sink] = sum(-(-len(content) // self.link_bytes) for content, _ in results)
        dut = ReceivePath(self.link_bytes)
        played = play(dut, inputs, outputs, constants=self.draw, finished="idle", seed=SEED, **options)
        assert played.payloads["store_ops"] == self.store_ops
        for sink, results in self.results.items():
            beats, half = iter(played.payloads[sink]), self.link_bytes // 2
            for number, (content, rounds) in enumerate(results):
                count = -(-len(content) // self.link_bytes)
                result = b"".join(beat.to_bytes(self.link_bytes, "little") for beat in islice(beats, count))
                beyond = -(-len(content) // half) * half  # start of the unused half of the last beat, if any
                assert result[: len(content)] == content, f"{sink} {number}"
                assert not rounds or not any(result[beyond:]), f"{sink} {number}"
        return played


@pytest.mark.parametrize(("link_bytes", "stall"), [(8, 0.4), (64, 0.3), *slow((8, 0), (16, 0.4))])
def test_random_operations(link_bytes, stall):
    traffic, longest = Traffic(link_bytes, SEED + link_bytes), link_bytes // 2
    numbers = np.arange(1, 4 * longest + 1, 1 + (link_bytes == 64))
    for elements in [int(n) for n in traffic.rng.permutation(numbers)] * max(1, 32 // longest):
        traffic.add_random(elements)
    traffic.check(stall=stall, warm_up=WARM_UP if link_bytes == 8 else 0)


@pytest.mark.parametrize("link_bytes", [8, *slow(16)])
@pytest.mark.parametrize("held", ["store", "forward"])
def test_blocked_results_are_kept(held, link_bytes):
    traffic = Traffic(link_bytes)
    for dtype, fields, _ in RATES.values():
        traffic.add(100, dtype, **fields | {"store": int(not fields.get("wide_out"))})
    traffic.check(hold={held: lambda cycle: cycle < 200})


def test_operations_without_a_store_do_not_wait_for_store_operations():
    traffic = Traffic(8)
    for _ in range(3):
        traffic.add(10, FP32, net=1, store=0, forward=1)
    traffic.check(hold={"store_ops": lambda cycle: True})


REDUCES = {"net": 1, "load": 1, "forward": 1}
RATES = {
    "fp32": (FP32, REDUCES, 4),
    "int32 max": (INT32, REDUCES | {"op": ReduceOp.MAX}, 4),
    "wide, partial": (BF16, REDUCES | {"wide_in": 1, "wide_out": 1, "store": 0}, 4),
    "wide, final": (BF16, REDUCES | {"wide_in": 1, "final": 1, "stochastic": 1}, 4),
    "narrow": (BF16, REDUCES | {"store": 0}, 4),
    "copy": (BF16, {"net": 1, "forward": 1}, 2),
}
"""Each row: format, fields of the operation, and bytes of an element in an input beat."""


@pytest.mark.parametrize("draw", DRAWS)
def test_every_bit_of_stochastic_rounding(draw):
    traffic, fields = Traffic(8, draw=draw), REDUCES | {"final": 1}
    for number in range(16):
        traffic.add(30 + number, BF16, **fields, wide_in=number % 2, stochastic=1)
        traffic.add(40, BF16, ties=True, **fields, wide_in=1)
    traffic.check()


@pytest.mark.parametrize("steps", [1, 4])
def test_a_step_per_cycle_across_operations_of_all_kinds(steps):
    traffic, count = Traffic(16), 6 * len(RATES) + 1
    for number in range(count):
        dtype, fields, size = list(RATES.values())[number % len(RATES)]
        traffic.add(steps * 16 // size, dtype, **fields)
    played = traffic.check()
    taken = sorted({*played.cycles["net"], *played.cycles["load"]})
    assert taken == list(range(taken[0], taken[0] + steps * count))
    assert played.cycles["forward"][-1] == taken[-1] + ReceivePath.LATENCY


async def begin(ctx, dut, elements, dtype):
    """Let the unit accept an operation, and offer beats and the next operation."""
    drive(ctx, dut, **{"store_ops.ready": 1, "store.ready": 1, "forward.ready": 1})
    await put(ctx, dut.ops, {"net": 1, "store": 1, "dtype": dtype, "elements": elements})
    drive(ctx, dut, **{"net.valid": 1, "ops.valid": 1})


@simulated(lambda: ReceivePath(8), each=product((1 << bit for bit in range(8, 30)), (FP32, BF16)))
async def test_long_operations_do_not_end(ctx, dut, case):
    size, dtype = case
    await begin(ctx, dut, size + 6, dtype)
    for _ in range(20):
        *_, steps, ends = await ctx.tick().sample(dut.net.ready, dut.ops.ready)
        assert steps and not ends
    drive(ctx, dut, **{"net.valid": 0, "ops.valid": 0})


@pytest.mark.slow
@simulated(lambda: ReceivePath(8), each=(FP32, BF16))
async def test_an_operation_of_some_thousand_steps_ends(ctx, dut, dtype):
    elements = 8191
    await begin(ctx, dut, elements, dtype)
    for steps, last in ((-(-elements * element_bytes(dtype) // 8) - 1, 0), (1, 1)):
        *_, ends = await ctx.tick().sample(dut.ops.ready).repeat(steps)
        assert ends == last
    drive(ctx, dut, **{"net.valid": 0, "ops.valid": 0})
    await ctx.tick().repeat(ReceivePath.LATENCY + 2)
    assert ctx.get(dut.wait_net)


@simulated(lambda: ReceivePath(8))
async def test_wait_outputs(ctx, dut):
    await ctx.tick().repeat(3)
    expect(ctx, dut, wait_net=0, wait_load=0, wait_room=0, idle=1)
    ctx.set(dut.store_ops.ready, 1)
    await put(ctx, dut.ops, {"net": 1, "load": 1, "store": 1, "dtype": FP32, "elements": 2})
    expect(ctx, dut, wait_net=1, wait_load=0, wait_room=0, idle=0)
    ctx.set(dut.net.valid, 1)
    await ctx.delay(1e-8)
    expect(ctx, dut, wait_net=0, wait_load=1, wait_room=0, idle=0)
    ctx.set(dut.load.valid, 1)
    await ctx.tick().repeat(20)
    expect(ctx, dut, wait_net=0, wait_load=0, wait_room=0, idle=0)
    await put(ctx, dut.ops, {"net": 1, "store": 1, "dtype": FP32, "elements": 4 * ReceivePath.RESULTS})
    await ctx.tick().repeat(ReceivePath.RESULTS + 2)
    expect(ctx, dut, wait_net=0, wait_load=0, wait_room=1, idle=0)
    ctx.set(dut.net.valid, 0)
    await ctx.delay(1e-8)
    expect(ctx, dut, wait_net=1, wait_load=0, wait_room=0, idle=0)
