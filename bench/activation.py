"""Accuracy of the activation functions; as a program: write the table of docs/activation.md."""

from dataclasses import dataclass

import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.golden.scalar import activate
from neuroncore_rtl.kernels.text.markdown import replace_between
from neuroncore_rtl.spec.functions import FUNCTIONS, load_tables
from neuroncore_rtl.spec.functions.layout import CONTROL_FIELDS, control_address
from neuroncore_rtl.tb.check.oracles.accuracy import CROSSINGS, borders, dense, errors, wrong_way
from neuroncore_rtl.tb.check.oracles.functions import ALPHA, reference

__all__ = ["Measurement", "accuracy_table", "measure_accuracy", "sample"]

PATH = ROOT / "docs" / "activation.md"
BEGIN, END = "<!-- begin: python -m neuroncore_rtl.bench.activation -->\n", "<!-- end -->\n"
SEED = 20
CASES = 300_000
SMALLEST_NORMAL = 2.0**-126
PROBE = np.float32(2.0**-130)  # a subnormal argument
_DOMAINS = {"ln": "z > 0, else NaN", "sqrt": "z >= 0, else NaN", "rsqrt": "z > 0, else NaN"}


@dataclass(frozen=True)
class Measurement:
    """Largest errors of a function over a number of arguments (`cases`).

    For normal results away from zero crossings, `ulp` is the largest error in last places, `where` its argument, and
    `relative` the largest relative error. `subnormal_ulp` is the error of subnormal results in units of 2**-149,
    `absolute` the absolute error near zero crossings; None without such results. In `steps` pairs of adjacent FP32
    arguments, `wrong` pairs have results that change in the direction opposite to the function.
    """

    cases: int
    ulp: float
    where: float
    relative: float
    subnormal_ulp: float | None
    absolute: float | None
    wrong: int
    steps: int


def sample(name: str) -> np.ndarray:
    """Return the arguments to measure: random numbers, and the numbers around the borders of a function's segments."""
    return np.unique(np.concatenate([dense(name, np.random.default_rng(SEED), CASES), borders(name)]))


def measure_accuracy(name: str, z: np.ndarray) -> Measurement:
    """Return the errors of a function for finite arguments in its domain."""
    y, exact = activate(name, z, ALPHA), reference(name, z)
    error = errors(name, z, y)
    with np.errstate(all="ignore"):
        distance = np.abs(y - exact)
    low, high = CROSSINGS.get(name, (0, 0))
    crossing = (z > low) & (z < high)
    subnormal = (np.abs(exact) < SMALLEST_NORMAL) & (exact != 0)
    normal = ~crossing & ~subnormal
    worst = int(np.argmax(np.where(normal, error, -1)))
    largest = normal & (exact != 0) & np.isfinite(y)
    return Measurement(
        len(z),
        float(error[worst]),
        float(z[worst]),
        float((distance[largest] / np.abs(exact[largest])).max(initial=0)),
        float(error[subnormal].max()) if subnormal.any() else None,
        float(distance[crossing].max()) if crossing.any() else None,
        *wrong_way(name, z, lambda z: activate(name, z, ALPHA)),
    )


def _segments(name: str) -> int:
    first, last = (control_address(FUNCTIONS[name].code + i, 0, 0) for i in (0, 1))
    used = set()
    for row in load_tables().control[first:last]:
        field = dict(zip(CONTROL_FIELDS, row, strict=True))
        used |= set(range(field["base"], field["base"] + (1 << field["bits"])))
    return len(used)


def _number(value) -> str:
    return str(value).replace("inf", "Inf").replace("nan", "NaN").removesuffix(".0")


def _at(name: str, *z: float) -> str:
    return ", ".join(_number(y) for y in activate(name, np.float32(z), ALPHA))


def _at_subnormal(name: str) -> str:
    y = activate(name, PROBE, ALPHA)
    if y == 0 or np.isinf(y):
        return _number(y)
    ratio = float(y) / float(PROBE)
    if 1e-3 < abs(ratio) < 1e3:
        return "z" if ratio == 1 else f"{ratio:.4g} z"
    return f"{y:.7g}"


def accuracy_table() -> str:
    """Return the table of docs/activation.md."""
    lines = [
        f"Measured for {CASES:,} random z (seed {SEED}) and all z within 2 last places of the border of a segment; "
        f"alpha = {ALPHA}.",
        "",
        "| function | domain | segments | error, ulp | at z | of subnormal results | at +0, -0 | at 2**-130 | "
        "at +Inf, -Inf | steps against f |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in FUNCTIONS:
        found = measure_accuracy(name, sample(name))
        ulp = f"{found.ulp:.2f}"
        if found.absolute is not None:
            low, high = CROSSINGS[name]
            ulp += f"; 2**{np.log2(found.absolute):.1f} absolute in ({low}, {high})"
        where = f"{found.where:.6g}" if found.ulp else "any"
        subnormal = "none" if found.subnormal_ulp is None else f"{found.subnormal_ulp:.2f}"
        lines.append(
            f"| {name} | {_DOMAINS.get(name, 'all')} | {_segments(name)} | {ulp} | {where} | {subnormal} | "
            f"{_at(name, 0.0, -0.0)} | {_at_subnormal(name)} | {_at(name, np.inf, -np.inf)} | "
            f"{found.wrong} of {found.steps:,} |"
        )
    tables = load_tables()
    rows = sum(any(row) for row in tables.control)
    totals = f"In all {len(tables.segments):,} segments, {len(tables.exp2)} of 2**f, {rows} control rows in use."
    lines += ["", f"{totals} NaN gives NaN everywhere."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PATH.write_text(replace_between(PATH.read_text(), BEGIN, END, accuracy_table()))
