"""The vector and the scalar engine element by element, in Python: one lane, one place, one operation at a time.

It reads the fields of an instruction's word, so that it shares no view of the record with the golden interpreter, and
computes with the processor's float32, with Python's integers, or with fractions. Codes are decoded and rounded by
golden.arith, and POWER and the activation functions are golden's: those have oracles of their own.
"""

import itertools
from fractions import Fraction

import numpy as np

from neuroncore_rtl.golden.arith import decode, power_fp32, round_fp32, threefry2x32
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS
from neuroncore_rtl.spec.isa import AluOp, Opcode
from neuroncore_rtl.spec.isa.access import POINTER_FIELDS
from neuroncore_rtl.spec.isa.fields import unpack

__all__ = ["execute"]

_FORMATS = {fmt.code: fmt for fmt in FORMATS.values()}
_NAN = np.float32(np.nan)
_ZERO, _ONE = np.float32(0), np.float32(1)
_FEW = {Opcode.BN_STATS: 6, Opcode.BN_AGGR: 2, Opcode.MAX8: 8, Opcode.FIND_INDEX8: 8}
_FLOAT = {Opcode.BN_STATS, Opcode.BN_AGGR, Opcode.RECIPROCAL, Opcode.ACTIVATE}
_ONE_SOURCE = {
    Opcode.TENSOR_COPY, Opcode.TENSOR_SCALAR, Opcode.TENSOR_REDUCE, Opcode.BN_STATS, Opcode.BN_AGGR, Opcode.RECIPROCAL,
    Opcode.AFFINE_SELECT, Opcode.MAX8, Opcode.DROPOUT,
}  # fmt: skip
_SCALARS = {
    Opcode.MEMSET: "0", Opcode.TENSOR_SCALAR: "01", Opcode.SCALAR_TENSOR_TENSOR: "0", Opcode.TENSOR_SCALAR_REDUCE: "0",
    Opcode.TENSOR_TENSOR_SCAN: "0", Opcode.SELECT: "0", Opcode.AFFINE_SELECT: "0", Opcode.MATCH_REPLACE8: "0",
    Opcode.DROPOUT: "0", Opcode.ACTIVATE: "01",
}  # fmt: skip


def execute(v: dict[str, int], config: Config, sbuf: np.ndarray, psum: np.ndarray, sums=None, function=None) -> None:
    """Execute a legal instruction.

    Arguments:
        v: its fields (`spec.isa.Elementwise.unpack`).
        config: the machine's parameters.
        sbuf, psum: uint8 [partitions, bytes], changed in place.
        sums: for ACTIVATE a list of the lanes' running sums, np.float32, changed in place.
        function: for ACTIVATE a function from (code, np.float32, alpha's bits) to np.float32.
    """
    opcode = Opcode(v["opcode"])
    counts = [v[f"count{d}"] for d in (3, 2, 1, 0)]
    places = list(itertools.product(*map(range, counts)))
    memories = [sbuf, psum]
    if opcode is Opcode.TRANSPOSE:
        return _transpose(v, config, memories, places)
    integer = _is_integer(v, opcode)
    # Every lane reads before any of them writes.
    lanes = [_Lane(v, config, memories, places, integer, lane) for lane in range(v["partitions"])]
    results = [lane.run(opcode, sums, function) for lane in lanes]
    for lane, (elements, result) in zip(lanes, results, strict=True):
        lane.write("dst", elements)
        if result is not None:
            lane.write("b", [((0, 0, 0, 0), (0, 0, 0, 0), result)])
    return None


def _is_integer(v, opcode) -> bool:
    if opcode in _FLOAT:
        return False
    names = {"dst"} if opcode in (Opcode.MEMSET, Opcode.IOTA) else {"dst", "a"}
    names |= set() if opcode in _ONE_SOURCE | {Opcode.MEMSET, Opcode.IOTA} else {"b"}
    names -= {"a"} if opcode is Opcode.SELECT else {"dst"} if opcode is Opcode.FIND_INDEX8 else set()
    codes = [v[f"{name}_dtype"] for name in names]
    codes += [_pointer(v, n)["dtype"] for n in _SCALARS.get(opcode, "") if v[f"pointer{n}"]]
    return all(not _FORMATS[code].is_float for code in codes)


def _pointer(v, number):
    return unpack(POINTER_FIELDS, v[f"scalar{number}"])


def _address(v, name, place) -> int:
    size = _FORMATS[v[f"{name}_dtype"]].bits // 8
    return v[f"{name}_address"] + size * sum(i * v[f"{name}_step{d}"] for i, d in zip(place, (3, 2, 1, 0), strict=True))


