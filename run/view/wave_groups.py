"""Lines of a waveform, from texts with a line SIGNAL FORMAT ALIAS for each signal."""

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from neuroncore_rtl.run.view.wave_numbers import NUMBERS
from neuroncore_rtl.spec import isa

__all__ = ["CAUSE", "ERROR", "Trace", "counters", "traces"]

_FORMATS = ("hex", "dec", "signed", "bin", *NUMBERS)
"""Value formats of a line: GTKWave's and number formats, by their names in tables."""

CAUSE: Any = enum.IntEnum("Cause", {cause.name: cause.value for kind in (isa.Rule, isa.Cause) for cause in kind})

ERROR = "\nerror.valid bin error | error.cause Cause"
"""Lines of units that report errors."""


@dataclass(frozen=True)
class Trace:
    """Line of a waveform; `format`: "hex", "dec", "signed", "bin", an enumeration or a number format in `NUMBERS`."""

    signal: str
    alias: str
    format: str | type[enum.Enum] = "hex"


def traces(table: str, at: str = "", *words: type[enum.Enum]) -> list[Trace]:
    """Return the lines of a table with entries "SIGNAL FORMAT ALIAS", separated by newlines or "|".

    Signals are relative to the path `at`. The default alias is the last part of the signal's name. FORMAT is a format
    of `Trace` or the name of one of the enumerations `words`; `handshake` stands for two lines, the signals with suffix
    `valid` and `ready`.
    """
    formats = {form: form for form in _FORMATS} | {one.__name__: one for one in (CAUSE, *words)}
    found = []
    for line in filter(None, map(str.strip, re.split(r"[\n|]", table))):
        signal, form, *alias = line.split(maxsplit=2)
        signal = f"{at}.{signal}" if at else signal
        if form == "handshake":
            found += [Trace(signal + end, " ".join([*alias, end]), "bin") for end in ("valid", "ready")]
        elif form not in formats:
            raise ValueError(f"the format of {signal} must be one of {', '.join(formats)}, handshake, not {form!r}")
        else:
            name = alias[0] if alias else signal.rpartition(".")[2].rpartition("__")[2].replace("_", " ")
            found.append(Trace(signal, name, formats[form]))
    return found


def counters(at: str, names: Iterable[str]) -> list[Trace]:
    """Return the lines of counters, in decimal."""
    return traces("\n".join(f"{name} dec" for name in names), at)
