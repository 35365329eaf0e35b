"""From a live network and a candidate for it to what would break and whose traffic would move.

Asks the service what it knows, and keeps nothing. The candidate is scored and proved on the same
path as the network itself, so that a check says beforehand what an alert would say afterwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gsid_service.alert.decide import Finding
from gsid_service.app import Service
from gsid_service.assemble.merge import Merged, extend, merge
from gsid_service.cycle.findings import finding
from gsid_service.diagnose.apart import Lost
from gsid_service.diagnose.known import Observation
from gsid_service.ingest.candidate import Candidate, WireValue, read_values
from gsid_service.records import BrokenIntent, FactKey, Move
from gsid_service.simulate.faults import with_values
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.intents import satisfied
from gsid_service.simulate.plane import build
from gsid_service.store.networks import Network
from gsid_service.verify.proof import paths

CANDIDATE = "candidate"  # in place of the id of a snapshot
Slot = tuple[FactKey, str]


class OtherNetwork(ValueError):
    """The candidate is of another network."""


class NotScored(RuntimeError):
    """There is no process that scores, or it ended over this."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a candidate would do to a network."""

    new: list[Finding]  # values that it would make wrong
    existing: list[Finding]  # values that are wrong already, and would stay so
    breaks: list[BrokenIntent]
    repairs: list[BrokenIntent]
    moved: list[Move]  # before as it is, after as it would be
    undetermined: list[str]  # networks that would not have exactly one stable outcome

    @property
    def is_clean(self) -> bool:
        """A derived intent may break by a change that is meant; a stated one may not, and no
        traffic may be left without a way, as a candidate that is cut short would leave it."""
        cut_off = any(move.after is None for move in self.moved)
        return not self.new and not cut_off and all(intent.derived for intent in self.breaks)


def lay(service: Service, name: str, candidate: Candidate) -> tuple[Merged, Merged]:
    """The network as it is, and as it would be with the candidate laid upon it."""
    views, silent = service.views(name)
    live = merge(views.values(), silent)
    if isinstance(candidate, list):
        return live, _with_values(live, candidate)
    if candidate.network != name:
        raise OtherNetwork(f"{candidate.network!r} is not {name!r}")
    # What would be seen after the change is newer than all that was seen, whenever it was written.
    newest = max((view.observed_at for view in views.values()), default=candidate.observed_at)
    who, at = candidate.collector.id, max(newest, service.clock())
    view = extend(views.get(who), replace(candidate, observed_at=at), CANDIDATE)
    return live, merge((views | {who: view}).values(), silent - {who})


def _with_values(live: Merged, wanted: list[WireValue]) -> Merged:
    values = read_values(wanted, {fact.key: fact for fact in live.facts})
    told = {key for key, _ in values}
    return replace(live, facts=with_values(live.facts, values), stale=live.stale - told)


def check(service: Service, network: Network, live: Merged, candidate: Merged) -> Checked:
    """Diagnose both states, and compare where they send the traffic."""
    now, then = (service.expectations.observe(network, state) for state in (live, candidate))
    before = dict(_wrong(service, network, now, live))
    after = list(_wrong(service, network, then, candidate))
    known = [slot in before and before[slot].observed == found.observed for slot, found in after]
    old, new = (_forwarding(seen) for seen in (now, then))
    return Checked(
        new=[found for (_, found), old in zip(after, known, strict=True) if not old],
        existing=[found for (_, found), old in zip(after, known, strict=True) if old],
        breaks=list(_turning(now, old, new)),
        repairs=list(_turning(then, new, old)),
        moved=list(_moves(old, new)),
        undetermined=sorted(new.unsettled()),
    )


def _wrong(
    service: Service, network: Network, seen: Observation, merged: Merged
) -> Iterator[tuple[Slot, Finding]]:
    """The values that would open an alert, the most suspicious first."""
    limits = service.limits()
    try:
        diagnosis = service.diagnose(seen, limits)
    except Lost as error:
        raise NotScored(str(error)) from error
    for value in diagnosis.values:
        if value.score < limits.certain:
            return
        if value.observed != value.expected and value.fact not in merged.stale:
            yield value.slot, finding(network.name, value, diagnosis, merged)


def _forwarding(seen: Observation) -> Forwarding:
    return forward(build(seen.entities, seen.facts), seen.always_compare_med)


def _turning(seen: Observation, holding: Forwarding, broken: Forwarding) -> Iterator[BrokenIntent]:
    """The intents that hold in one state, as far as that can be told, and not in the other."""
    for derived, intents in enumerate(seen.wanted):
        for intent in intents:
            if satisfied(intent, broken) is False and satisfied(intent, holding) is not False:
                yield BrokenIntent(intent, bool(derived), *paths(intent, holding, broken))


def _moves(before: Forwarding, after: Forwarding) -> Iterator[Move]:
    """By name: the two states need not have the same routers."""
    old, new = before.by_name(equal=True), after.by_name(equal=True)
    for network in dict.fromkeys([*old, *new]):
        was, will = old.get(network, {}), new.get(network, {})
        if was is None or will is None:
            continue
        for router in dict.fromkeys([*was, *will]):
            hops = [", ".join(side.get(router, ())) or None for side in (was, will)]
            if hops[0] != hops[1]:
                yield Move(router, network, *hops)
