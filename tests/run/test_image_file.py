"""Files of images: everything that an image knows comes back; a damaged file is a ValueError."""

from dataclasses import fields, replace

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import build_image
from neuroncore_rtl.run.image_file import read_image, write_image
from neuroncore_rtl.spec.isa import Storage
from tests.kernels.program.loops import triangle
from tests.kernels.program.test_fitting import SMALL, random_program

IMAGES = {
    "spills": lambda: build_image(random_program(1, SMALL, "scheduled")[0]),
    "loops": lambda: build_image(triangle()[0], ()),
    "sections": lambda: build_image(random_program(1, SMALL, "program")[0], runs=[0, 0]),
}


def contents(image):
    """Return what images do not compare: records, a slice of them, places of tensors, and operations."""
    records = [[record.encode(image.config) for record in part] for part in (*image.records, image.records[0][-2:])]
    ends = [image.space.fixed_end(storage) for storage in (Storage.SBUF, Storage.PSUM)]
    flow = [(one.code, one.a, one.b, one.label and one.label.place, one.source) for one in image.flow or ()]
    return records, image.space.hbm_tensors, image.space.buffers, ends, flow


@pytest.mark.parametrize("kind", IMAGES)
def test_an_image_is_read_as_it_was_written(tmp_path, kind):
    image = IMAGES[kind]()
    write_image(tmp_path / "image.npz", image, name="a", sizes=[1, 2])
    found, values = read_image(tmp_path / "image.npz")
    assert values == {"name": "a", "sizes": [1, 2]}
    for one in fields(image):
        if one.name not in ("records", "entries", "space", "flow"):
            assert getattr(found, one.name) == getattr(image, one.name), one.name
    for mine, other in zip(found.entries, image.entries, strict=True):
        assert len(mine) == len(other)
        for entry, right in zip(mine, other, strict=True):
            instruction = right.instruction
            assert replace(entry, instruction=instruction) == replace(right, instruction=instruction)
    with pytest.raises(IndexError):
        found.records[0][len(found.records[0])]
    assert contents(found) == contents(image)


def test_an_image_file_has_no_pickled_objects(tmp_path):
    write_image(tmp_path / "image.npz", IMAGES["loops"]())
    with np.load(tmp_path / "image.npz", allow_pickle=False) as file:
        assert {file[name].dtype.kind for name in file.files} == {"u", "i"}
    np.savez(tmp_path / "image.npz", header=np.array([{"form": 1}], object))
    with pytest.raises(ValueError, match="image.npz must be a file of a compiled program, but cannot be read: Object"):
        read_image(tmp_path / "image.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["image.npz"]


def test_a_damaged_file_is_a_value_error_whatever_is_missing(tmp_path, rng):
    path = tmp_path / "image.npz"
    write_image(path, IMAGES["loops"]())
    whole = path.read_bytes()
    ends = [place for place in range(len(whole)) if whole[place : place + 4] == b"PK\x01\x02"]
    encrypted, method = ([(place + of, 1) for place in ends] for of in (8, 10))  # fields of the directory of a zip
    for wrong in (encrypted, method):
        damaged = bytearray(whole)
        for place, bit in wrong:
            damaged[place] ^= bit
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="image.npz must be a file of a compiled program, but cannot be read: "):
            read_image(path)
    for first in rng.integers(len(whole), size=50):
        path.write_bytes(whole[:first] + whole[first + 7 :])
        with pytest.raises(ValueError, match="image.npz must be a file of a compiled program, but cannot be read: "):
            read_image(path)
