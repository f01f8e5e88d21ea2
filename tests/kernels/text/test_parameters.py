"""The page of parameters."""

import re

import pytest

from neuroncore_rtl.kernels.text.parameters import EFFECTS, PARAMETERS_PAGE, parameters_page
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
