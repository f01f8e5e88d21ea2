"""`jit`: functions of JAX on the simulated machine."""

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.xla.compiled import Compiled, compile_graph
from neuroncore_rtl.frontends.xla.emit.emission import Options
from neuroncore_rtl.frontends.xla.graph.text import text_of
from neuroncore_rtl.run import Result
from neuroncore_rtl.run.settings import machine_of
from neuroncore_rtl.spec.config import Config

__all__ = ["Jitted", "jit"]


def jit(
    function: Callable,
    *,
    preset: str | Config = "small",
    target: Any = "rtl",
    auto_cast: str = "none",
    auto_cast_type: str = "bf16",
    order: str = "scheduled",
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | tuple[str, ...] = (),
    **variables,
) -> "Jitted":
    """Return a function that runs a pure JAX function on the machine.

    Arguments:
        function: a function that `jax.jit` accepts, or one that it returned.
        preset, variables: the machine, its parameters and variables of a run, as for `run`.
        target: "rtl", compared with golden byte for byte; "golden"; "model"; or a `Target`.
        auto_cast: which float32 values the machine may round: "none", or "matmult", the operands of products.
        auto_cast_type: their format: "bf16", "fp16", "tf32" or "fp8e4".
        order: "scheduled", or "program" for the order of emission.
        static_argnums, static_argnames: arguments that are no arrays, as for `jax.jit`.
    """
    statics = {"static_argnums": static_argnums, "static_argnames": static_argnames}
    return Jitted(function, preset, target, Options(auto_cast, auto_cast_type), order, statics, variables)


class Jitted:
    """A function of JAX arrays, compiled once for each combination of shapes and types.

    Attributes:
        result: the `Result` of the last call.
        compiled: the `Compiled` of the last call.
    """

    def __init__(self, function, preset, target, options: Options, order: str, statics: dict, variables: dict):
        import jax

        self._jax = jax
        self.function = function if hasattr(function, "lower") else jax.jit(function, **statics)
        self.target, self.options, self.order = target, options, order
        self.config, self.variables = machine_of(preset, variables)
        self.result: Result | None = None
        self.compiled: Compiled | None = None
        self._cache: dict[Any, tuple[Compiled, Any]] = {}

    @property
    def report(self) -> str:
        """Cycles, utilisation, stalls and costly lines of the last call."""
        return str(self.result)

    @property
    def ir(self) -> str:
        """Text of the graph of the last call."""
        return "" if self.compiled is None else text_of(self.compiled.graph)

    def compile(self, *args, **kwargs) -> Compiled:
        """Return the program for arguments of these shapes and types."""
        return self._compile(args, kwargs)[0]

    def _compile(self, args: tuple, kwargs: dict) -> tuple[Compiled, Any]:
        traced = self.function.trace(*args, **kwargs)
        key = str(traced.jaxpr), traced.out_tree if hasattr(traced, "out_tree") else None
        if key not in self._cache:
            from jax import export

            from neuroncore_rtl.frontends.xla.reading.module import read_artifact

            exported = export.export(self.function, platforms=["cpu"])(*args, **kwargs)
            graph = read_artifact(exported.mlir_module_serialized)
            compiled = compile_graph(graph, self.config, self.options, self.order)
            self._cache[key] = compiled, exported
        return self._cache[key]

    def __call__(self, *args, **kwargs) -> Any:
        """Run the function; return JAX arrays."""
        compiled, exported = self._compile(args, kwargs)
        leaves = self._jax.tree.leaves((args, kwargs))
        kept = exported.module_kept_var_idx
        arrays = [np.asarray(leaves[index], exported.in_avals[index].dtype) for index in kept]
        found, self.result = compiled.execute(arrays, self.target, **self.variables)
        self.compiled = compiled
        return self._jax.tree.unflatten(exported.out_tree, [self._jax.numpy.asarray(one) for one in found])
