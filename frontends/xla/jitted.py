"""`jit`: functions of JAX on the simulated machine."""

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.xla.options import Options, options_of, rounding_seed_of
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.frontends.xla.statics import StaticArguments
from neuroncore_rtl.run import Result
from neuroncore_rtl.run.compiled import Compiled
from neuroncore_rtl.run.compiled_function import CompiledFunction
from neuroncore_rtl.run.settings import machine_of
from neuroncore_rtl.run.sim.packages import require_packages
from neuroncore_rtl.run.trees import form_of
from neuroncore_rtl.spec.config import Config

__all__ = ["Jitted", "Lowered", "jit"]

PATIENCE = 3
"""Compilations for new shapes after which a message recommends padding."""

RECORD = "NEURONCORE_RTL_RECORD"
"""Variable of the environment with a folder: calls return zeros, and write there what they would compile."""

KEYS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
"""Generators of JAX by the type of their keys."""

HOSTS = ("cpu", "neuron")
"""Platforms of JAX whose arrays are in this computer's memory."""


def jit(
    function: Callable,
    *,
    preset: str | Config = "small",
    target: Any = "rtl",
    auto_cast: str | None = None,
    auto_cast_type: str | None = None,
    rounding: str | None = None,
    rounding_seed: int | None = None,
    order: str = "scheduled",
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | tuple[int, ...] | None = None,
    cache: str | Path | None = None,
    **variables,
) -> "Jitted":
    """Return a function that runs a pure JAX function on the machine.

    Arguments:
        function: a function that `jax.jit` accepts, or one that it returned.
        preset: the machine, as for `run`.
        variables: parameters of the machine and variables of a run, as for `run`.
        target: "rtl", compared with golden byte for byte; "golden"; "model"; or a `Target`.
        auto_cast: which float32 values the machine may round: "none"; "matmult", the operands of products; or "all";
            default the flag of the variable NEURON_CC_FLAGS, or "none".
        auto_cast_type: their format: "bf16", "fp16", "tf32" or "fp8_e4m3"; default the flag, or "bf16".
        rounding: how results are rounded to floats narrower than float32: "nearest", to even, or "stochastic", by other
            random words in each call; default the variable NEURON_RT_STOCHASTIC_ROUNDING_EN, 0 or 1, or "nearest".
        rounding_seed: number that determines these words; default NEURON_RT_STOCHASTIC_ROUNDING_SEED, or 0.
        order: "scheduled", or "program" for the order of emission.
        static_argnums: positions of arguments that are no arrays, as for `jax.jit`.
        static_argnames: names of such arguments.
        donate_argnums: positions of arguments whose JAX arrays a call uses up, as for `jax.jit`.
        cache: the folder of compiled programs, "" for none; default the variable NEURON_COMPILE_CACHE_URL, or a folder
            of generated files.
    """
    statics = StaticArguments.of(function, static_argnums, static_argnames)
    names = {"static_argnums": statics.numbers, "static_argnames": statics.names}
    pure = _jax().jit(function, keep_unused=True, donate_argnums=donate_argnums, **names)
    options = options_of(auto_cast=auto_cast, auto_cast_type=auto_cast_type, rounding=rounding)
    seed = rounding_seed_of(rounding_seed)
    return Jitted(pure, preset, target, options, seed, order, statics, cache, variables)


class Jitted:
    """A function of JAX arrays, compiled once for each combination of shapes, types and static arguments.

    Attributes:
        result: the `Result` of the last call.
        compiled: the `Compiled` of the last call.
        calls: number of calls so far, which determines the words of stochastic rounding; a lower one replays calls.
    """

    def __init__(
        self, function, preset, target, options: Options, seed: int, order: str, statics, cache, variables: dict
    ):
        self.function = function
        self.config, self.variables = machine_of(preset, variables)
        self.target, self.options, self.seed, self.order, self.cache = target, options, seed, order, cache
        self.calls = 0
        self.result: Result | None = None
        self.compiled: Compiled | None = None
        self._known: dict[Any, CompiledFunction] = {}
        self._statics: StaticArguments = statics

    @property
    def report(self) -> str:
        """Cycles, utilisation, stalls and costly lines of the last call."""
        return str(self.result)

    @property
    def ir(self) -> str:
        """Text of the graph of the last call."""
        return "" if self.compiled is None else self.compiled.ir

    def lower(self, *args, **kwargs) -> "Lowered":
        """Return the function in StableHLO for arguments like these: arrays, or `jax.ShapeDtypeStruct`."""
        return Lowered(self, self.function.trace(*args, **kwargs))

    def __call__(self, *args, **kwargs) -> Any:
        """Run the function; return JAX arrays."""
        jax = _jax()
        arrays, others = self._statics.separate(args, kwargs)
        leaves, tree = jax.tree.flatten(arrays)
        leaves = _checked(leaves)
        key = tree, tuple(map(jax.typeof, leaves)), others
        if key not in self._known:
            lowered = self.lower(*args, **kwargs)
            self._announce(key, lowered)
            if folder := os.environ.get(RECORD):
                return lowered.recorded(Path(folder))
            self._known[key] = lowered.compile()
        executable = self._known[key]
        executable.calls, self.calls = self.calls, self.calls + 1
        found = executable.run(leaves)
        self.compiled, self.result = executable.compiled, executable.result
        return found

    def _announce(self, key: tuple, lowered: "Lowered") -> None:
        """Say on stderr why the function is compiled again."""
        if not self._known:
            return
        (tree, types, _), (before, kinds, _) = key, [*self._known][-1]
        changed = [one for one in zip(lowered.names, types, kinds, strict=False) if one[1] != one[2]]
        what = "its arguments are of another tree" if tree != before else "a static argument has changed"
        if changed and tree == before:
            name, now, then = changed[0]
            what = f"{name} is {now.str_short()}, not {then.str_short()}"
        if len(self._known) >= PATIENCE:
            what += f"; {len(self._known)} programs exist already: pad the arguments to few shapes"
        print(f"{lowered.traced.fun_name} is compiled anew: {what}", file=sys.stderr)


