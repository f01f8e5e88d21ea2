"""Documents and docstrings: paths, modules and commands that they name exist, and figures agree with records."""

import ast
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuroncore_rtl.__main__ import app  # noqa: F401 (it adds the commands of bench/)
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.tb.cli import commands, overview, registry
from neuroncore_rtl.tb.cli.figures import Block, blocks, documents, figures
from neuroncore_rtl.tb.cli.page import opened
from tests.house import picture
from tests.house.tree import FOLDERS as ROOMS
from tests.house.tree import PACKAGE, ROOT

FOLDERS = "|".join((*ROOMS, "examples", "tests", "docs"))
PATH = re.compile(rf"(?<![\w/.-])((?:{FOLDERS})/[\w./*-]*[\w*/])")
MODULE = re.compile(rf"(?<![\w/.-])(?:{PACKAGE}\.)?((?:{FOLDERS})(?:\.\w+)+)")
LINK = re.compile(r"\]\(([^)#:]+?)(?:#[\w-]+)?\)")
COMMAND = re.compile(r"`(make [a-z][^`\n]*)`")
COMMENT = re.compile(r"(?:^\s*|  )#.*", re.MULTILINE)  # also within strings, which are prose too
RECORD = re.compile(r"^record: sim_build/results/(.+)\.json$", re.MULTILINE)

ELSEWHERE = {
    "tests/kat_vectors": "of the repository of Random123",
    "golden/RTL": "a ratio, in the tables of make bench",
    "run.address": "a signal, in a test of proofs",
}
"""Texts that look like paths of this repository, with their meaning."""

HISTORY = "CHANGELOG.md"  # also names deleted files

PAGES = [path for path in documents() if path.name != HISTORY]


def by_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def sources() -> list[Path]:
    suffixes = (".py", ".v", ".c", ".h", ".S", ".cpp", ".sh")
    found = (path for folder in (*ROOMS, "examples", "tests") for path in (ROOT / folder).rglob("*"))
    files = [*(path for path in found if path.suffix in suffixes), *(ROOT / PACKAGE).glob("*.py")]
    return [*files, ROOT / "Makefile", ROOT / "pyproject.toml", *(ROOT / ".ci").iterdir()]


def prose(path: Path) -> Iterator[str]:
    if path.suffix != ".py":
        yield path.read_text()
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\s", node.value):
            yield node.value
    yield from COMMENT.findall(path.read_text())


def missing_paths(text: str) -> list[str]:
    named = [path for path in PATH.findall(text) if path not in ELSEWHERE]
    return [path for path in named if not (any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists())]


def missing_modules(text: str) -> list[str]:
    found = [name for name in MODULE.findall(text) if name.rpartition(".")[2] not in ("py", "md", "v", "h", "c", "hex")]
    return [name for name in found if not name.startswith("tests") and name not in ELSEWHERE and not exists(name)]


def exists(name: str) -> bool:
    """Return whether a module, or a member of one, has this name.

    Attributes of instances are not resolved, so every attribute of an existing class is accepted.
    """
    known = name
    while known:
        try:
            found = pkgutil.resolve_name(f"{PACKAGE}.{known}")
        except (ImportError, AttributeError):
            known = known.rpartition(".")[0]
        else:
            return known == name or inspect.isclass(found)
    return False


def test_paths_and_modules_that_are_named_exist():
    files = [path for path in (*PAGES, *sources()) if path != Path(__file__).resolve()]
    assert len(files) > 400
    texts = [(by_name(path), text) for path in files for text in prose(path)]
    missing = [(name, what) for name, text in texts for what in (*missing_paths(text), *missing_modules(text))]
    assert missing == []


def test_the_search_finds_what_is_missing():
    assert missing_paths("see hdl/gone.py, `hdl/core.py`, tests/*/nothing.py and docs/core.md.") == [
        "hdl/gone.py",
        "tests/*/nothing.py",
    ]
    assert missing_modules("run.report.Report, `tb.simulation.run`, spec.isa.Engine.TENSOR, spec.isa.Gone") == [
        "tb.simulation.run",
        "spec.isa.Gone",
    ]


