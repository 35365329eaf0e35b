"""The short form of `tests.fault.cluster`: seconds in place of minutes, and few networks."""

from pathlib import Path

from tests.fault.cluster import Plan, run
from tests.flow.server import need_model

SHORT = Plan(
    networks=8,
    seconds=14.0,
    kill_every=2.0,
    rate=4.0,
    burst=10,
    burst_every=4.0,
    restarts=1,
    settle=90.0,
)


def test_nothing_is_lost_told_twice_or_left_undone(tmp_path: Path) -> None:
    need_model()
    report = run(SHORT, tmp_path)
    assert report.failures == [], report.rows
