"""What is to happen when: a queue of acts, and the scale between a network's life and ours."""

import heapq
import random
import time
from collections.abc import Callable
from itertools import count

import httpx

from gsid_service.demo.remote import Unwilling

SCALE = 120  # seconds of a network's life in one of ours
Act = Callable[[], None]


def hours(of_life: float) -> float:
    """Hours of a network's life, in seconds of ours."""
    return of_life * 3600 / SCALE


def days(of_life: float) -> float:
    return hours(24 * of_life)


class Agenda:
    """Acts, each done as soon as its time has come."""

    def __init__(self, refused: Callable[[str], None]) -> None:
        self.refused = refused  # told what the service would not do
        self.acts: list[tuple[float, int, Act]] = []
        self.numbers = count()

    def after(self, seconds: float, act: Act) -> None:
        heapq.heappush(self.acts, (time.time() + seconds, next(self.numbers), act))

    def every(self, seconds: float, act: Act) -> None:
        def again() -> None:
            self.after(seconds, again)
            act()

        self.after(seconds, again)

    def by_chance(self, mean: float, act: Act, rng: random.Random) -> None:
        """Again and again, so many seconds apart on average, and without memory."""

        def again() -> None:
            self.after(rng.expovariate(1 / mean), again)
            act()

        self.after(rng.expovariate(1 / mean), again)

    def run(self, until: float) -> None:
        while (now := time.time()) < until:
            at = self.acts[0][0] if self.acts else until
            if at > now:
                time.sleep(min(at, until) - now)
            else:
                self._do(heapq.heappop(self.acts)[2])

    def _do(self, act: Act) -> None:
        """A refusal is for the books, and does not end a run of an hour."""
        try:
            act()
        except (Unwilling, httpx.HTTPError) as error:
            self.refused(str(error))
