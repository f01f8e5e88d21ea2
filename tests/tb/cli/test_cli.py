"""Command line: lists of tests and variables, errors."""

import errno
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from neuroncore_rtl.__main__ import app
from neuroncore_rtl.run.report import Report, recording_in
from neuroncore_rtl.run.settings import SEED, SIM, WAVES, Command, Option, configuration_options, dtype_option, unknown
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.parameters import parameters
from neuroncore_rtl.tb.cli import overview, registry

FIXTURE = Command(
    name="fixture",
    summary="a bench for these tests",
    options=(
        *configuration_options("small"),
        Option(name="M", type=int, default=4, help="rows", minimum=1),
        Option(name="VECTORS", type=Path, default=None, help="a file"),
        dtype_option(["bf16", "fp32"]),
        SEED,
        SIM,
        WAVES,
    ),
    run=lambda settings: Report(
        test="fixture",
        label="label",
        settings={"M": settings.m, "ROWS": settings.config.rows, "LATENCY": settings.config.mac_latency},
        compared=settings.m,
        mismatches=1 if settings.seed == 13 else 0,
        cycles=200,
        ideal_cycles=150,
    ),
)


@pytest.fixture
def cli(monkeypatch, tmp_path):
    module = ModuleType("neuroncore_rtl.tb.tests.core.fixture")
    module.TEST = FIXTURE
    monkeypatch.setitem(sys.modules, "neuroncore_rtl.tb.tests.core.fixture", module)
    monkeypatch.setattr(registry, "MODULES", {"fixture": "core.fixture"})
    monkeypatch.setattr(Report.write, "__defaults__", (tmp_path,))
    registry.command_named.cache_clear()
    with recording_in(tmp_path):
        yield lambda *words: CliRunner().invoke(app, words)
    registry.command_named.cache_clear()


@pytest.mark.parametrize(
    "words", [("M=7", "MAC_LATENCY=3"), ("--m", "7", "--mac-latency", "3"), ("M=7", "--mac-latency", "3")]
)
def test_options_in_both_spellings_reach_the_bench_and_its_record(cli, tmp_path, words):
    result = cli("sim", "fixture", *words)
    assert result.exit_code == 0
    assert "M=7 ROWS=16 LATENCY=3" in result.stdout
    record = json.loads((tmp_path / "fixture-label.json").read_text())
    assert (record["compared"], record["bit_exact"], record["exit_status"]) == (7, True, 0)
    assert record["utilisation"] == 0.75


def test_failure_is_the_exit_status(cli):
    result = cli("sim", "fixture", "SEED=13")
    assert result.exit_code == 1
    assert "FAILED: 1 of 4 results differ from the golden model" in result.stdout


SIM_REFUSES = {
    "PRESET=huge": f"PRESET must be one of {', '.join(PRESETS)}, not 'huge'",
    "DTYPE=fp64": "DTYPE must be one of bf16, fp32, not 'fp64'",
    "WAVE=1": "a variable of fixture must be an existing one, not 'WAVE'; did you mean WAVES?",
    "m=1": "a variable of fixture must be an existing one, not 'm'; did you mean M?",
    "COLOUR=1": "a variable of fixture must be one of PRESET, ROWS, COLUMNS, ",
    "M": "a variable is given as NAME=VALUE, not 'M'",
    **{f"M={text}": f"M must be an integer of at least 1, not '{text}'" for text in ("0", "", "0x10", "1_0", "²")},
    **dict.fromkeys(("M=7 M=8", "--m 7 M=8", "--m 7 --m 8"), "M must be given once, not as '7' and '8'"),
    "M=" + "9" * 5000: "M must be an integer of at least 1",
    "--rows 1": "ROWS must be an integer from 2 to 1024, not '1'",
    "SEED=-1": "SEED must be an integer from 0 to 4294967295, not '-1'",
    "VECTORS=/nowhere": "VECTORS must be an existing file, not '/nowhere'",
}


@pytest.mark.parametrize(
    "words, message",
    [
        *((["sim", "fixture", *words.split()], message) for words, message in SIM_REFUSES.items()),
        (["sim", "nonsense"], "TEST must be one of fixture, not 'nonsense'"),
        (["sim", ""], "TEST must be one of fixture, not ''"),
        (["sim", "", "M=1", "test=fixture"], "TEST must be in capitals, TEST=fixture, not 'test=fixture'"),
        (["waves", "nonsense"], "TEST must be one of fixture, not 'nonsense'"),
        (["verilog", "PRESET=huge"], SIM_REFUSES["PRESET=huge"]),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(cli, words, message):
    result = cli(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "sim_build cannot be written: No space left on device"),
        (OSError(errno.EROFS, "Read-only file system", "/a/b"), "/a/b cannot be written: Read-only file system"),
    ],
)
def test_a_disk_that_takes_nothing_more_is_named(cli, monkeypatch, error, message):
    def refuse(*arguments):
        raise error

    monkeypatch.setattr(Report, "write", refuse)
    result = cli("sim", "fixture")
    assert result.exit_code == 1
    assert re.fullmatch(rf"Error: (.*/)?{message}\n", result.stderr)


def test_another_error_of_the_system_is_a_mistake_and_stays_a_traceback(cli, monkeypatch):
    def lose(*arguments):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/a/b")

    monkeypatch.setattr(Report, "write", lose)
    assert isinstance(cli("sim", "fixture").exception, FileNotFoundError)


