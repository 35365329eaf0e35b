"""From an alert or a finding to one sentence that an engineer can act on."""

from collections import Counter
from collections.abc import Iterable

from gsid_service.alert.decide import Finding
from gsid_service.records import Alert, BrokenIntent, Ending, FactKey, Move, Status
from gsid_service.schema import EBGP, FWD, IBGP

SESSIONS = frozenset({EBGP.name, IBGP.name})
NAMED = 2  # routers that a sentence names; the others are counted


def sentence(alert: Alert | Finding) -> str:
    if isinstance(alert, Alert) and alert.status is Status.RESOLVED:
        return _over(alert)
    if alert.fact.predicate == FWD.name:
        return _not_in_operation(alert)
    expected = f"{_expected(alert)}{_announced(alert)}"
    parts = [f"{alert.parameter} on {place(alert.fact)} is {alert.observed}{expected}"]
    if _is_session(alert):
        parts = [f"the {_session(alert)} is {alert.observed}{_announced(alert)}"]
    moving = [*_leaving(alert.moved), *_unsettled(alert)]
    told = [*moving, *_breaking(alert.broken_intents), *_mending(alert)]
    if not alert.verified:
        told = ["what it does was not verified for want of time"]
    return ": ".join([*parts, "; ".join(told or ["no traffic moves"])])


def place(key: FactKey) -> str:
    """Where a value stands, as engineers write it."""
    arrow = "→"
    return f"{key.args[0]} {arrow} {key.args[1]}" if len(key.args) == 2 else str(key)


def _is_session(alert: Alert | Finding) -> bool:
    return alert.fact.predicate in SESSIONS


def _session(alert: Alert | Finding) -> str:
    return f"{alert.parameter} of {' and '.join(alert.fact.args)}"


def _of_session(alert: Alert | Finding) -> str:
    """What is put back: it alone, or with all of a router."""
    return "the session" if alert.observed == "down" else "all of that"


def _over(alert: Alert) -> str:
    if _is_session(alert):
        is_up = alert.ending is Ending.RESTORED
        now = "is up again" if is_up else "is no longer expected, or moves no traffic any more"
        return f"over: the {_session(alert)} {now}"
    if alert.fact.predicate == FWD.name:
        router, network, hop = alert.fact.args
        return f"over: {router} no longer forwards {network} to {hop}, or that is configured now"
    value = f"{alert.parameter} on {place(alert.fact)}"
    if alert.ending is Ending.GONE:
        return f"over: {value} is no longer there"
    if alert.ending is Ending.BELIEVED:
        return f"over: {value} is no longer suspicious"
    if alert.observed == alert.expected:
        return f"over: {value} is still {alert.observed}, which is the expected value now"
    return f"restored: {value} is no longer wrong"


def _expected(alert: Alert | Finding) -> str:
    if alert.expected is None:
        return ", which is suspicious"
    doubt = " (a suggestion, not an approved value)" if alert.suggested else ""
    return f", expected {alert.expected}{doubt}"


def _announced(alert: Alert | Finding) -> str:
    change = alert.under_way
    if change is None:
        return ""
    named = f"{change.ticket} ({change.change})"
    return f" as {named} announces" if change.announced else f", which {named} does not announce"


def _leaving(moved: Iterable[Move]) -> Iterable[str]:
    """Whose traffic goes where: who has no way, or the most common new one, and how many more."""
    ways = Counter(move.after for move in moved)
    if not ways:
        return
    after = None if None in ways else ways.most_common(1)[0][0]
    going = [move for move in moved if move.after == after]
    routers = list(dict.fromkeys(move.router for move in going))
    one = len(routers) == 1
    if after is None:
        where = f"{'has' if one else 'have'} no way to {_lost(going, len(routers))} any more"
    else:
        where = f"{'sends' if one else 'send'} traffic to {_listed(after.split(', '))}"
    more = sum(ways.values()) - ways[after]
    others = f", {more} other next {'hop' if more == 1 else 'hops'} moved" if more else ""
    yield f"{_named(routers)} {where}{others}"


def _lost(moved: list[Move], routers: int) -> str:
    """The networks that are out of reach, of all these routers or each of some."""
    networks = list(dict.fromkeys(move.network for move in moved))
    each = "" if len(moved) == routers * len(networks) else "some of "
    return f"{each}{_named(networks)}"


def _unsettled(alert: Alert | Finding) -> Iterable[str]:
    """Of which networks nobody can tell where their traffic goes."""
    told = {move.network for move in alert.moved}
    unsettled = [one for one in alert.unsettled if one.network not in told]
    if now := [one.network for one in unsettled if one.now]:
        yield f"traffic to {_named(now)} has no one stable outcome"
    if then := [one.network for one in unsettled if not one.now]:
        yield f"with {alert.expected} traffic to {_named(then)} would have no one stable outcome"


def _named(names: list[str]) -> str:
    if len(names) <= NAMED + 1:
        return _listed(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _breaking(broken: Iterable[BrokenIntent]) -> Iterable[str]:
    kinds = Counter((b.derived, b.intent.predicate) for b in broken)
    listed = [
        f"{count} {'derived ' if derived else ''}{predicate.replace('_', ' ')}"
        for (derived, predicate), count in sorted(kinds.items())
    ]
    if listed:
        yield f"{_listed(listed)} {_intents(sum(kinds.values()))} broken"


def _mending(alert: Alert | Finding) -> Iterable[str]:
    """What the expected value repairs, and what the operator would lose by it."""
    what = _of_session(alert) if _is_session(alert) else alert.expected
    breaks = f"{alert.reverting_breaks} stated {_intents(alert.reverting_breaks)}"
    if alert.broken_intents and alert.expected is not None:
        besides = "".join(f", with {t.value} on {place(t.fact)}," for t in alert.together)
        total = alert.reverting_repairs
        but = f", but breaks {breaks}" if alert.reverting_breaks else ""
        all_of_it = f"all {total}" if total > 1 else "it"
        if not total:
            all_of_it = f"none of {'it' if len(alert.broken_intents) == 1 else 'them'} alone"
        yield f"{_putting(alert)} {what}{besides} repairs {all_of_it}{but}"
        return
    if alert.together:
        besides = ", ".join(f"{t.parameter} on {place(t.fact)}" for t in alert.together)
        yield f"hidden by {besides}"
    if alert.reverting_breaks:
        yield f"{_putting(alert)} {what} would break {breaks}"


def _putting(alert: Alert | Finding) -> str:
    return "setting" if alert.suggested else "restoring"


def _intents(number: int) -> str:
    return "intent" if number == 1 else "intents"


def _not_in_operation(alert: Alert | Finding) -> str:
    router, network = alert.fact.args[:2]
    forwards = f"{router} forwards {network} to {alert.observed}, but what is configured leads"
    if alert.expected is None:
        return f"{forwards} nowhere: in operation, but not configured"
    return f"{forwards} to {alert.expected}: configured, but not in operation"
