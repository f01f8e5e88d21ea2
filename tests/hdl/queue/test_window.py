import pytest

from neuroncore_rtl.hdl.memory.port import LineRead
from neuroncore_rtl.hdl.queue.window import Window
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.memory_map import PSUM_PITCH_BITS, PSUM_WINDOW, SBUF_PITCH_BITS, SBUF_WINDOW
from tests.hdl.queue.bus import on_bus
from tests.hdl.simulation import drive, random_bits

SEED = 1989

CONFIGS = {
    "tiny": Config(rows=4, columns=4),
    "8 bytes, fewer columns": Config(rows=6, columns=3, hbm_bytes=8),
    "small memories": Config(
        rows=2, columns=2, hbm_bytes=8, sbuf_bytes=1536, line_bytes=16, sbuf_banks=2, psum_words=16
    ),
    "registered": Config(rows=4, columns=2, hbm_bytes=8, port_latency=1),
    "64 bytes, the largest": Config(rows=1024, columns=1024, hbm_bytes=64),
}


class Memories:
    """Model of the memories at the line ports of a window, as a dictionary of words; some writes are delayed."""

    def __init__(self, rng, ctx, dut, size):
        self.rng, self.ctx, self.dut, self.size = rng, ctx, dut, size
        self.words, self.late, self.delayed = {}, None, 0
        self.arriving = [None] * LineRead.LATENCY[dut.config.port_latency]

    def step(self):
        ctx, read, write = self.ctx, self.dut.read, self.dut.write
        for port in (read, write):
            ctx.set(port.ready, self.rng.random() < 0.5)
        noise = random_bits(self.rng, 8 * self.size)
        line = self.arriving.pop(0)
        ctx.set(read.data, noise if line is None else line)
        self.arriving.append(None)
        if ctx.get(read.valid & read.ready):
            n = ctx.get(read.word)
            word = self.words.get(self.place(read, n), 0)
            self.arriving[-1] = noise & ~(0xFFFF_FFFF << 32 * n) | word << 32 * n
        if ctx.get(write.valid & write.ready):
            (n,) = (n for n in range(self.size // 4) if ctx.get(write.mask) == 0xF << 4 * n)
            assert self.late is None, "a write is issued twice"
            self.late = self.place(write, n), ctx.get(write.data) >> 32 * n & 0xFFFF_FFFF
        if self.late and self.rng.random() < 0.5:
            place, word = self.late
            self.words[place], self.late = word, None
        self.delayed += self.late is not None
        ctx.set(self.dut.written, self.late is None)

    def place(self, port, word):
        address = self.ctx.get(port.address)
        assert address % self.size == 0
        return self.ctx.get(port.storage).value, self.ctx.get(port.partition), address + 4 * word


@pytest.mark.parametrize("shape", CONFIGS)
@on_bus(lambda shape: Window(CONFIGS[shape]))
async def test_words_are_read_and_written_and_other_accesses_refused(ctx, dut, manager, shape, rng):
    config = CONFIGS[shape]
    kinds = (
        (0, SBUF_WINDOW, SBUF_PITCH_BITS, config.partitions, config.sbuf_bytes),
        (1, PSUM_WINDOW, PSUM_PITCH_BITS, config.columns, config.psum_bytes),
    )
    model, refused, checked = {}, 0, 0
    memories = Memories(rng, ctx, dut, config.hbm_bytes)
    for _ in range(600):
        storage, window, pitch, partitions, size = kinds[int(rng.integers(2))]
        limit = (1 << 28 - pitch) - 1
        partition = int(rng.choice((0, 1, partitions - 1, min(partitions, limit), limit)))
        byte = int(rng.choice((0, 4, 60, 64, size - 4, min(size, (1 << pitch) - 4), (1 << pitch) - 4)))
        mask = int(rng.choice((0b1111, 0b0011, 0b1000), p=(0.9, 0.05, 0.05)))
        exists = partition < partitions and byte < size and mask == 0xF
        data = int(rng.integers(1 << 32)) if rng.random() < 0.5 else None
        answer = await manager.access(window + (partition << pitch) + byte, data, mask, each=memories.step)
        if not exists:
            assert answer == "error" and manager.cycles == 1 + config.port_latency
            refused += 1
        elif data is not None:
            assert answer is None
            model[storage, partition, byte] = data
        else:
            assert answer == model.get((storage, partition, byte), 0)
            checked += 1
        assert memories.words == model
    for elsewhere in (0, SBUF_WINDOW - 4, PSUM_WINDOW + (1 << 28), 0x4000_0000, 0x9000_0000):
        assert await manager.access(elsewhere, each=memories.step) == "error"
    assert refused > 50 and checked > 50 and memories.delayed > 50


@pytest.mark.parametrize("shape", ["tiny", "registered"])
@on_bus(lambda shape: Window(CONFIGS[shape]))
async def test_latency_of_writes_and_reads_without_stalls(ctx, dut, manager, shape):
    late = CONFIGS[shape].port_latency
    drive(ctx, dut, **{"read.ready": 1, "write.ready": 1})
    for _ in range(3):
        await manager.access(SBUF_WINDOW, 1)
        assert manager.cycles == 1 + 2 * late
        await manager.access(PSUM_WINDOW)
        assert manager.cycles == 1 + late + LineRead.LATENCY[late]
