"""Placement and initial contents of a random program's tensors in SBUF and PSUM."""

from math import prod

import numpy as np

from neuroncore_rtl.golden.arith import decode, round_fp32, storage_dtype
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa import Access, Elementwise, Instruction, Opcode, Storage
from neuroncore_rtl.spec.isa.access import storage_partitions
from neuroncore_rtl.spec.isa.elementwise import counts_of
from neuroncore_rtl.tb.stimulus import operands

__all__ = ["EIGHTS", "Places", "shape_of"]

EIGHTS = (Opcode.MAX8, Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)  # operations that find or search eight values
WILD = (0.0, 0.02, 0.1, 1.0)  # candidate shares of special or arbitrary elements of an operand
PAIRED = 0.8  # share of second operands with elements related to those of the first


def _cast(codes: np.ndarray, source: Format, target: Format) -> np.ndarray:
    values = decode(codes, source) if source.is_float else codes.astype(np.int64).astype(np.float64)
    return round_fp32(operands.fp32_bits(values).ravel(), target, "rne", None).reshape(codes.shape)


def shape_of(values: dict[str, int], name: str, dimensions: int) -> tuple[int, ...]:
    """Return the counts of an access, outermost first."""
    return tuple(reversed(counts_of(values, name)[:dimensions]))


def _extent(shape: tuple[int, ...], steps: np.ndarray, size: int) -> tuple[int, int]:
    """Return the number of bytes of an access below the address of its first element, and its total extent in bytes."""
    spans = [(count - 1) * int(step) for count, step in zip(shape, steps, strict=True)]
    low = -size * sum(min(span, 0) for span in spans)
    return low, low + size * (1 + sum(max(span, 0) for span in spans))


def _addresses(access: Access, shape: tuple[int, ...]) -> np.ndarray:
    addresses = np.full((), access.address)
    for length, step in zip(shape[-len(access.steps) :], access.steps[-len(shape) :], strict=True):
        addresses = addresses[..., np.newaxis] + access.format.bits // 8 * step * np.arange(length)
    return addresses.reshape(-1)


