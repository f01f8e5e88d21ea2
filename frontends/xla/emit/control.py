"""Loops and branches, executed by the controller; the values between rounds are in HBM."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.loops import counter_of
from neuroncore_rtl.frontends.xla.graph.operations import Branches, Graph, Value, While
from neuroncore_rtl.frontends.xla.graph.types import UNSIGNED32
from neuroncore_rtl.kernels.library.copy_hbm import copy_hbm
from neuroncore_rtl.kernels.program import HbmTensor
from neuroncore_rtl.kernels.program.flow import LOOP_ROUNDS, Register

__all__ = ["emit_case", "emit_while"]

EmitBlock = Callable[[Emission, Graph], None]
_MOST = (1 << 31) - 1
"""Maximum rounds of all loops together."""


def emit_while(emission: Emission, loop: While, emit_block: EmitBlock) -> None:
    """Append a loop; a counter that is less than a limit is the controller's, other conditions are computed."""
    carried, flow = [emission.new(value) for value in loop.results], emission.program.flow
    counter = counter_of(loop, emission.makers)
    for tensor, operand in zip(carried, loop.operands, strict=True):
        copy_hbm(emission.program, tensor, emission.tensor(operand))
    if counter is not None:
        first = loop.operands[counter.place] if counter.start is None else counter.start
        lower, upper = (_bound(emission, one) for one in (first, counter.limit))
        with _rounds(emission, counter.rounds), flow.loop(lower, upper, counter.step) as register:
            flow.store(carried[counter.place], register)
            _append_round(emission, loop.body, carried, emit_block, counter.place)
        flow.store(carried[counter.place], register)
        return
    test = flow.register(name="condition")
    _append_test(emission, loop.condition, carried, emit_block, test)
    with _rounds(emission, None), flow.loop_while(test):
        _append_round(emission, loop.body, carried, emit_block)
        _append_test(emission, loop.condition, carried, emit_block, test)


def _bound(emission: Emission, value: int | Value) -> int | Register:
    if isinstance(value, int):
        return value
    register = emission.program.flow.register(name="bound")
    emission.program.flow.load(register, emission.tensor(value))
    return register


@contextmanager
def _rounds(emission: Emission, rounds: int | None) -> Iterator[None]:
    """Let the program have the rounds of a loop for each round of the loops around it; None if not known."""
    outside, flow = emission.rounds, emission.program.flow
    emission.rounds = min(_MOST, outside * max(1, LOOP_ROUNDS if rounds is None else rounds))
    flow.rounds = min(_MOST, flow.rounds + emission.rounds)
    yield
    emission.rounds = outside


def _append_test(
    emission: Emission, condition: Graph, carried: Sequence[HbmTensor], emit_block: EmitBlock, test: Register
) -> None:
    with emission.inside():
        emission.tensors.update(zip(condition.arguments, carried, strict=True))
        emit_block(emission, condition)
        emission.program.flow.load(test, emission.tensor(condition.results[0]))


def _append_round(
    emission: Emission, body: Graph, carried: Sequence[HbmTensor], emit_block: EmitBlock, counter: int | None = None
) -> None:
    """Append a body, then the copies of its results, counter apart, to the carried values; views are copied first."""
    with emission.inside():
        emission.tensors.update(zip(body.arguments, carried, strict=True))
        kept = [place for place in range(len(carried)) if place != counter]
        emission.owned.update(body.arguments[place] for place in kept)
        results = tuple(body.results[place] for place in kept)
        emit_block(emission, Graph(arguments=body.arguments, operations=body.operations, results=results))
        moves = []
        for place, result in zip(kept, results, strict=True):
            source = emission.tensor(result)
            if source == carried[place]:
                continue
            shared = any(one.address <= source.address < one.address + _bytes(one) for one in carried)
            moves.append((carried[place], emission.copied(source) if shared else source))
        for target, source in moves:
            copy_hbm(emission.program, target, source)


def _bytes(tensor: HbmTensor) -> int:
    return tensor.size * tensor.format.bits // 8


def emit_case(emission: Emission, case: Branches, emit_block: EmitBlock) -> None:
    """Append the branches, each a loop of one round or none; an index out of range is the last branch's."""
    targets, flow = [emission.new(value) for value in case.results], emission.program.flow
    build, every = Builder(case.source, emission.program.config), (len(case.branches),)
    index = build.convert(case.operands[0], UNSIGNED32)
    index = build.apply("minimum", index, every[0] - 1)
    is_taken = build.apply("equal", build.broadcast(index, every), build.iota(every, 0, UNSIGNED32))
    emit_block(emission, Graph(arguments=(), operations=build.operations, results=(is_taken,)))
    registers = [flow.register(name="branch") for _ in case.branches]
    for place, register in enumerate(registers):
        flow.load(register, emission.tensor(is_taken)[place])
    for branch, register in zip(case.branches, registers, strict=True):
        with _rounds(emission, 1), flow.loop_while(register), emission.inside():
            emit_block(emission, branch)
            for target, result in zip(targets, branch.results, strict=True):
                copy_hbm(emission.program, target, emission.tensor(result))
            flow.set(register, 0)
