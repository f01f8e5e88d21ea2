"""Queues with their semaphores, watchdog and errors, wired as in the core, and a model of HBM and the engines."""

from collections import deque

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from neuroncore_rtl.hdl.collective.peer import Peer
from neuroncore_rtl.hdl.queue.errors import Errors
from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.hdl.queue.watchdog import Watchdog
from neuroncore_rtl.spec.config import SEMAPHORE_COUNT
from neuroncore_rtl.spec.isa import RECORD_BYTES, Engine
from tests.hdl.queue.queues import whole
from tests.hdl.simulation import assign, drive

__all__ = ["ENGINES", "Player", "System"]
ENGINES = (Engine.TENSOR, Engine.VECTOR, Engine.DMA, Engine.COLLECTIVE)


class System(wiring.Component):
    """Three queues: tensor (two lanes), vector, DMA; and optionally the queue of a collective engine.

    A queue prefetches at most `records` records.

    Ports:
        activity: an engine makes progress, an input of the watchdog.
        limit: limit of the watchdog.
        peer: core that the collective engine waits for.
    """

    activity: In(1)
    limit: In(32, init=1000)
    peer: In(Peer)

    def __init__(self, *, collective: bool = False, records: int = 4):
        super().__init__()
        shapes = ({"lanes": 2}, {}, {"records": 2}, {"records": 2})[: 3 + collective]
        shapes = [shape | {"records": min(records, shape.get("records", 4))} for shape in shapes]
        self.queues = [Queue(engine, **shape) for engine, shape in zip(ENGINES, shapes, strict=False)]
        self.semaphores = Semaphores(len(self.queues))
        self.watchdog = Watchdog(len(self.queues), len(self.queues) - 1 if collective else None)
        self.errors = Errors(len(self.queues))

    def elaborate(self, platform):
        m = Module()
        semaphores, watchdog, errors = self.semaphores, self.watchdog, self.errors
        m.submodules += [semaphores, watchdog, errors]
        for number, queue in enumerate(self.queues):
            m.submodules[f"queue{number}"] = queue
            wiring.connect(m, queue.update, semaphores.updates[number])
            m.d.comb += [
                semaphores.waits[number].eq(queue.wait),
                queue.wait_satisfied.eq(semaphores.satisfied[number]),
                queue.update_refused.eq(semaphores.refused[number]),
                queue.halt.eq(errors.halt),
                errors.queue_errors[number].eq(queue.error),
                watchdog.busy[number].eq(queue.busy),
                watchdog.waiting[number].eq(queue.waiting),
                watchdog.addresses[number].eq(queue.address),
                watchdog.shortages[number].eq(semaphores.shortages[number]),
            ]
        if watchdog.collective is not None:
            assign(m, watchdog, peer=self.peer, peer_address=self.queues[-1].oldest)
        progress = Cat(queue.progress for queue in self.queues).any() | semaphores.updated | self.activity
        assign(m, watchdog, limit=self.limit, progress=progress)
        assign(m, errors, watchdog=watchdog.error)
        return m


class Player:
    """Models HBM and the engines of a `System`; `pace` is the probability of each event per cycle.

    `programs` are records by queue; their addresses are assigned here. `fetches` and `finishes` are functions of
    player, queue and record: whether HBM may deliver the record, and whether the engine may finish it.
    """

    def __init__(
        self, rng, ctx, system, programs, *, pace=1.0, fetches=lambda *which: True, finishes=lambda *which: True
    ):
        self.rng, self.ctx, self.system, self.pace = rng, ctx, system, pace
        self.fetches, self.finishes = fetches, finishes
        self.memory = {}
        self.blocks = [deque() for _ in system.queues]
        for number, items in programs.items():
            base = (number + 1) << 20
            for n, item in enumerate(items):
                item.address = base + n * RECORD_BYTES
                self.memory[item.address] = item
            self.blocks[number].append((base, len(items)))
        self.fetching = [deque() for _ in system.queues]
        self.working = [[deque() for _ in range(queue.lanes)] for queue in system.queues]
        self.time = 0
        self.issued = []  # (cycle, queue, record)
        self.finished = []
        self.error = None  # (cycle, error)

    def may(self):
        return self.rng.random() < self.pace

    async def sweep(self):
        await self.ctx.tick().repeat(SEMAPHORE_COUNT)
        assert self.ctx.get(self.system.semaphores.ready)

    async def cycle(self):
        ctx = self.ctx
        for number, queue in enumerate(self.system.queues):
            if self.blocks[number] and not ctx.get(queue.blocks.valid):
                address, count = self.blocks[number][0]
                drive(ctx, queue.blocks, valid=1, payload={"address": address, "count": count})
            ctx.set(queue.request.ready, self.may())
            waiting = self.fetching[number]
            received = waiting and self.fetches(self, number, waiting[0]) and self.may()
            item = waiting.popleft() if received else None
            ctx.set(queue.record.valid, item is not None)
            if item:
                drive(ctx, queue.record, payload=whole(item.bits, item.error))
            ctx.set(queue.issue.ready, self.may())
            done = 0
            for lane, works in enumerate(self.working[number]):
                if works and self.finishes(self, number, works[0]) and self.may():
                    done |= 1 << lane
                    self.finished.append((self.time, number, works.popleft()))
            ctx.set(queue.completions, done)
        for number, queue in enumerate(self.system.queues):
            if ctx.get(queue.blocks.valid & queue.blocks.ready):
                self.blocks[number].popleft()
            if ctx.get(queue.request.valid & queue.request.ready):
                self.fetching[number].append(self.memory[ctx.get(queue.request.payload)])
            if ctx.get(queue.issued):
                item = self.memory[ctx.get(queue.issued_address)]
                self.issued.append((self.time, number, item))
                if item.is_nop:
                    self.finished.append((self.time, number, item))
                else:
                    self.working[number][item.lane(queue.lanes)].append(item)
        error = ctx.get(self.system.errors.error)
        if self.error is None and error.valid:
            self.error = self.time, error
        await ctx.tick()
        self.time += 1
        for number, queue in enumerate(self.system.queues):
            ctx.set(queue.blocks.valid, bool(ctx.get(queue.blocks.valid) and self.blocks[number]))

    def quiet(self) -> bool:
        return not any(self.ctx.get(queue.busy) for queue in self.system.queues)

    async def values(self, semaphores):
        """Return the values of semaphores while HBM and the engines do nothing."""
        for queue in self.system.queues:
            self.ctx.set(queue.record.valid, 0)
            self.ctx.set(queue.completions, 0)
        access, found = self.system.semaphores.access, []
        for semaphore in semaphores:
            drive(self.ctx, access, update={"op": 0, "semaphore": semaphore, "value": 0}, valid=1)
            while not self.ctx.get(access.ready):
                assert not self.quiet(), "the only request must be granted"
                await self.ctx.tick()
            found.append(self.ctx.get(access.has))
            await self.ctx.tick()
        self.ctx.set(access.valid, 0)
        return found
