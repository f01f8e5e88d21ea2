"""Table of docs/nki.md, and the page docs/unsupported.md."""

from neuroncore_rtl import ROOT
from neuroncore_rtl.frontends.nki.dialects import table, unsupported
from neuroncore_rtl.frontends.nki.dialects.modules import CALLS, modules
from neuroncore_rtl.frontends.nki.dialects.unsupported import ISA, LANGUAGE
from neuroncore_rtl.spec.config import PRESETS


def test_the_table_is_up_to_date():
    text = table.PAGE.read_text()
    assert table.dialect_table() in text and table.updated_page(text) == text, (
        "run python -m neuroncore_rtl.frontends.nki.dialects.table"
    )


def test_what_is_unsupported_is_not_there_and_can_be_imported():
    assert not set(CALLS) & set(unsupported.ISA)
    own = modules(PRESETS["tiny"])
    assert all(callable(getattr(own["nki.isa"], name)) for name in unsupported.ISA)
    assert all(callable(getattr(own["nki.language"], name)) for name in unsupported.LANGUAGE)


def test_page_names_every_refused_call():
    page = (ROOT / "docs" / "unsupported.md").read_text()
    assert len({**ISA, **LANGUAGE}) > 5
    assert [name for name in (*ISA, *LANGUAGE) if f"`{name}`" not in page] == []
