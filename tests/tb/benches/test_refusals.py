"""What a TEST cannot do is refused before anything is built, and the variable is named."""

import pytest

from neuroncore_rtl.tb.cli.registry import bench_named
from neuroncore_rtl.tb.sim.settings import UsageError

REFUSED = {
    "activation": ("FUNC=gelu2", "N=0"),
    "digits": ("IMAGES=361", "BATCH=0", "CONFIDENCE=101", "TARGET=gpu"),
    "matmul": ("M=0", "DTYPE=int32", "PRESET=huge", "STALL=256", "ROWS=1"),
    "vector": ("N=0", "OP=add", "DTYPE=fp64", "COUNT=0", "STALL=241"),
}


@pytest.mark.parametrize(("test", "assignment"), [(test, one) for test, ones in REFUSED.items() for one in ones])
def test_what_the_bench_cannot_do_is_refused(test, assignment):
    with pytest.raises(UsageError, match=f"{assignment.partition('=')[0]} must be"):
        bench_named(test).settings([assignment])
