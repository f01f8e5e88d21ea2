from itertools import chain

import numpy as np
import pytest

from neuroncore_rtl.run.harness.collective_faults import CollectiveFault
from neuroncore_rtl.spec.isa import Rule, collective
from tests.hdl.collective.machine import CORES, HBM_BYTES, run_collectives
from tests.hdl.collective.test_engines import all_reduce, check, programs_of
from tests.hdl.simulation import slow

SEED = 496
K = collective.CollectiveKind


@pytest.mark.parametrize("network", [{}, {"stall": 200}])
def test_a_sender_retires_after_the_token(network, rng):
    """With a long latency, all data are sent before the token arrives on either channel.

    Barriers with a third core make the receiver ready before the sender.
    """
    counts = [*(2 * collective.GRANULE,) * 40, *(1, 2, collective.GRANULE + 1) * 2]
    barrier = all_reduce(collective.Group(0, 2, 2), kind=K.BARRIER)
    sends = [all_reduce(kind=K.SEND, root=1, count=count, dst=1 << 16) for count in counts]
    programs = programs_of(*chain.from_iterable((barrier, send) for send in sends))
    outcome = check(programs, rng.integers(0, 256, (CORES, HBM_BYTES), np.uint8), latency=1, delay=100, **network)
    # Flits received: READY and the token on each channel with data, READY and a beat of each barrier, and the READY of
    # the next collective.
    taken = np.cumsum([2 * (1 + (count > collective.GRANULE)) + 2 for count in counts]) + 1
    taken[-1] -= 1
    assert outcome.taken[0][1::2] == taken.tolist()


@pytest.mark.parametrize("before", [1023, *slow(2047)])
def test_an_error_has_the_number_of_retired_instructions(before):
    memories = np.zeros((CORES, HBM_BYTES), np.uint8)
    barrier, illegal = programs_of(all_reduce(kind=K.BARRIER)), programs_of(all_reduce(count=0))
    programs = {core: barrier[core] * before + illegal[core] for core in (0, 1)}
    outcome = run_collectives(programs, memories, latency=1, delay=0)
    assert outcome.errors == [CollectiveFault(core, Rule.SHAPE, before, 0) for core in (0, 1)]
    assert [len(retired) for retired in outcome.retired[:2]] == [before, before]
