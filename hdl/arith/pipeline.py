"""Pipeline registers at named cuts: the depth of a unit is a parameter, and its arithmetic is written once."""

from types import SimpleNamespace

from amaranth import Module, Signal, Value

__all__ = ["Pipeline", "delayed"]


class Pipeline:
    """Registers of one feed-forward unit.

    Arguments:
        m: module of the pipeline; its registers are in the sync domain, without reset.
        cuts: names of the cuts (boundaries between stages) that hold a register.
    """

    def __init__(self, m: Module, cuts: tuple[str, ...]):
        self._m = m
        self._cuts = cuts

    def cut(self, place: str, **values: Value) -> SimpleNamespace:
        """Return a record of `values`, one cycle later if the cut `place` holds a register, else unchanged.

        Every value used after a cut must pass through it. Cut and field name the register in waveforms.
        """
        if place not in self._cuts:
            return SimpleNamespace(**values)
        registers = {}
        for name, value in values.items():
            # The register's source location is the caller's line.
            registers[name] = Signal.like(value, name=f"{place}_{name}", reset_less=True, src_loc_at=1)
            self._m.d.sync += registers[name].eq(value)
        return SimpleNamespace(**registers)


def delayed(m: Module, value: Value, cycles: int, name: str):
    """Return a value or view delayed by 0 or more cycles, in registers of the sync domain without reset."""
    for cycle in range(1, cycles + 1):
        late = Signal.like(value, name=f"{name}_{cycle}", reset_less=True)
        m.d.sync += late.eq(value)
        value = late
    return value
