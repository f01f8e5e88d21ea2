"""AXI protocol checker: no messages for legal traffic, a named rule for each violation."""

import subprocess
from collections.abc import Sequence
from functools import partial

import pytest

from neuroncore_rtl.run.sim.doctor import require
from neuroncore_rtl.tb.tests.core.axi import CHECKER_VERILOG

FIELDS = {
    "awvalid": 1, "awready": 1, "awid": 2, "awaddr": 40, "awlen": 8,
    "wvalid": 1, "wready": 1, "wdata": 64, "wstrb": 8, "wlast": 1,
    "bvalid": 1, "bready": 1, "bid": 2, "bresp": 2,
    "arvalid": 1, "arready": 1, "arid": 2, "araddr": 40, "arlen": 8,
    "rvalid": 1, "rready": 1, "rid": 2, "rdata": 64, "rresp": 2, "rlast": 1,
}  # fmt: skip
"""Signals of a port with beats of 8 bytes and their widths, from the highest bits down."""

PLAYER = f"""
module player;
    reg clk = 0;
    reg [{sum(FIELDS.values()) - 1}:0] cycles [0:255];
    reg [{sum(FIELDS.values()) - 1}:0] now = 0;
    reg [8*1024-1:0] path;
    integer count, i;
    wire idle;
    {" ".join(f"wire [{width - 1}:0] {name};" for name, width in FIELDS.items())}
    assign {{{", ".join(FIELDS)}}} = now;
    reg rst = 1;
    axi_checker #(.BYTES(8), .ID_BITS(2), .MAX_BEATS(64)) checker_ (
        .clk(clk), .rst(rst), .idle(idle), {", ".join(f".{name}({name})" for name in FIELDS)}
    );
    initial begin
        if ($value$plusargs("count=%d", count) && $value$plusargs("cycles=%s", path))
            $readmemb(path, cycles, 0, count - 1);
        #1 clk = 1;
        #1 clk = 0;
        rst = 0;
        for (i = 0; i < count; i = i + 1) begin
            now = cycles[i];
            #1 clk = 1;
            #1 clk = 0;
        end
        $display("end: idle %b", idle);
    end
endmodule
"""


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    require("iverilog")
    directory = tmp_path_factory.mktemp("checker")
    (directory / "player.v").write_text(PLAYER)
    sources = [str(directory / "player.v"), str(CHECKER_VERILOG)]
    subprocess.run(["iverilog", "-g2012", "-s", "player", "-o", str(directory / "player.vvp"), *sources], check=True)

    def play(cycles: Sequence[dict[str, int | str]]) -> str:
        lines = ("".join(_bits(cycle.get(name, 0), width) for name, width in FIELDS.items()) for cycle in (*cycles, {}))
        (directory / "cycles").write_text("\n".join(lines))
        arguments = [f"+cycles={directory / 'cycles'}", f"+count={len(cycles) + 1}"]
        command = ["vvp", "-n", str(directory / "player.vvp"), *arguments]
        return subprocess.run(command, capture_output=True, text=True).stdout

    return play


def _bits(value: int | str, width: int) -> str:
    return value * width if isinstance(value, str) else f"{value:0{width}b}"


def handshake(channel: str, **more) -> dict[str, int | str]:
    return {f"{channel}valid": 1, f"{channel}ready": 1, **more}


def w(last=0, **more):
    return handshake("w", wstrb=0xFF, wlast=last) | more


def r(last=0, **more):
    return handshake("r", rlast=last, **more)


aw, ar, b = (partial(handshake, channel) for channel in ("aw", "ar", "b"))

