"""Arrays of the host: read from a .npy file, and converted to numbers for a tensor in HBM."""

from io import BytesIO
from os import PathLike
from pathlib import Path

import numpy as np

from neuroncore_rtl.frontends.nki.indices.dtypes import DType, dtype_of

__all__ = ["as_numbers", "read_array"]


def read_array(file: str | PathLike) -> np.ndarray:
    """Return the array of a .npy file; ValueError if it has none.

    The file does not name types of ml_dtypes: numbers of such types become void elements, see `as_numbers`.
    """
    try:
        # numpy writes float8_e5m2 as '<f1', which it refuses to read.
        content = Path(file).read_bytes().replace(b"'descr': '<f1'", b"'descr': '|V1'", 1)
        array = np.load(BytesIO(content))
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{file}: a file must have an array of numbers; {error}") from None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{file}: a file must have one array, not several")
    return array


def as_numbers(values: np.ndarray, dtype: object = None) -> tuple[np.ndarray, DType]:
    """Return the numbers of an array, without rounding, and the type for them, by default the array's.

    Void elements are the bits of numbers of the type. Unsigned integers are numbers, never codes as for `run`. Truth
    values are 0 and 1.

    Raises:
        ValueError: if the machine lacks the type, or void elements have another size or no type.
    """
    if np.ma.is_masked(values):
        raise ValueError("an array must have all its elements, none of them masked")
    void = values.dtype.type is np.void and values.dtype.names is None
    if void and dtype is None:
        rule = "an array of a type that numpy lacks needs its type, such as x=file.npy:bf16 or (x, 'bfloat16')"
        raise ValueError(f"{rule}, because .npy files do not name it")
    found = dtype_of(values.dtype if dtype is None else dtype)
    fmt = found.machine_format
    if void:
        if values.dtype.itemsize * 8 != fmt.bits:
            raise ValueError(f"elements of {found} must have {fmt.bits} bits, not {values.dtype.itemsize * 8}")
        values = values.view(found.dtype)
    if found.is_truth and values.dtype.kind in "biuf":
        values = values != 0
    if np.can_cast(values.dtype, np.float32):
        return values.astype(np.float32), found
    if values.dtype.kind != "u":
        return values, found
    if values.max(initial=0) >= 1 << 63:
        raise ValueError(f"unsigned integers must be below 2**63, not {values.max()}")
    return values.astype(np.int64), found
