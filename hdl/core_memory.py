"""Memory connections of a core: users of the on-chip memories, and arbitration of the HBM ports."""

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import wiring

from neuroncore_rtl.hdl.core_ports import axi_id_bits, sharers
from neuroncore_rtl.hdl.core_units import CoreUnits
from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter
from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter, LineWriteArbiter
from neuroncore_rtl.hdl.memory.line_buffer import LineBuffer
from neuroncore_rtl.hdl.memory.sbuf_block import Geometry
from neuroncore_rtl.spec.config import Config

__all__ = ["connect_hbm", "connect_on_chip"]


def connect_on_chip(m: Module, config: Config, units: CoreUnits) -> Value:
    """Connect all users of SBUF and PSUM.

    Return one bit per memory port, set when the port transfers data in this cycle.
    """
    memory, tensor = units.memory, units.tensor
    wiring.connect(m, tensor.stationary, memory.stationary)
    wiring.connect(m, tensor.moving, memory.moving)
    for name in ("psum", "psum_shared", "psum_write"):
        wiring.connect(m, getattr(memory, name), getattr(tensor, name))
    m.d.comb += memory.psum_reading.eq(tensor.psum_reading)
    for name, engine in (("vector", units.vector), ("scalar", units.scalar)):
        wiring.connect(m, engine.sbuf, getattr(memory, f"{name}_sbuf"))
        wiring.connect(m, engine.psum, getattr(memory, f"{name}_psum"))
        wiring.connect(m, engine.write, getattr(memory, f"{name}_write"))
    busy, geometry = memory.busy, Geometry.of(config)
    for port, users in enumerate(sharers(config, units.dma, [units.window])):
        m.submodules[f"line_reads{port}"] = reads = LineReadArbiter(config.hbm_bytes, len(users))
        m.submodules[f"line_writes{port}"] = writes = LineWriteArbiter(config.hbm_bytes, len(users))
        m.submodules[f"line_buffer{port}"] = buffer = LineBuffer(
            config.hbm_bytes, len(users), geometry, config.port_latency
        )
        for number, user in enumerate(users):
            wiring.connect(m, user.read, reads.requesters[number])
            wiring.connect(m, user.write, writes.requesters[number])
            m.d.comb += user.written.eq(buffer.written[number])
        wiring.connect(m, reads.port, memory.line_reads[port])
        wiring.connect(m, writes.port, buffer.i)
        m.d.comb += [buffer.writer.eq(writes.chosen), buffer.busy.eq(busy)]
        busy = buffer.after
        wiring.connect(m, buffer.o, memory.line_writes[port])
    ports = [
        *(tensor.stationary, tensor.moving),
        *(port for engine in (units.vector, units.scalar) for port in (engine.sbuf, engine.psum, engine.write)),
        *(port for engine in units.dma for port in (engine.read, engine.write)),
    ]
    return Cat(port.valid & port.ready for port in ports)


def connect_hbm(m: Module, config: Config, units: CoreUnits, ports: list) -> tuple[Value, Value]:
    """Connect each HBM port to an arbiter of its AXI managers.

    Return whether a transaction is outstanding, and one bit per port, set when a data beat moves in this cycle.
    """
    channels = units.collective.axi if units.collective else []
    shared = sharers(config, [engine.axi for engine in units.dma], [units.fetcher.axi, units.boot.axi], channels)
    open_transactions = []
    for port, managers in enumerate(shared):
        arbiter = AxiArbiter(config.hbm_bytes, len(managers), axi_id_bits(config))
        m.submodules[f"axi{port}"] = arbiter
        for number, manager in enumerate(managers):
            wiring.connect(m, manager, arbiter.managers[number])
        axi = ports[port]
        wiring.connect(m, arbiter.port, wiring.flipped(axi))
        under_way = Signal(16, name=f"under_way{port}")
        m.d.sync += under_way.eq(
            under_way
            + (axi.ar.valid & axi.ar.ready)
            + (axi.aw.valid & axi.aw.ready)
            - (axi.r.valid & axi.r.ready & axi.r.payload.last)
            - (axi.b.valid & axi.b.ready)
        )
        open_transactions.append((under_way != 0) | axi.ar.valid | axi.aw.valid)
    beats = Cat((axi.r.valid & axi.r.ready) | (axi.w.valid & axi.w.ready) for axi in ports)
    return Cat(open_transactions).any(), beats
