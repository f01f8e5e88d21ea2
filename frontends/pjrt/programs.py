"""Programs of JAX: compiled from portable StableHLO, executed on arrays of a core."""

from collections.abc import Sequence
from math import prod

from jaxlib._jax import CompileOptions
from jaxlib.mlir import ir

from neuroncore_rtl.frontends.pjrt.arrays import DeviceArray, code_of
from neuroncore_rtl.frontends.pjrt.core import CLIENT, JaxCore
from neuroncore_rtl.frontends.xla.cache import Compilation, model_folder
from neuroncore_rtl.frontends.xla.options import options_of, rounding_seed_of
from neuroncore_rtl.frontends.xla.reading.module import parse_artifact
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.run.compiled import ArrayType, word_of_call

__all__ = ["DeviceProgram"]

_DONATED = ("tf.aliasing_output", "jax.buffer_donor")
"""Attributes of arguments whose arrays a call uses up."""


class DeviceProgram:
    """A program on a core; Refused, with the user's line, if the machine cannot run it."""

    num_replicas = num_partitions = 1
    is_deleted = False

    def __init__(self, portable: bytes, options: bytes):
        self.portable, self.options = portable, options
        chosen = CompileOptions.ParseFromString(options)
        cores = chosen.num_replicas * chosen.num_partitions
        if cores != 1:
            raise Refused(f"a program must be of one core, not of {cores}; shard_map and sharded arrays need several")
        # The assignment's last byte is its only core, below 128.
        assigned = chosen.device_assignment
        self.device = CLIENT.devices[assigned.serialize()[-1] if assigned else 0]
        module = parse_artifact(portable)
        self.name = ir.StringAttr(module.operation.attributes["sym_name"]).value
        self.donated = _donated(module)
        work = Compilation(self.name, module, CLIENT.config, options_of(), "scheduled", model_folder(None))
        self.compiled = work.compiled()
        self.fingerprint = work.key
        self.kinds = [code_of(result.dtype) for result in self.compiled.results]
        CLIENT.programs += 1

    @property
    def executable(self) -> "DeviceProgram":
        return self

    @property
    def devices(self) -> list[JaxCore]:
        return [self.device]

    @property
    def num_outputs(self) -> int:
        return len(self.kinds)

    @property
    def types(self) -> list[int]:
        return self.kinds

    @property
    def code_bytes(self) -> int:
        return len(self.compiled.image.data)

    @property
    def argument_bytes(self) -> int:
        return _bytes(self.compiled.arguments)

    @property
    def output_bytes(self) -> int:
        return _bytes(self.compiled.results)

    def execute(
        self, arguments: Sequence[DeviceArray], kept: Sequence[int], device: JaxCore | None
    ) -> list[DeviceArray]:
        """Run the program; return its results. It uses up the donated arguments that are not among `kept`."""
        core = device or self.device
        core.hbm.note(self.code_bytes)
        for kind in self.compiled.results:  # before a run in vain
            core.hbm.check(_bytes([kind]), str(kind))
        words = word_of_call(rounding_seed_of(None), CLIENT.calls)  # before `target` counts this call
        found, result = self.compiled.execute([one.data for one in arguments], CLIENT.target(), words)
        CLIENT.cycles += result.cycles or 0
        for at in self.donated:
            if at not in kept:
                arguments[at].delete()
        return [DeviceArray(kind, core, values) for kind, values in zip(self.compiled.results, found, strict=True)]

    def lost(self, device: JaxCore | None) -> list[DeviceArray]:
        """Return results without values, of an interrupted call."""
        return [DeviceArray(kind, device or self.device) for kind in self.compiled.results]


def _bytes(types: Sequence[ArrayType]) -> int:
    return sum(one.dtype.itemsize * prod(one.shape) for one in types)


def _donated(module: ir.Module) -> list[int]:
    """Return the places of the arguments that a call uses up."""
    for one in module.body:
        attributes = one.operation.attributes
        if ir.StringAttr(attributes["sym_name"]).value == "main" and "arg_attrs" in attributes:
            each = [ir.DictAttr(found) for found in ir.ArrayAttr(attributes["arg_attrs"])]
            return [at for at, found in enumerate(each) if any(name in found for name in _DONATED)]
    return []
