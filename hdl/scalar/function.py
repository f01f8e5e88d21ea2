"""Activation functions: one datapath for all; tables select the function.

docs/activation.md defines every step and the names used here.
"""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.scalar.argument import Argument
from neuroncore_rtl.hdl.scalar.number import Number
from neuroncore_rtl.hdl.scalar.product import Product
from neuroncore_rtl.hdl.scalar.result import ResultStage
from neuroncore_rtl.hdl.scalar.tables import FUNCTION_BITS, TableReader

__all__ = ["FunctionUnit"]

_SHARED = ("significand", "exponent", "index", "t", "reduced", "source", "factor", "scale", "exp2", "sign", "special")
_READERS = {
    "argument": ("control", "special", "window_high", "window_low"),
    "product": ("c3_c2", "c1", "c0_exponent"),
    "result": ("exp2_c2_c1", "exp2_c0"),
}
"""Tables that each stage reads, by submodule."""


class FunctionUnit(wiring.Component):
    """Activation unit: y = function(z) in FP32, one per cycle.

    Matches docs/activation.md bit for bit; rounds once, to nearest even.

    Arguments:
        staged: give every step of the computation a separate pipeline stage.
        trigonometry: support `spec.functions.TRIGONOMETRIC`; else no step may need it.

    Ports:
        z: argument of the function, an FP32 word.
        function: code of the function in `spec.functions`.
        alpha: parameter of the function, `alpha_delay` cycles after z.
        tables: a reader of `hdl.scalar.tables.FunctionTables`.
        y: value of the function, an FP32 word in a register, `latency` cycles after z.
    """

    z: In(32)
    function: In(FUNCTION_BITS)
    alpha: In(Number)
    tables: Out(TableReader())
    y: Out(32)

    def __init__(self, staged: bool = False, trigonometry: bool = True):
        self.staged, self.trigonometry = staged, trigonometry
        self.latency, self.alpha_delay = self.latency_of(staged), self.alpha_delay_of(staged)
        super().__init__()

    @staticmethod
    def latency_of(staged: bool) -> int:
        return sum(len(part.CUTS[staged]) for part in (Argument, Product, ResultStage))

    @staticmethod
    def alpha_delay_of(staged: bool) -> int:
        return len(Argument.CUTS[staged]) + Product.CUTS[staged].index("polynomial")

    def elaborate(self, platform):
        m = Module()
        m.submodules.argument = argument = Argument(self.staged, self.trigonometry)
        m.submodules.product = product = Product(self.staged, self.trigonometry)
        m.submodules.result = result = ResultStage(self.staged)
        m.d.comb += [
            argument.z.eq(self.z),
            argument.function.eq(self.function),
            *(getattr(product, name).eq(getattr(argument, name)) for name in _SHARED),
            product.alpha.eq(self.alpha),
            result.total.eq(product.total),
            result.point.eq(product.point),
            result.exp2.eq(product.late_exp2),
            result.sign.eq(product.late_sign),
            result.special.eq(product.late_special),
            self.y.eq(result.out),
        ]
        parts = {"argument": argument, "product": product, "result": result}
        for part, names in _READERS.items():
            reader = parts[part].tables
            for name in names:
                m.d.comb += [
                    getattr(self.tables, f"{name}_address").eq(getattr(reader, f"{name}_address")),
                    getattr(reader, f"{name}_row").eq(getattr(self.tables, f"{name}_row")),
                ]
        return m
