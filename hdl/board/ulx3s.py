"""ULX3S board: pads and clocks around `hdl.board.board.Board`."""

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, ResetSignal, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer
from amaranth_boards.ulx3s import ULX3S_85F_Platform

from neuroncore_rtl.hdl.board.board import LEDS

__all__ = ["OSCILLATOR_HZ", "PHASE_DEGREES", "Ulx3sPads", "Ulx3sPlatform"]

OSCILLATOR_HZ = 25_000_000
"""Frequency of the board's oscillator."""

PHASE_DEGREES = 90
"""Phase lag of the SDRAM chip's clock. The chip samples outputs a quarter of a cycle after the edge that drives them.
Its data are valid 6 ns plus both pad delays after its clock edge; they are sampled three quarters of a cycle after that
edge.
"""


class Ulx3sPlatform(ULX3S_85F_Platform):
    """The board ULX3S with the FPGA LFE5U-85F."""

    luts, registers, multipliers, rams = 83_640, 83_640, 156, 208
    """Resources of the FPGA."""


class Ulx3sPads(Elaboratable):
    """Top module of the bitstream.

    The platform needs the Verilog of the module `board`, and of a module `pll` with the ports clkin, clkout0, clkout1
    and locked. The phase of clkout1 must lag clkout0 by `PHASE_DEGREES`.

    Arguments:
        clock_hz: frequency of the board's logic and of its SDRAM.
    """

    def __init__(self, clock_hz: int):
        self.clock_hz = clock_hz

    def elaborate(self, platform):
        m = Module()
        clock, late_clock, locked = Signal(), Signal(), Signal()

        def pad(direction: str, port, name: str) -> io.Buffer:
            m.submodules[f"pad_{name}"] = buffer = io.Buffer(direction, port)
            return buffer

        m.domains.sync = ClockDomain()
        m.submodules.pll = Instance(
            "pll",
            i_clkin=pad("i", platform.request("clk25", dir="-"), "clk25").i,
            o_clkout0=clock,
            o_clkout1=late_clock,
            o_locked=locked,
        )
        m.submodules.reset = ResetSynchronizer(~locked)
        m.d.comb += ClockSignal().eq(clock)
        platform.add_clock_constraint(clock, self.clock_hz)

        uart, sdram = (platform.request(name, dir="-") for name in ("uart", "sdram"))
        leds = [pad("o", platform.request("led", number, dir="-"), f"led{number}").o for number in range(LEDS)]
        dq = pad("io", sdram.dq, "dq")
        command, lights = Signal(3), Signal(len(leds))
        m.submodules.board = Instance(
            "board",
            i_clk=ClockSignal(),
            i_rst=ResetSignal(),
            i_rx=pad("i", uart.rx, "rx").i,
            o_tx=pad("o", uart.tx, "tx").o,
            o_leds=lights,
            o_pins__enable=pad("o", sdram.clk_en, "clk_en").o,
            o_pins__command=command,
            o_pins__bank=pad("o", sdram.ba, "ba").o,
            o_pins__address=pad("o", sdram.a, "a").o,
            o_pins__mask=pad("o", sdram.dqm, "dqm").o,
            o_pins__o=dq.o,
            o_pins__drive=dq.oe,
            i_pins__i=dq.i,
        )
        m.d.comb += [
            pad("o", sdram.clk, "clk").o.eq(late_clock),
            pad("o", sdram.cs, "cs").o.eq(1),
            pad("o", sdram.ras, "ras").o.eq(command[2]),
            pad("o", sdram.cas, "cas").o.eq(command[1]),
            pad("o", sdram.we, "we").o.eq(command[0]),
            *(led.eq(lights[number]) for number, led in enumerate(leds)),
        ]
        return m
