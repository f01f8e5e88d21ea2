"""Description of the machine in measurements."""

import pytest

from neuroncore_rtl.bench.run import machine, machine_line, processor
from neuroncore_rtl.run.sim.vectors import LEVEL_VARIABLE, WAYS, level

XEON = {"cpu": "Xeon", "cores": 2}


@pytest.mark.parametrize(
    "text, name", [("flags\t: fpu\nmodel name\t: Xeon @ 2 GHz\nmodel name\t: Xeon\n", "Xeon @ 2 GHz"), ("", None)]
)
def test_processor_is_named(text, name, tmp_path):
    information = tmp_path / "cpuinfo"
    information.write_text(text)
    assert processor(information) == (name or processor(tmp_path / "nothing"))
    assert processor()


def test_level_is_that_of_the_vectors(monkeypatch):
    monkeypatch.setenv(LEVEL_VARIABLE, "plain")
    level.cache_clear()
    assert (machine(WAYS)["vectors"], machine(["scalar"])["vectors"]) == ("plain", None)
    level.cache_clear()


@pytest.mark.parametrize(
    "ways, vectors, line",
    [
        (WAYS, "avx512", "Xeon, 2 cores, LANES=vector (avx512, 16 lanes at a time) beside LANES=scalar"),
        (["vector"], "plain", "Xeon, 2 cores, LANES=vector (plain, 4 lanes at a time)"),
        (["scalar"], None, "Xeon, 2 cores, LANES=scalar"),
        ([], None, "Xeon, 2 cores"),
    ],
)
def test_machine_is_a_line(ways, vectors, line):
    assert machine_line(XEON | {"ways": ways, "vectors": vectors}) == line
