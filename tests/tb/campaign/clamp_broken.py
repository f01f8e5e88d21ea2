"""A test of the clamp that fails."""

from tests.tb.campaign.clamp_seen import outputs


def test_numbers():
    assert outputs() == []
