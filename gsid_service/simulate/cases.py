"""Cases: a network as a detector meets it, with the labels that say what is wrong in it.

A *clean* case is a design and intents that hold in it. An *operations* case is a design that
legitimate changes and 0 to 4 anomalies were laid upon, with the baseline from before both.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from gsid_service.records import Entity, Fact
from gsid_service.schema import AS_PATH_LENGTH, LOCAL_PREF, MED, ORIGIN, OSPF_WEIGHT
from gsid_service.simulate import designs, faults, intents
from gsid_service.simulate.chance import between, pick
from gsid_service.simulate.designs import Design, Peering, Route, Size
from gsid_service.simulate.faults import Label
from gsid_service.simulate.forwarding import Forwarding, forward, moved
from gsid_service.simulate.plane import build
from gsid_service.simulate.topologies import Topology

CHANGE_PROBABILITY = 0.4
RETUNED_LINKS = (1, 8)


@dataclass(frozen=True, slots=True)
class Case:
    """Observed entities and facts, intents, what is wrong, and the baseline where there is one."""

    topology: str
    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]
    intents: tuple[Fact, ...]
    labels: tuple[Label, ...] = ()
    changes: tuple[str, ...] = ()  # the legitimate changes since the baseline
    baseline: tuple[tuple[Entity, ...], tuple[Fact, ...]] | None = None

    def with_faults(self, rate: float, rng: random.Random) -> "Case":
        """The paper's injection laid upon a clean case."""
        facts, labels = faults.inject(self.facts, rate, rng)
        return replace(self, facts=facts, labels=labels)

    def harmful(self) -> tuple[bool, ...]:
        """For each label: whether this wrong value, alone in the design, moves any traffic."""
        right = faults.restored(self.facts, self.labels)
        before = _forward(self.entities, right)
        return tuple(
            len(moved(before, _forward(self.entities, faults.with_values(right, {slot: wrong}))))
            > 0
            for slot, wrong in (((x.fact, x.parameter), x.observed) for x in self.labels)
        )


def clean_case(topology: Topology, size: Size, rng: random.Random) -> Case:
    design, state = designs.draw(topology, size, rng)
    sampled = intents.sample(state, size.intents, rng)
    return Case(topology.name, design.entities, design.facts, sampled)


def operations_case(topology: Topology, size: Size, rng: random.Random) -> Case:
    before, state = designs.draw(topology, size, rng)
    wanted = intents.sample(state, size.intents, rng)
    after, changes = _changed(before, rng)
    entities, state = after.entities, after.forwarding()
    known = {entity.id for entity in entities}
    kept = tuple(i for i in wanted if known.issuperset(i.args) and intents.satisfied(i, state))
    facts, labels = _mistaken(after, rng)
    baseline = before.entities, before.facts
    return Case(topology.name, entities, facts, kept, labels, changes, baseline)


def _mistaken(design: Design, rng: random.Random) -> tuple[tuple[Fact, ...], tuple[Label, ...]]:
    """Anomalies laid upon the design, such that every network still has one outcome."""
    while True:
        facts, labels = faults.slip(design.facts, rng)
        state = _forward(design.entities, facts)
        if all(state.is_stable(k) for k in range(len(design.networks))):
            return facts, labels


def _changed(design: Design, rng: random.Random) -> tuple[Design, tuple[str, ...]]:
    """Legitimate changes laid upon the design, such that every network still has one outcome."""
    while True:
        changes = tuple(name for name in CHANGES if rng.random() < CHANGE_PROBABILITY)
        changed = design
        for name in changes:
            changed = CHANGES[name](changed, rng)
        state = changed.forwarding()
        if all(state.is_stable(k) for k in range(len(changed.networks))):
            return changed, changes


def _retune(design: Design, rng: random.Random) -> Design:
    """1 to 8 link weights redrawn."""
    weights = list(design.weights)
    count = min(between(rng, *RETUNED_LINKS), len(weights))
    for link in rng.sample(range(len(weights)), count):
        weights[link] = designs.draw_value(OSPF_WEIGHT, rng)
    return replace(design, weights=tuple(weights))


def _rehome(design: Design, rng: random.Random) -> Design:
    """One network's routes redrawn as in a fresh design; the peerings stay."""
    network, pool = pick(rng, design.networks), designs.announcements(rng)
    peerings = (
        replace(p, route=pick(rng, pool)) if p.network == network else p for p in design.peerings
    )
    return replace(design, peerings=tuple(peerings))


def _drain(design: Design, rng: random.Random) -> Design:
    """All link weights of one router raised to the maximum."""
    router = rng.randrange(design.topology.routers)
    highest = OSPF_WEIGHT.paper[1] if OSPF_WEIGHT.paper else OSPF_WEIGHT.high
    links = zip(design.topology.links, design.weights, strict=True)
    return replace(design, weights=tuple(highest if router in link else w for link, w in links))


def _swap(design: Design, rng: random.Random) -> Design:
    """The primary and the backup gateway of a network exchange their attributes."""
    pairs = [pair for network in design.networks if (pair := _primary_and_backup(design, network))]
    if not pairs:
        return design
    primary, backup = pick(rng, pairs)
    routes = {primary.peer: backup.route, backup.peer: primary.route}
    return replace(
        design,
        peerings=tuple(replace(p, route=routes.get(p.peer, p.route)) for p in design.peerings),
    )


def _primary_and_backup(design: Design, network: str) -> tuple[Peering, Peering] | None:
    """The most preferred peering of a network, and the best of those that are less so."""
    announcing = sorted((p for p in design.peerings if p.network == network), key=_preference)
    worse = [p for p in announcing if _preference(p) > _preference(announcing[0])]
    return (announcing[0], worse[0]) if worse else None


def _peer(design: Design, rng: random.Random) -> Design:
    """A new peering announces an existing network."""
    network = pick(rng, design.networks)
    taken = {p.gateway for p in design.peerings if p.network == network}
    free = [r for r in range(design.topology.routers) if r not in taken]
    if not free:
        return design
    route: Route = pick(rng, designs.announcements(rng))
    fresh = designs.peering(design, pick(rng, free), design.in_use(), network, route)
    return replace(design, peerings=(*design.peerings, fresh))


CHANGES: dict[str, Callable[[Design, random.Random], Design]] = {
    "retune": _retune,
    "rehome": _rehome,
    "drain": _drain,
    "swap": _swap,
    "peer": _peer,
}


def _preference(peering: Peering) -> tuple[int, ...]:
    route = peering.route
    return (
        -route[LOCAL_PREF.name],
        route[AS_PATH_LENGTH.name],
        route[ORIGIN.name],
        route[MED.name],
    )


def _forward(entities: tuple[Entity, ...], facts: tuple[Fact, ...]) -> Forwarding:
    return forward(build(entities, facts), always_compare_med=True)
