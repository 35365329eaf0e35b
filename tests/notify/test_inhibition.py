"""Inhibition: what a link or session that is gone explains, and what it does not."""

import pytest

from gsid_service.notify.inhibition import explains
from gsid_service.records import FactKey

ROUTE = FactKey("bgp_route", ("AS65101@R3", "203.0.113.0/24"))
LINK = FactKey("connected", ("R1", "R2"))


@pytest.mark.parametrize(
    ("gone", "fact", "explained"),
    [
        (FactKey("ebgp", ("R3", "AS65101@R3")), ROUTE, True),
        (FactKey("ebgp", ("R3", "AS65102@R3")), ROUTE, False),
        (FactKey("connected", ("R2", "R1")), LINK, True),
        (FactKey("connected", ("R2", "R3")), LINK, False),
        (FactKey("ibgp", ("R1", "RR1")), LINK, False),
        (FactKey("ebgp", ("R1", "AS65101@R1")), LINK, False),
        (FactKey("bgp_route", ("AS65101@R3", "198.51.100.0/24")), ROUTE, False),
        (LINK, LINK, False),
        (FactKey("unheard_of", ("R1",)), LINK, False),
    ],
)
def test_what_is_gone_explains_what_hangs_on_it(
    gone: FactKey, fact: FactKey, explained: bool
) -> None:
    assert (explains([gone], fact) == gone) == explained
