"""spec.parameters: every field of the configuration has a sentence, a group and the values that it accepts."""

import re
from dataclasses import fields

import pytest

from neuroncore_rtl.spec import parameters as module
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.isa.engine import RECORDS_AHEAD
from neuroncore_rtl.spec.parameters import PARAMETER_GROUPS, ParameterGroup, parameters, parse_arguments
from neuroncore_rtl.spec.timing import SCALAR_LANES_LATENCY

PARAMETERS = parameters()
NAMES = [field.name for field in fields(Config)]
DEFAULTS = {field.name: field.default for field in fields(Config)} | {"rows": None, "columns": None}


def test_every_field_has_a_parameter_in_order():
    assert list(PARAMETERS) == NAMES
    assert [parameter.name for parameter in PARAMETERS.values()] == NAMES


def test_every_field_is_in_one_group_and_no_group_is_empty():
    assert sorted(name for names in PARAMETER_GROUPS.values() for name in names) == sorted(NAMES)
    assert list(PARAMETER_GROUPS) == list(ParameterGroup) and all(PARAMETER_GROUPS.values())
    assert all(parameter.name in PARAMETER_GROUPS[parameter.group] for parameter in PARAMETERS.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_sentence_with_its_values_a_benefit_and_a_cost(name):
    parameter = PARAMETERS[name]
    sentence = parameter.sentence
    assert re.fullmatch(r"[^\s`][^`\n]{39,}\.", sentence) and "  " not in sentence
    assert not re.match(r"(of|so|as|the same|those|this|it)\b", sentence, re.IGNORECASE)
    # The sentence is a table cell: it has no full stop inside, only semicolons.
    assert ". " not in sentence
    low, high = (f"{n >> 10} KiB" if name in ("sbuf_bytes", "local_bytes") else str(n) for n in Config.RANGES[name])
    words = set(re.findall(r"\d+(?: KiB)?", sentence))
    removable = (parameter.low, parameter.high) == (0, 1) and name != "port_latency"
    assert {"0"} <= words if removable else {low, high} <= words
    for text in (parameter.benefit, parameter.cost):
        assert re.fullmatch(r"[^`\n]{6,}[^`\n.]", text) and "  " not in text and ". " not in text
    assert parameter.benefit != parameter.cost


def test_numbers_from_other_files_are_up_to_date():
    assert all(f"takes {cycles} cycles" in PARAMETERS["scalar_depth"].sentence for cycles in SCALAR_LANES_LATENCY)
    ahead = {engine.name: number for engine, number in RECORDS_AHEAD.items()}
    assert ahead == {"TENSOR": 8, "VECTOR": 4, "SCALAR": 4, "DMA": 2, "COLLECTIVE": 2}
    limits = "8 for tensor, 4 for vector and scalar, 2 for DMA and collective"
    assert limits in PARAMETERS["records_ahead"].sentence


@pytest.mark.parametrize("name", NAMES)
def test_choices_are_the_values_that_a_machine_accepts(name):
    parameter = PARAMETERS[name]
    assert (parameter.low, parameter.high) == Config.RANGES[name]
    assert parameter.default == DEFAULTS[name]
    if not parameter.choices:
        return
    assert (parameter.choices[0], parameter.choices[-1]) == Config.RANGES[name]
    rule = rf"^{name} must be (a power of two|8 or 12), not "
    step = max(1, (parameter.high - parameter.low) // 97)
    for value in set(range(parameter.low, parameter.high, step)) - set(parameter.choices):
        with pytest.raises(ValueError, match=rule):
            PRESETS["tiny"].with_overrides(**{name: value})


def test_parsing_joins_continuations_and_stops_at_the_next_section():
    text = "Head.\n\nArguments:\n    one: first\n        and more.\n    two: second.\n\nRaises:\n    three: never."
    assert parse_arguments(text) == {"one": "first and more.", "two": "second."}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("    one: a.\n    one: b.", "^duplicate entry one$"),
        ("    one: a.\n      crooked", "^not an entry"),
        ("        of nothing", "^not an entry"),
    ],
)
def test_malformed_sections_are_refused(lines, message):
    with pytest.raises(ValueError, match=message):
        parse_arguments(f"Head.\n\nArguments:\n{lines}\n")


def test_a_missing_sentence_or_group_is_refused(monkeypatch):
    monkeypatch.setitem(PARAMETER_GROUPS, ParameterGroup.LINKS, ())
    with pytest.raises(
        ValueError, match="^PARAMETER_GROUPS must name the fields of Config; different: cores, ring_rate$"
    ):
        parameters()
    monkeypatch.undo()
    monkeypatch.setattr(module, "parse_arguments", lambda text: {"rows": "height."})
    with pytest.raises(ValueError, match="^the docstring of Config must name the fields of Config; different: "):
        parameters()
