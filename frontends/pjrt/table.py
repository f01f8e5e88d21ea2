"""The table of functions that JAX calls."""

import atexit
import ctypes
import sys
from collections.abc import Callable
from ctypes import c_int64, c_uint32, c_void_p
from functools import partial
from typing import Any

from neuroncore_rtl.frontends.pjrt.abi import ARGUMENTS, FIELDS, VERSION, Api, Version, interned, interned_list
from neuroncore_rtl.frontends.pjrt.core import CLIENT
from neuroncore_rtl.frontends.pjrt.functions import WORK
from neuroncore_rtl.frontends.pjrt.handles import HANDLES, Failure
from neuroncore_rtl.frontends.pjrt.interrupts import Interrupts
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.run.program import ProgramFailed
from neuroncore_rtl.run.settings import UsageError

__all__ = ["api_capsule"]

_PROTOTYPE = ctypes.CFUNCTYPE(c_void_p, c_void_p)

_CODES = {
    Refused: Failure.UNIMPLEMENTED,
    UsageError: Failure.INVALID_ARGUMENT,
    ProgramFailed: Failure.INTERNAL,
    MemoryError: Failure.RESOURCE_EXHAUSTED,
}
"""Codes of errors whose text is a sentence for the user."""

_KEPT: list[Any] = []


def _enter(work: Callable[[Any], None], arguments: type[ctypes.Structure], address: int) -> int | None:
    """Do what JAX asks for; return the number of an error, or None. It never raises, since JAX's C++ cannot catch."""
    failure = None
    try:
        work(arguments.from_address(address))
    except KeyboardInterrupt:
        _INTERRUPTS.waiting = True
        failure = HANDLES.new(Failure("interrupted", Failure.CANCELLED))
    except BaseException as error:
        failure = HANDLES.new(_failure(error))
    [*_] = _INTERRUPTS.again()
    return failure


_INTERRUPTS = Interrupts(_enter.__code__)


def _failure(error: BaseException) -> Failure:
    if isinstance(error, Failure):
        return error
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return Failure(str(error) or kind.__name__, code)
    return Failure(f"{type(error).__name__}: {error}")


def _work_of(name: str) -> Callable[[Any], None]:
    """Return what a function does: work of its own, the end of an object, or attributes of an object."""
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
        value = getattr(one, name, None)
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
    """Return the table as a capsule for JAX; at exit all its functions become one of C that does nothing."""
    api = Api(ctypes.sizeof(Api), None, Version(ctypes.sizeof(Version), None, *VERSION))
    for name in FIELDS:
        call = _PROTOTYPE(partial(_enter, _work_of(name), ARGUMENTS[name]))
        setattr(api, name, ctypes.cast(call, c_void_p).value)
        _KEPT.append(call)
    _KEPT.extend((api, b"pjrt_c_api"))
    atexit.register(_leave, api)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
    return new(ctypes.addressof(api), _KEPT[-1], None)


def _leave(api: Api) -> None:
    """Detach the table from Python, after whose end JAX still destroys its objects; print what ran."""
    nothing = ctypes.cast(ctypes.CDLL(None).sched_yield, c_void_p).value
    for name in FIELDS:
        setattr(api, name, nothing)
    if CLIENT.summary:
        print(CLIENT.summary, file=sys.stderr)
