import random
from functools import partial, reduce
from itertools import product
from operator import xor

import pytest
from amaranth import Cat

from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import RECORD_BYTES, queue_count
from tests.hdl.memory.axi_memory import serve_reads
from tests.hdl.simulation import WARM_UP, next_turn, offer, simulate

SEED = 7


class Everywhere(bytes):
    """Memory at every address: each page repeats the same bytes, with bits inverted by the page's number."""

    def __getitem__(self, place: slice) -> bytes:
        page, start = divmod(place.start, len(self))
        turned = reduce(xor, page.to_bytes(5, "little"))
        return bytes(byte ^ turned for byte in super().__getitem__(slice(start, start + place.stop - place.start)))


MEMORY = Everywhere(random.Random(1).randbytes(1 << 14))


def fetch(
    size: int, wanted: list[list[int]], *, pause: float = 0, warm_up: int = 0, **memory
) -> list[tuple[int, int, bytes, bool]]:
    config = Config(rows=4, columns=4, dma_engines=2, hbm_bytes=size)
    dut = Fetcher(config)
    assert len(wanted) == queue_count(config)

    async def collect(ctx):
        count = sum(map(len, wanted))
        valids = Cat(port.valid for port in dut.records)
        requests = [Cat(getattr(port, name) for port in dut.requests) for name in ("valid", "ready")]
        bus = [dut.axi.ar.valid, dut.axi.ar.ready, dut.axi.r.valid, dut.axi.r.payload.last]
        cycle, delivered, parts, last = 0, [], [], len(wanted) - 1
        in_flight = address_waits = received = 0
        while len(delivered) < count:
            assert cycle < 200 * count + 200
            *_, beat, valid, requesting, ready, address, accepted, arrives, last_beat = await ctx.tick().sample(
                dut.records[0].payload, valids, *requests, *bus
            )
            assert (address, bool(valid)) == (address_waits, received)
            taken = requesting and in_flight < dut.OUTSTANDING and (accepted or not address)
            assert bool(ready) == bool(taken)
            if taken:
                last = next_turn(last, requesting, len(wanted))
                assert ready == 1 << last
            address_waits, received = bool(taken) or (address and not accepted), arrives
            in_flight += bool(taken) - (arrives and last_beat)
            if valid:
                assert valid & valid - 1 == 0
                assert beat.place == len(parts)
                parts.append((valid, beat.data.to_bytes(size, "little")))
                assert bool(beat.last) == (len(parts) == RECORD_BYTES // size)
                if beat.last:
                    assert {queue for queue, _ in parts} == {valid}
                    record = b"".join(part for _, part in parts)
                    delivered.append((cycle, valid.bit_length() - 1, record, bool(beat.error)))
                    parts = []
            cycle += 1
        for _ in range(50):
            assert not (await ctx.tick().sample(valids))[-1]
        return delivered

    queues = [
        partial(offer, stream=stream, payloads=payloads, stall=pause, pace=random.Random(f"{SEED} {number}"))
        for number, (stream, payloads) in enumerate(zip(dut.requests, wanted, strict=True))
    ]
    reads = partial(serve_reads, axi=dut.axi, memory=MEMORY, **memory)
    return simulate(dut, collect, background=[*queues, reads], warm_up=warm_up)


def addresses(count: int) -> list[list[int]]:
    rng = random.Random(SEED)
    return [[rng.randrange(0, 1 << 40, RECORD_BYTES) for _ in range(count)] for _ in range(5)]


def stalls(share: float) -> dict[str, float]:
    return {"pause": share, "stall": share, "latency": 8}


@pytest.mark.parametrize(
    ("size", "options", "wrong_beat", "response"),
    [
        *((size, stalls(share), -1, 2) for size in (8, 16, 32, 64) for share in (0, 0.4)),
        *((size, {"pause": 0.98}, -1, 2) for size in (16, 64)),
        (16, stalls(0.4) | {"warm_up": WARM_UP}, -1, 2),
        *((64, stalls(0.4) | {"warm_up": WARM_UP + more}, -1, 2) for more in range(24)),
        *((16, {}, beat, 1 + beat % 3) for beat in range(8)),
        *((64, {}, *case) for case in product((0, 1), (1, 2, 3))),
    ],
)
def test_every_queue_gets_its_records_in_order_and_an_error_affects_only_its_record(
    size, options, wrong_beat, response
):
    wanted = addresses(6)
    wrong = wanted[1][2]
    delivered = fetch(size, wanted, errors={wrong + size * wrong_beat % RECORD_BYTES: response}, **options)
    for queue, asked in enumerate(wanted):
        got = [None if error else record for _, number, record, error in delivered if number == queue]
        assert got == [None if a == wrong else MEMORY[a : a + RECORD_BYTES] for a in asked]


@pytest.mark.parametrize("size", [16, 64])
def test_records_follow_back_to_back_at_a_latency_of_24_cycles(size):
    cycles = [cycle for cycle, *_ in fetch(size, addresses(8), latency=24)]
    assert cycles[-1] - cycles[0] == 39 * RECORD_BYTES // size
