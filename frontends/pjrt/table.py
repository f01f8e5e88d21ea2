"""The table of functions that JAX calls."""

import atexit
import ctypes
import sys
from collections.abc import Callable
from ctypes import c_int64, c_uint32, c_void_p
from functools import partial
from typing import Any

from neuroncore_rtl.frontends.pjrt.abi import API_VERSION, ARGUMENTS, FIELDS, Api, Version, interned, interned_list
from neuroncore_rtl.frontends.pjrt.core import CLIENT
from neuroncore_rtl.frontends.pjrt.entries import WAITING, keep_forever, native_entries
from neuroncore_rtl.frontends.pjrt.functions import WORK
from neuroncore_rtl.frontends.pjrt.handles import HANDLES, Failure
from neuroncore_rtl.frontends.pjrt.interrupts import postpone_interrupts
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.run.program import ProgramFailed
from neuroncore_rtl.run.settings import UsageError

__all__ = ["api_capsule"]

_CODES = {
    Refused: Failure.UNIMPLEMENTED,
    UsageError: Failure.INVALID_ARGUMENT,
    ProgramFailed: Failure.INTERNAL,
    MemoryError: Failure.RESOURCE_EXHAUSTED,
}
"""Codes of errors whose text is a sentence for the user."""


def _enter(work: Callable[[Any], None], arguments: type[ctypes.Structure], address: int) -> int | None:
    """Do what JAX asks for; return the number of an error, or None. It never raises, since JAX's C++ cannot catch."""
    failure = None
    try:
        work(arguments.from_address(address))
    except KeyboardInterrupt:
        WAITING.value = 1
        failure = HANDLES.new(Failure("interrupted", Failure.CANCELLED))
    except BaseException as error:
        failure = HANDLES.new(_failure(error))
    return failure


def _failure(error: BaseException) -> Failure:
    if isinstance(error, Failure):
        return error
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return Failure(str(error) or kind.__name__, code)
    return Failure(f"{type(error).__name__}: {error}")


def _work_of(name: str) -> Callable[[Any], None]:
    """Return what a function does: a call of Python, the end of an object, or attributes of an object."""
    fields = FIELDS[name]
    if name in WORK:
        return WORK[name]
    if not fields:
        return partial(_refuse, name)
    if name.endswith("_Destroy"):
        return lambda call: HANDLES.free(getattr(call, fields[0][0]))
    return partial(_answer, fields)


def _refuse(name: str, call: Any) -> None:
    raise Failure(f"the platform {CLIENT.platform_name} does not have {name}", Failure.UNIMPLEMENTED)


def _answer(fields: list[tuple[str, str]], call: Any) -> None:
    """Write attributes of the object in the first field to the others, as far as the caller knows them."""
    (source, _), *wanted = fields
    one = HANDLES[getattr(call, source)]
    for name, kind in wanted:
        if getattr(type(call), name).offset >= call.struct_size:
            break
        value: Any = getattr(one, name, None)
        more = None
        match kind:
            case "object":
                value = HANDLES.of(value)
            case "owned":
                value = HANDLES.new(value)
            case "text":
                value, more = interned(value)
            case "objects":
                value, more = interned_list(tuple(map(HANDLES.of, value)))
            case "longs" | "codes":
                value, more = interned_list(tuple(value), c_int64 if kind == "longs" else c_uint32)
            case "stat":
                more = value is not None
        setattr(call, name, value or 0)
        if more is not None:
            setattr(call, f"{name}_more", more)


def api_capsule() -> Any:
    """Return the table as a capsule for JAX."""
    entries = native_entries({name: partial(_enter, _work_of(name), ARGUMENTS[name]) for name in FIELDS})
    api = Api(ctypes.sizeof(Api), None, Version(ctypes.sizeof(Version), None, *API_VERSION), **entries)
    name = b"pjrt_c_api"
    keep_forever((api, name))
    postpone_interrupts(_enter.__code__)
    atexit.register(_summarise)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
    return new(ctypes.addressof(api), name, None)


def _summarise() -> None:
    """Print what ran."""
    if CLIENT.summary:
        print(CLIENT.summary, file=sys.stderr)
