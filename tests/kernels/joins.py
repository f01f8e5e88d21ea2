"""Program in which one instruction waits for all other queues of a core."""

import numpy as np

from neuroncore_rtl.kernels.program import (
    HbmTensor,
    Image,
    Program,
    build_image,
    dma_copy,
    load_stationary,
    multiply_moving,
)
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32

__all__ = ["join_image"]


def join_image(config: Config) -> tuple[Image, list[tuple[HbmTensor, int]]]:
    """Return the image and HBM tensors with final codes; all queues read a tensor before it is overwritten."""
    columns = 8 + config.dma_engines
    program = Program(config)
    space = program.space
    x, y = (space.hbm(name, BF16, (config.rows, columns)) for name in "xy")
    t, u = (space.sbuf(name, BF16, (columns,), config.rows, kept=True) for name in "tu")
    sums = space.psum("sums", FP32, (4,), kept=True)
    program.append(dma_copy(t, x))
    program.append(load_stationary(t[:, :4]))
    program.append(multiply_moving(sums[:4], t[:, 4:8]))
    program.append(load_stationary(t[:, :4]))
    program.append(isa.activation(u, t, "identity"))
    stored = [space.hbm(f"stored {n}", BF16, (config.rows, 1)) for n in range(config.dma_engines)]
    for n, queue in enumerate(program.dma_queues):
        program.append(dma_copy(stored[n], t[:, 8 + n : 9 + n]), queue=queue)
    program.append(isa.memset(t, 0.0))
    program.append(dma_copy(y, t))
    one = int(np.float32(1).view(np.uint32)) >> 16
    return build_image(program, [(x, np.full(x.shape, one))]), [(y, 0), *((tensor, one) for tensor in stored)]
