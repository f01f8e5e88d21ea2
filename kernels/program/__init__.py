"""Programs under construction: tensors, allocation, instructions, and the image that the core boots from."""

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.copies import dma_copy, dma_gather, dma_scatter
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.kernels.program.operands import Draw, row_major
from neuroncore_rtl.kernels.program.products import load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor

__all__ = [
    "Allocator", "Draw", "HbmTensor", "Image", "Program", "Tensor", "build_image", "dma_copy", "dma_gather",
    "dma_scatter", "load_stationary", "multiply_moving", "row_major",
]  # fmt: skip
