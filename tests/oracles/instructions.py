"""Random legal instructions of the vector and the scalar engine, and memories worth reading."""

import numpy as np

from neuroncore_rtl.golden.arith import round_fp32, storage_dtype
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS, Format
from neuroncore_rtl.spec.isa import Access, AluOp, Elementwise, Index, Opcode, Pointer, Storage
from neuroncore_rtl.spec.isa.access import storage_partitions
from neuroncore_rtl.spec.isa.alu import BITWISE, COMPARISONS, FLOAT_ONLY, REDUCTIONS, SLOW
from neuroncore_rtl.spec.isa.elementwise import FUNCTION_COUNT, OUTPUTS, elementwise_violation, transpose_block
from neuroncore_rtl.tb.stimulus.operands import ordinary_codes, random_codes

__all__ = ["SEARCHES", "random_access", "random_instruction", "random_memories"]

SEARCHES = (Opcode.MAX8, Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)
_INTEGERS = [fmt for fmt in FORMATS.values() if not fmt.is_float]
_B = {Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_TENSOR_SCAN, Opcode.SELECT}
_STOCHASTIC = frozenset(Opcode) - {
    Opcode.BN_STATS, Opcode.BN_AGGR, Opcode.AFFINE_SELECT, Opcode.IOTA, Opcode.TRANSPOSE, *SEARCHES,
}  # fmt: skip


def random_instruction(
    rng: np.random.Generator, opcode: Opcode, config: Config, sizes: tuple[int, int], most: int = 48
) -> Elementwise:
    """Return a legal instruction of an opcode, of any formats, shape, steps, places and options.

    Arguments:
        rng: the generator.
        opcode: what it does.
        config: the machine's parameters.
        sizes: bytes of a partition of SBUF and of PSUM that it may touch.
        most: elements of a lane, about.
    """
    for _ in range(1000):
        instruction = _attempt(rng, opcode, config, sizes, most)
        if instruction is None:
            continue
        if elementwise_violation(instruction.fields(config), config, frozenset(Opcode)) is None:
            return instruction
    raise AssertionError(f"no legal {opcode.name} found")


