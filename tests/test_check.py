"""What a check claims, held against the slow oracle of the simulator's tests."""

import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from gsid_service.check import Checked, check, lay
from gsid_service.ingest.candidate import WireValue
from gsid_service.ingest.shapes import WireFactKey
from gsid_service.records import Fact, FactKey
from gsid_service.store import networks
from tests.api.inside import NET, Inside, inside
from tests.simulate import oracle
from tests.simulate.oracle import Domain, Hops, Rules

PARAMETERS = {
    "local_pref": (90, 210),
    "as_path_length": (1, 4),
    "med": (0, 3),
    "ospf_weight": (1, 40),
}
PREFIX = "203.0.113.0/24"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    folder: Path = tmp_path_factory.mktemp("check")
    with inside(f"sqlite:///{folder / 'gsid.db'}") as opened:
        opened.see()
        yield opened


def hops(net: Inside, facts: Iterable[Fact]) -> Hops:
    """Where each router sends the traffic, by messages that are passed until nothing changes."""
    domain = Domain(net.service.merged(NET)[1].entities, facts)
    settled = oracle.exchange(Rules(domain, PREFIX), seed=1)
    assert settled is not None
    return settled


def drawn(net: Inside, rng: random.Random) -> list[WireValue]:
    facts = net.service.merged(NET)[1].facts
    slots = [(f, p) for f in facts for p in f.params if p in PARAMETERS]
    return [
        WireValue(
            fact=WireFactKey(predicate=fact.predicate, args=list(fact.args)),
            parameter=parameter,
            value=rng.randint(*PARAMETERS[parameter]),
        )
        for fact, parameter in rng.sample(slots, rng.randint(1, 4))
    ]


def checked(net: Inside, values: list[WireValue]) -> tuple[Checked, Hops, Hops]:
    with net.service.database.read() as connection:
        network = networks.find(connection, NET)
    assert network is not None
    live, candidate = lay(net.service, NET, values)
    found = check(net.service, network, live, candidate)
    return found, hops(net, live.facts), hops(net, candidate.facts)


@pytest.mark.parametrize("seed", range(20))
def test_moved_really_moves_and_broken_really_is_broken(net: Inside, seed: int) -> None:
    found, before, after = checked(net, drawn(net, random.Random(f"check {seed}")))
    claimed = {m.router: (m.before, m.after) for m in found.moved}
    assert claimed == {
        router: (", ".join(sorted(before[router])), ", ".join(sorted(after[router])))
        for router in before
        if before[router] != after[router]
    }
    assert found.undetermined == []
    for broken in (*found.breaks, *found.repairs):
        right, wrong = (before, after) if broken in found.breaks else (after, before)
        exit_router = broken.intent.args[2]
        assert exit_router in broken.wanted
        assert exit_router not in broken.actual
        for path, table in ((broken.wanted, right), (broken.actual, wrong)):
            assert all(hop in table[router] for router, hop in pairwise(path))


@pytest.mark.parametrize("seed", range(20))
def test_a_finding_s_expected_value_really_repairs_what_it_says(net: Inside, seed: int) -> None:
    values = drawn(net, random.Random(f"check {seed}"))
    for finding in checked(net, values)[0].new:
        right = {(finding.fact, finding.parameter): finding.expected}
        right |= {(t.fact, t.parameter): t.value for t in finding.together}
        again = [v.model_copy(update={"value": right.get(slot(v), v.value)}) for v in values]
        _, _, repaired = checked(net, again)
        for broken in finding.broken_intents:
            assert all(hop in repaired[router] for router, hop in pairwise(broken.wanted))


def slot(value: WireValue) -> tuple[FactKey, str]:
    return FactKey(value.fact.predicate, tuple(value.fact.args)), value.parameter
