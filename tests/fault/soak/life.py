"""A network as it should be and as it is: legitimate changes, mistakes, and what these do."""

import random
from dataclasses import dataclass, field, replace

from gsid_service.evaluate.splits import DATA_SETS
from gsid_service.records import Fact, FactKey
from gsid_service.simulate import designs, faults, intents
from gsid_service.simulate.cases import CHANGES
from gsid_service.simulate.designs import Design
from gsid_service.simulate.faults import with_values
from gsid_service.simulate.forwarding import Forwarding, forward, moved
from gsid_service.simulate.plane import build

KINDS = ("standard", "real")
ROUTERS_AT_MOST = 40
DRAIN, UNDRAIN = "drain", "undrain"
Slot = tuple[FactKey, str]
Values = dict[Slot, int]


@dataclass
class Mistake:
    """A wrong value; times are seconds since 1970, and None for what has not happened."""

    network: str
    slot: Slot
    right: int
    wrong: int
    kind: str
    made_at: float
    harmful: bool = False  # whether it moves traffic, at any time while it stands
    told_at: float | None = None  # when the service first knew of it
    alerted_at: float | None = None
    paged_at: float | None = None
    ended_at: float | None = None
    gone_at: float | None = None  # when the service knew that it is over
    resolved_at: float | None = None
    ended: str = ""  # by whom

    def stands_at(self, moment: float, slack: float) -> bool:
        """As far as the service can know."""
        return self.made_at <= moment and (self.gone_at is None or moment <= self.gone_at + slack)


@dataclass
class Life:
    """One network: the design that its operator wants, and the mistakes that are in it."""

    name: str
    rng: random.Random
    size: designs.Size
    design: Design
    wanted: tuple[Fact, ...]
    wrong: dict[Slot, Mistake] = field(default_factory=dict)
    drained: dict[tuple[int, int], int] = field(default_factory=dict)  # the weights from before
    touched: dict[Slot, str] = field(default_factory=dict)  # the last change of each value

    @classmethod
    def draw(cls, number: int, seed: int) -> "Life":
        kind = KINDS[number % len(KINDS)]
        rng = random.Random(f"gsid soak {seed} {number}")
        data_set = DATA_SETS[kind]
        topology = data_set.topology(rng)
        while topology.routers > ROUTERS_AT_MOST:
            topology = data_set.topology(rng)
        design, state = designs.draw(topology, data_set.size, rng)
        wanted = intents.sample(state, data_set.size.intents, rng)
        return cls(f"{kind}-{number}", rng, data_set.size, design, wanted)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """As they are."""
        return self._with(self.design)

    def _with(self, design: Design) -> tuple[Fact, ...]:
        there = values_of(design.facts)
        wrong = {s: m.wrong for s, m in self.wrong.items() if there.get(s) == m.right}
        return with_values(design.facts, wrong)

    # Meant

    def plan(self) -> tuple[str, Design]:
        """A legitimate change; a router that was drained comes back before anything else."""
        while True:
            kind, design = self._planned()
            if design != self.design and _is_settled(design, self._with(design)):
                return kind, design

    def _planned(self) -> tuple[str, Design]:
        if self.drained:
            links = zip(self.design.topology.links, self.design.weights, strict=True)
            weights = tuple(self.drained.get(link, weight) for link, weight in links)
            return UNDRAIN, _weighted(self.design, weights)
        kind = self.rng.choice(list(CHANGES))
        return kind, CHANGES[kind](self.design, self.rng)

    def respected(self, design: Design) -> tuple[Fact, ...]:
        """The stated intents that a design satisfies."""
        state = design.forwarding()
        return tuple(i for i in self.wanted if intents.satisfied(i, state))

    def adopt(self, kind: str, design: Design, how: str, now: float) -> None:
        """From now on the design is what the operator wants; what it redraws is no mistake."""
        before, after = values_of(self.design.facts), values_of(design.facts)
        self.drained = self._lowered(design) if kind == DRAIN else {}
        for slot in after.keys() - {s for s in before if before[s] == after.get(s)}:
            self.touched[slot] = f"{kind}, {how}"
            if slot in self.wrong:
                self.end(slot, "overwritten", now)
        self.design = design
        self._look_for_harm()

    def _lowered(self, design: Design) -> dict[tuple[int, int], int]:
        links = zip(design.topology.links, self.design.weights, design.weights, strict=True)
        return {link: before for link, before, after in links if before != after}

    def restate(self) -> None:
        """State intents anew, as many as the data set has."""
        self.wanted = intents.sample(self.design.forwarding(), self.size.intents, self.rng)

    # Mistaken

    def slip(self, now: float) -> list[Mistake]:
        """One mistake as people make them; a swap is two wrong values."""
        while True:
            facts, labels = faults.slip(self.facts, self.rng, at_most=1)
            right = all((x.fact, x.parameter) not in self.wrong for x in labels)
            if labels and right and _is_settled(self.design, facts):
                break
        made = [
            Mistake(self.name, (x.fact, x.parameter), x.expected, x.observed, x.kind, now)
            for x in labels
        ]
        self.wrong |= {mistake.slot: mistake for mistake in made}
        self._look_for_harm()
        return made

    def _look_for_harm(self) -> None:
        """A wrong value is harmful if it, alone in the design, moves any traffic."""
        before = self.design.forwarding()
        for slot, mistake in self.wrong.items():
            facts = with_values(self.design.facts, {slot: mistake.wrong})
            mistake.harmful |= len(moved(before, _forward(self.design, facts))) > 0

    def end(self, slot: Slot, how: str, now: float) -> None:
        mistake = self.wrong.pop(slot)
        mistake.ended, mistake.ended_at = how, now


def values_of(facts: tuple[Fact, ...]) -> Values:
    return {(f.key, name): value for f in facts for name, value in f.params.items()}


def _weighted(design: Design, weights: tuple[int, ...]) -> Design:
    return replace(design, weights=weights)


def _forward(design: Design, facts: tuple[Fact, ...]) -> Forwarding:
    return forward(build(design.entities, facts), always_compare_med=True)


def _is_settled(design: Design, facts: tuple[Fact, ...]) -> bool:
    """Whether every network has one outcome, in the design and as it is."""
    states = design.forwarding(), _forward(design, facts)
    return not any(state.unsettled() for state in states)
