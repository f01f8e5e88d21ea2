"""Layout of PJRT's C interface: its functions in the order of their table, and the fields of their arguments."""

import ctypes
from ctypes import c_bool, c_int, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any

__all__ = [
    "API_VERSION", "ARGUMENTS", "FIELDS", "Api", "ExecuteOptions", "MemoryLayout", "Portable", "Version", "interned",
    "interned_list", "items",
]  # fmt: skip

API_VERSION = 0, 94
"""Version of the interface whose layout this is; JAX serves older versions than its own."""

_KINDS = {
    "": (c_void_p,), "object": (c_void_p,), "owned": (c_void_p,), "int": (c_int,), "long": (c_int64,),
    "size": (c_size_t,), "bool": (c_bool,), "stat": (c_int64, c_bool), "text": (c_void_p, c_size_t),
    "objects": (c_void_p, c_size_t), "longs": (c_void_p, c_size_t), "codes": (c_void_p, c_size_t),
}  # fmt: skip
"""Types of a field, and of the one after it that belongs to it, such as the length of a list."""

_TABLE = """
Error_Destroy error
Error_Message error message:text
Error_GetCode error code:int
Plugin_Initialize
Plugin_Attributes attributes num_attributes:size
Event_Destroy event
Event_IsReady event is_ready:bool
Event_Error event
Event_Await event
Event_OnReady event callback user_arg
Client_Create create_options num_options:size kv_get kv_get_arg kv_put kv_put_arg client:object
Client_Destroy client
Client_PlatformName client platform_name:text
Client_ProcessIndex client process_index:int
Client_PlatformVersion client platform_version:text
Client_Devices client devices:objects
Client_AddressableDevices client devices:objects
Client_LookupDevice client id:int device
Client_LookupAddressableDevice client id:int device
Client_AddressableMemories client memories:objects
Client_Compile client program options options_size:size executable
Client_DefaultDeviceAssignment client num_replicas:int num_partitions:int size:size assignment
Client_BufferFromHostBuffer client data type:int dims num_dims:size strides num_strides:size semantics:int device\
 memory layout done buffer
DeviceDescription_Id description id:int
DeviceDescription_ProcessIndex description process_index:int
DeviceDescription_Attributes description num_attributes:size attributes
DeviceDescription_Kind description kind:text
DeviceDescription_DebugString description text:text
DeviceDescription_ToString description text:text
Device_GetDescription device description:object
Device_IsAddressable device is_addressable:bool
Device_LocalHardwareId device id:int
Device_AddressableMemories device memories:objects
Device_DefaultMemory device memory:object
Device_MemoryStats device bytes_in_use:long peak_bytes_in_use:stat num_allocs:stat largest_alloc_size:stat\
 bytes_limit:stat bytes_reserved:stat peak_bytes_reserved:stat bytes_reservable_limit:stat\
 largest_free_block_bytes:stat pool_bytes:stat peak_pool_bytes:stat
Memory_Id memory id:int
Memory_Kind memory kind:text
Memory_DebugString memory text:text
Memory_ToString memory text:text
Memory_AddressableByDevices memory devices:objects
Executable_Destroy executable
Executable_Name executable name:text
Executable_NumReplicas executable num_replicas:size
Executable_NumPartitions executable num_partitions:size
Executable_NumOutputs executable num_outputs:size
Executable_SizeOfGeneratedCodeInBytes executable code_bytes:long
Executable_GetCostAnalysis executable num_properties:size properties
Executable_OutputMemoryKinds executable num_outputs:size kinds sizes
Executable_OptimizedProgram executable program
Executable_Serialize
LoadedExecutable_Destroy executable
LoadedExecutable_GetExecutable loaded executable:owned
LoadedExecutable_AddressableDevices executable devices:objects
LoadedExecutable_Delete executable
LoadedExecutable_IsDeleted executable is_deleted:bool
LoadedExecutable_Execute executable options argument_lists num_devices:size num_args:size output_lists events\
 execute_device
Executable_DeserializeAndLoad
LoadedExecutable_Fingerprint executable fingerprint:text
Buffer_Destroy buffer
Buffer_ElementType buffer type:int
Buffer_Dimensions buffer dims:longs
Buffer_UnpaddedDimensions buffer dims:longs
Buffer_DynamicDimensionIndices buffer indices num_indices:size
Buffer_GetMemoryLayout buffer
Buffer_OnDeviceSizeInBytes buffer size:size
Buffer_Device buffer device:object
Buffer_Memory buffer memory:object
Buffer_Delete buffer
Buffer_IsDeleted buffer is_deleted:bool
Buffer_CopyToDevice buffer device copy
Buffer_ToHostBuffer buffer layout data size:size event
Buffer_IsOnCpu buffer is_on_cpu:bool
Buffer_ReadyEvent buffer event:owned
Buffer_UnsafePointer buffer pointer:size
Buffer_IncreaseExternalReferenceCount
Buffer_DecreaseExternalReferenceCount
Buffer_OpaqueDeviceMemoryDataPointer
CopyToDeviceStream_Destroy
CopyToDeviceStream_AddChunk
CopyToDeviceStream_TotalBytes
CopyToDeviceStream_GranuleSize
CopyToDeviceStream_CurrentBytes
TopologyDescription_Create
TopologyDescription_Destroy topology
TopologyDescription_PlatformName topology platform_name:text
TopologyDescription_PlatformVersion topology platform_version:text
TopologyDescription_GetDeviceDescriptions topology descriptions:objects
TopologyDescription_Serialize topology bytes:text owner deleter
TopologyDescription_Attributes topology attributes num_attributes:size
Compile
Executable_OutputElementTypes executable types:codes
Executable_OutputDimensions executable num_outputs:size dims sizes
Buffer_CopyToMemory buffer memory copy
Client_CreateViewOfDeviceBuffer
Executable_Fingerprint executable fingerprint:text
Client_TopologyDescription client topology:object
Executable_GetCompiledMemoryStats executable code_bytes:long argument_bytes:long output_bytes:long alias_bytes:long\
 temporary_bytes:long host_code:long host_argument:long host_output:long host_alias:long host_temporary:long\
 peak_bytes:long total_bytes:long
Memory_Kind_Id memory kind_id:int
ExecuteContext_Create
ExecuteContext_Destroy
Buffer_CopyRawToHost buffer data offset:long size:long event
AsyncHostToDeviceTransferManager_Destroy
AsyncHostToDeviceTransferManager_TransferData
Client_CreateBuffersForAsyncHostToDevice
AsyncHostToDeviceTransferManager_RetrieveBuffer
AsyncHostToDeviceTransferManager_Device
AsyncHostToDeviceTransferManager_BufferCount
AsyncHostToDeviceTransferManager_BufferSize
AsyncHostToDeviceTransferManager_SetBufferError
AsyncHostToDeviceTransferManager_AddMetadata
Client_DmaMap
Client_DmaUnmap
Client_CreateUninitializedBuffer
Client_UpdateGlobalProcessInfo
TopologyDescription_Deserialize
Client_CreateAliasBuffer
Client_FulfillAliasBuffer
LoadedExecutable_GetDeviceAssignment executable bytes:text owner deleter
Client_CreateErrorBuffer
AsyncHostToDeviceTransferManager_TransferLiteral
Buffer_CopyRawToHostFuture
Device_PoisonExecution
Device_CreateAsyncTrackingEvent
AsyncTrackingEvent_Destroy
Executable_GetCompileOptions executable bytes:text owner deleter
Buffer_DonateWithControlDependency
Event_Create
Event_Set
Device_GetAttributes device attributes num_attributes:size owner deleter
"""

