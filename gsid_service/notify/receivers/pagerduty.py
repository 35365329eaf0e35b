"""PagerDuty Events v2: trigger, acknowledge and resolve, on one `dedup_key` a group."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from gsid_service.notices import Message
from gsid_service.notify import message as form
from gsid_service.notify.post import Poster, shown
from gsid_service.notify.receivers import Target, checked_url, one_secret

EVENTS = "https://events.pagerduty.com/v2/enqueue"
ACTIONS = {form.FIRING: "trigger", form.ACKNOWLEDGED: "acknowledge", form.RESOLVED: "resolve"}
SEVERITIES = {"critical": "critical", "major": "error", "minor": "warning"}
SUMMARY = 1024  # characters, PagerDuty's limit
SHOWN = 20  # alerts


class Receiver:
    by_cause, acknowledgements = True, True

    def __init__(self, target: Target) -> None:
        url = checked_url(replace(target, url=target.url or EVENTS))
        one_secret(target)
        self.target, self.shown = target, shown(url)
        self.poster = Poster(url, target.timeout)

    def send(self, key: str, message: Message, now: datetime) -> str:  # noqa: ARG002
        return self.poster.post(json.dumps(self.event(message)).encode(), {})

    def event(self, message: Message) -> dict[str, Any]:
        items = message["alerts"]
        first = items[0]
        more = f" And {len(items) - 1} more of the same cause." if len(items) > 1 else ""
        told = f"{first['gsid']['network']}: {first['sentence']}"
        summary = told[: SUMMARY - len(more)] + more
        details = [
            {"sentence": i["sentence"]} | form.labels(i) | form.annotations(i)
            for i in items[:SHOWN]
        ]
        return {
            "routing_key": one_secret(self.target),
            "event_action": ACTIONS[message["status"]],
            "dedup_key": message["group"],
            "client": "GSID",
            "client_url": self.target.external_url,
            "payload": {
                "summary": summary,
                "source": message["network"],
                "severity": SEVERITIES[first["gsid"]["severity"]],
                "class": first["gsid"]["parameter"],
                "group": message["cause"],
                "custom_details": {"alerts": details, "not shown": max(0, len(items) - SHOWN)},
            },
        }

    def close(self) -> None:
        self.poster.close()
