"""The core: engines, memories and the controller that starts them; one image in HBM, one start signal.

    HBM -> boot -> controller -> registers: doorbells -> queues <- fetcher <- HBM
                                                          |  ^
                                             instructions |  | retired        semaphores <-> queues
                                                          v  |
           HBM <-> DMA engines <-> on-chip memories <-> tensor, vector, scalar engine

Everything runs by itself in order within a queue; between queues nothing holds order but semaphores.
"""

from functools import partial

from amaranth import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.controller.controller import Controller
from hdl.controller.decoder import REGION_BITS, Decoder
from hdl.dma.engine import DmaCounters, DmaEngine
from hdl.elementwise.frontend import Counters as ElementwiseCounters
from hdl.hierarchy import shared
from hdl.memory.axi import AxiPort
from hdl.memory.axi_arbiter import AxiArbiter
from hdl.memory.line_arbiter import LineReadArbiter, LineWriteArbiter
from hdl.memory.onchip import Conflicts, OnChipMemory
from hdl.queue.boot import Boot
from hdl.queue.errors import CoreError, Errors
from hdl.queue.fetch import Fetcher
from hdl.queue.queue import Queue, QueueCounters
from hdl.queue.registers import Registers
from hdl.queue.semaphores import Semaphores
from hdl.queue.watchdog import Watchdog
from hdl.queue.window import Window
from hdl.scalar.engine import ScalarEngine
from hdl.tensor.engine import Counters as TensorCounters
from hdl.tensor.engine import TensorEngine
from hdl.vector.engine import VectorEngine
from spec import memory_map
from spec.config import Config
from spec.isa import HBM_ADDRESS_BITS, Engine, engine_of_queue, queue_count
from spec.isa.record import COUNTER_BITS, RECORDS_AHEAD

__all__ = ["Core", "axi_id_bits", "core_counters"]


def _sharers(config: Config, engines: list, others: list) -> list[list]:
    """Return who shares each HBM port, or the line port beside it: every so many DMA engines, and the others port 0."""
    return [engines[port :: config.hbm_ports] + (others if port == 0 else []) for port in range(config.hbm_ports)]


def axi_id_bits(config: Config) -> int:
    """Return the width of the IDs of every HBM port."""
    return AxiArbiter.id_bits(max(map(len, _sharers(config, [None] * config.dma_engines, ["fetcher", "boot"]))))


class ControllerCounters(data.Struct):
    """instructions: retired. waiting: cycles in wfi."""

    instructions: unsigned(COUNTER_BITS)
    waiting: unsigned(COUNTER_BITS)


def core_counters(config: Config) -> data.StructLayout:
    """Return the layout of all counters of a core: those of its queues, engines and memories, and the controller's."""
    return data.StructLayout(
        {
            "queues": data.ArrayLayout(QueueCounters, queue_count(config)),
            "tensor": TensorCounters,
            "vector": ElementwiseCounters,
            "scalar": ElementwiseCounters,
            "dma": data.ArrayLayout(DmaCounters, config.dma_engines),
            "conflicts": Conflicts,
            "controller": ControllerCounters,
        }
    )


class Core(wiring.Component):
    """A NeuronCore.

    Arguments:
        config: the machine's parameters.

    Ports:
        start: a pulse boots the image at `boot_address` in HBM; ignored until reset once it was given.
        axi: the ports to HBM; the IDs' width is `axi_id_bits`.
        host_interrupt: a pulse interrupts the controller.
        done, exit_code: the controller's program has ended. error: the first one (`spec.isa.Cause`), after which no
            queue begins another record. All three stay until reset, which the core needs before it starts again; what
            is in HBM and on chip stays as it is. Reset it when it has been quiet for a while.
        quiet: no HBM transaction is under way, nothing moves in this cycle, and no queue has work that it will do.
        console_valid, console_data: a byte for the host to print.
        issued, issued_addresses: for each queue, its engine takes a record in this cycle, and the record's address.
        retired, retired_addresses: it has finished one; those of LoadStationary are behind all queues.
        controller_retires, controller_pc: an instruction of the controller.
        counters: those of the queues, engines and memories.
    """

    def __init__(self, config: Config):
        self.config = config
        self.queues = queues = queue_count(config)
        lanes = queues + 1
        super().__init__(
            {
                "start": In(1),
                "boot_address": In(HBM_ADDRESS_BITS),
                "axi": Out(AxiPort(config.hbm_bytes, axi_id_bits(config))).array(config.hbm_ports),
                "host_interrupt": In(1),
                "done": Out(1),
                "exit_code": Out(32),
                "error": Out(CoreError),
                "quiet": Out(1),
                "console_valid": Out(1),
                "console_data": Out(8),
                "issued": Out(queues),
                "issued_addresses": Out(HBM_ADDRESS_BITS * queues),
                "retired": Out(lanes),
                "retired_addresses": Out(HBM_ADDRESS_BITS * lanes),
                "controller_retires": Out(1),
                "controller_pc": Out(32),
                "counters": Out(core_counters(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        tensor, vector, scalar = (
            shared(m, name, f"{name}_engine", partial(build, config), platform)
            for name, build in (("tensor", TensorEngine), ("vector", VectorEngine), ("scalar", ScalarEngine))
        )
        dma = [
            shared(m, f"dma{i}", "dma_engine", partial(DmaEngine, config), platform) for i in range(config.dma_engines)
        ]
        engines = [tensor, vector, scalar, *dma]

        m.submodules.controller = controller = Controller()
        m.submodules.registers = registers = Registers(config)
        m.submodules.window = window = Window(config)
        m.submodules.semaphores = semaphores = Semaphores(self.queues)
        m.submodules.watchdog = watchdog = Watchdog(self.queues)
        m.submodules.errors = errors = Errors(self.queues)
        m.submodules.boot = boot = Boot(config)
        m.submodules.fetcher = fetcher = Fetcher(config)
        m.submodules.memory = memory = OnChipMemory(config)
        queues = self._queues(m, engines, registers, semaphores, watchdog, errors, fetcher, platform)

        accesses = self._memories(m, memory, tensor, vector, scalar, dma, window)
        under_way, beats = self._hbm(m, _sharers(config, dma, [fetcher, boot]))
        moves = accesses | beats  # long instructions make progress, too
        self._control(m, controller, registers, window, semaphores, watchdog, errors, boot, queues, moves, under_way)
        self._observe(m, engines, queues, memory, controller)
        return m

    def _queues(self, m, engines, registers, semaphores, watchdog, errors, fetcher, platform):
        """A queue before each engine; return them."""
        queues = []
        for number, engine in enumerate(engines):
            kind = engine_of_queue(number, self.config)
            lanes = 2 if kind == Engine.TENSOR else 1
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
            if kind == Engine.DMA:
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
        for port, users in enumerate(_sharers(config, dma, [window])):
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

    def _hbm(self, m, sharers):
        """Share the ports to HBM; return whether a transaction is under way, and whether a beat moves in this cycle."""
        open_transactions = []
        for port, managers in enumerate(sharers):
            m.submodules[f"axi{port}"] = arbiter = AxiArbiter(self.config.hbm_bytes, len(managers))
            for number, manager in enumerate(managers):
                wiring.connect(m, manager.axi, arbiter.managers[number])
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
        tensor, vector, scalar, *dma = engines
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
            *(counters.dma[number].eq(engine.counters) for number, engine in enumerate(dma)),
        ]
        for counter, happens in (
            (counters.controller.instructions, self.controller_retires),
            (counters.controller.waiting, controller.waiting),
        ):
            m.d.sync += counter.eq(counter + happens)
