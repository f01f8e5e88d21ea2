# amaranth: UnusedElaboratable=no

"""Files for board designers, and a testbench that checks an image without Python."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.hdl.host.axi_core import AxiCore, memory_ports
from neuroncore_rtl.run.sim.doctor import require
from neuroncore_rtl.run.sim.verilator import find_verilator
from neuroncore_rtl.spec import host_map
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.cli.board_files import BOARD_TOP, TESTBENCH
from neuroncore_rtl.tb.cli.commands import app
from neuroncore_rtl.tb.cli.export import write

CONFIG = PRESETS["tiny"]

ADDRESS = "id addr len size burst lock cache prot qos region valid ready"
AXI4 = {"aw": ADDRESS, "w": "data strb last valid ready", "b": "id resp valid ready"}
AXI4 |= {"ar": ADDRESS, "r": "id data resp last valid ready"}
LITE = {"aw": "addr prot valid ready", "w": "data strb valid ready", "b": "resp valid ready"}
LITE |= {"ar": "addr prot valid ready", "r": "data resp valid ready"}
"""AXI signals by channel, except the optional USER signals."""

IMAGE = ("PRESET=tiny", "M=4", "K=4", "N=4")


@pytest.fixture(scope="module")
def board(tmp_path_factory) -> Path:
    return write(CONFIG, tmp_path_factory.mktemp("board"), [BOARD_TOP])


@pytest.fixture(scope="module")
def description(board) -> dict:
    return json.loads((board / f"{BOARD_TOP}.json").read_text())


@pytest.fixture(scope="module")
def image() -> Path:
    result = CliRunner().invoke(app, ["image", "matmul", *IMAGE])
    assert result.exit_code == 0, result.output
    return SIM_BUILD / "images" / "matmul-m4-k4-n4-presettiny"


def run(*command: str, cwd: Path, **environment: str) -> tuple[int, str]:
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    finished = subprocess.run(command, cwd=cwd, env=os.environ | environment, **pipes)
    return finished.returncode, finished.stdout


def icarus(board: Path, out: Path, *sources: str) -> None:
    require("iverilog")
    sources = sources or ("-c", f"{TESTBENCH}.f")
    command = ("iverilog", "-g2012", "-Wall", "-DROOM=16384", "-s", TESTBENCH, "-o", str(out), *sources)
    assert run(*command, cwd=board) == (0, "")


@pytest.fixture(scope="module")
def simulation(board) -> Path:
    icarus(board, board / "board.vvp")
    return board / "board.vvp"


def test_ports_are_those_that_tools_look_for(board, description):
    ports = {port["name"]: (port["direction"], port["width"]) for port in description["ports"]}
    expected = {"aclk", "aresetn", "irq"}
    for prefix, channels in (("m_axi", AXI4), ("s_axi", LITE)):
        for channel, signals in channels.items():
            expected |= {f"{prefix}_{channel}{name}" for name in signals.split()}
    assert set(ports) == expected
    header = re.search(rf"^module {BOARD_TOP}\((.*?)\);", (board / f"{BOARD_TOP}.v").read_text(), re.M | re.S)[1]
    assert set(re.findall(r"\w+", header)) == expected
    assert ports["m_axi_wdata"] == ("output", 8 * CONFIG.hbm_bytes) and ports["m_axi_rready"] == ("output", 1)
    assert ports["s_axi_awaddr"] == ("input", host_map.HOST_ADDRESS_BITS) and ports["s_axi_rdata"] == ("output", 32)
    assert ports["m_axi_awready"] == ports["aresetn"] == ("input", 1)


def test_what_never_varies_is_what_the_specification_asks_for(board):
    """IHI 0022: AxSIZE: log2 of a beat's bytes; AxBURST 1: INCR; AxCACHE 2: normal, answered at the destination."""
    text = (board / f"{BOARD_TOP}.v").read_text()
    values = {"size": "3'h4", "burst": "2'h1", "lock": "1'h0", "cache": "4'h2"}
    values |= {"prot": "3'h0", "qos": "4'h0", "region": "4'h0"}
    assert dict(re.findall(r"^  assign m_axi_a[rw](\w+) = (\d'h\d);$", text, re.MULTILINE)) == values
    assert len(re.findall(r"^  assign m_axi_a[rw]\w+ = \d'h\d;$", text, re.MULTILINE)) == 2 * len(values)


