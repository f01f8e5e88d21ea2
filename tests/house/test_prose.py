"""The prose meter notices each habit, where it is, and nothing in code. `make lint` measures the tree."""

import pytest

from tests.house import prose
from tests.house.prose import above, findings, rates, texts

PLAIN = '''"""Round-robin arbiter."""

def grant():
    """Return the granted requester, at most one per cycle."""
    # An asserted request stays asserted until it is granted.
    raise ValueError("rows must be at least 2, not 1")
'''


@pytest.mark.parametrize(
    "old, new, habit, line, words",
    [
        ("an asserted", "an asserted", None, 0, ""),
        ("the granted requester", "the requester\n    whose turn it is", "people", 5, "whose"),
        ("An asserted request stays asserted", "What is asked for stays", "riddles", 5, "What is"),
        ("rows must be", "rows that come must be", "travel", 6, "come"),
        ("Round-robin arbiter", "Whose turn it is", "openers", 1, "Whose turn it is."),
        ("def grant", "def _told", "participles", 3, "told"),
        ("# An", "N = '#'  # Who", "people", 5, "Who"),
        ("def grant", "N = '# who'\n\ndef grant", None, 0, ""),
        ("Return the granted requester", "Return `who`, `what is`", None, 0, ""),
    ],
)
def test_each_habit_is_found(old, new, habit, line, words):
    found = list(findings(list(texts(PLAIN.replace(old, new), ".py"))))
    assert (habit, line, words) in found if habit else found == []


def test_pages_are_read_without_their_code():
    page = "One word.\n\n```\nwho goes\n```\n\nA `that of` [link](but-for.md) that\ncomes twice.\n"
    assert list(findings(list(texts(page, ".md")))) == [("travel", 8, "comes")]


def test_rates_are_per_thousand_words_and_per_cent():
    pieces = list(texts(PLAIN.replace("Round-robin arbiter", "Who is granted"), ".py"))
    found = rates(pieces)
    docstrings = "Who is granted Return the granted requester at most one per cycle"
    others = "An asserted request stays asserted until it is granted rows must be at least not"
    assert found["words"] == len(f"{docstrings} {others}".split())
    assert found["people"] == 1000 / found["words"] and found["openers"] == 50 and found["participles"] == 0
    assert above(found) == ["people", "openers"]


def test_folders_above_a_limit_are_named_with_their_lines(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.py").write_text(PLAIN.replace("Round-robin arbiter", "Who is granted"))
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "_files", lambda: {"hdl": [tmp_path / "a.py"]})
    with pytest.raises(SystemExit, match=r"^people of hdl must be at most 0.6, not \d+\.\d\d .*\nopeners of hdl"):
        prose.main()
    assert "    a.py:1: people: Who\n" in capsys.readouterr().out
