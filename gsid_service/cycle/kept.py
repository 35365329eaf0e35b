"""The scores as the last cycle of a network left them, so that they need not be read again."""

from datetime import datetime

from gsid_service.recent import Recent
from gsid_service.store.networks import Network
from gsid_service.store.scored import Scored

ROOM = 4_000_000  # values


class KeptScores:
    """Of many networks; they stand as long as nobody else has scored the network since."""

    def __init__(self, room: int = ROOM) -> None:
        self._recent = Recent[tuple[datetime, Scored]](room)

    def of(self, network: Network) -> Scored | None:
        known = self._recent.get(network.name)
        return known[1] if known and known[0] == network.scored_at else None

    def put(self, name: str, at: datetime, scored: Scored) -> None:
        self._recent.put(name, (at, scored), scored.score.size)
