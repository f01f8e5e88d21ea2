"""AXI arbiter: connects several managers to one port; the ID is the manager's number and routes responses."""

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin

__all__ = ["AxiArbiter"]


class AxiArbiter(wiring.Component):
    """Grants addresses round robin.

    Latency: one cycle for addresses and write beats, none for responses. Throughput: one beat read and one written per
    cycle, bursts back to back. Write data follows the order of the addresses, so a manager with late beats blocks the
    managers granted after it.

    Deadlock freedom: a manager must reserve buffer space before it issues a read, and accept read beats regardless of
    its own writes.

    Arguments:
        size: bytes per beat.
        count: number of managers.
        id_bits: width of the port's IDs; default: as many as the managers need.

    Ports:
        managers: ports of the managers; their IDs are ignored. The beats of a write may arrive with its address or
            later; earlier beats stall.
        port: port to the memory. A beat may precede its address by a few cycles.
    """

    WRITES = 16
    """Maximum number of write bursts with outstanding beats; a further address stalls."""

    def __init__(self, size: int, count: int, id_bits: int | None = None):
        self.size = size
        self.count = count
        id_bits = id_bits or self.id_bits(count)
        super().__init__({"managers": In(AxiPort(size, 1)).array(count), "port": Out(AxiPort(size, id_bits))})

    @staticmethod
    def id_bits(count: int) -> int:
        return max(1, (count - 1).bit_length())

    def elaborate(self, platform):
        m = Module()
        order = Fifo(self.id_bits(self.count), depth=self.WRITES)  # managers of the bursts with outstanding beats
        m.submodules.order = order
        ar, aw, w, b, r = (
            [getattr(manager, name) for manager in self.managers] for name in ("ar", "aw", "w", "b", "r")
        )
        self._pass_addresses(m, "ar", ar, self.port.ar, 1)
        order_in, served = self._pass_addresses(m, "aw", aw, self.port.aw, order.i.ready)
        m.d.comb += [order.i.payload.eq(order_in), order.i.valid.eq(served)]
        self._pass_beats(m, w, order.o)
        self._route(m, r, self.port.r)
        self._route(m, b, self.port.b)
        return m

    def _pass_addresses(self, m: Module, name: str, managers: list, port, may: Value) -> tuple[Value, Value]:
        m.submodules[name] = turn = RoundRobin(self.count)
        room, served = (Signal(name=f"{name}_{what}") for what in ("room", "served"))
        address = Signal(port.payload.shape(), name=f"{name}_payload", reset_less=True)
        m.d.comb += [
            turn.requests.eq(Cat(manager.valid for manager in managers)),
            room.eq((~port.valid | port.ready) & may),
            served.eq(room & turn.requests.any()),
            turn.taken.eq(served),
            port.payload.eq(address),
        ]
        m.d.sync += port.valid.eq(served | (port.valid & ~port.ready))
        m.d.comb += [manager.ready.eq(room & turn.chosen[number]) for number, manager in enumerate(managers)]
        with m.Switch(turn.grant):
            for number, manager in enumerate(managers):
                with m.Case(number):
                    with m.If(served):
                        asked = manager.payload
                        m.d.sync += [address.id.eq(number), address.addr.eq(asked.addr), address.len.eq(asked.len)]
        return turn.grant, served

    def _pass_beats(self, m: Module, managers: list, order) -> None:
        port = self.port.w
        room, served, last = (Signal(name=f"w_{what}") for what in ("room", "served", "last"))
        beat = Signal(port.payload.shape(), name="w_payload", reset_less=True)
        m.d.comb += [
            room.eq((~port.valid | port.ready) & order.valid),
            order.ready.eq(served & last),
            port.payload.eq(beat),
        ]
        m.d.sync += port.valid.eq(served | (port.valid & ~port.ready))
        with m.Switch(order.payload):
            for number, manager in enumerate(managers):
                with m.Case(number):
                    m.d.comb += [
                        manager.ready.eq(room),
                        served.eq(room & manager.valid),
                        last.eq(manager.payload.last),
                    ]
                    with m.If(served):
                        m.d.sync += beat.eq(manager.payload)

    def _route(self, m: Module, managers: list, port) -> None:
        for number, manager in enumerate(managers):
            m.d.comb += [
                getattr(manager.payload, field).eq(getattr(port.payload, field))
                for field, _ in port.payload.shape()
                if field != "id"
            ]
            with m.If(port.payload.id == number):
                m.d.comb += [manager.valid.eq(port.valid), port.ready.eq(manager.ready)]
