"""SDRAM controller: single words, one per cycle within an open row."""

from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.board.sdram_chip import SdramChip, SdramCommand, SdramPins

__all__ = ["SdramController", "sdram_words"]

ALL_BANKS = 1 << 10
"""Address bit of a PRECHARGE that selects all banks."""

REFRESHES_FIRST = 8
"""Refreshes before the mode register is set, as required by the data sheets."""


def sdram_words(chip: SdramChip) -> data.StructLayout:
    """Return the layout of a word access; `mask` has one bit per written byte."""
    return data.StructLayout({"number": chip.word_bits, "write": 1, "data": chip.width, "mask": chip.width // 8})


class SdramController(wiring.Component):
    """SDRAM controller: reads and writes words in order and keeps one row of each bank open.

    A row stays open until another row of its bank is needed or a refresh is due.

    Timing:
    - A word is written one cycle after the write was accepted. Read data are valid `READ_LATENCY` cycles after the read
      was accepted.
    - Within open rows one access is accepted per cycle; a write follows a read after at least `TURN` cycles.
    - Another row costs tRP + tRCD, and more if it follows too soon after the previous one. One timer for all banks
      keeps tRAS, tRC and tRRD; at the clock frequencies of an FPGA this costs no cycles.

    Arguments:
        chip: the chip.
        clock_hz: clock frequency of the controller and the chip.
        start_ns: time from reset to the first command, shorter in simulations; None: the chip's `start_ns`.

    Ports:
        words: accesses, each with the index of the word, whether it is a write, the data, and a mask of the bytes to
            write.
        read: the words that were read, in order, without backpressure.
        ready: the chip is initialised.
        pins: pins of the chip. The chip's clock has the same frequency and a later phase, so that the chip samples
            these outputs in the middle of the cycle. Its data are sampled `cas_latency` edges after the edge that drove
            READ.
    """

    TURN = 4

    def __init__(self, chip: SdramChip, clock_hz: int, start_ns: int | None = None):
        self.chip = chip
        self.clock_hz = clock_hz
        self.start_ns = chip.start_ns if start_ns is None else start_ns
        self.READ_LATENCY = chip.cas_latency + 1
        super().__init__(
            {
                "words": In(stream.Signature(sdram_words(chip))),
                "read": Out(stream.Signature(chip.width, always_ready=True)),
                "ready": Out(1),
                "pins": Out(SdramPins(chip)),
            }
        )

    def cycles(self, duration_ns: int) -> int:
        """Return the number of clock cycles in `duration_ns`."""
        return self.chip.cycles(duration_ns, self.clock_hz)

    def elaborate(self, platform):
        m = Module()
        chip, pins, word = self.chip, self.pins, self.words.payload
        banks = 1 << chip.bank_bits
        column, bank, row = (
            word.number[: chip.column_bits],
            word.number[chip.column_bits :][: chip.bank_bits],
            word.number[chip.column_bits + chip.bank_bits :],
        )
        is_open = Array(Signal(name=f"open{number}") for number in range(banks))
        rows = Array(Signal(chip.row_bits, name=f"row{number}", reset_less=True) for number in range(banks))
        wait = Countdown(
            m, "wait", max(map(self.cycles, (self.start_ns, chip.trfc_ns, chip.trp_ns)))
        )  # cycles until the next command
        active = Countdown(m, "active", self.cycles(chip.tras_ns))  # cycles until PRECHARGE is allowed
        cycle = Countdown(m, "cycle", self.cycles(chip.trc_ns))  # cycles until the next ACTIVATE is allowed
        written = Countdown(m, "written", self.cycles(chip.twr_ns))  # cycles from a write until PRECHARGE is allowed
        turn = Countdown(m, "turn", self.TURN)  # cycles from a read until a write is allowed
        refresh = Signal(range(chip.refresh_cycles(self.clock_hz)))
        due, refreshed = Signal(), Signal()
        with m.If(refreshed):
            m.d.sync += [refresh.eq(0), due.eq(0)]
        with m.Elif(self.ready):
            m.d.sync += refresh.eq(refresh + 1)
            # Due early, by the longest time that the open row can delay the refresh.
            with m.If(refresh == chip.refresh_cycles(self.clock_hz) - self._longest()):
                m.d.sync += due.eq(1)

        arriving = Signal(self.READ_LATENCY)  # one bit per read in flight, at the end with its word
        m.d.sync += [
            pins.enable.eq(1),
            pins.command.eq(SdramCommand.NOP),
            pins.drive.eq(0),
            pins.mask.eq(0),
            self.read.payload.eq(pins.i),
            arriving.eq(Cat(self.words.valid & self.words.ready & ~word.write, arriving)),
        ]
        m.d.comb += self.read.valid.eq(arriving[-1])

        def issue(command: int, address, on_bank=0) -> None:
            m.d.sync += [pins.command.eq(command), pins.address.eq(address), pins.bank.eq(on_bank)]

        def close(next_state: str | None = None) -> None:
            issue(SdramCommand.PRECHARGE, ALL_BANKS)
            m.d.sync += [bank_open.eq(0) for bank_open in is_open]
            wait.load(self.cycles(chip.trp_ns))
            if next_state:
                m.next = next_state

        may_close = active.over & written.over
        hit = is_open[bank] & (rows[bank] == row)
        started = Signal(range(REFRESHES_FIRST + 1))
        with m.If(wait.over):
            with m.FSM(init="START"):
                with m.State("START"):
                    wait.load(self.cycles(self.start_ns))
                    m.next = "CLOSE"
                with m.State("CLOSE"):
                    close("REFRESH")
                with m.State("REFRESH"):
                    issue(SdramCommand.REFRESH, 0)
                    wait.load(self.cycles(chip.trfc_ns))
                    m.d.comb += refreshed.eq(1)
                    m.d.sync += started.eq(started + 1)
                    with m.If(self.ready):
                        m.next = "WORDS"
                    with m.Elif(started == REFRESHES_FIRST - 1):
                        m.next = "MODE"
                with m.State("MODE"):  # bursts of a single word
                    issue(SdramCommand.LOAD_MODE, chip.cas_latency << 4)
                    wait.load(chip.tmrd)
                    m.d.sync += self.ready.eq(1)
                    m.next = "WORDS"
                with m.State("WORDS"):
                    with m.If(due):
                        with m.If(~Cat(*is_open).any()):
                            m.next = "REFRESH"
                        with m.Elif(may_close):
                            close("REFRESH")
                    with m.Elif(self.words.valid & hit):
                        with m.If(~word.write | turn.over):
                            m.d.comb += self.words.ready.eq(1)
                            issue(Mux(word.write, SdramCommand.WRITE, SdramCommand.READ), column, bank)
                            m.d.sync += [pins.o.eq(word.data), pins.drive.eq(word.write)]
                            with m.If(word.write):
                                m.d.sync += pins.mask.eq(~word.mask)
                                written.load(self.cycles(chip.twr_ns))
                            with m.Else():
                                turn.load(self.TURN)
                    with m.Elif(self.words.valid & is_open[bank]):
                        with m.If(may_close):
                            issue(SdramCommand.PRECHARGE, 0, bank)
                            m.d.sync += is_open[bank].eq(0)
                            wait.load(self.cycles(chip.trp_ns))
                    with m.Elif(self.words.valid & cycle.over):
                        issue(SdramCommand.ACTIVATE, row, bank)
                        m.d.sync += [is_open[bank].eq(1), rows[bank].eq(row)]
                        wait.load(self.cycles(chip.trcd_ns))
                        active.load(self.cycles(chip.tras_ns))
                        cycle.load(self.cycles(chip.trc_ns))
        return m

    def _longest(self) -> int:
        """Return the maximum number of cycles from a refresh being due to its command, including the timer's delay."""
        chip = self.chip
        return sum(map(self.cycles, (chip.trcd_ns, chip.tras_ns, chip.twr_ns, chip.trp_ns))) + 4


class Countdown:
    """Timer of a minimum delay.

    Arguments:
        m: the module.
        name: name of its register.
        most: largest number of cycles that `load` may be called with.

    Attributes:
        over: the last loaded number of cycles has passed.
    """

    def __init__(self, m: Module, name: str, most: int):
        self._m = m
        self._left = Signal(range(max(2, most)), name=name)
        self.over = self._left == 0
        with m.If(~self.over):
            m.d.sync += self._left.eq(self._left - 1)

    def load(self, cycles: int) -> None:
        """Start the countdown under the module's current conditions: `over` is set `cycles` cycles after this one."""
        self._m.d.sync += self._left.eq(Const(cycles - 1))
