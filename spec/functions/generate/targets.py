"""Target functions of the polynomials, computed to the precision of the fit."""

from functools import cache

from neuroncore_rtl.spec.functions.generate.fit import mp, mpf

__all__ = [
    "arctan_over_z", "erf_over_z", "erf_slope", "gelu_slope", "log1p_over_fraction", "logistic", "mirrored",
    "mish_over_z", "normal_cdf", "one", "sigmoid_form_cdf", "sigmoid_form_slope", "sigmoid_slope", "silu_slope",
    "sine_over_quadrant", "sine_over_z", "softplus", "softplus_over_z", "tanh_form_cdf", "tanh_form_slope",
    "tanh_over_z", "tanh_slope", "times", "zero",
]  # fmt: skip

SIGMOID_FORM = mpf("1.702")
"""Factor of z in GELU's sigmoid form z * sigmoid(1.702 z)."""


def one(z):
    """Return 1."""
    return mpf(1)


def zero(z):
    """Return 0."""
    return mpf(0)


def logistic(z):
    """Return 1 / (1 + e**-z), the sigmoid."""
    return 1 / (1 + mp.exp(-z))


def silu_slope(z):
    """Return the derivative of z * logistic(z)."""
    return logistic(z) * (1 + z * logistic(-z))


def tanh_over_z(z):
    """Return tanh(z) / z."""
    return mp.tanh(z) / z if z else mpf(1)


def arctan_over_z(z):
    """Return arctan(z) / z."""
    return mp.atan(z) / z if z else mpf(1)


def erf_over_z(z):
    """Return erf(z) / z."""
    return mp.erf(z) / z if z else 2 / mp.sqrt(mp.pi)


def sine_over_z(z):
    """Return sin(z) / z."""
    return mp.sin(z) / z if z else mpf(1)


def sine_over_quadrant(r):
    """Return sin(pi / 2 * r) / r, where r in [0, 1) is the position within a quadrant."""
    return mp.sin(mp.pi / 2 * r) / r if r else mp.pi / 2


def softplus(z):
    """Return ln(1 + e**z)."""
    return mp.log1p(mp.exp(z))


def normal_cdf(z):
    """Return the standard normal distribution function."""
    return mp.erfc(-z / mp.sqrt(2)) / 2


def normal_density(z):
    """Return the derivative of `normal_cdf`."""
    return mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)


def gelu_slope(z):
    """Return the derivative of z * normal_cdf(z)."""
    return normal_cdf(z) + z * normal_density(z)


def tanh_form_argument(z):
    """Return twice the argument of tanh in GELU's approximation."""
    return mp.sqrt(8 / mp.pi) * (z + mpf("0.044715") * z**3)


def tanh_form_cdf(z):
    """Return gelu(z) / z in GELU's tanh approximation."""
    return logistic(tanh_form_argument(z))


def tanh_form_slope(z):
    """Return the derivative of z * tanh_form_cdf(z)."""
    cdf, rest = logistic(tanh_form_argument(z)), logistic(-tanh_form_argument(z))
    return cdf + z * cdf * rest * mp.sqrt(8 / mp.pi) * (1 + 3 * mpf("0.044715") * z * z)


def sigmoid_form_cdf(z):
    """Return gelu(z) / z in GELU's sigmoid approximation."""
    return logistic(SIGMOID_FORM * z)


def sigmoid_form_slope(z):
    """Return the derivative of z * sigmoid_form_cdf(z)."""
    return silu_slope(SIGMOID_FORM * z)


def mish_over_z(z):
    """Return tanh(softplus(z)), without cancellation for small values."""
    n = mp.exp(z) * (mp.exp(z) + 2)
    return n / (n + 2)


def tanh_slope(z):
    """Return the derivative of tanh(z)."""
    return mp.sech(z) ** 2


def sigmoid_slope(z):
    """Return the derivative of logistic(z)."""
    return logistic(z) * logistic(-z)


def erf_slope(z):
    """Return the derivative of erf(z)."""
    return 2 / mp.sqrt(mp.pi) * mp.exp(-z * z)


def log1p_over_fraction(x):
    """Return ln(1 + f) / f, where 1 + f is the significand 1 + x, or half of the significand if x is at least 0.5."""
    f = x if x < 0.5 else (x - 1) / 2
    return mp.log1p(f) / f if f else mpf(1)


def softplus_over_z(z):
    """Return softplus(z) / z."""
    return softplus(z) / z


def times(target):
    """Return the function z -> target(z) * z."""
    return lambda z: target(z) * z


@cache
def mirrored(target):
    """Return the function z -> target(-z)."""
    return lambda z: target(-z)
