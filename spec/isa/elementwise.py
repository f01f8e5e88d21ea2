"""The instructions of the vector and the scalar engine: one layout, one shape, up to three tensors.

An instruction works on `partitions` lanes and a shape of up to four free dimensions. Every tensor it names steps
through that shape in its own way (:class:`spec.isa.access.Access`), so a broadcast is a step of 0, and a reduction's
destination has no say in the trailing dimensions. Elements are taken in row-major order.
"""

import enum
from dataclasses import dataclass

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import fields
from neuroncore_rtl.spec.isa.access import ACCESS_FIELDS, DIMENSIONS, POINTER_FIELDS, Access, Pointer
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.spec.isa.fields import Layout

__all__ = [
    "ELEMENTWISE_BITS",
    "ELEMENTWISE_FIELDS",
    "Elementwise",
    "Index",
    "Opcode",
    "decode_fields",
    "encode_fields",
    "pack",
    "unpack",
]


class Opcode(enum.IntEnum):
    """What an instruction does, with the names of the published instruction set; the value is the code it carries.

    a and b are the source tensors, s0 and s1 the scalars (immediate, or one a partition), op0 and op1 the operations.
    "reversed" swaps an operation's operands: op(s, x) instead of op(x, s).
    """

    TENSOR_COPY = 1
    """dst = a."""
    MEMSET = 2
    """dst = s0."""
    TENSOR_TENSOR = 3
    """dst = op0(a, b)."""
    TENSOR_SCALAR = 4
    """dst = op1(op0(a, s0), s1), each may be reversed."""
    SCALAR_TENSOR_TENSOR = 5
    """dst = op1(op0(a, s0), b), each may be reversed."""
    TENSOR_SCALAR_REDUCE = 6
    """dst = op0(a, s0), may be reversed; result = op1 over all its elements before dst's cast, in order, at `b`."""
    TENSOR_REDUCE = 7
    """dst = op0 over the `axes` innermost dimensions of a, in order; `negate` changes the sign of the result."""
    TENSOR_TENSOR_SCAN = 8
    """r[i] = op1(op0(a[i], r[i-1]), b[i]), r[-1] = s0, dst[i] = r[i]; each may be reversed."""
    BN_STATS = 9
    """dst[0:6] = count, mean, variance * count of the even elements of a, then of the odd ones, by Welford's method."""
    BN_AGGR = 10
    """dst[0:2] = mean, variance of the union of a's triples (count, mean, variance * count)."""
    RECIPROCAL = 11
    """dst = 1 / a."""
    SELECT = 12
    """dst = b where a is not zero, else s0, or with `keep` what dst held."""
    AFFINE_SELECT = 13
    """dst = a where op0(the index as INT32, 0), op0 a comparison, else s0."""
    IOTA = 14
    """dst = the index as INT32."""
    TRANSPOSE = 15
    """Blocks of B x B elements, B = min(32, partitions of the machine), are transposed, bits untouched: of a block,
    lane p's element j goes to lane j's element p. Dimension 0 has B elements; lanes go in groups of B."""
    MAX8 = 16
    """dst[0:8] = the largest 8 elements of a, descending; NaN is above all."""
    FIND_INDEX8 = 17
    """dst[k] = row-major position in a of the value b[k], -1 if there is none. Each element of a matches at most one
    value, the first of those not yet found that equals it, so that repeated values find successive positions. NaN
    equals NaN here, and -0 equals +0."""
    MATCH_REPLACE8 = 18
    """dst = a, with the elements that FIND_INDEX8 would find replaced by s0."""
    DROPOUT = 19
    """dst = 0 where word 1 of the element's random words / 2**32 is below s0 (a probability, FP32), else a."""
    ACTIVATE = 32
    """The scalar engine: y = function(a * s0 + s1), fused; dst = y; the running sum adds y before dst's cast."""


_ACCESSES = ("dst", "a", "b")

