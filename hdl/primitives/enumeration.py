"""Enumerations of `spec` as hardware has them: with a shape, so that ports are typed and waveforms show names."""

import sys
import types
from collections.abc import Mapping

from amaranth import unsigned
from amaranth.lib import enum

__all__ = ["typed_enum"]


def typed_enum(name: str, members: type | Mapping[str, int], bits: int) -> type[enum.Enum]:
    """Return an Amaranth enumeration of `bits` bits, with the members that fit into them.

    Where none of them is zero, which is what a register without a value holds, `NONE` is.

    Arguments:
        name: of the enumeration, in waveforms and messages.
        members: an enumeration of `spec`, or values by name.
        bits: its width.
    """
    values = members if isinstance(members, Mapping) else {member.name: int(member) for member in members}
    values = {member: value for member, value in values.items() if value < 1 << bits}
    if 0 not in values.values():
        values = {"NONE": 0} | values

    module = sys._getframe(1).f_globals["__name__"]  # the caller's, as of a class that it writes

    def fill(namespace):
        namespace["__module__"] = module
        for member, value in values.items():
            namespace[member] = value

    return types.new_class(name, (enum.Enum,), {"shape": unsigned(bits)}, fill)
