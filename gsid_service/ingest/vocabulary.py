"""What depends on the vocabulary: from facts of the right shape to records, and what is wrong with
them. Predicates, roles and ranges are read from the schema, so that another protocol needs no
change here."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from gsid_service.ingest.problems import PROBLEMS_AT_MOST, Problem, quoted, unknown
from gsid_service.ingest.shapes import WireEntity, WireFact, WireFactKey
from gsid_service.records import Entity, Fact, FactKey
from gsid_service.schema import EXTERNAL_AS, FactKind, Group, Parameter, Schema

_Key = tuple[str, tuple[str, ...]]  # a FactKey is one, but takes longer to make


class _Form(NamedTuple):
    """What a fact of one predicate must be like."""

    kinds: set[tuple[str, ...]]  # that its arguments may be of
    parameters: dict[str, Parameter]
    required: set[str]
    distinct: bool
    exclusive: int | None
    negatable: bool


class Reading:
    """Checks entities and facts against the vocabulary and collects what is wrong with them."""

    def __init__(
        self,
        schema: Schema,
        kinds: Mapping[str, str],
        group: Group | None = None,
        place: str = "facts",
    ) -> None:
        self.schema, self.group, self.place = schema, group, place
        self.kinds = dict(kinds)
        self.problems: list[Problem] = []
        self.allowed = {
            fact.name: [{kind.name for kind in role.kinds} for role in fact.roles]
            for fact in schema.facts
        }
        self.forms = {
            kind.name: _Form(
                set(product(*self.allowed[kind.name])),
                {parameter.name: parameter for parameter in kind.parameters},
                {parameter.name for parameter in kind.parameters if parameter.required},
                kind.distinct,
                kind.exclusive,
                group is Group.INTENT,
            )
            for kind in schema.facts
            if self._takes(kind)
        }

    def _has_enough(self) -> bool:
        return len(self.problems) >= PROBLEMS_AT_MOST

    def entities(self, wire: list[WireEntity]) -> tuple[Entity, ...]:
        known = self.schema.entity
        read = []
        for i, entity in enumerate(wire):
            if self._has_enough():
                break
            name, kind, asn = entity.id, entity.kind, entity.asn
            misplaced = asn is not None and kind != EXTERNAL_AS.name
            if misplaced or kind not in known or name in self.kinds:
                self.problems += self._check_entity(f"entities[{i}]", entity)
            self.kinds.setdefault(name, kind)
            read.append(Entity(name, kind, asn, entity.label, entity.position))
        return tuple(read)

    def _check_entity(self, at: str, entity: WireEntity) -> Iterator[Problem]:
        if entity.kind not in self.schema.entity:
            yield Problem(f"{at}.kind", unknown(entity.kind, "kind", self.schema.entity))
        if entity.id in self.kinds:
            yield Problem(f"{at}.id", f"{quoted(entity.id)} is declared twice")
        if entity.asn is not None and entity.kind != EXTERNAL_AS.name:
            yield Problem(f"{at}.asn", f"belongs to an {EXTERNAL_AS.name}, not a {entity.kind}")

    def facts(self, wire: list[WireFact]) -> tuple[Fact, ...]:
        seen: set[_Key] = set()
        taken: set[tuple[str, str]] = set()
        read = []
        for i, fact in enumerate(wire):
            if self._has_enough():
                break
            key = fact["predicate"], tuple(fact["args"])
            right = None if key in seen else self._right(fact, key, taken)
            if right is None:
                at = f"{self.place}[{i}]"
                if key in seen:
                    self.problems.append(Problem(at, f"{FactKey(*key)} is given twice"))
                else:
                    self.problems += self._check_exclusive(at, key, taken)
                right = Fact(*key, self._check_fact(at, fact), fact.get("holds", True))
            seen.add(key)
            read.append(right)
        return tuple(read)

    def _right(self, fact: WireFact, key: _Key, taken: set[tuple[str, str]]) -> Fact | None:
        """The fact, where nothing is wrong with it at a first look; most facts end here."""
        (predicate, args), holds = key, fact.get("holds", True)
        form = self.forms.get(predicate)
        if form is None or not (holds or form.negatable):
            return None
        if tuple(map(self.kinds.get, args)) not in form.kinds:
            return None
        params: dict[str, int] = {}
        for name, value in fact.get("params", {}).items():
            parameter = form.parameters.get(name)
            number = None if parameter is None else number_of(parameter, value)
            if number is None:
                return None
            params[name] = number
        if not form.required <= params.keys() or (form.distinct and len(set(args)) < len(args)):
            return None
        if form.exclusive is not None:
            place = predicate, args[form.exclusive]
            if place in taken:
                return None
            taken.add(place)
        return Fact(predicate, args, params, holds)

    def _check_exclusive(
        self, at: str, key: _Key, taken: set[tuple[str, str]]
    ) -> Iterator[Problem]:
        predicate, args = key
        kind = self.schema.fact.get(predicate)
        if kind is None or kind.exclusive is None or len(args) != len(kind.roles):
            return
        place = (predicate, args[kind.exclusive])
        if place in taken:
            reason = f"{quoted(place[1])} has another {predicate} already"
            yield Problem(f"{at}.args[{kind.exclusive}]", reason)
        taken.add(place)

    def _check_fact(self, at: str, fact: WireFact) -> dict[str, int]:
        kind = self.schema.fact.get(fact["predicate"])
        if kind is None or not self._takes(kind):
            self.problems.append(Problem(f"{at}.predicate", self._refusal(fact["predicate"], kind)))
            return {}
        self.problems += self._check_args(f"{at}.args", kind, fact["args"], declared=True)
        if not fact.get("holds", True) and self.group is not Group.INTENT:
            self.problems.append(Problem(f"{at}.holds", "only an intent can be negated"))
        return self._check_params(f"{at}.params", kind, fact.get("params", {}))

    def _takes(self, kind: FactKind) -> bool:
        return kind.observable if self.group is None else kind.group is self.group

    def _refusal(self, name: str, kind: FactKind | None) -> str:
        if kind is not None and self.group is None:
            return f"{name} is an intent, and no collector can observe it"
        known = [fact.name for fact in self.schema.facts if self._takes(fact)]
        return unknown(name, "predicate", known)

    def _check_args(
        self, at: str, kind: FactKind, args: list[str], declared: bool
    ) -> Iterator[Problem]:
        allowed = self.allowed[kind.name]
        if len(args) != len(kind.roles):
            roles = ", ".join(role.name for role in kind.roles)
            yield Problem(at, f"{kind.name} takes {len(kind.roles)} ({roles}), not {len(args)}")
            return
        if kind.distinct and len(set(args)) < len(args):
            yield Problem(at, f"{kind.name} cannot name the same entity twice")
        for i, arg in enumerate(args):
            found = self.kinds.get(arg)
            if found in allowed[i]:
                continue
            if found is None and declared:
                yield Problem(f"{at}[{i}]", f"{quoted(arg)} is not declared in entities")
            elif found in self.schema.entity:
                role = kind.roles[i]
                wanted = " or ".join(k.name for k in role.kinds)
                reason = f"is a {found}; the {role.name} of {kind.name} is a {wanted}"
                yield Problem(f"{at}[{i}]", f"{quoted(arg)} {reason}")

    def _check_params(self, at: str, kind: FactKind, given: dict[str, Any]) -> dict[str, int]:
        read = {}
        for name, value in given.items():
            parameter = kind.parameter(name)
            if parameter is None:
                known = [p.name for p in kind.parameters]
                reason = unknown(name, f"parameter of {kind.name}", known)
                self.problems.append(Problem(f"{at}.{name}", reason))
            elif (number := number_of(parameter, value)) is None:
                self.problems.append(Problem(f"{at}.{name}", not_a_value(parameter, value)))
            else:
                read[name] = number
        for parameter in kind.parameters:
            if parameter.required and parameter.name not in given:
                self.problems.append(Problem(f"{at}.{parameter.name}", "is required"))
        return read

    def withdrawn(self, wire: list[WireFactKey], facts: list[WireFact]) -> tuple[FactKey, ...]:
        """Withdrawn facts need no declared entities: these may be gone with them."""
        given = {(fact["predicate"], *fact["args"]) for fact in facts} if wire else set()
        for i, key in enumerate(wire):
            if self._has_enough():
                break
            kind = self.schema.fact.get(key.predicate)
            at = f"withdrawn[{i}]"
            if kind is None or not kind.observable:
                self.problems.append(Problem(f"{at}.predicate", self._refusal(key.predicate, kind)))
                continue
            self.problems += self._check_args(f"{at}.args", kind, key.args, declared=False)
            identity = (key.predicate, *key.args)
            if identity in given:
                self.problems.append(Problem(at, "is given in facts, or withdrawn already"))
            given.add(identity)
        return tuple(FactKey(key.predicate, tuple(key.args)) for key in wire)


def number_of(parameter: Parameter, value: Any) -> int | None:
    """The value as an integer of the protocol's range, or None."""
    if isinstance(value, str) and value in parameter.symbols:
        return parameter.symbols.index(value)
    if type(value) is int and parameter.low <= value <= parameter.high:
        return value
    return None


def not_a_value(parameter: Parameter, value: Any) -> str:
    bounds = f"{parameter.low} to {parameter.high}"
    if parameter.symbols:
        return f"{quoted(value)} is none of {', '.join(parameter.symbols)}"
    if type(value) is not int:
        return f"{quoted(value)} is not an integer ({bounds})"
    return f"{quoted(value)} is outside {bounds}"
