"""What a value should be where nobody approved one, the approved one would change nothing, or the
others have changed together since: the best that its siblings have."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from gsid_service.records import Fact, FactKey
from gsid_service.simulate.reverts import Bench
from gsid_service.simulate.revise import Value

TRIED = 5  # the most common values among the siblings
TOGETHER = 2  # others of one entity that changed to one value

Changed = Counter[tuple[str, str, str]]  # how many, by predicate, entity and parameter


class Siblings:
    """Facts of the same kind that share an entity: other routes to the same network or from the
    same peer, other links of the same routers."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._facts: dict[FactKey, Fact] = {}
        self._of: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in facts:
            if fact.params:
                self._facts[fact.key] = fact
                for entity in fact.args:
                    self._of[fact.predicate, entity].append(fact)

    def values(self, key: FactKey, parameter: str) -> list[int]:
        """The values that they have and the fact itself has not, the most common first."""
        own = self._facts[key].params.get(parameter) if key in self._facts else None
        shared = [fact for entity in key.args for fact in self._of[key.predicate, entity]]
        counted = Counter(
            value
            for fact in shared
            if fact.args != key.args and (value := fact.params.get(parameter)) is not None
        )
        return [value for value, _ in counted.most_common() if value != own]

    def left_out(self, key: FactKey, parameter: str, changed: Changed) -> int | None:
        """The one value that all others of an entity have, some of which changed to it; of a value
        that changed, too.

        As the links of a router that is being drained, but for this one.
        """
        own = self._facts[key].params.get(parameter) if key in self._facts else None
        for entity in _moving(key, parameter, changed):
            others = [fact for fact in self._of[key.predicate, entity] if fact.args != key.args]
            values = {fact.params.get(parameter) for fact in others}
            if len(values) == 1 and own not in values:
                return values.pop()
        return None


def counted(different: Iterable[Value]) -> Changed:
    """How many values of each parameter changed at each entity."""
    return Counter(
        (key.predicate, entity, parameter) for key, parameter, _ in different for entity in key.args
    )


def may_be_left_out(key: FactKey, parameter: str, changed: Changed) -> bool:
    """Whether so much changed beside a value that it is worth a look at its siblings."""
    return bool(_moving(key, parameter, changed))


def _moving(key: FactKey, parameter: str, changed: Changed) -> list[str]:
    """The entities of which others changed, too."""
    return [e for e in key.args if changed[key.predicate, e, parameter] > TOGETHER]


def suggest(bench: Bench, siblings: Siblings, key: FactKey, parameter: str) -> int | None:
    """The value that repairs the most stated and derived intents; of equal ones the most common.

    None where the siblings have no other value.
    """
    common = siblings.values(key, parameter)[:TRIED]
    return max(
        common, key=lambda v: _net(bench, (key, parameter, v), len(bench.wanted)), default=None
    )


def remedy(bench: Bench, siblings: Siblings, key: FactKey, parameter: str) -> int | None:
    """Likewise of the stated intents; None where no value repairs more of them than it breaks."""
    common = siblings.values(key, parameter)[:TRIED]
    worth = {v: _net(bench, (key, parameter, v), bench.stated) for v in common}
    return max((v for v in worth if worth[v] > 0), key=worth.__getitem__, default=None)


def _net(bench: Bench, value: Value, counted: int) -> int:
    """What it repairs less what it breaks, of so many of the wanted intents."""
    trial = bench.attempt(value)
    if trial is None:
        return 0
    repaired, broken = (
        sum(at < counted for at in places) for places in (trial.repairs, trial.breaks)
    )
    return repaired - broken
