"""Moves, searches, selections, random numbers and registers of nki.isa, with random operands."""

import numpy as np

from tests.frontends.nki.random_isa import broadcast, expect_sums, function_bounds, scalar_operation, without_uint32
from tests.frontends.nki.random_operations import OPERATIONS, compute
from tests.frontends.nki.sketch import FLOATS, INTEGERS, TYPES, Operand, Sketch, cases, cast

CALLS, case = cases()

OLDER, older = cases()
"""Calls with other arguments in the first dialect."""

PLACES = "hbm", "sbuf", "psum"


def rows_by_numbers(s: Sketch) -> None:
    rows, shape, skips = s.count(1, 20), s.shape(3), s.chance(0.4)
    whole = (rows, *shape[1:])
    at = numbers(s, (shape[0], 1), rows + (3 if skips else 0))
    mode = ", oob_mode=nisa.oob_mode.skip" if skips else ""
    if s.chance():
        a, y = s.source(whole, s.any(*TYPES), memory="hbm", repeats=False), s.target(shape, s.any(*TYPES))
        s.call(f"nisa.dma_copy(dst={y.name}, src={a.name}.vector_select(0, {at.name}){mode})")
        expected = np.where(
            at.values.reshape(-1, *(1,) * (len(shape) - 1)) < rows,
            cast(a.values, y.dtype)[np.minimum(at.values[:, 0], rows - 1)], y.values,
        )  # fmt: skip
    else:
        a, y = s.source(shape, s.any(*TYPES)), s.target(whole, s.any(*TYPES), memory="hbm")
        s.call(f"nisa.dma_copy(dst={y.name}.vector_select(0, {at.name}), src={a.name}{mode})")
        expected = y.values.copy()
        for row, values in zip(at.values[:, 0], cast(a.values, y.dtype), strict=True):
            if row < rows:
                expected[row] = values
    s.expect(y, expected)


@case
def dma_copy(s: Sketch) -> None:
    if s.chance(0.3):
        rows_by_numbers(s)
        return
    shape, (near, far) = s.shape(4), (s.any(*PLACES) for _ in range(2))
    a, y = s.source(shape, s.any(*TYPES), memory=far, low=-9, high=9), s.target(shape, s.any(*TYPES), memory=near)
    expected, more = a.values, ""
    if s.chance(0.25):
        op = s.any("add", "maximum")
        expected, more = OPERATIONS[op](y.values, a.values), f", dst_rmw_op=nl.{op}"
    s.gives(f"nisa.dma_copy(dst={y.name}, src={a.name}{more})", y, expected)


@case
def dma_compute(s: Sketch) -> None:
    shape, types = s.shape(3), s.any(FLOATS, without_uint32(INTEGERS), TYPES)
    y = s.target(shape, s.any(*without_uint32(types)), memory=s.any(*PLACES))
    terms = [s.source(shape, s.any(*without_uint32(types)), memory=s.any(*PLACES)) for _ in range(s.count(1, 4))]
    scales = s.any("None", f"[{', '.join(['1.0'] * len(terms))}]")
    s.gives(f"nisa.dma_compute(dst={y.name}, srcs=[{', '.join(a.name for a in terms)}], scales={scales}, "
            "reduce_op=nl.add)", y, sum(a.values for a in terms))  # fmt: skip


@case
def dma_transpose(s: Sketch) -> None:
    between = [s.count(1, 3) for _ in range(s.count(0, 2))]
    shape, dtype = (s.count(1, 16), *between, s.count(1, 16)), s.any(*TYPES)
    order = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[len(shape)]
    a = s.source(shape, dtype, memory=s.any(*PLACES))
    y = s.target(tuple(shape[d] for d in order), dtype, memory=s.any(*PLACES))
    s.gives(f"nisa.dma_transpose(dst={y.name}, src={a.name}, axes={s.any(None, order)})", y, a.values.transpose(order))