LEGAL = {
    "write": [aw(awlen=1, awaddr=8), w(), w(1), b()],
    "address with its only beat": [aw() | w(1), b()],
    "beats before the address": [w(), w(1), w(1), aw(awlen=1), aw(), b(), b()],
    "writes of two IDs, answered in any order": [aw(awid=1), aw(awid=2), w(1), w(1), b(bid=2), b(bid=1)],
    "a response in the cycle of another's last beat": [aw() | w(1), aw() | w(1) | b(), b()],
    "read": [ar(arlen=2), r(), r(), r(1)],
    "reads of two IDs, beat by beat": [ar(arid=1, arlen=1), ar(arid=3), r(rid=1), r(1, rid=3), r(1, rid=1)],
    "to the end of a page": [ar(arlen=63, araddr=4096 - 512), *[r()] * 63, r(1)],
    "waiting": [
        ar(arready=0, araddr=8), ar(arready=0, araddr=8), ar(araddr=8), r(1, rready=0, rdata=5), r(1, rdata=5),
        aw(awready=0), aw(awready=0) | w(1, wready=0, wdata=7), aw() | w(1, wready=0, wdata=7),
        w(1, wdata=7), b(bready=0), b(),
    ],
    "unknown bytes that are not written": [aw() | w(1, wstrb=0, wdata="x"), b()],
}  # fmt: skip

VIOLATIONS = {
    "address of a write vanishes": ([aw(awready=0), {}], "AW changes before it is taken"),
    "address of a write changes": ([aw(awready=0), aw(awaddr=8)], "AW changes before it is taken"),
    "length of a read changes": ([ar(arready=0), ar(arlen=1)], "AR changes before it is taken"),
    "ID of a read changes": ([ar(arready=0), ar(arid=1)], "AR changes before it is taken"),
    "written data change": ([w(wready=0), w(wdata=1)], "W changes before it is taken"),
    "strobes change": ([w(wready=0), w(wstrb=1)], "W changes before it is taken"),
    "beat that is read vanishes": ([ar(), r(1, rready=0), {}], "R changes before it is taken"),
    "beat that is read changes": ([ar(), r(1, rready=0), r(1, rdata=1)], "R changes before it is taken"),
    "response changes": ([aw() | w(1), b(bready=0), b(bresp=2)], "B changes before it is taken"),
    "unknown handshake": ([{"awvalid": "x"}], "a handshake is unknown"),
    "unknown address": ([ar(araddr="x")], "AR is unknown"),
    "unknown byte": ([w(wdata="x")], "a byte that is written is unknown"),
    "misaligned": ([ar(araddr=4)], "the address is not a multiple of the beat"),
    "too long": ([aw(awlen=64)], "the burst is too long"),
    "over the end of a page": ([ar(arlen=1, araddr=4096 - 8)], "the burst crosses 4 KiB"),
    "last beat too early": ([aw(awlen=1), w(1)], "WLAST is wrong"),
    "last beat too late": ([aw(), w()], "WLAST is wrong"),
    "beats before the address, one too few": ([w(1), aw(awlen=1)], "WLAST is wrong"),
    "last read beat too early": ([ar(arlen=1), r(1)], "RLAST is wrong"),
    "last read beat too late": ([ar(), r()], "RLAST is wrong"),
    "last read beat of another ID": ([ar(arid=1), ar(arid=2, arlen=1), r(1, rid=2)], "RLAST is wrong"),
    "read data that nobody asked for": ([ar(arid=1), r(1)], "R answers nothing"),
    "read data in the cycle of the address": ([ar() | r(1)], "R answers nothing"),
    "response without a write": ([b()], "B answers nothing"),
    "response before the last beat": ([aw(awlen=1), w(), b()], "B answers nothing"),
    "response before the address": ([w(1), b()], "B answers nothing"),
    "response to another ID": ([aw(awid=1) | w(1), b(bid=2)], "B answers nothing"),
    "two responses": ([aw() | w(1), b(), b()], "B answers nothing"),
}


@pytest.mark.parametrize("cycles", LEGAL.values(), ids=LEGAL)
def test_legal(player, cycles):
    assert player(cycles).splitlines() == ["end: idle 1"]


@pytest.mark.parametrize(("cycles", "rule"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_violation_is_named(player, cycles, rule):
    assert f": {rule}\n" in player(cycles)


@pytest.mark.parametrize("cycles", [[aw()], [w()], [w(1)], [ar(arlen=1), r()], [aw() | w(1)]])
def test_not_idle(player, cycles):
    assert player(cycles).splitlines() == ["end: idle 0"]
