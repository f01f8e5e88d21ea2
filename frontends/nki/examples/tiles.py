"""Kernels in the first dialect with the functions of `nki.language` on tiles."""

# Only the front end provides these imports.
# pyright: reportMissingImports=false
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

FUNCTIONS = (
    nl.abs, nl.arctan, nl.cos, nl.erf, nl.erf_dx, nl.exp, nl.gelu, nl.gelu_apprx_sigmoid, nl.gelu_apprx_sigmoid_dx,
    nl.gelu_apprx_tanh, nl.gelu_dx, nl.log, nl.mish, nl.negative, nl.reciprocal, nl.relu, nl.rsqrt, nl.sigmoid, nl.sign,
    nl.silu, nl.silu_dx, nl.sin, nl.softplus, nl.sqrt, nl.square, nl.tan, nl.tanh, nl.logical_not, nl.ceil, nl.floor,
    nl.trunc,
)  # fmt: skip

OPERATIONS = (
    nl.abs_max, nl.add, nl.divide, nl.equal, nl.greater, nl.greater_equal, nl.less, nl.less_equal, nl.logical_and,
    nl.logical_or, nl.logical_xor, nl.maximum, nl.minimum, nl.multiply, nl.not_equal, nl.power, nl.subtract,
    nl.abs_min, nl.fmod, nl.mod,
)  # fmt: skip

BITS = nl.bitwise_and, nl.bitwise_or, nl.bitwise_xor, nl.left_shift, nl.right_shift


@nki.jit
def functions(x):
    out = nl.ndarray((len(FUNCTIONS), *x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for number, function in enumerate(FUNCTIONS):
        nl.store(out[number], value=function(tile))
    return out


@nki.jit
def operations(a, b):
    out = nl.ndarray((len(OPERATIONS), *a.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    left, right = nl.load(a), nl.load(b)
    for number, operation in enumerate(OPERATIONS):
        nl.store(out[number], value=operation(left, right))
    return out


@nki.jit
def bits(a, b):
    out = nl.ndarray((len(BITS) + 1, *a.shape), dtype=nl.int32, buffer=nl.shared_hbm)
    left, right = nl.load(a), nl.load(b)
    for number, operation in enumerate(BITS):
        nl.store(out[number], value=operation(left, right))
    nl.store(out[len(BITS)], value=nl.invert(left))
    return out


@nki.jit
def reductions(x):
    """Return the reductions of the rows of x [partitions, columns]: [7, partitions, 1]."""
    out = nl.ndarray((7, x.shape[0], 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    found = [reduce(tile, axis=1, keepdims=True) for reduce in (nl.sum, nl.prod, nl.max, nl.min, nl.mean, nl.var)]
    for number, column in enumerate((*found, nl.expand_dims(nl.all(tile, axis=1), 1))):
        nl.store(out[number], value=column)
    return out


@nki.jit
def composed(x, w, gain):
    """Return softmax of rows, rms_norm(x) * gain [1, columns], (x w).T, and x where x > x / 2, else 0."""
    rows, columns = x.shape
    softmax, normed, turned, chosen = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(4))
    tile, weights = nl.load(x), nl.load(w)
    nl.store(softmax, value=nl.softmax(tile, axis=1))
    wide = nl.broadcast_to(nl.load(gain), (rows, columns))
    nl.store(normed, value=nl.rms_norm(tile, wide, axis=1, n=columns, epsilon=0.0))
    nl.store(turned, value=nl.transpose(nl.copy(nl.matmul(tile, weights))))
    sums = nl.zeros((rows, columns), dtype=nl.float32)
    for part in nl.affine_range(3):
        sums[...] = nl.loop_reduce(tile * (1 / 6), op=nl.add, loop_indices=[part], mask=True)
    halves = nl.static_cast(sums, nl.float32)
    nl.store(chosen, value=nl.where(nl.greater(tile, halves), tile, 0.0))
    return softmax, normed, turned, chosen


@nki.jit
def triangle(x):
    """Return x [partitions, columns] on and below its diagonal; above it the column number - 1."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0 : x.shape[0], 0 : x.shape[1]]
    numbers = nisa.iota(j + 0 * i, dtype=nl.int32)
    above = nisa.affine_select(pred=j > i, on_true_tile=numbers, on_false_value=0, dtype=nl.float32)
    below = nisa.affine_select(pred=i >= j, on_true_tile=nl.load(x), on_false_value=-1.0)
    fill = nisa.memset(x.shape, value=0.0, dtype=nl.float32)
    nl.store(out, value=above + below + fill)
    return out


@nki.jit
def random_tiles(x, rate=0.5):
    kept, numbers = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(2))
    nl.store(kept, value=nl.dropout(nl.load(x), rate=rate))
    nl.store(numbers, value=nl.rand(x.shape, dtype=nl.float32))
    return kept, numbers
