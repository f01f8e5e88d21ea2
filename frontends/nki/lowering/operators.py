"""Operations and functions by their names in the interface, which accepts its own functions and numpy's."""

from neuroncore_rtl.spec.isa import AluOp

__all__ = ["ACTIVATIONS", "OPERATOR_CALLS", "ROUNDINGS", "activation_named", "name_of", "operation", "with_operand"]

OPERATOR_CALLS = {
    "add": AluOp.ADD, "subtract": AluOp.SUBTRACT, "multiply": AluOp.MULTIPLY, "divide": AluOp.DIVIDE,
    "maximum": AluOp.MAX, "minimum": AluOp.MIN, "abs_max": AluOp.LARGER_MAGNITUDE,
    "abs_min": AluOp.SMALLER_MAGNITUDE, "power": AluOp.POWER, "mod": AluOp.MOD, "fmod": AluOp.FMOD,
    "equal": AluOp.IS_EQUAL, "not_equal": AluOp.NOT_EQUAL, "greater": AluOp.IS_GT, "greater_equal": AluOp.IS_GE,
    "less": AluOp.IS_LT, "less_equal": AluOp.IS_LE, "logical_and": AluOp.LOGICAL_AND, "logical_or": AluOp.LOGICAL_OR,
    "logical_xor": AluOp.LOGICAL_XOR, "bitwise_and": AluOp.BITWISE_AND, "bitwise_or": AluOp.BITWISE_OR,
    "bitwise_xor": AluOp.BITWISE_XOR, "left_shift": AluOp.LOGICAL_SHIFT_LEFT,
    "right_shift": AluOp.LOGICAL_SHIFT_RIGHT, "bypass": AluOp.BYPASS,
}  # fmt: skip
"""Binary operations."""

ROUNDINGS = {"floor": AluOp.FLOOR, "ceil": AluOp.CEIL, "trunc": AluOp.TRUNC}
"""Operations that use only their first operand."""

UNARY = {
    "abs": (AluOp.ABSOLUTE_MAX, 0.0), "relu": (AluOp.MAX, 0.0), "square": (AluOp.POWER, 2.0),
    "reciprocal": (AluOp.POWER, -1.0),
}  # fmt: skip
"""Unary functions as binary operations with a constant."""

_ALIASES = {
    "max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add", "prod": "multiply",
    "true_divide": "divide", "log": "log", "absolute": "abs", "remainder": "mod",
}  # fmt: skip

ACTIVATIONS = {
    "copy": "identity", "identity": "identity", "square": "square", "abs": "abs", "sign": "sign", "relu": "relu",
    "exp": "exp", "log": "ln", "sqrt": "sqrt", "rsqrt": "rsqrt", "reciprocal": "reciprocal", "tanh": "tanh",
    "sigmoid": "sigmoid", "erf": "erf", "erf_dx": "derf", "gelu": "gelu", "gelu_dx": "dgelu",
    "gelu_apprx_tanh": "gelu_tanh", "gelu_apprx_sigmoid": "gelu_sigmoid", "gelu_apprx_sigmoid_dx": "dgelu_sigmoid",
    "silu": "silu", "silu_dx": "dsilu", "softplus": "softplus", "mish": "mish", "sin": "sin", "cos": "cos",
    "arctan": "arctan",
}  # fmt: skip
"""Unary functions: the interface's name and the machine's."""


def name_of(given: object) -> str:
    """Return the canonical name of an operation or function that a kernel passes."""
    name = given if isinstance(given, str) else getattr(given, "__name__", repr(given))
    return _ALIASES.get(name, name)


def operation(given: object) -> AluOp:
    """Return the machine's operation; ValueError if it is missing."""
    if given is None or isinstance(given, AluOp):
        return AluOp.BYPASS if given is None else given
    name = name_of(given)
    known = OPERATOR_CALLS | ROUNDINGS
    if name not in known:
        raise ValueError(f"op must be one of {', '.join(known)}, not {name}")
    return known[name]


def with_operand(given: object, operand: object) -> tuple[AluOp, object]:
    """Return the operation and its second operand, which is a constant for unary functions."""
    return UNARY.get(name_of(given)) or (operation(given), operand)


def activation_named(given: object) -> str:
    """Return the machine's name of a function; ValueError if it is missing."""
    name = name_of(given)
    if name not in ACTIVATIONS:
        raise ValueError(f"op must be a function that the machine has ({', '.join(ACTIVATIONS)}), not {name}")
    return ACTIVATIONS[name]