@dataclass(frozen=True)
class Lowered:
    """A function in StableHLO for arguments of certain shapes and types; `traced` is JAX's traced function."""

    of: Jitted
    traced: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays among the arguments, such as "params['up']"."""
        return self.traced.jaxpr.jaxpr.debug_info.arg_names

    @cached_property
    def lowered(self) -> Any:
        """The lowered function of JAX: for a CPU, or, if that calls LAPACK, for a platform without a library."""
        lowered = self.traced.lower()
        if "@lapack_" in lowered.compiler_ir("stablehlo").operation.get_asm(large_elements_limit=1):
            with suppress(NotImplementedError):  # then the call is refused, with the user's line
                return self.traced.lower(lowering_platforms=("neuron",))
        return lowered

    def as_text(self) -> str:
        """Return the text of StableHLO."""
        return self.lowered.as_text()

    def compile(self) -> CompiledFunction:
        """Return the compiled function; Refused, with your line, if the machine cannot run it."""
        tree, of, back, out = _jax().tree, self.of, self.lowered.in_tree, self.lowered.out_tree
        traced = self.traced  # functions of `self` would keep all in a circle
        return CompiledFunction(
            compiled=self._work().compiled(),
            names=self.names,
            flatten=lambda args, kwargs: _leaves(args, kwargs, back),
            unflatten=lambda arrays: tree.unflatten(out, map(_result, arrays, tree.leaves(traced.out_info))),
            forms=lambda: [form_of(one.unflatten(range(one.num_leaves)), int) for one in (back, out)],
            donated=[one.donated for one in tree.leaves(self.lowered.args_info)],
            target=of.target,
            variables=of.variables,
            seed=of.seed,
        )

    def recorded(self, folder: Path) -> Any:
        """Write what must be compiled to a folder; return zeros as the result."""
        self._work().write(folder)
        jax = _jax()
        return jax.tree.map(lambda one: jax.numpy.zeros(one.shape, one.dtype), self.lowered.out_info)

    def _work(self) -> Any:
        from neuroncore_rtl.frontends.xla.cache import Compilation, model_folder

        of, module = self.of, self.lowered.compiler_ir("stablehlo")
        return Compilation(self.traced.fun_name, module, of.config, of.options, of.order, model_folder(of.cache))


def _leaves(args: tuple, kwargs: dict, wanted: Any) -> list:
    """Return the arrays of arguments; Refused if they form another tree."""
    leaves, tree = _jax().tree.flatten((args, kwargs))
    if tree != wanted:
        raise Refused(f"the arguments must form the tree {wanted}, as compiled, not {tree}")
    return _checked(leaves)


def _checked(leaves: list) -> list:
    """Return arrays, random keys as their numbers; Refused for arrays of JAX that cannot be read."""
    jax, found = _jax(), []
    for at, array in enumerate(leaves):
        if isinstance(array, jax.Array):
            rule = ""
            if isinstance(array, jax.core.Tracer):
                rule = "be an array, not traced: transform a function before neuroncore_rtl.jit, not after it"
            elif array.is_deleted():
                rule = "not be used after it was donated"
            elif others := {one.platform for one in array.devices()} - {*HOSTS}:
                rule = f"be an array of the host, not of {', '.join(others)}; numpy.asarray copies it"
            if rule:
                raise Refused(f"array {at} of the arguments, {array.aval.str_short()}, must {rule}")
            if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
                array = jax.random.key_data(array)
        elif getattr(array, "dtype", None) == jax.dtypes.float0:
            array = np.zeros(array.shape, bool)  # as in StableHLO
        found.append(array)
    return found


def _result(array: Any, kind: Any) -> Any:
    """Return an array of JAX, weakly typed if JAX's is, or random keys of their numbers."""
    jax = _jax()
    if jax.dtypes.issubdtype(kind.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(array, impl=KEYS[str(kind.dtype)])
    if kind.dtype == jax.dtypes.float0:
        return np.zeros(kind.shape, kind.dtype)
    found = jax.device_put(array)  # `asarray` would compile a copy for each shape
    if not kind.weak_type:
        return found
    return type(found)(found.aval.update(weak_type=True), found.sharding, [found], committed=found.committed)


def _jax() -> Any:
    """Return the package jax; MissingTool if it cannot be installed."""
    require_packages("jax")
    return importlib.import_module("jax")
