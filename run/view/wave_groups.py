"""What a line of a waveform is, as tables say it."""

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from neuroncore_rtl.run.view.wave_numbers import NUMBERS
from neuroncore_rtl.spec import isa

__all__ = ["CAUSE", "ERROR", "Trace", "counters", "traces"]

_FORMATS = ("hex", "dec", "signed", "bin", *NUMBERS)
"""Formats of a line's values: GTKWave's, those that tables use, and those of numbers."""

CAUSE: Any = enum.IntEnum("Cause", {cause.name: cause.value for kind in (isa.Rule, isa.Cause) for cause in kind})
"""Causes of error, those that are broken rules among them."""

ERROR = "\nerror.valid bin error | error.cause Cause"
"""Lines of whatever reports an error."""


@dataclass(frozen=True)
class Trace:
    """A line of the waveform.

    Arguments:
        signal: hierarchical name in the harness.
        alias: what it is called on the screen.
        format: "hex", "dec", "signed" or "bin"; an enumeration, whose names are shown; or a format of numbers
            (`run.view.wave_numbers`), which are shown in decimal.
    """

    signal: str
    alias: str
    format: str | type[enum.Enum] = "hex"


def traces(table: str, at: str = "", *words: type[enum.Enum]) -> list[Trace]:
    """Return the lines of a table, each "SIGNAL FORMAT ALIAS", apart by a line's end or a "|".

    Without an alias a signal has the last part of its name. The format is one of `Trace`, or the name of an
    enumeration; `handshake` is short for two lines, of the signals with `valid` and `ready` behind their name.

    Arguments:
        table: the lines.
        at: the path that signals are relative to; "" for the harness.
        words: the enumerations besides `CAUSE`.

    Raises:
        ValueError: if a line's format is none of these.
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
    """Return the lines of the counters of these names."""
    return traces("\n".join(f"{name} dec" for name in names), at)