def random_memories(
    rng: np.random.Generator, config: Config, sizes: tuple[int, int], instruction: Elementwise
) -> tuple[np.ndarray, np.ndarray]:
    """Return SBUF and PSUM, uint8 [partitions, bytes], that hold operands an instruction can do something with."""
    memories = []
    for storage, size in zip((Storage.SBUF, Storage.PSUM), sizes, strict=True):
        accesses = [instruction.a, instruction.b, instruction.s0, instruction.s1]
        formats = [a.format for a in accesses if isinstance(a, Access | Pointer)]
        fmt = formats[rng.integers(len(formats))] if formats else FORMATS["fp32"]
        rows = storage_partitions(storage, config)
        codes = _codes(rng, fmt, rows * size * 8 // fmt.bits, instruction.opcode)
        memory = codes.astype(storage_dtype(fmt).newbyteorder("<")).view(np.uint8).reshape(rows, size)
        memories.append(memory)
    for number in ("s0", "s1"):
        scalar = getattr(instruction, number)
        if isinstance(scalar, Pointer):
            codes = _codes(rng, scalar.format, instruction.partitions, instruction.opcode)
            words = codes.astype(storage_dtype(scalar.format).newbyteorder("<")).view(np.uint8)
            rows = slice(scalar.partition, scalar.partition + instruction.partitions)
            memories[0][rows, scalar.address : scalar.address + scalar.format.bits // 8] = words.reshape(
                instruction.partitions, -1
            )
    return tuple(memories)


def random_access(
    rng: np.random.Generator,
    config: Config,
    fmt: Format,
    lanes: int,
    shape: tuple[int, ...],
    sizes: tuple[int, int],
    counts: tuple[int, ...] | None = None,
    storage: Storage | None = None,
) -> Access | None:
    """Return an access of any steps and place, or None if that did not fit.

    Arguments:
        counts: those that it steps through, if not `shape`: outermost first.
        storage: None: either.
    """
    counts = shape if counts is None else counts
    storage = Storage(int(rng.integers(2))) if storage is None else storage
    starts = [
        q * config.quadrant
        for q in range(config.partitions // config.quadrant)
        if q * config.quadrant + lanes <= storage_partitions(storage, config)
        and (q == 0 or lanes <= config.quadrant or (q == 2 and lanes <= 2 * config.quadrant))
    ]
    if not starts:
        return None
    steps, reach = [0] * len(counts), 1
    padded = rng.random() < 0.5
    for d in rng.permutation(len(counts)):
        steps[d] = 0 if rng.random() < 0.1 else reach * int(rng.choice([-1, 1]))
        reach = max(reach, abs(steps[d]) * counts[d] + (int(rng.integers(3)) if padded else 0))
    if rng.random() < 0.1:  # anything: elements may meet
        steps = [int(step) for step in rng.integers(-3, 4, len(counts))]
    spans = [(count - 1) * step for count, step in zip(counts, steps, strict=True)]
    low, high = sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)
    size = fmt.bits // 8
    room = sizes[storage] // size - (high - low)
    if room < 1:
        return None
    address = size * (int(rng.integers(room)) - low)
    return Access(format=fmt, address=address, partition=int(rng.choice(starts)), storage=storage, steps=tuple(steps))


def _attempt(rng, opcode, config, sizes, most) -> Elementwise | None:
    integer = rng.random() < 0.35 or (opcode in (Opcode.IOTA,) and rng.random() < 0.5)
    formats = _INTEGERS if integer else list(FORMATS.values())
    lanes = int(rng.integers(1, config.partitions + 1))
    shape = _shape(rng, most)
    if opcode is Opcode.BN_AGGR:
        shape = (*shape[:-1], 3 * int(rng.integers(1, 5)))
    if opcode is Opcode.TRANSPOSE:
        block = transpose_block(config)
        shape, lanes = (
            (*(min(n, 2) for n in shape[:-1]), block),
            block * int(rng.integers(1, config.partitions // block + 1)),
        )

    def access(counts=None, storage=None, fmt=None):
        fmt = _pick(rng, formats) if fmt is None else fmt
        return random_access(rng, config, fmt, lanes, shape, sizes, counts, storage)

    few = (1,) * (len(shape) - 1)
    options = {"a": None, "b": None}
    if opcode not in (Opcode.MEMSET, Opcode.IOTA):
        options["a"] = access(fmt=_pick(rng, list(FORMATS.values())) if opcode is Opcode.SELECT else None)
    if opcode in _B:
        options["b"] = access()
    if opcode in (Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8):
        options["b"] = access((*few, 8))
    options["sum_store"] = opcode is Opcode.ACTIVATE and bool(rng.integers(2))
    if opcode is Opcode.TENSOR_SCALAR_REDUCE or options["sum_store"]:
        options["b"] = access((*few, 1))
    axes = int(rng.integers(1, 5)) if opcode is Opcode.TENSOR_REDUCE else 0
    counts = tuple(1 if len(shape) - d <= axes else n for d, n in enumerate(shape))
    dst_format = {Opcode.TRANSPOSE: options["a"] and options["a"].format, Opcode.FIND_INDEX8: _pick(rng, _INTEGERS)}
    counts = (*few, OUTPUTS[opcode]) if opcode in OUTPUTS else counts
    dst = access(counts, fmt=dst_format.get(opcode))
    if dst is None or any(options[name] is None for name in "ab" if name in _needed(opcode, options)):
        return None
    ops = {name: _operation(rng, opcode, name, integer) for name in ("op0", "op1")}
    bits = {name: bool(rng.integers(2)) for name in ("reverse0", "reverse1", "negate", "keep", "sum_continue")}
    return Elementwise(
        opcode=opcode,
        partitions=lanes,
        shape=shape,
        dst=dst,
        **options,
        **ops,
        **bits,
        s0=_scalar(rng, opcode, config, formats, lanes, sizes, integer),
        s1=_scalar(rng, opcode, config, formats, lanes, sizes, integer),
        axes=axes,
        function=int(rng.integers(FUNCTION_COUNT)) if opcode is Opcode.ACTIVATE else 0,
        alpha=int(random_codes(rng, FORMATS["fp32"], 1)[0]),
        stochastic=opcode in _STOCHASTIC and not integer and bool(rng.integers(2)),
        seed=int(rng.integers(1 << 32)),
        stream=int(rng.integers(1 << 32)),
        index=_index(rng, len(shape)),
    )


def _needed(opcode, options) -> str:
    if opcode in (Opcode.MEMSET, Opcode.IOTA):
        return ""
    pairs = _B | {Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8, Opcode.TENSOR_SCALAR_REDUCE}
    return "ab" if opcode in pairs or options["sum_store"] else "a"


def _pick(rng, choices):
    return choices[rng.integers(len(choices))]


def _shape(rng, most) -> tuple[int, ...]:
    rank = int(rng.integers(1, 5))
    largest = {1: most, 2: max(2, most // 5), 3: 4, 4: 3}[rank]
    return tuple(int(n) for n in rng.integers(1, largest + 1, rank))


def _operation(rng, opcode, name, integer) -> AluOp:
    allowed = set(AluOp) - (FLOAT_ONLY if integer else BITWISE)
    if (opcode, name) in {(Opcode.TENSOR_REDUCE, "op0"), (Opcode.TENSOR_SCALAR_REDUCE, "op1")}:
        allowed &= REDUCTIONS
    if opcode is Opcode.TENSOR_TENSOR_SCAN:
        allowed -= SLOW
    if opcode is Opcode.AFFINE_SELECT and name == "op0":
        allowed = set(COMPARISONS)
    return _pick(rng, sorted(allowed))


def _scalar(rng, opcode, config, formats, lanes, sizes, integer) -> int | Pointer:
    if rng.random() < 0.5:
        return int(_codes(rng, FORMATS["int32" if integer and opcode is not Opcode.DROPOUT else "fp32"], 1, opcode)[0])
    place = random_access(rng, config, _pick(rng, formats), lanes, (1,), sizes, storage=Storage.SBUF)
    return Pointer(format=place.format, address=place.address, partition=place.partition)


def _index(rng, rank) -> Index:
    if rng.random() < 0.5:
        low, high = -40, 40
        base = int(rng.integers(low, high))
    else:
        low, high = -(1 << 31), 1 << 31
        base = int(rng.integers(-(1 << 63), 1 << 63, dtype=np.int64))
    steps = tuple(int(step) for step in rng.integers(low, high, rank))
    return Index(base=base, partition=int(rng.integers(low, high)), steps=steps)


def _codes(rng, fmt: Format, n: int, opcode: Opcode) -> np.ndarray:
    """Return codes that are near one, here and there special or zero; of few values for searches."""
    if opcode in SEARCHES:
        pool = np.array([0.0, -0.0, 1, -1, 2, 3, 100, np.inf, -np.inf, np.nan, 0.5, -7], np.float32)
        return rng.choice(round_fp32(pool.view(np.uint32), fmt), n)
    if opcode is Opcode.DROPOUT and fmt.is_float and n < 64:
        pool = np.array([0.0, 0.1, 0.5, 0.9, 1, 2, -1, np.nan], np.float32)
        return rng.choice(round_fp32(pool.view(np.uint32), fmt), n)
    kinds = [ordinary_codes(rng, fmt, n), random_codes(rng, fmt, n), np.zeros(n, storage_dtype(fmt))]
    return np.choose(rng.choice(3, n, p=[0.9, 0.04, 0.06]), kinds).astype(storage_dtype(fmt))
