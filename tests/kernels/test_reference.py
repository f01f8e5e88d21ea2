"""The reference page is that of the sources, and says everything."""

from kernels.reference import PAGE, page
from spec import memory_map
from spec.isa import DMA_FIELDS, ELEMENTWISE_FIELDS, HEADER_FIELDS, TENSOR_FIELDS, AluOp, Cause, Opcode, Rule


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run python -m kernels.reference"


def test_the_page_names_everything():
    text = page()
    names = [name for layout in (HEADER_FIELDS, TENSOR_FIELDS, ELEMENTWISE_FIELDS, DMA_FIELDS) for name, _ in layout]
    names += [member.name for kind in (Opcode, AluOp, Rule, Cause) for member in kind]
    names += memory_map.__all__
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_page_has_nothing_of_the_source_s_markup():
    assert ":class:" not in page() and "Arguments:" not in page()
