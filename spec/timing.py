"""Latencies and capacities of the core's units, shared by the hardware and the timing model.

Where `hdl/` derives a number from a unit's structure, such as the stages of a pipeline,
`tests/golden/timing/test_constants.py` compares it with the number here.
"""

__all__ = [
    "BURST_BEATS", "DIVIDE_INTERVAL", "DIVIDE_LATENCY", "DMA_CHECKER_INTERVAL",
    "DMA_CHECKER_REGISTERS", "ELEMENTWISE_CHECKER_INTERVAL", "ELEMENTWISE_CHECKER_LATENCY",
    "ELEMENTWISE_CHECKER_REGISTERS", "FETCHER_RECORDS",
    "LINE_AHEAD", "LINE_BUFFER", "LINE_PATIENCE", "LINE_READ_LATENCY", "POWER_INTERVAL", "POWER_LATENCY",
    "PSUM_WORD_BYTES", "QUEUE_RECORDS", "READ_LATENCY", "REMAINDER_INTERVAL", "REMAINDER_LATENCY",
    "RUNS_PER_PACKET", "SCALAR_LANES_LATENCY", "SEQUENCER_LATENCY", "STORE_LATENCY", "STORE_SLACK", "TENSOR_QUEUE",
    "VECTOR_CAST_LATENCY", "VECTOR_ENTRY_LATENCY", "WRITER_BEATS", "WRITER_BURSTS", "cast_latency", "quotient_wait",
    "set_interval", "turns_latency", "vector_intervals", "vector_lanes_latency",
]  # fmt: skip

QUEUE_RECORDS = 16
"""Maximum records that an engine has accepted and that have not made their updates yet."""

FETCHER_RECORDS = 16
"""Maximum number of records in flight from HBM, for all queues together."""

READ_LATENCY = 1, 2
"""Cycles from an engine's accepted read request to its data, by `port_latency`."""

LINE_READ_LATENCY = 2, 3
"""Cycles from a line port's accepted read request to its data, by `port_latency`."""

LINE_PATIENCE = 16
"""Cycles after which a stalled line port, or in SBUF a stalled read of weights, has priority, against starvation."""

LINE_BUFFER = 8
"""Accepted lines of a line port that wait for their banks of SBUF; younger lines can overtake them."""

LINE_AHEAD = 64
"""Maximum number of lines that overtake the oldest one."""

TENSOR_QUEUE = 2
"""Entries after the checker for loads, including the load in execution; the same number for multiplications."""

ELEMENTWISE_CHECKER_LATENCY = 5
"""Cycles from an accepted instruction to its job, for the sequencer."""

ELEMENTWISE_CHECKER_INTERVAL = 4
"""Cycles from one accepted instruction to the next, limited by the checker."""

ELEMENTWISE_CHECKER_REGISTERS = 0, 2
"""Extra cycles of this latency and interval, by `port_latency`; with 1 the interval has one further cycle."""

SEQUENCER_LATENCY = 1
"""Cycles from a job to its first step."""

STORE_LATENCY = 1, 2
"""Cycles from a result to its write, by `port_latency`."""

STORE_SLACK = 4, 6
"""Results in flight outside of the lanes at full throughput, by `port_latency`: in fetch, before and in the store, and
one spare.
"""

VECTOR_ENTRY_LATENCY = 1, 3
"""Cycles of widening in the vector datapaths: with single-cycle ALUs, and with pipelined ALUs."""

VECTOR_CAST_LATENCY = 1, 5
"""Cycles of the cast in the vector datapaths: with single-cycle ALUs, and with pipelined ALUs."""

SCALAR_LANES_LATENCY = 23, 44
"""Cycles from a step to its result in the scalar engine's datapaths, by `scalar_depth`."""

DIVIDE_INTERVAL, DIVIDE_LATENCY = 8, 10
"""Cycles from one division to the next, and to its quotient."""

REMAINDER_INTERVAL, REMAINDER_LATENCY = 93, 95
"""Cycles from one remainder to the next, and to its result; the quotient of a remainder can have 277 bits."""

POWER_INTERVAL, POWER_LATENCY = 14, 15
"""Cycles from one power to the next, and to its result."""


def cast_latency(rounding: int) -> int:
    """Return the latency in cycles of a cast in a DMA engine with `rounding` pipeline stages of the rounding."""
    return 1 + (1 + 2 * (rounding > 1)) + rounding


def turns_latency(lane_partitions: int) -> int:
    """Return the extra cycles until a result if one datapath serves `lane_partitions` partitions in turn."""
    return lane_partitions if lane_partitions > 1 else 0


def vector_lanes_latency(alu_latency: int) -> int:
    """Return the cycles from a step to its result in the vector engine's datapaths, if no operation is iterative."""
    staged = alu_latency > 1
    return 1 + VECTOR_ENTRY_LATENCY[staged] + 2 * alu_latency + 1 + VECTOR_CAST_LATENCY[staged]


def vector_intervals(alu_latency: int) -> dict[str, int]:
    """Return the minimum cycles from one step to the next, by opcode, if no operation is iterative.

    The other opcodes take one cycle.
    """
    return {
        "TENSOR_REDUCE": alu_latency,
        "TENSOR_SCALAR_REDUCE": alu_latency,
        "TENSOR_TENSOR_SCAN": 2 * alu_latency,
        "BN_STATS": 1 if alu_latency == 1 else alu_latency + 1,
        "BN_AGGR": set_interval(alu_latency),
    }


def set_interval(alu_latency: int) -> int:
    """Return the minimum cycles from one word of BN_AGGR to the next.

    BN_AGGR reads sets of three words: count, mean, variance * count. The quotient of a set and the two operations after
    it must be finished before the third word of the next set, or the division of the variance, reads their results.
    """
    interval = max(3, alu_latency + 1)
    while quotient_wait(alu_latency, interval) + max(0, 2 * alu_latency - interval) >= interval:
        interval += 1
    return interval


def quotient_wait(alu_latency: int, interval: int) -> int:
    """Return the cycles from the last word of a set of BN_AGGR until the operands of the new mean are valid."""
    return max(2, alu_latency + DIVIDE_LATENCY - 2 * interval)


DMA_CHECKER_INTERVAL = 7
"""Cycles from one copy in the checker to the next; the job is valid one cycle later."""

DMA_CHECKER_REGISTERS = 0, 3
"""Extra cycles of that interval, by `port_latency`; with 1 the interval has one further cycle."""

BURST_BEATS = 16
"""Maximum number of beats in a burst; bursts do not cross multiples of it."""

RUNS_PER_PACKET = 64
"""Maximum number of runs of contiguous bytes in HBM in a packet of a copy (source: docs/rates.md)."""

PSUM_WORD_BYTES = 4
"""Bytes of an access to PSUM."""

WRITER_BEATS = 2 * BURST_BEATS
"""Beats that can wait for the rest of their burst or for acceptance."""

WRITER_BURSTS = 128
"""Maximum number of bursts of a DMA engine without an answer."""
