"""Every block of code in docs/kernels.md runs, and prints what stands behind it, numbers aside."""

from neuroncore_rtl import SIM_BUILD
from tests.docs.guide import GUIDE, executed, without_numbers


def test_the_guide_to_kernels_is_true(monkeypatch):
    monkeypatch.chdir(SIM_BUILD.parent)  # paths are shown from there
    found = list(executed(GUIDE))
    assert len(found) == GUIDE.read_text().count("```python") > 5
    for said, printed in found:
        assert without_numbers(printed) == without_numbers(said or ""), "python -m tests.docs.guide writes it anew"


def test_words_that_differ_are_noticed(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("```python\nx = 2\n```\n\n```python\nprint('cycles', 1234 * x)\n```\n\n```text\ncycles 7\n```\n")
    (first, nothing), (said, printed) = executed(path)
    assert (first, nothing, said, printed) == (None, "", "cycles 7\n", "cycles 2468\n")
    assert without_numbers(said) == without_numbers(printed) != without_numbers("steps 7\n")
    assert without_numbers("1,234 of 5.6 %.") == "0 of 0 %."
