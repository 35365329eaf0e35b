"""What a value should be where nobody approved one: the best that its siblings have."""

from collections import Counter
from collections.abc import Iterable

from gsid_service.records import Fact, FactKey
from gsid_service.simulate.reverts import Bench

TRIED = 5  # the most common values among the siblings


def suggest(bench: Bench, facts: Iterable[Fact], key: FactKey, parameter: str) -> int | None:
    """The value that repairs the most stated and derived intents; of equal ones the most common.

    Siblings are facts of the same kind that share an entity: other routes to the same network or
    from the same peer, other links of the same routers. None where they have no other value.
    """
    own: int | None = None
    counted: Counter[int] = Counter()
    for fact in facts:
        value = fact.params.get(parameter)
        if fact.key == key:
            own = value
        elif value is not None and fact.predicate == key.predicate:
            counted[value] += len(set(fact.args) & set(key.args))
    common = [value for value, shared in counted.most_common() if shared and value != own]
    return max(common[:TRIED], key=lambda v: _net(bench, (key, parameter, v)), default=None)


def _net(bench: Bench, value: tuple[FactKey, str, int]) -> int:
    trial = bench.attempt(value)
    return 0 if trial is None else len(trial.repairs) - len(trial.breaks)
