"""Pictures of a matrix product in the systolic array; every number in them is a value of the simulated RTL.

`make picture` multiplies two matrices and draws the array at work. `python -m neuroncore_rtl.tb.cli.array_picture`
writes `docs/pictures/array.svg`, which moves, and `array_cycle.svg`.
"""

import hashlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.golden.tensor import matrix_product
from neuroncore_rtl.run.harness.engines.tensor_trial import Trial, try_engine
from neuroncore_rtl.run.report import Report, progress, recordings
from neuroncore_rtl.run.settings import Settings, UsageError, refusals
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.view.array_motion import SECONDS, Motion, array_signals, check_array, draw_motion, read_motion
from neuroncore_rtl.run.view.plotting import svg_to_png, write_gif
from neuroncore_rtl.run.wrong_tile import count_differences
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import BF16, INT8, Format, format_named
from neuroncore_rtl.tb.cli.matrices import encode_matrix, read_matrix
from neuroncore_rtl.tb.stimulus.tensor_tiling import TiledProduct, tiled_products

__all__ = ["A", "B", "make_picture", "operands", "run_product", "try_product", "write_pictures"]

A = np.array([[1, 2, 1, 3], [4, 1, 2, 1], [2, 3, 1, 2], [1, 1, 4, 2]])
B = np.array([[2, 1, 3, 1], [1, 4, 1, 2], [3, 2, 2, 1], [1, 2, 1, 5]])
"""Second operand of the pictures; the array holds A, and the columns of B move through it."""

MOST_COLUMNS = 100
"""Largest number of columns that may move through the array in a picture."""

OPENER = "open" if sys.platform == "darwin" else "xdg-open"
"""Command that opens a file in its program."""

SIDE = 4
"""Default of M, K and N."""

PRINTED = 64
"""A product is printed if it has at most this number of elements."""

LARGEST = 5
"""Largest random element; small integers are short in the picture."""


@dataclass(frozen=True)
class DrawnProduct:
    """A product on the tensor engine.

    Arguments:
        motion: the array in each cycle.
        words: the product in PSUM, uint32 [M, N], words of FP32 or INT32.
        transposed: the array holds the transpose of B, and the rows of A move; otherwise it holds A.
    """

    motion: Motion
    words: np.ndarray
    transposed: bool


def run_product(a: np.ndarray, b: np.ndarray, fmt: Format, config: Config) -> DrawnProduct:
    """Multiply matrices on the tensor engine, codes of `fmt`, shapes [M, K] and [K, N].

    Raises:
        UsageError: if the array, the operands or the run are too large for a picture.
    """
    program, trial = try_product(a, b, fmt, config, array_signals(config))
    product = np.zeros((len(a), b.shape[1]), np.uint32)
    program.gather(trial.psum, product)
    return DrawnProduct(read_motion(trial.values, trial.cycles, config), product, program.tiles[0][2])


def try_product(
    a: np.ndarray, b: np.ndarray, fmt: Format, config: Config, names: Iterable[str] | None = None
) -> tuple[TiledProduct, Trial]:
    """Return the program of a product, see `run_product`, and its run with the signals `names`, or all.

    Raises:
        UsageError: if the array or the operands are too large for a picture.
    """
    check_array(config)
    with refusals():
        program, *more = tiled_products(a, b, fmt, config)
        moved = sum(step.instruction.columns for step in program.steps)
        if more or moved > MOST_COLUMNS:
            raise UsageError(
                f"the product of a picture must move at most {MOST_COLUMNS} columns through the array, not "
                f"{'more' if more else moved}: smaller M, K or N, or a larger array (ROWS, COLUMNS), make them fewer"
            )
        return program, try_engine(program, config, names)


def write_pictures() -> None:
    """Write both pictures of the documents."""
    folder = ROOT / "docs" / "pictures"
    motion = run_product(encode_matrix(A, BF16), encode_matrix(B, BF16), BF16, PRESETS["tiny"]).motion
    (folder / "array.svg").write_text(draw_motion(motion))
    (folder / "array_cycle.svg").write_text(draw_motion(motion, motion.busiest))