FIELDS: dict[str, list[tuple[str, str]]] = {
    name: [(field.partition(":")[0], field.partition(":")[2]) for field in fields]
    for name, *fields in (line.split() for line in _TABLE.strip().splitlines())
}
"""Names and kinds of the fields of each function's arguments."""

_HEAD = (("struct_size", c_size_t), ("extensions", c_void_p))


def _structure(name: str, fields: list[tuple[str, type]]) -> type[ctypes.Structure]:
    """Return a structure that begins, as all of the interface, with its size and its extensions."""
    return type(name, (ctypes.Structure,), {"_fields_": [*_HEAD, *fields]})


def _arguments(name: str) -> type[ctypes.Structure]:
    fields = []
    for field, kind in FIELDS[name]:
        first, *others = _KINDS[kind]
        fields += [(field, first), *((f"{field}_more", other) for other in others)]
    if name == "Buffer_GetMemoryLayout":
        fields.append(("layout", MemoryLayout))
    return _structure(name, fields)


Version = _structure("Version", [("major", c_int), ("minor", c_int)])

_Tiled = _structure(
    "Tiled",
    [("order", c_void_p), ("rank", c_size_t), ("tiles", c_void_p), ("tile_sizes", c_void_p), ("num_tiles", c_size_t)],
)

MemoryLayout = _structure("MemoryLayout", [("tiled", _Tiled), ("type", c_int)])
"""Layout of an array: of type 0, dimensions from the innermost on; a layout of strides, type 1, shares its place."""

Portable = _structure(
    "Portable", [("code", c_void_p), ("size", c_size_t), ("format", c_void_p), ("format_size", c_size_t)]
)

ExecuteOptions = _structure(
    "ExecuteOptions",
    [
        ("send", c_void_p), ("receive", c_void_p), ("num_send", c_size_t), ("num_receive", c_size_t),
        ("launch", c_int), ("kept", c_void_p), ("num_kept", c_size_t),
    ],
)  # fmt: skip

ARGUMENTS = {name: _arguments(name) for name in FIELDS}

Api = _structure("Api", [("version", Version), *((name, c_void_p) for name in FIELDS)])


@cache
def interned(value: str | bytes) -> tuple[int, int]:
    """Return address and length of a text that lives as long as the process."""
    data = value.encode() if isinstance(value, str) else value
    buffer = ctypes.create_string_buffer(data)
    _KEPT.append(buffer)
    return ctypes.addressof(buffer), len(data)


@cache
def interned_list(values: tuple[int, ...], kind: Any = c_void_p) -> tuple[int, int]:
    """Return address and length of a list that lives as long as the process."""
    array = (kind * max(1, len(values)))(*values)
    _KEPT.append(array)
    return ctypes.addressof(array), len(values)


def items(address: int, count: int, kind: Any = c_void_p) -> list:
    """Return a list of the caller's memory."""
    return [*(kind * count).from_address(address)] if count else []


_KEPT: list = []
