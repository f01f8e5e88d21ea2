"""Compiled programs in a folder: found by content, made anew if damaged, written by several processes."""

import os
import time

import jax.numpy as jnp
import numpy as np
import pytest

from neuroncore_rtl.frontends.xla import cache, jit
from neuroncore_rtl.frontends.xla.refusal import Refused


def smooth(x):
    return jnp.tanh(x) * 2


def moved(x):
    return jnp.tanh(x) * 2


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def model(folder, function=smooth, **options):
    return jit(function, **{"preset": "nano", "target": "golden", "cache": folder, **options})


def test_a_second_function_of_the_same_content_is_not_compiled(tmp_path, monkeypatch):
    first = np.asarray(model(tmp_path)(X))
    monkeypatch.setattr(cache, "compile_graph", None)
    again = model(tmp_path)
    np.testing.assert_array_equal(again(X), first)
    assert again.compiled.program is None and "tanh" in again.ir
    assert len([*tmp_path.glob("*.npz")]) == 1


def test_what_changes_a_program_or_its_report_changes_its_file(tmp_path, monkeypatch):
    variants = [{}, {"preset": "tiny"}, {"order": "program"}, {"auto_cast": "matmult"}, {"function": moved}]
    for options in variants:
        model(tmp_path, **options)(X)
    monkeypatch.setattr(cache, "hash_of_sources", lambda *rooms: "other sources")
    model(tmp_path)(X)
    assert len([*tmp_path.glob("*.npz")]) == len(variants) + 1


def test_a_damaged_file_is_replaced_with_a_sentence(tmp_path, capsys):
    first = np.asarray(model(tmp_path)(X))
    (file,) = tmp_path.glob("*.npz")
    whole = file.read_bytes()
    for damaged in (whole[:-50], whole[:900] + b"\0\1" + whole[902:], b""):
        file.write_bytes(damaged)
        capsys.readouterr()
        np.testing.assert_array_equal(model(tmp_path)(X), first)
        assert f"{file} must be a file of a compiled program, but cannot be read" in capsys.readouterr().err
        model(tmp_path)(X)
        assert "cannot be read" not in capsys.readouterr().err


def test_the_folder_is_an_option_or_a_variable_or_the_default(tmp_path, monkeypatch):
    assert cache.model_folder(None) is None and cache.model_folder("") is None
    monkeypatch.setenv(cache.VARIABLE, f"file://{tmp_path}/one")
    assert cache.model_folder(None) == tmp_path / "one" and cache.model_folder(tmp_path) == tmp_path
    monkeypatch.delenv(cache.VARIABLE)
    assert cache.model_folder(None).name == "models"
    monkeypatch.setenv(cache.VARIABLE, "s3://bucket/models")
    with pytest.raises(Refused, match="must be a folder of this computer, not 's3://bucket/models'"):
        cache.model_folder(None)


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    model(tmp_path / "file" / "folder")(X)
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_the_default_folder_loses_the_files_that_were_not_used_for_longest(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_DEFAULT", tmp_path)
    monkeypatch.setattr(cache, "MOST_BYTES", 250)
    for number in range(4):
        path = tmp_path / f"{number}.npz"
        path.write_bytes(bytes(100))
        os.utime(path, (time.time() - number, time.time() - number))
    cache._prune()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.npz", "1.npz"]


def test_a_written_compilation_is_read_with_its_key(tmp_path):
    work = model(tmp_path / "cache").lower(X)._work()
    work.write(tmp_path)
    other = cache.Compilation.of_file(tmp_path / f"{work.key}.json")
    assert (other.config, other.options, other.order, other.file) == (work.config, work.options, work.order, work.file)
    assert [record.encode(work.config) for part in other.compiled().image.records for record in part] == [
        record.encode(work.config) for part in work.compiled().image.records for record in part
    ]
