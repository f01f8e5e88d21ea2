"""The engines and their queues: how many there are, what they are called, what they count."""

import enum

from neuroncore_rtl.spec.config import Config

__all__ = [
    "COUNTER_BITS", "ENGINE_QUEUES", "LANES", "QUEUE_BLOCKS", "QUEUE_COUNTERS", "RECORDS_AHEAD", "Engine",
    "collective_queue", "engine_of_queue", "engines_taken", "queue_count", "queue_name", "queues_of", "records_ahead",
]  # fmt: skip


class Engine(enum.IntEnum):
    """The engines; the value is the code that records carry. 0 is none: a record of zeros is an error."""

    TENSOR = 1
    """Products of matrices, from SBUF into PSUM."""
    VECTOR = 2
    """Element by element, along the free dimensions, on chip."""
    SCALAR = 3
    """Functions of one argument, element by element, on chip."""
    DMA = 4
    """Copies between HBM, SBUF and PSUM."""
    COLLECTIVE = 5
    """A group of cores' operations on what is in their HBM."""
    QUEUE = 6
    """None of them: every queue executes the instruction itself."""


ENGINE_QUEUES = (Engine.TENSOR, Engine.VECTOR, Engine.SCALAR)
"""Engines of queues 0, 1, 2; the DMA engines' follow, and that of the collective engine, where there is one."""

LANES = {engine: 1 for engine in Engine} | {Engine.TENSOR: 2, Engine.QUEUE: 0}
"""Lanes of a queue, in each of which instructions complete in order: `Instruction.lane` says in which. A LoadStationary
may complete before the MultiplyMoving before it, so the tensor engine has two. What the queue executes itself is in
none."""

RECORDS_AHEAD = {Engine.TENSOR: 8, Engine.VECTOR: 4, Engine.SCALAR: 4, Engine.DMA: 2, Engine.COLLECTIVE: 2}
"""Records that a queue fetches ahead, the one that waits or is issued among them; those of the tensor engine are short,
those of DMA take longer, and there are many of them. A machine may have fewer: see :func:`records_ahead`."""

QUEUE_BLOCKS = 4
"""Blocks of records that a queue holds until it has fetched their last one; the doorbell waits for a place."""

QUEUE_COUNTERS = ("records", "idle", "wait_fetch", "wait_semaphore", "wait_engine", "executing")
"""Counters of a queue, in this order: records retired, and cycles, of which every one counts once: the queue has
nothing to do (idle); its next record is still on its way (fetch), waits for a semaphore, or for the engine to take it;
else records are in the engine and none is left in the block (executing)."""

COUNTER_BITS = 48
"""Bits of a counter."""


def queue_count(config: Config) -> int:
    """Return the number of queues."""
    return len(ENGINE_QUEUES) + config.dma_engines + (config.cores > 1)


def queues_of(engine: Engine, config: Config) -> range:
    """Return the queues of an engine: none of the collective engine in a core that is alone, all of QUEUE."""
    if engine == Engine.QUEUE:
        return range(queue_count(config))
    if engine in ENGINE_QUEUES:
        return range(ENGINE_QUEUES.index(engine), ENGINE_QUEUES.index(engine) + 1)
    last = len(ENGINE_QUEUES) + config.dma_engines
    return range(len(ENGINE_QUEUES), last) if engine == Engine.DMA else range(last, queue_count(config))


def records_ahead(engine: Engine, config: Config) -> int:
    """Return the records that a queue of an engine fetches ahead, the one that waits or is issued among them."""
    return min(RECORDS_AHEAD[engine], config.records_ahead)


def collective_queue(config: Config) -> int | None:
    """Return the queue of the collective engine, the last one; None in a core that is alone."""
    return next(iter(queues_of(Engine.COLLECTIVE, config)), None)


def engine_of_queue(queue: int, config: Config) -> Engine:
    """Return the engine of a queue."""
    if queue == collective_queue(config):
        return Engine.COLLECTIVE
    return ENGINE_QUEUES[queue] if queue < len(ENGINE_QUEUES) else Engine.DMA


def engines_taken(engine: Engine) -> tuple[Engine, Engine]:
    """Return the engines whose records the queue of an engine takes: that one, and QUEUE."""
    return engine, Engine.QUEUE


def queue_name(queue: int, config: Config) -> str:
    """Return how reports name a queue: tensor, vector, scalar, dma0, dma1, ..., collective."""
    engine = engine_of_queue(queue, config)
    return f"dma{queue - len(ENGINE_QUEUES)}" if engine == Engine.DMA else engine.name.lower()
