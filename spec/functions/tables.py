"""Tables of the activation datapath, read from `tables.json`, which `spec.functions.generate` writes."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from neuroncore_rtl.spec.functions.catalogue import FUNCTIONS
from neuroncore_rtl.spec.functions.layout import COEFFICIENT_FIELDS, CONTROL_FIELDS, EXP2_FIELDS, control_address

__all__ = ["PATH", "Tables", "load_tables"]

PATH = Path(__file__).with_name("tables.json")


@dataclass(frozen=True)
class Tables:
    """Tables of the activation datapath: rows of `COEFFICIENT_FIELDS`, `EXP2_FIELDS` and `CONTROL_FIELDS`.

    Unused rows of `control` are zeros.
    """

    segments: tuple[tuple[int, ...], ...]
    exp2: tuple[tuple[int, ...], ...]
    control: tuple[tuple[int, ...], ...]


@cache
def load_tables(path: Path = PATH) -> Tables:
    """Return the tables that a file contains; raise ValueError if a number does not fit its field."""
    content = json.loads(path.read_text())
    control = [(0,) * len(CONTROL_FIELDS)] * control_address(len(FUNCTIONS), 0, 0)
    for name, negative, row, *fields in content["control"]:
        control[control_address(FUNCTIONS[name].code, negative, row)] = tuple(fields)
    tables = Tables(
        tuple(map(tuple, content["segments"])),
        tuple(map(tuple, content["exp2"])),
        tuple(control),
    )
    _check("segments", tables.segments, COEFFICIENT_FIELDS, signed=True)
    _check("exp2", tables.exp2, EXP2_FIELDS, signed=False)
    _check("control", tables.control, CONTROL_FIELDS, signed=False)
    return tables


def _check(name: str, rows, fields: dict[str, int], signed: bool) -> None:
    for place, row in enumerate(rows):
        for (field, width), value in zip(fields.items(), row, strict=True):
            low, high = (-1 << width - 1, 1 << width - 1) if signed else (0, 1 << width)
            if not low <= value < high:
                raise ValueError(f"{field} of row {place} of {name} must fit {width} bits, not {value!r}")
