"""Rules of a copy."""

from collections.abc import Iterator

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS, format_of
from neuroncore_rtl.spec.isa.access import Storage, storage_bytes, storage_partitions
from neuroncore_rtl.spec.isa.dma.layout import (
    DMA_COPY,
    DMA_DIMENSIONS,
    DMA_TENSOR_FIELDS,
    HBM_ADDRESS_BITS,
    NO_AXIS,
    OUTERMOST,
)
from neuroncore_rtl.spec.isa.rule import Broken, Rule, lowest

__all__ = ["dma_violation"]

_CODES = frozenset(fmt.code for fmt in FORMATS.values())
_STORAGES = frozenset(Storage)


def dma_violation(values: dict[str, int], config: Config) -> Broken | None:
    """Return the lowest broken rule with a message, or None."""
    return lowest(_violations(values, config))


def _violations(values: dict[str, int], config: Config) -> Iterator[Broken]:
    if values["opcode"] != DMA_COPY:
        yield Rule.OPCODE, f"opcode must be DMA_COPY, {DMA_COPY}, not {values['opcode']}"
    counts = [values[f"count{d}"] for d in range(DMA_DIMENSIONS)]
    if 0 in counts:
        yield Rule.SHAPE, f"counts must be at least 1, not {tuple(reversed(counts))!r}"
        counts = [max(count, 1) for count in counts]
    if values["gather"] and values["scatter"]:
        yield Rule.STORAGE, "a copy must gather or scatter, not both"
    for name, indexed in (("src", values["gather"]), ("dst", values["scatter"])):
        yield from _tensor_violations(
            name, indexed, {f: values[f"{name}_{f}"] for f, _ in DMA_TENSOR_FIELDS}, counts, config
        )
    if values["gather"] or values["scatter"]:
        address, first, rows = values["index_address"], values["index_partition"], counts[OUTERMOST]
        if first + rows > config.partitions:
            yield Rule.PARTITIONS, f"the index's partitions must end at {config.partitions}, not {first + rows}"
        if address % 4:
            yield Rule.ALIGNMENT, f"the index's address must be a multiple of 4, not {address}"
        if address + 4 > config.sbuf_bytes:
            rule = f"the index's bytes must lie from 0 to {config.sbuf_bytes}"
            yield Rule.RANGE, f"{rule}, not from {address} to {address + 4}"


def _tensor_violations(
    name: str, indexed: int, tensor: dict[str, int], counts: list[int], config: Config
) -> Iterator[Broken]:
    if tensor["dtype"] not in _CODES:
        yield Rule.FORMAT, f"{name}'s format must be the code of one of {', '.join(FORMATS)}, not {tensor['dtype']}"
        return
    if tensor["storage"] not in _STORAGES:
        yield Rule.STORAGE, f"{name}'s storage must be SBUF, PSUM or HBM, not {tensor['storage']}"
        return
    storage, axis, size = Storage(tensor["storage"]), tensor["axis"], format_of(tensor["dtype"]).bits // 8
    if indexed and storage != Storage.HBM:
        yield Rule.STORAGE, f"{name} must be in HBM to be gathered or scattered, not in {storage.name}"
    if storage == Storage.HBM and axis != NO_AXIS:
        yield Rule.PARTITIONS, f"{name} must have no axis in HBM, not {axis}"
    elif axis != NO_AXIS and axis >= DMA_DIMENSIONS:
        yield Rule.PARTITIONS, f"{name}'s axis must be from 0 to {DMA_DIMENSIONS - 1} or {NO_AXIS} (none), not {axis}"
    elif storage != Storage.HBM:
        span = (counts[axis] - 1) * tensor[f"step{axis}"] if axis != NO_AXIS else 0
        low, high = tensor["partition"] + min(span, 0), tensor["partition"] + max(span, 0) + 1
        limit = storage_partitions(storage, config)
        if low < 0 or high > limit:
            yield Rule.PARTITIONS, f"{name}'s partitions must lie from 0 to {limit}, not from {low} to {high}"
    if tensor["address"] % size:
        yield Rule.ALIGNMENT, f"{name}.address must be a multiple of {size}, not {tensor['address']}"
    dimensions = [d for d in range(DMA_DIMENSIONS) if d != axis and not (indexed and d == OUTERMOST)]
    spans = [(counts[d] - 1) * tensor[f"step{d}"] * size for d in dimensions]
    low = tensor["address"] + sum(min(span, 0) for span in spans)
    high = tensor["address"] + sum(max(span, 0) for span in spans) + size
    limit = 1 << HBM_ADDRESS_BITS if storage == Storage.HBM else storage_bytes(storage, config)
    if low < 0 or high > limit:
        yield Rule.RANGE, f"{name}'s bytes must lie from 0 to {limit}, not from {low} to {high}"
