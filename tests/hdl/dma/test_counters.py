from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import DmaCopy, Storage
from tests.hdl.dma.copies import legal_copy, random_memories, tensor
from tests.hdl.dma.machine import run_copies

CONFIG = replace(PRESETS["tiny"], rows=8)


@pytest.mark.parametrize(("seed", "stall", "latency"), [(21, 0, 50), (22, 100, 2), (23, 200, 120)])
def test_counters_are_what_the_ports_show(seed, stall, latency):
    rng = np.random.default_rng(seed)
    memories = random_memories(rng, CONFIG)
    copies = []
    while len(copies) < 100:
        copy = legal_copy(rng, CONFIG, memories)
        if not (copy.gather or copy.scatter):
            copies.append(copy)
    outcome = run_copies(CONFIG, copies, memories, stall=stall, latency=latency, seed=seed)
    counted, seen = outcome.counters, outcome.seen
    moved = [[np.prod(copy.shape) * side.format.bits // 8 for side in (copy.src, copy.dst)] for copy in copies]
    assert [counted["read_bytes"], counted["write_bytes"]] == np.sum(moved, axis=0).tolist()
    exact = ("busy", "wait_axi_write", "wait_line_read", "wait_line_write")
    assert {name: counted[name] for name in exact} == {name: seen[name] for name in exact}
    assert counted["busy"] > 0 and all((counted[name] > 0) == (stall > 0) for name in exact[1:])
    # The input register shifts the stall of a single beat by a cycle.
    assert counted["wait_axi_read"] == pytest.approx(seen["wait_axi_read"], abs=2 * seen["bursts"])
    assert counted["wait_axi_read"] > latency


def test_waiting_for_hbm_is_counted_to_the_cycle():
    memories = random_memories(np.random.default_rng(1), CONFIG)
    copy = DmaCopy(shape=(8,), src=tensor(Storage.HBM), dst=tensor(Storage.SBUF))
    near, far = (run_copies(CONFIG, [copy], memories, latency=latency).counters for latency in (10, 47))
    assert far["wait_axi_read"] - near["wait_axi_read"] == far["busy"] - near["busy"] == 37
