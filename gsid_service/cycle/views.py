"""Each collector's view of a network: from its stored snapshots, the newest laid upon the older;
and all of them as one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from zlib import decompress

from sqlalchemy import Connection

from gsid_service.assemble.merge import Merged, View, extend, merge, merge_again, touched
from gsid_service.ingest.wire import parse_snapshot
from gsid_service.recent import Recent
from gsid_service.records import FactKey
from gsid_service.store import snapshots
from gsid_service.store.snapshots import Chain, Kept

ROOM = 4_000_000  # facts
LARGEST_SHARE = 0.25  # of facts that are touched; with more, all views are merged anew


class Views:
    """The newest views; what was read once is remembered."""

    def __init__(self) -> None:
        self._known = Recent[tuple[Chain, View]](ROOM)
        self._merged = Recent[tuple[Mapping[str, View], set[str], Merged]](ROOM)

    def of(self, connection: Connection, name: str) -> dict[str, View]:
        """What each collector says of a network."""
        chains = snapshots.chains(connection, name)
        return {c: self._view(connection, name, c, chain) for c, chain in chains.items()}

    def first(self, name: str, kept: Kept) -> View:
        """What a collector said with a complete snapshot, which is read only if it is not known."""
        known = self._known.get((name, kept.collector))
        if known and known[0] == Chain(kept.sequence, kept.sequence, 1):
            return known[1]
        return extended(None, [kept])

    def merged(self, name: str, views: Mapping[str, View], silent: set[str]) -> Merged:
        """The views as one network."""
        known = self._merged.get(name)
        if known is None or not _is_same(known[0], views) or known[1] != silent:
            merged = _merged_again(known, views, silent) or merge(views.values(), silent)
            self._merged.put(name, (views, silent, merged), len(merged.facts))
            return merged
        return known[2]

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
        self._known.put((name, collector), (chain, view), len(view.facts))
        return view


def _is_same(before: Mapping[str, View], after: Mapping[str, View]) -> bool:
    same = (before[collector] is view for collector, view in after.items() if collector in before)
    return before.keys() == after.keys() and all(same)


def _merged_again(
    known: tuple[Mapping[str, View], set[str], Merged] | None,
    views: Mapping[str, View],
    silent: set[str],
) -> Merged | None:
    """From the last state of the same collectors, where little was said since."""
    if known is None or known[0].keys() != views.keys() or known[1] != silent:
        return None
    facts, entities = set[FactKey](), set[str]()
    for collector, view in views.items():
        if view is not known[0][collector]:
            more_facts, more_entities = touched(known[0][collector], view)
            facts |= more_facts
            entities |= more_entities
    if len(facts) > LARGEST_SHARE * len(known[2].facts):
        return None
    return merge_again(known[2], views.values(), facts, entities, silent)


def views_at(connection: Connection, name: str, number: int) -> list[View]:
    """The views when a snapshot had come in."""
    chains = snapshots.chains(connection, name, number)
    return [
        extended(None, snapshots.chain(connection, name, collector, chain.first, number))
        for collector, chain in chains.items()
    ]


def extended(view: View | None, kept: Iterable[Kept]) -> View:
    """A view with more snapshots laid upon it; there is at least one.

    Nothing is observed after it came in: a clock that is ahead must not win every conflict.
    """
    for one in kept:
        snapshot = parse_snapshot(decompress(one.body))
        at = min(snapshot.observed_at, one.received_at)
        view = extend(view, replace(snapshot, observed_at=at), f"s{one.number}")
    if view is None:
        raise LookupError("a view of no snapshots")
    return view
