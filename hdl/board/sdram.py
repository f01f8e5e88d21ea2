"""The SDRAM controller: single words, one a cycle within an open row."""

from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.board.sdram_chip import SdramChip, SdramCommand, SdramPins

__all__ = ["SdramController", "sdram_words"]

ALL_BANKS = 1 << 10
"""Address of a PRECHARGE of all banks."""

REFRESHES_FIRST = 8
"""Before the mode is set, as the data sheets have it."""


def sdram_words(chip: SdramChip) -> data.StructLayout:
    """Return what the controller is told of a word; mask: of the bytes that are written."""
    return data.StructLayout({"number": chip.word_bits, "write": 1, "data": chip.width, "mask": chip.width // 8})


class SdramController(wiring.Component):
    """Reads and writes words in order. A row of each bank stays open until another of it, or a refresh, is due.

    A word is written a cycle after it was taken, and is there `READ_LATENCY` cycles after a read was taken. A word of a
    row that is open is taken in every cycle, but a write `TURN` cycles behind a read at the earliest. Another row costs
    tRP + tRCD, and more if it follows too soon on the one before it; tRAS, tRC and tRRD are kept over all banks
    together, which costs nothing at the clocks of an FPGA.

    Arguments:
        chip: the chip.
        clock_hz: frequency of the clock, also of the chip's.
        start_ns: from reset to the first command, if not as the chip has it; for simulations.

    Ports:
        words: what is to be read or written: number of the word, word, mask of the bytes that are written.
        read: words in order; nobody can hold them up.
        ready: the chip is initialised.
        pins: to the chip, whose clock is as fast as this one and some part of a cycle later, so that it takes what is
            driven here in the middle of the cycle; its word is sampled `cas_latency` edges behind the one that drove
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
        """Return how many cycles of this clock so many nanoseconds take."""
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
        )  # until any command may follow
        active = Countdown(m, "active", self.cycles(chip.tras_ns))  # until a row may be closed
        cycle = Countdown(m, "cycle", self.cycles(chip.trc_ns))  # until another may be opened
        written = Countdown(m, "written", self.cycles(chip.twr_ns))  # until a row that was written may be closed
        turn = Countdown(m, "turn", self.TURN)  # until a write may follow a read
        refresh = Signal(range(chip.refresh_cycles(self.clock_hz)))
        due, refreshed = Signal(), Signal()
        with m.If(refreshed):
            m.d.sync += [refresh.eq(0), due.eq(0)]
        with m.Elif(self.ready):
            m.d.sync += refresh.eq(refresh + 1)
            # Early enough for a row's worth of words and what must pass until they are over.
            with m.If(refresh == chip.refresh_cycles(self.clock_hz) - self._longest()):
                m.d.sync += due.eq(1)

        arriving = Signal(self.READ_LATENCY)  # a bit moves up from when a read is taken to when its word is here
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
                with m.State("MODE"):  # single words, in order
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
        """Return the cycles that may pass from when a refresh is due to its command, and those that the timer lags."""
        chip = self.chip
        return sum(map(self.cycles, (chip.trcd_ns, chip.tras_ns, chip.twr_ns, chip.trp_ns))) + 4


class Countdown:
    """Cycles that have to pass before something may be done.

    Arguments:
        m: the module that it is added to.
        name: of its register.
        most: cycles that it can be loaded with.

    Attributes:
        over: they have passed.
    """

    def __init__(self, m: Module, name: str, most: int):
        self._m = m
        self._left = Signal(range(max(2, most)), name=name)
        self.over = self._left == 0
        with m.If(~self.over):
            m.d.sync += self._left.eq(self._left - 1)

    def load(self, cycles: int) -> None:
        """Count, from where this stands in the module: what waits for it may be done so many cycles after this one."""
        self._m.d.sync += self._left.eq(Const(cycles - 1))
