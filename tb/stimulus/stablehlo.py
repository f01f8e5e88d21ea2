"""Reader for the tests of StableHLO's interpreter: functions without arguments that check values.

    func.func @add() {
      %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
      %1 = stablehlo.add %0, %0 : tensor<2xi32>
      check.expect_eq_const %1, dense<[2, 4]> : tensor<2xi32>
      func.return
    }

A file has modules, separated by lines of "// -----". A checked function becomes two: one returns the values, the other
what they must be.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CheckedFunction", "interpreter_tests", "read_checks"]

_CHECK = re.compile(r"^ *check\.(expect_\w+) (.*?tensor<[^\n]*>(?: \{tolerance = [^}]*\})?)", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"func\.func (?:public |private )?@(?:\"([^\"]*)\"|([\w.$-]+))\((.*?)\)([^{]*)\{", re.DOTALL)
_TOLERANCE = re.compile(r"(?:,| \{)\s*tolerance = ([\d.e+-]+)(?: : f64)?\}?")
_PARTS = re.compile(r"(\S+),\s+(.*?)\s*:\s*(tensor<.*?>)(?:, tensor<.*>)?", re.DOTALL)
_USUAL = 1e-4  # tolerance of expect_almost_eq without one


@dataclass(frozen=True)
class CheckedFunction:
    """A function of a test.

    Arguments:
        origin: file and line.
        group: name of the file without its ending.
        text: module with the functions `found` and `expected`; empty if nothing is checked, or not as constants.
        name: name of the function that returns the values.
        tolerances: allowed difference of each value.
    """

    origin: str
    group: str
    text: str
    name: str
    tolerances: Sequence[float]


def interpreter_tests(path: Path) -> list[Path]:
    """Return the files of StableHLO's interpreter tests in a checkout or a folder of them."""
    inner = path / "stablehlo" / "tests" / "interpret"
    return sorted((inner if inner.is_dir() else path).rglob("*.mlir"))


def read_checks(files: Sequence[Path]) -> Iterator[CheckedFunction]:
    """Yield the functions that check something; a module without checks once, with an empty text."""
    for path in files:
        line = 1
        for module in re.split(r"(?m)^// -----.*$", path.read_text()):
            plain = re.sub(r"(?m)(^|\s)//[^\n]*$", r"\1", module)
            starts = [*_FUNCTION.finditer(plain)]
            ends = [start.start() for start in starts[1:]] + [len(plain)] * bool(starts)
            functions = [(start, plain[start.end() : end]) for start, end in zip(starts, ends, strict=True)]
            checked = [(start, body) for start, body in functions if _CHECK.search(body)]
            origin = f"{path.name}:{line + module.count(chr(10), 0, max(0, module.find('func.func')))}"
            for start, body in checked:
                yield _function(plain, start, body, origin, path.stem)
            if starts and not checked:
                yield CheckedFunction(origin, path.stem, "", "", ())
            line += module.count("\n")


def _function(module: str, start: re.Match, body: str, origin: str, group: str) -> CheckedFunction:
    values, types, constants, tolerances = [], [], [], []
    for kind, rest in _CHECK.findall(body):
        found = _TOLERANCE.search(rest)
        rest = _TOLERANCE.sub("", rest)
        value, other, kind_of = _PARTS.fullmatch(rest).groups()
        tolerances.append(_USUAL if kind.startswith("expect_almost") else 0.0)
        if found:
            tolerances[-1] = float(found[1])
        values.append(value)
        types.append(kind_of)
        constants.append(other)
    returns = f" -> ({', '.join(types)})"
    new = _CHECK.sub("", body)
    new = re.sub(r"(?:func\.)?return(?=\s*\}\s*\}?\s*\Z)", f"func.return {', '.join(values)} : {', '.join(types)}", new)
    pairs = enumerate(zip(constants, types, strict=True))
    lines = [f"%{at} = stablehlo.constant {one} : {of}" for at, (one, of) in pairs]
    last = f"func.return {', '.join(f'%{at}' for at in range(len(lines)))} : {', '.join(types)}"
    expected = "\n".join([f"func.func @expected(){returns} {{", *lines, last, "}"])
    name = start[1] or start[2]
    header = start[0].replace(start[4], returns + " ") if start[4].strip() else start[0][:-1].rstrip() + returns + " {"
    text = module[: start.start()] + header + new + module[start.end() + len(body) :]
    if any(one.startswith("%") for one in constants):
        return CheckedFunction(origin, group, "", "", ())
    at = text.rstrip().rfind("}") if text.lstrip().startswith("module") else len(text)
    return CheckedFunction(origin, group, f"{text[:at]}\n{expected}\n{text[at:]}", name, tuple(tolerances))
