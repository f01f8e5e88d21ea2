"""Table of the operations of StableHLO and CHLO: exact, different, or refused, and why.

`python -m tests.frontends.xla.table` writes it to docs/jax.md.
"""

from collections.abc import Iterator

from neuroncore_rtl import ROOT
from neuroncore_rtl.kernels.text.markdown import markdown_table, replace_between

__all__ = ["rows", "updated_page"]

PAGE = ROOT / "docs" / "jax.md"
BEGIN, END = "<!-- operations -->\n", "<!-- /operations -->"

_FUNCTION = "the machine's function, see [activation.md](activation.md)"
_DIFFERENT = {
    "atan2": "arctan of a quotient, within 2^-20",
    "cbrt": "by exp and ln and a step of Newton's, within 2 ulp",
    "convert": "integers of more than 24 bits are rounded once to a narrow float, by JAX's CPU twice",
    "convolution": "the order of the sums; no products with padding, so that 0 times NaN is not added",
    "cosine": _FUNCTION,
    "divide": "by the inverse where many elements have one divisor, as XLA's CPU; narrow floats rounded once",
    **dict.fromkeys(("dot", "dot_general"), "the order of the sums, in tiles of the array's rows"),
    "erf": _FUNCTION,
    "cholesky": "float sums: their order; at most 128 rows",
    "erfc": "2 gelu(z) / z with z = -sqrt(2) x, within 150 ulp, and 1 - erf(x) near 0",
    "exponential": _FUNCTION,
    "exponential_minus_one": "by tanh near 0, else exp(x) - 1",
    "log": _FUNCTION,
    "log_plus_one": "ln(u) x / (u - 1) with u = 1 + x",
    "logistic": _FUNCTION,
    "power": "the vector engine's power, see [vector_engine.md](vector_engine.md)",
    "reduce": "float sums: their order",
    "reduce_window": "float sums: their order",
    "rsqrt": _FUNCTION,
    "scatter": "float sums: their order",
    "select_and_scatter": "float sums: their order",
    "sine": _FUNCTION,
    "sqrt": _FUNCTION,
    "tan": "sin(x) / cos(x)",
    "tanh": _FUNCTION,
    "triangular_solve": "float sums: their order; at most 128 rows",
}  # fmt: skip
_HOST = "no instructions for it; compute it on the host"
_CHIPS = "a program is of one core"
_SHAPES = "shapes must be constants"
_REFUSED = {
    "fft": _HOST,
    "custom_call": f"{_HOST}; but `ApproxTopK`, of `jax.lax.approx_max_k`, is an exact sort",
    "complex": "no complex numbers",
    **dict.fromkeys(("infeed", "outfeed", "send", "recv", "async_start", "async_done"), "no side effects"),
    **dict.fromkeys(("tuple", "get_tuple_element"), "values must be arrays"),
    **dict.fromkeys(("get_dimension_size", "set_dimension_size", "real_dynamic_slice"), _SHAPES),
    **dict.fromkeys(("uniform_quantize", "uniform_dequantize"), "no quantised types"),
    **dict.fromkeys(("rng",), "not reproducible; use jax.random"),
    **dict.fromkeys(("partition_id", "replica_id", "reduce_scatter", "cross-replica-sum"), _CHIPS),
}  # fmt: skip
_INLINED = {"composite", "optimization_barrier", "return", "after_all", "create_token"}


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield name, status and note of each operation of jaxlib's dialects."""
    from jaxlib.mlir.dialects import chlo, stablehlo

    from neuroncore_rtl.frontends.xla.reading.operations import READERS

    # jaxlib decomposes the other operations of CHLO into those of StableHLO.
    for dialect, prefix in ((stablehlo, "stablehlo."), (chlo, "chlo.")):
        names = {getattr(getattr(dialect, one), "OPERATION_NAME", "") for one in dir(dialect) if one.endswith("Op")}
        for name in sorted(name for name in names if name and not name.startswith("chlo._")):
            short = name.removeprefix(prefix)
            if name in READERS:
                yield name, "differs" if short in _DIFFERENT else "exact", _DIFFERENT.get(short, "")
            elif short in _INLINED:
                yield name, "exact", "no instruction"
            elif prefix == "stablehlo.":
                yield name, "refused", _reason(short)


def _reason(short: str) -> str:
    if short.startswith(("all_", "collective_")):
        return _CHIPS
    return _REFUSED.get(short, _SHAPES if short.startswith("dynamic_") else "JAX does not make it")


def updated_page(text: str) -> str:
    """Return docs/jax.md with its table."""
    table = markdown_table(("operation", "status", "note"), ((f"`{name}`", *others) for name, *others in rows()))
    return replace_between(text, BEGIN, END, f"{table}\n")


if __name__ == "__main__":
    PAGE.write_text(updated_page(PAGE.read_text()))
