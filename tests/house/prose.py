"""Prose meter: rates of habits that make docstrings, comments, error messages and pages hard to read, per folder.

`python -m tests.house.prose` prints the table and the lines of each folder above its limit, and fails if there is one;
`make lint` runs it. `python -m tests.house.prose hdl docs` also prints the lines of these folders. A rate only
points at sentences; a reader decides whether a sentence is plain.

Habits, and their limits:

- people, 0.6 per 1,000 words: "who", "whose", "nobody". Signals and modules are not persons.
- riddles, 1.0 per 1,000 words: a clause in place of a noun ("what is asked for"), "but for", "of which".
- travel, 1.5 per 1,000 words: "come", "go", "leave", in place of sent, received, issued, accepted, written, retired.
- openers, 1 % of docstrings: a first word "What", "Whose", "Where", "Of". Begin with the noun or the verb.
- participles, 1 % of functions: `begun`, `drawn`, `told`. Name the action or the value.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.house.tree import ROOT, statements, tracked

__all__ = ["LIMITS", "Finding", "Text", "above", "findings", "rates", "texts"]

LIMITS = {"people": 0.6, "riddles": 1.0, "travel": 1.5, "openers": 1.0, "participles": 1.0}
"""Most per 1,000 words; openers and participles in per cent of docstrings and of functions."""

_HABITS = {
    "people": r"who|whose|whom|nobody|somebody|whoever|everybody",
    "riddles": r"but for|of which|likewise|(?:is|are|was|were) (?:asked|told)|asked for|to be had|that which"
    r"|what (?:is|was|are|were|has|have|had|it|they|he|one)|in the place of|of (?:its|their) own|so that nobody"
    r"|as (?:it|they) (?:is|are|was|were)|those (?:who|that)|that of|such as have|has none|there (?:is|are) none"
    r"|by (?:it|them)sel(?:f|ves)",
    "travel": r"comes?|came|goes|go|went|gone|leaves?|left",
}
_HABITS = {habit: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for habit, words in _HABITS.items()}

_OPENER = re.compile(r"\W*(?:what|whose|who|where|how|whether|of|if|as)\b", re.IGNORECASE)

_PARTICIPLES = frozenset(
    """allowed asked begun bound chosen counted cut done drawn ended finished found given held joined kept known left
    made met named placed put read run said seen sent shown split started taken told used wanted worn wound
    written""".split()
)

_QUOTED = re.compile(r"``[^`]*``|`[^`]*`")
_NOT_PROSE = re.compile(r"```.*?```|<!--.*?-->|`[^`]*`|\]\([^)]*\)", re.DOTALL)
_STRING_OR_COMMENT = re.compile(r"""("{3}|'{3}|"|')(?:\\.|(?!\1).)*\1|#[^\n]*""", re.DOTALL)
_WORD = re.compile(r"[A-Za-z][a-z']+")


class Text(NamedTuple):
    """A piece of prose, or the name of a function.

    Arguments:
        kind: docstring, comment, message, page or name.
        line: line of the file where it begins, from 1.
        text: the prose without code.
    """

    kind: str
    line: int
    text: str


class Finding(NamedTuple):
    """A habit in a text: its name, the line of the file, and the words."""

    habit: str
    line: int
    words: str


def texts(source: str, suffix: str) -> Iterator[Text]:
    """Yield the prose of a file's text, and the names of its functions; suffix: `.py` or `.md`."""
    if suffix == ".md":
        yield Text("page", 1, _NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source))
        return
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if (docstring := ast.get_docstring(node, clean=False)) is not None:
                yield Text("docstring", node.body[0].lineno, _QUOTED.sub(" x ", docstring))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Text("name", node.lineno, node.name.strip("_"))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield Text("message", part.lineno, part.value)
    for found in _STRING_OR_COMMENT.finditer(source):
        if found[0].startswith("#"):
            yield Text("comment", 1 + source.count("\n", 0, found.start()), found[0].lstrip("# "))


def findings(pieces: list[Text]) -> Iterator[Finding]:
    for kind, line, text in pieces:
        if kind == "name":
            if text in _PARTICIPLES:
                yield Finding("participles", line, text)
            continue
        if kind == "docstring" and _OPENER.match(text):
            yield Finding("openers", line, " ".join(text.split()[:6]))
        for habit, pattern in _HABITS.items():
            for found in pattern.finditer(text):
                yield Finding(habit, line + text.count("\n", 0, found.start()), found[0])


def rates(pieces: list[Text]) -> dict[str, float]:
    count = Counter(finding.habit for finding in findings(pieces))
    words = sum(len(_WORD.findall(piece.text)) for piece in pieces if piece.kind != "name")
    kinds = Counter(piece.kind for piece in pieces)
    whole = {"openers": (kinds["docstring"], 100), "participles": (kinds["name"], 100)}
    found = {}
    for habit in LIMITS:
        total, scale = whole.get(habit, (words, 1000))
        found[habit] = scale * count[habit] / max(total, 1)
    return {"words": words} | found


def above(found: dict[str, float]) -> list[str]:
    return [habit for habit, most in LIMITS.items() if found[habit] > most]


def _files() -> dict[str, list[Path]]:
    folders = defaultdict(list)
    for name in tracked():
        path = ROOT / name
        if path.suffix in (".py", ".md") and path.is_file() and not path.is_symlink():
            folders[name.partition("/")[0] if "/" in name else "."].append(path)
    return folders


def main() -> None:
    failures = []
    print(f"{'folder':16} {'words':>7} " + " ".join(f"{habit:>11}" for habit in LIMITS))
    for folder, files in sorted(_files().items()):
        pieces = {path: list(texts(path.read_text(), path.suffix)) for path in files}
        found = rates([piece for listed in pieces.values() for piece in listed])
        print(f"{folder:16} {found['words']:7,} " + " ".join(f"{found[habit]:11.2f}" for habit in LIMITS))
        high = above(found)
        for path, listed in pieces.items():
            for habit, line, words in findings(listed):
                if habit in high or folder in sys.argv[1:]:
                    print(f"    {path.relative_to(ROOT)}:{line}: {habit}: {words}")
        rule = "{} of {} must be at most {}, not {:.2f} (see `python -m tests.house.prose`): say it in plain words"
        failures += [rule.format(habit, folder, LIMITS[habit], found[habit]) for habit in high]
    sys.exit("\n".join(failures) or None)


if __name__ == "__main__":
    main()