def test_help_of_a_test_lists_its_options(cli):
    text = cli("sim", "fixture", "--help").stdout
    for option in FIXTURE.options:
        assert f"--{option.name.lower().replace('_', '-')} " in text


def sections_of(text: str) -> dict[str, dict[str, str]]:
    sections = {}
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            rows = sections[line.removesuffix(":")] = {}
        elif line:
            name, text = re.split(r"\s{2,}", line.strip(), maxsplit=1) if "  " in line.strip() else ("", line.strip())
            rows[name] = text
    return sections


def test_help_lists_every_target_test_and_preset_and_fits_a_screen():
    sections = sections_of(overview.overview(width=1000))
    assert sections["targets"] == {f"make {name}": text for name, text in overview.targets()}
    listed = [name for names in sections["TEST=, for make sim"].values() for name in names.split()]
    assert listed == list(registry.tests())
    assert all(f"{name} " in sections["more"]["PRESET="] for name in PRESETS)
    lines = overview.overview(width=120).splitlines()
    assert len(lines) <= 44 and max(map(len, lines)) <= 120
    groups = lines[lines.index("TEST=, for make sim:") + 1 : lines.index("more:") - 1]
    assert len(groups) == len(overview.GROUPS), "a line each"


@pytest.mark.parametrize("name", [*registry.tests(), *(command.name for command in registry.COMMANDS)])
def test_help_of_one_has_its_variables_and_the_presets(name):
    one = registry.tests().get(name) or next(command for command in registry.COMMANDS if command.name == name)
    sections = sections_of(overview.command_help(one, "make", width=1000))
    machine = [option.name for option in one.options if option.name.lower() in parameters()]
    others = {f"{option.name}=": option.describe() for option in one.options if option.name not in machine}
    assert sections.get("variables", {}) == others
    assert one.summary in next(iter(sections.values())).values()
    short, complete = sections_of_machine(sections), sections_of_machine(help_of(one, complete=True))
    assert sorted(complete) == sorted(machine) and set(short) == set(machine) & set(overview.COMMON)
    for name, text in complete.items():
        known = parameters()[name.lower()]
        assert text == f"{known.sentence} Buys: {known.benefit}. Costs: {known.cost}."
    if set(short) != set(machine):
        assert sections["more"]["ALL=1"].startswith(f"{len(machine) - len(short)} more")
    if machine:
        assert list(help_of(one, complete=True)["PRESET=, named configurations"]) == list(PRESETS)


def test_the_overview_imports_no_command():
    code = "import sys, neuroncore_rtl.tb.cli.overview; print({'amaranth', 'cocotb', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def help_of(one, complete: bool):
    return sections_of(overview.command_help(one, "make", width=1000, complete=complete))


def sections_of_machine(sections) -> dict[str, str]:
    rows = [row for heading, rows in sections.items() if heading.startswith("machine, ") for row in rows.items()]
    return {name.rstrip("="): text for name, text in rows}


def test_help_by_its_command():
    def cli(*words):
        return CliRunner().invoke(app, words)

    assert cli("help").stdout.startswith("targets:")
    assert cli("help", "matmul").stdout.startswith("make sim TEST=matmul:")
    assert cli("help", "bench").stdout.startswith("make bench:")
    assert "SCALAR_DEPTH" not in cli("help", "matmul").stdout
    assert "SCALAR_DEPTH" in cli("help", "matmul", "ALL=1").stdout
    assert "must be ALL=0 or ALL=1" in cli("help", "matmul", "NONE=1").stderr
    result = cli("help", "gone")
    assert result.exit_code == 2 and "TEST must be one of" in result.stderr


def test_profiles_are_of_tests_on_the_core():
    one = registry.profile_named("softmax").settings()
    assert (one.profile, one.target) == (1, "core")
    assert registry.profile_named("softmax").settings(["TARGET=model"]).target == "model"
    assert registry.profiled_tests()[:2] == ["matmul", "digits"]
    result = CliRunner().invoke(app, ("profile", "vector"))
    assert result.exit_code == 2 and "TEST must be one that has profiles, matmul, " in result.stderr


def test_every_public_target_of_the_makefile_has_its_line_of_help():
    phony = next(line for line in overview.MAKEFILE.read_text().splitlines() if line.startswith(".PHONY:"))
    assert phony.split()[1:] == [name for name, _ in overview.targets()]


def test_every_test_is_listed_under_its_name():
    assert all(command.name == name for name, command in registry.tests().items())
    for module in set(overview.MODULES.values()):
        found = importlib.import_module(f"neuroncore_rtl.tb.tests.{module}")
        defined = [one.name for one in getattr(found, "TESTS", [getattr(found, "TEST", None)])]
        assert defined == [name for name, one in overview.MODULES.items() if one == module]


@pytest.mark.parametrize(
    "name, names, message",
    [
        ("TARGETT", ("TARGET", "PRESET"), "X must be one of TARGET, PRESET, not 'TARGETT'; did you mean TARGET?"),
        ("m", ("M", "K"), "X must be one of M, K, not 'm'; did you mean M?"),
        ("matmull", overview.MODULES, "X must be an existing one, not 'matmull'; did you mean matmul?"),
        ("zzz", overview.MODULES, f"X must be one of {', '.join(overview.MODULES)}, not 'zzz'"),
    ],
)
def test_unknown_names_are_answered_with_similar_ones(name, names, message):
    assert str(unknown("X", name, names)) == message


def test_settings_have_no_attribute_that_is_not_an_option():
    with pytest.raises(AttributeError, match="no option NONSENSE"):
        _ = FIXTURE.settings().nonsense
