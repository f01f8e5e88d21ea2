"""The core: engines, memories and the controller that starts them; one image in HBM, one start signal.

    HBM -> boot -> controller -> registers: doorbells -> queues <- fetcher <- HBM
                                                          |  ^
                                             instructions |  | retired        semaphores <-> queues
                                                          v  |
           HBM <-> DMA engines <-> on-chip memories <-> tensor, vector, scalar engine
            |
            +-> collective engine <-> links, in a core of an instance

Everything runs by itself in order within a queue; between queues nothing holds order but semaphores.
"""

from functools import partial

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.clock_gate import REST, gated
from neuroncore_rtl.hdl.collective.engine import CollectiveEngine
from neuroncore_rtl.hdl.controller.controller import Controller
from neuroncore_rtl.hdl.controller.decoder import REGION_BITS, Decoder
from neuroncore_rtl.hdl.core_ports import axi_id_bits, core_counters, core_signature, sharers
from neuroncore_rtl.hdl.dma.engine import DmaEngine
from neuroncore_rtl.hdl.hierarchy import shared
from neuroncore_rtl.hdl.link.flit import flit_stream
from neuroncore_rtl.hdl.local_reset import with_local_reset
from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter
from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter, LineWriteArbiter
from neuroncore_rtl.hdl.memory.onchip import OnChipMemory
from neuroncore_rtl.hdl.queue.boot import Boot
from neuroncore_rtl.hdl.queue.errors import Errors
from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.hdl.queue.registers import Registers
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.hdl.queue.watchdog import Watchdog
from neuroncore_rtl.hdl.queue.window import Window
from neuroncore_rtl.hdl.scalar.engine import ScalarEngine
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.hdl.vector.engine import VectorEngine
from neuroncore_rtl.spec import memory_map
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import link_bytes_of
from neuroncore_rtl.spec.isa import Engine, collective_queue, engine_of_queue, queue_count
from neuroncore_rtl.spec.isa.engine import LANES, RECORDS_AHEAD
from neuroncore_rtl.spec.link import CHANNELS, CORE_BITS, DIRECTIONS

__all__ = ["Core", "axi_id_bits", "core_counters", "core_signature"]


