"""Random illegal instructions, and images with flipped bits in some records.

There are instructions for every rule that an engine's instructions can break. In an image, a record that breaks a rule
must write nothing; any other record may write what its instruction writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.check.touches import touches_of
from neuroncore_rtl.run.harness.cores import CoreFault
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Opcode, Rule
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_BITS, ELEMENTWISE_FIELDS, Elementwise, elementwise_violation

__all__ = ["Flipped", "Writable", "flipped_image", "illegal_word", "random_word"]

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

LARGEST = 4096  # legal larger ones can take years


class Writable:
    """Bytes that instructions may write: for each storage bool [partitions, bytes]; HBM has one partition."""

    def __init__(self, config: Config, hbm_bytes: int):
        self.config = config
        shapes = {
            isa.Storage.SBUF: (config.partitions, config.sbuf_bytes),
            isa.Storage.PSUM: (config.columns, config.psum_bytes),
            isa.Storage.HBM: (1, hbm_bytes),
        }
        self.masks = {storage: np.zeros(shape, bool) for storage, shape in shapes.items()}

    def add(self, instruction) -> None:
        for touch in touches_of(instruction, self.config):
            mask = self.masks[touch.storage]
            bytes_ = (touch.starts[:, np.newaxis] + np.arange(touch.length)).reshape(-1)
            bytes_ = bytes_[bytes_ < mask.shape[1]]
            if touch.writes and bytes_.size:
                mask[np.ix_(list(touch.partitions) if touch.storage != isa.Storage.HBM else [0], bytes_)] = True


@dataclass(frozen=True)
class Flipped:
    """An image with flipped bits, all instructions that it may execute, and the fault that must occur, if any."""

    image: Image
    instructions: tuple
    fault: CoreFault | None


def flipped_image(rng: np.random.Generator, image: Image, records: int) -> Flipped:
    """Return an image with one to three flipped bits in each of `records` records of a legal image.

    Another bit is flipped instead if the changed record is legal and writes to HBM outside of the image's tensors, or
    takes too long.
    """
    data = bytearray(image.data)
    places = [(block.queue, block.address + isa.RECORD_BYTES * n) for block in image.blocks for n in range(block.count)]
    chosen = rng.choice(len(places), min(records, len(places)), replace=False)
    instructions = {
        address: record.instruction
        for (_, address), record in zip(places, (r for part in image.records for r in part), strict=True)
    }
    fault = None
    for queue, address in (places[number] for number in chosen):
        start = address - image.base
        word = int.from_bytes(data[start : start + isa.RECORD_BYTES], "little")
        changed, fault = _changed(rng, image, queue, address, word, instructions)
        data[start : start + isa.RECORD_BYTES] = changed.to_bytes(isa.RECORD_BYTES, "little")
    executed = tuple(instruction for instruction in instructions.values() if instruction is not None)
    return Flipped(replace(image, data=bytes(data)), executed, fault if records == 1 else None)


def _changed(
    rng, image: Image, queue: int, address: int, word: int, instructions: dict
) -> tuple[int, CoreFault | None]:
    """Return a changed record, and the fault if the record certainly breaks a rule; update `instructions`."""
    engine = isa.engine_of_queue(queue, image.config)
    while True:
        changed = word
        for _ in range(int(rng.integers(1, 4))):
            changed ^= 1 << _meaningful_bit(rng, engine)
        said = changed & 7
        if said not in isa.engines_taken(engine):
            instructions[address] = None
            return changed, CoreFault(queue, isa.Cause.ENGINE, address, said)
        kind = isa.instruction_type(said)
        values = kind.unpack(changed >> isa.HEADER_BITS)
        # Check the record as if all columns of the array were loaded: so the result is independent of other records.
        broken = kind.violation(said, values, isa.Context(image.config, loaded=(range(image.config.columns), True)))
        if broken is not None:
            instructions[address] = None
            # Flipped header bits may prevent the execution of the record.
            certain = changed & (1 << isa.HEADER_BITS) - 1 == word & (1 << isa.HEADER_BITS) - 1
            return changed, CoreFault(queue, int(broken[0]), address, 0) if certain else None
        instruction = kind.decode(values, image.config)
        if _is_tame(instruction, values, image):
            instructions[address] = instruction
            return changed, None


def _meaningful_bit(rng, engine: isa.Engine) -> int:
    """Return the index of a random bit in a field of the record, more often of its instruction than of its header."""
    if rng.random() < 0.25:
        layout, first = isa.HEADER_FIELDS, 0
    else:
        layout, first = isa.INSTRUCTIONS[engine].layout, isa.HEADER_BITS
    starts = first + np.cumsum([0] + [width for _, width in layout])
    fields = [(int(start), width) for start, (name, width) in zip(starts, layout, strict=False) if name != "reserved"]
    start, width = fields[rng.integers(len(fields))]
    return start + int(rng.integers(width))


def _is_tame(instruction: isa.Instruction, values: dict[str, int], image: Image) -> bool:
    if prod(value for name, value in values.items() if name.startswith("count")) > LARGEST:
        return False
    spans = [region.span for region in instruction.writes if region.storage == isa.Storage.HBM]
    return all(image.base + isa.RECORD_BYTES <= low and high <= image.blocks[0].address for low, high in spans)


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
