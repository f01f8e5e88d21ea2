"""`jit`: functions of JAX on the simulated machine."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.xla.compiled import Compiled, compile_graph
from neuroncore_rtl.frontends.xla.emit.emission import Options
from neuroncore_rtl.frontends.xla.graph.text import graph_text
from neuroncore_rtl.run import Result
from neuroncore_rtl.run.settings import machine_of
from neuroncore_rtl.run.sim.packages import require_packages
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
        preset: the machine, as for `run`.
        variables: parameters of the machine and variables of a run, as for `run`.
        target: "rtl", compared with golden byte for byte; "golden"; "model"; or a `Target`.
        auto_cast: which float32 values the machine may round: "none", or "matmult", the operands of products.
        auto_cast_type: their format: "bf16", "fp16", "tf32" or "fp8e4".
        order: "scheduled", or "program" for the order of emission.
        static_argnums: positions of arguments that are no arrays, as for `jax.jit`.
        static_argnames: names of such arguments.
    """
    statics = {"static_argnums": static_argnums, "static_argnames": static_argnames}
    return Jitted(function, preset, target, Options(auto_cast, auto_cast_type), order, statics, variables)


class Jitted:
    """A function of JAX arrays, compiled once for each combination of shapes, types and static arguments.

    Attributes:
        result: the `Result` of the last call.
        compiled: the `Compiled` of the last call.
    """

    def __init__(self, function, preset, target, options: Options, order: str, statics: dict, variables: dict):
        jax = _jax()
        self.function = jax.jit(function, keep_unused=True, **statics)
        self.target, self.options, self.order = target, options, order
        self.config, self.variables = machine_of(preset, variables)
        self.result: Result | None = None
        self.compiled: Compiled | None = None
        self._cache: dict[Any, tuple[Compiled, Any]] = {}
        self._statics = statics

    @property
    def report(self) -> str:
        """Cycles, utilisation, stalls and costly lines of the last call."""
        return str(self.result)

    @property
    def ir(self) -> str:
        """Text of the graph of the last call."""
        return "" if self.compiled is None else graph_text(self.compiled.graph)

    def compile(self, *args, **kwargs) -> Compiled:
        """Return the program for arguments of these shapes and types."""
        return self._compile(args, kwargs)[0]

    def _compile(self, args: tuple, kwargs: dict) -> tuple[Compiled, Any]:
        jax = _jax()
        arrays, others = self._arguments(args, kwargs)
        leaves, tree = jax.tree.flatten(arrays)
        key = tree, tuple(jax.typeof(leaf) for leaf in leaves), others
        if key not in self._cache:
            from neuroncore_rtl.frontends.xla.reading.module import read_module

            lowered = self.function.lower(*args, **kwargs)
            graph = read_module(lowered.compiler_ir("stablehlo"))
            self._cache[key] = compile_graph(graph, self.config, self.options, self.order), lowered.out_tree
        return self._cache[key]

    def _arguments(self, args: tuple, kwargs: dict) -> tuple[tuple[list, dict], tuple]:
        """Return the arguments that are arrays, and the static ones."""
        numbers, names = self._statics["static_argnums"], self._statics["static_argnames"]
        numbers = (
            {number % len(args) for number in ((numbers,) if isinstance(numbers, int) else numbers)} if args else ()
        )
        names = (names,) if isinstance(names, str) else names
        arrays = [arg for place, arg in enumerate(args) if place not in numbers]
        fixed = tuple(args[place] for place in sorted(numbers))
        named = tuple((name, kwargs[name]) for name in sorted(kwargs) if name in names)
        return (arrays, {name: value for name, value in kwargs.items() if name not in names}), (fixed, named)

    def __call__(self, *args, **kwargs) -> Any:
        """Run the function; return JAX arrays."""
        jax = _jax()
        compiled, tree = self._compile(args, kwargs)
        leaves = jax.tree.leaves(self._arguments(args, kwargs)[0])
        kinds = [value.type.dtype for value in compiled.graph.arguments]
        arrays = [np.asarray(leaf, kind) for leaf, kind in zip(leaves, kinds, strict=True)]
        found, self.result = compiled.execute(arrays, self.target, **self.variables)
        self.compiled = compiled
        return jax.tree.unflatten(tree, [jax.numpy.asarray(one) for one in found])


def _jax() -> Any:
    """Return the package jax; MissingTool if it cannot be installed."""
    require_packages("jax")
    return importlib.import_module("jax")