@case
def nc_stream_shuffle(s: Sketch) -> None:
    shape, dtype = s.shape(3), s.any(*TYPES)
    a, y = s.source(shape, dtype), s.target((s.count(1, 16), *shape[1:]), dtype)
    mask = [255 if s.chance(0.2) else s.count(0, shape[0] - 1) for _ in range(32)]
    if s.chance():
        first = s.count(0, shape[0] - 1)
        mask[: shape[0] - first] = range(first, shape[0])
    s.call(f"nisa.nc_stream_shuffle(dst={y.name}, src={a.name}, shuffle_mask={mask})")
    expected = y.values.copy()
    for p in range(len(expected)):
        expected[p] = expected[p] if mask[p] == 255 else a.values[mask[p]]
    s.expect(y, expected)


@case
def tensor_partition_reduce(s: Sketch) -> None:
    shape, types = s.shape(3), s.any(FLOATS, without_uint32(INTEGERS))
    op = s.any("add", "average", "maximum", "minimum", *(("bitwise_or", "bitwise_and") if types is not FLOATS else ()))
    a, y = s.source(shape, s.any(*types)), s.target((1, *shape[1:]), s.any(*types))
    s.call(f"nisa.tensor_partition_reduce(dst={y.name}, op=nl.{op}, data={a.name})")
    ufunc = OPERATIONS["add" if op == "average" else op]
    expected = ufunc.reduce(a.values, axis=0, keepdims=True)
    average = op == "average"
    s.expect(y, expected / shape[0] if average else expected, np.abs(expected) * 2.0**-22 if average else 0.0)


@case
def sequence_bounds(s: Sketch) -> None:
    rows, n = s.count(1, 16), s.any(1, 64, s.count(1, 20))
    dtype = s.any("float32", "int32", "bfloat16", "int16", "uint8", "uint32")
    a = s.source((rows, n), dtype, np.sort(s.rng.integers(0, 5, (rows, n)), 1) if s.chance() else None, low=0)
    y = s.target((rows, 2, n), s.any("int32" if dtype.startswith("u") else dtype, "float32", "int32"))
    s.call(f"nisa.sequence_bounds(dst={y.name}, segment_ids={a.name})")
    expected = np.empty((rows, 2, n))
    for p, ids in enumerate(a.values):
        for i in range(n):
            first = next(j for j in range(i, -1, -1) if j == 0 or ids[j - 1] != ids[i])
            last = next(j for j in range(i, n) if j == n - 1 or ids[j + 1] != ids[i]) + 1
            expected[p, :, i] = (n, -1) if ids[i] == 0 else (first, last)
    s.expect(y, expected)


@case
def nonzero_with_count(s: Sketch) -> None:
    rows, n, base = s.count(1, 16), s.count(1, 20), s.count(0, 30)
    a = s.source((rows, n), s.any(*TYPES), low=-1, high=1)
    y = s.target((rows, n + 1), "int32")
    expected, places = y.values.copy(), np.flatnonzero(a.values[0])
    expected[0] = [*(places + base), *[-7] * (n - len(places)), len(places)]
    s.gives(f"nisa.nonzero_with_count(dst={y.name}, src={a.name}, index_offset={base}, padding_val=-7)", y, expected)


def numbers(s: Sketch, shape: tuple[int, ...], below: int, memory: str | None = None) -> Operand:
    dtype = s.any(*(name for name in INTEGERS if below - 1 <= np.iinfo(name).max))
    return s.source(shape, dtype, s.rng.integers(0, below, shape), memory=memory)


@case
def nc_n_gather(s: Sketch) -> None:
    shape = s.shape(3)
    a = s.source(shape, dtype := s.any(*TYPES))
    at = numbers(s, (shape[0], *s.shape(2)[1:]), a.flat.shape[1])
    y = s.target(at.shape, s.any(dtype, dtype, *TYPES))
    s.call(f"nisa.nc_n_gather(dst={y.name}, data={a.name}, indices={at.name})")
    s.expect(y, np.take_along_axis(a.flat, at.flat, 1).reshape(y.shape))