def test_several_ports_and_debug_ports():
    names = set(AxiCore(PRESETS["full"], debug=True).signature.members)
    assert memory_ports(PRESETS["full"]) == [f"m_axi_{port}" for port in range(4)]
    assert {"m_axi_3_awaddr", "debug_counters", "debug_retired_addresses", "debug_console__valid"} <= names
    assert "debug_start" not in names and not any(name.startswith("m_axi_aw") for name in names)
    with pytest.raises(ValueError, match="cores must be 1 for a core with host registers, not 4"):
        AxiCore(CONFIG.with_overrides(cores=4))


def test_descriptions_agree(board, description):
    assert description["clock"]["reset_active"] == "low"
    registers = {one["name"]: one for one in description["registers"]}
    assert registers["CONTROL"]["offset"] == host_map.HOST_CONTROL.offset
    assert [one["name"] for one in registers["STATUS"]["fields"]] == ["STARTED", "DONE", "ERROR", "QUIET", "RESET"]
    counters = {one["name"]: one["offset"] for one in description["counters"]}
    assert counters["queues[0].records"] == host_map.COUNTER_WORDS and len(counters) > 30
    banks = [one for one in description["memories"] if one["module"] == "bank_384x64"]
    assert [(one["words"], one["bits"], one["instances"]) for one in banks] == [(384, 512, 8 * CONFIG.partitions)]
    assert (board / f"{BOARD_TOP}.xdc").read_text() == "create_clock -name aclk -period 10.000 [get_ports aclk]\n"
    assert (board / f"{BOARD_TOP}.lpf").read_text() == 'FREQUENCY PORT "aclk" 100 MHZ;\n'
    core = (board / f"{BOARD_TOP}.core").read_text()
    assert core.startswith("CAPI=2:\n")
    named = set(re.findall(rf"{BOARD_TOP}(?:_tb)?\.\w+", core))
    assert named and all((board / name).is_file() for name in named)


def test_header_has_every_number_once(board, description):
    lines = [line for line in (board / f"{BOARD_TOP}.h").read_text().splitlines() if line.startswith("#define")]
    assert lines[0] == "#define NEURONCORE_H"
    found = [re.fullmatch(r"#define NEURONCORE_([A-Z]\w*) (0x[0-9a-f]+)u", line).groups() for line in lines[1:]]
    numbers = {name: int(value, 16) for name, value in found}
    assert len(numbers) == len(found)
    expected = {one["name"]: one["offset"] for one in description["registers"]}
    expected |= {
        "CONTROL_RESET": host_map.HOST_CONTROL.bit("RESET"),
        "PARAMETER_ROWS": host_map.PARAMETER_WORDS,
        "ROWS": CONFIG.rows,
        "COUNTER_QUEUES0_IDLE": host_map.COUNTER_WORDS + 8,
        "CAUSE_BOOT": 39,
    }
    for one in description["counters"]:
        expected["COUNTER_" + re.sub(r"\W+", "_", one["name"].replace("[", "")).upper()] = one["offset"]
    assert expected.items() <= numbers.items()


def test_image(image):
    record = json.loads((image / "image.json").read_text())
    before, expected = ((image / f"{name}.bin").read_bytes() for name in ("image", "expected"))
    assert len(before) == len(expected) == record["bytes"] and before != expected
    for name, content in (("image", before), ("expected", expected)):
        beats = (image / f"{name}.hex").read_text().split()
        assert b"".join(bytes.fromhex(beat)[::-1] for beat in beats)[: len(content)] == content
    boot = record["boot_address"]
    assert before[boot : boot + 4] == b"RNC2" and record["exit_code"] == 0
    assert [int(word, 16) for word in (image / "run.hex").read_text().split()] == [boot, len(before), 0, 16]
    (result,) = [one for one in record["tensors"] if one["shape"] == [4, 4] and one["format"] == "fp32"]
    where = slice(result["address"], result["address"] + 64)
    assert not any(before[where]) and any(expected[where])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mac"], "TEST must be one that has an image, .*matmul"),
        (["matmul", "TARGET=engine"], "TARGET must be core for an image, not engine"),
    ],
)
def test_image_is_refused(words, message):
    result = CliRunner().invoke(app, ["image", *words])
    assert result.exit_code == 2 and re.search(message, result.output)


