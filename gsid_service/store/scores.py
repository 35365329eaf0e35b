"""Scores: the newest of every value, and how each came about over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select

from gsid_service.records import FactKey
from gsid_service.store.database import upsert
from gsid_service.store.tables import score_history, scores

SMALLEST_CHANGE = 0.01  # of a score that is worth a line in its history
QUIET = 0.1  # a new value below this has no history yet


@dataclass(frozen=True, slots=True)
class Score:
    """How likely one value is wrong."""

    fact: FactKey
    parameter: str
    observed: int
    baseline: int | None
    score: float
    stale: bool
    snapshot: int

    @property
    def slot(self) -> tuple[str, str]:
        return self.fact.digest, self.parameter


def replace(connection: Connection, network: str, found: Sequence[Score], now: datetime) -> None:
    """Keep what differs from what is kept already, and forget values that are gone."""
    before = {
        (row.fact, row.parameter): (row.observed, row.baseline, row.score, row.stale)
        for row in connection.execute(select(scores).where(scores.c.network == network))
    }
    changed = [s for s in found if _differs(s, before.get(s.slot))]
    noted = [s for s in changed if _is_noted(s, before.get(s.slot))]
    upsert(connection, scores, [_row(network, s, now) for s in changed])
    if noted:
        connection.execute(score_history.insert(), [_line(network, s, now) for s in noted])
    gone = sorted(before.keys() - {s.slot for s in found})
    if gone:
        this = (scores.c.fact == bindparam("of")) & (scores.c.parameter == bindparam("what"))
        connection.execute(
            delete(scores).where(scores.c.network == network, this),
            [{"of": fact, "what": parameter} for fact, parameter in gone],
        )


def _differs(score: Score, before: tuple[int, int | None, float, bool] | None) -> bool:
    if before is None:
        return True
    same = before[:2] == (score.observed, score.baseline) and before[3] == score.stale
    return not same or abs(before[2] - score.score) >= SMALLEST_CHANGE


def _is_noted(score: Score, before: tuple[int, int | None, float, bool] | None) -> bool:
    if before is None:
        return score.score >= QUIET
    return before[0] != score.observed or abs(before[2] - score.score) >= SMALLEST_CHANGE


def _row(network: str, score: Score, now: datetime) -> dict[str, Any]:
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
        "snapshot": score.snapshot,
        "since": now,
    }


def _line(network: str, score: Score, now: datetime) -> dict[str, Any]:
    row = _row(network, score, now)
    kept = {name: row[name] for name in ("network", "fact", "parameter", "observed", "score")}
    return kept | {"at": now, "snapshot": score.snapshot}


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
