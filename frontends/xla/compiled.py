"""Compilation of a graph: its program as an image."""

import sys

from neuroncore_rtl.frontends.xla.casting import casted, rounded_operands
from neuroncore_rtl.frontends.xla.emit.block import emit_block
from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.expand import expanded
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Value
from neuroncore_rtl.frontends.xla.graph.text import graph_text
from neuroncore_rtl.frontends.xla.graph.types import CASTS, check_narrow
from neuroncore_rtl.frontends.xla.options import Options
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.frontends.xla.simplify import simplified
from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.kernels.program.allocator import NoRoom
from neuroncore_rtl.run.compiled import ArrayType, Compiled
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import HBM_ROOM
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Storage

__all__ = ["compile_graph"]

_LISTED = 5
"""Largest tensors that a refusal for lack of room lists."""


def compile_graph(
    graph: Graph,
    config: Config,
    options: Options = Options(),  # noqa: B008
    order: str = "program",
    name: str = "a graph",
) -> Compiled:
    """Return the program of a graph; Refused with the user's line if the machine cannot run it."""
    if options.is_stochastic and not (config.vector_random and config.scalar_random):
        raise Refused("a machine for stochastic rounding must have the units, VECTOR_RANDOM=1 and SCALAR_RANDOM=1")
    program = Program(config, order=order, stochastic=options.is_stochastic)
    program.space.limit(Storage.HBM, HBM_ROOM)
    emission = Emission(program, options)
    places: dict[Value, int] = {}

    def share() -> float:
        """Return the part that is done: emission takes half of the time, and the values of a graph are in order."""
        return max((places.get(value, 0) for value in [*emission.tensors]), default=0) / (2 * len(places) or 1)

    with progress(f"compiling {name}", "compiling", len(graph.operations) or 1, share):
        graph = simplified(graph)
        if options.auto_cast == "all":
            graph = simplified(casted(graph, CASTS[options.auto_cast_type]))
        graph = expanded(graph, config)
        if options.is_stochastic and options.auto_cast == "matmult":
            graph = rounded_operands(graph, CASTS[options.auto_cast_type])
        graph = simplified(graph)
        places |= {value: at for at, one in enumerate(graph.operations) for value in one.results}
        inputs = []
        try:
            for at, value in enumerate(graph.arguments):
                check_narrow(value.type, f"array {at} of the arguments")
                emission.new(value, "argument")
                inputs.append(program.space.hbm_tensors[-1])
            emission.owned.clear()
            emit_block(emission, graph)
            outputs = tuple(emission.tensor(value) for value in graph.results)
            image = build_image(program, [*emission.constants.items()])
        except NoRoom as error:
            raise Refused(_no_room(emission, error.end)) from None
        except RecursionError:
            rule = f"a value must be a view of fewer than {sys.getrecursionlimit()} other values one after another"
            raise Refused(f"{rule}; sys.setrecursionlimit allows more") from None
    # A report lists results, not the values between passes.
    shown = {tensor.address for tensor in (*inputs, *outputs, *emission.constants)}
    tensors = program.space.hbm_tensors
    tensors[:] = [tensor for tensor in tensors if tensor.address in shown]
    arguments, results = (
        tuple(ArrayType(value.shape, value.type.dtype) for value in values)
        for values in (graph.arguments, graph.results)
    )
    return Compiled(image, tuple(inputs), outputs, arguments, results, graph_text(graph), program)


def _no_room(emission: Emission, end: int) -> str:
    """Return the sentence for a model that exceeds HBM, with its largest values and their lines."""
    sizes = {tensor.address: tensor.size * tensor.format.bits // 8 for tensor in emission.program.space.hbm_tensors}
    owners = {tensor.address: value for value, tensor in reversed(emission.tensors.items())}
    wanted = emission.wanted
    room = {} if wanted is None else {wanted: wanted.size * wanted.type.bits // 8}
    room |= {value: sizes[at] for at, value in owners.items() if at in sizes}
    texts = []
    for value in sorted(room, key=room.__getitem__, reverse=True)[:_LISTED]:
        maker = emission.makers.get(value)
        texts.append(f"{value} of {maker.source.user if maker else 'the arguments'}")
    rule = f"values must have at most {HBM_ROOM:,} bytes of HBM together to be simulated, not {end:,} and more"
    return f"{rule}; the largest are {', '.join(texts)}"
