"""Networks: their state, scores, baselines and intents."""

import asyncio
import time
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import Connection

from gsid_service.api import paging
from gsid_service.api.access import Operator, Reader, bound
from gsid_service.api.bodies import JSONRoute
from gsid_service.api.documents import (
    CollectorDocument,
    Difference,
    FactRef,
    GraphDocument,
    GraphFact,
    NetworkDocument,
    NetworkSettings,
    Page,
    ScoreDocument,
    ScoreLine,
    SnapshotDocument,
)
from gsid_service.api.paging import Cursor, Limit
from gsid_service.api.problems import about, answers, unknown
from gsid_service.api.text import Text
from gsid_service.app import Service
from gsid_service.ingest.wire import dump_entity, dump_fact, dump_params
from gsid_service.records import Fact, FactKey
from gsid_service.schema import BGP_ROUTE, LOCAL_PREF, SCHEMA
from gsid_service.store import networks, scores, snapshots
from gsid_service.store.networks import Network
from gsid_service.store.tokens import Token

router = APIRouter(prefix="/networks", tags=["networks"], route_class=JSONRoute)
WAIT_AT_MOST = 30
Name = Annotated[Text, Path(max_length=200, examples=["as65000"])]
READ, WRITE = answers(401, 403, 404, 422), answers(400, 401, 403, 404, 413, 415, 422)


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def known(connection: Connection, name: str, who: Token, to_change: bool = False) -> Network:
    """The network, if it is there and the caller may see it."""
    bound(who, name)
    network = networks.find(connection, name, to_change)
    if network is None:
        raise unknown("network", name, "network")
    return network


def snapshot_number(snapshot_id: str, field: str = "snapshot") -> int:
    """The number in an id such as s1042."""
    digits = snapshot_id[1:]
    if snapshot_id[:1] != "s" or not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        reason = f"{snapshot_id!r} is not the id of a snapshot, as in s1042"
        raise about(422, field, reason)
    return int(digits)


def own_snapshot(
    connection: Connection, network: str, snapshot_id: str, field: str = "snapshot"
) -> int:
    """The number of a snapshot, which must be one of this network."""
    number = snapshot_number(snapshot_id, field)
    if snapshots.network_of(connection, number) != network:
        reason = f"{snapshot_id} is not a snapshot of {network}"
        raise about(404, field, reason)
    return number


@router.get("", responses=answers(401, 403, 422))
def list_networks(
    request: Request, who: Reader, limit: Limit = 100, cursor: Cursor = None
) -> Page[NetworkDocument]:
    """All networks, by name."""
    (after,) = paging.decode(cursor, str) or ("",)
    with service_of(request).database.read() as connection:
        found = networks.page(connection, after, limit + 1, who.networks)
    following = paging.following(found, limit, "name")
    return Page(items=[NetworkDocument.of(network) for network in found[:limit]], next=following)


@router.get("/{network}", responses=READ)
def get_network(request: Request, who: Reader, network: Name) -> NetworkDocument:
    """One network, with what its collectors disagree on and how many intents are broken."""
    with service_of(request).database.read() as connection:
        return NetworkDocument.of(known(connection, network, who))


@router.patch("/{network}", responses=WRITE)
def change_network(
    request: Request, who: Operator, network: Name, settings: NetworkSettings
) -> NetworkDocument:
    """Change the settings that are given; the others stay. Derived intents follow."""
    service = service_of(request)
    with service.database.write() as connection:
        before = known(connection, network, who, to_change=True)
        given = settings.model_dump(exclude_unset=True)
        networks.change_settings(connection, network, {**before.settings, **given})
        snapshots.touch(connection, [network])
        after = known(connection, network, who)
    service.expectations.follow_settings(before, after, who.name)
    service.wake([network])
    return NetworkDocument.of(after)


@router.get("/{network}/collectors", responses=READ)
def list_collectors(request: Request, who: Reader, network: Name) -> Page[CollectorDocument]:
    """The collectors of a network, and when each was last heard."""
    with service_of(request).database.read() as connection:
        known(connection, network, who)
        found = snapshots.collectors(connection, network)
    return Page(items=[CollectorDocument(id=c.pop("collector"), **c) for c in found])


@router.get("/{network}/snapshots", responses=READ)
def list_snapshots(
    request: Request, who: Reader, network: Name, limit: Limit = 100, cursor: Cursor = None
) -> Page[SnapshotDocument]:
    """Snapshots as they came in, the newest first."""
    (before,) = paging.decode(cursor, int) or (None,)
    with service_of(request).database.read() as connection:
        known(connection, network, who)
        found = snapshots.page(connection, network, before, limit + 1)
    items = [SnapshotDocument(snapshot_id=f"s{s.pop('number')}", **s) for s in found[:limit]]
    following = paging.encode([int(items[-1].snapshot_id[1:])]) if len(found) > limit else None
    return Page(items=items, next=following)


