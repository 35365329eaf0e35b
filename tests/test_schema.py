"""The vocabulary is the design's, complete and immutable."""

import dataclasses

import pytest

from gsid_service import schema
from gsid_service.schema import SCHEMA, FactKind, Order, Parameter, Role


def test_codes_and_roles_are_the_design_s() -> None:
    assert {f.name: (f.code, len(f.roles)) for f in SCHEMA.facts} == {
        "bgp_route": (0, 2),
        "connected": (1, 2),
        "ebgp": (2, 2),
        "fwd": (4, 3),
        "ibgp": (5, 2),
        "reachable": (7, 3),
        "traffic_isolation": (10, 4),
    }


def test_columns_are_the_design_s() -> None:
    columns = {p.name: p.column for p in SCHEMA.parameters} | {
        e.name: e.column for e in SCHEMA.entities
    }
    assert SCHEMA.width == 15
    assert sorted(columns, key=lambda name: columns[name]) == [
        *("local_pref", "as_path_length", "origin", "med", "is_ebgp", "speaker", "ospf_weight"),
        *("external_as", "network", "route_reflector", "router"),
    ]


def test_monitored_parameters_have_the_paper_s_ranges_and_orders() -> None:
    assert {p.name: (p.paper, p.order) for p in SCHEMA.monitored} == {
        "local_pref": ((0, 9), Order.HIGHER_WINS),
        "as_path_length": ((1, 9), Order.LOWER_WINS),
        "med": ((0, 29), Order.LOWER_WINS),
        "ospf_weight": ((1, 31), Order.ADDS_UP),
    }


def test_a_reflector_may_stand_wherever_a_router_may() -> None:
    for fact in SCHEMA.facts:
        for role in fact.roles:
            assert schema.ROUTER not in role.kinds or schema.ROUTE_REFLECTOR in role.kinds


def test_nothing_can_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        schema.LOCAL_PREF.high = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        SCHEMA.fact["ospf"] = schema.CONNECTED  # type: ignore[index]


def test_another_protocol_fits_by_declaration() -> None:
    stratum = Parameter("stratum", 15, 1, 16, Order.LOWER_WINS, monitored=True)
    role = Role("router", schema.ROUTERS)
    extended = SCHEMA.extended(FactKind("ntp", 11, (role, role), (stratum,)))
    assert extended.width == 16
    assert extended.monitored[-1] == stratum
    assert "ntp" not in SCHEMA.fact


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (FactKind("fwd", 12, ()), "predicate declared twice: fwd"),
        (FactKind("ntp", 10, ()), "predicate code declared twice: 10"),
        (
            FactKind("ntp", 12, (), (Parameter("poll", 14, 0, 1, Order.IDENTITY),)),
            "feature column declared twice: 14",
        ),
        (
            FactKind("ntp", 12, (), (Parameter("med", 15, 0, 1, Order.IDENTITY),)),
            "parameter declared twice: med",
        ),
    ],
)
def test_a_clash_is_refused(kind: FactKind, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SCHEMA.extended(kind)
