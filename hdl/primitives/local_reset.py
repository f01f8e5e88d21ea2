"""Local reset: a register between the external reset and a module."""

from amaranth import ClockDomain, ClockSignal, DomainRenamer, Module, Signal

__all__ = ["with_local_reset"]


def with_local_reset(m: Module):
    """Return `m` with its registers reset by a local register, one cycle later than the surroundings.

    It speeds up the simulation of a separately compiled module: the simulator re-evaluates all logic that depends on an
    input whenever that may have changed, and every register's next state depends on an external reset.

    All registers of `m` and its submodules must be in the `sync` domain.
    """
    m.domains.own = own = ClockDomain(local=True)
    own.clk, own.rst = Signal(name="clk"), Signal(name="rst", init=1)
    m.d.comb += own.clk.eq(ClockSignal("outer"))
    m.d.outer += own.rst.eq(0)
    return DomainRenamer({"sync": "own", "outer": "sync"})(m)
