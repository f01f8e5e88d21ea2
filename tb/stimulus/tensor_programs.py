"""Random programs of the tensor engine, and golden's reads of PSUM during their execution."""

from collections.abc import Sequence

import numpy as np

from neuroncore_rtl.golden.tensor import TensorEngine
from neuroncore_rtl.run.harness.engines.tensor import Drain, TensorProgram, TensorStep
from neuroncore_rtl.spec.config import LOAD_COLUMNS, PSUM_BANKS, Config
from neuroncore_rtl.spec.formats import FP32, INT8, Format
from neuroncore_rtl.spec.isa import Context, LoadStationary, MultiplyMoving
from neuroncore_rtl.spec.isa.tensor import column_starts, row_starts
from neuroncore_rtl.tb.stimulus import operands as stimulus

__all__ = ["CLOSE", "TURNS", "random_columns", "random_rows", "random_tensor_program", "replayed"]

WILD = (0.0, 0.0, 0.002, 0.02, 0.3)  # low, because a NaN hides other terms
FULL = 0.5  # share of operands with all rows or columns
LOAD, MULTIPLY = True, False

TURNS = (
    # Weights replace other weights while the multiplication that uses the new ones is already pending.
    (LOAD, LOAD, MULTIPLY),
    (LOAD, LOAD, LOAD, MULTIPLY),
    # Weights are loaded during a multiplication, or used by two multiplications.
    (LOAD, MULTIPLY, LOAD, MULTIPLY),
    (LOAD, MULTIPLY, MULTIPLY),
)
"""Sequences of instructions that independent random choices seldom produce."""

CLOSE = 0.15  # probability of such a sequence instead of an independent draw


def random_rows(rng: np.random.Generator, config: Config, full: float = 0.0) -> dict[str, int]:
    """Return the fields row and k of an instruction; `full`: probability of the largest k for the drawn row."""
    row, k = _span(rng, row_starts(config), range(config.rows), config.quadrant, full)
    return {"row": row, "k": k}


def random_columns(
    rng: np.random.Generator, config: Config, within: range | None = None, full: float = 0.0
) -> dict[str, int]:
    """Return the fields column and m; `full`: probability of the largest m."""
    within = range(config.columns) if within is None else within
    starts = [column for column in column_starts(config) if column in within]
    column, m = _span(rng, starts, within, config.quadrant, full)
    return {"column": column, "m": m}