def make_picture(settings: Settings) -> int:
    """Multiply the matrices of `settings`, write the pictures, print a report, and return the exit status."""
    config, fmt = settings.config, format_named(settings.dtype)
    check_array(config)
    a, b = operands(settings)
    left, right = encode_matrix(a, fmt, "A"), encode_matrix(b, fmt, "B")
    changed = [np.count_nonzero(decode(words, fmt) != exact) for words, exact in ((left, a), (right, b))]
    elements = config.rows * config.columns
    with progress(f"multiplying on {config.rows} x {config.columns} processing elements", "multiply", elements):
        drawn = run_product(left, right, fmt, config)
    frames = len(drawn.motion.frames)
    with progress(f"drawing {frames} cycles", "draw", frames * elements):
        files = _draw(drawn.motion, recordings() / "pictures" / _name(settings, left, right))
    expected = matrix_product(left, right, fmt, config.rows)
    values = drawn.words.view(np.int32 if fmt is INT8 else np.float32)
    tiles = -(-len(b) // config.rows)
    rows: dict[str, object] = {
        "shape": f"[{len(a)}, {len(b)}] x {[*b.shape]} {fmt.name} on {config.rows} x {config.columns}",
        "array holds": "B transposed, and the rows of A move" if drawn.transposed else "A, and the columns of B move",
    }
    if tiles > 1:
        rows["tiles of K"] = f"{tiles}, and PSUM adds their sums"
    if any(changed):
        rows["rounded"] = f"{changed[0]} numbers of A and {changed[1]} of B to {fmt.name}"
    if values.size <= PRINTED:
        rows["product"] = "; ".join(" ".join(f"{value:g}" for value in row) for row in values)
    rows |= {kind: display_path(path) for kind, path in files.items()}
    rows["to open"] = f"{OPENER} {display_path(files['moving'])}, or drag it into a web browser"
    wrong, _ = count_differences(drawn.words, expected, fmt is INT8, config.columns, "make waves TEST=matmul")
    report = Report(
        label="", test="picture", settings=settings.values, cycles=drawn.motion.cycles, rows=rows,
        compared=expected.size, mismatches=wrong,
    )  # fmt: skip
    report.show()
    return report.exit_status


def operands(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Return A and B: from files, those of lesson 2, or random small integers."""
    given = {name: read_matrix(name, path) for name in ("A", "B") if (path := getattr(settings, name.lower()))}
    sizes = {name: settings.values[name] for name in ("M", "K", "N") if settings.values[name] is not None}
    if not given and settings.seed is None and set(sizes.values()) <= {SIDE}:
        return A, B
    for name, axes in (("A", "MK"), ("B", "KN")):
        if name in given:
            for axis, what, size in zip(axes, ("rows", "columns"), given[name].shape, strict=True):
                if sizes.setdefault(axis, size) != size:
                    raise UsageError(f"{axis} must be {size}, the {what} of {name}, not {sizes[axis]}")
    m, k, n = (sizes.get(axis, SIDE) for axis in "MKN")
    rng = np.random.default_rng(1 if settings.seed is None else settings.seed)
    drawn = {"A": rng.integers(1, LARGEST, (m, k), endpoint=True), "B": rng.integers(1, LARGEST, (k, n), endpoint=True)}
    return given.get("A", drawn["A"]), given.get("B", drawn["B"])


def _name(settings: Settings, a: np.ndarray, b: np.ndarray) -> str:
    fixed = {"A", "B", "M", "K", "N", "SEED", "DTYPE", "PRESET", "TEST"}
    others = [f"{name.lower()}{value}" for name, value in settings.non_defaults.items() if name not in fixed]
    content = hashlib.sha256(a.tobytes() + b.tobytes()).hexdigest()[:6]
    shape = f"{len(a)}x{len(b)}x{b.shape[1]}"
    return "-".join(["matmul", settings.preset, *others, settings.dtype, shape, content])


def _draw(motion: Motion, base: Path) -> dict[str, Path]:
    base.parent.mkdir(parents=True, exist_ok=True)
    moving, still = base.with_name(f"{base.name}.svg"), base.with_name(f"{base.name}-cycle.svg")
    gif, png = moving.with_suffix(".gif"), still.with_suffix(".png")
    moving.write_text(draw_motion(motion))
    write_gif((draw_motion(motion, frame) for frame in motion.frames), gif, SECONDS)
    still.write_text(draw_motion(motion, motion.busiest))
    png.write_bytes(svg_to_png(still.read_text()))
    return {"moving": moving, "moving, for slides": gif, "still": still, "still, for slides": png}


if __name__ == "__main__":
    write_pictures()
