"""Random traffic on all ports of the on-chip memories, and a model of the expected results."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from neuroncore_rtl.hdl.memory import bank_arbiter, onchip
from neuroncore_rtl.hdl.memory.port import LineRead, OnChipStorage, ReadPort
from neuroncore_rtl.spec.config import Config
from tests.hdl.simulation import drive

__all__ = ["Traffic"]

LINES = 2
"""Number of lines of each bank that the traffic uses; few, so that accesses conflict."""


@dataclass
class Port:
    """A port of the memory with its traffic.

    `kind` is "read", "write", "line_read" or "line_write". `name` is the name of its counter in `Conflicts` for SBUF.
    `rank` is the fixed priority among requests of the same direction; ports in round robin have equal ranks. A lockstep
    read accesses one word at the same address in each of `partitions` partitions. An access has `size` bytes per
    partition.
    """

    kind: str
    name: str
    rank: int
    signals: object
    storages: tuple[OnChipStorage, ...]
    partitions: int
    size: int
    request: dict | None = None
    waited: int = 0
    due: dict[int, tuple] = field(default_factory=dict)

    @property
    def at_psum(self) -> bool:
        return self.request["storage"] == OnChipStorage.PSUM

    @property
    def is_line(self) -> bool:
        return self.kind.startswith("line")

    @property
    def is_patient(self) -> bool:
        """Whether the port is in the round robin of ports that get priority after LINE_PATIENCE cycles of waiting."""
        return self.is_line or self.name == "stationary"

    @property
    def writes(self) -> bool:
        return self.kind.endswith("write")


def ports_of(memory: onchip.OnChipMemory, config: Config) -> list[Port]:
    sbuf, psum, both = (OnChipStorage.SBUF,), (OnChipStorage.PSUM,), (OnChipStorage.SBUF, OnChipStorage.PSUM)
    ports = [
        Port("read", "moving", 0, memory.moving, sbuf, config.rows, 4),
        Port("read", "stationary", 9, memory.stationary, sbuf, config.rows, config.load_bytes),
        Port("read", "vector_read", 2, memory.vector_sbuf, sbuf, config.partitions, 4),
        Port("read", "scalar_read", 3, memory.scalar_sbuf, sbuf, config.partitions, 4),
        Port("read", "vector_read", 2, memory.vector_psum, psum, config.columns, 4),
        Port("read", "scalar_read", 3, memory.scalar_psum, psum, config.columns, 4),
        Port("write", "vector_write", 2, memory.vector_write, both, config.partitions, 4),
        Port("write", "scalar_write", 3, memory.scalar_write, both, config.partitions, 4),
    ]
    for number in range(config.hbm_ports):
        for kind, signals in (("line_read", memory.line_reads), ("line_write", memory.line_writes)):
            ports.append(Port(kind, kind, 9, signals[number], both, config.partitions, config.hbm_bytes))
    return ports


class Traffic:
    """Random requests on every port, and a model of the expected results."""

    def __init__(self, config: Config, seed: int):
        print(f"seed {seed}")
        self.rng, self.config = np.random.default_rng(seed), config
        self.early = bool(config.port_latency)
        self.memory = onchip.OnChipMemory(config)
        self.ports = ports_of(self.memory, config)
        self.contents = {
            OnChipStorage.SBUF: np.zeros((config.partitions, config.sbuf_bytes), np.uint8),
            OnChipStorage.PSUM: np.zeros((config.columns, config.psum_bytes), np.uint8),
        }
        self.psum = np.zeros_like(self.contents[OnChipStorage.PSUM])
        self.conflicts = dict.fromkeys(onchip.Conflicts.as_shape().members, 0)
        self.psum_due = {"psum": 0, "psum_shared": 0}
        self.compared = self.longest = self.urgent = self.beside = 0

    def request(self, port: Port, psum: float) -> dict:
        rng, config = self.rng, self.config
        storage = port.storages[-1 if rng.random() < psum else 0]
        on_psum = storage == OnChipStorage.PSUM
        size = 4 if on_psum and not port.is_line else port.size
        span = LINES * config.sbuf_banks * config.line_bytes // 2
        place = int(rng.integers(2 * span // size)) * size
        place = place if place < span else (config.psum_bytes if on_psum else config.sbuf_bytes) - 2 * span + place
        if rng.random() < 0.9:
            place -= place // config.line_bytes % config.sbuf_banks * config.line_bytes
        count = self.config.columns if on_psum else port.partitions
        wanted = {"storage": storage, "address": place, "size": size, "count": count}
        if port.is_line:
            wanted |= {"partition": int(rng.integers(count)), "word": int(rng.integers(size // 4))}
        if port.kind == "write":
            wanted |= {"enable": int(rng.integers(1 << count)), "mask": int(rng.integers(16))}
            wanted["bytes"] = rng.integers(0, 256, (count, 4), np.uint8)
        if port.kind == "line_write":
            mask = rng.random(size) < 0.8
            if on_psum:
                mask &= np.arange(size) // 4 == wanted["word"]
            wanted["mask"] = sum(1 << int(byte) for byte in np.flatnonzero(mask))
            wanted["bytes"] = rng.integers(0, 256, (1, size), np.uint8)
        if port.writes:
            wanted["data"] = int.from_bytes(wanted["bytes"].tobytes(), "little")
        return wanted

    def check_grants(self, taken: dict[int, bool], psum_ready: dict[str, bool]) -> None:
        """Check that exactly one of the conflicting requests is served, the right one."""
        meeting = defaultdict(list)
        self.check_psum_reads(taken, psum_ready)
        for port in self.ports:
            if port.request and (port.writes or not port.at_psum):
                address = port.request["address"]
                bank = None if port.at_psum else address // self.config.line_bytes % self.config.sbuf_banks
                meeting[port.writes, port.at_psum, bank].append(port)
        for (writes, at_psum, _), here in meeting.items():
            served = [p for p in here if taken[id(p)]]
            if at_psum and not psum_ready["psum_write"]:
                assert not served
            elif served or not self.early or not self.any_urgent(writes, at_psum):
                (one,) = served
                assert one in self.first_of(here)

    def any_urgent(self, writes: bool, at_psum: bool) -> bool:
        """Return whether a line of any bank is urgent, which stalls all engines with registered ports."""
        alike = (p for p in self.ports if p.request and p.writes == writes and p.at_psum == at_psum)
        return any(p.is_patient and p.waited >= bank_arbiter.LINE_PATIENCE for p in alike)

    def first_of(self, here: list[Port]) -> list[Port]:
        patient = [p for p in here if p.is_patient and p.waited >= bank_arbiter.LINE_PATIENCE]
        self.urgent += bool(patient) and any(not p.is_patient for p in here)
        return patient or [p for p in here if p.rank == min(q.rank for q in here)]

    def check_psum_reads(self, taken: dict[int, bool], psum_ready: dict[str, bool]) -> None:
        """Check that the vector engine and another unit read at the same time, except in the same bank."""
        reads = [p for p in self.ports if p.request and p.at_psum and not p.writes]
        vector = [p for p in reads if p.signals is self.memory.vector_psum]
        others = [p for p in reads if p.signals is not self.memory.vector_psum]
        first = self.first_of(others) if others else []
        banks = {self.psum_bank(p.request["address"]) for p in vector}
        meeting = [p for p in first if self.psum_bank(p.request["address"]) in banks]
        urgent = [p for p in meeting if p.is_patient and p.waited >= bank_arbiter.LINE_PATIENCE]
        served = [p for p in others if taken[id(p)]]
        self.beside += bool(served and vector and taken[id(vector[0])])
        if vector and not taken[id(vector[0])]:
            assert urgent or not psum_ready["psum"] or (self.early and self.any_urgent(False, True))
        if served:
            (one,) = served
            assert one in first and psum_ready["psum_shared"]
            assert one not in meeting or (one in urgent and not taken[id(vector[0])])
        elif others:
            assert not psum_ready["psum_shared"] or [p for p in meeting if p not in urgent]

    def execute(self, cycle: int, port: Port) -> None:
        wanted = port.request
        contents, address, size = self.contents[wanted["storage"]], wanted["address"], wanted["size"]
        where = slice(wanted["partition"], wanted["partition"] + 1) if port.is_line else slice(0, wanted["count"])
        if not port.writes:
            latency = (LineRead if port.is_line else ReadPort).LATENCY[self.config.port_latency]
            port.due[cycle + latency] = contents[where, address : address + size].copy(), wanted
            return
        words = contents[where, address : address + wanted["bytes"].shape[1]]
        mask = np.array([wanted["mask"] >> byte & 1 for byte in range(words.shape[1])], bool)
        rows = np.array([port.is_line or wanted["enable"] >> row & 1 for row in range(len(words))], bool)
        words[:] = np.where(mask & rows[:, None], wanted["bytes"], words)

    def check(self, ctx, cycle: int, port: Port) -> None:
        if cycle not in port.due:
            return
        expected, wanted = port.due.pop(cycle)
        if port.name == "stationary":
            expected = np.tile(expected, 16 // self.config.load_bytes)
        seen = np.frombuffer(ctx.get(port.signals.data).to_bytes(len(port.signals.data) // 8, "little"), np.uint8)
        if port.is_line and wanted["storage"] == OnChipStorage.PSUM:
            word = slice(4 * wanted["word"], 4 * wanted["word"] + 4)
            expected, seen = expected[0, word], seen[word]
        np.testing.assert_array_equal(seen.reshape(expected.shape), expected, f"{port.name} in cycle {cycle}")
        self.compared += 1

    def psum_bank(self, address: int) -> int:
        return address // self.config.psum_bank % self.config.psum_banks

    async def bench(self, ctx, cycles: int, phases: Sequence[tuple[float, float]]) -> None:
        """Run phases of `cycles` cycles: the probability that an idle port makes a request, and the share to PSUM."""
        memory, rng = self.memory, self.rng
        for cycle in range(cycles * len(phases)):
            busy, psum = phases[cycle // cycles]
            for port in self.ports:
                if port.request is None and rng.random() < busy:
                    port.request = self.request(port, psum)
                values = {name: value for name, value in (port.request or {}).items() if hasattr(port.signals, name)}
                drive(ctx, port.signals, valid=port.request is not None, **values)
            psum_ready = {name: bool(rng.random() < 0.8) for name in (*self.psum_due, "psum_write")}
            reading = sum(1 << bank for bank in range(self.config.psum_banks) if rng.random() < 0.2)
            ctx.set(memory.psum_reading, reading)
            for name, due in self.psum_due.items():
                port = getattr(memory, name)
                if self.early:
                    psum_ready[name] = not reading >> self.psum_bank(ctx.get(port.address)) & 1
                drive(ctx, port, ready=psum_ready[name], data=due)
            ctx.set(memory.psum_write.ready, psum_ready["psum_write"])
            for port in self.ports:
                if not port.writes:
                    self.check(ctx, cycle, port)
            taken = {id(port): bool(port.request and ctx.get(port.signals.ready)) for port in self.ports}
            self.check_grants(taken, psum_ready)
            writes = [p.request for p in self.ports if p.kind == "write" and p.request]
            places = [one["address"] for one in writes if one["storage"] == OnChipStorage.SBUF]
            written = {place // self.config.line_bytes % self.config.sbuf_banks for place in places}
            assert ctx.get(memory.busy) == sum(1 << bank for bank in written)
            self.serve_psum(ctx, psum_ready)
            for port in sorted(self.ports, key=lambda port: port.writes):  # reads see the data before the write
                if taken[id(port)]:
                    self.execute(cycle, port)
                    port.request, port.waited = None, 0
                elif port.request:
                    kind = "psum_write" if port.writes else "psum_read"
                    self.conflicts[kind if port.at_psum else port.name] += 1
                    port.waited += 1
                    if port.is_line and not port.at_psum:
                        self.longest = max(self.longest, port.waited)
            await ctx.tick()
        self.counted = {name: ctx.get(getattr(memory.conflicts, name)) for name in self.conflicts}

    def serve_psum(self, ctx, ready: dict[str, bool]) -> None:
        writes = self.memory.psum_write
        for name in self.psum_due:
            reads = getattr(self.memory, name)
            if ctx.get(reads.valid) and ready[name]:
                address = ctx.get(reads.address)
                self.psum_due[name] = int.from_bytes(self.psum[:, address : address + 4].tobytes(), "little")
        if ctx.get(writes.valid) and ready["psum_write"]:
            address, enable, mask = ctx.get(writes.address), ctx.get(writes.enable), ctx.get(writes.mask)
            words = ctx.get(writes.data).to_bytes(4 * self.config.columns, "little")
            for byte, value in enumerate(words):
                if enable >> byte // 4 & mask >> byte % 4 & 1:
                    self.psum[byte // 4, address + byte % 4] = value
