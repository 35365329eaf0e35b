"""Alertmanager: `POST /api/v2/alerts`, said again while an alert fires, and when it is over."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from gsid_service.notices import Message
from gsid_service.notify import message as form
from gsid_service.notify.post import Poster, shown
from gsid_service.notify.receivers import Target, checked_url

PATH = "/api/v2/alerts"
MISSED = 4  # times that it may be said too late before Alertmanager takes an alert for over


class Receiver:
    by_cause, acknowledgements = False, False  # grouping is what Alertmanager does

    def __init__(self, target: Target) -> None:
        url = checked_url(target)
        self.target, self.shown = target, shown(url)
        self.poster = Poster(url.rstrip("/") + PATH, target.timeout)

    def send(self, key: str, message: Message, now: datetime) -> str:  # noqa: ARG002
        until = now + timedelta(seconds=self.target.resend * MISSED)
        said = [alert for item in message["alerts"] for alert in self._alerts(item, now, until)]
        tokens = self.target.secrets()
        headers = {"Authorization": f"Bearer {tokens[0]}"} if tokens else {}
        return self.poster.post(json.dumps(said).encode(), headers)

    def close(self) -> None:
        self.poster.close()

    def _alerts(self, item: Message, now: datetime, until: datetime) -> Iterator[dict[str, Any]]:
        """The alert; and where its severity, a label, has changed, the end of that before."""
        about = item["gsid"]
        before = item["told_severity"]
        if before not in {None, about["severity"]}:
            yield self._alert(item, now.isoformat(), before)
        over = item["status"] == form.RESOLVED
        yield self._alert(item, about["last_seen"] if over else until.isoformat())

    def _alert(self, item: Message, ends_at: str, severity: str | None = None) -> dict[str, Any]:
        about = item["gsid"]
        return {
            "labels": form.labels(item, severity),
            "annotations": form.annotations(item),
            "startsAt": about["since"] or about["first_seen"],
            "endsAt": ends_at,
            "generatorURL": f"{self.target.external_url}/alerts/{about['id']}",
        }
