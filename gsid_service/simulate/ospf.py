"""OSPF: from link weights to the cost of reaching each gateway, and the first hops to it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from gsid_service.records import BoolArray, IntArray
from gsid_service.simulate.plane import Plane

Cost = npt.NDArray[np.float64]
NO_HOP = -1
CHUNK = 1 << 20  # elements of one [gateways, links] block, which bounds the memory
FEW = 1 << 12  # pairs of gateway and router: all paths of so few are found faster than some


@dataclass(frozen=True, eq=False)
class Paths:
    """Shortest paths towards a set of gateways (rows) from every router (columns)."""

    gateways: IntArray  # [G], sorted
    cost: Cost  # [G, R], infinite where there is no path
    on_path: BoolArray  # [G, L]: the link is a first hop of a shortest path from its start
    first_hop: IntArray  # [G, R]: the lowest-numbered of the equal first hops, NO_HOP for none

    @cached_property
    def row_of(self) -> dict[int, int]:
        """The row of each gateway."""
        return {gateway: row for row, gateway in enumerate(self.gateways.tolist())}


def shortest_paths(plane: Plane, gateways: IntArray) -> Paths:
    """Costs and first hops of every router towards each of `gateways`; weights are directed."""
    cost = _costs(plane, gateways)
    on_path = np.zeros((len(gateways), len(plane.links)), dtype=np.bool_)
    first_hop = np.full(cost.shape, NO_HOP, dtype=np.int64)
    paths = Paths(gateways, cost, on_path, first_hop)
    _lead(plane, paths)
    return paths


def reweighted(before: Plane, after: Plane, paths: Paths, links: list[int]) -> Paths:
    """The same paths with other weights on some links; only what these touch is searched anew."""
    if paths.cost.size <= FEW:
        return shortest_paths(after, paths.gateways)
    found = Paths(paths.gateways, paths.cost.copy(), paths.on_path.copy(), paths.first_hop.copy())
    plane = before
    for link in links:
        weights = plane.weights.copy()
        weights[link] = after.weights[link]
        was, plane = plane, plane.with_values(weights, plane.attributes)
        _reweigh(was, plane, found, link)
    return found


def _reweigh(before: Plane, after: Plane, paths: Paths, link: int) -> None:
    """Change the paths for one link that has another weight."""
    (start, end), cost = after.links[link], paths.cost
    onward = cost[:, end] + after.weights[link]
    would = (onward <= cost[:, start]) & np.isfinite(onward)
    gateways = np.flatnonzero(paths.on_path[:, link] | would)
    if len(gateways):
        row, router = _recost(before, after, cost, link, gateways)
        leading = np.zeros(cost.shape, dtype=np.bool_)
        leading[gateways, start] = True
        # Where a cost changed, and at the neighbours: every link has its other direction.
        leading[row, router] = True
        reached, _, degree = _links_of(after, router)
        leading[np.repeat(row, degree), after.links[reached, 1]] = True
        _lead_at(after, paths, *true_at(leading))


def _recost(
    before: Plane, after: Plane, cost: Cost, link: int, gateways: IntArray
) -> tuple[IntArray, IntArray]:
    """Change the costs to some gateways for one link, and say for which gateways and routers.

    No shortest path to the start of a link, or from its end, uses the link itself: with a lower
    weight, the cost over it is known at once. With a higher one, whoever used it searches anew.
    """
    (start, end), old, new = after.links[link], before.weights[link], after.weights[link]
    (approach,) = _costs(before, np.array([start]))
    over = cost[gateways, end][:, None] + approach  # [gateways, R], without the link's own weight
    if new < old:
        at, router = true_at(over + new < cost[gateways])
        cost[gateways[at], router] = over[at, router] + new
    else:
        at, router = true_at((over + old == cost[gateways]) & np.isfinite(over))
        cost[gateways[at], router] = _searched(after, cost, gateways[at], router)
    return gateways[at], router


def true_at(table: BoolArray) -> tuple[IntArray, IntArray]:
    """Rows and columns where a table is true; much faster than `nonzero` where few are."""
    row, column = np.divmod(np.flatnonzero(table), table.shape[1])
    return row, column


def _lead(plane: Plane, paths: Paths) -> None:
    """Work out which links are on paths, and the first hops."""
    start, end = plane.links.T
    step = max(1, CHUNK // max(1, len(plane.links)))
    for low in range(0, len(paths.cost), step):
        block = paths.cost[low : low + step]
        onward = block[:, end] + plane.weights
        used = (onward == block[:, start]) & np.isfinite(onward)
        paths.on_path[low : low + step] = used
        row, link = true_at(used)
        # Links are sorted and written last to first, so the lowest-numbered hop remains.
        paths.first_hop[low + row[::-1], start[link[::-1]]] = end[link[::-1]]


def _lead_at(plane: Plane, paths: Paths, row: IntArray, router: IntArray) -> None:
    """The same for some pairs of gateway and router."""
    link, first, degree = _links_of(plane, router)
    at, end = np.repeat(row, degree), plane.links[link, 1]
    onward = paths.cost[at, end] + plane.weights[link]
    used = (onward == np.repeat(paths.cost[row, router], degree)) & np.isfinite(onward)
    paths.on_path[at, link] = used
    none = len(plane.routers)
    lowest = np.minimum.reduceat(np.where(used, end, none), first)
    paths.first_hop[row, router] = np.where(lowest == none, NO_HOP, lowest)


def _searched(plane: Plane, cost: Cost, row: IntArray, router: IntArray) -> Cost:
    """[n]: the costs of sorted pairs of gateway and router, from those of all other pairs.

    One search for all of them: the pairs are its nodes, and it begins at one more node, which
    stands for all around them.
    """
    count, routers = len(row), len(plane.routers)
    link, first, degree = _links_of(plane, router)
    pair, weight = np.repeat(np.arange(count), degree), plane.weights[link]
    own, onward = row * routers + router, row[pair] * routers + plane.links[link, 1]
    place = np.minimum(np.searchsorted(own, onward), count - 1)
    inside = own[place] == onward
    around = np.minimum.reduceat(np.where(inside, np.inf, cost.ravel()[onward] + weight), first)
    known = np.flatnonzero(np.isfinite(around))
    weights = np.concatenate((weight[inside], around[known]))
    starts = np.concatenate((place[inside], np.full(len(known), count)))
    ends = np.concatenate((pair[inside], known))
    graph = csr_matrix((weights, (starts, ends)), shape=(count + 1, count + 1))
    found: Cost = dijkstra(graph, indices=[count])[0, :count]
    return found


def _links_of(plane: Plane, router: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The links of each router in turn, where they begin in that list, and how many each has."""
    starts = plane.first_link
    degree = starts[router + 1] - starts[router]
    first = np.cumsum(degree) - degree
    return np.arange(degree.sum()) + np.repeat(starts[router] - first, degree), first, degree


def _costs(plane: Plane, gateways: IntArray) -> Cost:
    """[G, R]: from every router to each gateway."""
    routers, weights = len(plane.routers), plane.weights[plane.other_direction]
    # Towards a gateway is from it on the reversed graph. Every link has its other direction, so
    # both graphs have the same rows; only the weights change places.
    reverse = csr_matrix(
        (weights.astype(np.float64), plane.links[:, 1], plane.first_link),
        shape=(routers, routers),
    )
    cost: Cost = dijkstra(reverse, indices=gateways).reshape(len(gateways), routers)
    return cost
