"""What a value should be where nobody approved one: the best that its siblings have."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from gsid_service.records import Fact, FactKey
from gsid_service.simulate.reverts import Bench

TRIED = 5  # the most common values among the siblings


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


def suggest(bench: Bench, siblings: Siblings, key: FactKey, parameter: str) -> int | None:
    """The value that repairs the most stated and derived intents; of equal ones the most common.

    None where the siblings have no other value.
    """
    common = siblings.values(key, parameter)[:TRIED]
    return max(common, key=lambda v: _net(bench, (key, parameter, v)), default=None)


def _net(bench: Bench, value: tuple[FactKey, str, int]) -> int:
    trial = bench.attempt(value)
    return 0 if trial is None else len(trial.repairs) - len(trial.breaks)
