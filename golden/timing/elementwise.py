"""Timing of the vector and the scalar engine: an instruction checker, then the steps of one instruction at a time."""

from typing import cast

import numpy as np

from neuroncore_rtl.golden.timing.banks import Banks
from neuroncore_rtl.golden.timing.calendar import (
    FIRST_STEP,
    LAST_STEP,
    LAST_WRITE,
    NEXT_FIRST,
    NEXT_OFFER,
    SCALAR,
    VECTOR,
    ElementwiseProgress,
    begin_steps,
    steps,
)
from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.plan import plan_of, tensors_of
from neuroncore_rtl.golden.timing.prediction import Timed
from neuroncore_rtl.golden.timing.queue import Queue
from neuroncore_rtl.spec import costs, timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Elementwise, Engine, Record

__all__ = ["ElementwiseEngine"]


AHEAD = {VECTOR: 256, SCALAR: 128}
"""Cycles ahead for which an engine reserves banks. The vector engine has the higher priority, so it reserves farther
ahead: the scalar engine then sees its reservations. Both reserve for longer than they use one bank, so that the stalled
lines of a port see how long the bank stays reserved.
"""

Job = tuple[Record, Timed]


class ElementwiseEngine:
    """Timing model of the vector engine or of the scalar engine."""

    queue: Queue

    def __init__(self, config: Config, agenda: Agenda, banks: Banks, engine: Engine):
        self._config, self._agenda = config, agenda
        self._calendars = banks.calendars
        self._priority = SCALAR if engine == Engine.SCALAR else VECTOR
        self._held: tuple[Job, int] | None = None  # in the checker, and the cycle of its verdict
        self._judged: Job | None = None
        self._running = False
        self._last = self._written = -1  # last step and last write of the previous instruction
        self._rest = 0  # minimum cycles from its last step to the next one
        self._after_slow = False
        self._ticks = 0, 0  # `NEXT_OFFER` and `NEXT_FIRST` of the previous instruction
        self.busy, self.waited = 0, {"bank": 0}

    def ready(self) -> int | None:
        """Return the first cycle in which the engine accepts an instruction, or None if unknown."""
        return 0 if self._held is None else None

    def start(self, record: Record, timed: Timed) -> None:
        """Accept an instruction in this cycle."""
        registers = timing.ELEMENTWISE_CHECKER_REGISTERS[self._config.port_latency]
        verdict = self._agenda.now + timing.ELEMENTWISE_CHECKER_INTERVAL + registers
        self._held = (record, timed), verdict
        self._agenda.at(verdict, self._judge)

    def _judge(self) -> None:
        if self._held is None or self._judged is not None or self._agenda.now < self._held[1]:
            return
        self._judged, self._held = self._held[0], None
        self._agenda.at(self._agenda.now + 1, self._load)
        self.queue.engine_ready()

    def _load(self) -> None:
        if self._judged is None or self._running:
            return
        record, timed = self._judged
        instruction = cast("Elementwise", record.instruction)
        self._judged, self._running = None, True
        self._judge()
        offered = self._agenda.now + timing.SEQUENCER_LATENCY + self._config.port_latency
        first = max(offered, self._last + self._rest)
        slow = costs.is_slow(instruction)
        if not instruction.overlap or slow or self._after_slow:
            first = max(first, self._written + 1)
        self._after_slow = slow
        self._rest = costs.step_interval(instruction, self._config)
        shape = np.ones(4, np.int64)
        shape[4 - len(instruction.shape) :] = instruction.shape
        tensors = tensors_of(instruction)
        plan = plan_of(instruction, self._config)
        state = begin_steps(first, self._written, plan.depth, *tensors)
        state[NEXT_OFFER], state[NEXT_FIRST] = self._ticks
        walk = ElementwiseProgress(state, tuple(plan), shape, *tensors, offered=offered)
        self._agenda.at(first if self._priority == SCALAR else self._agenda.now, self._step, (record, timed), walk)

    def _step(self, job: Job, walk: ElementwiseProgress) -> None:
        done = steps(self._calendars, self._priority, self._agenda.now + AHEAD[self._priority], tuple(walk))
        state = walk.state
        last = int(state[LAST_STEP])
        if not done:
            self._agenda.at(max(last - AHEAD[self._priority] // 2, self._agenda.now + 1), self._step, job, walk)
            return
        self._last, self._written = last, int(state[LAST_WRITE])
        self._ticks = int(state[NEXT_OFFER]), int(state[NEXT_FIRST])
        first, instruction = int(state[FIRST_STEP]), cast("Elementwise", job[0].instruction)
        free = costs.until_written(instruction, self._config) - costs.drain(instruction, self._config)
        self.waited["bank"] += max(0, last + 1 - first - free)
        self.busy += last + 1 - first
        self._agenda.at(max(last, self._agenda.now), self._end)
        self._agenda.at(self._written + 1 + self._config.result_latency, self.queue.retire, *job)

    def _end(self) -> None:
        self._running = False
        self._load()
