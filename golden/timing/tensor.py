"""Timing of the tensor engine: instruction checker, queues of loads and of multiplications, two sets of weights."""

from collections import deque
from typing import cast

from neuroncore_rtl.golden.timing.banks import Banks
from neuroncore_rtl.golden.timing.calendar import Loads, Moves, columns, load_steps
from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.prediction import Timed
from neuroncore_rtl.golden.timing.queue import Queue
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.costs import array_latency
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving, Record

__all__ = ["TensorEngine"]


class TensorEngine:
    """Timing model of the tensor engine; all cycles of an instruction are known at once, as the array never stalls."""

    queue: Queue

    def __init__(self, config: Config, agenda: Agenda, banks: Banks):
        self._agenda, self._banks = agenda, banks
        self._spacing, self._late = config.add_latency + 2, config.port_latency
        self.latency = array_latency(config)
        self._ready = 0
        self._left_queue = {kind: deque([-1] * timing.TENSOR_QUEUE, timing.TENSOR_QUEUE) for kind in (True, False)}
        self._loads_free = self._moves_free = self._paced = 0
        self._least, self._swap, self._late_result = config.least_interval, config.swap_cycles, config.result_latency
        self._interval = max(1, config.load_interval)
        self._loaded = self._swapped = -1
        self._pending = False
        self._last: tuple[int, int, int] | None = None  # address, number and first cycle of the last columns
        self.busy, self.waited = 0, {"weights": 0}

    def ready(self) -> int:
        """Return the first cycle in which the engine accepts an instruction."""
        return self._ready

    def start(self, record: Record, timed: Timed) -> None:
        """Accept an instruction in this cycle."""
        instruction = cast("LoadStationary | MultiplyMoving", record.instruction)
        is_load = isinstance(instruction, LoadStationary)
        left_queue = self._left_queue[is_load]
        start = max(self._agenda.now + 1 + self._late, left_queue[0] + 1)
        self._ready = start + self._late
        if is_load:
            last = self._load(start, instruction)
            retired = last + 1
        else:
            last = self._move(start, instruction)
            timed.began = last + 1 - instruction.n
            retired = last + self.latency + self._late_result
        left_queue.append(last)
        self._agenda.at(retired, self.queue.retire, record, timed)

    def _load(self, cycle: int, instruction: LoadStationary) -> int:
        # Weights that no multiplication uses yet are overwritten immediately.
        first = max(cycle + self._late, self._loads_free, 0 if self._pending else self._swapped + 1)
        self._pending = True
        step = LOAD_COLUMNS * instruction.format.bits // 8
        tiles = -(-instruction.m // LOAD_COLUMNS)
        banks = self._banks
        loads = Loads(first, tiles, instruction.address, step, self._interval, timing.LINE_PATIENCE)
        last = load_steps(banks.sbuf_reads, banks.owners[0], banks.debts[0], banks.places, tuple(loads))
        self._loads_free = last + self._interval
        self._loaded = last + 1
        return last

    def _move(self, cycle: int, instruction) -> int:
        first = max(cycle + 2 * self._late, self._moves_free)  # latency from the queue, and to the first column
        if self._pending:
            complete = max(first, self._loaded, self._moves_free + self._swap if self._moves_free else 0)
            self.waited["weights"] += complete - first
            first = complete
        if instruction.accumulate and self._last is not None:
            place, count, began = self._last
            ahead = instruction.psum - place
            if -instruction.n < ahead < count:
                first = max(first, began + ahead + self._spacing)
        first = max(first, self._paced)
        self._paced = first + min(self._least, instruction.m)
        if self._pending:
            self._swapped, self._pending = first, False
        self._last = instruction.psum, instruction.n, first
        last = first + instruction.n - 1
        banks, sums = self._banks, self.latency - self._spacing
        moves = Moves(
            *(first, instruction.n, instruction.address, instruction.stride, instruction.psum, instruction.accumulate),
            to_read=sums,
            to_write=sums + self._spacing - 1,
        )
        columns(banks.calendars, tuple(moves))
        self._moves_free = last + 1
        self.busy += instruction.n
        return last
