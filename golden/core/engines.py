"""All engines and their memories: executes a record's instruction, or returns the rule that it breaks."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from neuroncore_rtl.golden.core.network import Network
from neuroncore_rtl.golden.memory.dma import DmaFault, dma_copy
from neuroncore_rtl.golden.scalar import ScalarEngine
from neuroncore_rtl.golden.tensor import TensorEngine
from neuroncore_rtl.golden.vector import VectorEngine
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Context, DmaCopy, Engine, Instruction, instruction_type
from neuroncore_rtl.spec.isa.rule import Broken

__all__ = ["Engines"]

RECORDS = 1 << 16
"""Size of the cache of decoded instructions, so that a section or program that runs again is not decoded again."""


class Engines:
    """Functional models of all engines of a core, with the memories that they share.

    `network` is None for a single core. The memories `sbuf` and `psum`, uint8 [partitions or columns, bytes], are
    initially zero.
    """

    def __init__(self, config: Config, hbm: np.ndarray, number: int = 0, network: Network | None = None):
        self.config = config
        self.hbm = hbm
        self.number = number
        self.network = Network({number: hbm}) if network is None else network
        self.sbuf = np.zeros((config.partitions, config.sbuf_bytes), np.uint8)
        tensor, vector, scalar = TensorEngine(config), VectorEngine(config), ScalarEngine(config)
        self.psum = tensor.psum.view(np.uint8)
        self._context = Context(config, core=number)
        sbuf, psum, joined = self.sbuf, self.psum, self.network  # functions of `self` would keep it in a circle
        self._execute: dict[Engine, Callable[[Any], tuple[int, int] | None]] = {
            Engine.TENSOR: lambda instruction: tensor.perform(instruction, sbuf, sbuf),
            Engine.VECTOR: lambda instruction: vector.perform(instruction, sbuf, psum),
            Engine.SCALAR: lambda instruction: scalar.perform(instruction, sbuf, psum),
            Engine.DMA: lambda instruction: _copy(instruction, hbm, sbuf, psum),
            Engine.COLLECTIVE: lambda instruction: joined.execute(number, instruction),
            Engine.QUEUE: lambda instruction: None,
        }

    def execute(self, engine: Engine, body: int) -> tuple[int, int] | None:
        """Execute the instruction in a record's body; return cause and detail if it is illegal or fails, else None.

        An illegal instruction has no effect.

        Raises WaitingCores if a collective must wait for other cores; execute it again later.
        """
        broken, instruction = _decode(engine, body, self._context)
        if broken is not None:
            return broken[0], 0
        assert instruction is not None
        fault = self._execute[engine](instruction)
        self._context = instruction.after(self._context)
        return fault


def _copy(instruction: DmaCopy, *memories: np.ndarray) -> tuple[int, int] | None:
    try:
        dma_copy(instruction, *memories)
    except DmaFault as fault:
        return fault.cause, fault.detail
    return None


@lru_cache(RECORDS)
def _decode(engine: Engine, body: int, context: Context) -> tuple[Broken | None, Instruction | None]:
    kind = instruction_type(engine)
    values = kind.unpack(body)
    broken = kind.violation(engine, values, context)
    return broken, None if broken is not None else kind.decode(values, context.config)
