"""Reports of TESTs, run as by `make sim`; their records have numbers as numbers, and identifiers as keys."""

import re
from collections.abc import Iterator, Mapping

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.tb.cli.registry import command_named

__all__ = ["passed", "report_of", "unreadable"]

_KEY = re.compile(r"[a-z0-9_]+")
_NUMBER = re.compile(r"[-+]?[\d.,]*\d(e[-+]?\d+)?%?|[-+]?inf|nan", re.IGNORECASE)


def unreadable(value: object, where: str = "") -> Iterator[str]:
    """Yield the paths of a record's keys that are no identifiers, and of its texts that are only numbers."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if not _KEY.fullmatch(key):
                yield f"{where}.{key} is no identifier"
            yield from unreadable(part, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for part in value:
            yield from unreadable(part, where)
    elif isinstance(value, str) and all(map(_NUMBER.fullmatch, re.split(r" to | - |[ ;/x]+", value.strip()))):
        yield f"{where} is the text {value!r}"


def report_of(test: str, words: str = "") -> Report:
    """Run a TEST with variables, NAME=VALUE, and return its report."""
    bench = command_named(test)
    report = bench.run(bench.settings(words.split()))
    record = report.as_json()
    del record["settings"]  # values of variables, some of them texts
    wrong = [*unreadable(record)]
    assert not wrong, wrong
    return report


def passed(test: str, words: str = "") -> Report:
    report = report_of(test, words)
    assert report.problems == []
    return report
