"""Code blocks of docs/kernels.md, nki.md and jax.md: they run, and print the documented output (numbers aside)."""

from neuroncore_rtl import SIM_BUILD
from tests.docs.guide import GUIDE, run_blocks, without_numbers
from tests.frontends.xla.table import updated_page


def test_the_guide_to_kernels_is_true(monkeypatch):
    monkeypatch.chdir(SIM_BUILD.parent)  # printed paths are relative to it
    blocks = list(run_blocks(GUIDE))
    assert len(blocks) == GUIDE.read_text().count("```python") > 5
    for said, printed in blocks:
        assert without_numbers(printed) == without_numbers(said or ""), "python -m tests.docs.guide writes it anew"


def test_the_page_of_nki_is_true(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = list(run_blocks(GUIDE.with_name("nki.md")))
    assert len(blocks) == 4 and all(printed == (said or "") for said, printed in blocks)


def test_the_page_of_jax_is_true(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = GUIDE.with_name("jax.md")
    blocks = list(run_blocks(page))
    assert len(blocks) == 4 and all(printed == (said or "") for said, printed in blocks)
    assert updated_page(page.read_text()) == page.read_text()


def test_words_that_differ_are_noticed(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("```python\nx = 2\n```\n\n```python\nprint('cycles', 1234 * x)\n```\n\n```text\ncycles 7\n```\n")
    (first, nothing), (said, printed) = run_blocks(path)
    assert (first, nothing, said, printed) == (None, "", "cycles 7\n", "cycles 2468\n")
    assert without_numbers(said) == without_numbers(printed) != without_numbers("steps 7\n")
    assert without_numbers("1,234 of 5.6 %.") == "0 of 0 %."
