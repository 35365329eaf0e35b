"""From kept scores to lines over time: the highest of a network, and one value's own."""

from datetime import timedelta

from gsid_service.app import Service
from gsid_service.store import scores

HOURS = 24
POINTS = 48
SUSPICIOUS = 0.3
LINES_AT_MOST = 5_000


def of_network(service: Service, name: str) -> list[float]:
    """The highest score of a network over the last day, the newest last."""
    now = service.clock()
    step = timedelta(hours=HOURS) / POINTS
    with service.database.read() as connection:
        lines = scores.lines(connection, name, SUSPICIOUS, LINES_AT_MOST)
        current = scores.page(connection, name, 0.0, None, None, 1)
    standing: dict[tuple[str, str], float] = {}
    points, place = [], 0
    for point in range(1, POINTS + 1):
        until, highest = now - step * (POINTS - point), max(standing.values(), default=0.0)
        while place < len(lines) and lines[place].at <= until:
            line = lines[place]
            standing[line.fact, line.parameter] = line.score
            highest, place = max(highest, line.score), place + 1
        points.append(highest)
    return [*points, max([row["score"] for row in current], default=0.0)]
