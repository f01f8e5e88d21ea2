"""Entries from JAX's C++ into Python, as machine code: they keep what Python's C interface demands of a destructor.

JAX destroys arrays while an exception passes, and after Python's end. An entry puts a pending exception aside for the
call, does nothing without Python, and lets an interrupt that waits rise when JAX has returned to Python.
"""

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from llvmlite import binding

from neuroncore_rtl.golden.arith.machine_code import load_compiled

__all__ = ["WAITING", "keep_forever", "native_entries"]

WAITING = ctypes.c_int32(0)
"""Whether an interrupt waits for the end of a call."""

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

_USED = ("Py_IsInitialized", "PyGILState_Ensure", "PyGILState_Release", "PyErr_Fetch", "PyErr_Restore",
         "PyErr_SetInterrupt")  # fmt: skip

_TEXT = """
define ptr @{name}(ptr %arguments) {{
  %kind = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  %there = call i32 {Py_IsInitialized}()
  %gone = icmp eq i32 %there, 0
  br i1 %gone, label %without, label %with
with:
  %held = call i32 {PyGILState_Ensure}()
  call void {PyErr_Fetch}(ptr %kind, ptr %value, ptr %trace)
  %failure = call ptr {callback}(ptr %arguments)
  %oldkind = load ptr, ptr %kind
  %oldvalue = load ptr, ptr %value
  %oldtrace = load ptr, ptr %trace
  call void {PyErr_Restore}(ptr %oldkind, ptr %oldvalue, ptr %oldtrace)
  %waiting = load volatile i32, ptr {waiting}
  %none = icmp eq i32 %waiting, 0
  br i1 %none, label %end, label %interrupt
interrupt:
  store volatile i32 0, ptr {waiting}
  call void {PyErr_SetInterrupt}()
  br label %end
end:
  call void {PyGILState_Release}(i32 %held)
  ret ptr %failure
without:
  ret ptr null
}}
"""


def native_entries(functions: Mapping[str, Callable[[int], int | None]]) -> dict[str, int]:
    """Return addresses of entries that call Python functions with the address of their arguments.

    The entries, and the functions, stay until the end of the process.
    """
    constants = {name: _constant(_address(getattr(ctypes.pythonapi, name))) for name in _USED}
    constants["waiting"] = _constant(ctypes.addressof(WAITING))
    calls = {name: _PROTOTYPE(function) for name, function in functions.items()}
    texts = [_TEXT.format(name=name, callback=_constant(_address(call)), **constants) for name, call in calls.items()]
    _, engine = load_compiled(binding.parse_assembly("".join(texts)), next(iter(calls)))
    keep_forever((calls, engine))
    return {name: engine.get_function_address(name) for name in calls}


def keep_forever(one: object) -> None:
    """Keep an object beyond Python's end."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _constant(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"
