"""The page of parameters and the reference page."""

import re

import pytest

from neuroncore_rtl.kernels.text.parameters import EFFECTS, PARAMETERS_PAGE, parameters_page
from neuroncore_rtl.kernels.text.reference import PAGE, page
from neuroncore_rtl.spec import isa, memory_map
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_FIELDS, CollectiveKind, CollectiveType, ReduceOp
from neuroncore_rtl.spec.parameters import parameters

FIGURE = re.compile(r"(?<![\w.#])\d[\d,.]*\d(?!\w)|(?<![\w.#])\d(?![\w.,])")


def figures(text: str) -> list[str]:
    return FIGURE.findall(re.sub(r"\]\([^)]*\)", " ", text))


def test_the_page_is_up_to_date():
    assert PARAMETERS_PAGE.read_text() == parameters_page(), "run python -m neuroncore_rtl.kernels.text.parameters"


@pytest.mark.parametrize("name", parameters())
def test_each_parameter_is_on_the_page_with_its_benefit_and_cost(name):
    (row,) = [line for line in parameters_page().splitlines() if line.startswith(f"| `{name}` |") and "." in line]
    assert f"| {parameters()[name].benefit} | {parameters()[name].cost} |" in row


def test_each_parameter_has_an_effect_and_figures_are_searched():
    assert set(EFFECTS) == set(parameters())
    assert sum(len(figure) > 1 for text in EFFECTS.values() for figure in figures(text)) > 50


@pytest.mark.parametrize("name", EFFECTS)
def test_figures_are_on_a_cited_page(name):
    """Numbers below 10 are not searched, as they may be values of parameters."""
    pages = re.findall(r"\]\((\w+\.md)", EFFECTS[name])
    text = " ".join((PARAMETERS_PAGE.parent / page).read_text() for page in pages)
    found = figures(text)
    assert [figure for figure in figures(EFFECTS[name]) if len(figure) > 1 and figure not in found] == []
    assert pages or EFFECTS[name].startswith("See `")


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