@case
def local_gather(s: Sketch) -> None:
    width, columns, more = s.any(1, 2, 4), s.count(1, 3), s.count(1, 20)
    a = s.source((16, width + more), dtype := s.any(*TYPES))
    at = numbers(s, (16, columns), more + 1)
    count = s.any(16 * columns, s.count(1, 16 * columns))
    y = s.target((16, count, width), dtype)
    s.call(f"nisa.local_gather(dst={y.name}, src_buffer={a.name}, index={at.name}, num_elem_per_idx={width}, "
           f"num_valid_indices={count})")  # fmt: skip
    places = at.values.flatten(order="F")[:count]
    s.expect(y, np.stack([a.values[:, places + k] for k in range(width)], -1))


def dynamic_view(s: Sketch, operand: Operand, number: Operand) -> str:
    return s.any(f"{operand.name}.select(1, {number.name})", f"{operand.name}[:, {number.name}]")


@case
def tensor_copy_dynamic_src(s: Sketch) -> None:
    rows, n, *free = s.shape(3, least=2)
    a, at = s.source((rows, n, *free), s.any(*TYPES), repeats=False, backwards=False), numbers(s, (1, 1), n)
    y = s.target((rows, *free), s.any(*TYPES))
    s.gives(f"nisa.tensor_copy_dynamic_src(dst={y.name}, src={dynamic_view(s, a, at)})", y,
            a.values[:, at.values[0, 0]])  # fmt: skip


@case
def tensor_copy_dynamic_dst(s: Sketch) -> None:
    rows, n, *free = s.shape(3, least=2)
    y, at = s.target((rows, n, *free), s.any(*TYPES), backwards=False), numbers(s, (1, 1), n)
    a = s.source((rows, *free), s.any(*TYPES))
    expected = y.values.copy()
    expected[:, at.values[0, 0]] = cast(a.values, y.dtype)
    s.gives(f"nisa.tensor_copy_dynamic_dst(dst={dynamic_view(s, y, at)}, src={a.name})", y, expected)


@case
def tensor_scalar_reduce(s: Sketch) -> None:
    shape, types = s.shape(3), s.any(FLOATS, without_uint32(INTEGERS))
    a, y = s.source(shape, s.any(*types)), s.target(shape, s.any(*types))
    total = s.target((shape[0], 1), s.any(*types))
    text, expected = scalar_operation(s, a, y, a.values, 0)
    op = s.any("add", "maximum", "minimum")
    more, start = "", None
    if s.chance():
        more, start = ", reduce_cmd=nisa.reduce_cmd.load_reduce, reduce_init=2.0", 2.0
    s.gives(f"nisa.tensor_scalar_reduce(dst={y.name}, data={a.name}, {text}, reduce_op=nl.{op}, "
            f"reduce_res={total.name}{more})", y, expected)  # fmt: skip
    flat = expected.reshape(len(expected), -1).astype(np.float64)
    whole = OPERATIONS[op].reduce(flat, axis=1, keepdims=True)
    s.expect(total, whole if start is None else OPERATIONS[op](whole, start))


@case
def tensor_scalar_cumulative(s: Sketch) -> None:
    shape, op = s.shape(3), s.any("add", "maximum", "minimum")
    a, y = s.source(shape, s.any(*FLOATS)), s.target(shape, s.any(*TYPES))
    first, initial = (s.scalar(shape[0], False) for _ in range(2))
    more, before = "", None
    if s.chance():
        more, before = f", imm1={initial[0]}, reduce_cmd=nisa.reduce_cmd.load_reduce", initial[1]
    s.call(f"nisa.tensor_scalar_cumulative(dst={y.name}, src={a.name}, op0=nl.multiply, op1=nl.{op}, "
           f"imm0={first[0]}{more})")  # fmt: skip
    terms = a.flat * broadcast(first[1], a.flat)
    if before is not None:
        terms[:, 0] = OPERATIONS[op](terms[:, 0], before.reshape(-1))
    s.expect(y, OPERATIONS[op].accumulate(terms, axis=1).reshape(shape))


def largest(s: Sketch, lanes: int, values: np.ndarray) -> str:
    if s.chance():
        return ""
    total = s.target((lanes, 1), s.any(*FLOATS))
    s.expect(total, values.reshape(lanes, -1).max(1, keepdims=True))
    return f", reduce_res={total.name}, reduce_cmd=nisa.reduce_cmd.reset_reduce"


