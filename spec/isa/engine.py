"""Engines and their queues: number, names and counters."""

import enum

from neuroncore_rtl.spec.config import Config

__all__ = [
    "COUNTER_BITS", "ENGINE_QUEUES", "LANES", "QUEUE_BLOCKS", "QUEUE_COUNTERS", "RECORDS_AHEAD", "Engine",
    "collective_queue", "engine_of_queue", "engines_taken", "queue_count", "queue_name", "queues_of", "records_ahead",
]  # fmt: skip


class Engine(enum.IntEnum):
    """Engines; the value is the code in records. 0 is no engine: a record of zeros is an error."""

    TENSOR = 1
    """Matrix products, from SBUF to PSUM."""
    VECTOR = 2
    """Elementwise operations and operations along free dimensions, on chip."""
    SCALAR = 3
    """Functions of one argument, element by element, on chip."""
    DMA = 4
    """Copies between HBM, SBUF and PSUM."""
    COLLECTIVE = 5
    """Operations of a group of cores on data in their HBM."""
    QUEUE = 6
    """No engine: every queue executes the instruction itself."""


ENGINE_QUEUES = (Engine.TENSOR, Engine.VECTOR, Engine.SCALAR)
"""Engines of queues 0, 1 and 2. The DMA engines' queues follow, then the collective engine's."""

LANES = {engine: 1 for engine in Engine} | {Engine.TENSOR: 2, Engine.QUEUE: 0}
"""Number of in-order streams ("lanes") of a queue: the instructions of a lane complete in order. The tensor engine has
two, because a LoadStationary may complete before an earlier MultiplyMoving.
"""

RECORDS_AHEAD = {Engine.TENSOR: 8, Engine.VECTOR: 4, Engine.SCALAR: 4, Engine.DMA: 2, Engine.COLLECTIVE: 2}
"""Maximum number of records that a queue fetches ahead, including the record that waits or is being issued. The tensor
engine has more because its instructions are short, the DMA engines fewer because copies take longer.
"""

QUEUE_BLOCKS = 4
"""Blocks of records that a queue holds until it has fetched their last record."""

QUEUE_COUNTERS = ("records", "idle", "wait_fetch", "wait_semaphore", "wait_engine", "executing")
"""Retired records, then cycles by state. Each cycle counts in exactly one state: the queue has no work (idle); its next
record is being fetched (wait_fetch), waits for a semaphore (wait_semaphore), or waits for the engine (wait_engine); or
the block has no further record and records are in the engine (executing).
"""

COUNTER_BITS = 48


def queue_count(config: Config) -> int:
    """Return the number of queues."""
    return len(ENGINE_QUEUES) + config.dma_engines + (config.cores > 1)


def queues_of(engine: Engine, config: Config) -> range:
    """Return the queues of an engine: no queue for the collective engine of a single core, all queues for QUEUE."""
    if engine == Engine.QUEUE:
        return range(queue_count(config))
    if engine in ENGINE_QUEUES:
        return range(ENGINE_QUEUES.index(engine), ENGINE_QUEUES.index(engine) + 1)
    last = len(ENGINE_QUEUES) + config.dma_engines
    return range(len(ENGINE_QUEUES), last) if engine == Engine.DMA else range(last, queue_count(config))


def records_ahead(engine: Engine, config: Config) -> int:
    """Return the records that an engine's queue fetches ahead on a machine: see `RECORDS_AHEAD`."""
    return min(RECORDS_AHEAD[engine], config.records_ahead)


def collective_queue(config: Config) -> int | None:
    """Return the collective engine's queue; None for a single core."""
    return next(iter(queues_of(Engine.COLLECTIVE, config)), None)


def engine_of_queue(queue: int, config: Config) -> Engine:
    """Return the engine of a queue."""
    if queue == collective_queue(config):
        return Engine.COLLECTIVE
    return ENGINE_QUEUES[queue] if queue < len(ENGINE_QUEUES) else Engine.DMA


def engines_taken(engine: Engine) -> tuple[Engine, Engine]:
    """Return the engines of the records that an engine's queue accepts."""
    return engine, Engine.QUEUE


def queue_name(queue: int, config: Config) -> str:
    """Return the name of a queue for reports, for example tensor or dma1."""
    engine = engine_of_queue(queue, config)
    return f"dma{queue - len(ENGINE_QUEUES)}" if engine == Engine.DMA else engine.name.lower()