class Core(wiring.Component):
    """A NeuronCore.

    Arguments:
        config: the machine's parameters.
        link_bytes: of a flit's data; None: `spec.instance.link_bytes_of` the configuration. Means nothing alone.

    Ports, those of :func:`hdl.core_ports.core_signature` and, in a core of an instance, those to its links:
        start: a pulse boots the image at `boot_address` in HBM; ignored until reset once it was given.
        axi: the ports to HBM; the IDs' width is `axi_id_bits`.
        host_interrupt: a pulse interrupts the controller.
        done, exit_code: the controller's program has ended. error: the first one (`spec.isa.Cause`), after which no
            queue begins another record. All three stay until reset, which the core needs before it starts again; what
            is in HBM and on chip stays as it is. Reset it when it has been quiet for a while.
        quiet: no HBM transaction is under way, nothing moves in this cycle, and no queue has work that it will do.
            What other cores send may yet move something in a core of an instance.
        console_valid, console_data: a byte for the host to print.
        issued, issued_addresses: for each queue, its engine takes a record in this cycle, and the record's address.
        retired, retired_addresses: it has finished one; those of LoadStationary are behind all queues.
        controller_retires, controller_pc: an instruction of the controller.
        counters: those of the queues, engines and memories.
        number: of this core in the instance; constant. link_i, link_o: flits of each channel of the collective engine,
            from and to the router. dead: the chip's link of each direction is. Such a core comes out of reset a cycle
            after its surroundings.
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
        config = self.config
        build = partial(TensorEngine, config)
        tensor = gated(m, "tensor", "tensor_engine", build, platform, TensorEngine.latency(config) + REST)
        vector, scalar = (
            gated(m, name, f"{name}_engine", partial(build, config), platform)
            for name, build in (("vector", VectorEngine), ("scalar", ScalarEngine))
        )
        dma = [
            gated(m, f"dma{i}", "dma_engine", partial(DmaEngine, config), platform) for i in range(config.dma_engines)
        ]
        collective = self._collective(m, platform) if config.cores > 1 else None
        engines = [tensor, vector, scalar, *dma, *([collective] if collective else [])]

        m.submodules.controller = controller = Controller()
        m.submodules.registers = registers = Registers(config)
        m.submodules.window = window = Window(config)
        m.submodules.semaphores = semaphores = Semaphores(self.queues)
        m.submodules.watchdog = watchdog = Watchdog(self.queues, collective_queue(config))
        m.submodules.errors = errors = Errors(self.queues)
        m.submodules.boot = boot = Boot(config)
        m.submodules.fetcher = fetcher = Fetcher(config)
        m.submodules.memory = memory = OnChipMemory(config)
        queues = self._queues(m, engines, registers, semaphores, watchdog, errors, fetcher, platform)

        accesses = self._memories(m, memory, tensor, vector, scalar, dma, window)
        channels = list(collective.axi) if collective else []
        managers = sharers(config, [engine.axi for engine in dma], [fetcher.axi, boot.axi], channels)
        under_way, beats = self._hbm(m, managers)
        moves = accesses | beats  # long instructions make progress, too
        if collective:
            moves |= self._links(m, collective, queues[-1], registers, watchdog)
        self._control(m, controller, registers, window, semaphores, watchdog, errors, boot, queues, moves, under_way)
        self._observe(m, engines, queues, memory, controller)
        return with_local_reset(m) if collective else m

    def _collective(self, m, platform):
        """Return the collective engine."""
        config = self.config
        build = partial(CollectiveEngine, self.link_bytes, config.hbm_bytes, config.cores)
        return gated(m, "collective", "collective_engine", build, platform)

    def _links(self, m, collective, queue, registers, watchdog):
        """Connect the collective engine to the links, and what it is told and says; return whether a flit moves."""
        for channel in range(CHANNELS):
            wiring.connect(m, wiring.flipped(self.link_i[channel]), collective.i[channel])
            wiring.connect(m, collective.o[channel], wiring.flipped(self.link_o[channel]))
        m.d.comb += [
            collective.core.eq(self.number),
            collective.dead.eq(self.dead),
            registers.core_number.eq(self.number),
            watchdog.peer.eq(collective.peer),
            watchdog.peer_address.eq(queue.oldest),
            self.counters.collective.eq(collective.counters),
        ]
        return Cat(flits.valid & flits.ready for flits in (*self.link_i, *self.link_o)).any()

    def _queues(self, m, engines, registers, semaphores, watchdog, errors, fetcher, platform):
        """A queue before each engine; return them."""
        queues = []
        for number, engine in enumerate(engines):
            kind = engine_of_queue(number, self.config)
            lanes = LANES[kind]
            build = partial(Queue, kind, lanes, RECORDS_AHEAD[kind])
            queue = shared(m, f"queue{number}", f"queue_{kind.name.lower()}", build, platform)
            wiring.connect(m, queue.blocks, registers.blocks[number])
            wiring.connect(m, queue.request, fetcher.requests[number])
            wiring.connect(m, queue.update, semaphores.updates[number])
            m.d.comb += [
                registers.places[number].eq(queue.places),
                registers.retired_count[number].eq(queue.retired_count),
                registers.rung[number].eq(queue.rung),
                registers.counters[number].eq(queue.counters),
                queue.record_valid.eq(fetcher.record_valid[number]),
                queue.record.eq(fetcher.record),
                queue.record_error.eq(fetcher.record_error),
                semaphores.waits[number].eq(queue.wait),
                queue.wait_satisfied.eq(semaphores.satisfied[number]),
                queue.update_refused.eq(semaphores.refused[number]),
                queue.halt.eq(errors.halt),
                errors.queue_errors[number].eq(queue.error),
                watchdog.busy[number].eq(queue.busy),
                watchdog.waiting[number].eq(queue.waiting),
                watchdog.addresses[number].eq(queue.address),
                watchdog.shortages[number].eq(semaphores.shortages[number]),
                engine.instructions.valid.eq(queue.issue.valid),
                engine.instructions.payload.eq(queue.issue.payload),
                queue.issue.ready.eq(engine.instructions.ready),
                queue.completions.eq(Cat(engine.retired, engine.loaded) if lanes == 2 else engine.retired),
                queue.engine_error.valid.eq(engine.error.valid),
                queue.engine_error.cause.eq(engine.error.cause),
                queue.engine_error.number.eq(engine.error.number),
            ]
            if kind in (Engine.DMA, Engine.COLLECTIVE):
                m.d.comb += queue.engine_error.detail.eq(engine.error.detail)
            queues.append(queue)
        return queues

    def _memories(self, m, memory, tensor, vector, scalar, dma, window):
        """Connect all that reads and writes on chip; return whether an engine does in this cycle."""
        config = self.config
        wiring.connect(m, tensor.stationary, memory.stationary)
        wiring.connect(m, tensor.moving, memory.moving)
        wiring.connect(m, memory.psum, tensor.psum)
        wiring.connect(m, memory.psum_write, tensor.psum_write)
        for name, engine in (("vector", vector), ("scalar", scalar)):
            wiring.connect(m, engine.sbuf, getattr(memory, f"{name}_sbuf"))
            wiring.connect(m, engine.psum, getattr(memory, f"{name}_psum"))
            wiring.connect(m, engine.write, getattr(memory, f"{name}_write"))
        for port, users in enumerate(sharers(config, dma, [window])):
            m.submodules[f"line_reads{port}"] = reads = LineReadArbiter(config.hbm_bytes, len(users))
            m.submodules[f"line_writes{port}"] = writes = LineWriteArbiter(config.hbm_bytes, len(users))
            for number, user in enumerate(users):
                wiring.connect(m, user.read, reads.requesters[number])
                wiring.connect(m, user.write, writes.requesters[number])
            wiring.connect(m, reads.port, memory.line_reads[port])
            wiring.connect(m, writes.port, memory.line_writes[port])
        ports = [
            *(tensor.stationary, tensor.moving),
            *(port for engine in (vector, scalar) for port in (engine.sbuf, engine.psum, engine.write)),
            *(port for engine in dma for port in (engine.read, engine.write)),
        ]
        return Cat(port.valid & port.ready for port in ports).any()

    def _hbm(self, m, ports):
        """Share the ports to HBM; return whether a transaction is under way, and whether a beat moves in this cycle."""
        open_transactions = []
        for port, managers in enumerate(ports):
            m.submodules[f"axi{port}"] = arbiter = AxiArbiter(self.config.hbm_bytes, len(managers))
            for number, manager in enumerate(managers):
                wiring.connect(m, manager, arbiter.managers[number])
            axi = self.axi[port]
            for name, member in axi.signature.members.items():
                inner, outer = getattr(arbiter.port, name), getattr(axi, name)
                m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
            under_way = Signal(16, name=f"under_way{port}")
            m.d.sync += under_way.eq(
                under_way
                + (axi.arvalid & axi.arready)
                + (axi.awvalid & axi.awready)
                - (axi.rvalid & axi.rready & axi.rlast)
                - (axi.bvalid & axi.bready)
            )
            open_transactions.append((under_way != 0) | axi.arvalid | axi.awvalid)
        beats = Cat((axi.rvalid & axi.rready) | (axi.wvalid & axi.wready) for axi in self.axi).any()
        return Cat(open_transactions).any(), beats

    def _control(self, m, controller, registers, window, semaphores, watchdog, errors, boot, queues, moves, under_way):
        """The controller, what it reaches, and what starts and stops it."""
        regions = (
            (memory_map.REGISTERS >> 32 - REGION_BITS,),
            tuple(base >> 32 - REGION_BITS for base in (memory_map.SBUF_WINDOW, memory_map.PSUM_WINDOW)),
        )
        m.submodules.decoder = decoder = Decoder(regions)
        wiring.connect(m, controller.peripheral, decoder.bus)
        wiring.connect(m, decoder.peripherals[0], registers.bus)
        wiring.connect(m, decoder.peripherals[1], window.bus)
        wiring.connect(m, registers.semaphore, semaphores.access)
        m.d.comb += [
            semaphores.watch_semaphore.eq(registers.watch_semaphore),
            semaphores.watch_value.eq(registers.watch_value),
            registers.watch_reached.eq(semaphores.watch_reached),
            boot.start.eq(self.start),
            boot.address.eq(self.boot_address),
            controller.load_valid.eq(boot.load_valid),
            controller.load_address.eq(boot.load_address),
            controller.load_data.eq(boot.load_data),
            controller.run.eq(boot.done & semaphores.ready),
            controller.external_interrupt.eq(registers.external_interrupt),
            errors.boot.valid.eq(boot.error),
            errors.boot.detail.eq(boot.detail),
            errors.watchdog.eq(watchdog.error),
            registers.error.eq(errors.error),
            registers.host_interrupt.eq(self.host_interrupt),
            watchdog.limit.eq(registers.watchdog_limit),
            watchdog.progress.eq(Cat(queue.progress for queue in queues).any() | semaphores.updated | moves),
            self.done.eq(registers.exit_valid),
            self.exit_code.eq(registers.exit_code),
            self.error.eq(errors.error),
            self.quiet.eq(~(watchdog.progress | under_way | (watchdog.busy.any() & ~errors.halt))),
            self.console_valid.eq(registers.console_valid),
            self.console_data.eq(registers.console_data),
        ]

    def _observe(self, m, engines, queues, memory, controller):
        """Counters, and the trace of records and of the controller."""
        tensor, vector, scalar, *others = engines
        counters = self.counters
        m.d.comb += [
            self.issued.eq(Cat(queue.issued for queue in queues)),
            self.issued_addresses.eq(Cat(queue.issued_address for queue in queues)),
            self.retired.eq(Cat(*(queue.retired[0] for queue in queues), queues[0].retired[1])),
            self.retired_addresses.eq(
                Cat(*(queue.retired_address[0] for queue in queues), queues[0].retired_address[1])
            ),
            self.controller_retires.eq(controller.trace_valid & ~controller.trace_trap),
            self.controller_pc.eq(controller.trace_pc),
            counters.tensor.eq(tensor.counters),
            counters.vector.eq(vector.counters),
            counters.scalar.eq(scalar.counters),
            counters.conflicts.eq(memory.conflicts),
            *(counters.queues[number].eq(queue.counters) for number, queue in enumerate(queues)),
            *(
                counters.dma[number].eq(engine.counters)
                for number, engine in enumerate(others[: self.config.dma_engines])
            ),
        ]
        for counter, happens in (
            (counters.controller.instructions, self.controller_retires),
            (counters.controller.waiting, controller.waiting),
        ):
            m.d.sync += counter.eq(counter + happens)
