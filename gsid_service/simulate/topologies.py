"""Topologies: random planar ones, and the real ones of `topohub`, by name or drawn by seed."""

import json
import random
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import numpy as np
import topohub
from scipy.spatial import Delaunay

from gsid_service.simulate.chance import pick

COLLECTIONS = ("topozoo", "sndlib", "caida/2024-08", "backbone")
# The backbones are continent-sized; a drawn topology comes from the operators' collections.
DRAWN_FROM = COLLECTIONS[:3]
SMALLEST, LARGEST = 10, 100


@dataclass(frozen=True, slots=True)
class Topology:
    """Routers with their places (longitude, latitude) and labels, and the links between them."""

    name: str
    positions: tuple[tuple[float, float], ...]
    links: tuple[tuple[int, int], ...]  # each link once, lower end first, sorted
    labels: tuple[str | None, ...]

    @property
    def routers(self) -> int:
        return len(self.positions)


def planar(routers: int, rng: random.Random) -> Topology:
    """A random planar topology: the Delaunay triangulation of random places."""
    if routers < 3:
        raise ValueError(f"a planar topology needs at least 3 routers, not {routers}")
    places = [(rng.random(), rng.random()) for _ in range(routers)]
    corners = Delaunay(np.array(places)).simplices
    sides = np.sort(np.concatenate((corners[:, :2], corners[:, 1:], corners[:, ::2])), axis=1)
    # One number a link, so that sorting them sorts the links and removes doubles.
    numbers = np.unique(sides[:, 0].astype(np.int64) * routers + sides[:, 1])
    links = tuple(divmod(number, routers) for number in numbers.tolist())
    return Topology("planar", tuple(places), links, (None,) * routers)


def names(smallest: int = 3, largest: int | None = None) -> tuple[str, ...]:
    """The real topologies whose number of routers is within the bounds, backbones included."""
    return tuple(
        name
        for name in _catalogue()
        if smallest <= real(name).routers and (largest is None or real(name).routers <= largest)
    )


@cache
def real(name: str) -> Topology:
    """A real topology by name, such as `topozoo/Abilene`; KeyError where there is none."""
    if name not in _catalogue():
        raise KeyError(f"no topology named {name!r}; see `gsid topologies`")
    # Not topohub.get: it leaves its files open.
    data = json.loads(_catalogue()[name].read_bytes())
    nodes = data["nodes"]
    index = {node["id"]: i for i, node in enumerate(nodes)}
    ends = [sorted((index[e["source"]], index[e["target"]])) for e in data["edges"]]
    return Topology(
        name=name,
        positions=_on_the_map([(float(n["pos"][0]), float(n["pos"][1])) for n in nodes]),
        links=tuple(sorted({(a, b) for a, b in ends if a != b})),
        labels=tuple((n.get("name") or "").strip() or None for n in nodes),
    )


def _on_the_map(places: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Some topologies have places on a drawing: these are laid upon one degree by one degree."""
    if all(abs(x) <= 180 and abs(y) <= 90 for x, y in places):
        return tuple(places)
    left, low = (min(axis) for axis in zip(*places, strict=True))
    size = max(max(x - left, y - low) for x, y in places)
    return tuple((round((x - left) / size, 4), round((y - low) / size, 4)) for x, y in places)


def part(whole: Topology, routers: int) -> Topology:
    """A connected part: the best connected router and those around it, nearest first."""
    if not 1 <= routers <= whole.routers:
        raise ValueError(f"{whole.name} has {whole.routers} routers, not {routers}")
    neighbours: dict[int, list[int]] = {router: [] for router in range(whole.routers)}
    for a, b in whole.links:
        neighbours[a].append(b)
        neighbours[b].append(a)
    found = [max(neighbours, key=lambda router: len(neighbours[router]))]
    for router in found:
        found += [n for n in neighbours[router] if n not in found]
    number = {router: i for i, router in enumerate(sorted(found[:routers]))}
    return Topology(
        whole.name,
        tuple(whole.positions[router] for router in number),
        tuple((number[a], number[b]) for a, b in whole.links if a in number and b in number),
        tuple(whole.labels[router] for router in number),
    )


def draw(rng: random.Random) -> Topology:
    """A real topology of 10 to 100 routers, each as likely as the next."""
    return real(pick(rng, _drawable()))


@cache
def _drawable() -> tuple[str, ...]:
    return tuple(n for n in names(SMALLEST, LARGEST) if n.startswith(DRAWN_FROM))


@cache
def _catalogue() -> dict[str, Traversable]:
    """Name and file of every topology, in the order of the collections and of the names."""
    return {
        f"{collection}/{file.name.removesuffix('.json')}": file
        for collection in COLLECTIONS
        for file in sorted(_folder(collection).iterdir(), key=lambda file: file.name)
    }


def _folder(collection: str) -> Traversable:
    return files(topohub).joinpath("data", *collection.split("/"))
