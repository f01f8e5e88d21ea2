import numpy as np

from neuroncore_rtl.spec import formats, isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import POINTER_FIELDS, Opcode, Rule, Storage, access, elementwise
from neuroncore_rtl.spec.isa.elementwise import Elementwise, elementwise_violation
from neuroncore_rtl.spec.isa.fields import pack, unpack
from tests.hdl.simulation import random_bits

__all__ = ["CONFIGS", "OPCODES", "SIZES", "copy", "legal_fields", "near_word", "random_word"]
OPCODES = isa.VECTOR_OPCODES | isa.SCALAR_OPCODES
CONFIGS = {f"{r}x{c}": Config(rows=r, columns=c) for r, c in ((4, 4), (6, 4), (4, 8), (8, 4))}
CONFIGS["registered"] = Config(rows=4, columns=4, port_latency=1)
CONFIGS["6x4"] = CONFIGS["6x4"].with_overrides(sbuf_bytes=8192, psum_words=64)
ACCESSES = ("dst", "a", "b")
SIZES = {f.code: f.bits // 8 for f in formats.FORMATS.values()}
"""Bytes of a format's elements, by its code."""


def copy(count: int, opcode: Opcode = Opcode.TENSOR_COPY, **changes: int) -> dict[str, int]:
    """Return the fields of an instruction on `count` FP32 words of 4 partitions in SBUF, from address 0 to 1024."""
    fields = {"opcode": opcode, "partitions": 4, "overlap": 1, "count0": count, "dst_address": 1024}
    fields |= dict.fromkeys(("count1", "count2", "count3", "dst_step0", "a_step0", "b_step0"), 1)
    return Elementwise.unpack(0) | fields | changes


def random_word(rng: np.random.Generator, opcodes) -> int:
    word = random_bits(rng, isa.ELEMENTWISE_BITS)
    return word if rng.random() < 0.1 else word & ~63 | int(rng.choice(sorted(opcodes)))


def legal_fields(
    rng: np.random.Generator, config: Config, opcodes, elements: int | None = None, windows: dict | None = None
) -> dict[str, int]:
    """Return the fields of a legal instruction of one of `opcodes`; all fields are random, used or not.

    A dimension has at most `elements` elements, unless the opcode needs more. `windows` are the first byte and the byte
    after the last that instructions read ("source") and write ("result").
    """
    values = Elementwise.unpack(random_word(rng, opcodes)) | {"opcode": int(rng.choice(sorted(opcodes)))}
    integers = [f.code for f in formats.FORMATS.values() if not f.is_float]
    codes = integers if rng.random() < 0.4 else list(SIZES)
    for name in ACCESSES:
        values[f"{name}_dtype"] = int(rng.choice(codes))
    for number in (0, 1):
        _point(values, number, dtype=int(rng.choice(codes)))
    if elements is not None:
        _redraw(rng, config, values, Rule.SHAPE, elements, windows)
    if windows is not None:
        _redraw(rng, config, values, Rule.RANGE, elements, windows)
    for rule in Rule:
        for _ in range(10_000):
            broken = elementwise_violation(values, config, opcodes)
            if broken is None or broken[0] > rule:
                break
            _redraw(rng, config, values, rule, elements, windows)
    assert broken is None, broken
    return values


def near_word(rng: np.random.Generator, config: Config, opcodes) -> int:
    """Return the word of a legal instruction with one field changed: by one, in one bit, or completely."""
    values = unpack(isa.ELEMENTWISE_FIELDS, Elementwise.pack(legal_fields(rng, config, opcodes)))  # without signs
    name, width = isa.ELEMENTWISE_FIELDS[rng.integers(len(isa.ELEMENTWISE_FIELDS))]
    old = values[name]
    changes = (old + 1, old - 1, old ^ 1 << int(rng.integers(width)), random_bits(rng, 64), 0)
    values[name] = changes[rng.integers(len(changes))] % (1 << width)
    return pack(isa.ELEMENTWISE_FIELDS, values)


def _point(values: dict[str, int], number: int, **changes: int) -> None:
    name = f"scalar{number}"
    high = values[name] >> 24 << 24
    values[name] = high | pack(POINTER_FIELDS, unpack(POINTER_FIELDS, values[name]) | changes)


def _redraw(rng, config: Config, values: dict[str, int], rule: Rule, elements: int, windows) -> None:
    opcode = values["opcode"]
    if rule in (Rule.OPERATION, Rule.ARITHMETIC):
        values["op0"], values["op1"] = (int(code) for code in rng.choice(list(isa.AluOp), 2))
        values["function"] = int(rng.integers(elementwise.FUNCTION_COUNT))
    elif rule == Rule.DESTINATION:
        values["dst_dtype"] = values["a_dtype"] if opcode == Opcode.TRANSPOSE else int(rng.choice(list(SIZES)))
        if windows is not None:
            _fit(rng, values, "dst", _window(config, values, "dst", windows))
    elif rule == Rule.ROUNDING:
        values["stochastic"] = 0
    elif rule == Rule.SHAPE:
        values["axes"] = int(rng.integers(1, isa.DIMENSIONS + 1))
        for d in range(isa.DIMENSIONS):
            values[f"count{d}"] = int(rng.integers(1, (elements or 64) + 1)) if rng.random() < 0.5 else 1
        if opcode == Opcode.TRANSPOSE:
            values["count0"] = elementwise.transpose_block(config)
        if opcode in (Opcode.MAX8, Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8):
            values["count1"] = elementwise.VALUES8
    elif rule == Rule.PARTITIONS:
        block = elementwise.transpose_block(config)
        values["partitions"] = block if opcode == Opcode.TRANSPOSE else int(rng.integers(1, config.partitions + 1))
        for name in ACCESSES:
            values[f"{name}_quadrant"] = int(rng.choice([0, 0, 1, 2, 3]))
            values[f"{name}_storage"] = int(rng.integers(2))
        for number in (0, 1):
            _point(values, number, quadrant=int(rng.choice([0, 0, 1, 2, 3])))
    elif rule == Rule.PORTS:
        values[f"{rng.choice(['a', 'b'])}_storage"] = 0
    elif rule == Rule.ALIGNMENT:
        for name in ACCESSES:
            values[f"{name}_address"] &= -4
        for number in (0, 1):
            _point(values, number, address=unpack(POINTER_FIELDS, values[f"scalar{number}"])["address"] & -4)
    elif rule == Rule.RANGE:
        for name in ACCESSES:
            if values[f"{name}_dtype"] in SIZES:
                _fit(rng, values, name, _window(config, values, name, windows))
        for number in (0, 1):
            low, high = _window(config, values, f"s{number}", windows)
            _point(values, number, address=4 * int(rng.integers(low // 4, high // 4)))


def _window(config: Config, values: dict[str, int], name: str, windows: dict | None) -> tuple[int, int]:
    if windows is None:
        return 0, access.storage_bytes(values.get(f"{name}_storage", Storage.SBUF), config)
    return windows["result" if name == "dst" or (name == "b" and "result" in elementwise.uses(values)) else "source"]


def _fit(rng, values: dict[str, int], name: str, window: tuple[int, int]) -> None:
    """Set the steps and the address of the access `name` so that it lies in `window`, often at the window's border."""
    size = SIZES[values[f"{name}_dtype"]]
    limit = window[1] - window[0]
    for d, count in enumerate(elementwise.counts_of(values, name)):
        longest = min((1 << 15) - 1, limit // size // isa.DIMENSIONS // max(count, 1))
        values[f"{name}_step{d}"] = int(rng.integers(-longest, longest + 1)) if rng.random() < 0.8 else 0
    values[f"{name}_address"] = 0
    low, high = elementwise.extent(values, name)
    room = (limit - (high - low)) // size
    position = rng.choice([0, room, int(rng.integers(room + 1))])
    values[f"{name}_address"] = window[0] + int(position) * size - low
