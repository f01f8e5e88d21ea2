"""Line budgets of folders, see `tests.house.budget`."""

from tests.house import budget, tree


def test_every_folder_has_a_budget():
    assert set(budget.budgets()) == {*tree.FOLDERS, "examples", "tests"}


def test_too_many_lines_are_named():
    sentence = "tb must have at most 10 lines, not 11: write less, or raise its budget and say why"
    assert budget.over({"hdl": 9, "tb": 11}, {"hdl": 9, "tb": 10}) == [sentence]
    assert budget.over({"new": 1}, {}) != []
