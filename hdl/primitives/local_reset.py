"""A reset of a module's own: a register behind the one that comes from outside."""

from amaranth import ClockDomain, ClockSignal, DomainRenamer, Module, Signal

__all__ = ["with_local_reset"]


def with_local_reset(m: Module):
    """Return `m` with everything in it coming out of reset a cycle after its surroundings.

    Where a module is built apart from others, its simulator evaluates whatever depends on an input whenever there might
    be a new one; and on a reset that comes from outside the next state of every register depends.

    Arguments:
        m: a module whose registers are all in the `sync` domain, as those of its submodules are.
    """
    m.domains.own = own = ClockDomain(local=True)
    own.clk, own.rst = Signal(name="clk"), Signal(name="rst", init=1)
    m.d.comb += own.clk.eq(ClockSignal("outer"))
    m.d.outer += own.rst.eq(0)
    return DomainRenamer({"sync": "own", "outer": "sync"})(m)
