"""Check of the kernel's recipe: its TEST is found by name, and golden's result is close to float64's."""

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.run.elementwise import expected_memories
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.kernels.workbench import EngineWorkbench

config = PRESETS["tiny"]
test = command_named("l2norm")
bench = EngineWorkbench(config)
settings = test.settings(["M=10", "N=24", "DTYPE=fp32"])
y, reference = test.build(bench, settings, np.random.default_rng(1))["y"]
instructions = [entry.instruction for entry in bench.program.entries]
sbuf, _ = expected_memories(instructions, *bench.memories(), config)
codes = np.ascontiguousarray(y.read(sbuf))
np.testing.assert_allclose(decode(codes, y.format), reference, rtol=1e-6)
assert np.abs(reference).max() > 0.1
