"""Operations of CHLO as StableHLO's, by jaxlib's own passes; the machine's functions stay, as calls by name."""

from collections.abc import Collection

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager

__all__ = ["legalised"]

stablehlo.register_stablehlo_passes()


def legalised(module: ir.Module, kept: Collection[str]) -> ir.Operation:
    """Return a copy of a module in which CHLO's operations, except those of the names `kept`, are replaced."""
    with module.context, ir.Location.unknown():
        copy = module.operation.clone()
        _call(copy, kept)
        PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(copy)
        return copy


def _call(operation: ir.Operation, kept: Collection[str]) -> None:
    for block in (block for region in operation.regions for block in region.blocks):
        for one in [each.operation for each in block.operations]:
            _call(one, kept)
            if one.name in kept:
                call = ir.Operation.create(
                    "stablehlo.custom_call",
                    results=[one.results[0].type],
                    operands=list(one.operands),
                    attributes={"call_target_name": ir.StringAttr.get(one.name)},
                    loc=one.location,
                    ip=ir.InsertionPoint(one),
                )
                one.results[0].replace_all_uses_with(call.results[0])
                one.erase()
