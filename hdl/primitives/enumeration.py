"""Enumerations of `spec` with a width, so that ports are typed and waveforms show names."""

import sys
import types
from collections.abc import Mapping

from amaranth import unsigned
from amaranth.lib import enum

__all__ = ["typed_enum"]


def typed_enum(name: str, members: type | Mapping[str, int], bits: int) -> type[enum.Enum]:
    """Return an Amaranth enumeration of `bits` bits with the members that fit into them.

    If no member is zero, a member `NONE` = 0 is added, because 0 is the value of a cleared register.

    Arguments:
        name: name in waveforms and messages.
        members: an enumeration class of `spec`, or values by name.
        bits: width.
    """
    values = members if isinstance(members, Mapping) else {member.name: int(member) for member in members}
    values = {member: value for member, value in values.items() if value < 1 << bits}
    if 0 not in values.values():
        values = {"NONE": 0} | values

    module = sys._getframe(1).f_globals["__name__"]  # the caller's module, as for a class written there

    def fill(namespace):
        namespace["__module__"] = module
        for member, value in values.items():
            namespace[member] = value

    return types.new_class(name, (enum.Enum,), {"shape": unsigned(bits)}, fill)
