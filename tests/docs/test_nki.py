"""Every block of code in docs/nki.md runs, and prints what stands behind it."""

from tests.docs.guide import GUIDE, executed


def test_the_page_is_true(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = list(executed(GUIDE.with_name("nki.md")))
    assert len(found) == 4
    for said, printed in found:
        assert printed == (said or "")