def _transpose(v, config, memories, places) -> None:
    size = _FORMATS[v["a_dtype"]].bits // 8
    block = min(32, config.partitions)
    source, target = (memories[v[f"{name}_storage"]] for name in ("a", "dst"))
    moved = []
    for place, lane in itertools.product(places, range(v["partitions"])):
        group, p = divmod(lane, block)
        row = v["a_quadrant"] * config.quadrant + lane
        address = _address(v, "a", place)
        to = v["dst_quadrant"] * config.quadrant + group * block + place[3], _address(v, "dst", (*place[:3], p))
        moved.append((*to, source[row, address : address + size].copy()))
    for row, address, data in moved:
        target[row, address : address + size] = data


class _Lane:
    """One lane of one instruction: what it reads, as values of its arithmetic, and what it writes."""

    def __init__(self, v, config, memories, places, integer, lane):
        self.v, self.config, self.memories, self.places = v, config, memories, places
        self.integer, self.lane = integer, lane
        self.opcode = Opcode(v["opcode"])

    def codes(self, name, places, fields=None):
        fields = fields or {k: self.v[f"{name}_{k}"] for k in ("quadrant", "dtype", "storage")}
        size = _FORMATS[fields["dtype"]].bits // 8
        row = self.memories[fields["storage"]][fields["quadrant"] * self.config.quadrant + self.lane]
        starts = [fields["address"]] if "address" in fields else [_address(self.v, name, place) for place in places]
        return [int.from_bytes(row[start : start + size].tobytes(), "little") for start in starts]

    def values(self, name, places, integer=None):
        return _values(self.codes(name, places), self.v[f"{name}_dtype"], self.integer if integer is None else integer)

    def scalar(self, number, integer=None):
        integer = self.integer if integer is None else integer
        word = self.v[f"scalar{number}"]
        if self.v[f"pointer{number}"]:
            fields = _pointer(self.v, number) | {"storage": 0}
            return _values(self.codes("", [], fields), fields["dtype"], integer)[0]
        return _wrap(word) if integer else np.uint32(word).view(np.float32)

    def number(self, place) -> int:
        steps = sum(i * self.v[f"index_step{d}"] for i, d in zip(place, (3, 2, 1, 0), strict=True))
        return (self.v["index"] + self.lane * self.v["index_partition"] + steps) % (1 << 64)

    def random(self, place):
        number = self.number(place)
        return threefry2x32((self.v["seed"], self.v["stream"]), (number & 0xFFFFFFFF, number >> 32))

    def write(self, name, elements) -> None:
        """Write (place of dst, place whose number counts, value), one after the other."""
        fmt = _FORMATS[self.v[f"{name}_dtype"]]
        row = self.memories[self.v[f"{name}_storage"]][self.v[f"{name}_quadrant"] * self.config.quadrant + self.lane]
        values = [value for _, _, value in elements]
        if self.integer or self.opcode is Opcode.FIND_INDEX8:
            codes = [min(max(value, fmt.min), fmt.max) & ((1 << fmt.bits) - 1) for value in values]
        else:
            bits = np.array(values, np.float32).view(np.uint32)
            if self.v["stochastic"] and name == "dst":
                draws = [int(self.random(place)[0]) for _, place, _ in elements]
                codes = round_fp32(bits, fmt, "sr", np.array(draws, np.uint32))
            else:
                codes = round_fp32(bits, fmt)
        for (place, _, _), code in zip(elements, codes, strict=True):
            start = _address(self.v, name, place)
            data = int(code).to_bytes(fmt.bits // 8, "little")
            row[start : start + len(data)] = np.frombuffer(data, np.uint8)

    def run(self, opcode, sums, function):
        """Return the elements to write at dst, and the result to write at b, or None."""
        with np.errstate(all="ignore"):
            found = _RUN[opcode](self, sums, function)
        if isinstance(found, tuple):
            return found
        if found and not isinstance(found[0], tuple):
            places = [(0, 0, 0, k) for k in range(len(found))] if opcode in _FEW else self.places
            found = list(zip(places, places, found, strict=True))
        return found, None

    def op(self, number, x, y):
        swap = self.v[f"reverse{number}"]
        return _operate(AluOp(self.v[f"op{number}"]), *((y, x) if swap else (x, y)), self.integer)

    def a(self):
        return self.values("a", self.places)

    def b(self):
        return self.values("b", self.places)


def _values(codes, dtype, integer):
    fmt = _FORMATS[dtype]
    if integer:
        return [code - (code >> (fmt.bits - 1) << fmt.bits) for code in codes]
    with np.errstate(all="ignore"):
        return list(decode(np.array(codes, np.int64), fmt).astype(np.float32))


def _wrap(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _operate(op, x, y, integer):
    if op is AluOp.BYPASS:
        return x
    truth = {
        AluOp.IS_EQUAL: lambda: x == y, AluOp.NOT_EQUAL: lambda: x != y, AluOp.IS_GT: lambda: x > y,
        AluOp.IS_GE: lambda: x >= y, AluOp.IS_LT: lambda: x < y, AluOp.IS_LE: lambda: x <= y,
        AluOp.LOGICAL_AND: lambda: x != 0 and y != 0, AluOp.LOGICAL_OR: lambda: x != 0 or y != 0,
        AluOp.LOGICAL_XOR: lambda: (x != 0) != (y != 0),
    }  # fmt: skip
    if op in truth:
        return int(truth[op]()) if integer else np.float32(truth[op]())
    if integer:
        ux, uy = x % (1 << 32), y % (1 << 32)
        return _wrap(
            {
                AluOp.ADD: lambda: x + y, AluOp.SUBTRACT: lambda: x - y, AluOp.MULTIPLY: lambda: x * y,
                AluOp.MAX: lambda: max(x, y), AluOp.MIN: lambda: min(x, y),
                AluOp.ABSOLUTE_MAX: lambda: max(_wrap(abs(x)), _wrap(abs(y))),
                AluOp.BITWISE_AND: lambda: ux & uy, AluOp.BITWISE_OR: lambda: ux | uy,
                AluOp.BITWISE_XOR: lambda: ux ^ uy,
                AluOp.LOGICAL_SHIFT_LEFT: lambda: ux << uy if uy < 32 else 0,
                AluOp.LOGICAL_SHIFT_RIGHT: lambda: ux >> uy if uy < 32 else 0,
            }[op]()
        )  # fmt: skip
    if op is AluOp.ABSOLUTE_MAX:
        op, x, y = AluOp.MAX, abs(x), abs(y)
    if op in (AluOp.MAX, AluOp.MIN):
        if np.isnan(x) or np.isnan(y):
            return _NAN
        pick = max if op is AluOp.MAX else min
        return pick(x, y, key=lambda value: (value, not np.signbit(value)))
    return {
        AluOp.ADD: lambda: x + y, AluOp.SUBTRACT: lambda: x - y, AluOp.MULTIPLY: lambda: x * y,
        AluOp.DIVIDE: lambda: x / y, AluOp.POWER: lambda: np.float32(power_fp32(x, y)),
    }[op]()  # fmt: skip


def _fma(x, y, z):
    """x * y + z in rational numbers, rounded once; what is not finite, or zero, as float64 has it."""
    exact = 0
    if np.isfinite(x) and np.isfinite(y) and np.isfinite(z):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact == 0:
        return np.float32(np.float64(x) * np.float64(y) + np.float64(z))
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    place = Fraction(2) ** (max(exponent, -126) - 23)
    value = round(exact / place) * place
    largest = Fraction(float(np.finfo(np.float32).max))
    return np.float32(float(value)) if abs(value) <= largest else np.float32(np.inf if value > 0 else -np.inf)


def _reduce(lane, op, values):
    total = values[0]
    for value in values[1:]:
        total = _operate(op, total, value, lane.integer)
    return total


def _tensor_scalar_reduce(lane, *_):
    s0 = lane.scalar(0)
    results = [lane.op(0, x, s0) for x in lane.a()]
    elements = list(zip(lane.places, lane.places, results, strict=True))
    return elements, _reduce(lane, AluOp(lane.v["op1"]), results)


def _tensor_reduce(lane, *_):
    groups = {}
    axes = lane.v["axes"]
    for place, value in zip(lane.places, lane.a(), strict=True):
        groups.setdefault((*place[: 4 - axes], *(0,) * axes), []).append((place, value))
    elements = []
    for kept, members in groups.items():
        total = _reduce(lane, AluOp(lane.v["op0"]), [value for _, value in members])
        if lane.v["negate"]:
            total = _wrap(-total) if lane.integer else -total
        elements.append((kept, members[-1][0], total))
    return elements


def _scan(lane, *_):
    r, results = lane.scalar(0), []
    for x, y in zip(lane.a(), lane.b(), strict=True):
        r = lane.op(1, lane.op(0, x, r), y)
        results.append(r)
    return results


def _bn_stats(lane, *_):
    found = []
    values = lane.a()
    for stream in (values[0::2], values[1::2]):
        mean = m2 = _ZERO
        for k, x in enumerate(stream, start=1):
            d = x - mean
            mean = _fma(d, _ONE / np.float32(k), mean)
            m2 = _fma(d, x - mean, m2)
        found += [np.float32(len(stream)), mean, m2]
    return found


def _bn_aggr(lane, *_):
    values = lane.a()
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


def _select(lane, *_):
    s0 = lane.scalar(0)
    elements = []
    for place, p, y in zip(lane.places, lane.values("a", lane.places, integer=False), lane.b(), strict=True):
        if p != 0 or not lane.v["keep"]:
            elements.append((place, place, y if p != 0 else s0))
    return elements, None


def _affine_select(lane, *_):
    s0, op = lane.scalar(0), AluOp(lane.v["op0"])
    return [
        x if _operate(op, _wrap(lane.number(place)), 0, True) else s0
        for place, x in zip(lane.places, lane.a(), strict=True)
    ]


def _iota(lane, *_):
    numbers = [_wrap(lane.number(place)) for place in lane.places]
    return numbers if lane.integer else [np.float32(number) for number in numbers]


def _max8(lane, *_):
    def key(value):
        return (0, 0) if not lane.integer and np.isnan(value) else (1, -value)

    return sorted(lane.a(), key=key)[:8]


def _search(lane):
    values = lane.values("b", [(0, 0, 0, k) for k in range(8)])
    found = [-1] * 8
    for position, x in enumerate(lane.a()):
        for k, value in enumerate(values):
            if found[k] < 0 and (x == value or (x != x and value != value)):
                found[k] = position
                break
    return found


def _match_replace8(lane, *_):
    found, s0 = _search(lane), lane.scalar(0)
    return [s0 if position in found else x for position, x in enumerate(lane.a())]


def _dropout(lane, *_):
    p = float(np.nan_to_num(lane.scalar(0, integer=False), nan=0.0, posinf=2.0, neginf=-1.0))
    zero = 0 if lane.integer else _ZERO
    return [
        zero if Fraction(int(lane.random(place)[1]), 1 << 32) < Fraction(p) else x
        for place, x in zip(lane.places, lane.a(), strict=True)
    ]


def _activate(lane, sums, function):
    v = lane.v
    s0, s1 = lane.scalar(0), lane.scalar(1)
    total = sums[lane.lane] if v["sum_continue"] else _ZERO
    results = []
    for x in lane.a():
        y = function(v["function"], _fma(x, s0, s1), v["alpha"])
        total = total + y
        results.append(y)
    sums[lane.lane] = total
    return list(zip(lane.places, lane.places, results, strict=True)), total if v["sum_store"] else None


_RUN = {
    Opcode.TENSOR_COPY: lambda lane, *_: lane.a(),
    Opcode.MEMSET: lambda lane, *_: [lane.scalar(0)] * len(lane.places),
    Opcode.TENSOR_TENSOR: lambda lane, *_: [
        _operate(AluOp(lane.v["op0"]), x, y, lane.integer) for x, y in zip(lane.a(), lane.b(), strict=True)
    ],
    Opcode.TENSOR_SCALAR: lambda lane, *_: [
        lane.op(1, lane.op(0, x, lane.scalar(0)), lane.scalar(1)) for x in lane.a()
    ],
    Opcode.SCALAR_TENSOR_TENSOR: lambda lane, *_: [
        lane.op(1, lane.op(0, x, lane.scalar(0)), y) for x, y in zip(lane.a(), lane.b(), strict=True)
    ],
    Opcode.TENSOR_SCALAR_REDUCE: _tensor_scalar_reduce,
    Opcode.TENSOR_REDUCE: _tensor_reduce,
    Opcode.TENSOR_TENSOR_SCAN: _scan,
    Opcode.BN_STATS: _bn_stats,
    Opcode.BN_AGGR: _bn_aggr,
    Opcode.RECIPROCAL: lambda lane, *_: [_ONE / x for x in lane.a()],
    Opcode.SELECT: _select,
    Opcode.AFFINE_SELECT: _affine_select,
    Opcode.IOTA: _iota,
    Opcode.MAX8: _max8,
    Opcode.FIND_INDEX8: lambda lane, *_: _search(lane),
    Opcode.MATCH_REPLACE8: _match_replace8,
    Opcode.DROPOUT: _dropout,
    Opcode.ACTIVATE: _activate,
}
