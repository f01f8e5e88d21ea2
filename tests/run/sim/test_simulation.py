"""run.sim.simulation: builds, their cache, and errors."""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from neuroncore_rtl import ROOT, SIM_BUILD
from neuroncore_rtl.run.sim import doctor, paths, seal, shared, simulation, verilator
from neuroncore_rtl.run.sim.simulation import (
    BuildFailed,
    Design,
    SimulationFailed,
    build,
    run_directory,
    run_simulation,
)

COUNTER = """
module counter(input clk, input rst, output [7:0] count, output never);
  wire [3:0] low, high;
  assign count = {high, low};
  assign never = 1'b0;
  nibble ones(.clk(clk), .rst(rst), .step(1'b1), .value(low));
  nibble sixteens(.clk(clk), .rst(rst), .step(low == 4'd15), .value(high));
endmodule
module nibble(input clk, input rst, input step, output reg [3:0] value);
  always @(posedge clk) if (rst) value <= 4'd0; else if (step) value <= value + 4'd1;
endmodule
"""

TEST = "tests.run.sim.counter_bench"

COMPILER = 'while [ "$1" != -o ]; do shift; done\necho object > "$2"'
"""Script in place of a compiler: its object files contain one word."""


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def root(tmp_path_factory, worker_id):
    """Return a folder for generated files, shared only by the workers of this test session.

    Verilator's run-time library is linked to the global one, because it takes longer than all builds here.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "sim_build"
    (folder / "verilator").mkdir(parents=True, exist_ok=True)
    library = SIM_BUILD / "verilator" / f"runtime-{simulation._toolchain()}"
    library.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (folder / "verilator" / library.name).symlink_to(library)
    return folder


def counter(sim="verilator", *, root, text=COUNTER):
    return build(Design("counter", text), sim, root=root)


def check(built, root, expected=5, testcase="counts", **options):
    with run_directory("counter", root) as directory:
        return run_simulation(
            built, TEST, testcase=testcase, run_dir=directory, env={"EXPECTED": str(expected)}, **options
        )


def test_second_build_invokes_no_compiler(sim, root, monkeypatch):
    first = counter(sim, root=root)
    monkeypatch.setattr(simulation, "_compile", lambda *arguments: pytest.fail("compiled again"))
    second = counter(sim, root=root)
    assert second.directory == first.directory
    assert not second.fresh
    assert [result.name for result in check(second, root)] == ["counts"]


def test_another_text_is_another_build(root):
    names = {
        simulation._fingerprint(Design("counter", text, blocks), "verilator", waves)
        for text in (COUNTER, COUNTER + "\n")
        for blocks in ((), ("nibble",))
        for waves in (False, True)
    }
    assert len(names) == 8


@pytest.mark.parametrize(
    "testcase, options, message",
    [
        ("counts", {"expected": 6}, r"(?s)1 of 1 tests failed.*counts.*assert 5 == 6"),
        ("hangs", {"timeout_ns": 500}, r"(?s)1 of 1 tests failed.*hangs"),
        ("no_such_test", {}, None),
    ],
)
def test_failed_run_raises_its_message_and_keeps_its_directory(sim, root, tmp_path, testcase, options, message):
    with pytest.raises(SimulationFailed, match=message):
        check(counter(sim, root=root), tmp_path, testcase=testcase, **options)
    (kept,) = (tmp_path / "runs").iterdir()
    assert (kept / "simulation.log").is_file()


def test_passed_run_leaves_no_directory(root, tmp_path):
    check(counter(root=root), tmp_path)
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_build_uses_neither_perl_nor_another_compiler_nor_an_outer_make(root, tmp_path, monkeypatch):
    for name in ("perl", "g++", "c++", "ar"):  # zig finds C headers by cc
        script(tmp_path / name, "exit 99")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, value in {"MAKEFLAGS": " -- OPT_FAST=-no-such-flag EXPECTED=6", "EXPECTED": "6", "WAVES": "1"}.items():
        monkeypatch.setenv(name, value)
    built = build(Design("counter", f"{COUNTER}\n// without\n", ("nibble",)), root=root)
    assert built.fresh and not built.waves
    check(built, root)


def test_refused_design_shows_the_tools_message(sim, root):
    with pytest.raises(BuildFailed, match=r"(?s)cannot build counter.*counter\.v.*error"):
        counter(sim, root=root, text=COUNTER.replace("endmodule", "endmodul"))


def test_lint_warning_ends_the_build(root):
    latch = COUNTER.replace("assign never = 1'b0;", "reg l; always @* if (rst) l = 1'b1; assign never = l;")
    with pytest.raises(BuildFailed, match="LATCH"):
        counter(root=root, text=latch)


def test_run_time_library_is_compiled_once(root, tmp_path):
    counter(root=root)
    (library,) = (root / "verilator").glob("runtime-*")
    copied = tmp_path / "verilator" / library.name
    shutil.copytree(library, copied, ignore=shutil.ignore_patterns("*.o.*", "*.pch.*"))
    compiled = sorted(copied.iterdir())
    assert compiled
    built = counter(root=tmp_path, text=f"{COUNTER}\n// another\n")
    assert built.fresh
    assert compiled == sorted(copied.iterdir())
    check(built, tmp_path)


@pytest.mark.parametrize("waves", [False, True])
def test_library_is_compiled_ahead_with_the_options_of_the_build(waves, tmp_path, monkeypatch):
    compiler = script(tmp_path / "compiler", COMPILER)
    variables = [f"CXX={compiler}" if one.startswith("CXX=") else one for one in verilator.MAKE_VARIABLES]
    monkeypatch.setattr(verilator, "MAKE_VARIABLES", variables)
    with pytest.raises(BuildFailed):
        build(Design("counter", COUNTER), waves=waves, root=tmp_path)
    assert len(list(tmp_path.glob("verilator/runtime-*/*.o"))) == 1 + waves  # Verilator's waveforms are another file


def test_a_failure_ahead_of_the_build_is_left_to_the_build(root, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "LIBRARY", Path("no_such_library.cpp"))
    shared.compile_shared(tmp_path, "none", timescale=simulation.TIMESCALE, waves=False)
    assert not list(tmp_path.glob("runtime-none/shared*")) and not list(tmp_path.glob("shared-*"))


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Return a function that compiles a source with lists of options, and returns all calls of the compiler."""
    compiler = script(tmp_path / "compiler", f'echo "$*" >> calls\nsleep ${{PAUSE:-0}}\n{COMPILER}')
    monkeypatch.setenv("RUNTIME_OBJECTS", str(tmp_path / "kept"))

    def calls(source, *lists, at_once=1):
        for options in lists:
            made = [tmp_path / f"made{number}.o" for number in range(at_once)]
            command = [verilator.OBJECT_CACHE, compiler, "c++", *options, "-c", source, "-o"]
            compiling = [subprocess.Popen([*command, one.name], cwd=tmp_path) for one in made]
            for process, one in zip(compiling, made, strict=True):
                assert process.wait() == 0 and one.read_text() == "object\n"
                one.unlink()
        return (tmp_path / "calls").read_text().splitlines()

    return calls


