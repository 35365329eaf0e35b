"""Every claim of a proof, read again by the oracle: broken is broken, moved moved, and repaired."""

from collections.abc import Mapping

import pytest

from gsid_service.diagnose.diagnosis import Limits, diagnose
from gsid_service.diagnose.known import Observation, Reference
from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Fact, FactKey, Intents
from gsid_service.score.rivals import diff
from gsid_service.simulate import faults
from gsid_service.simulate.cases import Case
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.intents import satisfied
from gsid_service.simulate.plane import build
from gsid_service.verify.proof import Proof
from tests.simulate import oracle
from tests.simulate.oracle import Domain, Hops, Rules

Slot = tuple[FactKey, str]


class Reading:
    """The oracle's reading of a network: next hops and paths, by name."""

    def __init__(self, case: Case, values: Mapping[Slot, int]) -> None:
        self.facts = faults.with_values(case.facts, dict(values))
        self.domain = Domain(case.entities, self.facts)
        self.known: dict[str, Hops | None] = {}

    def hops(self, network: str) -> Hops:
        if network not in self.known:
            self.known[network] = oracle.exchange(Rules(self.domain, network, True), 1, 20_000)
        hops = self.known[network]
        assert hops is not None, "the data sets hold settled networks only"
        return hops

    def reached(self, router: str, network: str) -> set[str]:
        seen, pending = {router}, [router]
        while pending:
            for hop in self.hops(network).get(pending.pop(), ()):
                if hop not in seen:
                    seen.add(hop)
                    pending.append(hop)
        return seen

    def holds(self, intent: Fact) -> bool:
        if intent.predicate == "fwd":
            router, network, hop = intent.args
            found = hop in self.hops(network)[router]
        elif intent.predicate == "reachable":
            router, network, via = intent.args
            beyond = self.reached(via, network) if via in self.domain.routers else {via}
            arrives = any(hop not in self.domain.routers for hop in beyond)
            found = via in self.reached(router, network) and arrives
        else:
            one, other, *networks = intent.args
            found = not all(other in self.hops(network)[one] for network in networks)
        return found == intent.holds


def check(case: Case, slot: Slot, expected: int, proof: Proof) -> None:
    others = {(t.fact, t.parameter): t.value for t in proof.together}
    wrong, right = Reading(case, others), Reading(case, others | {slot: expected})
    for network in {move.network for move in proof.moved}:
        claimed = {m.router: (m.before, m.after) for m in proof.moved if m.network == network}
        before, after = right.hops(network), wrong.hops(network)
        moved = {router for router in wrong.domain.routers if before[router] != after[router]}
        assert claimed.keys() == moved
        for router, ends in claimed.items():
            said = tuple(frozenset(end.split(", ")) if end else frozenset() for end in ends)
            assert said == (before[router], after[router])
    as_it_is = Reading(case, {})
    for broken in proof.broken:
        assert not as_it_is.holds(broken.intent)
        assert right.holds(broken.intent)
        assert broken.wanted[0] == broken.actual[0] == broken.intent.args[0]
    settled = forward(build(case.entities, right.facts), always_compare_med=True)
    lost = [
        intent
        for intent in case.intents
        if satisfied(intent, settled) is not None
        and as_it_is.holds(intent)
        and not right.holds(intent)
    ]
    assert proof.breaks == len(lost)


@pytest.mark.parametrize("index", range(12))
def test_the_oracle_agrees_with_every_claim(index: int) -> None:
    case = SPLITS["operations-standard"].case("claims", index)
    assert case.baseline
    seen = Observation(
        case.entities,
        case.facts,
        Intents(case.intents),
        Reference(*case.baseline),
        always_compare_med=True,
    )
    found = diagnose(seen, diff, Limits(seconds=60))
    expected = {value.slot: value.expected for value in found.values}
    for slot, proof in found.proofs.items():
        value = expected[slot]
        assert value is not None
        check(case, slot, value, proof)
