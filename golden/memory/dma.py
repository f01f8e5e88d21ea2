"""Untimed DMA copy: strided views of the bytes of HBM, SBUF and PSUM.

The address of an element is linear in its indices, and the distance between partitions is one more stride. So every
copy, transposing or not, is one assignment between two views.
"""

import numpy as np

from neuroncore_rtl.golden.arith import storage_dtype
from neuroncore_rtl.golden.arith.words import load_words, store_words
from neuroncore_rtl.golden.memory.access import are_distinct
from neuroncore_rtl.spec.formats import FP32, UINT32, Format
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, Cause, DmaCopy, DmaTensor, Storage
from neuroncore_rtl.spec.isa.alu import Arithmetic

__all__ = ["DmaFault", "dma_copy"]


class DmaFault(Exception):
    """A legal copy cannot be finished.

    The cause is AXI if the copy reaches beyond HBM, or INDEX if a row number (the detail) is too large.
    """

    def __init__(self, cause: Cause, detail: int = 0):
        super().__init__(cause, detail)
        self.cause = cause
        self.detail = detail


def dma_copy(instruction: DmaCopy, hbm: np.ndarray, sbuf: np.ndarray, psum: np.ndarray) -> None:
    """Execute one legal copy.

    It reads all elements, or with a gather or scatter all of a row, before it writes; of two writes to one address the
    later one remains. A skipped row is neither read nor written.

    Raises DmaFault, with the rows before the faulty one written.
    """
    memories = {Storage.HBM: hbm, Storage.SBUF: sbuf, Storage.PSUM: psum}
    src, dst = (_Tensor(t, memories[t.storage]) for t in (instruction.src, instruction.dst))
    shape = instruction.shape
    index = instruction.gather or instruction.scatter
    if index is None:
        dst.write(_cast(src.view(shape), src.format, dst.format))
        return
    words = sbuf[index.partition : index.partition + shape[0], index.address : index.address + 4]
    for row, number in enumerate(np.ascontiguousarray(words).view("<u4").reshape(-1).tolist()):
        if number >= index.limit and index.skip:
            continue
        if number >= index.limit:
            raise DmaFault(Cause.INDEX, number)
        source = src.row(number if instruction.gather else row)
        target = dst.row(number if instruction.scatter else row)
        target.write(_cast(source.view(shape[1:]), src.format, dst.format))


class _Tensor:
    def __init__(self, tensor: DmaTensor, memory: np.ndarray):
        self.format = tensor.format
        self.beyond = tensor.storage == Storage.HBM
        self.bytes = memory.reshape(-1)
        size, pitch = tensor.format.bits // 8, memory.shape[-1]
        self.offset = tensor.address + (0 if self.beyond else tensor.partition * pitch)
        self.strides = tuple(step * (pitch if d == tensor.axis else size) for d, step in enumerate(tensor.steps))

    def row(self, number: int) -> "_Tensor":
        row = object.__new__(_Tensor)
        row.format, row.beyond, row.bytes = self.format, self.beyond, self.bytes
        row.offset = (self.offset + number * self.strides[0]) % (1 << HBM_ADDRESS_BITS)
        row.strides = self.strides[1:]
        return row

    def view(self, shape: tuple[int, ...]) -> np.ndarray:
        dtype = storage_dtype(self.format)
        low = high = self.offset
        for count, stride in zip(shape, self.strides, strict=True):
            if stride < 0:
                low += (count - 1) * stride
            else:
                high += (count - 1) * stride
        if self.beyond and (low < 0 or high + dtype.itemsize > len(self.bytes)):
            raise DmaFault(Cause.AXI)
        return np.ndarray(shape, dtype.newbyteorder("<"), self.bytes, self.offset, self.strides)

    def write(self, codes: np.ndarray) -> None:
        view = self.view(codes.shape)
        if are_distinct(self.strides, codes.shape):
            np.copyto(view, codes)
            return
        addresses = np.full((), self.offset, np.int64)
        for count, stride in zip(codes.shape, self.strides, strict=True):
            addresses = addresses[..., np.newaxis] + stride * np.arange(count)
        # np.unique returns first occurrences: reversed, the last write to each address.
        places, last = np.unique(addresses.reshape(-1)[::-1], return_index=True)
        chosen = np.ascontiguousarray(codes.reshape(-1)[::-1][last], view.dtype).view(np.uint8)
        self.bytes[places[:, np.newaxis] + np.arange(view.itemsize)] = chosen.reshape(len(places), -1)


def _cast(codes: np.ndarray, source: Format, target: Format) -> np.ndarray:
    if source == target:
        return codes
    arithmetic = Arithmetic.FP32
    if not (source.is_float or target.is_float):
        arithmetic = Arithmetic.UINT32 if source == UINT32 else Arithmetic.INT32
    return store_words(load_words(codes, source, arithmetic, odd=target != FP32), target, arithmetic).reshape(
        codes.shape
    )