@case
def range_select(s: Sketch) -> None:
    shape, first = s.shape(3), s.count(0, 9)
    a, y = s.source(shape, s.any(*TYPES)), s.target(shape, s.any(*FLOATS))
    low, high = (s.column(shape[0], "float32", *limits) for limits in ((0, 20), (10, 60)))
    ops = s.any("greater", "greater_equal"), s.any("less", "less_equal")
    at = (first + np.arange(a.flat.shape[1])).reshape(1, *shape[1:])
    above, below = (OPERATIONS[op](at, broadcast(b.values, a.values)) for op, b in zip(ops, (low, high), strict=True))
    expected = np.where(above & below, a.values, -9.0)
    text = largest(s, shape[0], expected)
    s.call(f"nisa.range_select(dst={y.name}, on_true_tile={a.name}, comp_op0=nl.{ops[0]}, comp_op1=nl.{ops[1]}, "
           f"bound0={low.name}, bound1={high.name}, range_start={first}, on_false_value=-9.0{text})")  # fmt: skip
    s.expect(y, expected)


@case
def select_reduce(s: Sketch) -> None:
    shape, reverse = s.shape(3), s.chance(0.3)
    a, y = s.source(shape, s.any(*FLOATS)), s.target(shape, s.any(*TYPES))
    keys, (other, values) = s.source(shape, s.any(*TYPES), low=-1, high=1), s.scalar(shape[0], False)
    expected = np.where((keys.values != 0) != reverse, a.values, broadcast(values, a.values))
    text = largest(s, shape[0], expected)
    s.gives(f"nisa.select_reduce(dst={y.name}, predicate={keys.name}, on_true={a.name}, on_false={other}, "
            f"reverse_pred={reverse}{text})", y, expected)  # fmt: skip


@case
def exponential(s: Sketch) -> None:
    a, y = s.pair(3, TYPES, TYPES)
    text, most = s.scalar(a.shape[0], False)
    expected, near = function_bounds("exp", a.values - broadcast(most, a.values))
    more = ""
    if s.chance():
        total = s.target((a.shape[0], 1), s.any(*FLOATS))
        more = f", reduce_res={total.name}, reduce_cmd=nisa.reduce_cmd.reset_reduce"
        expect_sums(s, total, expected, near)
    s.gives(f"nisa.exponential(dst={y.name}, src={a.name}, max_value={text}{more})", y, expected, near)


@case
def activate2(s: Sketch) -> None:
    shape, op = s.shape(3), s.any("square", "relu", "exp", "prelu", "copy")
    a, y = s.source(shape, s.any(*TYPES)), s.target(shape, s.any(*TYPES))
    ops = [s.any("multiply", "add", "subtract", "maximum") for _ in range(2)]
    z, text = a.values.astype(np.float64), ""
    for number, one in enumerate(ops):
        back = s.chance(0.3)
        name, value = s.scalar(shape[0], False, low=-2, high=2)
        pair = (broadcast(value, z), z) if back else (z, broadcast(value, z))
        z, text = compute(one, *pair, words=None), f"{text}, imm{number}={name}, op{number}=nl.{one}"
        text += f", reverse{number}={back}"
    if op == "prelu":
        expected, near = np.where(z > 0, z, z / 4), 0 * z
    else:
        expected, near = function_bounds({"copy": "identity"}.get(op, op), z)
    if s.chance():
        total = s.target((shape[0], 1), s.any(*FLOATS))
        text += f", reduce_op=nl.add, reduce_res={total.name}, reduce_cmd=nisa.reduce_cmd.reset_reduce"
        expect_sums(s, total, expected, near)
    s.gives(f"nisa.activate2(dst={y.name}, op=nl.{op}, data={a.name}{text}, relu_param=0.25)", y, expected, near)


@case
def dropout(s: Sketch) -> None:
    a, y = s.pair(6, FLOATS, FLOATS)
    text, share = s.scalar(a.shape[0], False, low=0, high=1)
    s.call(f"nisa.dropout(dst={y.name}, data={a.name}, prob={text})")
    column = broadcast(share, a.values)
    one, other = np.where(column >= 1, 0, a.values), np.where(column <= 0, a.values, 0)
    s.expect_either(y, one, other)


