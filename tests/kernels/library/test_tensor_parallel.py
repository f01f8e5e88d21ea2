"""Linear layer on several cores, bit for bit."""

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from neuroncore_rtl.golden import collective, tensor
from neuroncore_rtl.kernels.library.collectives import collectives_program
from neuroncore_rtl.kernels.library.tensor_parallel import row_strips, tensor_parallel_programs
from neuroncore_rtl.kernels.program import build_image
from neuroncore_rtl.spec import formats, instance, isa
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa.collective import Collective, Group
from tests.kernels.running import run_golden_instance

SEED = 6765
TINY = PRESETS["tiny"]


def operands(rng, m, k, n):
    x, w = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    return x.view(np.uint16), w.view(np.uint16)


def run(config, shards, group, order=None):
    images = [build_image(collectives_program(config, [], 0))] * config.cores
    for core, shard in zip(group.cores, shards, strict=True):
        images[core] = shard.image
    outcomes = run_golden_instance(config, images, order)
    memories = [outcomes[core].hbm for core in group.cores]
    pairs = [*zip(shards, memories, strict=True)]
    return (np.stack([getattr(shard, name).elements(hbm) for shard, hbm in pairs]) for name in ("y", "partial"))


def collectives(shard):
    return [entry for entry in shard.program.entries if isinstance(entry.instruction, Collective)]


@pytest.mark.parametrize(
    "cores, group, m, k, n, strips",
    [(2, Group(0, 1, 2), 24, 24, 40, 3), (4, Group(3, -1, 4), 37, 19, 33, 2), (4, Group(1, 2, 2), 9, 8, 600, 2),
     (4, Group(0, 1, 4), 21, 4, 16, 1)],
)  # fmt: skip
def test_sums_of_partial_products(rng, cores, group, m, k, n, strips):
    config = TINY.with_overrides(cores=cores)
    x, w = operands(rng, m, k, n)
    shards = tensor_parallel_programs(config, group, x, w, strips=strips)
    parts = [slice(*ends) for ends in pairwise(k * rank // group.ranks for rank in range(group.ranks + 1))]
    expected = np.stack([tensor.matrix_product(x[:, part], w[part], formats.BF16, config.rows) for part in parts])
    y, partial = run(config, shards, group)
    assert np.array_equal(partial, expected)

    done = 0
    made = [[entry.instruction for entry in collectives(shard)] for shard in shards]
    for together, rows in zip(zip(*made, strict=True), row_strips(m, n, strips, config.columns), strict=True):
        total = collective.reduce_blocks(expected[:, rows].reshape(group.ranks, -1), list(together))
        assert all(np.array_equal(of_rank[rows].reshape(-1), total) for of_rank in y)
        done += len(total)
    assert done == m * n and len(made[0]) == strips

    values = [codes.view(ml_dtypes.bfloat16).astype(np.float64) for codes in (x, w)]
    exact, size = values[0] @ values[1], np.abs(values[0]) @ np.abs(values[1])
    assert (np.abs(y[0].view(np.float32) - exact) <= k * 2.0**-24 * size).all()

    for _ in range(3):
        again, _ = run(config, shards, group, rng)
        assert np.array_equal(again, y)


@pytest.mark.parametrize("preset", ["tiny", "small", "large"])
def test_a_collective_waits_for_its_strip_s_stores_and_for_nothing_else(rng, preset):
    config = instance.Instance(chips=2, core=PRESETS[preset]).core
    m, n = 8 * config.columns, 96
    x, w = operands(rng, m, 2 * config.rows, n)
    (shard, _) = tensor_parallel_programs(config, Group(0, 1, 2), x, w, strips=4)
    entries = shard.program.entries
    copies = {e.position: e.instruction for e in entries if isinstance(e.instruction, isa.DmaCopy)}
    stores = {position: copy.dst.address for position, copy in copies.items() if copy.dst.storage == isa.Storage.HBM}
    for one, rows in zip(collectives(shard), row_strips(m, n, 4, config.columns), strict=True):
        assert one.instruction.src == shard.partial[rows].address and one.instruction.dst == shard.y[rows].address
        waits = [wait for entry in entries[: one.position + 1] if entry.queue == one.queue for wait in entry.waits]
        awaited = {e.position for e in entries for lane, count in waits if e.lane == lane and e.number < count}
        place = range(one.instruction.src, one.instruction.src + 4 * one.instruction.count)
        own = {position for position, address in stores.items() if address in place}
        assert own and own <= awaited
        # A strip's collective waits for no load.
        assert awaited.isdisjoint(copies.keys() - stores.keys())


def test_without_the_collectives_it_is_the_same_program(rng):
    config, group = TINY.with_overrides(cores=2), Group(0, 1, 2)
    x, w = operands(rng, 16, 8, 16)
    ours, alone = (tensor_parallel_programs(config, group, x, w, reduce=reduce) for reduce in (True, False))
    for shard, other in zip(ours, alone, strict=True):
        plain = [e.instruction for e in shard.program.entries if not isinstance(e.instruction, Collective)]
        assert plain == [entry.instruction for entry in other.program.entries]
        assert other.y == other.partial == shard.partial and len(collectives(shard)) == 4
    y, partial = run(config, alone, group)
    assert np.array_equal(y, partial)


def test_refusals(rng):
    config = TINY.with_overrides(cores=2)
    x, w = operands(rng, 16, 8, 16)
    for wrong, message in (
        (lambda: tensor_parallel_programs(config, Group(0, 1, 2), x, w[:4]), r"x and w must be \[M, K\] and \[K, N\]"),
        (lambda: tensor_parallel_programs(config, Group(0, 1, 2), x[:, :1], w[:1]), "K must be at least the 2 ranks"),
        (lambda: tensor_parallel_programs(config, Group(0, 1, 2), x, w, strips=5), "strips must be between 1 and 4"),
        (lambda: tensor_parallel_programs(config, Group(0, 1, 3), x, w), "rule STATE"),
        (lambda: row_strips(48, 3, 4, 4), "strips must be between 1 and 3, of 16 rows or more, not 4"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
