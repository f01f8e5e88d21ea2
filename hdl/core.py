"""Core: engines, memories and a controller, started with one image in HBM and one start pulse.

    HBM -> boot -> controller -> registers: doorbells -> queues <- fetcher <- HBM
                                                          |  ^
                                             instructions |  | retired        semaphores <-> queues
                                                          v  |
           HBM <-> DMA engines <-> on-chip memories <-> tensor, vector, scalar engine
            |
            +-> collective engine <-> links, in a core of an instance

Each queue executes its records in order. Only semaphores order one queue against another.
"""

from amaranth import Cat, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.core_memory import connect_hbm, connect_on_chip
from neuroncore_rtl.hdl.core_ports import core_signature
from neuroncore_rtl.hdl.core_units import CoreUnits
from neuroncore_rtl.hdl.dma.start import CopyStart
from neuroncore_rtl.hdl.link.flit import flit_stream
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.hdl.primitives.local_reset import with_local_reset
from neuroncore_rtl.hdl.primitives.pulse_line import PulseLine
from neuroncore_rtl.spec.config import Config, Counters
from neuroncore_rtl.spec.instance import link_bytes_of
from neuroncore_rtl.spec.isa import queue_count
from neuroncore_rtl.spec.link import CHANNELS, CORE_BITS, DIRECTIONS

__all__ = ["Core"]


