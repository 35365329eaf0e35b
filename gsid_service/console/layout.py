"""From a network's entities and facts to a place on the map for each, always the same for the same.

Routers stand where they are on Earth, if collectors say so, and otherwise so that distances on the
map follow the number of hops. External peerings hang on their gateway, destination networks line up
at both edges. Entities that come later find a place beside those that are there, which stay; only
the destinations line up anew where there are others.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from gsid_service.records import BoolArray, Entity, Fact, FloatArray, IntArray
from gsid_service.schema import BGP_ROUTE, CONNECTED, EBGP, EXTERNAL_AS, NETWORK, ROUTERS

WIDTH, HEIGHT = 1200.0, 720.0
EDGE = 200.0  # to the left and to the right, for the destination networks
MARGIN = 60.0
APART = 56.0  # routers are no closer than this, where there is room
SHARE = 0.55  # of a router's part of the map, where there is not
PEERING = 34.0  # from a gateway to its peerings
STEPS = 80
TURNS = 2 * np.pi * np.arange(16) / 16  # the ways in which a peering may hang on its gateway
NAME = (0.3 * np.pi, 0.5 * np.pi, 0.7 * np.pi)  # below, where the name of a router stands


class Point(NamedTuple):
    x: float
    y: float


Places = Mapping[str, Point]
MIDDLE = Point(WIDTH / 2, HEIGHT / 2)


def layout(
    entities: Sequence[Entity], facts: Sequence[Fact], fixed: Places | None = None
) -> Places:
    """A place for every entity; those in `fixed` keep theirs."""
    routers = [e for e in entities if e.kind in {kind.name for kind in ROUTERS}]
    links = sorted(f.args for f in facts if f.predicate == CONNECTED.name)
    fixed = fixed or {}
    places = _routers(routers, links, fixed)
    gateway = {f.args[1]: f.args[0] for f in facts if f.predicate == EBGP.name}
    peerings = [e.id for e in entities if e.kind == EXTERNAL_AS.name]
    places |= _peerings(peerings, gateway, links, places, fixed)
    routes = sorted(f.args for f in facts if f.predicate == BGP_ROUTE.name)
    networks = [e.id for e in entities if e.kind == NETWORK.name]
    if fixed.keys() >= set(networks):
        return places | {name: fixed[name] for name in networks}
    return places | _networks(networks, routes, places)


def _routers(
    routers: Sequence[Entity], links: Iterable[tuple[str, ...]], fixed: Places
) -> dict[str, Point]:
    names = sorted(router.id for router in routers)
    if not names:
        return {}
    row = {name: index for index, name in enumerate(names)}
    pairs = np.array([[row[a], row[b]] for a, b in links if a in row and b in row], dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    kept = np.array([name in fixed for name in names])
    at = np.array([fixed.get(name, (0.0, 0.0)) for name in names])
    if not kept.any():
        at = _fitted(
            _on_earth(routers, row, pairs) if _located(routers) else _by_hops(names, pairs)
        )
    for index in np.flatnonzero(~kept).tolist() if kept.any() else ():
        at[index] = _beside(index, pairs, at, kept)
    at = _spread(at, kept)
    return {name: Point(float(x), float(y)) for name, (x, y) in zip(names, at, strict=True)}


def _located(routers: Sequence[Entity]) -> bool:
    """Whether there are enough coordinates for a map."""
    return 2 * sum(router.position is not None for router in routers) > len(routers)


def _on_earth(routers: Sequence[Entity], row: Mapping[str, int], pairs: IntArray) -> FloatArray:
    """Longitude and latitude on a plane; a router without them stands amid its neighbours."""
    at = np.zeros((len(row), 2))
    known = np.zeros(len(row), dtype=bool)
    for router in routers:
        if router.position is not None:
            at[row[router.id]], known[row[router.id]] = router.position, True
    at[:, 0] *= np.cos(np.radians(at[known, 1].mean()))
    at[:, 1] *= -1  # north is up
    for index in np.flatnonzero(~known).tolist():
        at[index] = _beside(index, pairs, at, known)
    return at


def _beside(index: int, pairs: IntArray, at: FloatArray, known: BoolArray) -> FloatArray:
    """Amid the neighbours that have a place, a little off so that two do not coincide."""
    ends = np.concatenate([pairs[pairs[:, 0] == index, 1], pairs[pairs[:, 1] == index, 0]])
    ends = ends[known[ends]]
    middle = at[ends].mean(axis=0) if len(ends) else at[known].mean(axis=0)
    turn = 2.4 * index  # the golden angle: no two are alike
    moved: FloatArray = middle + np.ptp(at[known], axis=0).max() / 40 * np.array(
        [np.cos(turn), np.sin(turn)]
    )
    return moved


def _by_hops(names: Sequence[str], pairs: IntArray) -> FloatArray:
    """Distances on the plane that follow the hops: stress majorisation from classical scaling."""
    count = len(names)
    if count < 3:
        return np.array([[float(index), 0.0] for index in range(count)])
    ones = np.ones(len(pairs))
    graph = csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    hops = shortest_path(graph, directed=False, unweighted=True)
    reached = np.isfinite(hops)
    hops[~reached] = hops[reached].max() + 2
    at = _scaled_classically(hops)
    weight = 1 / np.maximum(hops, 1) ** 2
    np.fill_diagonal(weight, 0)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    for _ in range(STEPS):
        apart = cdist(at, at)
        pull = np.divide(-weight * hops, apart, out=np.zeros_like(apart), where=apart > 1e-9)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        at = inverse @ (pull @ at)
    wide, high = np.ptp(at, axis=0)
    return at[:, ::-1] if high > wide else at  # as the map is


def _scaled_classically(hops: FloatArray) -> FloatArray:
    centred = np.eye(len(hops)) - 1 / len(hops)
    values, vectors = np.linalg.eigh(-0.5 * centred @ hops**2 @ centred)
    top = vectors[:, [-1, -2]]
    top = top * np.sign(top[np.abs(top).argmax(axis=0), [0, 1]])  # the sign is arbitrary
    at: FloatArray = top * np.sqrt(np.maximum(values[[-1, -2]], 1e-6))
    # Rings and stars have coinciding coordinates; a little noise, always the same, parts them.
    return at + 1e-3 * np.random.default_rng(0).standard_normal(at.shape)


def _fitted(at: FloatArray) -> FloatArray:
    """As large as the map's middle allows."""
    at = at - at.min(axis=0)
    room = np.array([WIDTH - 2 * EDGE - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    size = at.max(axis=0)
    factor = room / np.maximum(size, 1e-9)
    factor = np.minimum(factor, 1.6 * factor.min())  # a map may be stretched, not distorted
    placed: FloatArray = at * factor + (room - size * factor) / 2 + [EDGE + MARGIN, MARGIN]
    return placed


def _spread(at: FloatArray, kept: BoolArray) -> FloatArray:
    """Push routers apart that stand upon each other; those that had their place keep it."""
    room = (WIDTH - 2 * EDGE) * HEIGHT / len(at)
    wanted = min(APART, SHARE * float(np.sqrt(room)))
    low = np.array([EDGE + MARGIN / 2, MARGIN / 2])
    for _ in range(STEPS if not kept.all() else 0):
        one, other = cKDTree(at).query_pairs(wanted, output_type="ndarray").T
        free = ~(kept[one] & kept[other])
        one, other = one[free], other[free]
        if not len(one):
            break
        offset = at[one] - at[other]
        apart = np.linalg.norm(offset, axis=1)
        turn = 2.4 * (one + other)  # where two coincide
        offset[apart < 1e-6] = np.stack([np.cos(turn), np.sin(turn)], axis=1)[apart < 1e-6]
        push = offset * ((wanted - apart) / 2 / np.maximum(apart, 1))[:, None]
        step = np.zeros_like(at)
        np.add.at(step, one, push)
        np.add.at(step, other, -push)
        at = np.clip(at + step * ~kept[:, None], low, np.array([WIDTH, HEIGHT]) - low)
    return at


def _peerings(
    names: Iterable[str],
    gateway: Mapping[str, str],
    links: Iterable[tuple[str, ...]],
    places: Places,
    fixed: Places,
) -> dict[str, Point]:
    """Each on a circle about its gateway, where it is furthest from links and other peerings."""
    busy: dict[str, list[float]] = {}
    for a, b in links:
        for one, other in ((a, b), (b, a)):
            if one in places and other in places:
                busy.setdefault(one, list(NAME)).append(_way(places[one], places[other]))
    at = {name: places.get(gateway.get(name, ""), MIDDLE) for name in names}
    found = {n: fixed[n] for n in at if n in fixed and _hangs(fixed[n], at[n])}
    for name, place in found.items():
        busy.setdefault(gateway.get(name, ""), list(NAME)).append(_way(at[name], place))
    for name in sorted(at.keys() - found.keys()):
        turns = busy.setdefault(gateway.get(name, ""), list(NAME))
        apart = np.abs((TURNS[:, None] - np.array(turns) + np.pi) % (2 * np.pi) - np.pi)
        best = float(TURNS[int(apart.min(axis=1).round(6).argmax())])
        turns.append(best)
        x, y = at[name]
        found[name] = Point(x + PEERING * float(np.cos(best)), y + PEERING * float(np.sin(best)))
    return found


def _hangs(peering: Point, gateway: Point) -> bool:
    """Whether it is still that gateway."""
    return bool(np.hypot(peering.x - gateway.x, peering.y - gateway.y) < PEERING + 1)


def _way(start: Point, end: Point) -> float:
    return float(np.arctan2(end.y - start.y, end.x - start.x))


def _networks(
    names: Collection[str], routes: Iterable[tuple[str, ...]], places: Places
) -> dict[str, Point]:
    """Two columns: each network on the side of the peerings that announce it, in their order."""
    announced: dict[str, list[Point]] = {name: [] for name in names}
    for peering, network in routes:
        if peering in places and network in announced:
            announced[network].append(places[peering])
    middle = {
        name: np.mean(points or [MIDDLE], axis=0).tolist() for name, points in announced.items()
    }
    by_side = sorted(names, key=lambda name: (middle[name][0], name))
    half = len(by_side) // 2
    columns = ((by_side[:half], EDGE / 2), (by_side[half:], WIDTH - EDGE / 2))
    return {
        name: Point(x, (place + 0.5) * HEIGHT / len(column))
        for column, x in columns
        for place, name in enumerate(sorted(column, key=lambda name: (middle[name][1], name)))
    }
