"""The ULX3S: the pads around :class:`hdl.board.board.Board`, and its clocks."""

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, ResetSignal, Signal
from amaranth.lib.cdc import ResetSynchronizer
from amaranth_boards.ulx3s import ULX3S_85F_Platform

from neuroncore_rtl.hdl.board.board import LEDS

__all__ = ["OSCILLATOR_HZ", "PHASE_DEGREES", "Ulx3sPads", "Ulx3sPlatform"]

OSCILLATOR_HZ = 25_000_000
"""Of the board's oscillator."""

PHASE_DEGREES = 90
"""By which the chip's clock is late. It takes what is driven a quarter of a cycle after the edge that drives it; its
word, which is there 6 ns and both ways through the pads after an edge, is sampled three quarters behind that edge."""


class Ulx3sPlatform(ULX3S_85F_Platform):
    """The board with an LFE5U-85F."""

    luts, registers, multipliers, rams = 83_640, 83_640, 156, 208
    """What the FPGA has."""


class Ulx3sPads(Elaboratable):
    """The top of the bitstream.

    Arguments:
        clock_hz: of the board's logic and of its SDRAM.

    The platform needs the Verilog of the module `board`, and of a module `pll` (clkin, clkout0, clkout1, locked), whose
    second clock is `PHASE_DEGREES` behind the first.
    """

    def __init__(self, clock_hz: int):
        self.clock_hz = clock_hz

    def elaborate(self, platform):
        m = Module()
        clock, late_clock, locked = Signal(), Signal(), Signal()
        m.domains.sync = ClockDomain()
        m.submodules.pll = Instance(
            "pll",
            i_clkin=platform.request("clk25").i,
            o_clkout0=clock,
            o_clkout1=late_clock,
            o_locked=locked,
        )
        m.submodules.reset = ResetSynchronizer(~locked)
        m.d.comb += ClockSignal().eq(clock)
        platform.add_clock_constraint(clock, self.clock_hz)

        uart, sdram = platform.request("uart"), platform.request("sdram")
        leds = [platform.request("led", number).o for number in range(LEDS)]
        command, lights = Signal(3), Signal(len(leds))
        m.submodules.board = Instance(
            "board",
            i_clk=ClockSignal(),
            i_rst=ResetSignal(),
            i_rx=uart.rx.i,
            o_tx=uart.tx.o,
            o_leds=lights,
            o_pins__enable=sdram.clk_en.o,
            o_pins__command=command,
            o_pins__bank=sdram.ba.o,
            o_pins__address=sdram.a.o,
            o_pins__mask=sdram.dqm.o,
            o_pins__o=sdram.dq.o,
            o_pins__drive=sdram.dq.oe,
            i_pins__i=sdram.dq.i,
        )
        m.d.comb += [
            sdram.clk.o.eq(late_clock),
            sdram.cs.o.eq(1),
            sdram.ras.o.eq(command[2]),
            sdram.cas.o.eq(command[1]),
            sdram.we.o.eq(command[0]),
            *(led.eq(lights[number]) for number, led in enumerate(leds)),
        ]
        return m
