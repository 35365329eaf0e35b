"""Small sights and settings for tests of the collector."""

from pathlib import Path
from typing import Any

from gsid_service.collect.classes import singly
from gsid_service.collect.settings import Settings
from gsid_service.collect.source import Route, Sight
from gsid_service.collect.tables import Tables
from gsid_service.collect.view import View, view_of
from gsid_service.records import Entity, Fact

PEERING = "AS65101@R1"


def settings(
    folder: Path,
    *routers: str,
    url: str = "http://127.0.0.1:9",
    names: dict[str, str] | None = None,
    **collector: Any,
) -> Settings:
    """Of a site whose routers are named; their source is never asked."""
    return Settings.model_validate(
        {
            "network": "net",
            "service": {"url": url},
            "collector": {"state": folder, "metrics_port": 0} | collector,
            "names": names or {},
            "routers": [{"name": name, "source": "file"} for name in routers or ("R1",)],
        }
    )


def sight(
    *prefixes: str, router: str = "R1", cost: int = 10, local_pref: int | None = 100
) -> Sight:
    """A gateway with a link, a peering and some prefixes, all heard alike."""
    peering = f"AS65101@{router}"
    return Sight(
        router=router,
        role="router",
        entities=(
            Entity(router, "router"),
            Entity("R9", "router"),
            Entity(peering, "external_as", 65101),
        ),
        facts=(
            Fact("connected", (router, "R9"), {"ospf_weight": cost}),
            Fact("ebgp", (router, peering)),
        ),
        routes={prefix: (Route(peering, 2, local_pref=local_pref),) for prefix in prefixes},
        hops=dict.fromkeys(prefixes, (peering,)),
    )


def view(seen: Sight) -> View:
    """A sight as the service would keep it, of a site that has no other router."""
    tables = Tables()
    tables.put("one", seen.routes, seen.hops)
    return view_of("one", seen, tables, singly(tables))
