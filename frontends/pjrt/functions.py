"""Functions of PJRT's interface that do more than to return attributes of an object."""

import ctypes
from collections.abc import Callable
from ctypes import c_int, c_int64, c_size_t, c_void_p
from itertools import chain
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.pjrt.abi import ExecuteOptions, MemoryLayout, Portable, interned, interned_list, items
from neuroncore_rtl.frontends.pjrt.arrays import DeviceArray, dtype_of_code
from neuroncore_rtl.frontends.pjrt.core import CLIENT, JaxCore
from neuroncore_rtl.frontends.pjrt.entries import WAITING
from neuroncore_rtl.frontends.pjrt.handles import HANDLES, Failure
from neuroncore_rtl.frontends.pjrt.interrupts import interruptible
from neuroncore_rtl.frontends.pjrt.programs import DeviceProgram
from neuroncore_rtl.run.compiled import ArrayType

__all__ = ["WORK"]

WORK: dict[str, Callable[[Any], None]] = {}
"""The functions by their names."""

_NOTHING = ctypes.cast(ctypes.CDLL(None).sched_yield, c_void_p).value
"""A function of C that does nothing; JAX calls each deleter."""


def _work(*names: str) -> Callable:
    def add(function: Callable) -> Callable:
        WORK.update(dict.fromkeys(names, function))
        return function

    return add


@_work(
    "Plugin_Initialize", "Plugin_Attributes", "DeviceDescription_Attributes", "TopologyDescription_Attributes",
    "Device_GetAttributes", "Executable_GetCostAnalysis", "Buffer_DynamicDimensionIndices", "Event_Error",
    "Event_Await", "Client_Destroy", "TopologyDescription_Destroy", "LoadedExecutable_Delete",
)  # fmt: skip
def _nothing(call: Any) -> None:
    for name in ("num_attributes", "num_properties", "num_indices"):
        if hasattr(call, name):
            setattr(call, name, 0)
    if hasattr(call, "deleter"):
        call.deleter = _NOTHING


@_work("Event_IsReady")
def _is_ready(call: Any) -> None:
    call.is_ready = True


@_work("Event_OnReady")
def _on_ready(call: Any) -> None:
    ctypes.CFUNCTYPE(None, c_void_p, c_void_p)(call.callback)(None, call.user_arg)


@_work("Client_Create")
def _create(call: Any) -> None:
    CLIENT.start()
    call.client = HANDLES.of(CLIENT)


@_work("Client_LookupDevice", "Client_LookupAddressableDevice")
def _look_up(call: Any) -> None:
    if not 0 <= call.id < len(CLIENT.devices):
        raise Failure(f"cores are 0 to {len(CLIENT.devices) - 1}, not {call.id}", Failure.INVALID_ARGUMENT)
    call.device = HANDLES.of(CLIENT.devices[call.id])


@_work("Client_DefaultDeviceAssignment")
def _assignment(call: Any) -> None:
    wanted = call.num_replicas * call.num_partitions
    if wanted > len(CLIENT.devices):
        raise Failure(f"there are {len(CLIENT.devices)} cores, not {wanted}", Failure.INVALID_ARGUMENT)
    (c_int * wanted).from_address(call.assignment)[:] = range(wanted)


def _device(call: Any) -> JaxCore:
    return HANDLES[call.memory].core if call.memory else HANDLES[call.device] if call.device else CLIENT.devices[0]


@_work("Client_BufferFromHostBuffer")
def _from_host(call: Any) -> None:
    shape, dtype = items(call.dims, call.num_dims, c_int64), dtype_of_code(call.type)
    values = np.empty(shape, dtype)
    if values.size:
        strides = items(call.strides, call.num_strides, c_int64) or [*values.strides]
        # Negative strides lead to addresses below that of the first element.
        low = sum((length - 1) * min(stride, 0) for length, stride in zip(shape, strides, strict=True))
        high = sum((length - 1) * max(stride, 0) for length, stride in zip(shape, strides, strict=True))
        memory: Any = (ctypes.c_char * (high - low + dtype.itemsize)).from_address(call.data + low)
        values[...] = np.ndarray(shape, dtype, memory, -low, strides)
    call.buffer, call.done = (
        HANDLES.new(DeviceArray(ArrayType(values.shape, dtype), _device(call), values)),
        HANDLES.new(None),
    )


@_work("Buffer_Destroy")
def _destroy_array(call: Any) -> None:
    if (array := HANDLES.free(call.buffer)) is not None:
        array.delete()


@_work("Buffer_Delete")
def _delete(call: Any) -> None:
    HANDLES[call.buffer].delete()


@_work("Buffer_GetMemoryLayout")
def _layout(call: Any) -> None:
    rank = len(HANDLES[call.buffer].dims)
    call.layout.type = 0
    call.layout.tiled.order, call.layout.tiled.rank = interned_list(tuple(range(rank)[::-1]), c_int64)
    call.layout.tiled.num_tiles = 0


