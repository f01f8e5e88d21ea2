"""Host registers as a C header, and as numbers by name for other languages."""

from collections.abc import Sequence

from neuroncore_rtl.spec import host_map
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.host_map import counter_offset, parameter_values
from neuroncore_rtl.spec.isa import Cause, Rule

__all__ = ["host_header", "host_numbers"]

_PREFIX = "NEURONCORE"


def host_numbers() -> dict[str, int]:
    """Return macros of the host map: register offsets, by register name, and field masks, by REGISTER_FIELD."""
    numbers = {}
    for register in host_map.HOST_REGISTERS:
        numbers[register.name] = register.offset
        numbers |= {f"{register.name}_{field.name}": field.mask for field in register.fields}
    return numbers | {"MAGIC": host_map.HOST_MAGIC}


def host_header(config: Config, counters: Sequence[str]) -> str:
    """Return the C header for host programs; `counters` has the counters' names, in the order of their offsets."""
    words = enumerate(parameter_values(config).items())
    parameters = {name: (host_map.PARAMETER_WORDS + 4 * place, value) for place, (name, value) in words}
    sections = {
        "Registers: offsets in bytes; REGISTER_FIELD: the bits of a field.": host_numbers(),
        "Words with the parameters, and what they are here.": {
            **{f"PARAMETER_{name.upper()}": offset for name, (offset, _) in parameters.items()},
            **{name.upper(): value for name, (_, value) in parameters.items()},
        },
        "Counters: the lower half; the upper one is 4 bytes behind, and read after it.": {
            f"COUNTER_{_macro(name)}": counter_offset(number) for number, name in enumerate(counters)
        },
        "What ERROR_CAUSE reads.": {f"CAUSE_{kind.name}": int(kind) for kind in (*Rule, *Cause)},
    }
    lines = ["// Made from spec/host_map.py.", f"#ifndef {_PREFIX}_H", f"#define {_PREFIX}_H"]
    for title, numbers in sections.items():
        lines += ["", f"// {title}", *(f"#define {_PREFIX}_{name} {value:#x}u" for name, value in numbers.items())]
    return "\n".join((*lines, "", "#endif", ""))


def _macro(name: str) -> str:
    """Return the name of a counter, such as queues[0].idle, as a C identifier."""
    return name.replace("[", "").replace("].", "_").replace(".", "_").upper()
