"""frontends.nki.trace.results: results that were assigned to other tensors, and are used or written afterwards."""

import ml_dtypes
import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, write_kernel

SEED = 20261130

X = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
BF16 = ml_dtypes.bfloat16

TYPES = {"float32": np.float32, "bfloat16": BF16}

WRITTEN = "must be used before this tensor or an operand is written"
READ = "a loop that reads the copy .* must not write it"
LATER = "must not be used or written in a loop that began later"

HEAD = """
a = nl.load(x)
y = nl.ndarray(x.shape, dtype=x.dtype)
narrow = nl.ndarray(x.shape, dtype=nl.bfloat16)
"""


ASSIGNED = {
    "added to": ("w = a + 1; y[...] = w; w += 100", "y", X + 1),
    "sum": ("w = a + 1; y[...] = w; w += 100", "w", X + 101),
    "written": ("w = a + 1; y[...] = w; w[...] = 0", "y", X + 1),
    "written in part": ("w = a + 1; y[...] = w; w[:, 0:4] = 0", "w", (X + 1) * (np.arange(8) > 3)),
    "destination": ("w = a + 1; y[...] = w; nisa.dma_copy(dst=w, src=a)", "y", X + 1),
    "written where a mask holds": ("w = a + 1; y[...] = w; w[...] = nl.copy(a, mask=nl.arange(8)[None, :] < 4)", "w",
                                   X + (np.arange(8) > 3)),
    "result of a mask": ("y[...] = 7; w = nl.copy(a, mask=nl.arange(8)[None, :] < 4); y[...] = w", "y + w",
                         X + np.where(np.arange(8) < 4, X, 7 - X)),
    "place written again": ("w = a + 1; y[...] = w; y[...] = a", "w", X + 1),
    "place and operand written": ("w = a + 1; y[...] = w; a[...] = 0; y[...] = 0", "w", X + 1),
    "two": ("w = a + 1; y[...] = w; y[...] = 0; u = a + 2; a[...] = u; a[...] = 0", "w + u", 2 * X + 3),
    "place written in part": ("w = a + 1; y[...] = w; y[:, 0:1] = a[:, 7:8]", "w", X + 1),
    "place written as bytes": ("w = a + 1; y[...] = w; y.view(nl.uint8)[:, 28:32] = 0", "w", X + 1),
    "part of a result": ("w = a + 1; y[:, 0:8] = w", "w[:, 2:4] * 2", 2 * X[:, 2:4] + 2),
    "again": ("w = a * 3; z = nl.copy(a); z[...] = w; w[...] = w * 2; z[...] = w", "z", 6 * X),
    "added in memory": ("w = a + 1; y[...] = w; nisa.dma_copy(dst=w, src=a, dst_rmw_op=nl.add)", "w - y", X),
    "second destination": ("w = nl.copy(a, dtype=nl.uint32); z = nl.ndarray((4, 8), dtype=nl.uint32); z[...] = w; "
                           "v = nisa.max8(src=a); nisa.nc_match_replace8(data=a, vals=v, imm=0.0, dst_idx=w)",
                           "w + 10 * z", 10 * X + np.arange(7, -1, -1)),
    "registers": ("r = nisa.register_alloc(2); u = a + nl.broadcast_to(r.word, (4, 1)); nisa.register_move(r, 5); "
                  "v = a + nl.broadcast_to(r.word, (4, 1))", "u * 10 + v", 11 * X + 25),
    "bits": ("w = a * 2; y[...] = w", "w.view(nl.int32)", (2 * X).view(np.int32)),
    "other bits of itself": ("y.view(nl.int32)[...] = a", "y.view(nl.int32)", X.astype(np.int32)),
    "broadcast added to": ("b = nl.broadcast_to(a[0:1], (4, 8)); b += 1", "b", X[:1] + 1 + 0 * X),
    "source of a broadcast": ("b = nl.broadcast_to(a[0:1], (4, 8)); b += 1", "a", X),
}  # fmt: skip
"""Lines of a kernel, the stored expression and its values, by the change of a result or of its place."""


@pytest.mark.parametrize("on", ["golden", "rtl"])
@pytest.mark.parametrize(("lines", "stores", "expected"), ASSIGNED.values(), ids=ASSIGNED)
def test_a_result_and_the_tensor_it_was_assigned_to_are_two(tmp_path, on, lines, stores, expected):
    out = f"{expected.shape}, {'nl.int32' if expected.dtype == np.int32 else 'x.dtype'}"
    kernel = write_kernel(tmp_path, HEAD + lines.replace("; ", "\n"), older=True, out=out, stores=stores)
    assert np.array_equal(result(kernel, X, on=on), expected)


