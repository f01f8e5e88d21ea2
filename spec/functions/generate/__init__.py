"""Generator of the activation datapath's tables: `python -m spec.functions.generate [--check]`.

All arithmetic is in integers and mpmath, so the output is the same on every computer.
"""

import json

from neuroncore_rtl.spec.functions.catalogue import FUNCTIONS
from neuroncore_rtl.spec.functions.generate.fit import exp2_segments, fit, mp, mpf
from neuroncore_rtl.spec.functions.generate.recipes import FINE, RECIPES, Piece
from neuroncore_rtl.spec.functions.layout import (
    BINADES_BITS,
    CONTROL_FIELDS,
    EXP2_INDEX_BITS,
    HIGH_EXPONENT,
    LOW_EXPONENT,
    Coordinate,
)
from neuroncore_rtl.spec.functions.tables import PATH

__all__ = ["Builder", "build", "main", "report", "text"]


def _place(row: int, piece: Piece):
    """Return the function from the coordinate x to the argument of the piece's target."""
    if not piece.by_exponent:
        return lambda x: mpf(x)
    if row == 0:
        return lambda x: x * mpf(2) ** (LOW_EXPONENT + 1)
    if dict(piece.fields).get("coordinate") == Coordinate.OUTER:
        return lambda x: _side_by_side(x * (1 << BINADES_BITS))
    return lambda x: (1 + x) * mpf(2) ** (row + LOW_EXPONENT)


def _side_by_side(place: mpf) -> mpf:
    """Return |z|. The integer part of `place` is the exponent of |z| less HIGH_EXPONENT, the fraction the mantissa."""
    binade = min(int(mp.floor(place)), (1 << BINADES_BITS) - 1)
    return (1 + place - binade) * mpf(2) ** (binade + HIGH_EXPONENT)


class Builder:
    """Collector of segments and control rows; equal runs of segments are stored once."""

    def __init__(self):
        self.segments: list[tuple[int, ...]] = []
        self.control: list[tuple] = []
        self.errors: list[tuple[str, int, int, int, mpf]] = []
        self._runs: dict[tuple, int] = {}
        self._fits: dict[tuple, tuple] = {}

    def base(self, run: tuple[tuple[int, ...], ...]) -> int:
        """Return the index of a run's first segment; append the run if it is new."""
        if run not in self._runs:
            self._runs[run] = len(self.segments)
            self.segments += run
        return self._runs[run]

    def _fit(self, row: int, piece: Piece):
        key = (piece.target, piece.tolerance, piece.exponent, row if piece.by_exponent else None)
        if key not in self._fits:
            tolerance = min(piece.tolerance, FINE) if piece.by_exponent and row == 0 else piece.tolerance
            self._fits[key] = fit(piece.target, _place(row, piece), piece.weight, tolerance, piece.exponent)
        return self._fits[key]

    def row(self, name: str, negative: int, row: int, pieces: tuple[Piece, ...]) -> None:
        """Append a control row, with the piece that needs the fewest segments."""
        piece = min(pieces, key=lambda piece: len(self._fit(row, piece)[0]))
        run, error = self._fit(row, piece)
        fields = dict(piece.fields)
        if row == 0 and piece.by_exponent:
            fields["coordinate"] = Coordinate.OUTER
        fields |= {"base": self.base(run), "bits": (len(run) - 1).bit_length()}
        self.control.append((name, negative, row, *(int(fields.get(field, 0)) for field in CONTROL_FIELDS)))
        self.errors.append((name, negative, row, len(run), error))


def build() -> Builder:
    """Return a builder with the segments and control rows of all functions."""
    builder = Builder()
    for name, signs in RECIPES.items():
        for negative, pieces in enumerate(signs):
            rows = (0, 1) if FUNCTIONS[name].parity else range(LOW_EXPONENT, HIGH_EXPONENT + 1)
            for place, exponent in enumerate(rows):
                piece = next(piece for last, piece in pieces if exponent <= last)
                builder.row(name, negative, place, piece if isinstance(piece, tuple) else (piece,))
    return builder


def text(builder: Builder) -> str:
    """Return the text of the table file."""

    def lines(rows):
        return ",\n".join(json.dumps(row) for row in rows)

    sections = {"segments": builder.segments, "exp2": exp2_segments(), "control": builder.control}
    body = ",\n".join(f'"{name}": [\n{lines(rows)}\n]' for name, rows in sections.items())
    return f"{{\n{body}\n}}\n"


def report(builder: Builder) -> str:
    """Return a report of every function's segments and largest error."""
    lines = [f"{len(builder.segments)} segments, {1 << EXP2_INDEX_BITS} of 2**f, {len(builder.control)} control rows"]
    for name in FUNCTIONS:
        rows = [row for row in builder.errors if row[0] == name]
        _, negative, row, _, error = max(rows, key=lambda row: row[-1])
        exact = f"2**{float(mp.log(error, 2)):.1f}" if error else "0"
        count = sum(row[3] for row in rows)
        lines.append(
            f"{name:12} {count:4} segments in {len(rows)} rows, error at most {exact} ({'+-'[negative]} row {row})"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Write the tables, or with `--check` compare them with the file; return the exit status."""
    builder = build()
    if arguments == ["--check"]:
        same = PATH.read_text() == text(builder)
        print(f"{PATH.name} {'is up to date' if same else 'differs from the generated tables'}")
        return 0 if same else 1
    PATH.write_text(text(builder))
    print(report(builder))
    return 0
