"""Kernels with dynamic loops: the number of rows or of iterations is known only at run time."""

# Only the front end provides these imports.
# pyright: reportMissingImports=false
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def exponentials_of_some(x, tiles):
    """Return exp of the first `tiles` tiles of rows of x [rows, columns], 1 elsewhere; tiles [1, 1] in INT32."""
    rows, columns = x.shape
    size = nl.tile_size.pmax
    assert rows % size == 0, f"rows must be a multiple of {size}"
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ones = nl.ones((size, columns), dtype=x.dtype, buffer=nl.sbuf)
    count = nisa.register_alloc()
    nisa.register_load(count, tiles)

    def filled(i):
        nisa.dma_copy(dst=out.ap([[columns, size], [1, columns]], scalar_offset=i), src=ones)

    def computed(i):
        tile = nl.ndarray((size, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x.ap([[columns, size], [1, columns]], scalar_offset=i))
        nisa.activation(dst=tile, op=nl.exp, data=tile)
        nisa.dma_copy(dst=out.ap([[columns, size], [1, columns]], scalar_offset=i), src=tile)

    last = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.register_store(last, count)
    nisa.tensor_scalar(dst=last, data=last, op0=nl.multiply, operand0=size)
    end = nisa.register_alloc()
    nisa.register_load(end, last)
    nl.fori_loop(0, end, computed, step=size)
    nl.fori_loop(end, rows, filled, step=size)
    return out


@nki.jit
def dominant(a, tolerance=1e-3):
    """Return the dominant eigenvector [n, 1] of a, symmetric [n, n], and the number of iterations that it needed."""
    n, _ = a.shape
    out = nl.ndarray((n, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    counted = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    matrix = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=matrix, src=a)
    ones = nl.ones((n, n), dtype=nl.float32, buffer=nl.sbuf)
    v = nl.ones((n, 1), dtype=nl.float32, buffer=nl.sbuf)
    steps = nl.zeros((1, 1), dtype=nl.int32, buffer=nl.sbuf)

    def squares(x):
        """Return the sum of the squares of x [n, 1], in every partition."""
        square = nl.ndarray((n, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((n, 1), dtype=nl.float32, buffer=nl.psum)
        nisa.activation(dst=square, op=nl.square, data=x)
        nisa.nc_matmul(dst=total, stationary=ones, moving=square)
        return total

    def step(going):
        product = nl.ndarray((n, 1), dtype=nl.float32, buffer=nl.psum)
        found, root, moved = (nl.ndarray((n, 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(3))
        nisa.nc_matmul(dst=product, stationary=matrix, moving=v)
        nisa.activation(dst=root, op=nl.rsqrt, data=squares(product))
        nisa.tensor_scalar(dst=found, data=product, op0=nl.multiply, operand0=root)
        nisa.tensor_tensor(dst=moved, data1=found, data2=v, op=nl.subtract)
        nisa.tensor_copy(dst=v, src=found)
        nisa.tensor_scalar(dst=steps, data=steps, op0=nl.add, operand0=1)
        more = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=more, data=squares(moved)[0:1], op0=nl.greater, operand0=tolerance**2)
        nisa.register_load(going, more)
        return going

    nl.while_loop(nisa.register_alloc(1), step)
    nisa.dma_copy(dst=out, src=v)
    nisa.dma_copy(dst=counted, src=steps)
    return out, counted
