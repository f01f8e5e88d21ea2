"""Vector and scalar engine element by element in Python: one lane, one element, one operation at a time.

The oracle reads the fields of the instruction's word, so it does not share the golden interpreter's view of a record.
It computes with float32, Python integers or fractions. Codes are decoded and rounded by golden.arith; POWER and the
activation functions are golden's, because separate oracles check them.
"""

import operator
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np

from neuroncore_rtl.golden.arith import decode, power_fp32, round_fp32, threefry2x32
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS, FP32, UINT32
from neuroncore_rtl.spec.isa import AluOp, Opcode, access, fields
from tests.oracles.exact import round_exactly

__all__ = ["INTEGER", "execute"]

_FORMATS = {fmt.code: fmt for fmt in FORMATS.values()}
_NAN = np.float32(np.nan)
_ZERO, _ONE = np.float32(0), np.float32(1)

_FEW = {Opcode.BN_STATS, Opcode.BN_AGGR, Opcode.MAX8, Opcode.FIND_INDEX8}
"""Opcodes that write only a few elements along dimension 0, whatever the source's length."""

_DECIDE = {
    Opcode.TENSOR_COPY: "dst a", Opcode.MEMSET: "dst s0", Opcode.TENSOR_TENSOR: "dst a b",
    Opcode.TENSOR_SCALAR: "dst a s0 s1", Opcode.SCALAR_TENSOR_TENSOR: "dst a b s0",
    Opcode.TENSOR_SCALAR_REDUCE: "dst a b s0", Opcode.TENSOR_REDUCE: "dst a", Opcode.TENSOR_TENSOR_SCAN: "dst a b s0",
    Opcode.SELECT: "dst b s0", Opcode.AFFINE_SELECT: "dst a s0", Opcode.IOTA: "dst", Opcode.MAX8: "dst a",
    Opcode.FIND_INDEX8: "a b", Opcode.MATCH_REPLACE8: "dst a b s0", Opcode.DROPOUT: "dst a s0",
}  # fmt: skip
"""By opcode, the operands that must have integer formats if the arithmetic is on integers; other opcodes use floats."""

_OPERANDS = {opcode: names.removeprefix("dst ") for opcode, names in _DECIDE.items()} | {
    Opcode.MEMSET: "dst s0", Opcode.TENSOR_SCALAR_REDUCE: "a s0", Opcode.IOTA: "dst", Opcode.DROPOUT: "a",
}  # fmt: skip
"""By opcode, the operands with formats that determine whether integers are signed."""


def execute(v: dict[str, int], config: Config, sbuf: np.ndarray, psum: np.ndarray, sums=None, function=None) -> None:
    """Execute a legal instruction's fields on uint8 memories and, for ACTIVATE, the lanes' running sums, in place."""
    if v["opcode"] == Opcode.TRANSPOSE:
        _transpose(v, config, (sbuf, psum))
        return
    lanes = [_Lane(v, config, (sbuf, psum), lane, sums, function) for lane in range(v["partitions"])]
    # Every lane reads before any of them writes.
    with np.errstate(all="ignore"):
        results = [_RUN[lane.opcode](lane) for lane in lanes]
    for lane, result in zip(lanes, results, strict=True):
        lane.write("dst", result)
        if lane.total is not None:
            lane.write("b", {(0, 0, 0, 0): lane.total})


def _formats(v, names: dict) -> list:
    """Return the formats of the operands and results that a table names for the opcode, if they are in memory."""
    chosen = names.get(v["opcode"], "").split()
    codes = [v[f"{name}_dtype"] for name in chosen if not name.startswith("s")]
    codes += [_pointer(v, n)["dtype"] for n in (0, 1) if f"s{n}" in chosen and v[f"pointer{n}"]]
    return [_FORMATS[code] for code in codes]


def _is_integer(v) -> bool:
    formats = _formats(v, _DECIDE)
    return bool(formats) and not any(fmt.is_float for fmt in formats)


def _pointer(v, number):
    return fields.unpack(access.POINTER_FIELDS, v[f"scalar{number}"])


def _places(v) -> list[tuple[int, ...]]:
    return list(product(*(range(v[f"count{d}"]) for d in (3, 2, 1, 0))))


def _along(place, base, name, v) -> int:
    return base + sum(i * v[f"{name}_step{d}"] for i, d in zip(place, (3, 2, 1, 0), strict=True))


def _address(v, name, place) -> int:
    return v[f"{name}_address"] + _FORMATS[v[f"{name}_dtype"]].bits // 8 * _along(place, 0, name, v)