@router.get("/{network}/scores", responses=READ)
async def list_scores(
    request: Request,
    who: Reader,
    network: Name,
    snapshot: Annotated[
        str | None,
        Query(max_length=20, description="Scores that include this snapshot.", examples=["s1042"]),
    ] = None,
    least: Annotated[float, Query(alias="min", ge=0, le=1, description="Least score.")] = 0,
    parameter: Annotated[str | None, Query(max_length=64, examples=[LOCAL_PREF.name])] = None,
    wait: Annotated[
        float, Query(ge=0, le=WAIT_AT_MOST, description="Seconds to wait for that snapshot.")
    ] = 0,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[ScoreDocument]:
    """How likely each value is wrong, the most suspicious first."""
    service = service_of(request)
    if snapshot is not None:
        snapshot_number(snapshot)
    if parameter is not None and parameter not in {p.name for p in SCHEMA.monitored}:
        reason = f"{parameter!r} is none of {', '.join(p.name for p in SCHEMA.monitored)}"
        raise about(422, "parameter", reason)
    after = paging.decode(cursor, float, str, str)
    if snapshot is not None:
        await _until_scored(service, network, snapshot, wait, who)

    def read() -> Page[ScoreDocument]:
        with service.database.read() as connection:
            known(connection, network, who)
            place = tuple(after) if after else None
            found = scores.page(connection, network, least, parameter, place, limit + 1)
        items = [_score(row) for row in found[:limit]]
        if len(found) <= limit:
            return Page(items=items)
        last = found[limit - 1]
        following = paging.encode([last["score"], last["fact"], last["parameter"]])
        return Page(items=items, next=following)

    return await run_in_threadpool(read)


async def _until_scored(
    service: Service, network: str, snapshot: str, wait: float, who: Token
) -> None:
    """Return once the scores include the snapshot; a snapshot that is not there is a 404."""
    deadline = time.monotonic() + wait
    while True:
        scored = await run_in_threadpool(_scored, service, network, snapshot, who)
        if scored:
            return
        if time.monotonic() >= deadline:
            reason = f"{snapshot} has not been scored yet; ask with wait=SECONDS"
            raise about(404, "snapshot", reason)
        await asyncio.sleep(0.02)


def _scored(service: Service, name: str, snapshot: str, who: Token) -> bool:
    with service.database.read() as connection:
        network = known(connection, name, who)
        return network.scored >= own_snapshot(connection, name, snapshot)


def _score(row: dict[str, Any]) -> ScoreDocument:
    kept = ("parameter", "observed", "baseline", "score", "stale", "since")
    return ScoreDocument(
        fact=FactRef(predicate=row["predicate"], args=row["args"]),
        snapshot_id=f"s{row['snapshot']}",
        **{name: row[name] for name in kept},
    )


@router.get("/{network}/scores/history", responses=READ)
def score_history(
    request: Request,
    who: Reader,
    network: Name,
    predicate: Annotated[Text, Query(max_length=64, examples=[BGP_ROUTE.name])],
    arg: Annotated[list[Text], Query(max_length=8, examples=[["AS65101@R3", "203.0.113.0/24"]])],
    parameter: Annotated[Text, Query(max_length=64, examples=[LOCAL_PREF.name])],
    limit: Limit = 100,
) -> Page[ScoreLine]:
    """The score of one value over time, the newest first."""
    key = FactKey(predicate, tuple(arg)).digest
    with service_of(request).database.read() as connection:
        known(connection, network, who)
        found = scores.history(connection, network, key, parameter, limit)
    items = [
        ScoreLine(
            at=line["at"],
            observed=line["observed"],
            score=line["score"],
            snapshot_id=f"s{line['snapshot']}",
        )
        for line in found
    ]
    return Page(items=items)


@router.get("/{network}/graph", responses=READ)
def get_graph(request: Request, who: Reader, network: Name) -> GraphDocument:
    """The network as all its collectors see it now."""
    service = service_of(request)
    with service.database.read() as connection:
        known(connection, network, who)
    _, merged = service.merged(network)
    facts = [
        GraphFact(
            **dump_fact(stated.fact) | {"params": dump_params(stated.fact)},
            collector=stated.collector,
            snapshot_id=stated.snapshot_id,
            observed_at=stated.observed_at,
            stale=key in merged.stale,
        )
        for key, stated in merged.source.items()
    ]
    entities = [dump_entity(entity) for entity in merged.entities]
    return GraphDocument(network=network, entities=entities, facts=facts)


@router.get("/{network}/diff", responses=READ)
def get_diff(
    request: Request,
    who: Reader,
    network: Name,
    before: Annotated[str, Query(alias="from", max_length=20, examples=["s1041"])],
    after: Annotated[str, Query(alias="to", max_length=20, examples=["s1042"])],
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Difference]:
    """What changed between the states with two snapshots."""
    (start,) = paging.decode(cursor, int) or (0,)
    service = service_of(request)
    with service.database.read() as connection:
        known(connection, network, who)
        ends = ((before, "from"), (after, "to"))
        numbers = [own_snapshot(connection, network, name, field) for name, field in ends]
    changes = differences(*(service.state_at(network, number).facts for number in numbers))
    end = max(start, 0) + limit
    following = paging.encode([end]) if end < len(changes) else None
    return Page(items=changes[max(start, 0) : end], next=following)


def differences(before: Iterable[Fact], after: Iterable[Fact]) -> list[Difference]:
    """How two states differ, by fact."""
    old, new = ({fact.key: fact for fact in facts} for facts in (before, after))
    return [
        Difference(
            fact=FactRef.of(key),
            what="added" if key not in old else "removed" if key not in new else "changed",
            before=dump_params(old[key]) if key in old else None,
            after=dump_params(new[key]) if key in new else None,
        )
        for key in sorted(old.keys() | new.keys())
        if key not in old or key not in new or old[key].params != new[key].params
    ]