@_work("Buffer_CopyToDevice", "Buffer_CopyToMemory")
def _copy(call: Any) -> None:
    device = HANDLES[call.memory].core if hasattr(call, "memory") else HANDLES[call.device]
    call.copy = HANDLES.new(HANDLES[call.buffer].copy_to(device))


@_work("Buffer_ToHostBuffer")
def _to_host(call: Any) -> None:
    array = HANDLES[call.buffer]
    order = []
    if call.layout:
        layout = MemoryLayout.from_address(call.layout)
        if layout.type != 0 or layout.tiled.num_tiles:
            raise Failure("layouts of arrays must be orders of dimensions", Failure.UNIMPLEMENTED)
        order = items(layout.tiled.order, layout.tiled.rank, c_int64)
    values = array.in_order(order)
    if not call.data:
        call.size = values.nbytes
        return
    ctypes.memmove(call.data, values.ctypes.data, values.nbytes)
    call.event = HANDLES.new(None)


@_work("Buffer_CopyRawToHost")
def _raw(call: Any) -> None:
    values = HANDLES[call.buffer].data
    if not 0 <= call.offset <= call.offset + call.size <= values.nbytes:
        raise Failure(f"a copy must end within {values.nbytes} bytes", Failure.INVALID_ARGUMENT)
    ctypes.memmove(call.data, values.ctypes.data + call.offset, call.size)
    call.event = HANDLES.new(None)


@_work("Client_Compile")
def _compile(call: Any) -> None:
    given = Portable.from_address(call.program)
    form = ctypes.string_at(given.format, given.format_size).decode()
    if form != "mlir":
        raise Failure(f"programs must be StableHLO, not {form}", Failure.UNIMPLEMENTED)
    options = ctypes.string_at(call.options, call.options_size)
    program = interruptible(DeviceProgram, ctypes.string_at(given.code, given.size), options)
    call.executable = HANDLES.new(program)


@_work("LoadedExecutable_Execute")
def _execute(call: Any) -> None:
    program, device = HANDLES[call.executable], HANDLES[call.execute_device] if call.execute_device else None
    options = ExecuteOptions.from_address(call.options)
    (arguments,), (results,) = items(call.argument_lists, 1), items(call.output_lists, 1)
    arrays = [HANDLES[one] for one in items(arguments, call.num_args)]
    try:
        found = interruptible(program.execute, arrays, items(options.kept, options.num_kept, c_int64), device)
    except KeyboardInterrupt:
        # KeyboardInterrupt rises again as the call returns, which no exception of JAX's must hide.
        WAITING.value, found = 1, program.lost(device)
    if found:  # a program without results has no list of them
        (c_void_p * len(found)).from_address(results)[:] = [HANDLES.new(one) for one in found]
    if call.events:
        (c_void_p * 1).from_address(call.events)[0] = HANDLES.new(None)


def _per_output(call: Any) -> list:
    results = HANDLES[call.executable].compiled.results
    call.num_outputs = len(results)
    return [*results]


@_work("Executable_OutputDimensions")
def _dimensions(call: Any) -> None:
    shapes = [one.shape for one in _per_output(call)]
    call.dims, _ = interned_list(tuple(chain(*shapes)), c_int64)
    call.sizes, _ = interned_list(tuple(map(len, shapes)), c_size_t)


@_work("Executable_OutputMemoryKinds")
def _memory_kinds(call: Any) -> None:
    kinds = [interned("device") for _ in _per_output(call)]
    call.kinds, _ = interned_list(tuple(address for address, _ in kinds))
    call.sizes, _ = interned_list(tuple(size for _, size in kinds), c_size_t)


@_work("Executable_OptimizedProgram")
def _program(call: Any) -> None:
    code, out = HANDLES[call.executable].portable, Portable.from_address(call.program)
    out.format, out.format_size = interned("mlir")
    if out.code:
        ctypes.memmove(out.code, code, len(code))
    out.size = len(code)


def _serialised(call: Any, data: bytes) -> None:
    call.bytes, call.bytes_more = interned(data)
    call.owner, call.deleter = 1, _NOTHING


@_work("TopologyDescription_Serialize")
def _topology(call: Any) -> None:
    _serialised(call, repr(sorted(CLIENT.settings.items())).encode())


@_work("Executable_GetCompileOptions")
def _options(call: Any) -> None:
    _serialised(call, HANDLES[call.executable].options)


@_work("LoadedExecutable_GetDeviceAssignment")
def _assigned(call: Any) -> None:
    # DeviceAssignmentProto: one replica, one computation, and its device.
    _serialised(call, bytes([8, 1, 16, 1, 26, 3, 10, 1, HANDLES[call.executable].device.id]))
