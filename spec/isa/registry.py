"""Registry of instruction classes by engine and by mnemonic."""

from typing import Any

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.collective import Collective
from neuroncore_rtl.spec.isa.dma import DmaCopy
from neuroncore_rtl.spec.isa.elementwise import Elementwise
from neuroncore_rtl.spec.isa.engine import Engine
from neuroncore_rtl.spec.isa.instruction import Instruction
from neuroncore_rtl.spec.isa.nop import Nop
from neuroncore_rtl.spec.isa.tensor import LoadStationary, MultiplyMoving, TensorInstruction

__all__ = ["INSTRUCTIONS", "MNEMONICS", "decode_instruction", "instruction_type"]

INSTRUCTIONS: dict[Engine, type[Instruction]] = {
    Engine.TENSOR: TensorInstruction,
    Engine.VECTOR: Elementwise,
    Engine.SCALAR: Elementwise,
    Engine.DMA: DmaCopy,
    Engine.COLLECTIVE: Collective,
    Engine.QUEUE: Nop,
}


def _mnemonics() -> dict[str, type[Instruction]]:
    kinds: tuple[Any, ...] = LoadStationary, MultiplyMoving, DmaCopy, Elementwise, Collective, Nop
    names = {kind: [code.name for code in kind.named_by[1]] if kind.named_by else [kind.name] for kind in kinds}
    return {name.lower(): kind for kind in kinds for name in names[kind]}


MNEMONICS = _mnemonics()
"""Class of every instruction, by its mnemonic in assembly."""


def instruction_type(engine: int) -> type[Instruction]:
    """Return the instruction class of an engine; raise ValueError if the engine does not exist."""
    if engine not in INSTRUCTIONS:
        raise ValueError(f"engine must be one of {', '.join(f'{e.name} ({e.value})' for e in Engine)}, not {engine}")
    return INSTRUCTIONS[Engine(engine)]


def decode_instruction(engine: int, body: int, config: Config) -> Instruction:
    """Return the instruction of a record's body; raise ValueError for an unknown engine or code."""
    kind = instruction_type(engine)
    return kind.decode(kind.unpack(body), config)