ELEMENTWISE_FIELDS: tuple[tuple[str, int], ...] = (
    ("opcode", 6),
    ("overlap", 1),
    ("op0", 5),
    ("op1", 5),
    ("reverse0", 1),
    ("reverse1", 1),
    ("axes", 3),
    ("negate", 1),
    ("keep", 1),
    ("function", 6),
    ("sum_continue", 1),
    ("sum_store", 1),
    ("stochastic", 1),
    ("partitions", 11),
    *((f"count{dimension}", 16) for dimension in range(DIMENSIONS)),
    *((f"{access}_{name}", width) for access in _ACCESSES for name, width in ACCESS_FIELDS),
    ("pointer0", 1),
    ("scalar0", 32),
    ("pointer1", 1),
    ("scalar1", 32),
    ("alpha", 32),
    ("seed", 32),
    ("stream", 32),
    ("index", 64),
    ("index_partition", 32),
    *((f"index_step{dimension}", 32) for dimension in range(DIMENSIONS)),
)
"""Name and width of each field, from the least significant bit up. Dimension 0 is the innermost; steps are two's
complement. pointer0 says that scalar0 holds a :class:`Pointer` (`POINTER_FIELDS`), else it is a word of the
instruction's arithmetic, FP32 or INT32; so pointer1."""

ELEMENTWISE_BITS = sum(width for _, width in ELEMENTWISE_FIELDS)
"""Width of an instruction in bits."""


@dataclass(frozen=True, kw_only=True)
class Index:
    """The number of an element in its tensor, an affine function of its place in the instruction.

    base + lane * partition + the sum of index[d] * steps[d], modulo 2**64 (read as INT32 by IOTA and AFFINE_SELECT,
    modulo 2**32). With (seed, stream) it decides the element's random words, so it must not depend on how the tensor
    was cut into instructions.

    Arguments:
        base: 64 bits, may be negative.
        partition: from one lane to the next, 32 bits signed.
        steps: for each dimension of the shape, outermost first, 32 bits signed.
    """

    base: int = 0
    partition: int = 0
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Elementwise:
    """One instruction of the vector or the scalar engine. What an opcode does not use keeps its default.

    Arguments:
        opcode: what it does.
        partitions: lanes that take part; lane i works on partition start + i of each tensor.
        shape: counts of the free dimensions, outermost first; of a, and of dst where it is written element by element.
        dst: destination.
        a, b: sources; of TENSOR_SCALAR_REDUCE and ACTIVATE b is where the reduction's result goes, its steps unused.
        op0, op1, reverse0, reverse1: operations, see :class:`Opcode`.
        s0, s1: scalars: an int is a 32-bit word of the instruction's arithmetic, FP32 bits or INT32.
        axes: innermost dimensions that TENSOR_REDUCE reduces.
        negate: change the sign of TENSOR_REDUCE's result.
        keep: SELECT leaves dst alone where the predicate is zero.
        function: code of ACTIVATE's function (`spec.functions`); alpha: its parameter, FP32 bits.
        sum_continue: ACTIVATE adds to the lanes' running sums instead of starting them from +0.
        sum_store: ACTIVATE stores the running sums at b when it has finished.
        stochastic: round dst's cast stochastically, by seed, stream and index.
        seed, stream: 32 bits each.
        index: the elements' numbers in their tensor.
        overlap: may start reading while earlier instructions are still writing: nothing they write is read here.
    """

    opcode: Opcode
    partitions: int
    shape: tuple[int, ...]
    dst: Access
    a: Access | None = None
    b: Access | None = None
    op0: AluOp = AluOp.BYPASS
    op1: AluOp = AluOp.BYPASS
    reverse0: bool = False
    reverse1: bool = False
    s0: int | Pointer = 0
    s1: int | Pointer = 0
    axes: int = 0
    negate: bool = False
    keep: bool = False
    function: int = 0
    alpha: int = 0
    sum_continue: bool = False
    sum_store: bool = False
    stochastic: bool = False
    seed: int = 0
    stream: int = 0
    index: Index = Index()
    overlap: bool = False

    def fields(self, config: Config) -> dict[str, int]:
        """Return the value of every field, as :func:`decode_fields` returns it.

        Raises:
            ValueError: if a value cannot be encoded: it does not fit its field, a partition is not the start of a
                quadrant, or the steps of a tensor are not one for each dimension.
        """
        if not 1 <= len(self.shape) <= DIMENSIONS:
            raise ValueError(f"shape must have 1 to {DIMENSIONS} dimensions, not {self.shape!r}")
        values = {name: 0 for name, _ in ELEMENTWISE_FIELDS}
        plain = ("opcode", "op0", "op1", "reverse0", "reverse1", "axes", "negate", "keep", "function", "alpha",
                 "sum_continue", "sum_store", "stochastic", "seed", "stream", "overlap", "partitions")  # fmt: skip
        values |= {name: int(getattr(self, name)) for name in plain}
        values |= {f"count{d}": 1 for d in range(DIMENSIONS)}
        values |= {f"count{d}": count for d, count in enumerate(reversed(self.shape))}
        for name in _ACCESSES:
            access = getattr(self, name)
            if access is not None:
                values |= {f"{name}_{field}": value for field, value in self._access(name, access, config).items()}
        for number, scalar in enumerate((self.s0, self.s1)):
            pointer = isinstance(scalar, Pointer)
            values[f"pointer{number}"] = int(pointer)
            where = f"s{number}"
            values[f"scalar{number}"] = (
                pack(POINTER_FIELDS, _pointer(where, scalar, config), where) if pointer else scalar & 0xFFFF_FFFF
            )
        values |= {"index": self.index.base, "index_partition": self.index.partition}
        if len(self.index.steps) not in (0, len(self.shape)):
            raise ValueError(
                f"index.steps must be one for each of {len(self.shape)} dimensions, not {self.index.steps!r}"
            )
        values |= {f"index_step{d}": step for d, step in enumerate(reversed(self.index.steps))}
        return values

    def _access(self, name: str, access: Access, config: Config) -> dict[str, int]:
        if len(access.steps) != len(self.shape):
            raise ValueError(f"{name}.steps must be one for each of {len(self.shape)} dimensions, not {access.steps!r}")
        steps = {f"step{d}": step for d, step in enumerate(reversed(access.steps))}
        return _pointer(name, access, config) | {"storage": int(access.storage)} | steps

    def encode(self, config: Config) -> int:
        """Return the instruction word.

        Raises:
            ValueError: as :meth:`fields`.
        """
        return encode_fields(self.fields(config))


