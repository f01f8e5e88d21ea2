import pytest

from neuroncore_rtl.hdl.memory.bank_arbiter import LINE_PATIENCE
from neuroncore_rtl.spec.config import Config
from tests.hdl.memory.traffic import Traffic
from tests.hdl.simulation import simulate, slow_if

CONFIGS = (
    Config(rows=3, columns=5, hbm_ports=2, dma_engines=2, hbm_bytes=8),
    Config(rows=10, columns=4, hbm_ports=1, hbm_bytes=64),
    Config(
        **{"rows": 2, "columns": 2, "hbm_ports": 3, "dma_engines": 3, "hbm_bytes": 16},
        **{"sbuf_bytes": 1536, "sbuf_banks": 4, "line_bytes": 32, "psum_words": 16, "psum_banks": 4},
    ),
    Config(rows=4, columns=3, hbm_ports=2, dma_engines=2, hbm_bytes=8, psum_banks=2, port_latency=1),
    Config(rows=3, columns=2, hbm_bytes=8, sbuf_bytes=1024, sbuf_banks=2, line_bytes=8),
)
"""Configurations of different shape: PSUM partitions and rows, blocks, and size of lines.

Other configurations have small memories with few PSUM banks, registered ports (where engines ignore the requests of
lines), or narrow lines.
"""

CYCLES = 130


@pytest.mark.parametrize(
    "config",
    slow_if(lambda config: config not in (CONFIGS[0], CONFIGS[3]), CONFIGS),
    ids=lambda c: f"{c.rows}x{c.columns}-{c.hbm_ports}x{c.hbm_bytes}",
)
def test_reads_see_the_latest_writes_and_requests_stall_only_in_conflicts(config):
    traffic = Traffic(config, 7)
    simulate(traffic.memory, lambda ctx: traffic.bench(ctx, CYCLES, ((0.4, 0.2), (1.0, 0.2), (0.3, 0.9))))
    assert traffic.compared > 3 * CYCLES
    assert traffic.counted == traffic.conflicts
    # After LINE_PATIENCE cycles a line port has priority over all ports other than line ports.
    assert traffic.longest <= LINE_PATIENCE + config.hbm_ports
    assert traffic.urgent > 0
    assert traffic.beside > CYCLES / 10
    assert min(traffic.counted.values()) > 0
