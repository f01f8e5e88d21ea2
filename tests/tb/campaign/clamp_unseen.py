"""A test that simulates no clamp."""

from tests.tb.campaign.clamp import Clamp


def test_a_number_has_eight_bits():
    assert len(Clamp().i) == len(Clamp().o) == 8
