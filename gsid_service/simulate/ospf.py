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
    _lead(plane, paths, np.arange(len(plane.links)))
    return paths


def reweighted(before: Plane, after: Plane, paths: Paths, links: list[int]) -> Paths:
    """The same paths with other weights on some links; only what these touch is searched anew."""
    cost, waiting = paths.cost.copy(), np.zeros(paths.cost.shape, dtype=np.bool_)
    for link in links:
        (start, end), weight = after.links[link], before.weights[link]
        if after.weights[link] > weight:
            # Whoever has a shortest path over the link may have to look for another.
            (approach,) = _costs(before, np.array([start]))
            over = approach + weight + paths.cost[:, [end]]
            used = (over == paths.cost) & np.isfinite(over)
            cost[used] = np.inf
            waiting |= used
        waiting[:, start] = True
    _relax(after, cost, waiting)
    found = Paths(paths.gateways, cost, paths.on_path.copy(), paths.first_hop.copy())
    changed = (cost != paths.cost).any(axis=0)
    # The links of a router whose own cost or whose neighbour's cost changed, and those reweighted.
    leading = changed | np.bincount(
        after.links[:, 0], changed[after.links[:, 1]], len(changed)
    ).astype(np.bool_)
    leading[after.links[links, 0]] = True
    _lead(after, found, np.flatnonzero(leading[after.links[:, 0]]))
    return found


def _lead(plane: Plane, paths: Paths, links: IntArray) -> None:
    """Work out which of the links, all those of some routers, are on paths, and the first hops."""
    start, end = plane.links[links].T
    paths.first_hop[:, start] = NO_HOP
    step = max(1, CHUNK // max(1, len(links)))
    for low in range(0, len(paths.cost), step):
        block = paths.cost[low : low + step]
        onward = block[:, end] + plane.weights[links]
        used = (onward == block[:, start]) & np.isfinite(onward)
        paths.on_path[low : low + step, links] = used
        row, link = np.nonzero(used)
        # Links are sorted and written last to first, so the lowest-numbered hop remains.
        paths.first_hop[low + row[::-1], start[link[::-1]]] = end[link[::-1]]


def _relax(plane: Plane, cost: Cost, waiting: BoolArray) -> None:
    """Lower the costs [G, R] that wait, and those behind them, until none can be lowered."""
    end, routers = plane.links[:, 1], len(plane.routers)
    row, router = np.nonzero(waiting)
    while len(row):
        link, first, degree = _links_of(plane, router)
        onward = cost[np.repeat(row, degree), end[link]] + plane.weights[link]
        best = np.minimum.reduceat(onward, first)
        better = best < cost[row, router]
        row, router = row[better], router[better]
        cost[row, router] = best[better]
        # Every link has its other direction: whom a router reaches can reach it.
        link, _, degree = _links_of(plane, router)
        behind = np.unique(np.repeat(row, degree) * routers + end[link])
        row, router = np.divmod(behind, routers)


def _links_of(plane: Plane, router: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The links of each router in turn, where they begin in that list, and how many each has."""
    starts = np.asarray(plane.link_starts)
    degree = starts[router + 1] - starts[router]
    first = np.cumsum(degree) - degree
    return np.arange(degree.sum()) + np.repeat(starts[router] - first, degree), first, degree


def _costs(plane: Plane, gateways: IntArray) -> Cost:
    """[G, R]: from every router to each gateway."""
    routers, (start, end) = len(plane.routers), plane.links.T
    # Towards a gateway is from it on the reversed graph. Every link has its other direction, so
    # both graphs have the same rows; only the weights change places.
    turned = np.lexsort((start, end))
    reverse = csr_matrix(
        (plane.weights[turned].astype(np.float64), plane.links[:, 1], plane.link_starts),
        shape=(routers, routers),
    )
    cost: Cost = dijkstra(reverse, indices=gateways).reshape(len(gateways), routers)
    return cost
