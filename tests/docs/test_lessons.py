"""The lessons are true: their commands print what the pages show, and each number of an answer is measured here again.

On the pages a mark `runs: COMMAND` precedes a table of runs. Its first column has further variables of the command; the
heading of each other column is a name that the command prints.
"""

import io
import math
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.tb.cli.array_picture import A, B
from neuroncore_rtl.tb.cli.figures import blocks
from neuroncore_rtl.tb.cli.registry import COMMANDS, command_named, profile_named

PAGES = sorted((ROOT / "docs" / "lessons").glob("*.md"))
LESSONS = [page for page in PAGES if page.name != "answers.md"]
ANSWERS = ROOT / "docs" / "lessons" / "answers.md"

BLOCKS = [(page, block.words) for page in PAGES for block in blocks(page.read_text())]

RUNS = re.compile(r"<!-- runs: make (.+?) -->\s+(\|.+?)(?:\n\s*\n|\Z)", re.DOTALL)
VECTORS = re.compile(r"```vectors\n(.*?)```", re.DOTALL)
EQUATION = re.compile(r"`([\d .()+*/-]+) = ([\d.]+)`")

CHANGING = {
    "simulated cycles per second", "waveform", "timeline", "profile", "picture", "plot", "data", "moving", "still",
    "to open", "moving, for slides", "still, for slides",
}  # fmt: skip
"""Rows of a report that are paths, or that depend on this machine's speed."""


def by_name(value: object) -> str | None:
    return value.stem if isinstance(value, Path) else " ".join(value) if isinstance(value, tuple) else None


@pytest.fixture(scope="module", autouse=True)
def recordings(tmp_path_factory) -> Iterator[None]:
    with recording_in(tmp_path_factory.mktemp("lessons")):
        yield


def printed(words: tuple[str, ...]) -> str:
    target, test, *rest = words
    return _printed(target, test, *sorted(rest))


@cache
def _printed(target: str, test: str, *rest: str) -> str:
    output = io.StringIO()
    if target == "picture":
        command = next(command for command in COMMANDS if command.name == target)
        with redirect_stdout(output):
            assert command.run(command.settings([test, *rest])) == 0
        return output.getvalue()
    command = {"sim": command_named, "profile": profile_named}[target](test.removeprefix("TEST="))
    report = command.run(command.settings(rest))
    assert report.problems == []
    report.show(Console(file=output, width=200, highlight=False))
    return output.getvalue()


def rows(text: str) -> dict[str, str]:
    found = (re.split(r"  +", line.strip(), maxsplit=1) for line in text.splitlines())
    return {row[0]: row[1] if len(row) > 1 else "" for row in found}


def value(text: str, name: str) -> str:
    """Return the value that a report prints for a name: of a row, of a part of a row, or "row part"."""
    shown = {heading: row for heading, row in rows(text).items() if heading not in ("settings", "config")}
    if name in ("vector", "scalar"):
        shown = {"elements": shown["elements"]}
    elif name in shown:
        return shown[name].split("  ")[0]
    elif name.rpartition(" ")[0] in shown:
        row, _, column = name.rpartition(" ")
        if parts := re.findall(rf"(?:^|, ){column} ([^\s,]+)", shown[row]):
            return parts[0]
        tables = [re.split(r"  +", cells) for cells in shown.values()]
        titles = next(titles for titles in tables if column in titles)
        return re.split(r"  +", shown[row])[titles.index(column)]
    (found,) = {hit for row in shown.values() for hit in re.findall(rf"(?:^|, ){name} ([^\s,]+(?:,\d+)*)(?=, |$)", row)}
    return found


@pytest.mark.parametrize("page, words", BLOCKS, ids=by_name)
def test_a_lesson_shows_what_its_command_prints(page, words):
    (block,) = [block for block in blocks(page.read_text()) if block.words == words]
    shown = block.text.split("\n", 2)[2]
    told, found = ({k: v for k, v in rows(text).items() if k not in CHANGING} for text in (shown, printed(words)))
    # A line of the library has another number after an edit of its file.
    told, found = ({k: v for k, v in table.items() if not re.fullmatch(r"\w+\.py:\d+", k)} for table in (told, found))
    others = ("record:", "report:", "```")
    missing = {heading for heading in told.keys() - found.keys() if not heading.startswith(others)}
    assert not missing and told["cycles" if "cycles" in told else "compared"]
    assert {k: v for k, v in told.items() if k in found} == found, "make figures ONLY=... writes it again"


def tables() -> list:
    """Return a test case for each row of each table of runs: the command's words, and the values by name."""
    cases = []
    for page in PAGES:
        for command, table in RUNS.findall(page.read_text()):
            heads, _, *lines = (
                [cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.strip().split("\n")
            )
            assert heads[0] == "variables"
            for variables, *values in lines:
                words = (*command.split(), *variables.strip("`").split())
                marks = pytest.mark.slow if "TEST=sr" in words else ()
                named = dict(zip(heads[1:], values, strict=True))
                cases.append(pytest.param(words, named, id=" ".join(words[1:]), marks=marks))
    return cases


@pytest.mark.parametrize("words, values", tables())
def test_runs_of_the_answers_have_these_values(words, values):
    text = printed(words)
    assert {name: value(text, name) for name in values} == values


@pytest.mark.parametrize("test, number", [("mac", 0), ("round", 1)])
def test_vectors_of_the_answers_have_these_results(tmp_path, test, number):
    text = VECTORS.findall(ANSWERS.read_text())[number]
    lines = [line.split() for line in text.split("\n") if line.strip()]
    assert all(len(line) == (4 if "rne" in line else 5) for line in lines)
    path = tmp_path / "my_cases.txt"
    path.write_text(text)
    shown = rows(printed(("sim", f"TEST={test}", f"VECTORS={path}")))
    assert shown["compared with expected"] == str(len(lines)) and shown["differ from expected"] == "0"


def test_calculations_on_the_pages_are_right():
    found = [equation for page in PAGES for equation in EQUATION.findall(page.read_text())]
    assert len(found) > 20
    for calculation, result in found:
        places = len(result.partition(".")[2])
        assert math.isclose(eval(calculation), float(result), abs_tol=0.51 * 10**-places, rel_tol=0), calculation


def test_facts_that_the_lessons_state():
    text = (ROOT / "docs" / "lessons" / "2_systolic_array.md").read_text()
    assert f"`{A.tolist()}`" in text and f"column of B is {', '.join(map(str, B[:, 0]))}." in text
    assert (A @ B)[0, 0] == 10
    total = 1 + math.exp(-1)
    values = (math.exp(-1), total, math.exp(-1) / total, 1 / total)
    assert [f"{x:.3f}" for x in values] == "0.368 1.368 0.269 0.731".split()
    assert round(1000 / math.log(10)) == 434


def test_every_lesson_has_its_parts():
    assert [page.name[0] for page in LESSONS] == list("123456")
    answers = ANSWERS.read_text()
    for page in LESSONS:
        text = page.read_text()
        assert [line for line in text.split("\n") if line.startswith("## ")][:2] == ["## Run it", "## How it works"]
        assert "## Exercises" in text and "![" in text and "<!-- output: make" in text
        exercises = len(re.findall(r"^\d\. ", text.split("## Exercises")[1], re.MULTILINE))
        solved = answers.split(f"## Lesson {page.name[0]}\n")[1].split("\n## ")[0]
        assert exercises == len(re.findall(r"^\d\. ", solved, re.MULTILINE)) >= 3