def _pointer(name: str, pointer: Pointer | Access, config: Config) -> dict[str, int]:
    quadrant, rest = divmod(pointer.partition, config.quadrant)
    if rest or not 0 <= quadrant < 4:
        starts = ", ".join(str(q * config.quadrant) for q in range(config.partitions // config.quadrant))
        raise ValueError(f"{name}.partition must be one of {starts}, not {pointer.partition!r}")
    return {"address": pointer.address, "quadrant": quadrant, "dtype": pointer.format.code}


_SIGNED = frozenset(
    {"index", "index_partition"}
    | {f"index_step{d}" for d in range(DIMENSIONS)}
    | {f"{access}_step{d}" for access in _ACCESSES for d in range(DIMENSIONS)}
)


def pack(layout: Layout, values: dict[str, int], place: str = "") -> int:
    """Return the word of the fields of a layout of this module; see :func:`spec.isa.fields.pack`."""
    return fields.pack(layout, values, place, _SIGNED)


def unpack(layout: Layout, word: int) -> dict[str, int]:
    """Return the fields of a word of a layout of this module; those that may be negative are."""
    return fields.unpack(layout, word, _SIGNED)


def encode_fields(values: dict[str, int]) -> int:
    """Return the instruction word of the fields' values; ValueError names a field that its value does not fit."""
    return pack(ELEMENTWISE_FIELDS, values)


def decode_fields(word: int) -> dict[str, int]:
    """Return the value of every field of an instruction word."""
    return unpack(ELEMENTWISE_FIELDS, word)
