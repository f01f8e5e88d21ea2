"""`make picture` draws what the RTL computed, from the user's matrices, and refuses what it cannot draw."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from amaranth import Module, Signal
from PIL import Image

from neuroncore_rtl.golden.tensor import matrix_product
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.run.harness.engines import tensor_trial
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.tb.cli.array_picture import A, B, _name, make_picture, operands, try_product
from neuroncore_rtl.tb.cli.matrices import encode_matrix, read_matrix
from neuroncore_rtl.tb.cli.registry import COMMANDS

PICTURE = next(command for command in COMMANDS if command.name == "picture")


@pytest.fixture
def draw(tmp_path, capsys):
    def run(*words: str) -> tuple[dict[str, Path], str]:
        with recording_in(tmp_path / "drawn"):
            assert make_picture(PICTURE.settings(words)) == 0
        output = capsys.readouterr().out
        assert "PASSED" in output
        paths = [Path(path) for path in re.findall(r"^(?:moving|still)\S*.*? {2,}(\S+)$", output, re.MULTILINE)]
        return {re.sub(r"^.*?(?=(-cycle)?\.\w+$)", "", path.name): path for path in paths}, output

    return run


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_files_show_goldens_product_with_their_sizes(tmp_path, draw, rng):
    a, b = rng.uniform(-4, 4, (4, 3)), rng.uniform(-4, 4, (3, 6))
    np.save(tmp_path / "a.npy", a)
    np.savetxt(tmp_path / "b.csv", b, delimiter=", ", fmt="%.17g")
    files, output = draw(f"A={tmp_path / 'a.npy'}", f"B={tmp_path / 'b.csv'}", "PRESET=tiny")
    assert re.search(r"^rounded +12 numbers of A and 18 of B to bf16$", output, re.MULTILINE)
    assert re.search(r"^array holds +A, and the columns of B move$", output, re.MULTILINE)
    assert re.search(rf"^to open +(xdg-)?open {files['.svg']}, or", output, re.MULTILINE)
    expected = matrix_product(encode_matrix(a, BF16), encode_matrix(b, BF16), BF16, 4).view(np.float32)
    group = ElementTree.parse(files[".svg"]).getroot().findall("{http://www.w3.org/2000/svg}g")[-1]
    sums = [float(text.text) for text in group if text.get("class") == "sum"]
    assert np.allclose(sums, expected[:, ::-1].ravel(), rtol=0, atol=0.06)

    assert set(files) == {".svg", ".gif", "-cycle.svg", "-cycle.png"}
    moving, still = (files[name].read_text() for name in (".svg", "-cycle.svg"))
    frames = moving.count('<g class="frame')
    assert still.count('<g class="frame') == 1
    size = tuple(int(number) * 3 // 2 for number in re.search(r'viewBox="0 0 (\d+) (\d+)"', moving).groups())
    with Image.open(files[".gif"]) as gif, Image.open(files["-cycle.png"]) as png:
        assert gif.size == png.size == size
        assert gif.n_frames == frames > 5 and gif.info["duration"] == 1400
        pictures = set()
        for number in range(gif.n_frames):
            gif.seek(number)
            pictures.add(gif.convert("RGB").tobytes())
        assert len(pictures) == frames
        # Text in the system's absence of fonts, not only boxes: dark pixels in the heading.
        heading = np.asarray(png.convert("L"))[: 40 * 3 // 2, :400]
        assert (heading < 80).sum() > 500


def test_other_matrices_and_machines_have_other_names():
    names = set()
    runs = [(), ("SEED=2",), ("SEED=3",), ("MAC_LATENCY=2",), ("ROWS=5",), ("DTYPE=int8",), ("M=2",)]
    for words in runs:
        settings = PICTURE.settings(words)
        names.add(_name(settings, *(encode_matrix(matrix, BF16) for matrix in operands(settings))))
    assert len(names) == len(runs)


@pytest.mark.parametrize(
    "text, rule",
    [
        ("1 2\n3\n", "equally many numbers, not .*: row 2 has 1 numbers, row 1 has 2"),
        ("1 two\n", "equally many numbers, not .*: could not convert string to float: 'two'"),
        ("# only a comment\n", "1 to 64 rows and columns, not 0"),
        ("1 " * 65 + "\n", "1 to 64 rows and columns, not 1 x 65"),
        ("1, inf\n", r"finite numbers, not inf in row 1, column 2 of"),
        ("1e39\n", r"numbers from -3.38953e\+38 to 3.38953e\+38, those of bf16, not 1e\+39"),
    ],
)
def test_a_file_that_is_no_matrix_is_refused(tmp_path, text, rule):
    with pytest.raises(UsageError, match=f"^A must .*{rule}"):
        encode_matrix(read_matrix("A", write(tmp_path / "a.txt", text)), BF16, "A")


def test_shapes_that_contradict_the_files_are_refused(tmp_path):
    file = write(tmp_path / "a.csv", "1,2,3;\n4,5,6 # second row\n")
    with pytest.raises(UsageError, match="^M must be 2, the rows of A, not 3$"):
        make_picture(PICTURE.settings([f"A={file}", "M=3"]))
    with pytest.raises(UsageError, match="^K must be 2, the rows of B, not 3$"):
        make_picture(PICTURE.settings([f"A={file}", f"B={file}"]))
    with pytest.raises(UsageError, match="^the array of a picture must have at most 8 x 8 elements, not 16 x 16"):
        make_picture(PICTURE.settings(["PRESET=small"]))
    np.save(tmp_path / "v.npy", np.arange(3.0))
    with pytest.raises(UsageError, match=r"^A must be a file of rows .*: it has one dimension, not two$"):
        read_matrix("A", tmp_path / "v.npy")
    (tmp_path / "o.npy").write_bytes(b"no array")
    with pytest.raises(UsageError, match="^A must be a file of rows"):
        read_matrix("A", tmp_path / "o.npy")


def test_a_silent_engine_ends_the_run(monkeypatch):
    class Silent(TensorEngine):
        def elaborate(self, platform):
            m = Module()
            m.d.sync += Signal().eq(1)
            return m

    monkeypatch.setattr(tensor_trial, "TensorEngine", Silent)
    with pytest.raises(SimulationFailed, match="the tensor engine must finish within 10,000 cycles"):
        try_product(encode_matrix(A, BF16), encode_matrix(B, BF16), BF16, PRESETS["tiny"], ())
