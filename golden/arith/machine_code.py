"""Compiler from LLVM's intermediate language to functions for this processor; it takes milliseconds."""

import ctypes
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import numpy as np
from llvmlite import binding, ir
from llvmlite.ir import IRBuilder, Value

from neuroncore_rtl.spec.formats import FP32

__all__ = [
    "FLAG", "FLOAT", "INDEX", "WORD_TYPE", "assembly", "canonical_word", "compile_function", "counted_range",
    "has_feature", "has_fused_multiply_add", "load_compiled", "local", "multiply_add", "new_function",
]  # fmt: skip

FLOAT, WORD_TYPE, FLAG, INDEX = ir.FloatType(), ir.IntType(32), ir.IntType(8), ir.IntType(64)

_ARGUMENTS = {FLOAT: ctypes.c_float, WORD_TYPE: ctypes.c_uint32, FLAG: ctypes.c_uint8, INDEX: ctypes.c_int64}


@cache
def has_feature(name: str) -> bool:
    """Return whether this processor has the feature that LLVM calls `name`."""
    return binding.get_host_cpu_features().get(name, False)


@cache
def has_fused_multiply_add() -> bool:
    """Return whether this processor has an instruction that multiplies and adds with a single rounding."""
    return platform.machine() in ("aarch64", "arm64") or has_feature("fma")


def new_function(name: str, *kinds: ir.Type) -> tuple[IRBuilder, list[Value]]:
    """Return a builder for the body of a new function without a result, and the arguments, of types `kinds`."""
    function = ir.Function(ir.Module(name), ir.FunctionType(ir.VoidType(), kinds), name)
    return IRBuilder(function.append_basic_block()), list(function.args)


def compile_function(builder: IRBuilder) -> Callable[..., None]:
    """Return the built function as a callable, which runs without the GIL and does not check types.

    It accepts numbers, and an array for each pointer.
    """
    function = builder.function
    address, engine = load_compiled(_optimised(builder), function.name)
    kinds = (_ARGUMENTS.get(kind, ctypes.c_void_p) for kind in function.function_type.args)
    native = ctypes.CFUNCTYPE(None, *kinds)(address)

    def call(*arguments: np.ndarray | float, engine=engine) -> None:  # the engine owns the code
        native(*(one.ctypes.data if isinstance(one, np.ndarray) else one for one in arguments))

    return call


def load_compiled(module: binding.ModuleRef, name: str) -> tuple[int, binding.ExecutionEngine]:
    """Return the address of a function, and the engine that owns the code: keep a reference to the engine."""
    engine = binding.create_mcjit_compiler(module, _machine())
    engine.finalize_object()
    return engine.get_function_address(name), engine


def assembly(builder: IRBuilder) -> str:
    """Compile the function that `builder` has built; return its assembler text."""
    return _machine().emit_assembly(_optimised(builder))


def _optimised(builder: IRBuilder) -> binding.ModuleRef:
    if not cast("Any", builder.block).is_terminated:
        builder.ret_void()
    module = binding.parse_assembly(str(builder.module))
    options = binding.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    passes = binding.create_pass_builder(_machine(), options)
    passes.getModulePassManager().run(module, passes)
    return module


def _machine() -> binding.TargetMachine:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=3)


@contextmanager
def counted_range(builder: IRBuilder, count: Value) -> Iterator[Value]:
    """Build a loop from 0 to `count` - 1; the `with` block receives the index, of type INDEX, and builds the body."""
    before = builder.block
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(INDEX)
    index.add_incoming(INDEX(0), before)
    builder.cbranch(builder.icmp_signed("<", index, count), body, end)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, INDEX(1)), builder.block)
    builder.branch(head)
    builder.position_at_end(end)


def local(builder: IRBuilder, kind: ir.Type) -> Value:
    """Return the address of a new local variable, which LLVM keeps in a register."""
    with builder.goto_entry_block():
        return builder.alloca(kind)


def multiply_add(builder: IRBuilder, a: Any, b: Any, c: Any, fused: bool) -> Any:
    """Build a * b + c of floats or of vectors of floats; llvmlite's `Value` does not declare their `type`, hence `Any`.

    `fused` selects a fused multiply-add. Otherwise it is a float64 sum and a cast, which gives the same bits if a and b
    have at most 12 significand bits (`golden.arith.fma_fp32`).
    """
    if fused:
        suffix = f"v{a.type.count}f32" if isinstance(a.type, ir.VectorType) else "f32"
        name, kind = f"llvm.fma.{suffix}", ir.FunctionType(a.type, [a.type] * 3)
        known = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(known, (a, b, c))
    double = ir.DoubleType()
    wide = ir.VectorType(double, a.type.count) if isinstance(a.type, ir.VectorType) else double
    a_wide, b_wide, c_wide = (builder.fpext(value, wide) for value in (a, b, c))
    return builder.fptrunc(builder.fadd(builder.fmul(a_wide, b_wide), c_wide), a.type)


def canonical_word(builder: IRBuilder, value: Any) -> Any:
    """Return a vector of floats with every NaN replaced by the canonical NaN."""
    words = ir.VectorType(WORD_TYPE, value.type.count)
    nan = builder.bitcast(words([FP32.nan] * value.type.count), value.type)
    return builder.select(builder.fcmp_unordered("uno", value, value), nan, value)
