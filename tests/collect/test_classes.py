"""Classes: prefixes alike everywhere are one destination, and remain the one that they were."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.collect.classes import Grouping, alike, singly
from gsid_service.collect.source import Route
from gsid_service.collect.tables import Tables

Heard = dict[str, int]  # the local_pref of each prefix, at one gateway


def prefixes(count: int, start: int = 0) -> list[str]:
    return [f"10.{n // 256}.{n % 256}.0/24" for n in range(start, start + count)]


def put(tables: Tables, gateway: str, heard: Heard) -> None:
    routes = {
        prefix: (Route(f"AS1@{gateway}", 2, local_pref=value),) for prefix, value in heard.items()
    }
    tables.put(gateway, routes, {})


def tables(**gateways: Heard) -> Tables:
    made = Tables()
    for gateway, heard in gateways.items():
        put(made, gateway, heard)
    return made


def members(tables: Tables, grouping: Grouping) -> dict[str, set[str]]:
    """The prefixes of each class."""
    return {
        destination.id: {tables.prefix(n) for n in grouping.members(at).tolist()}
        for at, destination in enumerate(grouping.destinations)
    }


def test_each_prefix_is_its_own_destination_where_there_are_few() -> None:
    few = tables(R1={"192.0.2.0/24": 1, "198.51.100.0/24": 1}, R2={"203.0.113.0/24": 1})
    found = singly(few)
    assert [d.id for d in found.destinations] == [
        "192.0.2.0/24",
        "198.51.100.0/24",
        "203.0.113.0/24",
    ]
    assert all(d.label is None for d in found.destinations)


def test_what_one_gateway_tells_apart_is_apart() -> None:
    a, b, c = prefixes(3)
    made = tables(R1={a: 1, b: 1, c: 1}, R2={a: 5, b: 5, c: 6})
    assert members(made, alike(made, None)) == {f"{a}+": {a, b}, f"{c}+": {c}}


def test_what_a_gateway_does_not_hear_is_apart() -> None:
    a, b = prefixes(2)
    made = tables(R1={a: 1, b: 1}, R2={a: 1})
    assert members(made, alike(made, None)) == {f"{a}+": {a}, f"{b}+": {b}}


def test_a_class_says_what_is_in_it() -> None:
    made = tables(R1=dict.fromkeys(prefixes(1234), 1))
    (found,) = alike(made, None).destinations
    assert (found.size, found.id) == (1234, "10.0.0.0/24+")
    assert found.label == "1,234 prefixes such as 10.0.0.0/24, 10.0.1.0/24, 10.0.2.0/24"


def test_a_class_whose_value_changes_everywhere_keeps_its_id() -> None:
    all_of = prefixes(100)
    made = tables(R1=dict.fromkeys(all_of, 1))
    before = alike(made, None)
    put(made, "R1", dict.fromkeys(all_of, 7))
    assert members(made, alike(made, before)) == members(made, before)


def test_the_larger_part_of_a_class_that_splits_keeps_its_id() -> None:
    all_of = prefixes(100)
    made = tables(R1=dict.fromkeys(all_of, 1))
    before = alike(made, None)
    # The prefix that the class is named for is among those that leave.
    put(made, "R1", dict.fromkeys(all_of, 1) | dict.fromkeys(all_of[:30], 2))
    after = members(made, alike(made, before))
    assert after["10.0.0.0/24+"] == set(all_of[30:])
    assert sorted(map(len, after.values())) == [30, 70]


def test_classes_that_join_go_on_as_the_larger_and_split_again_as_before() -> None:
    all_of = prefixes(100)
    apart = dict.fromkeys(all_of, 1) | dict.fromkeys(all_of[60:], 2)
    made = tables(R1=apart)
    first = alike(made, None)
    put(made, "R1", dict.fromkeys(all_of, 1))
    joined = alike(made, first)
    assert members(made, joined) == {"10.0.0.0/24+": set(all_of)}
    put(made, "R1", apart)
    assert members(made, alike(made, joined)) == members(made, first)


def test_a_class_that_nobody_hears_any_more_is_gone() -> None:
    a, b = prefixes(2)
    made = tables(R1={a: 1, b: 2})
    before = alike(made, None)
    put(made, "R1", {b: 2})
    assert members(made, alike(made, before)) == {f"{b}+": {b}}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(prefixes(12)), st.integers(1, 3)), min_size=2))
def test_classes_are_exactly_the_prefixes_alike(turns: list[Heard]) -> None:
    made, grouping = Tables(), None
    for turn, heard in enumerate(turns):
        put(made, f"R{turn % 2}", heard)
        grouping = alike(made, grouping)
        known = [turns[t] for t in range(max(0, turn - 1), turn + 1)]
        alikes: dict[tuple[int | None, ...], set[str]] = {}
        for prefix in set().union(*known):
            alikes.setdefault(tuple(h.get(prefix) for h in known), set()).add(prefix)
        found = members(made, grouping)
        assert sorted(map(sorted, found.values())) == sorted(map(sorted, alikes.values()))
        assert len(found) == len(grouping.destinations), "an id stands for two"
