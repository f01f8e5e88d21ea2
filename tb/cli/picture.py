"""Command of `make picture`: multiplies two matrices on the RTL and draws the array at work."""

import hashlib
import sys
from pathlib import Path

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.golden.tensor import matrix_product
from neuroncore_rtl.run.check.tiles import count_differences
from neuroncore_rtl.run.report import Report, progress, recordings
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.view.array_motion import SECONDS, Motion, check_array, draw_motion
from neuroncore_rtl.run.view.raster import svg_to_png, write_gif
from neuroncore_rtl.spec.formats import INT8, format_named
from neuroncore_rtl.tb.cli.array_picture import A, B, run_product
from neuroncore_rtl.tb.cli.matrices import encode_matrix, read_matrix

__all__ = ["make_picture", "operands"]

OPENER = "open" if sys.platform == "darwin" else "xdg-open"
"""Command that opens a file in its program."""

SIDE = 4
"""Default of M, K and N."""

PRINTED = 64
"""A product is printed if it has at most this number of elements."""

LARGEST = 5
"""Largest random element; small integers are short in the picture."""


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
