"""Standard Webhooks: Alertmanager's body of version 4 with the evidence, signed by every secret."""

import binascii
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook

from gsid_service.notices import Message
from gsid_service.notify import message as form
from gsid_service.notify.post import Poster, shown
from gsid_service.notify.receivers import BadReceiver, Target, checked_url, one_secret

BODY_BYTES = 20_000  # what the standard recommends to stay below
NEVER = "0001-01-01T00:00:00Z"  # Alertmanager's end of what is not over


class Receiver:
    by_cause, acknowledgements = True, False

    def __init__(self, target: Target) -> None:
        url = checked_url(target)
        one_secret(target)
        self.target, self.shown = target, shown(url)
        self._signers()
        self.poster = Poster(url, target.timeout)

    def send(self, key: str, message: Message, now: datetime) -> str:
        body = fitting(message, self.target.name, self.target.external_url)
        stamp = now.replace(microsecond=0)
        signatures = (signer.sign(key, stamp, body) for signer in self._signers())
        headers = {
            "webhook-id": key,
            "webhook-timestamp": str(int(stamp.timestamp())),
            "webhook-signature": " ".join(signatures),
        }
        return self.poster.post(body.encode(), headers)

    def close(self) -> None:
        self.poster.close()

    def _signers(self) -> list[Webhook]:
        try:
            signers = [Webhook(secret) for secret in self.target.secrets()]
        except (binascii.Error, EmptyWebhookSecretError, ValueError):
            signers = []
        if not signers or any(not 24 <= len(signer._whsecret) <= 64 for signer in signers):
            raise BadReceiver(
                "secret_env", "each secret must be whsec_ and 24 to 64 bytes in base64"
            )
        return signers


def fitting(message: Message, receiver: str, external_url: str) -> str:
    """The body, with fewer details and then fewer alerts until it is short enough."""
    whole = len(message["alerts"])
    for count, listed in _sizes(whole):
        items = [_shortened(item, listed) for item in message["alerts"][:count]]
        text = json.dumps(body(message, items, whole - count, receiver, external_url))
        if len(text) < BODY_BYTES:
            break
    return text


def body(
    message: Message,
    items: Sequence[Message],
    truncated: int,
    receiver: str,
    external_url: str,
) -> dict[str, Any]:
    """What Alertmanager would send."""
    alerts = [_alert(item, external_url) for item in items]
    group = {"network": message["network"], "cause": message["cause"]}
    status = "resolved" if message["status"] == form.RESOLVED else "firing"
    return {
        "version": "4",
        "groupKey": message["group"],
        "truncatedAlerts": truncated,
        "status": status,
        "receiver": receiver,
        "groupLabels": group,
        "commonLabels": _common([alert["labels"] for alert in alerts]),
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": external_url,
        "reason": message["reason"],
        "alerts": alerts,
    }


def _alert(item: Message, external_url: str) -> dict[str, Any]:
    about = item["gsid"]
    return {
        "status": item["status"],
        "labels": form.labels(item),
        "annotations": form.annotations(item),
        "startsAt": about["since"] or about["first_seen"],
        "endsAt": about["last_seen"] if item["status"] == form.RESOLVED else NEVER,
        "generatorURL": f"{external_url}/alerts/{about['id']}",
        "fingerprint": form.fingerprint(item),
        "gsid": about,
    }


def _sizes(whole: int) -> list[tuple[int, int]]:
    """Ever fewer alerts, with ever fewer details."""
    sizes = [(whole, form.LISTED), (whole, 3)]
    while whole > 1:
        whole = (whole + 1) // 2
        sizes.append((whole, 3))
    return [*sizes, (1, 0), (0, 0)]


def _shortened(item: Message, listed: int) -> dict[str, Any]:
    about = dict(item["gsid"])
    left_out = {}
    for name, total in (("broken_intents", item["broken"]), ("moved", item["moved"])):
        about[name] = about[name][:listed]
        if total > len(about[name]):
            left_out[name] = total - len(about[name])
    about.pop("left_out", None)
    return {**item, "gsid": about | ({"left_out": left_out} if left_out else {})}


def _common(found: Sequence[dict[str, str]]) -> dict[str, str]:
    if not found:
        return {}
    return {k: v for k, v in found[0].items() if all(other.get(k) == v for other in found)}
