"""Activation functions: names, codes, derivatives, and results at zeros and infinities."""

from dataclasses import dataclass
from typing import Any

from neuroncore_rtl.spec.functions.layout import Special

__all__ = ["FUNCTIONS", "TRIGONOMETRIC", "Function", "function_named"]

Signed = tuple[Special, int]

_ZERO, _ONE, _HALF, _INF, _NAN = Special.ZERO, Special.ONE, Special.HALF, Special.INFINITY, Special.NAN


@dataclass(frozen=True)
class Function:
    """Activation function y = f(z).

    Arguments:
        name: name in programs and texts.
        code: code in instructions.
        specials: results at +0, -0, +Inf and -Inf, each a magnitude and a sign bit.
        derivative_of: function that this one is the derivative of, or None.
        has_alpha: whether the function uses the parameter alpha.
        parity: whether the control row depends on the parity of z's exponent only.
    """

    name: str
    code: int
    specials: tuple[Signed, Signed, Signed, Signed]
    derivative_of: str | None = None
    has_alpha: bool = False
    parity: bool = False


def _records() -> tuple[tuple[str, tuple[Signed, Signed, Signed, Signed], dict[str, Any]], ...]:
    plus, minus = 0, 1
    odd_zeros = (_ZERO, plus), (_ZERO, minus)
    nan = (_NAN, plus)

    def both(special):
        return (special, plus), (special, plus)

    gate = (*odd_zeros, (_INF, plus), (_ZERO, minus))
    step = (_ONE, plus), (_ZERO, plus)
    derivative_of_gate = (*both(_HALF), (_ONE, plus), (_ZERO, minus))
    alpha = (Special.ALPHA, plus)
    alpha_times_z = (Special.ALPHA_TIMES_Z, plus)
    return (
        ("identity", (*odd_zeros, (_INF, plus), (_INF, minus)), {}),
        ("square", (*both(_ZERO), *both(_INF)), {}),
        ("abs", (*both(_ZERO), *both(_INF)), {}),
        ("sign", (*odd_zeros, (_ONE, plus), (_ONE, minus)), {}),
        ("relu", (*both(_ZERO), (_INF, plus), (_ZERO, plus)), {}),
        ("leaky_relu", ((_ZERO, plus), alpha_times_z, (_INF, plus), alpha_times_z), {"has_alpha": True}),
        ("exp", (*both(_ONE), (_INF, plus), (_ZERO, plus)), {}),
        ("ln", ((_INF, minus), (_INF, minus), (_INF, plus), nan), {}),
        ("sqrt", (*odd_zeros, (_INF, plus), nan), {"parity": True}),
        ("rsqrt", ((_INF, plus), (_INF, minus), (_ZERO, plus), nan), {"parity": True}),
        ("reciprocal", ((_INF, plus), (_INF, minus), *odd_zeros), {}),
        ("tanh", (*odd_zeros, (_ONE, plus), (_ONE, minus)), {}),
        ("sigmoid", (*both(_HALF), *step), {}),
        ("erf", (*odd_zeros, (_ONE, plus), (_ONE, minus)), {}),
        ("gelu", gate, {}),
        ("gelu_tanh", gate, {}),
        ("silu", gate, {}),
        ("softplus", (*both(Special.LN2), (_INF, plus), (_ZERO, plus)), {}),
        ("sin", (*odd_zeros, nan, nan), {}),
        ("cos", (*both(_ONE), nan, nan), {}),
        ("dtanh", (*both(_ONE), *both(_ZERO)), {"derivative_of": "tanh"}),
        ("dsigmoid", (*both(Special.QUARTER), *both(_ZERO)), {"derivative_of": "sigmoid"}),
        ("derf", (*both(Special.TWO_OVER_ROOT_PI), *both(_ZERO)), {"derivative_of": "erf"}),
        ("dgelu", derivative_of_gate, {"derivative_of": "gelu"}),
        ("dgelu_tanh", derivative_of_gate, {"derivative_of": "gelu_tanh"}),
        ("dsilu", derivative_of_gate, {"derivative_of": "silu"}),
        ("dsoftplus", (*both(_HALF), *step), {"derivative_of": "softplus"}),
        ("drelu", (*both(_ZERO), *step), {"derivative_of": "relu"}),
        ("dleaky_relu", (alpha, alpha, (_ONE, plus), alpha), {"derivative_of": "leaky_relu", "has_alpha": True}),
        ("gelu_sigmoid", gate, {}),
        ("dgelu_sigmoid", derivative_of_gate, {"derivative_of": "gelu_sigmoid"}),
        ("mish", gate, {}),
        ("arctan", (*odd_zeros, (Special.HALF_PI, plus), (Special.HALF_PI, minus)), {}),
    )


FUNCTIONS: dict[str, Function] = {
    name: Function(name, code, specials, **fields) for code, (name, specials, fields) in enumerate(_records())
}
"""All functions by name, in the order of their codes."""

TRIGONOMETRIC = ("sin", "cos")
"""Functions that need the optional window of 2 / pi in the activation lanes."""


def function_named(name: str) -> Function:
    """Return the function called `name`; raise ValueError if no function has this name."""
    try:
        return FUNCTIONS[name]
    except KeyError:
        raise ValueError(f"function must be one of {', '.join(FUNCTIONS)}, not {name!r}") from None
