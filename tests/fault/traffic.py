"""Collectors of many networks: each sends right or wrong values again and again until they are
acknowledged, and remembers what was."""

import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx

from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import FactKey
from gsid_service.schema import LOCAL_PREF, ROUTERS
from gsid_service.simulate.cases import Case
from tests.flow import network

ROUTERS_WANTED = 20
DESIGNS = 4
WRONG_SHARE = 0.1
PATIENCE = 120.0


@dataclass(frozen=True)
class Design:
    """A network of 20 routers, and a wrong value in it that moves much traffic."""

    case: Case
    key: FactKey
    right: str  # bodies with places for the network's name and the sequence
    wrong: str


@cache
def designs() -> list[Design]:
    kinds = {kind.name for kind in ROUTERS}
    cases = (SPLITS["standard"].case("fault", index) for index in range(1000))
    sized = (c for c in cases if sum(e.kind in kinds for e in c.entities) == ROUTERS_WANTED)
    return [_design(next(sized)) for _ in range(DESIGNS)]


def _design(case: Case) -> Design:
    key, _, wrong = network.mistake(case)
    mistaken = network.changed(case.facts, key, LOCAL_PREF.name, wrong)
    right, wrong_body = (
        json.dumps(network.document("@network", "rr1", 0, case.entities, facts))
        for facts in (case.facts, mistaken)
    )
    return Design(case, key, right, wrong_body)


@dataclass
class Net:
    """One network, and what was acknowledged of it."""

    name: str
    design: Design
    sequence: int = 0
    newest: str = ""  # snapshot id
    wrong: bool = False  # in the newest
    acknowledged: dict[str, int] = field(default_factory=dict)  # sequences by snapshot id
    lock: threading.Lock = field(default_factory=threading.Lock)

    def body(self, wrong: bool) -> bytes:
        text = self.design.wrong if wrong else self.design.right
        text = text.replace('"@network"', json.dumps(self.name), 1)
        return text.replace('"sequence": 0', f'"sequence": {self.sequence}', 1).encode()


class Traffic:
    """Posts for all networks, patiently."""

    def __init__(self, url: str, count: int) -> None:
        made = designs()
        self.nets = [Net(f"n{n:04}", made[n % len(made)]) for n in range(count)]
        self.client = httpx.Client(
            base_url=url, timeout=10, headers={"Content-Type": "application/json"}
        )
        self.answers: Counter[str] = Counter()

    def send(self, net: Net, wrong: bool) -> str:
        """One snapshot, under the same sequence until it is acknowledged, as a collector does."""
        with net.lock:
            net.sequence += 1
            body, deadline = net.body(wrong), time.monotonic() + PATIENCE
            while True:
                answer = self._post(body)
                if answer is not None:
                    net.newest, net.wrong = answer["snapshot_id"], wrong
                    net.acknowledged[net.newest] = net.sequence
                    return net.newest
                assert time.monotonic() < deadline, "nobody acknowledges anything"
                time.sleep(0.2)

    def _post(self, body: bytes) -> Any:
        try:
            answer = self.client.post("/ingest", content=body)
        except httpx.TransportError as error:
            self.answers[type(error).__name__] += 1
            return None
        self.answers[str(answer.status_code)] += 1
        assert answer.status_code in {200, 202, 429, 503}, answer.text
        return answer.json() if answer.is_success else None

    def stream(
        self, nets: list[Net], rate: float, ending: threading.Event, rng: random.Random
    ) -> None:
        """About so many snapshots a second, each of any of the networks."""
        while not ending.wait(rng.expovariate(rate)):
            self.send(rng.choice(nets), rng.random() < WRONG_SHARE)

    def burst(
        self, nets: list[Net], size: int, every: float, ending: threading.Event, rng: random.Random
    ) -> None:
        """Now and then many at once: half of them of one network, the rest of others."""
        while not ending.wait(every):
            noisy = rng.choice(nets)
            for _ in range(size // 2):
                self.send(noisy, rng.random() < 0.5)
                self.send(rng.choice(nets), rng.random() < WRONG_SHARE)

    def until_scored(self, net: Net, snapshot: str, seconds: float) -> float:
        """Seconds until a snapshot is scored, as who asks for it sees it."""
        begun = time.monotonic()
        path = f"/api/v1/networks/{net.name}/scores"
        while time.monotonic() - begun < seconds:
            try:
                query: dict[str, Any] = {"snapshot": snapshot, "wait": 5, "limit": 1}
                if self.client.get(path, params=query).is_success:
                    return time.monotonic() - begun
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError(f"{snapshot} of {net.name} is not scored within {seconds} s")

    def latency(self, net: Net) -> float:
        begun = time.monotonic()
        self.until_scored(net, self.send(net, wrong=False), PATIENCE)
        return time.monotonic() - begun

    def close(self) -> None:
        self.client.close()
