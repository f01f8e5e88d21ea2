"""Several AXI managers on one port: the manager's number travels as the ID, and brings the response back."""

from types import SimpleNamespace

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.round_robin import RoundRobin

__all__ = ["AxiArbiter"]


class AxiArbiter(wiring.Component):
    """Takes the managers' addresses in turn, and routes what comes back by its ID.

    An address takes a cycle to pass, and so does a beat that is written; what comes back takes none. A beat is read and
    another written in every cycle, bursts back to back. Bursts are written in the order of their addresses: a manager
    that is late with its beats holds up those behind it. So that nobody waits for himself in the end, a manager takes
    the beats that it asked for without waiting for its own writes: it asks for what it has room for.

    Arguments:
        size: bytes of a beat.
        count: managers.

    Ports:
        managers: their IDs do not matter. The beats of a write may come with its address or later; an earlier one
            waits.
        port: an ID is the number of a manager. A beat may precede its address by a few cycles.
    """

    WRITES = 16
    """Bursts whose beats have not all passed; one more address waits for the first of them."""

    def __init__(self, size: int, count: int):
        self.size = size
        self.count = count
        super().__init__(
            {"managers": In(AxiPort(size, 1)).array(count), "port": Out(AxiPort(size, self.id_bits(count)))}
        )

    @staticmethod
    def id_bits(count: int) -> int:
        """Return the width of the IDs of `count` managers."""
        return max(1, (count - 1).bit_length())

    def elaborate(self, platform):
        m = Module()
        order = SyncFIFO(width=self.id_bits(self.count), depth=self.WRITES)  # whose beats come next
        m.submodules.order = order
        self._pass_addresses(m, "ar", 1)
        order_in, served = self._pass_addresses(m, "aw", order.w_rdy)
        m.d.comb += [order.w_data.eq(order_in), order.w_en.eq(served)]
        self._pass_beats(m, order)
        self._route(m, "r")
        self._route(m, "b")
        return m

    def _pass_addresses(self, m: Module, name: str, may: Value) -> tuple[Value, Value]:
        """Add the register of an address channel; return the manager that is chosen, and whether it is served now."""
        port = _channel(self.port, name)
        managers = [_channel(manager, name) for manager in self.managers]
        m.submodules[name] = turn = RoundRobin(self.count)
        valid, room, served = (Signal(name=f"{name}_{what}") for what in ("valid", "room", "served"))
        held = {what: Signal.like(getattr(port, what), reset_less=True) for what in ("id", "addr", "len")}
        m.d.comb += [
            turn.requests.eq(Cat(manager.valid for manager in managers)),
            room.eq((~valid | port.ready) & may),
            served.eq(room & turn.requests.any()),
            turn.taken.eq(served),
            port.valid.eq(valid),
            *(getattr(port, what).eq(register) for what, register in held.items()),
        ]
        m.d.sync += valid.eq(served | (valid & ~port.ready))
        with m.Switch(turn.grant):
            for number, manager in enumerate(managers):
                with m.Case(number):
                    m.d.comb += manager.ready.eq(room)
                    with m.If(served):
                        m.d.sync += [held["id"].eq(number), held["addr"].eq(manager.addr), held["len"].eq(manager.len)]
        return turn.grant, served

    def _pass_beats(self, m: Module, order: SyncFIFO) -> None:
        """Add the register of the write data, which the managers fill in order."""
        port = _channel(self.port, "w")
        valid, room, served, last = (Signal(name=f"w_{what}") for what in ("valid", "room", "served", "last"))
        held = {what: Signal.like(getattr(port, what), reset_less=True) for what in ("data", "strb", "last")}
        m.d.comb += [
            room.eq((~valid | port.ready) & order.r_rdy),
            order.r_en.eq(served & last),
            port.valid.eq(valid),
            *(getattr(port, what).eq(register) for what, register in held.items()),
        ]
        m.d.sync += valid.eq(served | (valid & ~port.ready))
        with m.Switch(order.r_data):
            for number in range(self.count):
                manager = _channel(self.managers[number], "w")
                with m.Case(number):
                    m.d.comb += [manager.ready.eq(room), served.eq(room & manager.valid), last.eq(manager.last)]
                    with m.If(served):
                        m.d.sync += [register.eq(getattr(manager, what)) for what, register in held.items()]

    def _route(self, m: Module, name: str) -> None:
        """Connect a channel of responses: everyone sees its payload, one is meant."""
        port = _channel(self.port, name)
        for number in range(self.count):
            manager = _channel(self.managers[number], name)
            payload = [what for what in vars(port) if what not in ("valid", "ready", "id")]
            m.d.comb += [getattr(manager, what).eq(getattr(port, what)) for what in payload]
            with m.If(port.id == number):
                m.d.comb += [manager.valid.eq(port.valid), port.ready.eq(manager.ready)]


def _channel(axi, name: str) -> SimpleNamespace:
    """Return the signals of one of AXI's channels, by what they are named behind its name."""
    members = [member for member in axi.signature.members if member.startswith(name)]
    return SimpleNamespace(**{member.removeprefix(name): getattr(axi, member) for member in members})