@pytest.mark.slow
def test_testbench_passes_and_so_after_a_reset_in_the_midst(simulation, image, tmp_path):
    arguments = (f"+image={image}", "+reset=350", "+hbm_stall=60", "+hbm_latency=30")
    status, output = run("vvp", "-n", str(simulation), *arguments, cwd=tmp_path)
    assert status == 0 and re.search(r"^PASSED: \d{4} bytes compared, \d+ cycles, exit code 0$", output, re.M), output


@pytest.mark.slow
def test_testbench_fails_at_a_byte_that_differs(simulation, image, tmp_path):
    shutil.copytree(image, tmp_path / "image")
    beats = (image / "expected.hex").read_text().split()
    beats[40] = f"{int(beats[40], 16) ^ 1 << 16:0{len(beats[40])}x}"
    (tmp_path / "image" / "expected.hex").write_text("\n".join(beats))
    status, output = run("vvp", "-n", str(simulation), f"+image={tmp_path / 'image'}", cwd=tmp_path)
    assert status != 0 and "PASSED" not in output
    assert "memory 00000282: is" in output and "FAILED: memory is not as expected" in output


def test_icarus_has_nothing_to_say(simulation):
    assert simulation.is_file()


@pytest.fixture(scope="module")
def silent(board, description, tmp_path_factory) -> Path:
    """Return the testbench of a core without logic; with +answers it accepts all, and never ends."""
    folder = tmp_path_factory.mktemp("silent")
    ports = [f"{port['direction']} wire [{port['width'] - 1}:0] {port['name']}" for port in description["ports"]]
    values = {"s_axi_rdata": f"s_axi_araddr ? {host_map.HOST_VERSION} : {host_map.HOST_MAGIC}"}
    values |= {f"s_axi_{name}": "answers" for name in ("awready", "wready", "bvalid", "arready", "rvalid")}
    outputs = [port["name"] for port in description["ports"] if port["direction"] == "output"]
    body = ['reg answers; initial answers = $test$plusargs("answers") != 0;']
    body += [f"assign {name} = {values.get(name, 0)};" for name in outputs]
    (folder / "silent.v").write_text("\n".join((f"module {BOARD_TOP}({', '.join(ports)});", *body, "endmodule\n")))
    icarus(board, folder / "board.vvp", f"{TESTBENCH}.v", str(folder / "silent.v"))
    return folder / "board.vvp"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["+image={image}"], "FAILED: no answer at s_axi"),
        (["+image={image}", "+answers", "+limit=100"], "the program has not ended within +limit"),
        (["+image=/nowhere"], "there is nothing to compare: is +image right?"),
        (["+image={image}", "+limit=x"], "+limit or +reset is not a number"),
        (["+image={image}", "+hbm_latency=x"], "hbm: a plusarg is not a number"),
    ],
)
def test_testbench_fails_where_there_is_no_result(silent, image, arguments, reason, tmp_path):
    command = ("vvp", "-n", str(silent), *(word.format(image=image) for word in arguments))
    status, output = run(*command, cwd=tmp_path)
    assert status != 0 and reason in output and "PASSED" not in output


@pytest.mark.slow
def test_verilator_has_nothing_to_say_and_passes(board, image, tmp_path):
    verilator = find_verilator()
    environment = dict(verilator.environment)
    assert run(verilator.program, "--lint-only", "--quiet", "-f", f"{BOARD_TOP}.f", cwd=board, **environment) == (0, "")
    if shutil.which("g++") is None:
        pytest.skip("g++ is missing, which compiles Verilator's waiting for times")
    made = "CXX=g++ LINK=g++ OPT_FAST=-O1 CFG_LDLIBS_THREADS=-pthread"
    made += " CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_COROUTINES=-fcoroutines"
    options = ("--binary", "--timing", "--top-module", TESTBENCH, "-DGATE_CLOCKS", "-MAKEFLAGS", made)
    built = run(verilator.program, *options, "--Mdir", str(tmp_path), "-f", f"{TESTBENCH}.f", cwd=board, **environment)
    assert built[0] == 0 and "%Warning" not in built[1], built[1]
    status, output = run(str(tmp_path / f"V{TESTBENCH}"), f"+image={image}", "+reset=350", cwd=tmp_path)
    assert status == 0 and "PASSED: " in output, output
