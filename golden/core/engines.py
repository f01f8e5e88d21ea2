"""All engines and their memories: executes the instruction in a record's body, or says which rule it breaks."""

import numpy as np

from neuroncore_rtl.golden.core.network import Network
from neuroncore_rtl.golden.memory.dma import DmaFault, dma_copy
from neuroncore_rtl.golden.scalar import ScalarEngine
from neuroncore_rtl.golden.tensor import TensorEngine
from neuroncore_rtl.golden.vector import VectorEngine
from neuroncore_rtl.spec.config import SBUF_BYTES, Config
from neuroncore_rtl.spec.formats import INT8
from neuroncore_rtl.spec.isa import SCALAR_OPCODES, VECTOR_OPCODES, Engine, LoadStationary
from neuroncore_rtl.spec.isa.collective_legality import collective_violation
from neuroncore_rtl.spec.isa.decode import body_fields, instruction_of
from neuroncore_rtl.spec.isa.dma import dma_violation
from neuroncore_rtl.spec.isa.legality import violation
from neuroncore_rtl.spec.isa.tensor import tensor_violation

__all__ = ["Engines"]


class Engines:
    """The engines of a core, each of which executes its instructions one after the other.

    Arguments:
        config: the machine's parameters.
        hbm: uint8 [bytes], which copies read and write.
        number: of the core in its instance.
        network: where its collectives meet those of others; None: nobody else ever comes.

    Attributes:
        sbuf: uint8 [partitions, bytes]; psum: uint8 [columns, bytes]. Zero at first.
    """

    def __init__(self, config: Config, hbm: np.ndarray, number: int = 0, network: Network | None = None):
        self.config = config
        self.hbm = hbm
        self.number = number
        self.network = Network({number: hbm}) if network is None else network
        self.sbuf = np.zeros((config.partitions, SBUF_BYTES), np.uint8)
        self._tensor = TensorEngine(config)
        self._vector = VectorEngine(config)
        self._scalar = ScalarEngine(config)
        self.psum = self._tensor.psum.view(np.uint8)
        self._loaded: tuple[int, bool] | None = None  # columns of the last LoadStationary, and whether of INT8

    def execute(self, engine: Engine, body: int) -> tuple[int, int] | None:
        """Execute the instruction in a record's body; return cause and detail if it is refused or cannot be finished.

        One that breaks a rule has touched nothing.

        Raises:
            Waiting: if a collective waits for other cores; it is executed again then.
        """
        values = body_fields(engine, body)
        broken = self._violation(engine, values)
        if broken is not None:
            return broken[0], 0
        instruction = instruction_of(engine, values, self.config)
        match engine:
            case Engine.TENSOR:
                self._tensor.execute(instruction, self.sbuf, self.sbuf)
                if isinstance(instruction, LoadStationary):
                    self._loaded = instruction.m, instruction.format == INT8
            case Engine.VECTOR:
                self._vector.execute(instruction, self.sbuf, self.psum)
            case Engine.SCALAR:
                self._scalar.execute(instruction, self.sbuf, self.psum)
            case Engine.DMA:
                try:
                    dma_copy(instruction, self.hbm, self.sbuf, self.psum)
                except DmaFault as fault:
                    return fault.cause, fault.detail
            case Engine.COLLECTIVE:
                return self.network.execute(self.number, instruction)
        return None

    def _violation(self, engine: Engine, values: dict[str, int]):
        match engine:
            case Engine.TENSOR:
                return tensor_violation(values, self.config, self._loaded)
            case Engine.DMA:
                return dma_violation(values, self.config)
            case Engine.COLLECTIVE:
                return collective_violation(values, self.number, self.config.cores)
        return violation(values, self.config, VECTOR_OPCODES if engine == Engine.VECTOR else SCALAR_OPCODES)
