from datetime import UTC, datetime, timedelta

import pytest

from gsid_service.console.site import ago

NOW = datetime(2026, 11, 15, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 s ago"),
        (59.9, "59 s ago"),
        (60, "1 min ago"),
        (3_599.9, "59 min ago"),
        (5_400, "1 h ago"),
        (172_799, "1 d ago"),
    ],
)
def test_no_time_is_said_to_be_longer_ago_than_it_is(seconds: float, said: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == said
