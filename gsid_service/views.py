"""Each collector's view of a network: from its stored snapshots, the newest laid upon the older."""

from collections.abc import Iterable
from zlib import decompress

from sqlalchemy import Connection

from gsid_service.assemble.merge import View, extend
from gsid_service.ingest.wire import parse_snapshot
from gsid_service.store import snapshots
from gsid_service.store.snapshots import Chain, Kept


class Views:
    """The newest views; what was read once is remembered."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Chain, View]] = {}

    def of(self, connection: Connection, name: str) -> dict[str, View]:
        """What each collector says of a network."""
        chains = snapshots.chains(connection, name)
        return {c: self._view(connection, name, c, chain) for c, chain in chains.items()}

    def _view(self, connection: Connection, name: str, collector: str, chain: Chain) -> View:
        """A collector's view; only what is new is read, unless something came out of order."""
        known = self._known.get((name, collector))
        if known and known[0] == chain:
            return known[1]
        fresh: list[Kept] = []
        if known and known[0].first == chain.first:
            fresh = snapshots.chain(connection, name, collector, known[0].last + 1)
        if known and fresh and known[0].length + len(fresh) == chain.length:
            view = extended(known[1], fresh)
        else:
            view = extended(None, snapshots.chain(connection, name, collector, chain.first))
        self._known[name, collector] = chain, view
        return view


def views_at(connection: Connection, name: str, number: int) -> list[View]:
    """The views when a snapshot had come in."""
    chains = snapshots.chains(connection, name, number)
    return [
        extended(None, snapshots.chain(connection, name, collector, chain.first, number))
        for collector, chain in chains.items()
    ]


def extended(view: View | None, kept: Iterable[Kept]) -> View:
    """A view with more snapshots laid upon it; there is at least one."""
    for one in kept:
        view = extend(view, parse_snapshot(decompress(one.body)), f"s{one.number}")
    if view is None:
        raise LookupError("a view of no snapshots")
    return view
