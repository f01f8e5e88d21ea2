"""spec.config: a machine that cannot be built is rejected."""

import pytest

from neuroncore_rtl.spec.config import LONE_UNITS, PRESETS, Config, preset_named


@pytest.mark.parametrize("name, ends", Config.RANGES.items())
def test_ends_of_every_range_are_valid(name, ends):
    # Few HBM ports, because each needs a DMA engine. Lanes with all units serve one partition each.
    without = dict.fromkeys((f"vector_{unit}" for unit in LONE_UNITS), 0) if name == "lane_partitions" else {}
    # The shortest line belongs to two columns.
    short = {"columns": 2, "hbm_bytes": 8} if name == "line_bytes" else {}
    for value in ends:
        overrides = {"dma_engines": 16 if name == "hbm_ports" else None} | without | short | {name: value}
        assert getattr(PRESETS["tiny"].with_overrides(**overrides), name) == value


@pytest.mark.parametrize("name, ends", Config.RANGES.items())
def test_beyond_every_range_is_refused(name, ends):
    low, high = ends
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"^{name} must be between {low} and {high}, not {value}$"):
            PRESETS["tiny"].with_overrides(**{name: value})


@pytest.mark.parametrize(
    "name, value, error, message",
    [
        *(("rows", value, TypeError, "^rows must be an integer, not ") for value in (4.0, "4", True)),
        ("significand_bits", 10, ValueError, "^significand_bits must be 8 or 12, not 10$"),
        ("hbm_bytes", 24, ValueError, "^hbm_bytes must be a power of two, not 24$"),
        ("psum_words", 96, ValueError, "^psum_words must be a power of two, not 96$"),
        ("sbuf_bytes", 5000, ValueError, "^sbuf_bytes must be a multiple of 1024, two lines of every bank, not 5000$"),
        ("lane_partitions", 3, ValueError, "^lane_partitions must be a power of two, not 3$"),
        ("lane_partitions", 2, ValueError, "^lane_partitions must be 1 with vector_division, .*_statistics, not 2$"),
        ("line_bytes", 8, ValueError, r"^line_bytes must be at least hbm_bytes \(16\), not 8$"),
        ("hbm_ports", 3, ValueError, r"^hbm_ports must be at most dma_engines \(2\), not 3$"),
    ],
)
def test_what_cannot_be_built_is_refused(name, value, error, message):
    with pytest.raises(error, match=message):
        PRESETS["tiny"].with_overrides(**{name: value})


def test_lanes_serve_as_many_partitions_each():
    few = PRESETS["tiny"].with_overrides(**{f"vector_{unit}": 0 for unit in LONE_UNITS})
    assert few.with_overrides(lane_partitions=4).partitions == 4
    with pytest.raises(ValueError, match=r"^lane_partitions must divide the larger of rows and columns \(6\), not 4$"):
        few.with_overrides(rows=6, lane_partitions=4)


def test_a_line_has_room_for_what_the_array_loads_at_once():
    assert PRESETS["fpga"].line_bytes == PRESETS["fpga"].load_bytes == 8
    with pytest.raises(ValueError, match=r"^line_bytes must be at least load_bytes \(16\), not 8$"):
        PRESETS["fpga"].with_overrides(columns=3)


def test_overrides_that_are_none_change_nothing():
    assert PRESETS["full"].with_overrides(rows=None, columns=None) == PRESETS["full"]


def test_unknown_preset_is_refused_with_the_list():
    with pytest.raises(ValueError, match=f"^PRESET must be one of {', '.join(PRESETS)}, not 'huge'$"):
        preset_named("huge")


def test_preset_full_is_the_published_array():
    assert (PRESETS["full"].rows, PRESETS["full"].columns) == (128, 128)


def test_neuroncore_presets_are_the_full_one_at_the_rates_of_the_silicon():
    """Clocks: 1.12, 1.4 and 1.4 GHz beside the array's 2.8; a DMA starts in 1.3 us, HBM has 410 GB/s."""
    trainium = PRESETS["trainium1"]
    assert trainium == PRESETS["inferentia2"] == PRESETS["full"].with_overrides(**trainium.rates)
    mhz = [trainium.clock_mhz * speed // 100 for speed in (trainium.vector_speed, trainium.scalar_speed)]
    assert mhz == [1120, 1400] and trainium.gpsimd_speed == trainium.scalar_speed
    assert trainium.microseconds(trainium.dma_start) == pytest.approx(1.3)
    assert trainium.hbm_rate * trainium.clock_mhz / 1000 == pytest.approx(272, rel=0.01)
    assert trainium.ring_rate * trainium.clock_mhz / 1000 == pytest.approx(27.2, rel=0.03)
    assert trainium.microseconds(trainium.launch_cycles) == pytest.approx(10.51 + 5.03)
    assert PRESETS["full"].rates == {} and PRESETS["full"].microseconds(1) is None
