"""Standard output: a line of JSON a message, for a container's log or a pipe."""

import json
import sys
from datetime import datetime

from gsid_service.notices import Message
from gsid_service.notify.receivers import Target
from gsid_service.notify.receivers.webhook import body


class Receiver:
    by_cause, acknowledgements = True, False

    def __init__(self, target: Target) -> None:
        self.target, self.shown = target, "stdout"

    def send(self, key: str, message: Message, now: datetime) -> str:
        whole = body(message, message["alerts"], 0, self.target.name, self.target.external_url)
        line = json.dumps({"id": key, "at": now.isoformat()} | whole)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        return "written"

    def close(self) -> None:
        pass
