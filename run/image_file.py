"""Image as a file: arrays of numpy and a header in JSON, in a zip archive; reading it executes nothing.

| member | content |
|---|---|
| `header.npy` | UTF-8 of a JSON object: machine, tensors, lines of the kernel, control flow, values of the caller |
| `data.npy` | the image's bytes |
| `blocks.npy` | a row per block: queue, address, records, section, first semaphore, end of the semaphores |
| `entries.npy` | a row per record: position, lane or -1, number in it, index of its lines, waits, buffers |
| `waits.npy`, `buffers.npy` | those of all records, one after another; a wait has a lane and a number |

A file belongs to the `spec/` that wrote it. Records are decoded when they are read.
"""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.kernels.control.flow import Code, ControlOperation, Label
from neuroncore_rtl.kernels.control.stock import Block
from neuroncore_rtl.kernels.program.allocator import Allocator, Buffer
from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.kernels.program.spilling import Spill
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.kernels.source import Line, SourceLine
from neuroncore_rtl.run.files import whole_file
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import format_named
from neuroncore_rtl.spec.isa import RECORD_BYTES, Record, Storage

__all__ = ["hash_of_sources", "read_image", "tensor_of", "tensor_values", "write_image"]

FORM = 2
"""Number of the form above."""

_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, TokenError, OSError, RuntimeError, EOFError, KeyError, IndexError, TypeError,
    AttributeError, ValueError,
)  # fmt: skip
_SUFFIXES = (".py", ".json", ".c", ".h", ".S", ".ld")


def write_image(path: Path, image: Image, **values: Any) -> None:
    """Write an image atomically, with further values of JSON; it must have entries and an allocator."""
    assert image.space is not None
    entries = [entry for part in image.entries for entry in part]
    places = dict.fromkeys(entry.source for entry in entries) | dict.fromkeys(spill.source for spill in image.spills)
    places |= dict.fromkeys(one.source for one in image.flow or ())
    numbers = {source: number for number, source in enumerate(places)}
    header = {
        "form": FORM,
        "spec": hash_of_sources("spec"),
        "config": asdict(image.config),
        "base": image.base,
        "control": dict(image.control),
        "sources": list(numbers),
        "tensors": [*map(tensor_values, image.space.hbm_tensors)],
        "buffers": {number: [one.name, one.storage, one.size] for number, one in image.space.buffers.items()},
        "ends": {int(one): image.space.fixed_end(one) for one in (Storage.SBUF, Storage.PSUM)},
        "runs": image.runs,
        "flow": image.flow and [
            (one.code, one.a, one.b, one.label and one.label.place, numbers[one.source]) for one in image.flow
        ],
        "registers": [*map(tensor_values, image.registers)],
        "rounds": image.rounds,
        "spills": [(one.name, numbers[one.source], one.of, one.to, one.size) for one in image.spills],
        "values": values,
    }  # fmt: skip
    blocks = [(b.queue, b.address, b.count, b.section, b.semaphores.start, b.semaphores.stop) for b in image.blocks]
    rows = [
        (e.position, -1 if e.lane is None else e.lane, e.number, numbers[e.source], len(e.waits), len(e.buffers))
        for e in entries
    ]
    arrays = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "data": np.frombuffer(image.data, np.uint8),
        "blocks": np.array(blocks, np.int64).reshape(-1, 6),
        "entries": np.array(rows, np.int64).reshape(-1, 6),
        "waits": np.array([wait for entry in entries for wait in entry.waits], np.int64).reshape(-1, 2),
        "buffers": np.array([number for entry in entries for number in entry.buffers], np.int64),
    }
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_image(path: Path) -> tuple[Image, dict[str, Any]]:
    """Return the image of a file, and the values of its writer.

    Raises FileNotFoundError without the file; ValueError if it is damaged, or of another `spec/`.
    """
    if not path.is_file():
        raise FileNotFoundError(f"a compiled program must be an existing file, not {str(path)!r}")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays["header"].tobytes())
        if (header["form"], header["spec"]) == (FORM, hash_of_sources("spec")):
            return _image(header, arrays), header["values"]
    except _UNREADABLE as error:
        raise ValueError(f"{path} must be a file of a compiled program, but cannot be read: {error}") from error
    rule = f"must be of this version, form {FORM} and spec {hash_of_sources('spec')}"
    raise ValueError(f"{path} {rule}, not {header['form']} and {header['spec']}; compile it again")


