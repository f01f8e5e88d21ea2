"""Random illegal instructions, for every rule that an engine's instructions can break."""

from collections.abc import Sequence

import numpy as np

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Opcode, Rule
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_BITS, ELEMENTWISE_FIELDS, Elementwise, elementwise_violation

__all__ = ["illegal_word", "random_word"]

ATTEMPTS = 3000  # changed instructions to try before a rule counts as unbreakable

_PARTS: dict[Rule, tuple[str, ...]] = {
    Rule.OPCODE: ("opcode",),
    Rule.FORMAT: ("dtype", "scalar"),
    Rule.OPERATION: ("op0", "op1", "function"),
    Rule.ARITHMETIC: ("op0", "op1", "dtype"),
    Rule.DESTINATION: ("dtype", "opcode"),
    Rule.ROUNDING: ("stochastic", "dtype", "opcode"),
    Rule.SHAPE: ("count", "axes", "opcode"),
    Rule.PARTITIONS: ("partitions", "quadrant", "scalar"),
    Rule.PORTS: ("storage",),
    Rule.ALIGNMENT: ("address", "scalar"),
    Rule.RANGE: ("address", "step", "count", "scalar"),
}
"""By rule, parts of the names of the fields that are changed to break it."""


def random_word(rng: np.random.Generator) -> int:
    """Return a random word, as wide as an instruction."""
    return int.from_bytes(rng.bytes(-(-ELEMENTWISE_BITS // 8)), "little") & ((1 << ELEMENTWISE_BITS) - 1)


def illegal_word(
    rng: np.random.Generator, config: Config, opcodes: frozenset[Opcode], rule: Rule, legal: Sequence[int]
) -> int | None:
    """Return an instruction that breaks `rule` and no earlier rule; None if the engine's opcodes cannot break it."""
    candidates = [(name, width) for name, width in ELEMENTWISE_FIELDS if any(part in name for part in _PARTS[rule])]
    for _ in range(ATTEMPTS):
        values = Elementwise.unpack(legal[rng.integers(len(legal))])
        for _ in range(int(rng.integers(1, 4))):
            name, width = candidates[rng.integers(len(candidates))]
            values[name] = _other(rng, name, width, values[name])
        broken = elementwise_violation(values, config, opcodes)
        if broken is not None and broken[0] == rule:
            return Elementwise.pack(values)
    return None


def _other(rng: np.random.Generator, name: str, width: int, value: int) -> int:
    """Return a value for a field: an end of its range, a neighbour, one flipped bit, or any value."""
    anything = int.from_bytes(rng.bytes(8), "little")
    bits = (0, (1 << width) - 1, value + 1, value - 1, value ^ 1 << int(rng.integers(width)), anything)
    chosen = bits[rng.integers(len(bits))] & ((1 << width) - 1)
    return chosen - (chosen >> (width - 1) << width) if name in Elementwise.signed else chosen