class Places:
    """Memories of a program under construction; `related` is the share of tensors that overlap others."""

    def __init__(self, rng: np.random.Generator, config: Config, memories: dict[Storage, np.ndarray], related: float):
        self.rng, self.config, self.memories, self.related = rng, config, memories, related
        self.filled = {Storage.SBUF: 0, Storage.PSUM: 0}
        self.written = {storage: np.zeros(memory.shape[1], bool) for storage, memory in memories.items()}

    def note(self, instruction: Instruction) -> None:
        for region in instruction.writes:
            if region.storage in self.written:
                self.written[region.storage][region.span[0] : region.span[1]] = True

    def steps(self, shape: tuple[int, ...], *, source: bool) -> np.ndarray:
        """Return random steps of an access; the elements of most destinations do not overlap."""
        rng = self.rng
        steps = np.zeros(len(shape), int)
        step = int(rng.choice([1, 1, 1, 2, 3]))
        natural = rng.random() < 0.5
        for d in reversed(range(len(shape))) if natural else rng.permutation(len(shape)):
            steps[d] = step
            step *= shape[d]
            step += int(rng.choice([0, 0, 0, 1, 5]))
            if rng.random() < 0.25:
                steps[d] = -steps[d]
            if rng.random() < (0.15 if source else 0.03):
                steps[d] = 0
        return steps

    def _start(self, lanes: int, storage: Storage) -> int | None:
        """Return a random first partition for `lanes` partitions; None if the storage has too few partitions."""
        quadrant = self.config.quadrant
        step = 1 if lanes <= quadrant else 2 if lanes <= 2 * quadrant else 4
        limit = storage_partitions(storage, self.config)
        starts = [q * quadrant for q in range(0, 4, step) if q * quadrant + lanes <= limit]
        return int(self.rng.choice(starts)) if starts else None

    def place(self, partial: Elementwise, name: str, fmt: Format, storage: Storage, steps: np.ndarray) -> Access:
        """Return an access at free addresses if possible, sometimes overlapping others."""
        rng = self.rng
        size = fmt.bits // 8
        dimensions = len(partial.shape)
        shape = shape_of(partial.fields(self.config) | {"sum_store": 1}, name, dimensions)
        start = self._start(partial.partitions, storage)
        if start is None or size * prod(shape) > self.memories[storage].shape[1]:
            storage = Storage.SBUF
            start = self._start(partial.partitions, storage)
        # The step of a dimension of one element is unused.
        steps = np.where(np.array(shape) == 1, rng.integers(-(1 << 15), 1 << 15, dimensions), steps)
        limit = self.memories[storage].shape[1]
        low, extent = _extent(shape, steps, size)
        if extent > limit:
            steps = np.array([prod(shape[d + 1 :]) for d in range(dimensions)])
            low, extent = _extent(shape, steps, size)
        first = -(-(self.filled[storage] + int(rng.integers(0, 9))) // size) * size
        if first + extent > limit or rng.random() < self.related * 0.5:
            reach = limit if rng.random() < 0.1 else min(limit, max(first, extent))
            first = int(rng.integers(0, (reach - extent) // size + 1)) * size
        self.filled[storage] = max(self.filled[storage], first + extent)
        return Access(
            format=fmt, address=first + low, partition=start, storage=storage, steps=tuple(int(s) for s in steps)
        )

    def fill(
        self,
        access: Access,
        shape: tuple[int, ...],
        opcode: Opcode = Opcode.TENSOR_COPY,
        name: str = "a",
        partner: Access | None = None,
    ) -> None:
        """Write an access's initial elements to all partitions, except to bytes that an instruction has written."""
        fmt, memory = access.format, self.memories[access.storage]
        size, count = fmt.bits // 8, prod(shape)
        addresses = _addresses(access, shape)
        codes = self._codes(fmt, (len(memory), count), opcode, name, shape)
        if name == "b" and opcode in (Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8) and partner.format == fmt:
            codes = self._searched_values(codes, access, partner)
        elif partner is not None and self.rng.random() < PAIRED:
            codes = self._paired(codes, access, shape, partner)
        octets = np.ascontiguousarray(codes).astype(codes.dtype.newbyteorder("<")).view(np.uint8)
        octets = octets.reshape(len(memory), count, size)
        free = ~self.written[access.storage]
        for octet in range(size):
            places = addresses + octet
            chosen = free[places]
            memory[:, places[chosen]] = octets[:, chosen, octet]

    def _paired(self, codes: np.ndarray, access: Access, shape: tuple[int, ...], partner: Access) -> np.ndarray:
        """Return elements, half of them related to the elements of `partner` in the same lane."""
        rng, fmt = self.rng, access.format
        first = self.elements(partner, np.arange(len(codes)) - access.partition, shape)
        if partner.format != fmt:
            with np.errstate(all="ignore"):
                first = _cast(first, partner.format, fmt)
        related = operands.partners(rng, fmt, first.ravel()).reshape(codes.shape)
        return np.where(rng.random(codes.shape) < 0.5, related, codes).astype(codes.dtype)

    def elements(self, access: Access, lanes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the initial codes of an access; addresses are clipped to the memory."""
        return self._words(access, lanes[:, np.newaxis], _addresses(access, shape) // (access.format.bits // 8))

    def _words(self, access: Access, lanes: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return the codes of an access in `lanes`, at the indices `places` in the partition; indices are clipped."""
        words = self.memories[access.storage].view(storage_dtype(access.format).newbyteorder("<"))
        rows = np.clip(lanes + access.partition, 0, len(words) - 1)
        return words[rows, np.clip(places, 0, words.shape[1] - 1)]

    def _searched_values(self, codes: np.ndarray, access: Access, searched: Access) -> np.ndarray:
        """Return values to search for; most of them are among the first eight searched elements of the same lane."""
        rng = self.rng
        lanes = np.arange(len(codes))[:, np.newaxis] - access.partition
        first = searched.address // (searched.format.bits // 8)
        picked = self._words(searched, lanes, first + searched.steps[-1] * rng.integers(0, 8, codes.shape))
        return np.where(rng.random(codes.shape) < 0.75, picked, codes).astype(codes.dtype)

    def _codes(
        self, fmt: Format, size: tuple[int, int], opcode: Opcode, name: str, shape: tuple[int, ...]
    ) -> np.ndarray:
        rng = self.rng
        total = prod(size)
        codes = operands.mixed_codes(rng, fmt, total, WILD)
        kind = rng.random()
        if kind < 0.15 or (opcode in EIGHTS and kind < 0.5):
            codes = rng.choice(codes[:5], total)  # few distinct values
        if not fmt.is_float and kind > 0.6:
            codes = (rng.integers(-3, 40, total) & ((1 << fmt.bits) - 1)).astype(storage_dtype(fmt))
        if opcode == Opcode.SELECT and name == "a":
            codes[rng.random(total) < 0.4] = 0
        if opcode == Opcode.BN_AGGR and fmt.is_float and kind < 0.7:
            counts = round_fp32(rng.integers(0, 8, total).astype(np.float32).view(np.uint32), fmt, "rne", None)
            codes = np.where(np.arange(total) % shape[-1] % 3 == 0, counts, codes).astype(storage_dtype(fmt))
        return codes.reshape(size)