def _image(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Image:
    config = Config(**header["config"])
    sources = [one and SourceLine(*(Line(*line) for line in one)) for one in header["sources"]]
    space = Allocator(config)
    space.hbm_tensors += [tensor_of(one) for one in header["tensors"]]
    space.buffers |= {int(n): Buffer(name, Storage(to), size) for n, (name, to, size) in header["buffers"].items()}
    for storage, end in header["ends"].items():
        space.set_end(Storage(int(storage)), end)
    registers = tuple(tensor_of(one) for one in header["registers"])
    data, base = arrays["data"].tobytes(), header["base"]
    rows, waits, buffers = arrays["entries"], arrays["waits"], arrays["buffers"]
    ends = np.concatenate([[[0, 0]], np.cumsum(rows[:, 4:6], axis=0)])
    blocks, records, entries, first = [], [], [], 0
    for queue, address, count, section, start, stop in arrays["blocks"].tolist():

        def record(at: int, address=address) -> Record:
            offset = address - base + at * RECORD_BYTES
            return Record.decode(data[offset : offset + RECORD_BYTES], config)

        part = _Decoded(count, record)

        def entry(at: int, queue=queue, section=section, first=first, records=part) -> Entry:
            position, lane, number, source = rows[first + at, :4].tolist()
            (wait, buffer), (last_wait, last_buffer) = ends[first + at : first + at + 2].tolist()
            return Entry(
                position=position,
                section=section,
                queue=queue,
                lane=None if lane < 0 else lane,
                number=number,
                instruction=records[at].instruction,
                waits=[(one[0], one[1]) for one in waits[wait:last_wait].tolist()],
                source=sources[source],
                buffers=tuple(buffers[buffer:last_buffer].tolist()),
            )

        blocks.append(Block(queue, address, count, section, range(start, stop)))
        records.append(part)
        entries.append(_Decoded(count, entry))
        first += count
    return Image(
        config=config,
        base=base,
        data=data,
        blocks=tuple(blocks),
        records=tuple(records),
        control=header["control"],
        entries=tuple(entries),
        space=space,
        runs=header["runs"] and tuple(header["runs"]),
        flow=header["flow"] and tuple(_operation(sources, *one) for one in header["flow"]),
        registers=registers,
        rounds=header["rounds"],
        spills=tuple(
            Spill(name, sources[at], Storage(of), Storage(to), size) for name, at, of, to, size in header["spills"]
        ),
    )


def _operation(sources: list, code: int, a: int, b: int, place: int | None, source: int) -> ControlOperation:
    return ControlOperation(Code(code), a, b, None if place is None else Label(place), sources[source])


class _Decoded(Sequence):
    """Sequence whose elements are made when they are first read."""

    def __init__(self, count: int, make: Callable[[int], Any]):
        self._count, self._make = count, cache(make)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return tuple(map(self._make, range(*at.indices(self._count))))
        if not -self._count <= at < self._count:
            raise IndexError(at)
        return self._make(at % self._count)


def tensor_values(tensor: Tensor | HbmTensor) -> dict[str, Any]:
    """Return a tensor as values of JSON."""
    return {**vars(tensor), "format": tensor.format.name}


def tensor_of(fields: dict[str, Any]) -> Any:
    """Return the tensor of `tensor_values`."""
    given = {**fields, "format": format_named(fields["format"])}
    given |= {name: tuple(given[name]) for name in ("shape", "steps")}
    if "partitions" not in given:
        return HbmTensor(**given)
    return Tensor(**{**given, "storage": Storage(given["storage"])})


@cache
def hash_of_sources(*rooms: str) -> str:
    """Return a hash of the sources of folders of the package."""
    found = hashlib.sha256()
    for path in sorted(path for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in _SUFFIXES):
        found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]
