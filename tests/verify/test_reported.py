"""Forwarding as reported is held against forwarding as configured."""

from gsid_service.records import Fact, Move
from gsid_service.verify.reported import differences
from tests.verify.test_repair import bench

STATE = bench(at_a=200, at_b=100).state  # all leave by A


def fwd(router: str, hop: str, network: str = "N") -> Fact:
    return Fact("fwd", (router, network, hop))


def test_what_agrees_is_no_difference() -> None:
    assert differences(STATE, [fwd("RR", "A"), fwd("A", "AS1@A"), fwd("B", "RR")]) == []


def test_a_router_that_forwards_otherwise_is_named_with_both_ways() -> None:
    assert differences(STATE, [fwd("RR", "B"), fwd("A", "AS1@A")]) == [Move("RR", "N", "A", "B")]


def test_a_router_that_uses_another_way_besides_is_no_difference() -> None:
    """FRR has multipath between gateways on by default."""
    assert differences(STATE, [fwd("RR", "A"), fwd("RR", "B")]) == []


def test_stale_reports_and_unknown_places_say_nothing() -> None:
    stale = fwd("RR", "B")
    assert differences(STATE, [stale], {stale.key}) == []
    assert differences(STATE, [fwd("gone", "A"), fwd("RR", "A", "elsewhere")]) == []
