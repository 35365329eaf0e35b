"""Receivers, and the messages that are under way to them, arrived, or were given up."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from gsid_service.api import paging
from gsid_service.api.access import Operator, Reader, bound, unbound
from gsid_service.api.bodies import JSONRoute
from gsid_service.api.documents import NETWORK, Page
from gsid_service.api.networks import READ, service_of
from gsid_service.api.paging import Cursor, Limit, number_in
from gsid_service.api.problems import Problem, answers, unknown
from gsid_service.api.text import Text
from gsid_service.app import Service
from gsid_service.notices import Delivery, Sending
from gsid_service.store import outbox
from gsid_service.store.tokens import Token

receivers = APIRouter(prefix="/receivers", tags=["receivers"], route_class=JSONRoute)
deliveries = APIRouter(prefix="/deliveries", tags=["deliveries"], route_class=JSONRoute)
Name = Annotated[Text, Path(max_length=64, examples=["noc"])]
DeliveryId = Annotated[str, Path(max_length=20, examples=["d12"])]
State = Literal["pending", "delivered", "dead"]


class ReceiverDocument(BaseModel):
    """Who is told, and how that goes."""

    name: str = Field(examples=["noc"])
    type: str = Field(examples=["webhook"])
    target: str = Field(description="Without what may be secret.", examples=["https://noc.example"])
    min_severity: str = Field(examples=["major"])
    pending: int
    dead: int
    disabled_at: datetime | None = Field(description="Since it answered 410.")
    reason: str | None


class TestDocument(BaseModel):
    """What a receiver answered to a test message."""

    receiver: str = Field(examples=["noc"])
    delivered: bool
    answer: str = Field(examples=["200 OK"])


class DeliveryDocument(BaseModel):
    id: str = Field(examples=["d12"])
    key: str = Field(description="The webhook-id.", examples=["msg_0f2a"])
    receiver: str = Field(examples=["noc"])
    network: str = Field(examples=[NETWORK])
    group: str
    kind: str = Field(examples=["new"])
    status: State
    attempts: int
    created_at: datetime
    due: datetime = Field(description="Of the next try, where it is pending.")
    settled_at: datetime | None
    answer: str | None = Field(description="To the last try.", examples=["200 OK"])

    @classmethod
    def of(cls, delivery: Delivery) -> "DeliveryDocument":
        held = {name: getattr(delivery, name) for name in cls.model_fields if name != "status"}
        return cls(status=delivery.status.value, **held)


class MessageDocument(DeliveryDocument):
    message: dict[str, Any] = Field(description="What is told, before a receiver gives it form.")


@receivers.get("", responses=answers(401, 403))
def list_receivers(request: Request, _: Reader) -> Page[ReceiverDocument]:
    """All receivers of the settings."""
    return Page(items=list(_documents(service_of(request)).values()))


@receivers.post("/{name}/test", responses=READ)
def send_test(request: Request, who: Operator, name: Name) -> TestDocument:
    """Send a test message, at once and once."""
    unbound(who)
    service = _knowing(request, name)
    delivered, answer = service.notifier.test(name)
    return TestDocument(receiver=name, delivered=delivered, answer=answer)


@receivers.post("/{name}/enable", responses=READ)
def enable_receiver(request: Request, who: Operator, name: Name) -> ReceiverDocument:
    """Use a receiver again that answered 410; its dead letters can be replayed."""
    unbound(who)
    service = _knowing(request, name)
    with service.database.write() as connection:
        outbox.enable(connection, name)
    return _documents(service)[name]


@deliveries.get("", responses=answers(401, 403, 422))
def list_deliveries(
    request: Request,
    who: Reader,
    status: Annotated[list[State] | None, Query()] = None,
    receiver: Annotated[Text | None, Query(max_length=64, examples=["noc"])] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[DeliveryDocument]:
    """Messages, the newest first."""
    (before,) = paging.decode(cursor, int) or (None,)
    visible = list(who.networks) or None
    with service_of(request).database.read() as connection:
        found = outbox.page(connection, before, limit + 1, visible, status or (), receiver)
    return Page(
        items=[DeliveryDocument.of(d) for d in found[:limit]], next=paging.following(found, limit)
    )


@deliveries.get("/{delivery_id}", responses=READ)
def get_delivery(request: Request, who: Reader, delivery_id: DeliveryId) -> MessageDocument:
    """One message, and what it says."""
    with service_of(request).database.read() as connection:
        number = number_in("d", delivery_id)
        found = None if number is None else outbox.find(connection, number)
        delivery = _known(found, delivery_id, who)
        message = outbox.message(connection, delivery.number)
    held = DeliveryDocument.of(delivery).model_dump()
    return MessageDocument(message=dict(message), **held)


@deliveries.post("/{delivery_id}/replay", responses=READ | answers(409))
def replay(request: Request, who: Operator, delivery_id: DeliveryId) -> DeliveryDocument:
    """Try a dead letter again, under the id that it had."""
    service = service_of(request)
    with service.database.write() as connection:
        number = number_in("d", delivery_id)
        found = None if number is None else outbox.find(connection, number, to_change=True)
        delivery = _known(found, delivery_id, who)
        if delivery.status is not Sending.DEAD:
            raise Problem(409, f"{delivery_id} is {delivery.status.value}, not dead")
        if delivery.receiver not in service.notifier.channels:
            raise Problem(409, f"{delivery.receiver} is no longer a receiver")
        if delivery.receiver in outbox.disabled(connection):
            raise Problem(409, f"{delivery.receiver} is disabled; enable it first")
        outbox.replay(connection, delivery.number, service.clock())
        again = outbox.find(connection, delivery.number)
    service.notifier.wake()
    return DeliveryDocument.of(_known(again, delivery_id, who))


def _documents(service: Service) -> dict[str, ReceiverDocument]:
    with service.database.read() as connection:
        counted, disabled = outbox.count(connection), outbox.disabled(connection)
    return {
        name: ReceiverDocument(
            name=name,
            type=channel.kind,
            target=channel.receiver.shown,
            min_severity=channel.route.min_severity.value,
            pending=counted.get((name, Sending.PENDING.value), 0),
            dead=counted.get((name, Sending.DEAD.value), 0),
            disabled_at=disabled[name].at if name in disabled else None,
            reason=disabled[name].reason if name in disabled else None,
        )
        for name, channel in service.notifier.channels.items()
    }


def _knowing(request: Request, name: str) -> Service:
    service = service_of(request)
    if name not in service.notifier.channels:
        raise unknown("receiver", name, "name")
    return service


def _known(found: Delivery | None, delivery_id: str, who: Token) -> Delivery:
    if found is None:
        raise unknown("delivery", delivery_id)
    bound(who, found.network)
    return found
