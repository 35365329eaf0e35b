"""Whatever apprise reaches (Slack, Teams, e-mail, …): the alert's sentence, and a link."""

import logging
from datetime import datetime
from urllib.parse import urlsplit

import apprise

from gsid_service.notices import Message
from gsid_service.notify import message as form
from gsid_service.notify.post import UnsafeUrl, check_host
from gsid_service.notify.receivers import BadReceiver, Target, one_secret
from gsid_service.notify.retry import DeliveryError

# It logs URLs, which hold secrets.
logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
SHOWN = 5  # alerts
SECRET = "secret_env"  # noqa: S105 (the key's name)
KINDS = {form.RESOLVED: apprise.NotifyType.SUCCESS, form.ACKNOWLEDGED: apprise.NotifyType.INFO}


class Receiver:
    by_cause, acknowledgements = True, False

    def __init__(self, target: Target) -> None:
        if target.url is not None:
            raise BadReceiver("url", "apprise's URL holds a secret: give it by secret_env or _file")
        self.target = target
        self.shown = str(self._service().schema)

    def send(self, key: str, message: Message, now: datetime) -> str:  # noqa: ARG002
        kind = KINDS.get(message["status"], apprise.NotifyType.FAILURE)
        title = f"GSID {message['status']}: {message['network']}"
        if not self._service().notify(body=self.text(message), title=title, notify_type=kind):
            raise DeliveryError("apprise could not deliver it", retry=True)
        return "apprise delivered it"

    def text(self, message: Message) -> str:
        items = message["alerts"]
        lines = [item["sentence"] for item in items[:SHOWN]]
        if len(items) > SHOWN:
            lines.append(f"And {len(items) - SHOWN} more of the same cause.")
        first = items[0]["gsid"]["id"]
        return "\n".join([*lines, f"{self.target.external_url}/alerts/{first}"])

    def close(self) -> None:
        pass

    def _service(self) -> apprise.NotifyBase:
        asset = apprise.AppriseAsset(http_redirects=False)
        found = apprise.Apprise.instantiate(
            one_secret(self.target), asset=asset, suppress_exceptions=True
        )
        if found is None:
            raise BadReceiver(SECRET, "not a URL that apprise knows")
        # A hosted service has a site of its own, and a token where others have a host.
        host = urlsplit(str(getattr(found, "service_url", None) or "")).hostname or found.host
        secure = found.schema in _several(found.secure_protocol) or self.target.allow_http
        try:
            check_host(str(host), secure, self.target.hosts)
        except UnsafeUrl as error:
            raise BadReceiver(SECRET, str(error)) from None
        return found


def _several(names: object) -> tuple[object, ...]:
    return tuple(names) if isinstance(names, tuple | list | set | frozenset) else (names,)
