"""What a cold build leaves: builds and libraries for the simulations after it, none of them in the place of another."""

from neuroncore_rtl.bench.cold import _keep

MADE = ("verilator/tensor-1/simulation", "lanes/edge-2.cpp", "lanes/edge-2.v", "lanes/avx2/libedge-2.so")
LEFT = ("verilator/tensor-1.lock", "lanes/avx2/libedge-2.lock", "elaborated/text.v")


def write(folder, names, text):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_builds_are_kept_where_there_are_none(tmp_path):
    cold, place = tmp_path / "cold", tmp_path / "place"
    write(cold, [*MADE, *LEFT], "cold")
    write(place, MADE[:2], "warm")
    _keep(cold, place)
    assert [(place / name).read_text() for name in MADE] == ["warm", "warm", "cold", "cold"]
    assert [name for name in MADE if (cold / name).exists()] == [*MADE[:2]]
    assert not (place / LEFT[-1]).exists()
