"""The reference page."""

from neuroncore_rtl.kernels.text.reference import PAGE, page
from neuroncore_rtl.spec import isa, memory_map
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_FIELDS, CollectiveKind, CollectiveType, ReduceOp


def test_the_page_is_up_to_date_and_names_everything_with_a_meaning():
    assert PAGE.read_text() == page(), "run python -m neuroncore_rtl.kernels.text.reference"
    text = page()
    layouts = isa.HEADER_FIELDS, isa.TENSOR_FIELDS, isa.ELEMENTWISE_FIELDS, isa.DMA_FIELDS, COLLECTIVE_FIELDS
    names = [name for layout in layouts for name, _ in layout]
    kinds = isa.Opcode, isa.AluOp, isa.Rule, isa.Cause, CollectiveKind, CollectiveType, ReduceOp
    names += [member.name for kind in kinds for member in kind]
    names += memory_map.__all__
    assert [name for name in names if f"`{name}`" not in text] == []
    assert ":class:" not in page() and "Arguments:" not in page()
    tables = [table.splitlines() for table in page().split("\n\n") if table.startswith("|")]
    rows = [row for head, _, *rows in tables if head.endswith("| meaning |") for row in rows]
    assert len(rows) > 100 and [row for row in rows if row.endswith("|  |")] == []
