"""A test of the clamp that does not look at `large`."""

from tests.tb.campaign.clamp_seen import expected, outputs


def test_numbers():
    assert [number for number, _ in outputs()][:256] == [expected(number) for number in range(256)]
