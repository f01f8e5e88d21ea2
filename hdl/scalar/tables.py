"""Tables of the activation functions as read-only memories, one copy for all lanes of a block.

A memory is at most 64 bits wide, the widest word that simulators handle as one. A segment is therefore spread over
three memories, each read in the cycle that needs its coefficients: the pipeline carries the segment's index, not the
coefficients. On an FPGA a memory becomes one block RAM per two lanes.
"""

from collections.abc import Sequence

from amaranth import Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.enumeration import typed_enum
from neuroncore_rtl.spec import functions
from neuroncore_rtl.spec.functions import layout
from neuroncore_rtl.spec.functions.catalogue import FUNCTIONS

__all__ = ["FUNCTION_BITS", "ControlRow", "Coordinate", "Factor", "FunctionTables", "Scale", "Source", "TableReader"]


_FIELDS = layout.CONTROL_FIELDS

Coordinate = typed_enum("Coordinate", layout.Coordinate, _FIELDS["coordinate"])
Source = typed_enum("Source", layout.Source, _FIELDS["source"])
Factor = typed_enum("Factor", layout.Factor, _FIELDS["factor"])
Scale = typed_enum("Scale", layout.Scale, _FIELDS["scale"])

_TYPES = {"coordinate": Coordinate, "source": Source, "factor": Factor, "scale": Scale}

ControlRow = data.StructLayout({name: _TYPES.get(name, unsigned(width)) for name, width in _FIELDS.items()})
"""Row of the control table: the fields of `CONTROL_FIELDS`."""

FUNCTION_BITS = (len(FUNCTIONS) - 1).bit_length()
"""Bits of a function code."""

_COEFFICIENTS = layout.COEFFICIENT_FIELDS
_EXP2 = layout.EXP2_FIELDS
_HALF_WINDOW = layout.WINDOW_BITS // 2

_ADDRESS_BITS = {
    "control": FUNCTION_BITS + 1 + layout.ROW_BITS,
    "special": FUNCTION_BITS + 2,
    "window_high": 7,
    "window_low": 7,
    "c3_c2": _FIELDS["base"],
    "c1": _FIELDS["base"],
    "c0_exponent": _FIELDS["base"],
    "exp2_c2_c1": layout.EXP2_INDEX_BITS,
    "exp2_c0": layout.EXP2_INDEX_BITS,
}
"""Address bits of each memory, highest field first; control: function, sign, row; special: function, infinite, sign."""

_WIDTHS = {
    "control": sum(_FIELDS.values()),
    "special": 5,
    "window_high": _HALF_WINDOW,
    "window_low": _HALF_WINDOW,
    "c3_c2": _COEFFICIENTS["c3"] + _COEFFICIENTS["c2"],
    "c1": _COEFFICIENTS["c1"],
    "c0_exponent": _COEFFICIENTS["c0"] + _COEFFICIENTS["exponent"],
    "exp2_c2_c1": _EXP2["c2"] + _EXP2["c1"],
    "exp2_c0": _EXP2["c0"],
}
"""Bits of a row of each memory; the first of two numbers is in the lower bits."""


class TableReader(wiring.Signature):
    """Read ports of all tables, seen from the reader: for each table an address, and one cycle later the row."""

    LATENCY = 1

    def __init__(self):
        addresses = {f"{name}_address": Out(bits) for name, bits in _ADDRESS_BITS.items()}
        rows = {f"{name}_row": In(bits) for name, bits in _WIDTHS.items()}
        super().__init__(addresses | rows)


def _concatenate(*numbers: tuple[int, int]) -> int:
    word = place = 0
    for value, width in numbers:
        word |= (value & (1 << width) - 1) << place
        place += width
    return word


def _contents() -> dict[str, Sequence[int]]:
    tables = functions.load_tables()
    windows = [layout.window(exponent) for exponent in range(1 << _ADDRESS_BITS["window_low"])]
    segments = [dict(zip(_COEFFICIENTS, segment, strict=True)) for segment in tables.segments]
    exp2 = [dict(zip(_EXP2, segment, strict=True)) for segment in tables.exp2]

    def fields(rows, widths, *names):
        return [_concatenate(*((row[name], widths[name]) for name in names)) for row in rows]

    return {
        "control": [
            _concatenate(*zip(row, _FIELDS.values(), strict=True)) for row in tables.control
        ],
        "special": [special | sign << 4 for function in FUNCTIONS.values() for special, sign in function.specials],
        "window_high": [window >> _HALF_WINDOW for window in windows],
        "window_low": [window & (1 << _HALF_WINDOW) - 1 for window in windows],
        "c3_c2": fields(segments, _COEFFICIENTS, "c3", "c2"),
        "c1": fields(segments, _COEFFICIENTS, "c1"),
        "c0_exponent": fields(segments, _COEFFICIENTS, "c0", "exponent"),
        "exp2_c2_c1": fields(exp2, _EXP2, "c2", "c1"),
        "exp2_c0": fields(exp2, _EXP2, "c0"),
    }  # fmt: skip


class FunctionTables(wiring.Component):
    """Tables of `spec.functions`.

    Arguments:
        readers: number of readers.

    Ports:
        readers: one `TableReader` each; a row follows its address by `TableReader.LATENCY` cycles.
    """

    def __init__(self, readers: int):
        super().__init__({"readers": In(TableReader()).array(readers)})

    def elaborate(self, platform):
        m = Module()
        for name, rows in _contents().items():
            memory = Memory(shape=unsigned(_WIDTHS[name]), depth=1 << _ADDRESS_BITS[name], init=rows)
            m.submodules[name] = memory
            for reader in self.readers:
                port = memory.read_port()
                m.d.comb += [
                    port.addr.eq(getattr(reader, f"{name}_address")),
                    getattr(reader, f"{name}_row").eq(port.data),
                ]
        return m
