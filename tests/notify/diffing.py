"""`gsid serve` where every value that differs from the approved one scores 1.

What is tested is what becomes of alerts, not which there are: so many alerts as one likes.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from gsid_service import app, serve
from gsid_service.config import Settings
from gsid_service.diagnose.diagnosis import Here
from gsid_service.ingest.wire import dump_snapshot
from gsid_service.records import Collector, Entity, Fact, Snapshot
from gsid_service.score.rivals import diff
from tests.flow import forking

RIGHT, WRONG = 10, 20


class Diffing(forking.Forked):
    module = "tests.notify.diffing"


def star(network: str, sequence: int, links: int, wrong: Iterable[int] = ()) -> dict[str, Any]:
    """A router with so many links, some of a wrong weight, as its one collector sees it."""
    entities = tuple(Entity(f"R{n}", "router") for n in range(links + 1))
    faulty = set(wrong)
    facts = tuple(
        Fact("connected", ("R0", f"R{n}"), {"ospf_weight": WRONG if n in faulty else RIGHT})
        for n in range(1, links + 1)
    )
    who, now = Collector("rr1", "route_reflector"), datetime.now(UTC)
    return dump_snapshot(Snapshot(network, who, sequence, now, True, entities, facts))


def _no_model(_: Settings) -> Here:
    return Here(diff, "diff")


if __name__ == "__main__":
    app.GIVE_WAY_SECONDS = 0.0  # nobody else sends snapshots
    serve._load_model = _no_model  # type: ignore[assignment]
    forking.main()
