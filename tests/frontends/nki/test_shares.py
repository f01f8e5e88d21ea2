"""Shares of long copies: runs of contiguous bytes stay as long as possible."""

import numpy as np

from neuroncore_rtl.frontends.nki.dialects.modules import OPERATORS
from neuroncore_rtl.frontends.nki.indices import dtypes, storage
from neuroncore_rtl.frontends.nki.lowering.strided import strided
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.frontends.nki.trace.tensor import NkiTensor
from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.spec.config import PRESETS, Config

FULL = PRESETS["full"]
SLOW = FULL.with_overrides(packet_interval=26)


def copies(config: Config, *shape: int, width: int) -> list[tuple[int, ...]]:
    """Return the shapes of the copies that load `shape` beside other columns on chip, in all `width` of them."""
    recording = Recording(Program(config), NkiTensor, OPERATORS)
    source = recording.allocate(shape, dtypes.DTYPES["float32"], storage.Memory.shared_hbm)
    target = recording.allocate((*shape[:-1], width), dtypes.DTYPES["float32"], storage.Memory.sbuf)
    strided(recording, target[..., : shape[-1]], source)
    found = [step.instruction.shape for step in recording.program.steps]
    assert sum(map(np.prod, found)) == np.prod(shape)
    return found


def test_a_dimension_that_does_not_cut_runs_is_divided():
    assert {shape[2] for shape in copies(FULL, 128, 64, 9, width=18)} == {9}


def test_rows_are_divided_only_where_short_runs_are_not_slow():
    assert {shape[1] for shape in copies(FULL, 128, 1024, width=2048)} == {256}
    assert {shape[1] for shape in copies(SLOW, 128, 1024, width=2048)} == {1024}
    assert len(copies(SLOW, 128, 1024, width=2048)) == FULL.hbm_ports
