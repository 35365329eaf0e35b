"""Scores: the newest of every value, and how each came about over time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, delete, func, select

from gsid_service.records import FactKey
from gsid_service.store.database import upsert
from gsid_service.store.scored import Score, Scored
from gsid_service.store.tables import score_history, scores

AT_ONCE = 10_000  # rows of one statement
_SLOT = (
    (scores.c.network == bindparam("of_network"))
    & (scores.c.fact == bindparam("of"))
    & (scores.c.parameter == bindparam("what"))
)
_LINE = ("network", "fact", "parameter", "at", "observed", "score", "snapshot")
_BEGIN = score_history.insert().from_select(
    _LINE,
    select(*(scores.c["since" if name == "at" else name] for name in _LINE)).where(
        _SLOT,
        ~select(score_history.c.number)
        .where(*(score_history.c[name] == scores.c[name] for name in _LINE[:3]))
        .exists(),
    ),
)


def kept(connection: Connection, network: str) -> Scored:
    """The scores of a network."""
    rows = connection.execute(select(scores).where(scores.c.network == network))
    return Scored.of(
        Score(
            *(FactKey(row.predicate, tuple(row.args)), row.parameter),
            *(row.observed, row.baseline, row.score, row.stale),
        )
        for row in rows
    )


def replace(
    connection: Connection,
    network: str,
    found: Scored,
    snapshot_of: Callable[[FactKey], int],
    now: datetime,
    before: Scored | None = None,
) -> Scored:
    """Keep what differs from what is kept already, and forget values that are gone.

    `before` is what is kept, for who knows it; what is kept then is the answer. `snapshot_of` says
    which snapshot last stated a fact.
    """
    before = kept(connection, network) if before is None else before
    same = before.in_order_of(found.facts)
    differing = found.differing(same)
    noted = found.noted(same)
    for some in _some(found.at(noted & same.there)):  # a history begins with what was before
        connection.execute(_BEGIN, [_slot(network, *score.slot) for score in some])
    for some in _some(found.at(differing)):
        upsert(connection, scores, [_row(network, s, snapshot_of(s.fact), now) for s in some])
    for some in _some(found.at(noted)):
        lines = [_line(network, s, snapshot_of(s.fact), now) for s in some]
        connection.execute(score_history.insert(), lines)
    _forget(connection, network, before, same, found)
    return found.upon(same, differing)


def _some(found: Iterable[Score]) -> Iterator[list[Score]]:
    """A number of them after another, which bounds the memory."""
    found = iter(found)
    while some := list(islice(found, AT_ONCE)):
        yield some


def _forget(
    connection: Connection, network: str, before: Scored, same: Scored, found: Scored
) -> None:
    gone = [score.slot for score in same.at(same.there & ~found.there)]
    if same is not before:
        there = set(found.facts)
        missing = np.array([fact not in there for fact in before.facts], dtype=np.bool_)
        gone += [score.slot for score in before.at(before.there & missing[:, None])]
    if gone:
        connection.execute(delete(scores).where(_SLOT), [_slot(network, *slot) for slot in gone])


def _slot(network: str, fact: str, parameter: str) -> dict[str, str]:
    return {"of_network": network, "of": fact, "what": parameter}


def _row(network: str, score: Score, snapshot: int, now: datetime) -> dict[str, Any]:
    return {
        "network": network,
        "fact": score.fact.digest,
        "parameter": score.parameter,
        "predicate": score.fact.predicate,
        "args": list(score.fact.args),
        "observed": score.observed,
        "baseline": score.baseline,
        "score": score.score,
        "stale": score.stale,
        "snapshot": snapshot,
        "since": now,
    }


def _line(network: str, score: Score, snapshot: int, now: datetime) -> dict[str, Any]:
    row = _row(network, score, snapshot, now)
    kept = {name: row[name] for name in ("network", "fact", "parameter", "observed", "score")}
    return kept | {"at": now, "snapshot": snapshot}


def page(
    connection: Connection,
    network: str,
    least: float,
    parameter: str | None,
    after: tuple[float, str, str] | None,
    limit: int,
) -> list[dict[str, Any]]:
    """The scores of a network, the highest first."""
    query = select(scores).where(scores.c.network == network, scores.c.score >= least)
    if parameter is not None:
        query = query.where(scores.c.parameter == parameter)
    if after is not None:
        score, fact, name = after
        query = query.where(
            (scores.c.score < score)
            | (
                (scores.c.score == score)
                & ((scores.c.fact > fact) | ((scores.c.fact == fact) & (scores.c.parameter > name)))
            )
        )
    order = scores.c.score.desc(), scores.c.fact, scores.c.parameter
    return [dict(row._mapping) for row in connection.execute(query.order_by(*order).limit(limit))]


def history(
    connection: Connection, network: str, fact: str, parameter: str, limit: int
) -> list[dict[str, Any]]:
    """The scores of one value over time, the newest first."""
    query = select(score_history).where(
        score_history.c.network == network,
        score_history.c.fact == fact,
        score_history.c.parameter == parameter,
    )
    rows = connection.execute(query.order_by(score_history.c.number.desc()).limit(limit))
    return [dict(row._mapping) for row in rows]


def stale(connection: Connection, network: str) -> set[tuple[str, str]]:
    """The values that only silent collectors state, as a fact's digest and a parameter."""
    query = select(scores.c.fact, scores.c.parameter).where(scores.c.network == network)
    return {(row.fact, row.parameter) for row in connection.execute(query.where(scores.c.stale))}


def marks(connection: Connection, network: str, least: float) -> list[tuple[str, float, bool]]:
    """The digest, score and staleness of the values that are suspicious or stale."""
    query = select(scores.c.fact, scores.c.score, scores.c.stale).where(
        scores.c.network == network, (scores.c.score >= least) | scores.c.stale
    )
    return [(row.fact, row.score, row.stale) for row in connection.execute(query)]


def of_facts(connection: Connection, network: str, facts: Sequence[str]) -> list[dict[str, Any]]:
    """The scores of some facts, named by their digests."""
    query = select(scores).where(scores.c.network == network, scores.c.fact.in_(facts))
    return [dict(row._mapping) for row in connection.execute(query)]


def at(connection: Connection, network: str, before: datetime, least: float) -> list[Any]:
    """The scores as they were before a time, the highest first; facts by their digests."""
    last = (
        select(func.max(score_history.c.number).label("number"))
        .where(score_history.c.network == network, score_history.c.at < before)
        .group_by(score_history.c.fact, score_history.c.parameter)
        .subquery()
    )
    query = (
        select(score_history)
        .join(last, last.c.number == score_history.c.number)
        .where(score_history.c.score >= least)
    )
    return list(connection.execute(query.order_by(score_history.c.score.desc())))


def lines(connection: Connection, network: str, least: float, limit: int) -> list[Any]:
    """The history of every value that was ever as suspicious as `least`, the oldest first."""
    suspicious = (
        select(score_history.c.fact, score_history.c.parameter)
        .where(score_history.c.network == network, score_history.c.score >= least)
        .distinct()
        .subquery()
    )
    query = (
        select(
            score_history.c.fact,
            score_history.c.parameter,
            score_history.c.at,
            score_history.c.score,
        )
        .join(
            suspicious,
            (score_history.c.fact == suspicious.c.fact)
            & (score_history.c.parameter == suspicious.c.parameter),
        )
        .where(score_history.c.network == network)
        .order_by(score_history.c.number.desc())
        .limit(limit)
    )
    return list(reversed(connection.execute(query).all()))
