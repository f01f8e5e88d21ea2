from collections import deque

import numpy as np
import pytest
from amaranth import Value

from neuroncore_rtl.golden.arith import add_fp32
from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.memory.psum import Psum, PsumWrite
from neuroncore_rtl.spec.config import PSUM_BANKS
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus import operands
from tests.hdl.simulation import drive, packed, simulated, slow

SEED = 1978
COLUMNS, BANK = 3, 16
LIMIT = 1 << 24
"""Bound of the absolute values of integer sums."""


def words_of(packed: int) -> list[int]:
    return [packed >> 32 * column & 0xFFFFFFFF for column in range(COLUMNS)]


class Model:
    def __init__(self, psum: Psum, bank: int):
        self.words = np.zeros((COLUMNS, PSUM_BANKS * bank), np.uint32)
        bits = (PSUM_BANKS * bank - 1).bit_length()
        ones = [1 << bit for bit in range(bits)]
        self.addresses = [0, *ones, *((1 << bits) - 1 ^ one for one in ones)]
        """Addresses in use: 0, the powers of two, and addresses with all bits set except one."""
        self.pipeline = deque([None] * (psum.spacing - 1))

    def busy(self) -> set[int]:
        """Return the addresses with an access in flight, which must not be used again yet."""
        return {update["address"] for update in self.pipeline if update}

    def add(self, update: dict, sums: np.ndarray) -> None:
        old, sums = update["old"] if update["accumulate"] else None, sums.view(np.float32)
        if update["integer"]:
            update["new"] = sums.astype(np.int64).astype(np.uint32) + (0 if old is None else old)
        else:
            update["new"] = add_fp32(np.float32(-0.0) if old is None else old.view(np.float32), sums).view(np.uint32)


def random_address(rng, model: Model, ended: int | None = None) -> int:
    return int(rng.choice(model.addresses)) if ended is None or rng.random() < 0.8 else ended


def random_update(rng, model: Model, ended: int | None) -> dict | None:
    address = random_address(rng, model, ended)
    if rng.random() < 0.3 or address in model.busy():
        return None
    first = int(rng.choice([0, 0, 1, 2, 1023, 1 << rng.integers(10)]))
    end = int(rng.choice([1, 2, 3, 3, 3, 1 << rng.integers(11)]))
    update = {"address": address, "accumulate": int(rng.random() < 0.7), "integer": int(rng.random() < 0.4)}
    return update | {"partitions": {"first": first, "end": end}, "old": model.words[:, address].copy()}


def random_sums(rng, update: dict | None) -> np.ndarray:
    if update and update["integer"]:
        values = rng.integers(1 - LIMIT, LIMIT, COLUMNS) >> rng.integers(0, 25, COLUMNS)
        return values.astype(np.float32).view(np.uint32)
    sums = operands.random_fp32(rng, COLUMNS)
    if not update:
        return sums
    apart = update["old"] ^ np.left_shift(np.uint32(1), rng.integers(0, 32, COLUMNS, np.uint32))
    related = np.where(rng.random(COLUMNS) < 0.1, apart, operands.partners(rng, FP32, update["old"]))
    return np.where(rng.random(COLUMNS) < 0.5, related, sums)


CASES = [(1, 8, BANK, 1_000), (1, 8, 512, 300), *((n, 8, BANK, 300) for n in Fp32Adder.CUTS if n > 1)]
CASES += slow((1, 4, BANK, 1_000), (1, 2, BANK, 1_000))


@pytest.mark.parametrize(("add_latency", "banks", "words", "cycles"), CASES)
@simulated(lambda add_latency, banks, words: Psum(COLUMNS, words, add_latency, banks))
async def test_every_access_is_that_of_the_model_and_stalls_only_in_the_bank_of_a_sum(
    ctx, psum, rng, add_latency, banks, words, cycles
):
    model, bank = Model(psum, words), lambda address: address // words % banks
    ports, ended = (psum.reads, psum.shared_reads), None
    awaited, last, seen = [None, None], None, dict.fromkeys(("sums", "least spacing", "reads", "writes", "waits"), 0)
    for _ in range(cycles):
        update = random_update(rng, model, ended)
        seen["least spacing"] += update is not None and update["address"] == ended
        given = update or {"address": random_address(rng, model), "accumulate": 1, "partitions": {"first": 0, "end": 3}}
        ctx.set(psum.valid, update is not None)
        write = {name: value for name, value in given.items() if name != "old"}
        ctx.set(Value.cast(psum.write), PsumWrite.const(write).as_bits())
        sums = random_sums(rng, last)
        ctx.set(psum.sums, packed(sums))
        if last:
            model.add(last, sums)
        for port, words_read in zip(ports, awaited, strict=True):
            assert words_read is None or words_of(ctx.get(port.data)) == words_read
        awaited = [None, None]

        # Reads; the two ports never access the same bank.
        addresses = [random_address(rng, model, ended) for _ in ports]
        wants = (rng.random(2) < 0.6).tolist()
        wants[1] &= not (wants[0] and bank(addresses[0]) == bank(addresses[1]))
        for place, port in enumerate(ports):
            drive(ctx, port, valid=wants[place], address=4 * addresses[place])
            waits = bool(update and update["accumulate"]) and bank(update["address"]) == bank(addresses[place])
            assert ctx.get(port.ready) == (not waits)
            if wants[place] and not waits:
                awaited[place] = model.words[:, addresses[place]].tolist()
            seen["waits" if waits else "reads"] += wants[place]

        address, wanted, mask = random_address(rng, model), int(rng.random() < 0.4), int(rng.integers(16))
        enable, data = int(rng.integers(1 << COLUMNS)), rng.integers(0, 1 << 32, COLUMNS, np.uint32)
        drive(ctx, psum.writes, valid=wanted, address=4 * address, enable=enable, mask=mask, data=packed(data))
        ending = model.pipeline.pop()
        waits = ending is not None and bank(ending["address"]) == bank(address)
        assert ctx.get(psum.writes.ready) == (not waits)
        if wanted and not waits:
            octets = sum(0xFF << 8 * octet for octet in range(4) if mask >> octet & 1)
            chosen = np.array([octets * (enable >> column & 1) for column in range(COLUMNS)], np.uint32)
            model.words[:, address] = model.words[:, address] & ~chosen | data & chosen
            seen["writes"] += 1
        if ending:
            columns = slice(ending["partitions"]["first"], ending["partitions"]["end"])
            model.words[columns, ending["address"]] = ending["new"][columns]
            seen["sums"] += 1
        ended = ending and ending["address"]
        model.pipeline.appendleft(update)
        last = update
        await ctx.tick()
    assert min(seen.values()) > cycles / 20, seen


@pytest.mark.parametrize("add_latency", Fp32Adder.CUTS)
@simulated(lambda add_latency: Psum(1, BANK, add_latency))
async def test_with_less_spacing_an_update_is_lost(ctx, psum, add_latency):
    """1 is written and then added twice: the second time one cycle too early, or in time."""
    spacing = psum.spacing - 1
    ctx.set(psum.sums, int(np.float32(1).view(np.uint32)))
    for cycle in range(4 * spacing + psum.spacing):
        write = {"address": 7, "accumulate": cycle > 0, "partitions": {"first": 0, "end": 1}}
        ctx.set(Value.cast(psum.write), PsumWrite.const(write).as_bits())
        ctx.set(psum.valid, cycle in (0, spacing, 4 * spacing))
        await ctx.tick()
    drive(ctx, psum.reads, valid=1, address=4 * 7)
    await ctx.tick()
    assert ctx.get(psum.reads.data) == np.float32(2).view(np.uint32)