def _transpose(v, config, memories) -> None:
    size = _FORMATS[v["a_dtype"]].bits // 8
    block = min(32, config.partitions)
    source, target = (memories[v[f"{name}_storage"]] for name in ("a", "dst"))
    moved = []
    for place, lane in product(_places(v), range(v["partitions"])):
        group, p = divmod(lane, block)
        row = v["a_quadrant"] * config.quadrant + lane
        address = _address(v, "a", place)
        to = v["dst_quadrant"] * config.quadrant + group * block + place[3], _address(v, "dst", (*place[:3], p))
        moved.append((*to, source[row, address : address + size].copy()))
    for row, address, data in moved:
        target[row, address : address + size] = data


class _Lane:
    """Values that an instruction reads and writes in one partition; a reduction's result, `total`, is written at b."""

    def __init__(self, v, config, memories, lane, sums, function):
        self.v, self.config, self.memories, self.lane = v, config, memories, lane
        self.sums, self.function = sums, function
        self.opcode, self.integer, self.places = Opcode(v["opcode"]), _is_integer(v), _places(v)
        unsigned = self.integer and UINT32 in _formats(v, _OPERANDS)
        self.wrap = (lambda value: value % (1 << 32)) if unsigned else _signed
        self.total = None

    a = property(lambda self: self.values("a", self.places))
    b = property(lambda self: self.values("b", self.places))

    def row(self, storage, quadrant) -> np.ndarray:
        return self.memories[storage][quadrant * self.config.quadrant + self.lane]

    def read(self, row, starts, dtype, integer):
        fmt = _FORMATS[dtype]
        size = fmt.bits // 8
        codes = [int.from_bytes(row[start : start + size].tobytes(), "little") for start in starts]
        if integer:
            return [self.wrap(code - (fmt.signed * (code >> (fmt.bits - 1)) << fmt.bits)) for code in codes]
        return list(decode(np.array(codes, np.int64), fmt).astype(np.float32))

    def values(self, name, places, integer=None):
        storage, quadrant, dtype = (self.v[f"{name}_{field}"] for field in ("storage", "quadrant", "dtype"))
        starts = [_address(self.v, name, place) for place in places]
        return self.read(self.row(storage, quadrant), starts, dtype, self.integer if integer is None else integer)

    def scalar(self, number, integer=None):
        integer = self.integer if integer is None else integer
        if self.v[f"pointer{number}"]:
            at = _pointer(self.v, number)
            return self.read(self.row(0, at["quadrant"]), [at["address"]], at["dtype"], integer)[0]
        word = self.v[f"scalar{number}"]
        return self.wrap(word) if integer else np.uint32(word).view(np.float32)

    def operate(self, op, x, y):
        return self.calculate(AluOp(self.v[op]), x, y)

    def calculate(self, op, x, y):
        result = _operate(op, x, y, self.integer)
        return self.wrap(result) if self.integer else result

    def op(self, number, x, y):
        return self.operate(f"op{number}", *((y, x) if self.v[f"reverse{number}"] else (x, y)))

    def number(self, place) -> int:
        return _along(place, self.v["index"] + self.lane * self.v["index_partition"], "index", self.v) % (1 << 64)

    def random(self, place):
        number = self.number(place)
        return threefry2x32((self.v["seed"], self.v["stream"]), (number & 0xFFFFFFFF, number >> 32))

    def last_of(self, place):
        kept = 4 - (self.v["axes"] if self.opcode is Opcode.TENSOR_REDUCE else 0)
        return *place[:kept], *self.places[-1][kept:]

    def write(self, name, results) -> None:
        if isinstance(results, list):
            few = [(0, 0, 0, k) for k in range(len(results))]
            results = dict(zip(few if self.opcode in _FEW else self.places, results, strict=True))
        fmt = _FORMATS[self.v[f"{name}_dtype"]]
        row = self.row(self.v[f"{name}_storage"], self.v[f"{name}_quadrant"])
        if self.integer or self.opcode is Opcode.FIND_INDEX8:
            found = list(results.values())
            if self.opcode is Opcode.FIND_INDEX8 and not fmt.signed:
                found = [fmt.max if value < 0 else value for value in found]
            codes = [min(max(value, fmt.min), fmt.max) & ((1 << fmt.bits) - 1) for value in found]
        else:
            bits = np.array(list(results.values()), np.float32).view(np.uint32)
            draws = None
            if self.v["stochastic"] and name == "dst":
                draws = np.array([int(self.random(self.last_of(place))[0]) for place in results], np.uint32)
            codes = round_fp32(bits, fmt, "rne" if draws is None else "sr", draws)
        for place, code in zip(results, codes, strict=True):
            start = _address(self.v, name, place)
            data = int(code).to_bytes(fmt.bits // 8, "little")
            row[start : start + len(data)] = np.frombuffer(data, np.uint8)


def _signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _magnitude(value: int) -> int:
    return value if value == -(1 << 31) else abs(value)


_TRUTH = {
    AluOp.IS_EQUAL: operator.eq, AluOp.NOT_EQUAL: operator.ne, AluOp.IS_GT: operator.gt, AluOp.IS_GE: operator.ge,
    AluOp.IS_LT: operator.lt, AluOp.IS_LE: operator.le,
    AluOp.LOGICAL_AND: lambda x, y: x != 0 and y != 0, AluOp.LOGICAL_OR: lambda x, y: x != 0 or y != 0,
    AluOp.LOGICAL_XOR: lambda x, y: (x != 0) != (y != 0),
}  # fmt: skip

INTEGER = _TRUTH | {
    AluOp.BYPASS: lambda x, y: x,
    AluOp.ADD: operator.add, AluOp.SUBTRACT: operator.sub, AluOp.MULTIPLY: operator.mul, AluOp.MAX: max, AluOp.MIN: min,
    AluOp.ABSOLUTE_MAX: lambda x, y: max(_magnitude(x), _magnitude(y)),
    AluOp.LARGER_MAGNITUDE: lambda x, y: x if _magnitude(x) > _magnitude(y) else y,
    AluOp.SMALLER_MAGNITUDE: lambda x, y: x if _magnitude(x) < _magnitude(y) else y,
    AluOp.BITWISE_AND: operator.and_, AluOp.BITWISE_OR: operator.or_, AluOp.BITWISE_XOR: operator.xor,
    AluOp.LOGICAL_SHIFT_LEFT: lambda x, y: x << y if 0 <= y < 32 else 0,
    AluOp.LOGICAL_SHIFT_RIGHT: lambda x, y: x % (1 << 32) >> y if 0 <= y < 32 else 0,
}  # fmt: skip
"""Operations on Python integers; their results are taken modulo 2**32."""

_FLOAT = {
    AluOp.BYPASS: lambda x, y: x, AluOp.ADD: operator.add, AluOp.SUBTRACT: operator.sub, AluOp.MULTIPLY: operator.mul,
    AluOp.DIVIDE: operator.truediv,
    AluOp.POWER: lambda x, y: np.float32(power_fp32(x, y)),
    AluOp.MAX: lambda x, y: _pick(max, x, y), AluOp.MIN: lambda x, y: _pick(min, x, y),
    AluOp.ABSOLUTE_MAX: lambda x, y: _pick(max, abs(x), abs(y)),
    AluOp.LARGER_MAGNITUDE: lambda x, y: x if abs(x) > abs(y) else y,
    AluOp.SMALLER_MAGNITUDE: lambda x, y: x if abs(x) < abs(y) else y,
    AluOp.FLOOR: lambda x, y: np.floor(x), AluOp.CEIL: lambda x, y: np.ceil(x), AluOp.TRUNC: lambda x, y: np.trunc(x),
    AluOp.MOD: np.mod, AluOp.FMOD: np.fmod,
}  # fmt: skip


def _pick(most, x, y):
    if np.isnan(x) or np.isnan(y):
        return _NAN
    return most(x, y, key=lambda value: (value, not np.signbit(value)))


def _operate(op, x, y, integer):
    if integer:
        return int(INTEGER[op](x, y))
    return np.float32(_TRUTH[op](x, y)) if op in _TRUTH else _FLOAT[op](x, y)


def _fma(x, y, z):
    """Return x * y + z rounded once, by rational numbers; by float64 if an operand is not finite or the sum is zero."""
    if np.isfinite((x, y, z)).all():
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if exact != 0:
            return np.float32(round_exactly(exact, FP32))
    return np.float32(np.float64(x) * np.float64(y) + np.float64(z))


def _tensor_scalar_reduce(lane):
    s0 = lane.scalar(0)
    results = [lane.op(0, x, s0) for x in lane.a]
    lane.total = reduce(lambda total, x: lane.operate("op1", total, x), results)
    return results


def _tensor_reduce(lane):
    groups, axes = {}, lane.v["axes"]
    for place, value in zip(lane.places, lane.a, strict=True):
        groups.setdefault((*place[: 4 - axes], *(0,) * axes), []).append(value)
    totals = {kept: reduce(lambda total, x: lane.operate("op0", total, x), values) for kept, values in groups.items()}
    if lane.v["negate"]:
        return {kept: lane.wrap(-total) if lane.integer else -total for kept, total in totals.items()}
    return totals


def _scan(lane):
    r, results = lane.scalar(0), []
    for x, y in zip(lane.a, lane.b, strict=True):
        r = lane.op(1, lane.op(0, x, r), y)
        results.append(r)
    return results


def _bn_stats(lane):
    found, values = [], lane.a
    for stream in (values[0::2], values[1::2]):
        mean = m2 = _ZERO
        for k, x in enumerate(stream, start=1):
            d = x - mean
            mean = _fma(d, _ONE / np.float32(k), mean)
            m2 = _fma(d, x - mean, m2)
        found += [np.float32(len(stream)), mean, m2]
    return found


def _bn_aggr(lane):
    values = lane.a
    n = mean = m2 = _ZERO
    for nb, mb, m2b in zip(values[0::3], values[1::3], values[2::3], strict=True):
        if nb == 0:
            continue
        total = n + nb
        d, w = mb - mean, nb / total
        mean = _fma(d, w, mean)
        m2 = _fma(d * n, d * w, m2 + m2b)
        n = total
    return [mean, m2 / n]


def _select(lane):
    s0 = lane.scalar(0)
    chosen = zip(lane.places, lane.values("a", lane.places, integer=False), lane.b, strict=True)
    return {place: y if p != 0 else s0 for place, p, y in chosen if p != 0 or not lane.v["keep"]}


def _affine_select(lane):
    s0, op = lane.scalar(0), AluOp(lane.v["op0"])
    chosen = (_operate(op, _signed(lane.number(place)), 0, True) for place in lane.places)
    return [x if keep else s0 for keep, x in zip(chosen, lane.a, strict=True)]


def _find_index8(lane):
    values = lane.values("b", [(0, 0, 0, k) for k in range(8)])
    found = [-1] * 8
    for position, x in enumerate(lane.a):
        for k, value in enumerate(values):
            if found[k] < 0 and (x == value or (x != x and value != value)):
                found[k] = position
                break
    return found


def _match_replace8(lane):
    found, s0 = _find_index8(lane), lane.scalar(0)
    return [s0 if position in found else x for position, x in enumerate(lane.a)]


def _dropout(lane):
    p = Fraction(float(np.nan_to_num(lane.scalar(0, integer=False), nan=0.0, posinf=2.0, neginf=-1.0)))
    draws = (Fraction(int(lane.random(place)[1]), 1 << 32) for place in lane.places)
    zero = 0 if lane.integer else _ZERO
    return [zero if draw < p else x for draw, x in zip(draws, lane.a, strict=True)]


def _activate(lane):
    v, s0, s1 = lane.v, lane.scalar(0), lane.scalar(1)
    results = [lane.function(v["function"], _fma(x, s0, s1), v["alpha"]) for x in lane.a]
    lane.sums[lane.lane] = sum(results, lane.sums[lane.lane] if v["sum_continue"] else _ZERO)
    lane.total = lane.sums[lane.lane] if v["sum_store"] else None
    return results


_RUN = {
    Opcode.TENSOR_COPY: lambda lane: lane.a,
    Opcode.MEMSET: lambda lane: [lane.scalar(0)] * len(lane.places),
    Opcode.TENSOR_TENSOR: lambda lane: [lane.operate("op0", x, y) for x, y in zip(lane.a, lane.b, strict=True)],
    Opcode.TENSOR_SCALAR: lambda lane: [lane.op(1, lane.op(0, x, lane.scalar(0)), lane.scalar(1)) for x in lane.a],
    Opcode.SCALAR_TENSOR_TENSOR: lambda lane: [
        lane.op(1, lane.op(0, x, lane.scalar(0)), y) for x, y in zip(lane.a, lane.b, strict=True)
    ],
    Opcode.TENSOR_SCALAR_REDUCE: _tensor_scalar_reduce,
    Opcode.TENSOR_REDUCE: _tensor_reduce,
    Opcode.TENSOR_TENSOR_SCAN: _scan,
    Opcode.BN_STATS: _bn_stats,
    Opcode.BN_AGGR: _bn_aggr,
    Opcode.RECIPROCAL: lambda lane: [_ONE / x for x in lane.a],
    Opcode.SELECT: _select,
    Opcode.AFFINE_SELECT: _affine_select,
    Opcode.IOTA: lambda lane: [(int if lane.integer else np.float32)(lane.wrap(lane.number(p))) for p in lane.places],
    Opcode.MAX8: lambda lane: sorted(lane.a, key=lambda value: (0, 0) if np.isnan(value) else (1, -value))[:8],
    Opcode.FIND_INDEX8: _find_index8,
    Opcode.MATCH_REPLACE8: _match_replace8,
    Opcode.DROPOUT: _dropout,
    Opcode.ACTIVATE: _activate,
}
