"""A snapshot that is wrong is refused with field and reason; every other one round-trips."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsid_service import schema
from gsid_service.ingest.json_schema import json_schema
from gsid_service.ingest.problems import PROBLEMS_AT_MOST, InvalidSnapshot, NotJSON
from gsid_service.ingest.shapes import SEQUENCE_HIGHEST, WireFact, is_name
from gsid_service.ingest.wire import LARGE, dump_snapshot, parse_snapshot, read_facts
from gsid_service.records import Collector, Entity, Fact, FactKey, Snapshot
from gsid_service.schema import SCHEMA, FactKind, Group

Document = dict[str, Any]
DOCS = Path(__file__).parents[2] / "docs"


def document() -> Document:
    """The design's example."""
    return {
        "schema": "gsid.snapshot/1",
        "network": "as65000",
        "collector": {"id": "rr1", "role": "route_reflector"},
        "sequence": 1042,
        "observed_at": "2026-11-15T22:00:00Z",
        "complete": True,
        "entities": [
            {"id": "R1", "kind": "router"},
            {"id": "R3", "kind": "router", "label": "Genève", "position": [6.1, 46.2]},
            {"id": "RR1", "kind": "route_reflector"},
            {"id": "AS65101@R3", "kind": "external_as", "asn": 65101},
            {"id": "203.0.113.0/24", "kind": "network"},
        ],
        "facts": [
            {"predicate": "connected", "args": ["R1", "RR1"], "params": {"ospf_weight": 10}},
            {"predicate": "ibgp", "args": ["R1", "RR1"]},
            {"predicate": "ebgp", "args": ["R3", "AS65101@R3"]},
            {
                "predicate": "bgp_route",
                "args": ["AS65101@R3", "203.0.113.0/24"],
                "params": {"local_pref": 200, "as_path_length": 2, "origin": "igp", "med": 0},
            },
        ],
        "withdrawn": [{"predicate": "ebgp", "args": ["R4", "AS65102@R4"]}],
    }


def problems(change: Callable[[Document], object]) -> list[str]:
    changed = document()
    change(changed)
    with pytest.raises(InvalidSnapshot) as caught:
        parse_snapshot(json.dumps(changed))
    return [str(problem) for problem in caught.value.problems]


def fact(predicate: str, *args: str, **params: Any) -> Document:
    return {"predicate": predicate, "args": list(args), "params": params}


def test_the_example_is_read() -> None:
    snapshot = parse_snapshot(json.dumps(document()))
    assert snapshot.collector == Collector("rr1", "route_reflector")
    assert snapshot.observed_at == datetime(2026, 11, 15, 22, tzinfo=UTC)
    assert snapshot.facts[3].params["origin"] == 0
    assert snapshot.entities[1].position == (6.1, 46.2)
    assert snapshot.withdrawn == (FactKey("ebgp", ("R4", "AS65102@R4")),)


