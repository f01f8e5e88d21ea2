"""Output for products that differ."""

import numpy as np
import pytest

from neuroncore_rtl.run.wrong_tile import SHOWN, count_differences


def words(*values):
    return np.array(values, np.float32).view(np.uint32)


def test_nothing_is_printed_of_equal_products(capsys):
    same = np.zeros((5, 7), np.uint32)
    assert count_differences(same, same.copy(), False, 4, "again") == (0, None)
    assert capsys.readouterr().out == ""


def test_the_first_tile_its_numbers_and_the_command(capsys):
    expected = np.zeros((40, 40), np.uint32)
    found = expected.copy()
    found[17, 3], found[20, 1] = words(1.5, -0.0)
    found[16, 33] = words(2.0)[0]
    count, tile = count_differences(found, expected, False, 16, "make sim TEST=matmul WAVES=1")
    assert count == 3 and tile is not None
    assert (tile.row, tile.column, tile.places) == (16, 0, [(17, 3), (20, 1)])
    assert tile.found[1][:4] == ["0.0", "0.0", "0.0", "1.5"] and tile.expected == [["0.0"] * 16] * 16
    assert capsys.readouterr().out.splitlines() == [
        "C[rows 16:32, columns 0:16] is the first tile that differs, in 2 of 256 elements:",
        "  C[17, 3]: RTL 1.5 (3fc00000), golden 0.0 (00000000)",
        "  C[20, 1]: RTL -0.0 (80000000), golden 0.0 (00000000)",
        "to see it: make sim TEST=matmul WAVES=1",
    ]


@pytest.mark.parametrize("integer, said", [(True, "RTL -1 (ffffffff), golden 7 (00000007)"), (False, "RTL nan")])
def test_integers_and_nan(capsys, integer, said):
    found, expected = np.full((3, 3), 0xFFFF_FFFF, np.uint32), np.full((3, 3), 7, np.uint32)
    assert count_differences(found, expected, integer, 16, "again")[0] == 9
    printed = capsys.readouterr().out
    assert "C[rows 0:3, columns 0:3]" in printed and said in printed
    assert printed.count("golden") == SHOWN