@pytest.mark.parametrize(("other", "count"), [(("-Os",), 1), (("-Os", "-DCLOCK=clk"), 1), (("-DVM_TRACE=1",), 2)])
def test_object_of_the_run_time_library_is_copied_if_the_options_are_the_same(other, count, calls):
    called = calls("/v/include/verilated_vcd_c.cpp", ("-Os",), other)
    assert len([call for call in called if " -o made" in call]) == count


@pytest.mark.parametrize(
    ("other", "count"),
    [(("-O2", "-DA=0"), 1), (("-DA=0", "-O2"), 1), (("-O2", "-DCLOCK=clk", "-DA=0"), 1), (("-O0", "-DA=0"), 2)],
)
def test_headers_are_compiled_once_for_the_same_options_and_each_file_gets_them(other, count, calls):
    called = calls("Vtop.cpp", ("-O2", "-DA=0"), other)
    assert len([call for call in called if "c++-header" in call]) == count
    given = [call.split(" -include-pch ")[1] for call in called if " -o made" in call]
    assert len(given) == 2 and len(set(given)) == count


def test_headers_are_compiled_once_for_files_at_the_same_time(calls, monkeypatch):
    monkeypatch.setenv("PAUSE", "0.3")
    called = calls("Vtop.cpp", ("-O2",), at_once=3)
    assert len(called) == 4 and len([call for call in called if "c++-header" in call]) == 1


def test_headers_of_another_folder_are_compiled_anew(calls, tmp_path, monkeypatch):
    """The compiler refuses a precompiled header without its source."""
    calls("Vtop.cpp", ("-O2",))
    moved = shutil.copytree(verilator.OBJECT_CACHE.parent, tmp_path / "moved")
    monkeypatch.setattr(verilator, "OBJECT_CACHE", moved / verilator.OBJECT_CACHE.name)
    assert len([call for call in calls("Vtop.cpp", ("-O2",)) if "c++-header" in call]) == 2


def test_a_file_with_a_header_of_its_own_gets_no_other(calls):
    [call] = calls("Vtop.cpp", ("-O2", "-include-pch", "Vtop__pch.h.fast.gch"))
    assert call.count("-include-pch") == 1


