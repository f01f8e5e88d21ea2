"""The page of a machine's parameters, made from `spec.parameters`.

`python -m neuroncore_rtl.kernels.text.parameters` writes docs/parameters.md.
"""

from dataclasses import asdict

from neuroncore_rtl import ROOT
from neuroncore_rtl.kernels.text.markdown import markdown_table
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.parameters import PARAMETER_GROUPS, Parameter, parameters

__all__ = ["EFFECTS", "PARAMETERS_PAGE", "parameters_page", "write_parameters"]

PARAMETERS_PAGE = ROOT / "docs" / "parameters.md"

INTRODUCTION = """
# Parameters

Generated from `spec/` by `python -m neuroncore_rtl.kernels.text.parameters`.

`PRESET=` selects a named set of values. A variable with the parameter's name in capitals overrides one of them:
`make sim TEST=matmul PRESET=small ROWS=8`.

More stages allow a faster clock. Areas and clocks are those of an ECP5, one unit alone, unless the text says otherwise.
"""

EFFECTS = {
    "rows": "`small`, 16 x 16, takes 716,837 LUTs of an UltraScale+, `medium`, 32 x 32, 1,697,474"
    " ([FPGA](fpga.md#ultrascale-on-paper)).",
    "columns": "On 128 x 128, a product of 13 x 17 x 18 takes 183 cycles, ideally 1"
    " ([tensor engine](tensor_engine.md#utilisation)).",
    "mac_latency": "1, 4 and 5 stages: 29.0, 77.0 and 112 MHz with 500, 438 and 439 LUT4 ([FPGA](fpga.md#units))."
    " Utilisation of 128 x 128 by 512 x 512 x 512 is 97.7 % with 1 stage and 92.0 % with 5"
    " ([tensor engine](tensor_engine.md#stages)).",
    "significand_bits": "8: a decoder at the edge takes 133 LUT4 instead of 502"
    " ([tensor engine](tensor_engine.md#stages)).",
    "add_latency": "A PSUM partition reaches 30 MHz with 2 stages and 47 MHz with 4. Columns that accumulate in the"
    " same word are `add_latency` + 2 cycles apart ([tensor engine](tensor_engine.md#stages)).",
    "edge_latency": "Each stage delays all sums by one cycle ([tensor engine](tensor_engine.md#timing)).",
    "vector_latency": "A lane with all units reaches 11.9 MHz with 1 stage and 15,362 LUT4. With 6 stages and without"
    " divider, power, search and random units it reaches 61 MHz with 7,439 LUT4 ([FPGA](fpga.md#units)).",
    "vector_division": "A division takes 8 cycles per element, a remainder 93"
    " ([vector engine](vector_engine.md#decisions)).",
    "vector_power": "A power takes 14 cycles per element ([vector engine](vector_engine.md#decisions)).",
    "vector_search": "MAX8 takes N + 8 cycles for N elements, FIND_INDEX8 N + 16"
    " ([vector engine](vector_engine.md#timing)).",
    "vector_statistics": "BN_STATS takes N + 6 cycles for N elements, BN_AGGR 4N + 22"
    " ([vector engine](vector_engine.md#timing)).",
    "vector_random": "A tensor rounds to the same bits in any tiling ([numbers](numbers.md#the-random-word)).",
    "lane_partitions": "2 saves 13,000 places of LUTs on preset `fpga` ([FPGA](fpga.md#a-core)).",
    "scalar_depth": "1: 22.2 MHz, 5,507 LUT4 ([FPGA](fpga.md#units)). 2, without trigonometry and random bits:"
    " 52.5 MHz, 4,134 LUT4 ([FPGA](fpga.md#the-activation-lane)).",
    "scalar_trigonometry": "Its window of 2 / pi takes 7 multipliers ([FPGA](fpga.md#the-activation-lane)).",
    "scalar_random": "Without trigonometry and random bits, a lane of depth 2 takes 4,134 LUT4 instead of 5,508"
    " ([FPGA](fpga.md#the-activation-lane)).",
    "vector_speed": "A softmax of 40 x 96 on preset `tiny` takes 6,691 instead of 3,139 cycles with NeuronCore-v2's"
    " clocks ([timing model](timing_model.md#accuracy)).",
    "scalar_speed": "At 50, N elements take 2N cycles ([rates](rates.md#times-of-instructions)).",
    "gpsimd_speed": "See `gpsimd_start`.",
    "gpsimd_start": "150 + N cycles for N elements of IOTA ([rates](rates.md)).",
    "least_interval": "A product of 20 x 12 x 40 on preset `tiny` takes 2,691 instead of 1,515 cycles with"
    " NeuronCore-v2's clocks ([timing model](timing_model.md#accuracy)).",
    "access_cycles": "At 100, 512 elements take 612 cycles ([rates](rates.md#times-of-instructions)).",
    "load_interval": "At 8, 128 columns of weights take 256 cycles, half of a product with 512 moving columns"
    " ([rates](rates.md#time-besides-the-elements)).",
    "swap_cycles": "A product of 20 x 12 x 40 on preset `tiny` takes 1,979 instead of 1,515 cycles with 23 and"
    " RESULT_LATENCY=90 ([timing model](timing_model.md#accuracy)).",
    "result_latency": "See `swap_cycles`, and [rates](rates.md#dependent-instructions).",
    "ring_rate": "It limits large collectives of preset `trainium1` ([silicon](silicon.md#the-tables)).",
    "dma_start": "A product of 20 x 12 x 40 on preset `tiny` takes 2,227 instead of 1,515 cycles with 365"
    " ([timing model](timing_model.md#accuracy)).",
    "packet_interval": "With 26 a row of 1 KiB takes as long as one of 2.5 KiB ([rates](rates.md#copies-and-hbm)).",
    "hbm_rate": "A softmax of 40 x 96 on preset `tiny` takes 5,379 cycles with 5 and DMA_START=365"
    " ([timing model](timing_model.md#accuracy)).",
    "hbm_ports": "With 256 bytes per cycle, HBM and array of preset `full` need 8,192 cycles each for a BF16 product of"
    " 512 x 512 x 512 ([performance](performance.md#the-core)).",
    "hbm_bytes": "A record costs its port 128 / `hbm_bytes` beats ([core](core.md#why-does-this-stall)).",
    "sbuf_bytes": "16 KiB instead of 64 KiB, with PSUM banks of 128 words, saves 60 block RAMs of preset `fpga`"
    " ([FPGA](fpga.md#a-core)).",
    "sbuf_banks": "2 banks instead of 8 add 4.3 % to the cycles of a softmax, 1.1 % to those of an encoder layer, and"
    " none to a product ([core](core.md#bandwidth-of-sbuf)).",
    "line_bytes": "8, with records that queues receive beat by beat, shortens the wires of preset `fpga` from 456,000"
    " to 402,000 ([FPGA](fpga.md#a-core)). Shorter lines cause more conflicts ([core](core.md#sizes-of-the-memories)).",
    "psum_words": "See `sbuf_bytes`.",
    "psum_banks": "2 instead of 8 saves 2,100 places of LUTs on preset `fpga` ([FPGA](fpga.md#a-core)).",
    "local_bytes": "It takes block RAM twice ([core](core.md#sizes-of-the-memories)).",
    "port_latency": "1 cuts the slowest path of a core, and adds one to four cycles per unit"
    " ([core](core.md#waiting-for-each-other)).",
    "dma_engines": "An engine takes 8,749 places of LUTs on preset `fpga` ([FPGA](fpga.md#a-core)).",
    "dma_beats": "The buffer is block RAM from 128 beats on, LUTs at 32 ([core](core.md#sizes-of-the-memories)).",
    "cast_lanes": "Other copies move `hbm_bytes` bytes per cycle ([core](core.md#dma)).",
    "cast_latency": "A cast element is accepted 6 cycles after its arrival with 1 stage, 7 + `cast_latency` with more"
    " ([timing model](timing_model.md#rules)).",
    "cores": "On a ring of 16 chips an all-reduce of 1,048,576 bytes takes 62,092 cycles, 98.9% of the ring's bound"
    " ([NeuronLink](neuronlink.md#how-fast)).",
    "semaphores": "They are LUTs, a copy for each reader ([core](core.md#sizes-of-the-memories)).",
    "records_ahead": "With a fetch of 74 cycles, a queue gets one record per 19 cycles (4 in flight), 9 (8) or 37 (2)"
    " ([core](core.md#why-does-this-stall)).",
    "launch_cycles": "15.54 us on preset `trainium1` ([rates](rates.md#start-and-end-of-a-run)).",
    "clock_mhz": "Presets `trainium1` and `inferentia2` have the 2,800 MHz of the array ([rates](rates.md)).",
    "counters": "Boards have 0 ([FPGA](fpga.md#a-core)).",
}
"""Figures of each parameter, in Markdown; a test checks that each is on a page that the text links to."""


