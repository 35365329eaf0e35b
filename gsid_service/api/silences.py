"""Silences: which alerts nobody is told of for a while."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from gsid_service.api import paging
from gsid_service.api.access import Operator, Reader, author, unbound
from gsid_service.api.bodies import JSONRoute
from gsid_service.api.documents import NETWORK, Page
from gsid_service.api.networks import READ, WRITE, service_of
from gsid_service.api.paging import Cursor, Limit, number_in
from gsid_service.api.problems import Problem, about, answers, unknown
from gsid_service.api.quiet import WARNINGS, changing, must_be_meant, strangers, too_long
from gsid_service.api.text import Text
from gsid_service.notices import Comparison, Label, Matcher, Silence
from gsid_service.notify.silence import is_broad
from gsid_service.schema import LOCAL_PREF
from gsid_service.store import silences
from gsid_service.store.tokens import Token

router = APIRouter(prefix="/silences", tags=["silences"], route_class=JSONRoute)
SilenceId = Annotated[str, Path(max_length=20, examples=["q3"])]


class MatcherDocument(BaseModel):
    """A condition on a label; `~` compares with `*`, `?` and `[…]` as in file names."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Label
    operator: Comparison = "="
    value: Text = Field(max_length=2000, examples=[NETWORK])


class SilenceWanted(BaseModel):
    """Which alerts to keep quiet, why and how long."""

    model_config = ConfigDict(extra="forbid")

    matchers: list[MatcherDocument] = Field(
        min_length=1,
        max_length=20,
        examples=[
            [
                {"name": "network", "operator": "=", "value": NETWORK},
                {"name": "parameter", "operator": "=", "value": LOCAL_PREF.name},
            ]
        ],
    )
    comment: Text = Field(min_length=1, max_length=2000, examples=["known, fixed on Monday"])
    starts_at: AwareDatetime | None = Field(default=None, description="Now, where it is not given.")
    ends_at: AwareDatetime = Field(examples=["2099-11-16T06:00:00Z"])
    author: Text | None = Field(
        default=None, max_length=200, description="Where no tokens say who asks.", examples=["ann"]
    )
    confirm: bool = Field(
        default=False,
        strict=True,
        description="Needed for one that is long, or matches much.",
    )


class SilenceDocument(BaseModel):
    id: str = Field(examples=["q3"])
    status: Literal["pending", "active", "expired"]
    matchers: list[MatcherDocument]
    author: str = Field(examples=["ann"])
    comment: str
    created_at: datetime
    starts_at: datetime
    ends_at: datetime

    @classmethod
    def of(cls, silence: Silence, now: datetime) -> "SilenceDocument":
        begun, over = silence.starts_at <= now, silence.ends_at <= now
        return cls(
            id=silence.id,
            status="expired" if over else "active" if begun else "pending",
            matchers=[MatcherDocument.model_validate(m._asdict()) for m in silence.matchers],
            **{name: getattr(silence, name) for name in PLAIN},
        )


class AddedSilence(SilenceDocument):
    warnings: list[str] = Field(description=WARNINGS)


PLAIN = ("author", "comment", "created_at", "starts_at", "ends_at")


@router.get("", responses=answers(401, 403, 422))
def list_silences(
    request: Request,
    who: Reader,
    expired: Annotated[bool, Query(description="Those that are over, too.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[SilenceDocument]:
    """Silences, the newest first."""
    (before,) = paging.decode(cursor, int) or (None,)
    service = service_of(request)
    now = service.clock()
    with service.database.read() as connection:
        found = silences.page(connection, before, limit + 1, None if expired else now)
    seen = [SilenceDocument.of(s, now) for s in found[:limit] if _concerns(s, who)]
    return Page(items=seen, next=paging.following(found, limit))


@router.post("", status_code=201, responses=WRITE | answers(409))
def add_silence(request: Request, who: Operator, wanted: SilenceWanted) -> AddedSilence:
    """Keep alerts quiet until a time."""
    service = service_of(request)
    now = service.clock()
    silence = Silence(
        number=0,
        matchers=tuple(Matcher(m.name, m.operator, m.value) for m in wanted.matchers),
        author=author(who, wanted.author),
        comment=wanted.comment,
        created_at=now,
        starts_at=paging.instant("starts_at", wanted.starts_at) if wanted.starts_at else now,
        ends_at=paging.instant("ends_at", wanted.ends_at),
    )
    _check(silence, who, now)
    must_be_meant(_doubts(silence), wanted.confirm)
    named = [(m.name, m.value) for m in silence.matchers if m.operator == "="]
    unknown_names = strangers(service, named)
    with changing(service, now) as connection:
        silence = silences.add(connection, silence)
    return AddedSilence(**dict(SilenceDocument.of(silence, now)), warnings=unknown_names)


@router.get("/{silence_id}", responses=READ)
def get_silence(request: Request, who: Reader, silence_id: SilenceId) -> SilenceDocument:
    service = service_of(request)
    with service.database.read() as connection:
        return SilenceDocument.of(_find(connection, silence_id, who), service.clock())


@router.delete("/{silence_id}", responses=READ | answers(409))
def end_silence(request: Request, who: Operator, silence_id: SilenceId) -> SilenceDocument:
    """End a silence now; it stays to be seen."""
    service = service_of(request)
    now = service.clock()
    with changing(service, now) as connection:
        silence = _find(connection, silence_id, who, to_change=True)
        _own(silence, who)
        if silence.ends_at <= now:
            raise Problem(409, f"{silence_id} is over already")
        silences.end(connection, silence.number, now)
        return SilenceDocument.of(_find(connection, silence_id, who), now)


def _check(silence: Silence, who: Token, now: datetime) -> None:
    if silence.ends_at <= max(silence.starts_at, now):
        reason = "must be after starts_at, and in the future"
        raise about(422, "ends_at", reason)
    _own(silence, who)


def _doubts(silence: Silence) -> list[str]:
    """Why it is probably not meant."""
    broad = "it names no alert, fact or entity, and no network with something else about it"
    return [
        *([broad] if is_broad(silence.matchers) else []),
        *too_long(silence.starts_at, silence.ends_at),
    ]


def _own(silence: Silence, who: Token) -> None:
    """A caller who is bound to networks may silence one of these, and nothing else."""
    named = {m.value for m in silence.matchers if (m.name, m.operator) == ("network", "=")}
    if not named & set(who.networks):
        unbound(who)


def _concerns(silence: Silence, who: Token) -> bool:
    """Whether a caller sees it: it may concern one of the caller's networks."""
    named = {m.value for m in silence.matchers if (m.name, m.operator) == ("network", "=")}
    return not who.networks or not named or bool(named & set(who.networks))


def _find(connection: Connection, silence_id: str, who: Token, to_change: bool = False) -> Silence:
    number = number_in("q", silence_id)
    found = None if number is None else silences.find(connection, number, to_change)
    if found is None or not _concerns(found, who):
        raise unknown("silence", silence_id)
    return found
