"""Kernels in a trace of nested calls."""

import pytest

from neuroncore_rtl.bench.silicon.traces import candidate


@pytest.mark.parametrize("number", [0, 1, 2])
def test_candidates_count_from_the_first_ancestor(number, tmp_path):
    text = "None"
    for one in range(3):
        text = f"CodeCandidate(parent={text}, plan='of {one}', code='''x = {one}\\n''', score={one}.5)"
    folder = tmp_path / "examples" / "trn-tutorial"
    folder.mkdir(parents=True)
    (folder / "one_trace.py").write_text(text)
    assert candidate(tmp_path, "one", number).endswith(f"\nx = {number}\n")


def test_a_checkout_without_the_trace_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="AUTOCOMP must name a checkout with .*one_trace.*, not "):
        candidate(tmp_path, "one", 0)