def test_picture_of_the_house_is_up_to_date():
    assert picture.PICTURE.read_text() == picture.picture(), "python -m tests.house.picture draws it anew"


@pytest.mark.parametrize("path", [*PAGES, ROOT / HISTORY], ids=by_name)
def test_links_lead_somewhere(path):
    found = [target for target in LINK.findall(path.read_text()) if not target.startswith("http")]
    assert [target for target in found if not (path.parent / target).exists()] == []


def test_imports_in_examples_work():
    for path in PAGES:
        for name in re.findall(r"^from ([\w.]+) import", path.read_text(), re.MULTILINE):
            pkgutil.resolve_name(name)


NAMED = {"profile": opened(registry.profile_named), "image": registry.image_named}
NAMED |= {"sim": opened(registry.command_named), "waves": registry.command_named}
"""Lookups of TESTs, by target."""


def settings(words: tuple[str, ...]) -> Settings | None:
    target, *rest = words
    if target not in dict(overview.targets()):
        raise UsageError(f"make has no target {target!r}")
    if target in NAMED:
        name, *rest = rest
        return NAMED[target](name.removeprefix("TEST=")).settings(rest)
    for command in commands.ALL_COMMANDS:
        if command.name == target:
            return command.settings(rest)
    return None


@pytest.mark.parametrize("path", documents(), ids=by_name)
def test_commands_of_blocks_exist(path):
    for block in blocks(path.read_text()):
        settings(block.words)
        assert block.text.startswith(f"```\n$ make {' '.join(block.words)}\n"), "make figures writes the block"
        assert block.text.endswith("\n```\n")


@pytest.mark.parametrize("path", PAGES, ids=by_name)
def test_commands_in_text_exist(path):
    """Commands with alternatives or placeholders (`TEST=a|b`, `ELF=path`, `...`) are not checked."""
    for line in COMMAND.findall(path.read_text()):
        _, *words = line.split()
        plain = [word for word in words if not re.search(r"\.\.\.|\||path|=file|ARGS|<|\"", word)]
        if plain[0] not in NAMED or any(word.startswith("TEST=") for word in plain):
            settings(tuple(plain))


def test_a_wrong_command_is_noticed():
    for words in (("simulate",), ("sim", "TEST=gone"), ("sim", "TEST=mac", "M=3"), ("bench", "PART=gone")):
        with pytest.raises(UsageError):
            settings(words)


def test_single_figures_are_those_of_a_block():
    """Exactly one block writes the record, and it contains the value."""
    written: dict[str, list[Block]] = defaultdict(list)
    for path in documents():
        for block in blocks(path.read_text()):
            for record in RECORD.findall(block.text):
                written[record].append(block)
    single = [figure for path in documents() for figure in figures(path.read_text())]
    assert single
    for figure in single:
        assert len(written[figure.record]) == 1, f"{figure.record} is the record of no block, or of two"
        assert figure.text in written[figure.record][0].text, figure


def test_a_figure_has_one_value():
    values = defaultdict(set)
    for path in documents():
        for figure in figures(path.read_text()):
            values[figure.record, figure.key, figure.format].add(figure.text)
    assert {place: found for place, found in values.items() if len(found) > 1} == {}


def test_readme_fits_two_screens():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_scores_of_mutants_are_those_of_their_table():
    text = (ROOT / "docs" / "verification.md").read_text()
    units, table = text.split("<!-- output: make mutate RUN=0 -->")
    scores = dict(re.findall(r"^│ (\S[^│]*?) +│.*│ +([\d.]+%) │[^│]*│$", table, re.M))
    said = dict(re.findall(r"([A-Za-z][\w ':-]*) ([\d.]+%)", "".join(re.findall(r"\| ([^|]*%) \|$", units, re.M))))
    assert len(said) > 20 and said.items() <= scores.items(), said.items() - scores.items()