def test_a_result_keeps_its_type_and_its_sum(tmp_path):
    kernel = write_kernel(tmp_path, """
a = nl.load(x)
narrow = nl.ndarray((4, 8), dtype=nl.bfloat16)
w = nl.multiply(a, 0.1)
narrow[...] = w
sums = nl.zeros((8, 8), nl.float32, buffer=nl.psum)
sums += nisa.nc_matmul(a, a)
p = nisa.nc_matmul(a, a)
sums += p
out = [nl.ndarray((n, 8), dtype=nl.float32, buffer=nl.shared_hbm) for n in (4, 4, 8, 8)]
for k, tile in enumerate((w, narrow, p, sums)):
    nl.store(out[k], value=nl.copy(tile))
return tuple(out)
""", older=True)  # fmt: skip
    w, narrow, p, sums = run_kernel(kernel, X, preset="small").outputs
    tenth = X * np.float32(0.1)
    assert np.array_equal(w, tenth) and np.array_equal(narrow, tenth.astype(BF16).astype(np.float32))
    assert np.array_equal(p, X.T @ X) and np.array_equal(sums, 2 * (X.T @ X))


@pytest.mark.parametrize(
    ("lines", "use", "message"),
    [
        ("w = a + 1; narrow[...] = w; a[...] = 0", "w", WRITTEN),
        ("w = nl.dropout(a, 0.5); narrow[...] = w", "w", WRITTEN),
        ("b = nl.broadcast_to(a[0:1], (4, 8)); a += 1", "b", WRITTEN),
        ("w = a + 1; y[...] = w", "w[:, 6:14]", r"an index must be between 0 and 7, not from 6 to 13"),
        ("i = nl.arange(4)[:, None]", "a[i, i]", r"all partitions must have the same elements"),
        ("i = nl.arange(4)[:, None]; a[0 * i, nl.arange(8)] = 1.0", "a", r"must have each partition once"),
        ("import copy; w = copy.copy(a)", "w", r"must be copied by nl.copy"),
    ],
)  # fmt: skip
def test_what_no_storage_holds_is_refused(tmp_path, lines, use, message):
    kernel = write_kernel(tmp_path, HEAD + lines.replace("; ", "\n"), older=True, out="(4, 8), x.dtype", stores=use)
    with pytest.raises(ValueError, match=message):
        result(kernel, X)


def test_sums_go_on_in_a_part_of_a_tensor(tmp_path):
    kernel = write_kernel(tmp_path, """
a, sums = nl.load(x), nl.ndarray((4, 1), dtype=x.dtype)
y, p = nl.ndarray(x.shape, dtype=x.dtype), nl.arange(4)[:, None]
for k in range(2):
    command = nisa.reduce_cmd.reduce if k else nisa.reduce_cmd.reset_reduce
    part = a[:, 4 * k : 4 * k + 4].as_tile()
    y[:, 4 * k : 4 * k + 4] = nisa.activation(op=nl.copy, data=part, reduce_op=nl.add, reduce_res=sums[p, 0],
                                              reduce_cmd=command)
""", older=True, out="(4, 1), x.dtype", stores="sums")  # fmt: skip
    assert np.array_equal(result(kernel, X), X.sum(1, keepdims=True))


@pytest.mark.parametrize(
    ("before", "body", "stores", "message"),
    [
        ("w = a + 1; y[...] = w", "y[...] = y + w", "y", LATER),
        ("w = a + 1; y[...] = w", "w[...] = nl.copy(a)", "w", LATER),
        ("b = nl.broadcast_to(a[0:1], (4, 8))", "a[...] = b + 1", "a", READ),
        ("b = nl.broadcast_to(a[0:1], (4, 8))", "b += 1", "b", LATER),
        ("n = nl.ndarray((4, 1), dtype=nl.bfloat16)", "w = nl.load(x.select(1, i)); n[...] = w", "w", WRITTEN),
    ],
)
def test_what_another_round_of_a_loop_could_change_is_refused(tmp_path, before, body, stores, message):
    inner = body.replace("; ", "\n    ")
    kernel = write_kernel(tmp_path, f"""
times = nisa.register_alloc()
nisa.register_load(times, nl.load(rounds))
{HEAD}{before.replace("; ", chr(10))}
for i in nl.dynamic_range(0, times):
    {inner}
""", older=True, out="(4, 8), x.dtype", stores=stores, parameters="x, rounds")  # fmt: skip
    with pytest.raises(ValueError, match=message):
        result(kernel, X, np.array([[2]], np.int32))