def write_parameters() -> None:
    """Write docs/parameters.md."""
    PARAMETERS_PAGE.write_text(parameters_page())


def parameters_page() -> str:
    """Return the text of docs/parameters.md."""
    known = parameters()
    sections = [INTRODUCTION.strip()]
    for group, names in PARAMETER_GROUPS.items():
        sections += [f"## {group[0].upper()}{group[1:]}", _group_table([known[name] for name in names])]
    sections += [
        "## Presets",
        "Values that differ from the default:",
        _preset_table(known),
    ]
    return "\n\n".join(sections) + "\n"


def _group_table(group: list[Parameter]) -> str:
    titles = ("name", "values", "default", "meaning", "buys", "costs", "figures")
    rows = [
        (f"`{one.name}`", _values(one), _number(one.default), _upper(one.sentence), one.benefit, one.cost, figures)
        for one in group
        for figures in [EFFECTS[one.name]]
    ]
    return markdown_table(titles, rows)


def _values(one: Parameter) -> str:
    """Return the allowed values of a parameter as text: a list if there are few, otherwise the range."""
    if one.choices:
        return ", ".join(map(_number, one.choices))
    return f"{_number(one.low)} to {_number(one.high)}"


def _preset_table(known: dict[str, Parameter]) -> str:
    values = {name: asdict(config) for name, config in PRESETS.items()}
    rows = []
    for name, one in known.items():
        cells = [_number(found[name]) if found[name] != one.default else "" for found in values.values()]
        if any(cells):
            rows.append((f"`{name}`", _number(one.default), *cells))
    return markdown_table(("name", "default", *(f"`{name}`" for name in PRESETS)), rows)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _upper(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


if __name__ == "__main__":
    write_parameters()
