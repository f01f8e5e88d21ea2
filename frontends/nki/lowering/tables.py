"""On-chip tensors copied to HBM, because DMA engines look up elements by number only there."""

from dataclasses import replace

from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.strided import strided
from neuroncore_rtl.frontends.nki.trace.recording import Recording

__all__ = ["in_table", "table_of", "whole_block"]


def whole_block(r: Recording, view: View) -> View:
    """Return the whole block that a view on chip is part of."""
    allocation, block = view.allocation, view.one_block()
    shape = allocation.partitions, allocation.width
    flat = (0, 0)
    return r.tensor(
        allocation=allocation, dtype=allocation.dtype, shape=shape, element=Affine(shape, (0, 1)),
        partition=Affine(shape, (1, 0)), block=Affine(shape, flat, block), lanes=0,
    )  # fmt: skip


def table_of(r: Recording, view: View) -> View:
    """Return a copy in HBM of a view's block; the copy is reused until the tensor is written."""

    def make() -> View:
        r.inserted["copy to HBM, to be indexed"] += 1
        block = whole_block(r, view)
        table = r.allocate(block.shape, view.allocation.dtype, Memory.private_hbm, f"{view.name} in HBM")
        strided(r, table, block)
        return table

    return r.once(("table", view.allocation, view.one_block(), view.allocation.version), make)


def in_table(view: View, table: View) -> View:
    """Return the part of `table`, the HBM copy of a block, that corresponds to a view of the block on chip."""
    width = table.shape[1]
    steps = [width * across + along for across, along in zip(view.partition.steps, view.element.steps, strict=True)]
    element = Affine(view.shape, tuple(steps), width * view.partition.start + view.element.start)
    flat = Affine(view.shape, (0,) * view.ndim)
    places = {"element": element, "partition": flat, "block": flat, "numbers": view.numbers}
    return replace(table, dtype=view.dtype, shape=view.shape, **places)
