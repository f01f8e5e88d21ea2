"""Passes: what is fused, the nests that cover a space, and instructions of two operations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroncore_rtl.frontends.xla import jit
from neuroncore_rtl.frontends.xla.emit import pass_plan
from neuroncore_rtl.frontends.xla.emit.nest import nests_of
from neuroncore_rtl.frontends.xla.emit.selection import Selection
from neuroncore_rtl.spec.isa.elementwise import Opcode
from tests.frontends.xla.results import compare, compare_all


def norm(x, gain, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gain + shift


def norm_by_variance(x, gain, shift):
    """JAX's variance has a mean and a condition of its own."""
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * gain + shift


def adamw(p, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m / (jnp.sqrt(v) + 1e-8) + 0.01 * p), m, v


@pytest.mark.parametrize(
    ("function", "shapes", "loads", "stores"),
    [
        (jax.nn.softmax, [(4, 40)], 1, 1),
        (norm, [(4, 40), (40,), (40,)], 3, 1),
        (adamw, [(4, 40)] * 4, 4, 3),
        (lambda x, b, y: jax.nn.gelu(x + b) + y, [(4, 40), (40,), (4, 40)], 3, 1),
    ],
    ids=["softmax", "norm", "adamw", "residual"],
)
def test_rows_pass_through_sbuf_once(rng, function, shapes, loads, stores):
    args = [np.abs(rng.normal(size=shape)).astype(np.float32) for shape in shapes]
    model = jit(function, preset="tiny", target="golden", order="program")
    steps = model.lower(*args).compile().compiled.program.steps
    copies = [step.instruction for step in steps if step.instruction.name == "DMA_COPY"]
    assert len(copies) == loads + stores
    compare(function, *args, tolerance=1e-6)


def test_equal_reductions_are_one(rng):
    args = [rng.normal(size=shape).astype(np.float32) for shape in [(4, 40), (40,), (40,)]]
    text = compare(norm_by_variance, *args, tolerance=1e-6).ir
    assert text.count(" = reduce(") == 2
    assert " = select(" not in text
    compare(lambda x: [jax.lax.reduce(x, 0.0, one, (1,)) for one in (jnp.add, jnp.maximum)], args[0], tolerance=1e-6)


def test_each_compilation_has_the_same_bytes(rng):
    """Sets of values and passes iterate in the order of their addresses, which differ between compilations."""

    def loss(up, bias, other, x):
        return ((jax.nn.softmax(x @ up + bias) * jax.nn.gelu(x @ other + bias) - x.mean(-1, keepdims=True)) ** 2).sum()

    args = [rng.normal(size=shape).astype(np.float32) for shape in [(8, 8), (8,), (8, 8), (8, 8)]]
    slopes = jax.value_and_grad(loss, argnums=(0, 1, 2))
    kept = [jit(slopes, preset="tiny", target="golden").lower(*args).compile().compiled for _ in range(4)]
    assert len({one.image.data for one in kept}) == 1


def test_a_tile_alone_is_computed_in_parts(rng):
    """Engines begin with the columns that are done; the numbers are those of whole rows."""
    args = [rng.normal(size=shape).astype(np.float32) for shape in [(4, 600), (600,), (600,)]]
    model = compare(norm, *args, tolerance=1e-6)
    widths = [
        step.instruction.shape[-1]
        for step in model.compiled.program.steps
        if getattr(step.instruction, "opcode", None) in (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR)
    ]
    assert sum(widths) == 2 * 600
    assert max(widths) < 600


def test_values_are_read_along_two_dimensions(rng):
    """A vector, computed in a pass, spreads along rows for one reader and along columns for another."""
    c, d = rng.normal(size=(5, 5)).astype(np.float32), np.square(np.arange(1, 6)).astype(np.float32)
    compare_all(
        (lambda c, d: jnp.maximum(jnp.maximum(c, -d[:, None]), -d[None, :]), c, d),
        (lambda c, d: (c - (s := d + 1)[:, None]) * s[None, :], c, d),
        (lambda c, d: (c.max(1)[:, None] + d) - c.max(1)[None, :], c, d),
    )
    compare(jnp.corrcoef, c, tolerance=1e-6)


def test_squares_of_squares_compile():
    """The factors of a product are not collected without a limit: here they double forty times."""

    def squared(x):
        for _ in range(40):
            x = x * x
        return x

    compare(squared, np.float32([1, -1, 0.5]))


@pytest.mark.parametrize("lanes", [2, 4, 16])
def test_nests_cover_a_space_once(py_rng, lanes):
    count = 0
    for _ in range(300):
        space = tuple(py_rng.choice((2, 3, 5, 7, 8, 16, 33, 64)) for _ in range(py_rng.randrange(1, 4)))
        reduced = {len(space) - 1} if py_rng.random() < 0.4 else set()
        dense = [int(np.prod(space[d + 1 :])) for d in range(len(space))]
        masked = [step * py_rng.randrange(2) for step in dense]
        seen = np.zeros(space, int).reshape(-1)
        for nest in nests_of(space, reduced, [dense, masked], lanes, py_rng.choice((4, 64, 2048))):
            assert nest.row is None or nest.counts[nest.row] <= lanes
            for tile in nest.tiles():
                index = np.indices(tile.counts).reshape(len(tile.counts), -1).T + tile.starts
                np.add.at(seen, nest.offset(dense) + index @ nest.steps(dense), 1)
                count += len(index)
        assert (seen == 1).all(), (space, reduced, masked)
    assert count > 100_000


SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e-20, 3e38, -3e38, 1, -1.5], np.float32)


def chains(x, y, r, c):
    """Return many pairs of operations that one instruction computes."""
    firsts = lambda a: a * r, lambda a: a - r, lambda a: r - a, lambda a: a + 1.7, lambda a: 3.0 - a, lambda a: a / r
    lasts = lambda a: a * 0.3, lambda a: jnp.maximum(a, y), lambda a: y - a, lambda a: a + r, jnp.tanh, lambda a: a * c
    found = [last(first(x)) for first in firsts for last in lasts]
    return found, jnp.exp(x - r).sum(-1), (x * x).sum(-1), (x * x + y).sum(-1)


def test_one_instruction_has_the_results_of_two(rng, monkeypatch):
    x, y = (
        np.concatenate([rng.permutation(SPECIAL), rng.normal(size=28)]).astype(np.float32) * np.ones((3, 1), np.float32)
        for _ in range(2)
    )
    r, c = rng.normal(size=(3, 1)).astype(np.float32), rng.normal(size=(40,)).astype(np.float32)
    r[0] = np.inf
    results = []
    for merged in (True, False):
        if not merged:
            monkeypatch.setattr(pass_plan.Selection, "of", lambda *_: Selection(frozenset(), {}))
        model = jit(chains, preset="tiny", target="golden", order="program")
        results.append([np.asarray(one).view(np.uint32) for one in jax.tree.leaves(model(x, y, r, c))])
        results[-1].append(len(model.compiled.program.steps))
    assert results[0].pop() < results[1].pop()
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    assert sum(one.size for one in results[0]) > 4000