class Core(wiring.Component):
    """One NeuronCore.

    Arguments:
        config: the machine's parameters.
        link_bytes: data bytes of a flit; None: `spec.instance.link_bytes_of` the configuration. Unused if `cores` is 1.

    Ports, of `hdl.core_ports.core_signature`:
        start: a pulse boots the image at `boot_address` in HBM; ignored after the first until reset.
        axi: ports to HBM; IDs are `axi_id_bits` wide.
        host_interrupt: a pulse interrupts the controller.
        done: the controller's program has ended; set until reset.
        exit_code: exit code of the controller's program, valid while `done`.
        error: the first error (`spec.isa.Cause`), held until reset. From then on no queue begins another record. The
            core needs a reset before it can start again; HBM and on-chip memories keep their contents. Reset it only
            after `quiet` has been set for 256 cycles in a row, as the harness does: an engine may pause before it moves
            data again.
        quiet: no HBM transaction is outstanding, no data has moved in this cycle or in the `port_latency` cycles before
            it, and no queue has pending work, except work that an error has stopped. In an instance, data from other
            cores may still arrive.
        console: bytes for the host to print.
        issued: one bit per queue, set when its engine accepts a record, or when the queue executes a NOP itself.
        passed: one bit per queue, set with `issued` for a NOP, which retires in that cycle.
        retired: one bit per queue, and a last one for LoadStationary, set when the engine finishes a record.
        issued_addresses, retired_addresses: HBM addresses of the records that `issued` and `retired` report.
        controller_retires: the controller retires an instruction in this cycle.
        controller_pc: address of that instruction.
        counters: all counters; 0 where `config.counters` excludes them.

    Ports to the links, only in an instance:
        number: index of this core in the instance; constant.
        link_i, link_o: flits from and to the router, one stream per channel of the collective engine.
        dead: one bit per direction, set when that link of the chip has failed.

    A core in an instance is released from reset one cycle after the modules around it.
    """

    def __init__(self, config: Config, link_bytes: int | None = None):
        self.config = config
        self.link_bytes = link_bytes or link_bytes_of(config)
        self.queues = queue_count(config)
        flits = flit_stream(self.link_bytes)
        links = {
            "number": In(CORE_BITS),
            "link_i": In(flits).array(CHANNELS),
            "link_o": Out(flits).array(CHANNELS),
            "dead": In(DIRECTIONS),
        }
        super().__init__(dict(core_signature(config).members) | (links if config.cores > 1 else {}))

    def elaborate(self, platform):
        m = Module()
        units = CoreUnits(m, self.config, self.link_bytes, platform)
        for number in range(self.queues):
            self._connect_queue(m, units, number)
        self._connect_controller(m, units)
        accesses = connect_on_chip(m, self.config, units)
        under_way, beats = connect_hbm(m, self.config, units, self.axi)
        moves = [accesses, beats]  # progress within a long instruction
        if units.collective:
            moves.append(self._connect_links(m, units))
        self._connect_watchdog(m, units, moves, under_way)
        self._observe(m, units)
        return with_local_reset(m) if units.collective else m

    def _connect_queue(self, m: Module, units: CoreUnits, number: int) -> None:
        queue, engine = units.queues[number], units.engines[number]
        registers, semaphores, watchdog = units.registers, units.semaphores, units.watchdog
        read_counters = [registers.counters[number].eq(queue.counters)] if self.config.counters else []
        wiring.connect(m, queue.blocks, registers.blocks[number])
        wiring.connect(m, units.fetcher.records[number], queue.record)
        wiring.connect(m, queue.update, semaphores.updates[number])
        issue, request = queue.issue, queue.request
        if self.config.port_latency:
            issue, request = self._waiting(m, f"issue{number}", issue), self._waiting(m, f"request{number}", request)
        if self.config.dma_start and engine in units.dma:
            m.submodules[f"start{number}"] = start = CopyStart(self.config.dma_start)
            wiring.connect(m, issue, start.i)
            issue = start.o
        wiring.connect(m, request, units.fetcher.requests[number])
        retired = engine.retired
        if self.config.result_latency and engine in (units.tensor, units.vector, units.scalar):
            m.submodules[f"result{number}"] = line = PulseLine(self.config.result_latency)
            m.d.comb += line.i.eq(retired)
            retired = line.o
        m.d.comb += [
            registers.places[number].eq(queue.places),
            registers.retired_count[number].eq(queue.retired_count),
            registers.rung[number].eq(queue.rung),
            *read_counters,
            semaphores.waits[number].eq(queue.wait),
            queue.wait_satisfied.eq(semaphores.satisfied[number]),
            queue.update_refused.eq(semaphores.refused[number]),
            queue.halt.eq(units.errors.halt),
            units.errors.queue_errors[number].eq(queue.error),
            watchdog.busy[number].eq(queue.busy),
            watchdog.waiting[number].eq(queue.waiting),
            watchdog.addresses[number].eq(queue.address),
            watchdog.shortages[number].eq(semaphores.shortages[number]),
            engine.instructions.valid.eq(issue.valid),
            engine.instructions.payload.eq(issue.payload),
            issue.ready.eq(engine.instructions.ready),
            queue.completions.eq(Cat(retired, engine.loaded) if engine is units.tensor else retired),
            *(queue.engine_error[field].eq(engine.error[field]) for field, _ in data.Layout.cast(engine.error.shape())),
        ]

    def _waiting(self, m: Module, name: str, source):
        """Return the stream `source` after a one-entry FIFO, which removes the combinational path of `ready`."""
        m.submodules[name] = place = Fifo(source.payload.shape(), depth=1)
        wiring.connect(m, source, place.i)
        return place.o

    def _connect_controller(self, m: Module, units: CoreUnits) -> None:
        boot, controller, decoder, registers = units.boot, units.controller, units.decoder, units.registers
        semaphores, errors = units.semaphores, units.errors
        wiring.connect(m, boot.load, controller.load)
        wiring.connect(m, controller.peripheral, decoder.bus)
        wiring.connect(m, decoder.peripherals[0], registers.bus)
        wiring.connect(m, decoder.peripherals[1], units.window.bus)
        wiring.connect(m, registers.semaphore, semaphores.access)
        wiring.connect(m, registers.console, wiring.flipped(self.console))
        m.d.comb += [
            boot.start.eq(self.start),
            boot.address.eq(self.boot_address),
            controller.run.eq(boot.done & semaphores.ready),
            controller.external_interrupt.eq(registers.external_interrupt),
            semaphores.watch_semaphore.eq(registers.watch_semaphore),
            semaphores.watch_value.eq(registers.watch_value),
            registers.watch_reached.eq(semaphores.watch_reached),
            registers.error.eq(errors.error),
            registers.host_interrupt.eq(self.host_interrupt),
            errors.boot.eq(boot.error),
            self.done.eq(registers.exit_valid),
            self.exit_code.eq(registers.exit_code),
            self.error.eq(errors.error),
        ]

    def _connect_links(self, m: Module, units: CoreUnits) -> Value:
        """Connect the collective engine to links, registers and watchdog.

        Return whether a flit is transferred in this cycle.
        """
        collective, watchdog = units.collective, units.watchdog
        every = self.config.counters == Counters.ALL
        for channel in range(CHANNELS):
            wiring.connect(m, wiring.flipped(self.link_i[channel]), collective.i[channel])
            wiring.connect(m, collective.o[channel], wiring.flipped(self.link_o[channel]))
        m.d.comb += [
            collective.core.eq(self.number),
            collective.dead.eq(self.dead),
            units.registers.core_number.eq(self.number),
            watchdog.peer.eq(collective.peer),
            watchdog.peer_address.eq(units.queues[-1].oldest),
            *([self.counters.collective.eq(collective.counters)] if every else []),
        ]
        return Cat(flits.valid & flits.ready for flits in (*self.link_i, *self.link_o)).any()

    def _connect_watchdog(self, m: Module, units: CoreUnits, moves: list[Value], under_way: Value) -> None:
        """Connect the watchdog's inputs and its error; drive the output `quiet`."""
        watchdog, errors = units.watchdog, units.errors
        something = Cat(*(queue.progress for queue in units.queues), *moves)
        progress = delayed(m, something, self.config.port_latency, "progress").any() | units.semaphores.updated
        m.d.comb += [
            watchdog.limit.eq(units.registers.watchdog_limit),
            watchdog.progress.eq(progress),
            errors.watchdog.eq(watchdog.error),
            self.quiet.eq(~(watchdog.progress | under_way | (watchdog.busy.any() & ~errors.halt))),
        ]

    def _observe(self, m: Module, units: CoreUnits) -> None:
        """Drive the outputs `counters`, and the outputs that report the activity of queues and controller."""
        queues, controller, counters = units.queues, units.controller, self.counters
        m.d.comb += [
            self.issued.eq(Cat(queue.issued for queue in queues)),
            self.issued_addresses.eq(Cat(queue.issued_address for queue in queues)),
            self.passed.eq(Cat(queue.passed for queue in queues)),
            self.retired.eq(Cat(*(queue.retired[0] for queue in queues), queues[0].retired[1])),
            self.retired_addresses.eq(
                Cat(*(queue.retired_address[0] for queue in queues), queues[0].retired_address[1])
            ),
            self.controller_retires.eq(controller.trace_valid & ~controller.trace_trap),
            self.controller_pc.eq(controller.trace_pc),
        ]
        # A synthesiser removes counters that no port reads.
        every = self.config.counters == Counters.ALL
        if every:
            m.d.comb += [
                counters.tensor.eq(units.tensor.counters),
                counters.vector.eq(units.vector.counters),
                counters.scalar.eq(units.scalar.counters),
                counters.conflicts.eq(units.memory.conflicts),
            ]
        if self.config.counters >= Counters.QUEUES:
            m.d.comb += [counters.queues[number].eq(queue.counters) for number, queue in enumerate(queues)]
        if every:
            m.d.comb += [counters.dma[number].eq(engine.counters) for number, engine in enumerate(units.dma)]
            for counter, happens in (
                (counters.controller.instructions, self.controller_retires),
                (counters.controller.waiting, controller.waiting),
            ):
                m.d.sync += counter.eq(counter + happens)
