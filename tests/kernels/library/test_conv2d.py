"""Consecutive convolutions on golden, and refusals."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.library.conv2d import ConvWindow, conv2d
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from tests.kernels.running import TINY, run_golden


def test_a_convolution_takes_what_one_has_left(rng):
    """A 1 x 1 filter of an identity copies its image; padding is added in SBUF."""
    program = Program(TINY)
    x, w = program.space.hbm("x", BF16, (2, 3, 4)), program.space.hbm("w", BF16, (1, 1, 2, 2))
    wide = program.space.hbm("wide", BF16, (3, 3, 2, 1))
    second = conv2d(program, conv2d(program, x, w), wide, window=ConvWindow(padding=(1, 1)), fmt=FP32)
    assert second.tiles[0].shape == (3, 4)
    y = program.space.hbm("y", FP32, (1, 3, 4))
    program.append(dma_copy(y, second.tiles[0]))
    values = rng.integers(-8, 9, x.shape).astype(np.float32)
    one = (np.eye(2, dtype=np.float32)[None, None].view(np.uint32) >> 16).astype(np.uint16)
    ones = np.full(wide.shape, 0x3F80, np.uint16)
    codes = (values.view(np.uint32) >> 16).astype(np.uint16)
    hbm = run_golden(build_image(program, [(x, codes), (w, one), (wide, ones)]), rng).hbm
    expected = np.lib.stride_tricks.sliding_window_view(np.pad(values.sum(0), 1), (3, 3)).sum((2, 3))
    assert np.array_equal(y.elements(hbm).view(np.float32)[0], expected)


def test_refusals():
    program = Program(TINY)
    x, w = program.space.hbm("x", BF16, (4, 3, 3)), program.space.hbm("w", BF16, (5, 5, 4, 4))
    with pytest.raises(ValueError, match=r"a filter must fit the padded image \[3, 3\], not be \[5, 5\]"):
        conv2d(program, x, w)
    with pytest.raises(ValueError, match=r"w: shape must be \[height, width, 4, channels\], not \[5, 5, 3, 4\]"):
        conv2d(program, x, program.space.hbm("w", BF16, (5, 5, 3, 4)))
    with pytest.raises(ValueError, match=r"y: operands must have the same format of .*, not int8 and int8"):
        conv2d(program, *(program.space.hbm(name, INT8, (4, 1, 1, 4)[4 - n :]) for name, n in (("x", 3), ("w", 4))))
    with pytest.raises(ValueError, match=r"x: shape must be \[channels, height, width\], not with images \[3\]"):
        conv2d(program, program.space.hbm("x", BF16, (4, 3)), w)
    with pytest.raises(ValueError, match=r"stride must be two integers of at least 1, not \(0, 1\)"):
        ConvWindow(stride=(0, 1))