def test_a_broadcast_is_read_in_a_loop(tmp_path):
    kernel = write_kernel(tmp_path, f"""
times = nisa.register_alloc()
nisa.register_load(times, nl.load(rounds))
{HEAD}y[...] = 0
b = nl.broadcast_to(a[0:1], (4, 8))
for i in nl.dynamic_range(0, times):
    y += b
""", older=True, out="(4, 8), x.dtype", stores="y", parameters="x, rounds")  # fmt: skip
    assert np.array_equal(result(kernel, X, np.array([[3]], np.int32)), 3 * np.repeat(X[:1], 4, 0))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("nl.copy(nisa.nc_matmul(a, a, mask=(i < 3) & (j < 3)))", np.where(np.arange(8) < 3, X[:3].T @ X[:3], 0)),
        ("nl.copy(nisa.nc_matmul(a, a, mask=j < 5))", np.where(np.arange(8) < 5, X.T @ X, 0)),
        ("nisa.nc_n_gather(a, nl.copy(a, dtype=nl.uint32) % 8, mask=j < 5)",
         np.where(np.arange(8) < 5, np.take_along_axis(X, X.astype(int) % 8, 1), 0)),
        ("nisa.bn_stats(a[:, 0:6], mask=nl.arange(6)[None, :] < 4)",
         np.stack(np.broadcast_arrays(2, X[:, 0] + 1, 2, 2, X[:, 0] + 2, 2), 1)),
    ],
    ids=["product", "columns", "gather", "statistics"],
)  # fmt: skip
def test_a_mask_cuts_the_dimensions_that_it_names(tmp_path, call, expected):
    head = "a = nl.load(x)\ni, j = nl.arange(4)[:, None], nl.arange(8)[None, :]"
    out = f"{expected.shape}, nl.float32"
    kernel = write_kernel(tmp_path, f"{head}\nw = {call}", older=True, out=out, stores="w")
    assert np.array_equal(result(kernel, X, preset="small"), expected)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [("out[1:3, 2:4]", X[1:3, 2:4]), ("out.permute((1, 0))", X.T), ("out.view(nl.int32)", X.view(np.int32))],
)
def test_a_part_of_a_tensor_may_be_returned(tmp_path, returned, expected):
    kernel = write_kernel(tmp_path, f"""
out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
nl.store(out, value=nl.load(x))
return {returned}
""", older=True)  # fmt: skip
    found = result(kernel, X)
    assert found.dtype == expected.dtype and np.array_equal(found, expected)


class Drawn:
    """Random statements on tiles, and the values that numpy says they have."""

    def __init__(self, rng):
        self.rng, self.lines, self.values, self.types = rng, [], {}, {}

    def pick(self, *types):
        return str(self.rng.choice([name for name, dtype in self.types.items() if not types or dtype in types]))

    def operation(self):
        one, other = self.pick(), self.pick() if self.rng.random() < 0.6 else float(self.rng.integers(-3, 4)) / 7
        name, compute = [("add", np.add), ("multiply", np.multiply), ("maximum", np.maximum)][self.rng.integers(3)]
        a, b = (self.values[v].astype(np.float32) if isinstance(v, str) else np.float32(v) for v in (one, other))
        return f"nl.{name}({one}, {other!r}".replace("'", ""), compute(a, b)

    def define(self, name, dtype, text, value):
        self.lines.append(f"{name} = {text}, dtype=nl.{dtype})")
        self.values[name], self.types[name] = value.astype(TYPES[dtype]), dtype

    def statement(self):
        kind = self.rng.integers(6)
        if kind < 3:
            name = f"w{self.rng.integers(4)}"
            text, value = self.operation()
            dtype = str(self.rng.choice(list(TYPES)))
            self.define(name, dtype, text, value)
            for _ in range(self.rng.integers(3)):
                self.assign(self.pick(dtype), name)
        elif kind == 3:
            self.assign(self.pick(), self.pick("float32"))
        elif kind == 4:
            name, other = self.pick(), self.pick()
            self.lines.append(f"{name} += {other}")
            total = self.values[name].astype(np.float32) + self.values[other].astype(np.float32)
            self.values[name] = total.astype(self.values[name].dtype)
        else:
            name, first = self.pick(), int(self.rng.integers(5))
            self.lines.append(f"{name}[:, {first}:{first + 3}] = {first}.5")
            self.values[name] = self.values[name].copy()
            self.values[name][:, first : first + 3] = first + 0.5

    def assign(self, target, value):
        if target != value:
            self.lines.append(f"{target}[...] = {value}")
            self.values[target] = self.values[value].astype(self.values[target].dtype)


@pytest.mark.parametrize("seed", range(25))
def test_random_statements_have_numpys_values(tmp_path, seed):
    drawn = Drawn(np.random.default_rng(SEED + seed))
    x = drawn.rng.normal(size=(4, 8)).astype(np.float32)
    for name, dtype in (("a", "float32"), ("y", "bfloat16"), ("z", "float32")):
        drawn.define(name, dtype, f"nl.add(nl.load(x), {len(name)}", x + np.float32(1))
    for _ in range(12):
        drawn.statement()
    names = list(drawn.values)
    lines = [*drawn.lines, f"out = nl.ndarray(({len(names)}, 4, 8), dtype=nl.float32, buffer=nl.shared_hbm)"]
    lines += [f"nl.store(out[{k}], value={name})" for k, name in enumerate(names)]
    kernel = write_kernel(tmp_path, "\n".join([*lines, "return out"]), older=True)
    try:
        found = result(kernel, x)
    except ValueError as refusal:
        assert WRITTEN in str(refusal), drawn.lines
        pytest.skip("refused")
    for name, own in zip(names, found, strict=True):
        assert np.array_equal(own, drawn.values[name].astype(np.float32)), (name, drawn.lines)
