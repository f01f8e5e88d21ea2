"""Page docs/unsupported.md."""

from neuroncore_rtl import ROOT
from neuroncore_rtl.frontends.nki.dialects.unsupported import ISA, LANGUAGE


def test_page_names_every_refused_call():
    page = (ROOT / "docs" / "unsupported.md").read_text()
    assert len({**ISA, **LANGUAGE}) > 5
    assert [name for name in (*ISA, *LANGUAGE) if f"`{name}`" not in page] == []
