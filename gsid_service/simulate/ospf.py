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
    routers, (start, end) = len(plane.routers), plane.links.T
    # Towards a gateway is from it on the reversed graph. Every link has its other direction, so
    # both graphs have the same rows; only the weights change places.
    turned = np.lexsort((start, end))
    reverse = csr_matrix(
        (plane.weights[turned].astype(np.float64), plane.links[:, 1], plane.link_starts),
        shape=(routers, routers),
    )
    cost = dijkstra(reverse, indices=gateways).reshape(len(gateways), routers)
    on_path = np.empty((len(gateways), len(start)), dtype=np.bool_)
    step = max(1, CHUNK // max(1, len(start)))
    for low in range(0, len(gateways), step):
        block = cost[low : low + step]
        onward = block[:, end] + plane.weights
        on_path[low : low + step] = (onward == block[:, start]) & np.isfinite(onward)
    first_hop = np.full(cost.shape, NO_HOP, dtype=np.int64)
    row, link = np.nonzero(on_path)
    # Links are sorted and written last to first, so the lowest-numbered hop remains.
    first_hop[row[::-1], start[link[::-1]]] = end[link[::-1]]
    return Paths(gateways, cost, on_path, first_hop)
