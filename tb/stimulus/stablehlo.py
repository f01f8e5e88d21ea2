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
_CUSTOM = re.compile(r"stablehlo\.custom_call @(check\.\w+)\((.*?)\) \{[^}]*\} : \((.*)\) -> \(\)")
_ATTRIBUTES = re.compile(r"(?<=>) \{(?:jax|mhlo)\.[^}]*\}")  # of arguments and results
_TOLERANCE = re.compile(r"(?:,| \{)\s*(?:tolerance|max_ulp_difference) = ([\d.e+-]+)(?: : f64)?\}?")
_PARTS = re.compile(r"(\S+),\s+(.*?)\s*:\s*(tensor<.*?>)(?:, tensor<.*>)?", re.DOTALL)
_RETURN = re.compile(r"(?:func\.)?return\b[^\n}]*(?=\s*\}\s*\Z)")
_USUAL = {"expect_almost_eq": 1e-4, "expect_close": 3}  # tolerance of a check without one


@dataclass(frozen=True)
class CheckedFunction:
    """A function of a test.

    Arguments:
        origin: file and line.
        group: name of the file without its ending.
        text: module with the functions `found` and `expected`; empty if nothing is checked, or not as constants.
        name: name of the function that returns the values.
        tolerances: allowed difference of each value, as a number and in units of the last place.
    """

    origin: str
    group: str
    text: str
    name: str
    tolerances: Sequence[tuple[float, float]]


def interpreter_tests(path: Path) -> list[Path]:
    """Return the files of StableHLO's interpreter tests and of its test data, in a checkout or a folder of them."""
    inner = path / "stablehlo" / "tests" / "interpret"
    data = sorted((path / "stablehlo" / "testdata").glob("*.mlir"))  # its folders have other shapes and types
    return sorted((inner if inner.is_dir() else path).rglob("*.mlir")) + data


def read_checks(files: Sequence[Path]) -> Iterator[CheckedFunction]:
    """Yield the functions that check something; a module without checks once, with an empty text."""
    for path in files:
        line, group = 1, re.split(r"_(?:bool|b?float|u?int|complex)\d*_", path.stem)[0]
        for module in re.split(r"(?m)^// -----.*$", path.read_text()):
            plain = re.sub(r"(?m)(^|\s)//[^\n]*$", r"\1", module)
            plain = _CUSTOM.sub(r"\1 \2 : \3", _ATTRIBUTES.sub("", plain))
            starts = [*_FUNCTION.finditer(plain)]
            last = plain.rindex("}") if plain.lstrip().startswith("module") else len(plain)
            ends = [start.start() for start in starts[1:]] + [last] * bool(starts)
            functions = [(start, plain[start.end() : end]) for start, end in zip(starts, ends, strict=True)]
            checked = [(start, body) for start, body in functions if _CHECK.search(body)]
            origin = f"{path.name}:{line + module.count(chr(10), 0, max(0, module.find('func.func')))}"
            for start, body in checked:
                yield _function(plain, start, body, origin, group)
            if starts and not checked:
                yield CheckedFunction(origin, group, "", "", ())
            line += module.count("\n")


def _function(module: str, start: re.Match, body: str, origin: str, group: str) -> CheckedFunction:
    found, expected, types, tolerances, constants = [], [], [], [], []
    for kind, rest in _CHECK.findall(body):
        tolerance = _TOLERANCE.search(rest)
        value, other, of = _PARTS.fullmatch(_TOLERANCE.sub("", rest)).groups()
        number = float(tolerance[1]) if tolerance else _USUAL.get(kind.removesuffix("_const"), 0.0)
        tolerances.append((0.0, number) if kind == "expect_close" else (number, 0.0))
        if not other.startswith("%"):
            constants.append(f"%expected{len(types)} = stablehlo.constant {other} : {of}")
            other = f"%expected{len(types)}"
        found.append(value)
        expected.append(other)
        types.append(of)
    kinds = ", ".join(types)
    header = module[start.start() : start.end(3)]

    def returning(header: str, values: list[str], lines: list[str]) -> str:
        last = "\n".join([*lines, f"func.return {', '.join(values)} : {kinds}"])
        return f"{header}) -> ({kinds}) {{" + _RETURN.sub(lambda _: last, _CHECK.sub("", body))

    other = returning(re.sub(r"@[^(]*", "@what_it_must_be", header), expected, constants)
    before, after = (_CHECK.sub("", part) for part in (module[: start.start()], module[start.end() + len(body) :]))
    text = before + returning(header, found, []) + other + after
    return CheckedFunction(origin, group, text, start[1] or start[2], tuple(tolerances))
