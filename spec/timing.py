"""How many cycles the units of a core take, and how much they hold: what hardware is built to, and the timing model
counts with.

Each number is typed here alone. What follows in `hdl/` from how a unit is built (the digits of a quotient, the cuts of
a pipeline) is held to the number here by `tests/golden/timing/test_constants.py`. Latencies that depend on parameters
of the machine are formulas of the units themselves.
"""

__all__ = [
    "BURST_BEATS", "CAST_LANES", "DIVIDE_INTERVAL", "DIVIDE_LATENCY", "DMA_CHECKER_INTERVAL",
    "EDGE_LATENCY", "ELEMENTWISE_CHECKER_INTERVAL", "ELEMENTWISE_CHECKER_LATENCY", "FETCHER_RECORDS",
    "LINE_AHEAD", "LINE_BUFFER", "LINE_PATIENCE", "LINE_READ_LATENCY", "POWER_INTERVAL", "POWER_LATENCY",
    "PSUM_WORD_BYTES", "QUEUE_RECORDS", "READ_LATENCY", "REMAINDER_INTERVAL", "REMAINDER_LATENCY",
    "SCALAR_LANES_LATENCY", "SCAN_INTERVAL", "SEQUENCER_LATENCY", "SET_INTERVAL", "STORE_LATENCY", "STORE_SLACK",
    "TENSOR_QUEUE", "VECTOR_LANES_LATENCY", "WRITER_BEATS",
]  # fmt: skip

# ---- Queues

QUEUE_RECORDS = 16
"""Records that an engine has taken and that have not yet updated their semaphores, at most."""

FETCHER_RECORDS = 16
"""Records on their way from HBM, of all queues."""

# ---- Memories on chip

READ_LATENCY = 1
"""Cycles from an engine's request that is taken to its data."""

LINE_READ_LATENCY = 2
"""The same of a line port."""

LINE_PATIENCE = 16
"""Cycles that a line port, or in SBUF the read of weights, waits before it goes first."""

LINE_BUFFER = 8
"""Lines that a line port has taken, and that others go ahead of, as engines write their banks of SBUF."""

LINE_AHEAD = 64
"""Lines that go ahead of one at most."""

# ---- Tensor engine

EDGE_LATENCY = 1
"""Cycles from a word to its operands."""

TENSOR_QUEUE = 2
"""Instructions behind the checker, of loads and of multiplications each, the one under way among them."""

# ---- Vector and scalar engine

ELEMENTWISE_CHECKER_LATENCY = 5
"""Cycles from an instruction to its job."""

ELEMENTWISE_CHECKER_INTERVAL = 4
"""Cycles from one instruction to the next."""

SEQUENCER_LATENCY = 1
"""Cycles from a job to its first step."""

STORE_LATENCY = 1
"""Cycles from a result to its write."""

STORE_SLACK = 4
"""Results in flight outside of the lanes at full speed."""

VECTOR_LANES_LATENCY = 6
"""Cycles from a step to its result in the vector engine's lanes, where no operation is slow."""

SCALAR_LANES_LATENCY = 23
"""The same in those of the scalar engine."""

SCAN_INTERVAL = 2
"""Cycles from one element of a scan to the next."""

SET_INTERVAL = 4
"""Cycles from one word of BN_AGGR to the next."""

DIVIDE_INTERVAL, DIVIDE_LATENCY = 8, 10
"""Cycles from one division to the next, and to its quotient."""

REMAINDER_INTERVAL, REMAINDER_LATENCY = 93, 95
"""The same of remainders, whose quotient may have 277 bits."""

POWER_INTERVAL, POWER_LATENCY = 14, 15
"""The same of powers."""

# ---- DMA

DMA_CHECKER_INTERVAL = 7
"""Cycles from one copy to the next; the job is there a cycle later."""

BURST_BEATS = 16
"""Longest burst, and the grid that bursts keep to."""

PSUM_WORD_BYTES = 4
"""What an access to PSUM moves."""

WRITER_BEATS = 2 * BURST_BEATS
"""Beats that wait for the rest of their burst, or to be taken."""

CAST_LANES = 4
"""Elements that are cast in a cycle."""