BAD: dict[str, tuple[Callable[[Document], object], str]] = {
    "unknown predicate": (
        lambda d: d["facts"].append(fact("isis", "R1", "R3")),
        'facts[4].predicate: unknown predicate "isis"; known: bgp_route, connected, ebgp, fwd, '
        "ibgp",
    ),
    "an intent": (
        lambda d: d["facts"].append(fact("reachable", "R1", "203.0.113.0/24", "R3")),
        "facts[4].predicate: reachable is an intent, and no collector can observe it",
    ),
    "unknown kind": (
        lambda d: d["entities"].append({"id": "S1", "kind": "switch"}),
        'entities[5].kind: unknown kind "switch"; known: external_as, network, route_reflector, '
        "router",
    ),
    "wrong number of arguments": (
        lambda d: d["facts"].append(fact("connected", "R1", ospf_weight=1)),
        "facts[4].args: connected takes 2 (router, router), not 1",
    ),
    "wrong role": (
        lambda d: d["facts"].append(fact("ibgp", "R1", "R3")),
        'facts[4].args[1]: "R3" is a router; the route_reflector of ibgp is a route_reflector',
    ),
    "dangling entity": (
        lambda d: d["facts"].append(fact("ebgp", "R9", "AS65101@R3")),
        'facts[4].args[0]: "R9" is not declared in entities',
    ),
    "above the range": (
        lambda d: d["facts"][3]["params"].update(local_pref=2**32),
        "facts[3].params.local_pref: 4294967296 is outside 0 to 4294967295",
    ),
    "below the range": (
        lambda d: d["facts"][0]["params"].update(ospf_weight=0),
        "facts[0].params.ospf_weight: 0 is outside 1 to 65535",
    ),
    "a float": (
        lambda d: d["facts"][3]["params"].update(med=1.0),
        "facts[3].params.med: 1.0 is not an integer (0 to 4294967295)",
    ),
    "a bool": (
        lambda d: d["facts"][3]["params"].update(med=True),
        "facts[3].params.med: true is not an integer (0 to 4294967295)",
    ),
    "a number as text": (
        lambda d: d["facts"][3]["params"].update(med="5"),
        'facts[3].params.med: "5" is not an integer (0 to 4294967295)',
    ),
    "an unknown origin": (
        lambda d: d["facts"][3]["params"].update(origin="bgp"),
        'facts[3].params.origin: "bgp" is none of igp, egp, incomplete',
    ),
    "an unknown parameter": (
        lambda d: d["facts"][0]["params"].update(cost=3),
        'facts[0].params.cost: unknown parameter of connected "cost"; known: ospf_weight',
    ),
    "a missing parameter": (
        lambda d: d["facts"][0].pop("params"),
        "facts[0].params.ospf_weight: is required",
    ),
    "a fact twice": (
        lambda d: d["facts"].append(d["facts"][1]),
        "facts[4]: ibgp(R1, RR1) is given twice",
    ),
    "an entity twice": (
        lambda d: d["entities"].append({"id": "R1", "kind": "router"}),
        'entities[5].id: "R1" is declared twice',
    ),
    "a link to itself": (
        lambda d: d["facts"].append(fact("connected", "R1", "R1", ospf_weight=1)),
        "facts[4].args: connected cannot name the same entity twice",
    ),
    "a negated routing fact": (
        lambda d: d["facts"][1].update(holds=False),
        "facts[1].holds: only an intent can be negated",
    ),
    "a negated observation": (
        lambda d: d["facts"].append({**fact("fwd", "R1", "203.0.113.0/24", "R3"), "holds": False}),
        "facts[4].holds: only an intent can be negated",
    ),
    "a peering at two gateways": (
        lambda d: d["facts"].append(fact("ebgp", "R1", "AS65101@R3")),
        'facts[4].args[1]: "AS65101@R3" has another ebgp already',
    ),
    "a place off the map": (
        lambda d: d["entities"][0].update(position=[9999, 0]),
        "entities[0].position[0]: Input should be less than or equal to 180",
    ),
    "seconds as a time": (
        lambda d: d.update(observed_at="1700000000"),
        "observed_at: must be a date and time, as in 2026-11-15T22:00:00Z",
    ),
    "an asn on a router": (
        lambda d: d["entities"][0].update(asn=65000),
        "entities[0].asn: belongs to an external_as, not a router",
    ),
    "an empty id": (
        lambda d: d["entities"][0].update(id=""),
        "entities[0].id: must not be empty",
    ),
    "a long id": (
        lambda d: d["entities"][0].update(id="R" * 201),
        "entities[0].id: must be at most 200 characters long",
    ),
    "a control character": (
        lambda d: d["entities"][0].update(id="R\x07"),
        "entities[0].id: must not contain the control character U+0007",
    ),
    "a bidirectional override": (
        lambda d: d.update(network="as\u202e65000"),
        "network: must not contain the control character U+202E",
    ),
    "white space around": (
        lambda d: d["collector"].update(id=" rr1"),
        "collector.id: must not begin or end with white space",
    ),
    "a time without a zone": (
        lambda d: d.update(observed_at="2026-11-15T22:00:00"),
        "observed_at: must have a time zone, as in 2026-11-15T22:00:00Z",
    ),
    "a missing field": (lambda d: d.pop("network"), "network: is required"),
    "a field too many": (lambda d: d.update(site="x"), "site: is not a field of this object"),
    "a sequence as text": (lambda d: d.update(sequence="7"), "sequence: must be an integer"),
    "withdrawn and given": (
        lambda d: d["withdrawn"].append({"predicate": "ibgp", "args": ["R1", "RR1"]}),
        "withdrawn[1]: is given in facts, or withdrawn already",
    ),
    "withdrawn, wrong arguments": (
        lambda d: d["withdrawn"][0]["args"].pop(),
        "withdrawn[0].args: ebgp takes 2 (router, external_as), not 1",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named(name: str) -> None:
    change, expected = BAD[name]
    assert expected in problems(change)


def test_another_schema_version_is_refused() -> None:
    assert problems(lambda d: d.update(schema="gsid.snapshot/2"))[0].startswith("schema: ")


@pytest.mark.parametrize("text", [b"", b"{", b"[1, 2", b"\xff\xfe", b"nope"])
def test_what_is_not_json_is_told_apart(text: bytes) -> None:
    with pytest.raises(NotJSON):
        parse_snapshot(text)


@pytest.mark.parametrize("text", [b"[]", b"null", b"7", b'"snapshot"'])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidSnapshot):
        parse_snapshot(text)


def test_all_problems_are_counted_and_the_first_shown() -> None:
    bad = document()
    bad["facts"] = [fact("connected", f"X{i}", "R1", ospf_weight=1) for i in range(50)]
    bad["withdrawn"] = []
    with pytest.raises(InvalidSnapshot) as caught:
        parse_snapshot(json.dumps(bad))
    assert caught.value.total == 50
    assert len(caught.value.problems) == 20
    assert str(caught.value).endswith("and 30 more")


@pytest.mark.parametrize("value", ["9" * 10_000, 10**4_000, [[]] * 1_000, {"a": "b" * 1_000}])
def test_a_huge_value_is_shown_short(value: Any) -> None:
    (problem,) = problems(lambda d: d["facts"][3]["params"].update(med=value))
    assert len(problem) < 200


def test_a_number_of_too_many_digits_is_refused() -> None:
    text = json.dumps(document()).replace('"med": 0', '"med": ' + "9" * 100_000)
    with pytest.raises(InvalidSnapshot):
        parse_snapshot(text)


@pytest.mark.parametrize("colon", [":", " :", "\n\t:"])
@pytest.mark.parametrize("key", ["facts", "local_pref", "complete", "label", "asn"])
def test_a_key_given_twice_is_refused(key: str, colon: str) -> None:
    given = document()
    given["entities"][2]["label"] = "Zürich: a \N{SNOWMAN}"
    text = json.dumps(given, ensure_ascii=False)
    text = text.replace(f'"{key}": ', f'"{key}"{colon} 1, "{key}": ')
    with pytest.raises(InvalidSnapshot, match=f"{key}: is given twice in one object"):
        parse_snapshot(text)


def test_deep_nesting_is_refused() -> None:
    text = json.dumps(document()).replace('"med": 0', '"med": ' + "[" * 5_000 + "]" * 5_000)
    with pytest.raises(InvalidSnapshot):
        parse_snapshot(text)


def test_intents_are_read_against_known_entities() -> None:
    entities = (Entity("R1", "router"), Entity("N", "network"))
    wanted = WireFact(predicate="reachable", args=["R1", "N", "R1"], holds=False)
    assert read_facts([wanted], entities, Group.INTENT) == (
        Fact("reachable", ("R1", "N", "R1"), {}, False),
    )
    link = WireFact(predicate="connected", args=["R1", "R9"])
    with pytest.raises(InvalidSnapshot, match=r"intents\[0\].predicate: unknown predicate"):
        read_facts([link], entities, Group.INTENT)


def test_the_published_json_schema_is_current_and_agrees() -> None:
    published = json.loads((DOCS / "snapshot.schema.json").read_text())
    assert published == json_schema(), "run `make docs`"
    validator = jsonschema.Draft202012Validator(published)
    validator.validate(document())
    for name in ("unknown predicate", "wrong number of arguments", "above the range", "a float"):
        changed = document()
        BAD[name][0](changed)
        # JSON has one kind of number: 1.0 is an integer to JSON schema, and only to it.
        assert validator.is_valid(changed) == (name == "a float")


ids = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=20)
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Any valid snapshot: entities of all kinds, and facts whose roles they fit."""
    names = draw(st.lists(ids, min_size=1, max_size=8, unique=True))
    kinds = draw(st.lists(st.sampled_from(list(SCHEMA.entity)), min_size=8, max_size=8))
    entities = tuple(Entity(name, kind) for name, kind in zip(names, kinds, strict=False))
    facts = draw(facts_among(entities))
    return Snapshot(
        network=draw(ids.filter(is_name)),
        collector=Collector(draw(ids), draw(ids)),
        sequence=draw(st.integers(0, SEQUENCE_HIGHEST)),
        observed_at=draw(times),
        complete=draw(st.booleans()),
        entities=entities,
        facts=tuple(facts),
    )


def facts_among(entities: tuple[Entity, ...]) -> st.SearchStrategy[list[Fact]]:
    options = [facts_of(kind, entities) for kind in SCHEMA.facts if kind.observable]
    fitting = [option for option in options if option is not None]
    if not fitting:
        return st.just([])
    return st.lists(st.one_of(fitting), max_size=10, unique_by=(lambda f: f.key, _peering))


def _peering(fact: Fact) -> object:
    """What may occur once only: a peering has one gateway."""
    return fact.args[1] if fact.predicate == "ebgp" else fact.key


def facts_of(kind: FactKind, entities: tuple[Entity, ...]) -> st.SearchStrategy[Fact] | None:
    places = [[e.id for e in entities if e.kind in {k.name for k in r.kinds}] for r in kind.roles]
    if not all(places) or len({name for place in places for name in place}) < len(places):
        return None
    args = st.tuples(*map(st.sampled_from, places)).filter(lambda a: len(set(a)) == len(a))
    needed = {p.name: st.integers(p.low, p.high) for p in kind.parameters if p.required}
    other = {p.name: st.integers(p.low, p.high) for p in kind.parameters if not p.required}
    params = st.fixed_dictionaries(needed, optional=other)
    return st.builds(Fact, st.just(kind.name), args, params, st.just(True))


@given(snapshots())
def test_a_valid_snapshot_round_trips(snapshot: Snapshot) -> None:
    assert parse_snapshot(json.dumps(dump_snapshot(snapshot))) == snapshot


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_no_document_does_more_than_be_refused(value: Any) -> None:
    with pytest.raises(InvalidSnapshot):
        parse_snapshot(json.dumps({**document(), "facts": value, "network": 7}))


def test_another_protocol_needs_no_change_here() -> None:
    stratum = schema.Parameter("stratum", 15, 1, 16, schema.Order.LOWER_WINS, required=True)
    role = schema.Role("router", schema.ROUTERS)
    extended = SCHEMA.extended(FactKind("ntp", 11, (role, role), (stratum,)))
    changed = document()
    changed["facts"].append(fact("ntp", "R1", "R3", stratum=17))
    with pytest.raises(InvalidSnapshot, match=r"params.stratum: 17 is outside 1 to 16"):
        parse_snapshot(json.dumps(changed), extended)


def large(**changes: Any) -> bytes:
    """A snapshot of more than a mebibyte, right but for what is changed."""
    routers = [{"id": f"R{i}", "kind": "router", "label": "x" * 100} for i in range(10_000)]
    return json.dumps(
        document() | {"entities": routers, "facts": [], "withdrawn": []} | changes
    ).encode()


def test_a_large_snapshot_is_read() -> None:
    assert len(large()) > LARGE
    assert len(parse_snapshot(large()).entities) == 10_000


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"facts": [{}] * 10_000}, "facts[0].predicate"),
        ({"facts": [0] * 10_000}, "facts[0]"),
        ({"facts": [{"predicate": "", "args": []}] * 10_000}, "facts[0].predicate"),
        ({"facts": [{"predicate": "x", "args": ["R1"] * 100}]}, "facts[0]"),
        ({"facts": [{"predicate": "x", "args": [], "params": {"a": [[]]}}]}, "facts[0]"),
        ({"withdrawn": [{"predicate": "x", "args": [0] * 50}]}, "withdrawn[0].args[0]"),
        ({"network": ["x"] * 10_000}, "network"),
        ({"facts": {str(i): 0 for i in range(100)}}, "facts"),
        ({"surplus": [[]] * 100}, "body"),
        ({str(i): 0 for i in range(10_000)}, "body"),
    ],
)
def test_of_a_large_document_the_first_thing_that_is_wrong_is_named(
    changes: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidSnapshot) as caught:
        parse_snapshot(large(**changes))
    assert caught.value.problems[0].field == place
    assert caught.value.total <= PROBLEMS_AT_MOST + 1


def test_of_a_large_document_all_that_is_missing_is_named() -> None:
    text = json.dumps({"facts": ["x" * LARGE]})
    with pytest.raises(InvalidSnapshot) as caught:
        parse_snapshot(text)
    assert "network: is required" in str(caught.value)
    with pytest.raises(NotJSON):
        parse_snapshot(text[:-1])
    with pytest.raises(InvalidSnapshot, match="must be an object"):
        parse_snapshot(f"[{text}]")