@case
def rng(s: Sketch) -> None:
    y = s.target(s.shape(3), s.any(*INTEGERS))
    s.call(f"nisa.rng(dst={y.name})")
    limits = np.iinfo(y.dtype)
    middle, reach = (limits.max + limits.min + 1) // 2, (limits.max - limits.min + 1) // 2
    s.expect(y, np.full(y.shape, middle), np.full(y.shape, reach))


@case
def rand2(s: Sketch) -> None:
    y = s.target(s.shape(3), s.any(*FLOATS))
    (low, least), (high, most) = s.scalar(len(y.values), False, -4, 0), s.scalar(len(y.values), False, 1, 4)
    s.call(f"nisa.rand2(dst={y.name}, min={low}, max={high})")
    least, most = (broadcast(value, y.values) for value in (least, most))
    s.expect(y, np.broadcast_to((least + most) / 2, y.shape), np.broadcast_to((most - least) / 2, y.shape))


def element(s: Sketch, operand: Operand) -> tuple[str, tuple[int, ...]]:
    place = tuple(s.count(0, n - 1) for n in operand.shape)
    return f"{operand.name}[{', '.join(f'{at}:{at + 1}' for at in place)}]", place


@case("register_alloc", "register_load", "register_move", "register_store")
def register(call: str, s: Sketch) -> None:
    a = s.source(s.shape(2), s.any(*INTEGERS), memory=s.any(*PLACES), repeats=False)
    y = s.target(s.shape(2), s.any(*INTEGERS), memory=s.any(*PLACES))
    (given, at), (taken, to) = element(s, a), element(s, y)
    number, value = s.name("r"), a.values[at]
    s.call(f"{number} = nisa.register_alloc()")
    if call == "register_move":
        value = s.count(-100, 100)
        s.call(f"nisa.register_move({number}, {value})")
    else:
        s.call(f"nisa.register_load({number}, {given})")
    expected = y.values.copy()
    # Registers have 32 bits, signed or unsigned.
    expected[to] = value % 2**32 if y.dtype == "uint32" else cast(value, y.dtype)
    s.gives(f"nisa.register_store({taken}, {number})", y, expected)


def expression(s: Sketch, shape: tuple[int, ...]) -> tuple[str, np.ndarray]:
    parts = []
    for d, n in enumerate(shape):
        parts.append(f"nl.arange({n})[{', '.join(':' if d == e else 'None' for e in range(len(shape)))}]")
    steps, start = [s.count(-9, 9) for _ in shape], s.count(-50, 50)
    text = " + ".join([f"{step} * {part}" for step, part in zip(steps, parts, strict=True)])
    expected = start + sum(step * at for step, at in zip(steps, np.indices(shape), strict=True))
    return f"{text} + {start}", expected


@older
def iota(s: Sketch) -> None:
    shape = s.shape(4)
    y, (text, expected) = s.target(shape, s.any(*INTEGERS, "float32")), expression(s, shape)
    s.call(f"{y.name}[...] = nisa.iota({text}, dtype=nl.{y.dtype})")
    s.expect(y, expected % 2**32 if y.dtype == "uint32" else expected)


@older
def affine_select(s: Sketch) -> None:
    shape = s.shape(4)
    a, y, (text, expected) = s.source(shape, s.any(*TYPES)), s.target(shape, s.any(*TYPES)), expression(s, shape)
    symbol, op = s.any((">", "greater"), (">=", "greater_equal"), ("<", "less"), ("<=", "less_equal"))
    s.call(f"{y.name}[...] = nisa.affine_select(pred={text} {symbol} 0, on_true_tile={a.name}, on_false_value=3)")
    s.expect(y, np.where(OPERATIONS[op](expected, 0), a.values, 3))


@older
def memset(s: Sketch) -> None:
    y = s.target(s.shape(4), s.any(*TYPES))
    value = s.count(0, 9)
    s.call(f"{y.name}[...] = nisa.memset({y.shape}, {value}, dtype=nl.{s.any(y.dtype, 'float32')})")
    s.expect(y, np.array(value))