def _span(rng, starts: list[int], within: range, quadrant: int, full: float) -> tuple[int, int]:
    """Return the random start and length of a span in `within`; half of the spans begin at the first of `starts`."""
    start = starts[0] if rng.random() < 0.5 else int(rng.choice(starts))
    # A span that starts at 0 has any length; another one must not cross the border of its quadrant, or of its half.
    most = within.stop - start
    if start:
        most = min(most, quadrant if start // quadrant % 2 else 2 * quadrant)
    return start, most if rng.random() < full else int(rng.integers(1, most + 1))


def random_tensor_program(
    rng: np.random.Generator, config: Config, instructions: int, longest: int | None = None
) -> tuple[TensorProgram, np.ndarray]:
    """Return a program, and golden's words in the order of its drains (reads of PSUM), uint32 [words, partitions].

    At its end the program reads all written words and their neighbours. An instruction has at most `longest` moving
    columns; None: at most the words of a bank.
    """
    words = config.psum_words
    writer = _Writer(rng, config, words if longest is None else min(words, longest))
    turns: list[bool] = []
    for _ in range(instructions):
        if not turns:
            turns = list(TURNS[rng.integers(len(TURNS))]) if rng.random() < CLOSE else [rng.random() < 0.35]
        if turns.pop(0) or writer.loaded is None:
            writer.load()
        else:
            writer.multiply()
            if rng.random() < 0.15:
                writer.read(writer.last.psum, writer.last.n)
    for bank in range(PSUM_BANKS):
        near = np.convolve(writer.written[bank * words : (bank + 1) * words], [1, 1, 1], "same") > 0
        first, end = np.flatnonzero(np.diff(near, prepend=False, append=False)).reshape(-1, 2).T
        for start, stop in zip(first.tolist(), end.tolist(), strict=True):
            writer.read(bank * words + start, stop - start)
    drains = writer.drains
    program = TensorProgram(writer.steps, drains, writer.stationary.image(), writer.moving.image())
    return program, np.concatenate(writer.expected)


def replayed(
    config: Config,
    items: Sequence[LoadStationary | MultiplyMoving | tuple[int, int]],
    stationary: np.ndarray,
    moving: np.ndarray,
) -> tuple[TensorProgram, np.ndarray]:
    """Return the program of instructions and reads of PSUM (first word, number of words), and golden's reads."""
    recorder = _Recorder(config, stationary, moving)
    context = Context(config)
    for item in items:
        if isinstance(item, tuple):
            recorder.read(*item)
            continue
        item.check(context)
        context = item.after(context)
        recorder.add(item)
    expected = recorder.expected or [np.zeros((0, config.columns), np.uint32)]
    return TensorProgram(recorder.steps, recorder.drains, stationary, moving), np.concatenate(expected)


class _Memory:
    """Operand memory of a program under construction; operands have separate addresses while there is room."""

    def __init__(self, rng: np.random.Generator, config: Config):
        self.rng = rng
        self.bytes = np.zeros((config.rows, config.sbuf_bytes), np.uint8)
        self.size = 0

    def place(self, fmt: Format, count: int, stride: int, align: int, sparse: bool = False) -> int:
        """Write random elements to all rows and return their address, or sometimes an address in older operands."""
        rng = self.rng
        element = fmt.bits // 8
        extent = (count - 1) * stride + element
        address = -(-(self.size + int(rng.integers(0, 40))) // align) * align
        most = self.bytes.shape[1]
        full = address + extent > most
        if extent < self.size and (full or rng.random() < 0.1):
            return int(rng.integers(0, self.size - extent)) // align * align
        if full:
            raise ValueError(f"an operand must fit {most} bytes beside the others, not {extent} bytes")
        codes = stimulus.mixed_codes(rng, fmt, len(self.bytes) * count, WILD).reshape(len(self.bytes), count)
        if sparse:
            codes[rng.random(codes.shape) < 0.7] = 0
        octets = np.ascontiguousarray(codes).astype(codes.dtype.newbyteorder("<")).view(np.uint8)
        for column in range(count):
            first = address + column * stride
            self.bytes[:, first : first + element] = octets[:, column * element : (column + 1) * element]
        self.size = max(self.size, address + extent)
        return address

    def image(self) -> np.ndarray:
        return self.bytes[:, : max(self.size, LOAD_COLUMNS * 4)]


class _Recorder:
    """A program under construction, executed by golden instruction by instruction on existing operand memories."""

    def __init__(self, config: Config, stationary: np.ndarray, moving: np.ndarray):
        self.operands = stationary, moving
        self.engine = TensorEngine(config)
        self.steps: list[TensorStep] = []
        self.drains: list[Drain] = []
        self.expected: list[np.ndarray] = []
        self.moves = 0
        self.written = np.zeros(config.psum_bytes // 4, bool)
        self.readers = np.zeros(config.psum_bytes // 4, int)  # by word: drains that must precede its change

    def add(self, instruction: LoadStationary | MultiplyMoving) -> None:
        drains = 0
        if not instruction.lane:  # it writes sums
            words = slice(instruction.psum, instruction.psum + instruction.n)
            self.moves += 1
            self.written[words] = True
            drains = int(self.readers[words].max())
        self.engine.execute(instruction, *self.operands)
        self.steps.append(TensorStep(instruction, drains))

    def read(self, psum: int, words: int) -> None:
        self.drains.append(Drain(self.moves, psum, words))
        self.expected.append(self.engine.psum[:, psum : psum + words].T.copy())
        self.readers[psum : psum + words] = len(self.drains)


class _Writer(_Recorder):
    def __init__(self, rng: np.random.Generator, config: Config, longest: int):
        self.rng = rng
        self.config = config
        self.longest = longest
        self.floats = [fmt for fmt in config.matmul_formats if fmt is not INT8]
        self.stationary, self.moving = _Memory(rng, config), _Memory(rng, config)
        self.loaded: LoadStationary | None = None
        self.last: MultiplyMoving | None = None
        super().__init__(config, self.stationary.bytes, self.moving.bytes)

    def load(self) -> None:
        rng = self.rng
        fmt = INT8 if rng.random() < 0.25 else self.floats[rng.integers(len(self.floats))]
        rows, columns = random_rows(rng, self.config, FULL), random_columns(rng, self.config, full=FULL)
        step = LOAD_COLUMNS * fmt.bits // 8
        # Padding columns of the last load step are read, but must not affect results.
        count = -(-columns["m"] // LOAD_COLUMNS) * LOAD_COLUMNS
        address = self.stationary.place(fmt, count, fmt.bits // 8, step)
        self.loaded = LoadStationary(format=fmt, half=self._half(fmt), address=address, **rows, **columns)
        self.add(self.loaded)

    def multiply(self) -> None:
        rng = self.rng
        integer = self.loaded.format is INT8 and rng.random() < 0.7
        fmt = INT8 if integer else self.floats[rng.integers(len(self.floats))]
        lengths = (1, rng.integers(2, 9), rng.integers(9, 41), rng.integers(1, self.config.psum_words + 1))
        n = min(self.longest, int(rng.choice(lengths, p=(0.4, 0.35, 0.22, 0.03))))
        element = fmt.bits // 8
        stride = element * int(rng.choice([0, 1, 2, 3, 17], p=(0.05, 0.6, 0.15, 0.1, 0.1)))
        transpose = rng.random() < 0.1
        move = MultiplyMoving(
            format=fmt,
            half=self._half(fmt),
            n=n,
            address=self.moving.place(fmt, n, stride, element, sparse=transpose),
            stride=stride,
            psum=self._words(n),
            accumulate=rng.random() < 0.6,
            transpose=transpose,
            **self._rows(),
            **random_columns(rng, self.config, range(self.loaded.column, self.loaded.column + self.loaded.m), FULL),
        )
        self.add(move)
        self.last = move

    def _rows(self) -> dict[str, int]:
        rows = random_rows(self.rng, self.config, FULL)
        return rows if self.rng.random() < 0.4 else {"row": self.loaded.row, "k": min(rows["k"], self.loaded.k)}

    def _half(self, fmt: Format) -> int:
        return int(self.rng.integers(2)) if fmt is FP32 else 0

    def _words(self, n: int) -> int:
        """Return the first of n words of PSUM: near the words of the previous multiplication, or in any bank."""
        rng, words = self.rng, self.config.psum_words
        if self.last is not None and rng.random() < 0.5:
            bank, word = divmod(self.last.psum, words)
            word += int(rng.integers(-3, 4)) if rng.random() < 0.5 else 0
        else:
            bank = int(rng.integers(PSUM_BANKS))
            word = int(rng.integers(8)) if rng.random() < 0.7 else int(rng.integers(words))
        return bank * words + min(max(word, 0), words - n)