def test_simultaneous_builds_end_in_one(root):
    text = f"{COUNTER}\n// asked for twice\n"
    program = (
        "import sys; from pathlib import Path; from neuroncore_rtl.run.sim.simulation import Design, build\n"
        "built = build(Design('counter', sys.stdin.read()), sys.argv[1], root=Path(sys.argv[2]))\n"
        "print(built.fresh, built.directory)"
    )
    command = [sys.executable, "-c", program, "verilator", str(root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen(command, **pipes) as one, subprocess.Popen(command, **pipes) as other:
        for builder in (one, other):
            builder.stdin.write(text)
            builder.stdin.close()
        printed = sorted(builder.stdout.read().split() for builder in (one, other))
    assert one.returncode == other.returncode == 0
    assert [fresh for fresh, _ in printed] == ["False", "True"]
    assert printed[0][1] == printed[1][1]
    check(counter(root=root, text=text), root)


@pytest.mark.parametrize("damaged", [None, "overwritten"])
def test_a_missing_or_damaged_program_is_built_again(damaged, root):
    text = f"{COUNTER}\n// {damaged}\n"
    program = counter(root=root, text=text).directory / simulation.PROGRAMS["verilator"]
    if damaged is None:
        program.unlink()
    else:
        program.write_bytes(program.read_bytes()[: -len(damaged)] + damaged.encode())
    built = counter(root=root, text=text)
    assert built.fresh
    check(built, root)


def test_a_copied_program_is_not_built_again(root, tmp_path):
    shutil.copytree(counter(root=root).directory, tmp_path / "copy", copy_function=shutil.copy)
    copy = tmp_path / "copy" / simulation.PROGRAMS["verilator"]
    assert copy.stat().st_mtime_ns != json.loads(copy.with_name(f"{copy.name}.seal").read_text())["time"]
    assert seal.intact(copy) and seal.intact(copy)


def test_a_folder_that_make_cannot_read_is_built_in(tmp_path, root):
    place = tmp_path / "größer, a$b#c(d)"
    (place / "verilator").mkdir(parents=True)
    library = f"runtime-{simulation._toolchain()}"
    (place / "verilator" / library).symlink_to(root / "verilator" / library)
    built = counter(root=place)
    assert built.directory.is_relative_to(place)
    check(built, place)


def test_only_folders_that_make_cannot_read_are_named_by_links(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(paths.tempfile, "tempdir", None)
    there = tmp_path / "two words"
    there.mkdir()
    (there / "file").write_text("found")
    assert paths.plain_path(f"-I{tmp_path}/file", tmp_path) == f"-I{tmp_path}/file"
    option, _, path = paths.plain_path(f"-Wl,-rpath,{there}/file", there).rpartition(",")
    assert option == "-Wl,-rpath" and " " not in path and Path(path).read_text() == "found"
    # Another process's link with the same name, to another target, is replaced.
    Path(path).parent.unlink()
    Path(path).parent.symlink_to(tmp_path)
    assert paths.plain_path(str(there / "file"), there) == path and Path(path).read_text() == "found"
    (tmp_path / f"neuroncore-rtl-{os.getuid()}").rename(tmp_path / "aside")
    (tmp_path / f"neuroncore-rtl-{os.getuid()}").write_text("")
    message = "make cannot read the name of '.*two words', and a link to it cannot be made"
    with pytest.raises(paths.UnreadableFolder, match=message):
        paths.plain_path(str(there), there)


def test_unknown_simulator_is_refused(root):
    with pytest.raises(ValueError, match="SIM must be one of verilator, icarus, not 'questa'"):
        counter("questa", root=root)


@pytest.mark.parametrize("simulator, packages", [("verilator", "make"), ("icarus", "iverilog")])
def test_missing_tools_are_named(simulator, packages, root, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(doctor.MissingTool, match=f" is missing .*install (it|them): apt install {packages}$"):
        counter(simulator, root=root)


@pytest.mark.parametrize(("number", "status"), [("SIGTERM", 7), ("SIGKILL", -9)])
def test_no_process_outlives_an_interrupted_command(number, status, tmp_path):
    program = tmp_path / "interrupted.py"
    program.write_text(
        "import os, signal, threading\n"
        "from neuroncore_rtl.run.sim.icarus import IcarusRunner\n"
        "runner = object.__new__(IcarusRunner)\n"
        "runner.env, runner.log_file = dict(os.environ), 'log'\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: exit(7))\n"
        f"threading.Timer(0.5, os.kill, (os.getpid(), signal.{number})).start()\n"
        "runner._execute_cmds([['sh', '-c', 'sleep 1000 & echo $! > child; wait']], cwd='.')\n"
    )
    assert subprocess.run([sys.executable, program], cwd=tmp_path).returncode == status
    state = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    end = time.monotonic() + 10
    while state.exists() and state.read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)
