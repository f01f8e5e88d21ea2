"""Pipeline registers at named places, so that a unit's depth is a parameter and its arithmetic is written once."""

from types import SimpleNamespace

from amaranth import Module, Signal, Value

__all__ = ["Pipeline", "delayed"]


class Pipeline:
    """Places the registers of one feed-forward unit.

    Arguments:
        m: the unit's module; registers go to its sync domain, without reset.
        cuts: names of the places that hold a register.
    """

    def __init__(self, m: Module, cuts: tuple[str, ...]):
        self._m = m
        self._cuts = cuts

    def cut(self, place: str, **values: Value) -> SimpleNamespace:
        """Return a record of `values`, one cycle later if `place` holds a register, unchanged otherwise.

        Every value that is used beyond a place must pass through it. Place and field name the register in waveforms.
        """
        if place not in self._cuts:
            return SimpleNamespace(**values)
        registers = {}
        for name, value in values.items():
            # The source of the register is where the unit is cut.
            registers[name] = Signal.like(value, name=f"{place}_{name}", reset_less=True, src_loc_at=1)
            self._m.d.sync += registers[name].eq(value)
        return SimpleNamespace(**registers)


def delayed(m: Module, value: Value, cycles: int, name: str):
    """Return a value so many cycles later; registers without reset, if any.

    Arguments:
        m: the module; registers go to its sync domain.
        value: with its shape, which may be a structure's.
        cycles: how many.
        name: prefix of the registers in waveforms.
    """
    for cycle in range(1, cycles + 1):
        late = Signal.like(value, name=f"{name}_{cycle}", reset_less=True)
        m.d.sync += late.eq(value)
        value = late
    return value
