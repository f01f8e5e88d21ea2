"""Names of files: runs of a TEST that differ in any variable write different files."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl.run.program import run
from neuroncore_rtl.run.report import Report, recording_in
from neuroncore_rtl.run.settings import LONGEST, Option, Settings
from neuroncore_rtl.run.targets import ModelTarget
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.cli.registry import MODULES, command_named, image_named, profile_named
from neuroncore_rtl.tb.tests import scenario

SMALL = {
    "M": 4, "N": 8, "K": 4, "STEPS": 0, "COUNT": 2, "INSTRUCTIONS": 3, "BYTES": 4096, "SEQ": 16, "TARGET": "core",
    "HIDDEN": 8, "DIM": 8, "HEADS": 1, "IMAGES": 20, "FLITS": 10, "BATCH": 1, "VOCAB": 4, "STRIPS": 1,
    "PRESET": "tiny",
}  # fmt: skip
"""Values that let the TESTs make their programs in a short time."""

NAMELESS = ("program", "timing", "mac", "round")
"""TESTs whose jobs have no files."""

TEXTS = ("a", "A", "a b", "a_b", "a/b", "a-b", "-1", "1", "0.5", "ü", "a" * 300, "a" * 301)


def draw(rng: np.random.Generator, option: Option, folder: Path) -> object:
    if option.type is int:
        return int(rng.integers(option.minimum, min(option.maximum or 10**9, option.minimum + 300) + 1))
    if option.type is Path:
        path = folder / str(rng.choice(["a", "b", "c d"])) / str(rng.choice(["x.txt", "x.npy", "y z.txt"]))
        path.parent.mkdir(exist_ok=True)
        path.touch()
        return path
    return str(rng.choice(option.choices or TEXTS))


@pytest.mark.parametrize("name", MODULES)
def test_settings_that_differ_have_names_that_differ(name, tmp_path):
    test, rng, names = command_named(name), np.random.default_rng(1), {}
    assert test.settings().file_name(name) == name
    for _ in range(30):
        drawn = test.settings()
        for option in rng.permutation(np.array(test.options, object))[: rng.integers(1, 8)]:
            # Each step changes a single variable.
            drawn = replace(drawn, values={**drawn.values, option.name: draw(rng, option, tmp_path)})
            file = drawn.file_name(name)
            assert names.setdefault(file, drawn.values) == drawn.values
            assert re.fullmatch(rf"{name}(-[A-Za-z0-9_.]+)*", file) and len(drawn.label) <= LONGEST + 9
    assert len(names) > 30
    assert Report(test=name, label=drawn.label).write(tmp_path).stem == file


@pytest.mark.parametrize("name", [name for name in MODULES if name not in (*NAMELESS, "sr")])
def test_every_file_of_a_job_has_the_name_of_the_run(name, monkeypatch):
    class Caught(Exception):
        pass

    def catch(job, on):
        raise Caught(job.name)

    monkeypatch.setattr(scenario, "execute", catch)
    test = command_named(name)
    options = {one.name: one for one in test.options if one.name != "PRESET" or name != "nki"}
    small = {key: max(value, getattr(options[key], "minimum", 0)) if isinstance(value, int) else value
             for key, value in SMALL.items()
             if key in options and not (options[key].choices and value not in options[key].choices)}  # fmt: skip
    settings = test.settings(**small, SEED=2)
    with pytest.raises(Caught) as caught:
        test.run(settings)
    end = {"digits": "0", "train": "sr"}.get(name, "")
    assert str(caught.value) == settings.file_name(name, end)


def test_plot_of_a_test_has_the_name_of_the_run(tmp_path):
    test, addends = command_named("sr"), tmp_path / "own.txt"
    addends.write_text("0.5 0.25")
    with recording_in(tmp_path):
        for seed in (1, 2):
            test.run(test.settings(TARGET="golden", STEPS=0, M=1, ADDENDS=addends, SEED=seed))
    first, second = sorted(path.name for path in (tmp_path / "plots").glob("*.png"))
    assert re.fullmatch(r"sr-m1-addendsown_[0-9a-f]{8}-steps0-targetgolden-seed2.png", first)
    assert second == first.replace("-seed2", "")


def test_profiles_and_images_have_the_names_of_the_same_run_by_sim():
    for name in ("matmul", "softmax"):
        sim = command_named(name)
        assert profile_named(name).settings() == sim.settings(["TARGET=core", "PROFILE=1"])
        assert image_named(name).settings(["M=8"]) == sim.settings(["TARGET=core", "M=8"])
        assert profile_named(name).settings(["TARGET=model"]).label.endswith("targetmodel-profile1")
    assert profile_named("matmul").settings().file_name("matmul") == "matmul-profile1"
    assert profile_named("softmax").settings().file_name("softmax") == "softmax-targetcore-profile1"


def test_label_is_readable_and_short():
    assert command_named("matmul").settings(["STALL=30", "M=13", "K=17"]).label == "m13-k17-stall30"
    values = {"TEXT": "a b", "LONG": "x" * 200}
    assert re.fullmatch(r"texta_b_[0-9a-f]{8}", Settings({"TEXT": "a b"}, {"TEXT": ""}).label)
    label = Settings(values, dict.fromkeys(values)).label
    assert re.fullmatch(r".{100}-[0-9a-f]{8}", label)


def test_files_of_a_kernel_are_named_after_machine_target_and_variables(tmp_path, monkeypatch):
    names = []
    monkeypatch.setattr("neuroncore_rtl.run.program.execute", lambda job, on: names.append(job.name) or Stop.raise_())

    class Stop(Exception):
        @staticmethod
        def raise_():
            raise Stop

    def axpy(program):
        pass

    calls = (
        {}, {"preset": "tiny"}, {"preset": "tiny", "rows": 8}, {"preset": PRESETS["tiny"]}, {"seed": 3}, {"latency": 9},
        {"on": "model"}, {"on": ModelTarget(latency=9)}, {"order": "scheduled"}, {"sim": "icarus", "waves": 1},
    )  # fmt: skip
    for variables in calls:
        with pytest.raises(Stop):
            run(axpy, **variables)
    assert names == [
        "run-axpy", "run-axpy-presettiny", "run-axpy-presettiny-rows8", "run-axpy-presettiny", "run-axpy-seed3",
        "run-axpy-latency9", "run-axpy-targetmodel", "run-axpy-targetmodel-latency9", "run-axpy-orderscheduled",
        "run-axpy-simicarus-waves1",
    ]  # fmt: skip
