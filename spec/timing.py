"""How many cycles the units of a core take, and how much they hold: what hardware is built to, and the timing model
counts with.

Each number is typed here alone. What follows in `hdl/` from how a unit is built (the digits of a quotient, the cuts of
a pipeline) is held to the number here by `tests/golden/timing/test_constants.py`. Latencies that depend on parameters
of the machine are formulas of the units themselves.
"""

__all__ = [
    "BURST_BEATS", "DIVIDE_INTERVAL", "DIVIDE_LATENCY", "DMA_CHECKER_INTERVAL",
    "DMA_CHECKER_REGISTERS", "ELEMENTWISE_CHECKER_INTERVAL", "ELEMENTWISE_CHECKER_LATENCY",
    "ELEMENTWISE_CHECKER_REGISTERS", "FETCHER_RECORDS",
    "LINE_AHEAD", "LINE_BUFFER", "LINE_PATIENCE", "LINE_READ_LATENCY", "POWER_INTERVAL", "POWER_LATENCY",
    "PSUM_WORD_BYTES", "QUEUE_RECORDS", "READ_LATENCY", "REMAINDER_INTERVAL", "REMAINDER_LATENCY",
    "SCALAR_LANES_LATENCY", "SEQUENCER_LATENCY", "STORE_LATENCY", "STORE_SLACK", "TENSOR_QUEUE",
    "VECTOR_CAST_LATENCY", "VECTOR_ENTRY_LATENCY", "WRITER_BEATS", "cast_latency", "quotient_wait", "set_interval",
    "turns_latency", "vector_intervals", "vector_lanes_latency",
]  # fmt: skip

# ---- Queues

QUEUE_RECORDS = 16
"""Records that an engine has taken and that have not yet updated their semaphores, at most."""

FETCHER_RECORDS = 16
"""Records on their way from HBM, of all queues."""

# ---- Memories on chip

READ_LATENCY = 1, 2
"""Cycles from an engine's request that is taken to its data, by `port_latency`."""

LINE_READ_LATENCY = 2, 3
"""The same of a line port."""

LINE_PATIENCE = 16
"""Cycles that a line port, or in SBUF the read of weights, waits before it goes first."""

LINE_BUFFER = 8
"""Lines that a line port has taken, and that others go ahead of, as engines write their banks of SBUF."""

LINE_AHEAD = 64
"""Lines that go ahead of one at most."""

# ---- Tensor engine

TENSOR_QUEUE = 2
"""Instructions behind the checker, of loads and of multiplications each, the one under way among them."""

# ---- Vector and scalar engine

ELEMENTWISE_CHECKER_LATENCY = 5
"""Cycles from an instruction to its job."""

ELEMENTWISE_CHECKER_INTERVAL = 4
"""Cycles from one instruction to the next."""

ELEMENTWISE_CHECKER_REGISTERS = 0, 2
"""Cycles by which both are more, by `port_latency`; with it the next instruction comes another one later."""

SEQUENCER_LATENCY = 1
"""Cycles from a job to its first step."""

STORE_LATENCY = 1, 2
"""Cycles from a result to its write, by `port_latency`."""

STORE_SLACK = 4, 6
"""Results in flight outside of the lanes at full speed, by `port_latency`: in fetch, before and in the store, and one
to spare."""

VECTOR_ENTRY_LATENCY = 1, 3
"""Cycles of widening in the vector engine's lanes: with ALUs of one cycle, and with ALUs of more."""

VECTOR_CAST_LATENCY = 1, 5
"""The same of a cast."""

SCALAR_LANES_LATENCY = 23, 44
"""Cycles from a step to its result in the scalar engine's lanes, by their depth."""

DIVIDE_INTERVAL, DIVIDE_LATENCY = 8, 10
"""Cycles from one division to the next, and to its quotient."""

REMAINDER_INTERVAL, REMAINDER_LATENCY = 93, 95
"""The same of remainders, whose quotient may have 277 bits."""

POWER_INTERVAL, POWER_LATENCY = 14, 15
"""The same of powers."""


def cast_latency(rounding: int) -> int:
    """Return the cycles that an element takes through a DMA engine's cast.

    Arguments:
        rounding: cycles of its rounding; if there are more than one, widening takes three, else one.
    """
    return 1 + (1 + 2 * (rounding > 1)) + rounding


def turns_latency(lane_partitions: int) -> int:
    """Return the cycles by which a result is later where a lane serves so many partitions: their words wait in a
    register, and the last one's result is the last.
    """
    return lane_partitions if lane_partitions > 1 else 0


def vector_lanes_latency(alu_latency: int) -> int:
    """Return the cycles from a step to its result in the vector engine's lanes, where no operation is slow.

    Arguments:
        alu_latency: of each of a lane's two ALUs, in cycles.
    """
    staged = alu_latency > 1
    return 1 + VECTOR_ENTRY_LATENCY[staged] + 2 * alu_latency + 1 + VECTOR_CAST_LATENCY[staged]


def vector_intervals(alu_latency: int) -> dict[str, int]:
    """Return the least cycles from one step to the next of the opcodes, by name, whose results depend on each other, or
    take several operations of an ALU; where no operation is slow.

    Arguments:
        alu_latency: as above.
    """
    return {
        "TENSOR_REDUCE": alu_latency,
        "TENSOR_SCALAR_REDUCE": alu_latency,
        "TENSOR_TENSOR_SCAN": 2 * alu_latency,
        "BN_STATS": 1 if alu_latency == 1 else alu_latency + 1,
        "BN_AGGR": set_interval(alu_latency),
    }


def set_interval(alu_latency: int) -> int:
    """Return the least cycles from one word of BN_AGGR to the next: the quotient of a set, and the two operations after
    it, must be there before the third word of the next set, or the division of the variance, looks at the results.

    Arguments:
        alu_latency: as above.
    """
    interval = max(3, alu_latency + 1)
    while quotient_wait(alu_latency, interval) + max(0, 2 * alu_latency - interval) >= interval:
        interval += 1
    return interval


def quotient_wait(alu_latency: int, interval: int) -> int:
    """Return the cycles from a set's last word to when its quotient and all other operands of the new mean are there.

    Arguments:
        alu_latency: as above. interval: cycles from word to word.
    """
    return max(2, alu_latency + DIVIDE_LATENCY - 2 * interval)


# ---- DMA

DMA_CHECKER_INTERVAL = 7
"""Cycles from one copy to the next; the job is there a cycle later."""

DMA_CHECKER_REGISTERS = 0, 3
"""Cycles by which that is more, by `port_latency`; with it the next copy comes another one later."""

BURST_BEATS = 16
"""Longest burst, and the grid that bursts keep to."""

PSUM_WORD_BYTES = 4
"""What an access to PSUM moves."""

WRITER_BEATS = 2 * BURST_BEATS
"""Beats that wait for the rest of their burst, or to be taken."""
