import random
from collections import deque
from functools import partial

import pytest

from neuroncore_rtl.hdl.host.isolation import AxiIsolation
from tests.hdl.memory.axi_memory import serve_reads, serve_writes
from tests.hdl.simulation import drive, expect, simulate, simulated

SIZE = 8
SEED = 7
EPOCHS = 24
REQUESTS = ("ar", "aw", "w")


@pytest.mark.parametrize("stall", [0.0, 0.7])
def test_outstanding_bursts_end_without_the_manager(stall):
    dut, rng = AxiIsolation(SIZE, 2), random.Random(SEED)
    seen, beats = dict.fromkeys(("aw", "w", "b"), 0), []
    cut = {"reads": 0, "writes": 0}

    async def bench(ctx):
        number, passed = 0, []
        for _ in range(EPOCHS):
            owed, offered = deque(), {}
            ctx.set(dut.stop, 0)
            for _ in range(rng.randrange(1, 60)):
                for name in ("ar", "aw"):
                    if name not in offered and rng.random() < 0.3:
                        offered[name] = {"addr": 4096 * rng.randrange(8), "len": rng.choice((0, 1, 3, 15)), "id": 1}
                if "w" not in offered and owed and rng.random() < 0.7:
                    number += 1
                    left = owed.popleft()
                    offered["w"] = {"data": number, "strb": rng.randrange(1, 256), "last": left == 0}
                    owed.extendleft([left - 1] if left else [])
                for name in REQUESTS:
                    drive(ctx, getattr(dut.manager, name), valid=name in offered, payload=offered.get(name, {}))
                drive(ctx, dut.manager, **{f"{name}.ready": rng.random() < 0.7 for name in ("r", "b")})
                _, _, *readies = await ctx.tick().sample(*(getattr(dut.manager, name).ready for name in REQUESTS))
                for name, ready in zip(REQUESTS, readies, strict=True):
                    if ready and name in offered:
                        one = offered.pop(name)
                        if name == "w":
                            passed.append((one["data"], one["strb"]))
                        elif name == "aw":
                            owed.append(one["len"])
            ctx.set(dut.stop, 1)
            cut["writes"] += bool(owed)
            cut["reads"] += not ctx.get(dut.idle)
            for waited in range(4000):
                # The manager's behaviour is ignored.
                valids = {f"{name}.valid": waited == 0 and rng.random() < 0.5 for name in REQUESTS}
                drive(ctx, dut.manager, **valids, **{"r.ready": waited == 0, "b.ready": waited == 0})
                if waited and ctx.get(dut.idle):
                    break
                assert not ctx.get(dut.manager.r.valid) and not ctx.get(dut.manager.b.valid)
                await ctx.tick()
            else:
                raise AssertionError("outstanding bursts do not end")
            expect(ctx, dut.port, **{f"{name}.valid": 0 for name in REQUESTS})
            assert seen["aw"] == seen["w"] == seen["b"]
            assert beats == passed, "exactly the beats of the manager are written"

    async def watch(ctx):
        channels = [getattr(dut.port, name) for name in seen]
        while True:
            *_, offers, aw, w, b, beat = await ctx.tick().sample(
                dut.port.aw.valid, *(channel.valid & channel.ready for channel in channels), dut.port.w.payload
            )
            # A beat may be accepted before its address, which must be on offer.
            assert not w or seen["w"] < seen["aw"] + offers
            beats.extend([(beat.data, beat.strb)] * (w and beat.strb > 0))
            for name, event in zip(seen, (aw, w and beat.last, b), strict=True):
                seen[name] += event

    axi = {"axi": dut.port, "stall": stall}
    reads = partial(serve_reads, memory=bytes(1 << 16), latency=3, seed=SEED, **axi)
    writes = partial(serve_writes, memory=bytearray(1 << 16), bursts=[], gaps=True, seed=SEED + 1, **axi)
    simulate(dut, bench, background=[reads, writes, watch])
    assert min(cut.values()) > EPOCHS // 4 and seen["aw"] > 15


@simulated(lambda: AxiIsolation(SIZE, 1))
async def test_a_beat_per_cycle(ctx, dut):
    seen, sent = [], 0
    drive(ctx, dut.port, **{"aw.ready": 1, "w.ready": 1})
    drive(ctx, dut.manager.aw, payload={"len": 15}, valid=1)
    for _ in range(40):
        drive(ctx, dut.manager.w, payload={"data": sent, "strb": 255, "last": sent % 16 == 15}, valid=1)
        *_, ready, valid, data = await ctx.tick().sample(dut.manager.w.ready, dut.port.w.valid, dut.port.w.payload.data)
        sent += ready
        seen += [data] * valid
    assert seen == [*range(38)]
