"""The control plane as one would write it with networkx: what the simulator is timed against.

OSPF by networkx's Dijkstra, BGP by letting every speaker choose again until nothing changes, all in
plain Python. It answers the questions that sampling intents asks.
"""

from collections import defaultdict
from collections.abc import Iterator

import networkx as nx

from gsid_service.simulate.plane import AS_PATH_LENGTH, LOCAL_PREF, MED, ORIGIN, Plane

ROUNDS = 50
Key = tuple[int, ...]


class Rival:
    """Next hops of every router for some networks, med compared across all ASes."""

    def __init__(self, plane: Plane, networks: list[int] | None = None) -> None:
        self.plane = plane
        self.graph: nx.DiGraph[int] = nx.DiGraph()
        self.graph.add_nodes_from(range(len(plane.routers)))
        links = zip(plane.links.tolist(), plane.weights.tolist(), strict=True)
        self.graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in links)
        self.reverse = self.graph.reverse(copy=False)
        self.cost: dict[int, dict[int, float]] = {}
        self.hops: dict[int, list[list[int]]] = {}
        for network in range(len(plane.networks)) if networks is None else networks:
            self.hops[network] = self._forward(network)

    def _distances(self, gateway: int) -> dict[int, float]:
        if gateway not in self.cost:
            self.cost[gateway] = nx.single_source_dijkstra_path_length(self.reverse, gateway)
        return self.cost[gateway]

    def _forward(self, network: int) -> list[list[int]]:
        routes = dict(self._routes(network))
        selected = self._select(routes)
        return [
            self._next_hops(router, routes.get(selected[router])) for router in self.graph.nodes
        ]

    def _routes(self, network: int) -> Iterator[tuple[int, tuple[int, int, Key]]]:
        """Announcement: gateway, peer, and the part of its preference that all routers share."""
        attributes = self.plane.attributes.tolist()
        for route, (gateway, peer, of) in enumerate(self.plane.announced.tolist()):
            if of == network:
                a = attributes[route]
                key = -a[LOCAL_PREF], a[AS_PATH_LENGTH], a[ORIGIN], a[MED]
                yield route, (gateway, peer, key)

    def _select(self, routes: dict[int, tuple[int, int, Key]]) -> dict[int, int]:
        """Every speaker chooses in turn, until none changes its mind."""
        clients, reflectors, mesh = defaultdict(list), defaultdict(list), defaultdict(list)
        for client, reflector in self.plane.clients:
            clients[reflector].append(client)
            reflectors[client].append(reflector)
        for one, other in self.plane.mesh:
            mesh[one].append(other)
        selected = dict.fromkeys(self.graph.nodes, -1)
        own = {r: [a for a, route in routes.items() if route[0] == r] for r in self.graph.nodes}

        def heard(router: int) -> Iterator[int]:
            yield from own[router]
            for client in clients[router]:
                if selected[client] in own[client]:
                    yield selected[client]
            yield from (selected[reflector] for reflector in reflectors[router])
            for peer in mesh[router]:
                route = selected[peer]
                if route != -1 and routes[route][0] in (peer, *clients[peer]):
                    yield route

        def key(router: int, route: int) -> tuple[Key, bool, float, int, int]:
            gateway, peer, preference = routes[route]
            return preference, gateway != router, self._distances(gateway)[router], gateway, peer

        for _ in range(ROUNDS):
            before = dict(selected)
            for router in self.graph.nodes:
                offers = [route for route in heard(router) if route != -1]
                selected[router] = min(offers, key=lambda r: key(router, r), default=-1)
            if selected == before:
                break
        return selected

    def _next_hops(self, router: int, route: tuple[int, int, Key] | None) -> list[int]:
        if route is None:
            return []
        gateway, peer, _ = route
        if gateway == router:
            return [len(self.plane.routers) + peer]
        cost = self._distances(gateway)
        onward = self.graph[router].items()
        return sorted(n for n, link in onward if link["weight"] + cost[n] == cost[router])

    @property
    def hop_names(self) -> tuple[str, ...]:
        return self.plane.routers + self.plane.peers

    def is_stable(self, network: int) -> bool:
        return network in self.hops

    def next_hops(self, network: int, router: int) -> tuple[int, ...]:
        return tuple(self.hops[network][router])

    def walk(self, network: int, router: int) -> list[int]:
        hops = [router]
        while hops[-1] < len(self.plane.routers):
            onward = self.hops[network][hops[-1]]
            if not onward or onward[0] in hops:
                break
            hops.append(onward[0])
        return hops

    def reached(self, network: int, router: int) -> set[int]:
        graph = nx.DiGraph((r, hop) for r, hops in enumerate(self.hops[network]) for hop in hops)
        return nx.descendants(graph, router) | {router} if router in graph else {router}
