"""One router's part of a network that is in a file whole, as `gsid simulate` writes it.

Who edits the file plays a mistake, or a change that is meant.
"""

from collections.abc import Iterable

from gsid_service.collect.file import File
from gsid_service.collect.source import Sight, SourceError
from gsid_service.records import Fact
from gsid_service.schema import EBGP, IBGP


class Simulated(File):
    """The router by whose name it is collected, in the network of the file."""

    def read(self) -> Sight:
        whole = super().read()
        kinds = {entity.id: entity.kind for entity in whole.entities}
        if self.router not in kinds:
            raise SourceError(f"{self.path}: there is no {self.router} in it")
        facts = tuple(seen_by(self.router, whole.facts))
        named = {self.router, *(arg for fact in facts for arg in fact.args)}
        entities = tuple(entity for entity in whole.entities if entity.id in named)
        return Sight(self.router, kinds[self.router], entities, facts)


def seen_by(router: str, facts: Iterable[Fact]) -> list[Fact]:
    """What begins at a router or at one of its peerings, and the sessions that it is an end of."""
    facts = list(facts)
    peerings = {f.args[1] for f in facts if f.predicate == EBGP.name and f.args[0] == router}
    return [
        fact
        for fact in facts
        if fact.args[0] in {router, *peerings}
        or (fact.predicate == IBGP.name and router in fact.args)
    ]


SOURCE = Simulated
